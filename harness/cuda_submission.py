# SPDX-License-Identifier: Apache-2.0
"""A submission in CUDA C++: builds submission.cu and calls what it defines (kjudge/submission.h)."""

import ctypes
import fnmatch
import math
import os
import re
import shlex
import shutil
import tempfile
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_void_p

import _build
from _api import DriverError, check, device_number, enter

# Flags of nvcc that a file may ask for. They change how its own code is compiled and nothing else
# about the build; a challenge can allow more.
ALLOWED_FLAGS = (
    "-O[0-3]", "-std=*", "-D*", "-U*", "-I*", "-w", "-lineinfo", "-maxrregcount=*", "-Xptxas=-*",
    "-use_fast_math", "--use_fast_math", "-ftz=*", "-fmad=*", "-prec-div=*", "-prec-sqrt=*",
    "-diag-suppress=*", "-extra-device-vectorization", "-extended-lambda", "--extended-lambda",
    "-expt-relaxed-constexpr", "--expt-relaxed-constexpr", "--expt-extended-lambda",
    "-lcublas", "-lcublasLt", "-lcudnn", "-lcuda")

_BUILD_LINE = re.compile(r"^[ \t]*//[ \t]*kjudge_build(:|[ \t]+[:-])(.*)$", re.MULTILINE)

# In the order of kjudge_dtype.
_DTYPES = ("float64", "float32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2", "float4_e2m1",
           "int64", "int32", "int16", "int8", "uint8", "bool")


def flags_of(text, folder, more_allowed=()):
    """The flags that a source asks for; BuildError names the first that is not allowed."""
    flags = []
    for found in _BUILD_LINE.finditer(text):
        where = "submission.cu, line %d" % (text.count("\n", 0, found.start()) + 1)
        if found.group(1) != ":":  # not to be passed over: the code would only be slower
            raise _build.BuildError("%s: write the colon straight after the word, as in "
                                    "\"// kjudge_build: -O3\"" % where)
        try:
            asked = shlex.split(found.group(2))
        except ValueError as error:
            raise _build.BuildError("%s: kjudge_build: %s" % (where, error)) from None
        for flag in asked:
            if not flag.isprintable():
                raise _build.BuildError("%s: kjudge_build: flag %r has characters that cannot be printed" %
                                        (where, flag))
            if flag not in more_allowed and not any(fnmatch.fnmatchcase(flag, pattern)
                                                    for pattern in ALLOWED_FLAGS):
                raise _build.BuildError("%s: kjudge_build: flag %s is not allowed; these are: %s" % (
                    where, flag, " ".join(ALLOWED_FLAGS + tuple(more_allowed))))
            if flag.startswith("-I") and flag not in more_allowed:
                check_include(flag, folder, where)
            flags.append(flag)
    return flags


def check_include(flag, folder, where):
    """BuildError unless -I names one folder, inside `folder`. nvcc takes the next flag where it names
    none, and several between commas."""
    if flag == "-I" or "," in flag:
        raise _build.BuildError("%s: kjudge_build: flag %s: write one folder straight after -I, as in "
                                "-Iinclude" % (where, flag))
    inside = os.path.realpath(os.path.join(folder, flag[2:]))
    if os.path.commonpath([inside, os.path.realpath(folder)]) != os.path.realpath(folder):
        raise _build.BuildError("%s: kjudge_build: flag %s leaves the submission's folder; put the headers "
                                "into it" % (where, flag))


def find_nvcc():
    """Path of the compiler. FileNotFoundError, which is no contestant's fault: there is none here."""
    chosen = os.environ.get("KJUDGE_NVCC")
    if chosen:
        if shutil.which(chosen) is None:
            raise FileNotFoundError("nvcc: KJUDGE_NVCC names %s, and there is no such program" % chosen)
        return shutil.which(chosen)
    found = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if found is None:
        raise FileNotFoundError("nvcc: not found; install the CUDA Toolkit to judge submission.cu, "
                                "or name its compiler in KJUDGE_NVCC")
    return found


