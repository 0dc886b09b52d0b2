# SPDX-License-Identifier: Apache-2.0
"""The recorder's C API (lib/record/record.h) for Python."""

import ctypes
from ctypes import POINTER, byref, c_char_p, c_double, c_int32, c_int64, c_uint32, c_uint64, c_void_p


class RecorderError(Exception):
    def __init__(self, verdict, rule, message):
        super().__init__("%s: %s" % (verdict, message) if not rule else
                         "%s (%s): %s" % (verdict, rule, message))
        self.verdict, self.rule, self.message = verdict, rule, message


class _Options(ctypes.Structure):
    _fields_ = [("device", c_int32), ("reserved", c_uint32), ("seed", c_uint64),
                ("memory_limit_bytes", c_uint64), ("bundle_limit_bytes", c_uint64)]


class _Generator(ctypes.Structure):
    _fields_ = [("kind", c_char_p), ("a", c_double), ("b", c_double), ("c", c_double),
                ("row", c_uint64), ("size", c_uint64), ("other", c_char_p), ("key_of", c_char_p),
                ("source", c_char_p)]


class _Seconds(ctypes.Structure):
    _fields_ = [("import_s", c_double), ("prepare_s", c_double), ("capture_s", c_double)]


class _Failed(ctypes.Structure):
    _fields_ = [("verdict", c_char_p), ("rule", c_char_p), ("message", c_char_p)]


_SIGNATURES = {
    "begin": [POINTER(_Options)],
    "open_shape": [c_char_p],
    "tensor": [c_char_p, c_char_p, c_char_p, POINTER(c_int64), c_uint32, POINTER(c_uint64)],
    "fill": [c_char_p, POINTER(_Generator)],
    "load": [c_char_p, c_char_p],
    "returned": [c_char_p, c_uint64],
    "check_no_capture": [c_char_p],
    "begin_capture": [c_void_p],
    "end_capture": [c_void_p],
    "abandon_capture": [c_void_p],
    "refuse": [c_char_p, c_char_p],
    "write": [c_char_p, POINTER(_Seconds)],
}


class Recorder:
    def __init__(self, path):
        self._library = ctypes.CDLL(path)
        for name, types in _SIGNATURES.items():
            getattr(self._library, "kjudge_record_" + name).argtypes = types
        self._library.kjudge_record_left_out.argtypes = [POINTER(c_uint64)]
        self._library.kjudge_record_left_out.restype = c_uint64

    def _call(self, name, *arguments):
        if getattr(self._library, "kjudge_record_" + name)(*arguments) != 0:
            raise RecorderError(*self._read("failure"))

    def _read(self, name):
        failed = _Failed()
        getattr(self._library, "kjudge_record_" + name)(byref(failed))
        return [text.decode("utf-8", "replace")
                for text in (failed.verdict, failed.rule, failed.message)]

    def call_failure(self):
        """What a driver call of the contestant's first met, as a RecorderError; None: nothing."""
        verdict, rule, message = self._read("call_failure")
        return RecorderError(verdict, rule, message) if verdict else None

    def begin(self, device, seed, memory_limit_bytes, bundle_limit_bytes):
        self._call("begin", byref(_Options(device, 0, seed, memory_limit_bytes, bundle_limit_bytes)))

    def open_shape(self, name):
        self._call("open_shape", name.encode())

    def tensor(self, role, name, dtype, dims):
        address = c_uint64()
        self._call("tensor", role.encode(), name.encode(), dtype.encode(),
                   (c_int64 * max(len(dims), 1))(*dims), len(dims), byref(address))
        return address.value

    def fill(self, name, generator):
        """Made-up values by a generator as lib/challenge/shape_request.h writes it."""
        words = {key: value.encode() if isinstance(value, str) else value
                 for key, value in generator.items()}
        self._call("fill", name.encode(), byref(_Generator(**words)))

    def load(self, name, path):
        self._call("load", name.encode(), path.encode())

    def returned(self, name, address):
        self._call("returned", name.encode(), address)

    def check_no_capture(self, where):
        self._call("check_no_capture", where.encode())

    def begin_capture(self, stream):
        self._call("begin_capture", stream)

    def end_capture(self, stream):
        self._call("end_capture", stream)

    def abandon_capture(self, stream):
        self._call("abandon_capture", stream)

    def refuse(self, rule, what):
        """Raises the RecorderError of a rule that only the harness can see broken."""
        self._call("refuse", rule.encode(), what.encode())

    def write(self, path, seconds):
        self._call("write", path.encode(),
                   byref(_Seconds(*[seconds.get(s, 0.0) for s in ("import", "prepare", "capture")])))

    def left_out(self):
        """Bytes and allocations that the last write left out."""
        allocations = c_uint64()
        return self._library.kjudge_record_left_out(byref(allocations)), allocations.value
