# SPDX-License-Identifier: Apache-2.0
"""The driver's library and its entries, called by name."""

import ctypes
import os
import threading
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p

_HERE = os.path.dirname(os.path.abspath(__file__))


class DriverError(RuntimeError):
    """A call into the driver failed. `result` is its CUresult, `name` that code's name."""

    def __init__(self, call_name, result):
        self.call = call_name
        self.result = result
        self.name = _error_text("cuGetErrorName", result) or "CUresult %d" % result
        text = _error_text("cuGetErrorString", result)
        super().__init__("%s: %s%s" % (call_name, self.name, " (%s)" % text if text else ""))


# The entries used here, under the names that hold their current signatures, with their types.
# Addresses are integers.
_SIGNATURES = {
    "cuInit": [c_uint],
    "cuDeviceGet": [POINTER(c_int), c_int],
    "cuDeviceGetAttribute": [POINTER(c_int), c_int, c_int],
    "cuDevicePrimaryCtxRetain": [POINTER(c_void_p), c_int],
    "cuCtxSetCurrent": [c_void_p],
    "cuCtxGetCurrent": [POINTER(c_void_p)],
    "cuCtxSynchronize": [],
    "cuMemGetInfo_v2": [POINTER(c_size_t), POINTER(c_size_t)],
    "cuMemAlloc_v2": [POINTER(c_uint64), c_size_t],
    "cuMemFree_v2": [c_uint64],
    "cuMemHostAlloc": [POINTER(c_void_p), c_size_t, c_uint],
    "cuMemFreeHost": [c_void_p],
    "cuMemcpyHtoD_v2": [c_uint64, c_void_p, c_size_t],
    "cuMemcpyDtoH_v2": [c_void_p, c_uint64, c_size_t],
    "cuMemcpyHtoDAsync_v2": [c_uint64, c_void_p, c_size_t, c_void_p],
    "cuMemcpyDtoHAsync_v2": [c_void_p, c_uint64, c_size_t, c_void_p],
    "cuMemcpyDtoDAsync_v2": [c_uint64, c_uint64, c_size_t, c_void_p],
    "cuMemsetD8Async": [c_uint64, ctypes.c_ubyte, c_size_t, c_void_p],
    "cuModuleLoadData": [POINTER(c_void_p), c_void_p],
    "cuModuleUnload": [c_void_p],
    "cuModuleGetFunction": [POINTER(c_void_p), c_void_p, c_char_p],
    "cuModuleGetGlobal_v2": [POINTER(c_uint64), POINTER(c_size_t), c_void_p, c_char_p],
    "cuFuncGetParamInfo": [c_void_p, c_size_t, POINTER(c_size_t), POINTER(c_size_t)],
    "cuFuncSetAttribute": [c_void_p, c_int, c_int],
    "cuLaunchKernel": [c_void_p] + [c_uint] * 7 + [c_void_p, POINTER(c_void_p), c_void_p],
    "cuLaunchHostFunc": [c_void_p, c_void_p, c_void_p],
    "cuStreamCreateWithPriority": [POINTER(c_void_p), c_uint, c_int],
    "cuStreamDestroy_v2": [c_void_p],
    "cuStreamSynchronize": [c_void_p],
    "cuStreamIsCapturing": [c_void_p, POINTER(c_int)],
    "cuStreamWaitEvent": [c_void_p, c_void_p, c_uint],
    "cuEventCreate": [POINTER(c_void_p), c_uint],
    "cuEventDestroy_v2": [c_void_p],
    "cuEventRecord": [c_void_p, c_void_p],
    "cuEventSynchronize": [c_void_p],
    "cuEventElapsedTime": [POINTER(c_float), c_void_p, c_void_p],
}

_lock = threading.Lock()
_library = None
_context = None
local = threading.local()


def is_host():
    """True on kjudge's host driver, whose kernels run on CPU cores."""
    return os.environ.get("KJUDGE_DRIVER", "host") == "host"


def open_library():
    global _library
    if _library is None:
        with _lock:
            if _library is None:
                path = os.environ.get("KJUDGE_DRIVER_LIBRARY")
                if not path:
                    path = ("libcuda.so.1" if not is_host() else os.path.normpath(
                        os.path.join(_HERE, "..", "libkjudge_host_driver.so")))
                _library = ctypes.CDLL(path)
    return _library


def _error_text(entry, result):
    text = c_char_p()
    if getattr(open_library(), entry)(c_int(result), byref(text)) != 0 or not text.value:
        return ""
    return text.value.decode("utf-8", "replace")


def raw(name):
    function = getattr(open_library(), name)
    if function.argtypes is None and name in _SIGNATURES:
        function.argtypes = _SIGNATURES[name]
    return function


def call(name, *arguments):
    """Calls a driver entry by its exported name; raises DriverError unless it succeeds.

    Entries that this module does not use itself take ctypes values: call("cuCtxSetLimit",
    c_int(0), c_size_t(4096)).
    """
    enter()
    result = raw(name)(*arguments)
    if result != 0:
        raise DriverError(name, result)


def check(name, *arguments):
    result = raw(name)(*arguments)
    if result != 0:
        raise DriverError(name, result)


def device_number():
    return int(os.environ.get("KJUDGE_DEVICE", "0"))


def enter():
    """Makes the device's primary context current in this thread, unless it has a context."""
    global _context
    if getattr(local, "entered", False):
        return
    check("cuInit", 0)
    current = c_void_p()
    check("cuCtxGetCurrent", byref(current))
    if not current.value:
        open_library()
        with _lock:
            if _context is None:
                device, context = c_int(), c_void_p()
                check("cuDeviceGet", byref(device), device_number())
                check("cuDevicePrimaryCtxRetain", byref(context), device)
                _context = context
        check("cuCtxSetCurrent", _context)
    local.entered = True


def release(name, *arguments):
    """Frees something in a destructor, where nobody can be told of a failure: the interpreter may be
    going, or the context be lost."""
    try:
        enter()
        raw(name)(*arguments)
    except Exception:
        pass
