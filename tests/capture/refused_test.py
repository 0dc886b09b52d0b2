# SPDX-License-Identifier: Apache-2.0
"""Each rule of lib/record/rules.h: a submission that is right but for the one thing."""

import _capture
from _capture import CaptureTest, PRELUDE, shape


class Refused(CaptureTest):
    LAUNCH = 'kernels["scale"].launch(4, 1, outputs.y, inputs.x, inputs.factor, inputs.n)\n'

    OWN_CAPTURE = """
def own_capture(stream):
    graph, handle = ctypes.c_void_p(), ctypes.c_void_p(stream.handle)
    driver.call("cuStreamBeginCapture_v2", handle, ctypes.c_int(2))
    driver.call("cuStreamEndCapture", handle, ctypes.byref(graph))
"""

    def test_host_node(self):
        self.refused("host_node", self.LAUNCH + """
driver.current_stream().launch_host_function(lambda: None)
""", "shape small: node 1", "a host function")

    def test_nccl(self):
        nccl = "kernels['ncclDevKernel_Scale'].launch(4, 1, outputs.y, inputs.x, inputs.n)\n"
        self.refused("nccl", nccl, "shape small: node 0", "kernel ncclDevKernel_Scale of NCCL")
        # Rather than what it puts beside its kernels.
        self.refused("nccl", "driver.current_stream().launch_host_function(lambda: None)\n" + nccl,
                     "kernel ncclDevKernel_Scale of NCCL")

    def test_child_graph(self):
        self.refused("child_graph", self.LAUNCH + """
driver.call("cuGraphLaunch", ctypes.c_void_p(state[0]),
            ctypes.c_void_p(driver.current_stream().handle))
""", "a child graph", prepare="make_graph()", helpers="""
def make_graph():
    graph, made, node = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    driver.call("cuGraphCreate", ctypes.byref(graph), ctypes.c_uint(0))
    driver.call("cuGraphAddEmptyNode", ctypes.byref(node), graph, None, ctypes.c_size_t(0))
    driver.call("cuGraphInstantiateWithFlags", ctypes.byref(made), graph, ctypes.c_uint64(0))
    return (made.value,)
""")

    def test_too_many_nodes(self):
        self.refused("too_many_nodes", self.LAUNCH + """
stream, status = ctypes.c_void_p(driver.current_stream().handle), ctypes.c_int()
graph, node, none = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
driver.call("cuStreamGetCaptureInfo_v2", stream, ctypes.byref(status), None, ctypes.byref(graph), None, None)
add, node = driver.raw("cuGraphAddEmptyNode"), ctypes.byref(node)
for _ in range(1_000_000 if status.value else 0):
    add(node, graph, None, none)
""", "shape small: 1000001 nodes", "more than 1000000")

    def test_host_memory_copy(self):
        self.refused("host_memory_copy", self.LAUNCH + """
driver.copy(outputs.y, state)
""", "node 1, copy: source", prepare="driver.HostMemory(ctx.shapes[0].n * 4)")
        self.refused("host_memory_copy", self.LAUNCH + """
driver.copy(state, outputs.y)
""", "node 1, copy: destination", prepare="bytearray(ctx.shapes[0].n * 4)")

    def test_host_pointer_in_arguments(self):
        self.refused("host_pointer", """
kernels["add"].launch(4, 1, outputs.y, inputs.x, state.address, inputs.n)
""", "kernel add: argument 2", "cuMemHostAlloc", prepare="driver.HostMemory(ctx.shapes[0].n * 4)")
        self.refused("host_pointer", """
kernels["add"].launch(4, 1, outputs.y, inputs.x, ctypes.addressof(state), inputs.n)
""", "kernel add: argument 2", prepare="(ctypes.c_float * (1 << 20))()")  # above 4 GiB everywhere

    def test_host_pointer_in_reached_memory(self):
        self.refused("host_pointer", """
kernels["scale_by_table"].launch(4, 1, state[0], 2.0, inputs.n)
kernels["scale"].launch(4, 1, outputs.y, state[1], 1.0, inputs.n)
""", "holds a pointer into host memory", prepare="make(ctx)", helpers="""
def make(ctx):
    pinned, target = driver.HostMemory(ctx.shapes[0].n * 4), driver.empty(ctx.shapes[0].n)
    return driver.array([target.address, pinned.address], "int64"), target, pinned
""")

    def test_module_global_pointer(self):
        self.refused("module_global_pointer", """
kernels["add"].launch(4, 1, outputs.y, inputs.x, kernels.variable("factors"), inputs.n)
""", "argument 2", "factors", shapes=[shape(n=4)])

    def test_module_global_pointer_in_reached_memory(self):
        self.refused("module_global_pointer", self.LAUNCH + """
kernels["scale_by_table"].launch(4, 1, state, 2.0, 0)
""", "at byte 8", "holds a pointer into module variable factors", helpers="",
                     prepare='driver.array([0, kernels.variable("factors").address], "int64")')

    REGISTERED = """
import mmap
memory = mmap.mmap(-1, 1 << 16)
view = (ctypes.c_char * (1 << 16)).from_buffer(memory)
address = ctypes.addressof(view)
driver.call("cuMemHostRegister_v2", ctypes.c_void_p(address), ctypes.c_size_t(1 << 16), ctypes.c_uint(2))
"""

    def test_registered_memory_in_arguments(self):
        self.refused("host_pointer", """
kernels["add"].launch(4, 1, outputs.y, inputs.x, state, inputs.n)
""", "kernel add: argument 2", "host memory of cuMemHostRegister", prepare="address",
                     helpers=self.REGISTERED)

    def test_registered_memory_in_reached_memory(self):
        self.refused("host_pointer", self.LAUNCH + """
kernels["scale_by_table"].launch(4, 1, state, 2.0, 0)
""", "holds a pointer into host memory of cuMemHostRegister", helpers=self.REGISTERED,
                     prepare='driver.array([address + 64], "int64")')

    MANAGED = """
def managed():
    address = ctypes.c_uint64()
    driver.call("cuMemAllocManaged", ctypes.byref(address), ctypes.c_size_t(4096), ctypes.c_uint(1))
    return address.value
"""

    def test_managed_memory(self):
        self.refused("managed_memory", """
kernels["scale"].launch(4, 1, state, inputs.x, 1.0, 8)
""" + self.LAUNCH, "argument 0", "cuMemAllocManaged", prepare="managed()", helpers=self.MANAGED)
        self.refused("managed_memory", self.LAUNCH + """
kernels["scale_by_table"].launch(4, 1, state, 2.0, 0)
""", "holds a pointer into managed memory", prepare='driver.array([managed()], "int64")',
                     helpers=self.MANAGED)

    def test_managed_memory_allocated_in_kernel_fn(self):
        self.refused("managed_memory", """
kernels["scale"].launch(4, 1, managed(), inputs.x, 1.0, 8)
""" + self.LAUNCH, "kernel_fn of shape small: cuMemAllocManaged of 4096 bytes", helpers=self.MANAGED)

    def test_cuda_arrays_textures_and_surfaces(self):
        for call in ("cuArrayCreate_v2", "cuArray3DCreate_v2", "cuMipmappedArrayCreate",
                     "cuTexObjectCreate", "cuSurfObjectCreate"):
            arguments = ", ".join(["None"] * (4 if call == "cuTexObjectCreate" else 2) +
                                  ["ctypes.c_uint(1)"] * (call == "cuMipmappedArrayCreate"))
            with self.subTest(call):
                self.refused("cuda_array", self.LAUNCH, "prepare: " + call.split("_")[0],
                             "in linear memory", prepare='driver.call("%s", %s)' % (call, arguments))
        # However the exception is called that comes of it.
        self.refused("cuda_array", self.LAUNCH, "prepare: cuArrayCreate", prepare="make()", helpers="""
def make():
    try:
        driver.call("cuArrayCreate_v2", None, None)
    except driver.DriverError:
        raise ValueError("no array")
""")

    def test_pool_pointer_of_another_process(self):
        self.refused("imported_memory", self.LAUNCH, "prepare: cuMemPoolImportPointer",
                     prepare='driver.call("cuMemPoolImportPointer", None, None, None)')

    # A lookup that the recorder does not stand in.
    PAST = """
def past_the_recorder(name, *types):
    c = ctypes
    libc = c.CDLL(None)
    libc.dlvsym.restype = c.c_void_p
    dlsym = c.CFUNCTYPE(c.c_void_p, c.c_void_p, c.c_char_p)(
        libc.dlvsym(c.c_void_p(0), b"dlsym", b"GLIBC_2.34"))
    library = c.CDLL(os.environ["KJUDGE_DRIVER_LIBRARY"])
    return c.CFUNCTYPE(c.c_int, *types)(dlsym(library._handle, name))
"""

    def test_unknown_module(self):
        self.refused("unknown_module", """
values = [ctypes.c_uint64(outputs.y.address), ctypes.c_uint64(inputs.x.address),
          ctypes.c_float(2), ctypes.c_int64(inputs.n)]
pointers = (ctypes.c_void_p * 4)(*[ctypes.addressof(v) for v in values])
driver.call("cuLaunchKernel", state, 4, 1, 1, 1, 1, 1, 0, driver.current_stream().handle, pointers, None)
""", "node 0", "the module of kernel scale was not seen loading", "cuModuleLoadData", prepare="hidden()",
                     helpers=self.PAST + """
def hidden():
    c = ctypes
    with open(os.environ["TEST_KERNELS"], "rb") as file:
        image = file.read()
    module, function = c.c_void_p(), c.c_void_p()
    load = past_the_recorder(b"cuModuleLoadData", c.POINTER(c.c_void_p), c.c_char_p)
    assert load(c.byref(module), image) == 0
    driver.call("cuModuleGetFunction", c.byref(function), module, b"scale")
    return function
""")

    def test_module_variable_changed(self):
        self.refused("module_variable_changed", """
kernels["count_launches"].launch(4, 1, outputs.y, inputs.n)
""", "module variable launches")
        self.refused("module_variable_changed", self.LAUNCH, "module variable factors",
                     prepare='kernels.variable("factors").copy_from(b"abcd" * 4) and None')

    def test_outside_launch(self):
        outcome = self.refused("outside_launch", self.LAUNCH + """
kernels["scale"].launch(4, 1, state[1], state[1], 1.0, 4, stream=state[0])
""", "1 launch", "kernel scale", prepare="driver.Stream(), driver.zeros(4)")
        self.assertEqual(outcome.traceback, "")

    def test_outside_launch_on_the_default_stream(self):
        self.refused("outside_launch", """
kernels["scale"].launch(4, 1, outputs.y, inputs.x, 1.0, inputs.n, stream=driver.default_stream())
""", "kernel scale")

    def test_outside_launch_by_another_thread(self):
        self.refused("outside_launch", self.LAUNCH + """
def work():
    kernels["scale"].launch(1, 1, state[1], state[1], 1.0, 4, stream=state[0])
t = threading.Thread(target=work); t.start(); t.join()
""", prepare="driver.Stream(), driver.zeros(4)")

    def test_outside_fill(self):
        self.refused("outside_launch", self.LAUNCH + """
driver.fill_bytes(state[1], 0, stream=state[0])
""", "1 launch, copy or fill", "the first of cuMemsetD8Async",
                     prepare="driver.Stream(), driver.zeros(4)")

    def test_outside_copy(self):
        self.refused("outside_launch", """
kernels["scale"].launch(4, 1, state[1], inputs.x, inputs.factor, inputs.n)
driver.copy(outputs.y, state[1], stream=state[0])
""", "the first of cuMemcpyDtoDAsync", prepare="driver.Stream(), driver.empty(ctx.shapes[0].n)")

    # Arguments by form of call; cuMemcpy2D and 3D take a struct.
    WORK = """
def copies(form, y, x, n):
    c = ctypes
    p, z, zero = c.c_uint64, c.c_size_t, 0 if form == "cuMemsetD8Async" else c.c_uint(0)
    if form.startswith("cuMemcpy3D"):
        words = (c.c_size_t * 25)()
        words[4] = words[15] = 2  # CU_MEMORYTYPE_DEVICE
        words[6], words[17], words[22], words[23], words[24] = x, y, n, 1, 1
        return [c.byref(words)]
    if form.startswith("cuMemcpy2D"):
        words = (c.c_size_t * 16)()
        words[2] = words[9] = 2
        words[4], words[11], words[14], words[15] = x, y, n, 1
        return [c.byref(words)]
    if form.startswith("cuMemcpy"):
        return [p(y), p(x), z(n)]
    if form.startswith("cuMemsetD2D"):
        return [p(y), z(n), zero, z(4), z(1)]
    return [p(y), zero, z(4)]
"""

    WAITING = ["cuMemcpy", "cuMemcpyDtoD_v2", "cuMemcpy2D_v2", "cuMemcpy2DUnaligned_v2", "cuMemcpy3D_v2",
               "cuMemsetD8_v2", "cuMemsetD16_v2", "cuMemsetD32_v2", "cuMemsetD2D8_v2",
               "cuMemsetD2D16_v2", "cuMemsetD2D32_v2"]
    QUEUED = ["cuMemcpyAsync", "cuMemcpyDtoDAsync_v2", "cuMemcpy2DAsync_v2", "cuMemcpy3DAsync_v2",
              "cuMemsetD8Async", "cuMemsetD16Async", "cuMemsetD32Async", "cuMemsetD2D8Async",
              "cuMemsetD2D16Async", "cuMemsetD2D32Async"]

    def test_outside_work_in_every_form(self):
        for form in self.WAITING + self.QUEUED:
            with self.subTest(form):
                stream = ", ctypes.c_void_p(state[0].handle)" if form in self.QUEUED else ""
                # Another thread may call what waits: the capture forbids it to its own.
                self.refused("outside_launch", self.LAUNCH + """
def call():
    driver.call("%s", *copies("%s", state[1].address, state[2].address, 16)%s)
t = threading.Thread(target=call); t.start(); t.join()
""" % (form, form, stream), "1 launch, copy or fill", "the first of " + form.split("_")[0],
                             prepare="driver.Stream(), driver.zeros(4), driver.zeros(4)",
                             helpers=self.WORK)

    # As programs find them that are built with a default stream per thread.
    PER_THREAD = """
def per_thread(name, *types):
    c = ctypes
    found, status = c.c_void_p(), c.c_int()
    driver.call("cuGetProcAddress_v2", name, c.byref(found), c.c_int(13000), c.c_uint64(2), c.byref(status))
    version = "_v2" if name == b"cuStreamBeginCapture" else ""
    exported = driver.raw(name.decode() + version + "_ptsz")
    assert c.cast(exported, c.c_void_p).value == found.value, name
    return lambda *values: check(name, c.CFUNCTYPE(c.c_int, *types)(found.value)(*values))

def check(name, result):
    assert result == 0, (name, result)

def launch(y, x, factor, n, stream):
    c = ctypes
    values = [c.c_uint64(y.address), c.c_uint64(x.address), c.c_float(factor), c.c_int64(n)]
    pointers = (c.c_void_p * 4)(*[c.addressof(value) for value in values])
    per_thread(b"cuLaunchKernel", c.c_void_p, *[c.c_uint] * 7, c.c_void_p, c.c_void_p, c.c_void_p)(
        kernels["scale"].handle, 4, 1, 1, 1, 1, 1, 0, stream, pointers, None)
"""

    def test_outside_work_on_the_default_stream_of_a_thread(self):
        self.refused("outside_launch", self.LAUNCH + "launch(state, state, 1.0, 4, None)\n", "kernel scale",
                     prepare="driver.zeros(4)", helpers=self.PER_THREAD)
        self.refused("outside_launch", self.LAUNCH + """
per_thread(b"cuMemsetD8Async", ctypes.c_uint64, ctypes.c_ubyte, ctypes.c_size_t, ctypes.c_void_p)(
    state.address, 0, 4, None)
""", "the first of cuMemsetD8Async", prepare="driver.zeros(4)", helpers=self.PER_THREAD)
        self.refused("own_capture", self.LAUNCH + """
per_thread(b"cuStreamBeginCapture", ctypes.c_void_p, ctypes.c_int)(None, 1)
""", "begins or ends a stream capture", helpers=self.PER_THREAD)

    def test_calls_for_a_default_stream_per_thread_are_recorded(self):
        text = self.accepted(PRELUDE + self.PER_THREAD + """
def prepare(ctx):
    address = ctypes.c_uint64()
    allocate = per_thread(b"cuMemAllocAsync", ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    allocate(ctypes.addressof(address), 64, None)
    per_thread(b"cuMemFreeAsync", ctypes.c_uint64, ctypes.c_void_p)(address.value, None)
    allocate(ctypes.addressof(address), 64, None)
    assert address.value >> 32 == 0x2d1b, hex(address.value)
    array = driver.Array(address.value, 4, "float32")
    launch(array, array, 1.0, 4, None)
    return array

def kernel_fn(state, inputs, outputs):
    launch(outputs.y, inputs.x, inputs.factor, inputs.n, driver.current_stream().handle)
    driver.fill_bytes(state, 0)
""").dump()
        self.assertIn("kernel scale", text)

    def test_waiting_copy_in_kernel_fn(self):
        # Refused by the driver, so nothing was done outside.
        self.refused("capture_invalidated", self.LAUNCH + "outputs.y.tolist()\n", "made a call")

    def test_work_on_captured_streams_and_in_prepare_is_not_outside(self):
        self.accepted(PRELUDE + """
def prepare(ctx):
    scratch, side = driver.zeros(ctx.shapes[0].n), driver.Stream()
    driver.fill_bytes(scratch, 1, stream=side)
    return scratch, side

def kernel_fn(state, inputs, outputs):
    scratch, side = state
    kernels["scale"].launch(4, 1, outputs.y, inputs.x, inputs.factor, inputs.n)
    driver.fill_bytes(scratch, 0)
    side.wait(driver.Event().record())
    driver.copy(scratch, outputs.y, stream=side)
    driver.fill_bytes(scratch, 0, stream=side)
    driver.current_stream().wait(driver.Event().record(side))
""").dump()

    def test_outputs_written_by_the_host(self):
        self.refused("outside_launch", """
ctypes.memmove(outputs.y.address, inputs.x.address, outputs.y.nbytes)
""", "shape small: y was written to while kernel_fn was captured")

    MAPPING = """
from ctypes import POINTER, Structure, byref, c_int, c_size_t, c_ubyte, c_uint64, c_void_p
class Properties(Structure):
    _fields_ = [("type", c_int), ("handles", c_int), ("location", c_int), ("id", c_int),
                ("window", c_void_p), ("flags", c_ubyte * 8)]
class Access(Structure):
    _fields_ = [("location", c_int), ("id", c_int), ("flags", c_int)]
GRANULE = 2 << 20

def create():
    handle = c_uint64()
    driver.call("cuMemCreate", byref(handle), c_size_t(GRANULE), byref(Properties(1, 1, 1, 0)), c_uint64(0))
    return handle

def reserve(size=GRANULE):
    address = c_uint64()
    driver.call("cuMemAddressReserve", byref(address), c_size_t(size), c_size_t(0), c_uint64(0), c_uint64(0))
    return address.value

def map_at(address, handle):
    driver.call("cuMemMap", c_uint64(address), c_size_t(GRANULE), c_size_t(0), handle, c_uint64(0))
    set_access(address, 3)
    return address

def set_access(address, flags):
    driver.call("cuMemSetAccess", c_uint64(address), c_size_t(GRANULE), byref(Access(1, 0, flags)), c_size_t(1))

def imported(handle):
    file, copy = c_int(), c_uint64()
    driver.call("cuMemExportToShareableHandle", byref(file), handle, c_int(1), c_uint64(0))
    driver.call("cuMemImportFromShareableHandle", byref(copy), c_void_p(file.value), c_int(1))
    return copy

def unmap(address, size=GRANULE):
    driver.call("cuMemUnmap", c_uint64(address), c_size_t(size))
"""

    def test_imported_memory(self):
        body = 'kernels["scale"].launch(4, 1, outputs.y, %s, 1.0, inputs.n)\n'
        self.refused("imported_memory", body % "state", "kernel scale: argument 1",
                     prepare="map_at(reserve(), imported(create()))", helpers=self.MAPPING)
        self.refused("imported_memory", body % "inputs.x" + """
driver.copy(driver.Array(state[1], inputs.n, "float32"), inputs.x)
kernels["scale_by_table"].launch(4, 1, state[0], 2.0, 0)
""", "node 1, copy: destination", prepare="make()", helpers=self.MAPPING + """
def make():
    at = map_at(reserve(), imported(create()))
    return driver.array([at], "int64"), at
""")

    def test_imported_memory_in_reached_memory(self):
        self.refused("imported_memory", self.LAUNCH + """
kernels["scale_by_table"].launch(4, 1, state, 2.0, 0)
""", "memory that kernels use", "memory of another process", helpers=self.MAPPING,
                     prepare='driver.array([map_at(reserve(), imported(create()))], "int64")')

    def test_aliased_memory(self):
        self.refused("aliased_memory", """
driver.copy(driver.Array(state[0], inputs.n, "float32"), inputs.x)
kernels["scale"].launch(4, 1, outputs.y, state[1], inputs.factor, inputs.n)
""", "node 0, copy: destination", "mapped at two addresses", prepare="make()", helpers=self.MAPPING + """
def make():
    handle = create()
    return map_at(reserve(), handle), map_at(reserve(), handle)
""")

    def test_mapped_anew_is_not_aliased(self):
        self.accepted(PRELUDE + self.MAPPING + """
def prepare(ctx):
    handle, first = create(), reserve()
    map_at(first, handle)
    unmap(first)
    return driver.Array(map_at(reserve(), handle), 8, "float32")

def kernel_fn(state, inputs, outputs):
    kernels["scale"].launch(4, 1, outputs.y, inputs.x, inputs.factor, inputs.n)
    driver.fill_bytes(state, 0)
""").dump()

    def test_unmapping_several_mappings_at_once(self):
        # And a stale pointer to them, which no recording may read.
        self.accepted(PRELUDE + self.MAPPING + """
def prepare(ctx):
    first = reserve(2 * GRANULE)
    map_at(first, create())
    map_at(first + GRANULE, create())
    unmap(first, 2 * GRANULE)
    return driver.array([first], "int64")

def kernel_fn(state, inputs, outputs):
    kernels["scale"].launch(4, 1, outputs.y, inputs.x, inputs.factor, inputs.n)
    kernels["scale_by_table"].launch(4, 1, state, 2.0, 0)
""").dump()

    def test_mapping_again_while_captured(self):
        text = self.accepted(PRELUDE + self.MAPPING + """
def prepare(ctx):
    handle = create()
    return driver.Array(map_at(reserve(), handle), 8, "float32"), handle

def kernel_fn(state, inputs, outputs):
    array, handle = state
    unmap(array.address)
    map_at(array.address, handle)
    driver.fill_bytes(array, 0)
    kernels["scale"].launch(4, 1, outputs.y, inputs.x, inputs.factor, inputs.n)
""").dump()
        self.assertIn("2097152 bytes, state", text)

    def test_own_capture(self):
        self.refused("own_capture", self.LAUNCH + """
own_capture(state)
""", "shape small: kernel_fn begins or ends a stream capture", "torch.compile",
                     prepare="driver.Stream()", helpers=self.OWN_CAPTURE)

    def test_own_capture_by_the_first_version_of_the_call(self):
        self.refused("own_capture", self.LAUNCH + """
driver.call("cuStreamBeginCapture", ctypes.c_void_p(state.handle))
""", "kernel_fn of shape small begins or ends a stream capture", prepare="driver.Stream()")

    def test_own_capture_only_while_captured(self):
        self.refused("own_capture", self.LAUNCH + """
state[1].append(1)
if len(state[1]) == 3: own_capture(state[0])
""", "shape small: kernel_fn begins", prepare="driver.Stream(), []", helpers=self.OWN_CAPTURE)

    def test_own_capture_before_kernel_fn(self):
        self.refused("own_capture", self.LAUNCH, "prepare, or the import, begins", "torch.cuda.graph",
                     prepare="own_capture(driver.Stream())", helpers=self.OWN_CAPTURE)
        self.refused("own_capture", self.LAUNCH, "prepare, or the import, begins",
                     helpers=self.OWN_CAPTURE + "own_capture(driver.Stream())\n", eager=True)

    ATTRIBUTES = """
c = ctypes
class Window(c.Structure):
    _fields_ = [("address", c.c_void_p), ("bytes", c.c_size_t), ("ratio", c.c_float),
                ("hit", c.c_int), ("miss", c.c_int)]
class Value(c.Union):
    _fields_ = [("pad", c.c_char * 64), ("window", Window), ("updatable", c.c_int)]
class Attribute(c.Structure):
    _fields_ = [("id", c.c_int), ("pad", c.c_int), ("value", Value)]
class Config(c.Structure):
    _fields_ = [("grid", c.c_uint * 3), ("block", c.c_uint * 3), ("shared", c.c_uint),
                ("stream", c.c_void_p), ("attributes", c.c_void_p), ("count", c.c_uint)]

def window(array):
    return Window(array.address, array.nbytes, 1.0, 2, 1)

def launch_with(attribute, y, x, factor, n):
    values = [c.c_uint64(y.address), c.c_uint64(x.address), c.c_float(factor), c.c_int64(n)]
    pointers = (c.c_void_p * 4)(*[c.addressof(value) for value in values])
    config = Config((4, 1, 1), (1, 1, 1), 0, driver.current_stream().handle,
                    c.addressof(attribute), 1)
    driver.call("cuLaunchKernelEx", c.byref(config), c.c_void_p(kernels["scale"].handle), pointers,
                None)
"""

    def test_access_policy_window(self):
        self.refused("access_policy_window", """
launch_with(Attribute(1, 0, Value(window=window(inputs.x))), outputs.y, inputs.x, 1.0, inputs.n)
""", "node 0: kernel scale", "4000 bytes", helpers=self.ATTRIBUTES)

    def test_access_policy_window_of_the_stream(self):
        self.refused("access_policy_window", """
driver.call("cuStreamSetAttribute", c.c_void_p(driver.current_stream().handle), c.c_int(1),
            c.byref(Value(window=window(inputs.x))))
""" + self.LAUNCH, "node 0: kernel scale", helpers=self.ATTRIBUTES)

    def test_no_access_policy_window(self):
        self.accepted(PRELUDE + self.ATTRIBUTES + """
def kernel_fn(state, inputs, outputs):
    launch_with(Attribute(1, 0, Value()), outputs.y, inputs.x, inputs.factor, inputs.n)
""").dump()

    def test_device_updatable(self):
        self.refused("device_updatable", """
launch_with(Attribute(13, 0, Value(updatable=1)), outputs.y, inputs.x, 1.0, inputs.n)
""", "node 0: kernel scale", helpers=self.ATTRIBUTES)

    def test_torch_rng_while_captured(self):
        outcome = self.refused("torch_rng", self.LAUNCH + """
state.append(1)
if len(state) == 3:
    raise RuntimeError("Cannot call CUDAGeneratorImpl::current_seed during CUDA graph capture.")
""", "shape small", "current_seed", "draw random numbers in prepare", prepare="[]")
        self.assertIn("in kernel_fn", outcome.traceback)

    def test_unjoined(self):
        self.refused("unjoined", """
state[0].wait(driver.Event().record())
kernels["scale"].launch(4, 1, state[1], inputs.x, 1.0, inputs.n, stream=state[0])
""" + self.LAUNCH, prepare="driver.Stream(), driver.empty(ctx.shapes[0].n)")

    def test_synchronization(self):
        outcome = self.refused("capture_invalidated", self.LAUNCH +
                               "driver.current_stream().synchronize()\n")
        self.assertIn("submission.py", outcome.traceback)
        self.assertNotIn("driver.py", outcome.traceback)

    def test_outside_arena(self):
        self.refused("outside_arena", """
kernels["add"].launch(4, 1, outputs.y, inputs.x, state, inputs.n)
""", "argument 2", prepare="hidden(ctx.shapes[0].n * 4)", helpers=self.PAST + """
def hidden(size):
    c = ctypes
    real = past_the_recorder(b"cuMemAlloc_v2", c.POINTER(c.c_uint64), c.c_size_t)
    address = c.c_uint64()
    assert real(c.byref(address), size) == 0
    assert address.value >> 32 != 0x2d1b
    return address.value
""")

    def test_pointer_to_where_nothing_is_allocated(self):
        self.refused("outside_arena", """
kernels["add"].launch(4, 1, outputs.y, inputs.x, inputs.x.address + (1 << 36), 0)
""", "argument 2 points to 0x2d", "where nothing is allocated")

    def test_memory_freed_between_shapes(self):
        self.refused("freed_memory", """
if inputs.shape == "b" and state.get("a") is not None:
    state["a"] = None   # eager call of the second shape: nothing is held back
if inputs.shape == "small":
    state.setdefault("a", driver.empty(inputs.n))
    kernels["scale"].launch(4, 1, state["a"], inputs.x, 1.0, inputs.n)
""" + self.LAUNCH, "shape small: node 0, kernel scale: argument 0", "cuMemAlloc",
                     prepare="{}", shapes=[shape(), shape("b", 5)])

    def test_writes_input(self):
        self.refused("writes_input", self.LAUNCH + """
kernels["scale"].launch(4, 1, inputs.x, inputs.x, 3.0, inputs.n)
""", "shape small", "input x")

    def test_stale_argument(self):
        self.refused("stale_argument", """
state.setdefault("x", inputs.x)
kernels["scale"].launch(4, 1, outputs.y, state["x"], inputs.factor, inputs.n)
""", "shape b: node 0, kernel scale: argument 1 points into x of shape small", prepare="{}",
                     shapes=[shape(), shape("b", 5)])

    def test_returned_input(self):
        self.refused("returned_input", "return inputs.x\n", "returned output y is an input")

    def test_returned_output_larger_than_its_memory(self):
        self.refused("outside_arena", """
return driver.Array(state.address + 4, inputs.n, "float32", state)
""", "returned output y of 4000 bytes at byte 4", prepare="driver.empty(ctx.shapes[0].dims['n'])")

    def test_outputs_overlap(self):
        two = shape()
        two["outputs"].append(dict(two["outputs"][0], name="z"))
        self.refused("outputs_overlap", """
y = driver.empty(inputs.n)
kernels["scale"].launch(4, 1, y, inputs.x, inputs.factor, inputs.n)
return y, y
""", "z overlaps y", shapes=[two])


if __name__ == "__main__":
    _capture.main()
