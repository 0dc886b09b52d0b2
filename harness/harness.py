#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests a submission on this machine as the judge would: python harness.py submission.py

What follows the submission's name goes to `kjudge selftest`: --shape S, --pairs N, --eager, --json.
In a package, the challenge with its baseline and reference is in lib/kjudge/packages.
"""

import errno
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MISSING = """{path}: not found
harness.py needs the kjudge program beside it. Packages ship it in bin/; from source, build it with
  cmake --preset release && cmake --build build
and run build/lib/kjudge/harness/harness.py, or say where it is with KJUDGE=/path/to/kjudge."""
NOT_IN_PACKAGE = "{path}: not found; unpack the package again"
NOT_EXECUTABLE = """{path}: not executable; say
  chmod +x {path}
or unpack again with tar, which keeps what may be executed."""
EXIT_MALFORMED, EXIT_JUDGE_ERROR, EXIT_IO = 3, 5, 6  # as kjudge's own


def say(text):
    """A line of its own for each line of kjudge's, and nothing that could drive a terminal: paths are
    whatever an archive held."""
    print("kjudge: " + "".join(c if c.isprintable() or c == "\n" else "?" for c in text), file=sys.stderr)


def find_kjudge():
    named = os.environ.get("KJUDGE")
    places = [named] if named else [
        os.path.join(HERE, "bin", "kjudge"),  # a package
        os.path.normpath(os.path.join(HERE, "..", "bin", "kjudge")),
        os.path.normpath(os.path.join(HERE, "..", "..", "..", "bin", "kjudge")),  # an installation
    ]
    for place in places:
        if os.path.isfile(place) and os.access(place, os.X_OK):
            return place
    message = MISSING
    if os.path.isfile(places[0]):
        message = NOT_EXECUTABLE
    elif not named and os.path.exists(os.path.join(HERE, "package.json")):
        message = NOT_IN_PACKAGE
    say(message.format(path=named or os.path.relpath(places[0])))
    sys.exit(EXIT_IO)


def use_this_python():
    """kjudge starts the python3 of PATH: that shall be the one with the contestant's torch."""
    import shutil

    folder = os.path.dirname(sys.executable)
    found = shutil.which("python3")
    if os.access(os.path.join(folder, "python3"), os.X_OK) and (
            not found or os.path.dirname(found) != folder):
        os.environ["PATH"] = os.pathsep.join([folder, os.environ.get("PATH") or os.defpath])


# package.json, as kjudge-package(5) has it: of each field a pattern, or the least and the most of an
# integer, and what an error says is expected. Packages are of the version that harness.py is of.
DIGEST = ("[0-9a-f]{64}", "64 hexadecimal digits, a SHA-256")
# Without what orders or hides text.
LINE = ("[^\\x00-\\x1f\\x7f-\\x9f\\xad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e"
        "\\u2060-\\u206f\\ud800-\\udfff\\ufeff\\ufff9-\\ufffb\\U000e0000-\\U000e0fff]{1,%d}")
# As read_server_address() of kjudge and host_of() of submit.py have it: a host's name or IPv6 address, a
# port, a path without parts that lead elsewhere.
IPV6 = (r"\[(?:{0}(?::{0}){{7}}|(?=(?:{0}?:){{2,8}}{0}?\])(?!(?:{0}::?){{7}}{0}\])"
        r"(?:{0}(?::{0})*)?::(?:{0}(?::{0})*)?)\]").format("(?:[0-9A-Fa-f]{1,4})")
