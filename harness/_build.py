# SPDX-License-Identifier: Apache-2.0
"""Compiling kernels for the host driver: driver.build()."""

import atexit
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile

_HERE = os.path.dirname(os.path.abspath(__file__))


class BuildError(RuntimeError):
    """A compiler did not accept the sources. The message holds what it wrote."""


_folder = None
_built = {}


def remove_folder():
    if _folder is not None:
        shutil.rmtree(_folder, ignore_errors=True)


def temporary_folder():
    """Where this process puts what compilers make; it goes with the process."""
    global _folder
    if _folder is None:
        _folder = tempfile.mkdtemp(prefix="kjudge-build-")
        atexit.register(remove_folder)
    return _folder


def include_folder():
    """Where kjudge's headers are."""
    return os.path.normpath(os.path.join(_HERE, "..", "..", "..", "include"))


def run_compiler(command, folder=None):
    """What the compiler wrote; BuildError if it failed."""
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=environment, cwd=folder, errors="replace", check=False)
    except FileNotFoundError:
        raise BuildError("%s: there is no such compiler; install one, or set CC and CXX" %
                         command[0]) from None
    except OSError as error:
        raise BuildError("%s cannot be started: %s" % (command[0], error.strerror)) from None
    if done.returncode != 0:
        raise BuildError("%s\n%s" % (" ".join(shlex.quote(c) for c in command), done.stdout.strip()))
    return done.stdout.strip()


def build(sources, flags=()):
    """Compiles C and C++ kernels for the host driver; returns the path of the module.

    `sources`: paths (one, or a list); `flags`: more compiler flags, as a list or a string. The same
    sources and flags are compiled once in a process.
    """
    sources = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    flags = shlex.split(flags) if isinstance(flags, str) else list(flags)
    paths = [os.path.abspath(os.fspath(source)) for source in sources]
    if not paths:
        raise ValueError("build: no sources")
    digest = hashlib.sha256(repr(flags).encode())
    for path in paths:
        with open(path, "rb") as file:
            digest.update(path.encode() + b"\0" + file.read())
    key = digest.hexdigest()
    if key in _built:
        return _built[key]
    folder, include = temporary_folder(), include_folder()
    c_compiler = shlex.split(os.environ.get("CC", "")) or ["cc"]
    cxx_compiler = shlex.split(os.environ.get("CXX", "")) or ["c++"]
    objects, linker = [], c_compiler
    for index, path in enumerate(paths):
        is_c = path.endswith(".c")
        made = os.path.join(folder, "%s-%d.o" % (key[:16], index))
        run_compiler((c_compiler if is_c else cxx_compiler) +
                     ["-O3", "-march=native", "-fPIC", "-I" + include] + flags +
                     ["-c", path, "-o", made])
        objects.append(made)
        if not is_c:
            linker = cxx_compiler
    module = os.path.join(folder, key[:16] + ".so")
    run_compiler(linker + ["-shared", "-o", module] + objects + flags)
    _built[key] = module
    return module
