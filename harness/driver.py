# SPDX-License-Identifier: Apache-2.0
"""Arrays, modules, launches and streams on the driver that kjudge judges with.

    import driver

    module = driver.load(driver.build(["scale.c"]))
    x = driver.array([1.0, 2.0, 3.0], "float32")
    y = driver.empty(x.shape, x.dtype)
    module["scale"].launch(8, 1, y, x, 2.0, len(x))

Work goes to the current stream unless a stream is named. Every failed call raises DriverError with
the call's name. Nothing here needs torch or numpy; arrays are exchanged with both through DLPack,
and on a GPU through __cuda_array_interface__.

Which driver: KJUDGE_DRIVER (host or cuda) and KJUDGE_DRIVER_LIBRARY; the host driver that lies
beside this file where neither is set.
"""

import ctypes
import os
import struct
from ctypes import byref, c_float, c_int, c_size_t, c_uint64, c_void_p

from _api import DriverError, call, check, device_number, enter, is_host, local, raw, release
from _build import BuildError, build
from _dlpack import capsule_of

__all__ = [
    "Array", "BuildError", "DriverError", "Event", "HostMemory", "Kernel", "Module", "Stream",
    "array", "build", "call", "copy", "current_stream", "default_stream", "empty", "fill_bytes",
    "is_host", "load", "memory_info", "multiprocessors", "synchronize", "zeros",
]


_INVALID_VALUE = 1


def synchronize():
    """Waits for all work of the device."""
    call("cuCtxSynchronize")


def memory_info():
    """(free, total) bytes of device memory."""
    free, total = c_size_t(), c_size_t()
    call("cuMemGetInfo_v2", byref(free), byref(total))
    return free.value, total.value


def multiprocessors():
    """Multiprocessors of the GPU, or cores that the host driver runs kernels on."""
    enter()
    device, count = c_int(), c_int()
    check("cuDeviceGet", byref(device), device_number())
    check("cuDeviceGetAttribute", byref(count), 16, device)
    return count.value


# Element types: bits, struct code, DLPack code (None: DLPack 1.0 has none), array-interface type.
_DTYPES = {
    "float64": (64, "d", 2, "<f8"),
    "float32": (32, "f", 2, "<f4"),
    "float16": (16, "e", 2, "<f2"),
    "bfloat16": (16, None, 4, "<V2"),
    "float8_e4m3": (8, "B", None, "|u1"),
    "float8_e5m2": (8, "B", None, "|u1"),
    "float4_e2m1": (4, "B", None, "|u1"),
    "int64": (64, "q", 0, "<i8"),
    "int32": (32, "i", 0, "<i4"),
    "int16": (16, "h", 0, "<i2"),
    "int8": (8, "b", 0, "|i1"),
    "uint8": (8, "B", 1, "|u1"),
    "bool": (8, "?", 6, "|b1"),
}


def dtype_bits(dtype):
    if dtype not in _DTYPES:
        raise ValueError("no element type %r; one of %s" % (dtype, ", ".join(_DTYPES)))
    return _DTYPES[dtype][0]


def _dims(shape):
    dims = (shape,) if isinstance(shape, int) else tuple(shape)
    for dim in dims:
        if not isinstance(dim, int) or isinstance(dim, bool) or dim < 0:
            raise ValueError("dimensions are whole numbers, not %r" % (shape,))
    return dims


def _count(dims):
    count = 1
    for dim in dims:
        count *= dim
    return count


def _contiguous(dims):
    strides, step = [], 1
    for dim in reversed(dims):
        strides.append(step)
        step *= max(dim, 1)
    return tuple(reversed(strides))


class _Memory:
    """Device memory, freed when nothing refers to it any more."""

    def __init__(self, nbytes):
        address = c_uint64()
        self.address = 0
        call("cuMemAlloc_v2", byref(address), max(nbytes, 1))
        self.address = address.value

    def __del__(self):
        if self.address:
            release("cuMemFree_v2", self.address)