def compile_shared(nvcc, source, arch, more_allowed=()):
    """Path of the shared object made of a .cu file. BuildError holds what nvcc wrote."""
    folder = os.path.dirname(os.path.abspath(source))
    with open(source, encoding="utf-8-sig", errors="replace") as file:
        flags = flags_of(file.read(), folder, more_allowed)
    made = os.path.join(tempfile.mkdtemp(dir=_build.temporary_folder()), "submission.so")
    libraries = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(nvcc))), "lib64")
    command = [nvcc, "-shared", "-arch=" + arch, "-Xcompiler=-fPIC", "-I" + _build.include_folder(),
               "-Xlinker=-z,defs", "-Xlinker=-rpath," + libraries, "-o", made, source]
    said = _build.run_compiler(command + flags, folder)
    if said:
        print(said, flush=True)  # warnings, and what -Xptxas=-v tells
    return made


def device_arch():
    """What nvcc calls the device: with the features of just this GPU from sm_90 on."""
    enter()
    device, major, minor = c_int(), c_int(), c_int()
    check("cuDeviceGet", ctypes.byref(device), device_number())
    check("cuDeviceGetAttribute", ctypes.byref(major), 75, device)
    check("cuDeviceGetAttribute", ctypes.byref(minor), 76, device)
    return "sm_%d%d%s" % (major.value, minor.value, "a" if major.value >= 9 else "")


class _Dim(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("size", c_int64)]


class _Scalar(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("integer", c_int64), ("real", c_double)]


class _Tensor(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("sizes", POINTER(c_int64)), ("rank", c_int32),
                ("dtype", c_int32)]


class _Shape(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("dims", POINTER(_Dim)), ("scalars", POINTER(_Scalar)),
                ("inputs", POINTER(_Tensor)), ("outputs", POINTER(_Tensor)), ("dim_count", c_int32),
                ("scalar_count", c_int32), ("input_count", c_int32), ("output_count", c_int32)]


def _tensors(specs):
    return (_Tensor * len(specs))(*[
        _Tensor(spec.name.encode(), (c_int64 * len(spec.dims))(*spec.dims), len(spec.dims),
                _DTYPES.index(spec.dtype)) for spec in specs])


def _scalar(name, value):
    real = float(value)
    return _Scalar(name.encode(), int(value) if math.isfinite(real) else 0, real)


def _shape(spec):
    dims = (_Dim * len(spec.dims))(*[_Dim(n.encode(), size) for n, size in spec.dims.items()])
    scalars = (_Scalar * len(spec.scalars))(*[_scalar(n, v) for n, v in spec.scalars.items()])
    return _Shape(spec.name.encode(), dims, scalars, _tensors(spec.inputs), _tensors(spec.outputs),
                  len(dims), len(scalars), len(spec.inputs), len(spec.outputs))


class CudaSubmission:
    """What capture.py expects of a submission's module, in front of a shared object."""

    def __init__(self, path):
        try:
            self._library = ctypes.CDLL(path)
        except OSError as error:
            raise _build.BuildError("submission.cu: its object does not load: %s" % error) from None
        if not hasattr(self._library, "kernel_fn"):
            raise _build.BuildError(
                'submission.cu defines no extern "C" int kernel_fn(const kjudge_shape *shape, void '
                "*const *inputs, void *const *outputs, cudaStream_t stream)")
        self._library.kernel_fn.argtypes = [POINTER(_Shape), c_void_p, c_void_p, c_void_p]

    def _call(self, name, *arguments):
        result = getattr(self._library, name)(*arguments)
        if result == 0 and hasattr(self._library, "kjudge_last_error"):
            result = self._library.kjudge_last_error()
        if result != 0:
            error = DriverError(name, result)
            if hasattr(self._library, "kjudge_error_name"):
                self._library.kjudge_error_name.restype = c_char_p
                error.name = self._library.kjudge_error_name(result).decode()
            error.args = ("%s of submission.cu gave error %d (%s)" % (name, result, error.name),)
            raise error

    def prepare(self, ctx):
        """The shapes as submission.h has them, by name."""
        shapes = (_Shape * len(ctx.shapes))(*map(_shape, ctx.shapes))
        if hasattr(self._library, "prepare"):
            self._call("prepare", shapes, len(shapes))
        return {spec.name: shape for spec, shape in zip(ctx.shapes, shapes)}, shapes

    def kernel_fn(self, state, inputs, outputs):
        from driver import current_stream
        addresses = [(c_void_p * len(arguments))(*[array.address for array in arguments])
                     for arguments in (inputs, outputs)]
        self._call("kernel_fn", ctypes.byref(state[0][inputs.shape]), *addresses,
                   current_stream().handle)
