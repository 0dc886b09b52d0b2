# SPDX-License-Identifier: Apache-2.0
"""Arrays as DLPack capsules (version 0.8 of its ABI)."""

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_uint64, c_void_p


class Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int), ("device_id", c_int),
                ("ndim", c_int), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", POINTER(ctypes.c_int64)),
                ("strides", POINTER(ctypes.c_int64)), ("byte_offset", c_uint64)]


class ManagedTensor(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", c_void_p), ("deleter", c_void_p)]


exported = {}  # address of a DLManagedTensor -> what it needs to live


@ctypes.CFUNCTYPE(None, c_void_p)
def _release_exported(managed):
    exported.pop(managed, None)


@ctypes.CFUNCTYPE(None, c_void_p)
def _release_capsule(capsule):
    # A capsule that nobody took still has its first name.
    if ctypes.pythonapi.PyCapsule_IsValid(c_void_p(capsule), b"dltensor"):
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = c_void_p, [c_void_p, c_char_p]
        exported.pop(pointer(capsule, b"dltensor"), None)


def capsule_of(array, code, bits):
    """A DLPack capsule over the array's memory; the array lives until the consumer is done."""
    dims = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
    strides = (ctypes.c_int64 * max(array.ndim, 1))(*array.strides)
    device_type, device_id = array.__dlpack_device__()
    managed = ManagedTensor()
    managed.tensor = Tensor(array.address, device_type, device_id, array.ndim, code, bits, 1,
                            dims, strides, 0)
    managed.deleter = ctypes.cast(_release_exported, c_void_p)
    address = ctypes.addressof(managed)
    exported[address] = (managed, dims, strides, array)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [c_void_p, c_char_p, c_void_p]
    return new(address, b"dltensor", ctypes.cast(_release_capsule, c_void_p))