class Array:
    """A contiguous array in device memory: address, shape, dtype, strides (in elements)."""

    def __init__(self, address, shape, dtype, owner=None):
        self.address = address
        self.shape = _dims(shape)
        self.dtype = dtype
        self.strides = _contiguous(self.shape)
        self.nbytes = (_count(self.shape) * dtype_bits(dtype) + 7) // 8
        self._owner = owner

    @property
    def size(self):
        return _count(self.shape)

    @property
    def ndim(self):
        return len(self.shape)

    def data_ptr(self):
        return self.address

    def __len__(self):
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __repr__(self):
        return "driver.Array(%#x, %r, %r)" % (self.address, self.shape, self.dtype)

    def reshape(self, *shape):
        """The same memory with other dimensions."""
        dims = _dims(shape[0] if len(shape) == 1 else shape)
        if _count(dims) != self.size:
            raise ValueError("%r has %d elements, not %d" % (dims, _count(dims), self.size))
        return Array(self.address, dims, self.dtype, self._owner or self)

    def tobytes(self):
        """Waits for the device and copies the bytes to the host."""
        synchronize()
        buffer = ctypes.create_string_buffer(max(self.nbytes, 1))
        if self.nbytes:
            call("cuMemcpyDtoH_v2", buffer, self.address, self.nbytes)
        return buffer.raw[:self.nbytes]

    def tolist(self):
        """The values as nested lists; for debugging. Codes of 8-bit floats stay codes."""
        raw = self.tobytes()
        if self.dtype == "bfloat16":
            values = [struct.unpack("<f", b"\0\0" + raw[i:i + 2])[0] for i in range(0, len(raw), 2)]
        elif self.dtype == "float4_e2m1":
            values = [code >> shift & 15 for code in raw for shift in (0, 4)][:self.size]
        else:
            values = list(struct.unpack("<%d%s" % (self.size, _DTYPES[self.dtype][1]), raw))
        for dim in reversed(self.shape[1:]):
            values = [values[i:i + dim] for i in range(0, len(values), dim)] if dim else []
        return values if self.shape else values[0]

    def copy_from(self, values):
        """Copies bytes, or (nested) lists of numbers, from the host; waits until it is done."""
        raw = bytes(values) if isinstance(values, (bytes, bytearray, memoryview)) else _pack(
            values, self.dtype)
        if len(raw) != self.nbytes:
            raise ValueError("%d bytes for an array of %d" % (len(raw), self.nbytes))
        if raw:
            call("cuMemcpyHtoD_v2", self.address, raw, len(raw))
            call("cuStreamSynchronize", None)  # the copy returns before the bytes are there
        return self

    @property
    def __cuda_array_interface__(self):
        if is_host():
            raise AttributeError("memory of the host driver is not CUDA memory; use DLPack")
        return self._interface()

    @property
    def __array_interface__(self):
        if not is_host():
            raise AttributeError("device memory is not host memory; use DLPack")
        return self._interface()

    def _interface(self):
        return {"shape": self.shape, "typestr": _DTYPES[self.dtype][3],
                "data": (self.address, False), "strides": None, "version": 3}

    def __dlpack_device__(self):
        return (1, 0) if is_host() else (2, device_number())

    def __dlpack__(self, stream=None, **_):
        # Work before is on the current stream; a consumer on another stream waits for all of it.
        if stream is not None and stream != -1:
            current_stream().synchronize()
        bits, _, code, _ = _DTYPES[self.dtype]
        if code is None:
            raise BufferError("DLPack has no type for %s" % self.dtype)
        return capsule_of(self, code, bits)


def _flatten(values, out):
    if isinstance(values, (list, tuple)):
        for value in values:
            _flatten(value, out)
    else:
        out.append(values)
    return out


