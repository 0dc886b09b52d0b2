#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests a submission on this machine as the judge would: python harness.py submission.py

What follows the submission's name goes to `kjudge selftest`: --shape S, --pairs N, --eager, --json.
In a package, the challenge with its baseline and reference is in lib/kjudge/packages.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MISSING = """kjudge: {path}: not found
harness.py needs the kjudge program beside it. Packages ship it in bin/; from source, build it with
  cmake --preset release && cmake --build build
and run build/lib/kjudge/harness/harness.py, or say where it is with KJUDGE=/path/to/kjudge."""
NOT_IN_PACKAGE = "kjudge: {path}: not found; unpack the package again"
NOT_EXECUTABLE = """kjudge: {path}: not executable; say
  chmod +x {path}
or unpack again with tar, which keeps what may be executed."""
EXIT_MALFORMED, EXIT_JUDGE_ERROR, EXIT_IO = 3, 5, 6  # as kjudge's own


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
    print(message.format(path=named or os.path.relpath(places[0])), file=sys.stderr)
    sys.exit(EXIT_IO)


def use_this_python():
    """kjudge starts the python3 of PATH: that shall be the one with the contestant's torch."""
    import shutil

    folder = os.path.dirname(sys.executable)
    found = shutil.which("python3")
    if os.access(os.path.join(folder, "python3"), os.X_OK) and (
            not found or os.path.dirname(found) != folder):
        os.environ["PATH"] = os.pathsep.join([folder, os.environ.get("PATH") or os.defpath])


def read_package():
    """package.json of the package this file lies in, the arches that its challenge has shapes for, and
    the challenge's folder; None: it lies in none."""
    import json

    def read(*parts):
        path = os.path.join(HERE, *parts)
        try:
            with open(path, encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError) as error:
            print("kjudge: %s: %s; unpack the package again" % (path, error), file=sys.stderr)
            sys.exit(EXIT_MALFORMED)

    def damaged(name, why):
        print("kjudge: unpack the package again: %s %s" % (name, why), file=sys.stderr)
        sys.exit(EXIT_MALFORMED)

    if not os.path.exists(os.path.join(HERE, "package.json")):
        return None
    package = read("package.json")
    for field in ("challenge", "kjudge_version", "kjudge_commit", "arch", "glibc"):
        if not isinstance(package, dict) or not isinstance(package.get(field), str):
            damaged("package.json", "has no text %s" % field)
    try:
        names = [os.path.normpath(file["name"]) for file in package["files"]]
        [int(part) for part in package["glibc"].split(".")]
    except (KeyError, TypeError, ValueError, AttributeError):
        damaged("package.json", "has no list of files, or no version of glibc")
    for name in names:
        # What lies at the top is the contestant's to move; bin/ was looked for already.
        if name.startswith(("lib/", "include/")) and not os.path.exists(os.path.join(HERE, name)):
            damaged(name, "is missing")
    folder = os.path.join("lib", "kjudge", "packages", package["challenge"])
    challenge = read(folder, "challenge.json")
    try:
        arches = {str(shape["arch"]) for shape in challenge["shapes"]}
    except (KeyError, TypeError):
        damaged(os.path.join(folder, "challenge.json"), "has no shapes with an arch")
    return package, arches, os.path.join(HERE, folder)


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


def imported(path, on_gpu):
    """Names of the modules that a file imports; on processor cores only those it always does."""
    import ast
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
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
    submission = next((one for one in arguments if not one.startswith("-")), "submission.py")
    if os.path.isdir(submission):
        submission = os.path.join(submission, "submission.py")
    sources = [submission] + [os.path.join(folder, name) for name in ("baseline.py", "reference.py")]
    for module in ("torch", "triton"):
        using = [path for path in sources if module in imported(path, on_gpu)]
        if using and importlib.util.find_spec(module) is None:
            yield "%s imports %s, which %s does not have; install it, or run harness.py with the " \
                  "Python that has it" % (os.path.relpath(using[0]), module, sys.executable)
    compiler = (os.environ.get("CC") or "cc").split()[0]
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
        print("kjudge: missing: " + problem, file=sys.stderr)
    if problems:
        return EXIT_JUDGE_ERROR
    try:
        os.execv(kjudge, [kjudge, "selftest"] + arguments)
    except OSError as error:
        print("kjudge: %s: %s; build it on this machine" % (kjudge, error.strerror), file=sys.stderr)
        return EXIT_IO


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