NAME = "[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
PORT = "(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
PATH = r"(?:/(?!\.{1,2}(?:/|$))(?:[A-Za-z0-9._~+-]|%[0-9A-Fa-f]{2})+)*"
SERVER = "(?!.{201})https?://(?:%s|%s(?:[.]%s)*)(?::%s)?%s" % (IPV6, NAME, NAME, PORT, PATH)
FIELDS = {
    "format": ("kjudge-package/1", '"kjudge-package/1"'),
    "challenge": ("[a-z0-9][a-z0-9-]{0,63}", "the name of a challenge"),
    "challenge_version": ((1, 1000000), "an integer from 1 to 1000000"),
    "challenge_sha256": DIGEST,
    "server": (SERVER, "an http or https address"),
    "kjudge_version": (LINE % 100, "one line of visible text, 1 to 100 bytes"),
    "kjudge_commit": (LINE % 100, "one line of visible text, 1 to 100 bytes"),
    "arch": ("x86_64", '"x86_64"'),
    "glibc": ("[0-9]{1,4}[.][0-9]{1,4}", "a version such as 2.36"),
}
FILE_FIELDS = {"name": (LINE % 255, "one line of visible text, 1 to 255 bytes"), "sha256": DIGEST}
MOST_FILES = 100000
MOST_SOURCE_BYTES = 1 << 26
PACKED_FOLDERS = ("bin", "lib", "include")  # what lies elsewhere is the contestant's to change
MAY_BE_ABSENT = ("server",)
# Options of selftest whose value is an argument of its own, unless "=" joins them.
WITH_VALUE = ("--challenge", "--driver", "--device", "--dtype", "--shape", "--pairs")


