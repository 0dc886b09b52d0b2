#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the layers of lib/ and cmd/: a file includes only its own layer and lower ones.

    layers.py [ROOT]    exit 1, with file and line, if an include goes upward or leads nowhere
"""
import re
import sys
import tempfile
from pathlib import Path

# Lowest first. "base" is the files of lib/ itself, "cmd" the folder beside lib/.
LAYERS = ["base", "bundle", "driver", "record", "challenge", "check", "replay", "score", "store",
          "judge", "web", "cmd"]
# These go into other people's processes: of the base, only what needs no library.
ONLY_CORE = ["bundle", "driver", "record"]
# Header-only: the keys of the made-up inputs, which recorder and supervisor must agree on.
FREE_HEADERS = ["record/made_up.h"]
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]')
SOURCES = {".h", ".c", ".cc", ".cu", ".inc", ".in"}


def layer_of(path):
    """Layer of a file by its path below lib/, or of "cmd/..."."""
    return path.parts[0] if len(path.parts) > 1 else "base"


def core_files(root):
    """Names without suffix in the list of kjudge_core."""
    text = (root / "lib" / "CMakeLists.txt").read_text()
    listed = re.search(r"add_library\(kjudge_core STATIC ([^)]*)\)", text)
    if listed is None:
        raise SystemExit("layers: lib/CMakeLists.txt: no add_library(kjudge_core STATIC ...)")
    return {Path(name).stem for name in listed.group(1).split()}


def resolve(root, source, name):
    """What an include names, below lib/ or as cmd/...; None when it is not one of our files."""
    lib = root / "lib"
    for base in (lib, source.parent):
        for suffix in ("", ".in"):  # version.h.in makes version.h
            path = base / (name + suffix)
            if path.is_file():
                path = path.resolve()
                top = lib if path.is_relative_to(lib) else root
                return path.relative_to(top) if path.is_relative_to(top) else None
    return None


def problems(root):
    root = root.resolve()
    core = core_files(root)
    found = []
    sources = [path for top in ("lib", "cmd") for path in sorted((root / top).rglob("*"))
               if path.is_file() and path.suffix in SOURCES]
    for source in sources:
        top = root / "lib" if source.is_relative_to(root / "lib") else root
        own = layer_of(source.relative_to(top))
        where = source.relative_to(root)
        if own not in LAYERS:
            found.append(f"{where}: folder {own} is in no layer; add it to LAYERS of layers.py")
            continue
        for number, line in enumerate(source.read_text(errors="replace").splitlines(), 1):
            match = INCLUDE.match(line)
            if match is None:
                continue
            target = resolve(root, source, match.group(1))
            if target is None:
                # Public headers of the host driver are included as <kjudge/...>, from its own folder.
                if '"' in line:
                    found.append(f"{where}:{number}: there is no \"{match.group(1)}\" below lib/")
                continue
            other = layer_of(target)
            if target.as_posix() in FREE_HEADERS:
                continue
            if other not in LAYERS or LAYERS.index(other) > LAYERS.index(own):
                found.append(f"{where}:{number}: {own} includes {target}, which is above it")
            elif other == "record" and own != "record":
                found.append(f"{where}:{number}: {target} belongs to the recorder alone")
            elif other == "base" and own in ONLY_CORE and target.stem not in core:
                found.append(f"{where}:{number}: {own} may include only the files of kjudge_core "
                             f"from the base, not {target}")
    if not sources:
        found.append(f"{root}: no sources")
    return found


def check_itself():
    """A checker that finds nothing anywhere would pass any tree."""
    tree = {
        "lib/CMakeLists.txt": "add_library(kjudge_core STATIC error.cc)",
        "lib/error.h": "", "lib/json.h": '#include "error.h"\n',
        "lib/driver/driver.h": '#include "error.h"\n#include "json.h"\n',
        "lib/record/hook.h": '#include "driver/driver.h"\n',
        "lib/score/score.h": '#include "json.h"\n#include "record/hook.h"\n',
        "lib/check/check.h": '#include <vector>\n  #  include "score/score.h"\n',
        "lib/odd/odd.h": "", "cmd/main.cc": '#include "score/score.h"\n#include "gone.h"\n',
    }
    expected = [("lib/check/check.h:2:", "above"), ("lib/driver/driver.h:2:", "kjudge_core"),
                ("lib/odd/odd.h:", "no layer"), ("lib/score/score.h:2:", "recorder alone"),
                ("cmd/main.cc:2:", "gone.h")]
    with tempfile.TemporaryDirectory() as folder:
        for name, text in tree.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        found = problems(Path(folder))
    if len(found) != len(expected) or not all(
            line.startswith(start) and word in line
            for line, (start, word) in zip(found, expected)):
        raise SystemExit("layers: the checker itself is broken:\n" + "\n".join(found))


def main():
    check_itself()
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    found = problems(root)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