def _pack(values, dtype):
    flat = _flatten(values, [])
    bits, code = dtype_bits(dtype), _DTYPES[dtype][1]
    if dtype == "bfloat16":
        words = []
        for value in flat:
            word = struct.unpack("<I", struct.pack("<f", value))[0]
            if value == value:
                word += 0x7fff + (word >> 16 & 1)
            words.append(word >> 16 & 0xffff)
        return struct.pack("<%dH" % len(words), *words)
    if bits < 8:
        flat = [low | high << 4 for low, high in zip(flat[::2], flat[1::2] + [0])]
    return struct.pack("<%d%s" % (len(flat), code), *flat)


def _nested_shape(values):
    dims = []
    while isinstance(values, (list, tuple)):
        dims.append(len(values))
        values = values[0] if values else 0
    return tuple(dims)


def empty(shape, dtype="float32"):
    """An array with undefined contents."""
    dims = _dims(shape)
    memory = _Memory((_count(dims) * dtype_bits(dtype) + 7) // 8)
    return Array(memory.address, dims, dtype, memory)


def zeros(shape, dtype="float32"):
    made = empty(shape, dtype)
    fill_bytes(made, 0)
    return made


def array(values, dtype="float32"):
    """An array of (nested) lists of numbers."""
    return empty(_nested_shape(values), dtype).copy_from(values)


def _stream_handle(stream):
    chosen = current_stream() if stream is None else stream
    return getattr(chosen, "handle", chosen)


def copy(destination, source, stream=None):
    """Copies source to destination, in order on a stream.

    Both are arrays of as many bytes, or one is host memory: HostMemory, or anything bytes-like, for
    which the call waits. A kernel_fn that copies from or to the host is refused.
    """
    handle = _stream_handle(stream)
    if isinstance(destination, Array) and isinstance(source, Array):
        if destination.nbytes != source.nbytes:
            raise ValueError("%d bytes to %d" % (source.nbytes, destination.nbytes))
        if source.nbytes:
            call("cuMemcpyDtoDAsync_v2", destination.address, source.address, source.nbytes, handle)
    elif isinstance(destination, Array):
        view = _host_view(source)
        if view.nbytes != destination.nbytes:
            raise ValueError("%d bytes to %d" % (view.nbytes, destination.nbytes))
        call("cuMemcpyHtoDAsync_v2", destination.address, view.address, view.nbytes, handle)
        _wait_unless_pinned(view, source, handle)
    else:
        view = _host_view(destination)
        if view.nbytes != source.nbytes:
            raise ValueError("%d bytes to %d" % (source.nbytes, view.nbytes))
        call("cuMemcpyDtoHAsync_v2", view.address, source.address, view.nbytes, handle)
        _wait_unless_pinned(view, destination, handle)


_captured_views = []


def _host_view(memory):
    return memory if isinstance(memory, HostMemory) else HostMemory.of(memory)


def _wait_unless_pinned(view, memory, stream):
    if view is memory:
        return
    capturing = c_int()
    call("cuStreamIsCapturing", stream, byref(capturing))
    if capturing.value:
        _captured_views.append(view)  # the graph copies from it
    else:
        call("cuStreamSynchronize", stream)


def fill_bytes(array_, value, stream=None):
    """Sets every byte of an array, in order on a stream."""
    if array_.nbytes:
        call("cuMemsetD8Async", array_.address, value, array_.nbytes, _stream_handle(stream))


class HostMemory:
    """Page-locked host memory: address, nbytes, and `buffer` to read and write it."""

    def __init__(self, nbytes):
        pointer = c_void_p()
        self._owned = False
        call("cuMemHostAlloc", byref(pointer), max(nbytes, 1), 0)
        self._owned = True
        self.address = pointer.value
        self.nbytes = nbytes
        self.buffer = (ctypes.c_char * nbytes).from_address(self.address)

    @classmethod
    def of(cls, data):
        """A view of bytes-like memory; of bytes a copy."""
        view = cls.__new__(cls)
        view._owned = False
        view.nbytes = memoryview(data).nbytes
        if isinstance(data, bytes):
            view.buffer = ctypes.create_string_buffer(data, len(data))
        else:
            view.buffer = (ctypes.c_char * view.nbytes).from_buffer(data)
        view.address = ctypes.addressof(view.buffer)
        return view

    def __del__(self):
        if self._owned:
            release("cuMemFreeHost", self.address)


class Stream:
    """Work in order. `with stream:` makes it the current one of this thread."""

    def __init__(self, priority=0, handle=None):
        self._owned = handle is None
        if handle is None:
            made = c_void_p()
            self.handle = None
            call("cuStreamCreateWithPriority", byref(made), 1, priority)  # not tied to the legacy one
            handle = made.value
        self.handle = handle

    def synchronize(self):
        call("cuStreamSynchronize", self.handle)

    def wait(self, event):
        """Work that follows starts after `event`."""
        call("cuStreamWaitEvent", self.handle, event.handle, 0)

    def launch_host_function(self, function):
        """Calls function() on the host in the stream's order. A kernel_fn with one is refused."""
        holder = ctypes.CFUNCTYPE(None, c_void_p)(lambda _: function())
        self.__dict__.setdefault("_host_functions", []).append(holder)
        call("cuLaunchHostFunc", self.handle, ctypes.cast(holder, c_void_p), None)

    def __enter__(self):
        if not hasattr(local, "streams"):
            local.streams = []
        local.streams.append(self)
        return self

    def __exit__(self, *_):
        local.streams.pop()

    def __del__(self):
        if self._owned and self.handle:
            release("cuStreamDestroy_v2", self.handle)


_DEFAULT_STREAM = Stream(handle=0)


def default_stream():
    """The legacy stream. In kernel_fn use current_stream()."""
    return _DEFAULT_STREAM


def current_stream():
    """The stream that this thread's work goes to; while kernel_fn runs, the one that is recorded."""
    streams = getattr(local, "streams", None)
    return streams[-1] if streams else _DEFAULT_STREAM


class Event:
    def __init__(self, timing=False):
        made = c_void_p()
        self.handle = None
        call("cuEventCreate", byref(made), 0 if timing else 2)
        self.handle = made.value

    def record(self, stream=None):
        call("cuEventRecord", self.handle, _stream_handle(stream))
        return self

    def synchronize(self):
        call("cuEventSynchronize", self.handle)

    def milliseconds_since(self, earlier):
        elapsed = c_float()
        call("cuEventElapsedTime", byref(elapsed), earlier.handle, self.handle)
        return elapsed.value

    def __del__(self):
        if self.handle:
            release("cuEventDestroy_v2", self.handle)


class Module:
    """Loaded code. module["name"] or module.kernel("name") is a kernel of it."""

    def __init__(self, image, name="module"):
        self.name = name
        self._image = ctypes.create_string_buffer(image, len(image) + 1)  # PTX ends with a zero
        self._kernels = {}
        handle = c_void_p()
        call("cuModuleLoadData", byref(handle), self._image)
        self.handle = handle.value

    def kernel(self, name):
        if name not in self._kernels:
            function = c_void_p()
            try:
                call("cuModuleGetFunction", byref(function), self.handle, name.encode())
            except DriverError as error:
                raise KeyError("%s has no kernel %s (%s)" % (self.name, name, error)) from None
            self._kernels[name] = Kernel(self, name, function.value)
        return self._kernels[name]

    __getitem__ = kernel

    def variable(self, name):
        """A module variable's bytes as an array of uint8."""
        address, size = c_uint64(), c_size_t()
        call("cuModuleGetGlobal_v2", byref(address), byref(size), self.handle, name.encode())
        return Array(address.value, size.value, "uint8", self)


def load(source):
    """A module from the path or the bytes of an image: a cubin or PTX, or for the host driver a
    shared object built against kjudge/host_kernel.h."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return Module(bytes(source))
    with open(source, "rb") as file:
        return Module(file.read(), os.path.basename(os.fspath(source)))


def _axes(value, what):
    try:
        axes = tuple(value)
    except TypeError:
        axes = (value,)
    if not 1 <= len(axes) <= 3 or any(not isinstance(a, int) or a < 1 for a in axes):
        raise ValueError("%s is 1 to 3 positive whole numbers, not %r" % (what, value))
    return axes + (1,) * (3 - len(axes))


# Names of kernels that were launched here, for who asks which of them failed.
_launched = {}


class Kernel:
    def __init__(self, module, name, handle):
        self.module, self.name, self.handle = module, name, handle
        self._sizes = None

    def parameter_sizes(self):
        """Bytes of each parameter."""
        if self._sizes is None:
            sizes = []
            offset, size = c_size_t(), c_size_t()
            enter()
            while True:
                result = raw("cuFuncGetParamInfo")(self.handle, len(sizes), byref(offset), byref(size))
                if result == _INVALID_VALUE:  # there are no more
                    break
                if result != 0:
                    raise DriverError("cuFuncGetParamInfo", result)
                sizes.append(size.value)
            self._sizes = sizes
        return self._sizes

    def set_attribute(self, attribute, value):
        """cuFuncSetAttribute; 8 is the largest dynamic shared memory of a launch."""
        call("cuFuncSetAttribute", self.handle, attribute, value)

    def launch(self, grid, block, *arguments, shared=0, stream=None):
        """Launches on a stream, the current one by default.

        An argument is an array (its address is passed), an int or a float of the parameter's size,
        or a ctypes value or bytes of exactly that size. The driver knows parameters' sizes only, not
        their types: a float parameter needs a float, 2.0 and not 2.
        """
        sizes = self.parameter_sizes()
        if len(arguments) != len(sizes):
            raise TypeError("kernel %s takes %d arguments, %d were given" %
                            (self.name, len(sizes), len(arguments)))
        packed = [ctypes.create_string_buffer(self._pack(i, arguments[i], sizes[i]), sizes[i])
                  for i in range(len(sizes))]
        pointers = (c_void_p * max(len(packed), 1))(*[ctypes.addressof(p) for p in packed])
        _launched[self.name] = True
        try:
            call("cuLaunchKernel", self.handle, *_axes(grid, "grid"), *_axes(block, "block"),
                 shared, _stream_handle(stream), pointers, None)
        except DriverError as error:
            error.args = ("kernel %s: %s" % (self.name, error),)
            raise

    def _pack(self, index, value, size):
        where = "kernel %s: argument %d" % (self.name, index)
        if isinstance(value, (bytes, bytearray)):
            raw = bytes(value)
        elif isinstance(value, (ctypes._SimpleCData, ctypes.Structure, ctypes.Array)):
            raw = bytes(value)
        elif isinstance(value, float):
            codes = {8: "<d", 4: "<f", 2: "<e"}
            if size not in codes:
                raise TypeError("%s has %d bytes and is no float" % (where, size))
            raw = struct.pack(codes[size], value)
        elif isinstance(value, int):
            if size not in (1, 2, 4, 8):
                raise TypeError("%s has %d bytes and is no whole number" % (where, size))
            try:
                raw = value.to_bytes(size, "little", signed=value < 0)
            except OverflowError:
                raise OverflowError("%s: %d does not fit %d bytes" % (where, value, size)) from None
        else:
            address = address_of(value)
            if address is None:
                raise TypeError("%s: %s is no array, number, bytes or ctypes value" %
                                (where, type(value).__name__))
            raw = struct.pack("<Q", address)
        if len(raw) != size:
            raise TypeError("%s has %d bytes, %d were given" % (where, size, len(raw)))
        return raw


def address_of(value):
    """Address of an array's first element: kjudge's, torch's, or of one of the interfaces; None for
    anything else."""
    if hasattr(value, "data_ptr"):
        return int(value.data_ptr())
    for name in ("__cuda_array_interface__", "__array_interface__"):
        interface = getattr(value, name, None)
        if interface is not None:
            return int(interface["data"][0])
    return None