def open_file(path):
    """For reading; a FIFO would be waited for, a device read for ever."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise OSError(errno.EINVAL, "not a regular file")
    return open(path, "rb")


def damaged(path, why):
    say("%s: %s; unpack the package again" % (os.path.relpath(path), why))
    sys.exit(EXIT_MALFORMED)


def read_json(path):
    """Strictly, as kjudge reads it."""
    import json

    def members(pairs):
        read = {}
        for name, value in pairs:
            if name in read:
                raise ValueError("the name %s stands twice in the same object" % json.dumps(name))
            read[name] = value
        return read

    def no_number(text):
        raise ValueError("%s is no number in JSON" % text)

    def integer(text):
        return int(text[:1000])  # too large in any case; of a longer one Python tells its own settings

    try:
        with open_file(path) as file:
            return json.loads(file.read().decode(), object_pairs_hook=members,
                              parse_constant=no_number, parse_int=integer)
    except RecursionError:
        damaged(path, "more levels of lists and objects than any file of a package has")
    except OSError as error:
        damaged(path, error.strerror)
    except ValueError as error:
        damaged(path, error)


def described(value):
    import json

    text = "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else \
        json.dumps(value)
    return text if len(text) <= 60 else text[:60] + "..."


def check_fields(path, value, fields, where=""):
    """Exits unless it is an object with all of the fields, each as expected, and no others."""
    import json
    import re

    def fail(name, message):
        damaged(path, ": ".join(part for part in ((where + name).rstrip("."), message) if part))

    if not isinstance(value, dict):
        fail("", "expected an object, found %s" % described(value))
    for name, (rule, expected) in fields.items():
        if name not in value:
            if name not in MAY_BE_ABSENT:
                fail("", 'field "%s" is missing; expected %s' % (name, expected))
            continue
        one = value[name]
        if isinstance(rule, str):
            right = isinstance(one, str) and re.fullmatch(rule, one) is not None
        else:
            right = type(one) is int and rule[0] <= one <= rule[1]
        if not right:
            fail(name, "expected %s, found %s" % (expected, described(one)))
    for name in value:
        if name not in fields:
            fail(json.dumps(name), "unknown field; the fields here are %s" % ", ".join(fields))


def read_manifest(path):
    package = read_json(path)
    # Without its list of files, which only an object has.
    there = isinstance(package, dict) and "files" in package
    files = package.pop("files") if there else None
    check_fields(path, package, FIELDS)
    expected = "a list of 1 to %d items" % MOST_FILES
    if not there:
        damaged(path, 'field "files" is missing; expected %s' % expected)
    if not isinstance(files, list) or not 1 <= len(files) <= MOST_FILES:
        damaged(path, "files: expected %s, found %s" % (
            expected, "a list of %d" % len(files) if isinstance(files, list) else described(files)))
    before = b""
    for index, file in enumerate(files):
        where = "files[%d]." % index
        check_fields(path, file, FILE_FIELDS, where)
        if {"", ".", ".."} & set(file["name"].split("/")):
            damaged(path, where + 'name: expected a path below the package\'s folder, without "." and ".."')
        name = file["name"].encode()
        if name <= before:
            damaged(path, where + "name: expected names in order, each once")
        before = name
    return dict(package, files=files)


def check_files(files):
    """Exits unless the files of the package are those that were packed."""
    import hashlib

    digests = {os.path.normpath(file["name"]): file["sha256"] for file in files}
    for folder in PACKED_FOLDERS:
        for parent, folders, names in os.walk(os.path.join(HERE, folder)):
            folders[:] = [name for name in folders if name != "__pycache__"]  # Python's own
            for path in (os.path.join(parent, name) for name in folders):
                if os.path.islink(path):  # Python would look into it, os.walk does not
                    damaged(path, "is a link, of which a package has none")
            for path in (os.path.join(parent, name) for name in names if name[0] != "."):
                if os.path.relpath(path, HERE) not in digests:
                    damaged(os.path.join(HERE, "package.json"),
                            "files: %s is not among them" % os.path.relpath(path, HERE))
    for name, digest in digests.items():
        folder = name.partition("/")[0]
        if folder not in PACKED_FOLDERS or (folder == "bin" and os.environ.get("KJUDGE")):
            continue  # or another program is named
        path, found = os.path.join(HERE, name), hashlib.sha256()
        try:
            with open_file(path) as file:
                for block in iter(lambda: file.read(1 << 20), b""):
                    found.update(block)
        except FileNotFoundError:
            damaged(path, "not found")
        except OSError as error:
            damaged(path, error.strerror)
        if found.hexdigest() != digest:
            damaged(path, "not as it was packed (expected SHA-256 %s, found %s)" % (
                digest, found.hexdigest()))


def read_package():
    """package.json of the package this file lies in, the arches that its challenge has shapes for, and
    the challenge's folder; None: it lies in none. Exits where a file is not as it was packed."""
    path = os.path.join(HERE, "package.json")
    if not os.path.exists(path):
        if os.path.isdir(os.path.join(HERE, "lib", "kjudge")):
            damaged(path, "not found")
        return None
    package = read_manifest(path)
    check_files(package["files"])
    folder = os.path.join(HERE, "lib", "kjudge", "packages", package["challenge"])
    path = os.path.join(folder, "challenge.json")
    try:
        arches = {str(shape["arch"]) for shape in read_json(path)["shapes"]}
    except (KeyError, TypeError):
        damaged(path, "no shapes with an arch in it")
    return package, arches, folder


def binary_problems(package):
    import platform

    build = ("build kjudge %s (commit %s) on this machine from source and say where it is with "
             "KJUDGE=/path/to/bin/kjudge" % (package["kjudge_version"], package["kjudge_commit"]))
    if platform.machine() != package["arch"]:
        yield "this processor is %s, bin/kjudge is for %s; %s" % (
            platform.machine(), package["arch"], build)
    try:
        library = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        library = ""
    name, _, version = library.partition(" ")
    if name != "glibc":
        yield "this machine's C library is not glibc, which bin/kjudge needs; %s" % build
    elif [int(part) for part in version.split(".")[:2]] < [
            int(part) for part in package["glibc"].split(".")]:
        yield "this machine has glibc %s, bin/kjudge needs %s or newer; %s" % (
            version, package["glibc"], build)


def gpu_problem():
    """Why kjudge would find no GPU; "": it would find one."""
    import ctypes
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "NVIDIA's driver (libcuda.so.1) is not installed here"
    status = driver.cuInit(0)
    count = ctypes.c_int(0)
    if status == 0:
        status = driver.cuDeviceGetCount(ctypes.byref(count))
    if status != 0 or count.value == 0:
        return "NVIDIA's driver finds no GPU here (CUDA error %d); nvidia-smi says more" % status
    return ""


def chosen_driver(arguments):
    for index, argument in enumerate(arguments):
        if argument == "--driver" and index + 1 < len(arguments):
            return arguments[index + 1]
        if argument.startswith("--driver="):
            return argument.partition("=")[2]
    return os.environ.get("KJUDGE_DRIVER", "auto")


def chosen_submission(arguments):
    value_of = None
    for argument in arguments:
        if value_of is None and not argument.startswith("-"):
            return argument
        value_of = argument if value_of is None and argument in WITH_VALUE else None
    return "submission.py"


def imported(path, on_gpu):
    """Names of the modules that a file imports; on processor cores only those it always does."""
    import ast
    try:
        with open_file(path) as file:
            tree = ast.parse(file.read(MOST_SOURCE_BYTES))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return set()  # kjudge says what is wrong with it
    names = set()
    for node in ast.walk(tree) if on_gpu else tree.body:
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module.partition(".")[0])
    return names


def machine_problems(arches, folder, arguments):
    """What this challenge needs and this machine lacks."""
    import importlib.util
    import shutil

    on_cores, driver = "x86_64" in arches, chosen_driver(arguments)
    for_gpu = driver == "cuda" or (driver == "auto" and arches != {"x86_64"})
    problem = gpu_problem() if for_gpu else ""
    on_gpu = for_gpu and not (driver == "auto" and on_cores and problem)
    if on_gpu and problem:
        yield "%s; %s" % (problem, "this challenge runs on GPUs only" if not on_cores else
                          "without --driver cuda it runs on processor cores")
    submission = chosen_submission(arguments)
    if os.path.isdir(submission):
        submission = os.path.join(submission, "submission.py")
    sources = [submission] + [os.path.join(folder, name) for name in ("baseline.py", "reference.py")]
    for module in ("torch", "triton"):
        using = [path for path in sources if module in imported(path, on_gpu)]
        if using and importlib.util.find_spec(module) is None:
            yield "%s imports %s, which %s does not have; install it, or run harness.py with the " \
                  "Python that has it" % (os.path.relpath(using[0]), module, sys.executable)
    compiler = (os.environ.get("CC", "").split() or ["cc"])[0]
    if not on_gpu and shutil.which(compiler) is None:
        yield "there is no C compiler (%s), which kernels for processor cores are built with; " \
              "install gcc, or set CC" % compiler


def python_problems():
    if sys.version_info < (3, 9):
        yield "this Python is %d.%d, kjudge needs 3.9 or newer" % sys.version_info[:2]
        return
    try:  # what Debian's python3-minimal leaves out
        import ctypes  # noqa: F401
        import json  # noqa: F401
        import shutil  # noqa: F401
    except ImportError as error:
        yield "this Python has no module %s: its standard library is not whole; install python3, " \
              "not python3-minimal" % error.name


def missing(arguments):
    problems = list(python_problems())
    if problems:
        return problems
    use_this_python()
    package = read_package()
    if package is None:
        return []
    manifest, arches, folder = package
    problems = [] if os.environ.get("KJUDGE") else list(binary_problems(manifest))
    return problems + list(machine_problems(arches, folder, arguments))


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if arguments else 2
    kjudge = find_kjudge()
    problems = missing(arguments)
    for problem in problems:
        say("missing: " + problem)
    if problems:
        return EXIT_JUDGE_ERROR
    try:
        os.execv(kjudge, [kjudge, "selftest"] + arguments)
    except OSError as error:
        say("%s: %s; build it on this machine" % (kjudge, error.strerror))
        return EXIT_IO


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
