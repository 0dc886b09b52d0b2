# SPDX-License-Identifier: Apache-2.0
"""The capture process: right submissions give bundles that hold what they did."""

import os

import _capture
from _capture import CaptureTest, MAPPING, PRELUDE, SCALE, shape


LAUNCH_EX = PRELUDE + """
import types

class Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("padding", ctypes.c_int), ("value", ctypes.c_ubyte * 64)]

    def __init__(self, id, words=(), bytes=()):
        packed = b"".join(word.to_bytes(4, "little", signed=True) for word in words)
        super().__init__(id, 0, (ctypes.c_ubyte * 64)(*packed, *bytes))

class Configuration(ctypes.Structure):
    _fields_ = [("sizes", ctypes.c_uint * 7), ("stream", ctypes.c_void_p),
                ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint)]

def launch_ex(outputs, inputs, *attributes):
    values = [ctypes.c_uint64(outputs.y.address), ctypes.c_uint64(inputs.x.address),
              ctypes.c_float(inputs.factor), ctypes.c_int64(inputs.n)]
    pointers = (ctypes.c_void_p * 4)(*map(ctypes.addressof, values))
    given = (Attribute * len(attributes))(*attributes)
    configuration = Configuration((ctypes.c_uint * 7)(4, 1, 1, 1, 1, 1, 0),
                                  driver.current_stream().handle, ctypes.addressof(given), len(given))
    driver.call("cuLaunchKernelEx", ctypes.byref(configuration),
                ctypes.c_void_p(kernels["scale"].handle), pointers, None)
"""


class Accepted(CaptureTest):
    def test_scale(self):
        outcome = self.accepted(SCALE)
        dump = outcome.dump()
        self.assertIn("scale", dump)
        self.assertEqual(sorted(outcome.seconds), ["capture", "export", "import"])

    def test_several_shapes_and_an_empty_one(self):
        dump = self.accepted(SCALE, shapes=[shape(), shape("large", 1 << 20), shape("none", 0)]).dump()
        for name in ("small", "large", "none"):
            self.assertIn(name, dump)

    def test_prepare_sees_the_shapes_and_state_is_recorded(self):
        self.accepted(PRELUDE + """
def prepare(ctx):
    assert [s.name for s in ctx.shapes] == ["small", "b"]
    assert ctx.shapes[1].n == 10 and ctx.shapes[1].inputs[0].dims == (10,)
    assert ctx.world_size == 1 and ctx.comm is None
    return {s.name: driver.array([float(i) for i in range(s.n)]) for s in ctx.shapes}

def kernel_fn(state, inputs, outputs):
    kernels["add"].launch(2, 1, outputs["y"], inputs[0], state[inputs.shape], len(inputs.x))
""", shapes=[shape(), shape("b", 10)]).dump()

    def test_same_capture_twice_is_the_same_bundle(self):
        """Addresses, arguments, memory and hashes depend on nothing but the submission."""
        dumps = [self.accepted(PRELUDE + """
def prepare(ctx):
    return driver.array([0.0, 5.0])
def kernel_fn(state, inputs, outputs):
    kernels["scale_by_counter"].launch(4, 1, outputs.y, inputs.x, state, inputs.n)
""", shapes=[shape(), shape("b", 77)]).dump() for _ in range(2)]
        lines = [[line for line in dump.splitlines() if "import" not in line] for dump in dumps]
        self.assertEqual(*lines)

    def test_returned_outputs(self):
        for returned in ("y", "(y,)", "[y]", "{'y': y}"):
            with self.subTest(returned=returned):
                self.accepted(PRELUDE + """
def kernel_fn(state, inputs, outputs):
    y = driver.empty(inputs.n)
    kernels["scale"].launch(4, 1, y, inputs.x, inputs.factor, inputs.n)
    return %s
""" % returned).dump()

    def test_returned_output_within_a_larger_allocation(self):
        # As torch's caching allocator places tensors.
        self.accepted(PRELUDE + """
def prepare(ctx):
    return driver.zeros(100000)

def kernel_fn(state, inputs, outputs):
    y = driver.Array(state.address + 4096, inputs.n, "float32", state)
    kernels["scale"].launch(4, 1, y, inputs.x, inputs.factor, inputs.n)
    return y
""").dump()

    def test_returning_the_given_output(self):
        self.accepted(SCALE + "    return outputs.y\n").dump()
        self.accepted(SCALE + "    return outputs\n").dump()

    def test_temporaries_of_kernel_fn_live_as_long_as_the_graph(self):
        self.accepted(PRELUDE + """
def kernel_fn(state, inputs, outputs):
    once = driver.empty(inputs.n)
    kernels["scale"].launch(4, 1, once, inputs.x, 3.0, inputs.n)
    kernels["scale"].launch(4, 1, outputs.y, once, 3.0, inputs.n)
""").dump()

    def test_memset_copy_struct_and_fork_join(self):
        dump = self.accepted(PRELUDE + """
def prepare(ctx):
    return driver.Stream(), driver.empty(ctx.shapes[0].n), driver.empty(ctx.shapes[0].n)

class Job(ctypes.Structure):
    _fields_ = [("out", ctypes.c_uint64), ("x", ctypes.c_uint64), ("n", ctypes.c_int64)]

def kernel_fn(state, inputs, outputs):
    side, a, b = state
    driver.fill_bytes(a, 0)
    side.wait(driver.Event().record())
    driver.copy(b, inputs.x, stream=side)
    driver.current_stream().wait(driver.Event().record(side))
    kernels["add"].launch(4, 1, a, b, inputs.x, inputs.n)
    kernels["scale_by_struct"].launch(4, 1, Job(outputs.y.address, a.address, inputs.n), 0.5)
""").dump()
        for word in ("memset", "memcpy", "scale_by_struct", "add"):
            self.assertIn(word, dump)

    def test_pointers_in_tables(self):
        self.accepted(PRELUDE + """
def prepare(ctx):
    target = driver.empty(ctx.shapes[0].n)
    source = driver.array([1.0] * ctx.shapes[0].n)
    return driver.array([target.address, source.address], "int64"), target, source

def kernel_fn(state, inputs, outputs):
    table, target, source = state
    kernels["scale_by_table"].launch(4, 1, table, 2.0, inputs.n)
    kernels["add"].launch(4, 1, outputs.y, target, inputs.x, inputs.n)
""").dump()

    def test_inout(self):
        inout = shape()
        inout["inputs"][0]["inout"] = True
        self.accepted(PRELUDE + """
def kernel_fn(state, inputs, outputs):
    kernels["scale"].launch(4, 1, inputs.x, inputs.x, 0.5, inputs.n)
    kernels["scale"].launch(4, 1, outputs.y, inputs.x, 2.0, inputs.n)
""", shapes=[inout]).dump()

    def test_unused_and_unchanged_module_variables(self):
        dump = self.accepted(PRELUDE + """
def kernel_fn(state, inputs, outputs):
    kernels["use_own_pointer"].launch(4, 1, outputs.y, inputs.n)
""").dump()
        self.assertIn("own_pointer", dump)

    def test_functions_attributes_only_where_set(self):
        plain = self.accepted(SCALE).dump()
        changed = self.accepted(SCALE.replace("def kernel_fn", """
kernels["scale"].set_attribute(8, 4096)
def kernel_fn""")).dump()
        self.assertNotIn("function max_dynamic_shared_size_bytes", plain)
        self.assertIn("function max_dynamic_shared_size_bytes: 4096", changed)

    def test_every_launch_attribute_is_recorded(self):
        """With the value given; an edge of a programmatic dependent launch too."""
        dump = self.accepted(LAUNCH_EX + """
def kernel_fn(state, inputs, outputs):
    launch_ex(outputs, inputs, Attribute(4, words=(2, 1, 1)), Attribute(5, words=(2,)),
              Attribute(8, words=(-3,)), Attribute(9, bytes=(1, 2)), Attribute(10, words=(1,)),
              Attribute(11, words=(4, 1, 1)), Attribute(14, words=(50,)), Attribute(16, words=(1,)))
    launch_ex(outputs, inputs, Attribute(6, words=(1,)))
""").dump()
        self.assertEqual([line.strip() for line in dump.splitlines() if "launch " in line], [
            "launch cluster_dimension: 020000000100000001000000",
            "launch cluster_scheduling_policy_preference: 02000000",
            "launch priority: fdffffff",
            "launch mem_sync_domain_map: 01020000",
            "launch mem_sync_domain: 01000000",
            "launch preferred_cluster_dimension: 040000000100000001000000",
            "launch preferred_shared_memory_carveout: 32000000",
            "launch nvlink_util_centric_scheduling: 01000000"])
        self.assertIn("programmatic", dump)

    def test_a_launch_attribute_is_of_that_launch_alone(self):
        """A carve-out or policy that another launch of the same function was given, in prepare or
        beside it, is not what a launch without one has; nor what the driver reads of it."""
        dump = self.accepted(LAUNCH_EX + """
def prepare(ctx):
    x = driver.zeros(ctx.shapes[0].n)
    tensors = types.SimpleNamespace(x=x, y=x, factor=1.0, n=4)
    launch_ex(tensors, tensors, Attribute(14, words=(50,)), Attribute(5, words=(1,)))
    driver.synchronize()

def kernel_fn(state, inputs, outputs):
    launch_ex(outputs, inputs, Attribute(14, words=(0,)))
    kernels["scale"].launch(4, 1, outputs.y, inputs.x, inputs.factor, inputs.n)
    launch_ex(outputs, inputs, Attribute(5, words=(1,)))
    launch_ex(outputs, inputs)
""").dump()
        kernels = dump[dump.index("node 0"):].split("node ")[1:5]
        found = [[line.strip() for line in kernel.splitlines() if "launch " in line]
                 for kernel in kernels]
        self.assertEqual(found, [["launch preferred_shared_memory_carveout: 00000000"], [],
                                 ["launch cluster_scheduling_policy_preference: 01000000"], []])

    def test_settings_that_the_driver_cannot_be_asked_for(self):
        dump = self.accepted(PRELUDE + """
def prepare(ctx):
    driver.call("cuFuncSetCacheConfig", ctypes.c_void_p(kernels["scale"].handle), ctypes.c_int(1))
    driver.call("cuCtxSetLimit", ctypes.c_int(0), ctypes.c_size_t(8192))

def kernel_fn(state, inputs, outputs):
    kernels["scale"].launch(4, 1, outputs.y, inputs.x, inputs.factor, inputs.n)
    kernels["add"].launch(4, 1, outputs.y, outputs.y, inputs.x, inputs.n)
""").dump()
        self.assertEqual(dump.count("cache_config 1"), 1)
        self.assertIn("stack_size", dump)

    def test_cache_configuration_of_the_context(self):
        dump = self.accepted(PRELUDE + """
def prepare(ctx):
    driver.call("cuFuncSetCacheConfig", ctypes.c_void_p(kernels["scale"].handle), ctypes.c_int(1))
    driver.call("cuCtxSetCacheConfig", ctypes.c_int(2))

def kernel_fn(state, inputs, outputs):
    kernels["scale"].launch(4, 1, outputs.y, inputs.x, inputs.factor, inputs.n)
    kernels["add"].launch(4, 1, outputs.y, outputs.y, inputs.x, inputs.n)
""").dump()
        self.assertEqual((dump.count("cache_config 1"), dump.count("cache_config 2")), (1, 1))

    def test_a_given_output_may_be_scratch(self):
        self.accepted(PRELUDE + """
def kernel_fn(state, inputs, outputs):
    y = driver.empty(inputs.n)
    kernels["scale"].launch(4, 1, outputs.y, inputs.x, 2.0, inputs.n)
    kernels["scale"].launch(4, 1, y, outputs.y, 2.0, inputs.n)
    return y
""", shapes=[shape(), shape("b", 5)]).dump()

    def test_threads_that_allocate(self):
        self.accepted(PRELUDE + """
def prepare(ctx):
    made = []
    def work(i):
        for j in range(20):
            array = driver.zeros(100 + i)
            if j % 2: made.append(array)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert len({a.address for a in made}) == 80
    return made

def kernel_fn(state, inputs, outputs):
    kernels["scale"].launch(4, 1, outputs.y, inputs.x, inputs.factor, inputs.n)
""").dump()

    def test_addresses_are_never_used_twice(self):
        self.accepted(PRELUDE + """
def prepare(ctx):
    seen = [driver.empty(1).address for _ in range(50)]
    assert len(set(seen)) == 50
    assert all(0x2d1b00000000 <= a < 0x2f1b00000000 for a in seen)

def kernel_fn(state, inputs, outputs):
    kernels["scale"].launch(4, 1, outputs.y, inputs.x, inputs.factor, inputs.n)
""").dump()

    def test_every_door_to_the_allocator(self):
        """By dlsym, by cuGetProcAddress, and by its own cuMemCreate and cuMemMap."""
        self.accepted(MAPPING + """
def prepare(ctx):
    c = ctypes
    function, status = c.c_void_p(), c.c_int()
    driver.call("cuGetProcAddress_v2", b"cuMemAlloc", c.byref(function), c.c_int(13000),
                c.c_uint64(0), c.byref(status))
    alloc = c.CFUNCTYPE(c.c_int, c.POINTER(c.c_uint64), c.c_size_t)(function.value)
    address = c.c_uint64()
    assert alloc(c.byref(address), 4096) == 0 and address.value >> 32 == 0x2d1b, hex(address.value)
    driver.call("cuMemAllocAsync", c.byref(address), c.c_size_t(4096), c.c_void_p(0))
    assert address.value >> 32 == 0x2d1b
    driver.call("cuMemFreeAsync", address, c.c_void_p(0))
    reserved = c.c_uint64()
    driver.call("cuMemAddressReserve", c.byref(reserved), c.c_size_t(2 << 20), c.c_size_t(0),
                c.c_uint64(0), c.c_uint64(0))
    assert reserved.value >> 32 == 0x2d1b

    handle = c.c_uint64()
    driver.call("cuMemCreate", c.byref(handle), c.c_size_t(2 << 20),
                c.byref(Properties(1, 1, 1, 0)), c.c_uint64(0))
    driver.call("cuMemMap", reserved, c.c_size_t(2 << 20), c.c_size_t(0), handle, c.c_uint64(0))
    access = (c.c_int * 3)(1, 0, 3)
    driver.call("cuMemSetAccess", reserved, c.c_size_t(2 << 20), access, c.c_size_t(1))
    return driver.Array(reserved.value, ctx.shapes[0].n, "float32")

def kernel_fn(state, inputs, outputs):
    kernels["scale"].launch(4, 1, state, inputs.x, inputs.factor, inputs.n)
    driver.copy(outputs.y, state)
""").dump()

    def test_memory_that_nothing_leads_to_is_left_out(self):
        outcome = self.accepted(PRELUDE + """
def prepare(ctx):
    held = driver.array([1.0] * (1 << 20))
    return driver.array([0.0, 5.0]), held

def kernel_fn(state, inputs, outputs):
    kernels["scale_by_counter"].launch(4, 1, outputs.y, inputs.x, state[0], inputs.n)
""")
        self.assertEqual(outcome.dump().count(" state"), 1, outcome.dump())
        self.assertIn("leaves out 1 allocation, 4.0 MiB", outcome.output)

    def test_a_tensor_across_mappings_that_touch_is_whole(self):
        """As torch's expandable segments lie: used by a kernel, set, copied, returned."""
        mappings = MAPPING + """
def prepare(ctx):
    c = ctypes
    address = c.c_uint64()
    driver.call("cuMemAddressReserve", c.byref(address), c.c_size_t(3 * G), c.c_size_t(0), c.c_uint64(0),
                c.c_uint64(0))
    for i in range(3):
        handle = c.c_uint64()
        driver.call("cuMemCreate", c.byref(handle), c.c_size_t(G), c.byref(Properties(1, 1, 1, 0)),
                    c.c_uint64(0))
        driver.call("cuMemMap", c.c_uint64(address.value + i * G), c.c_size_t(G), c.c_size_t(0), handle,
                    c.c_uint64(0))
    driver.call("cuMemSetAccess", address, c.c_size_t(3 * G), (c.c_int * 3)(1, 0, 3), c.c_size_t(1))
    return driver.Array(address.value + START, (ctx.shapes[0].n,), "float32")

def kernel_fn(state, inputs, outputs):
    kernels["scale"].launch(4, 1, state, inputs.x, inputs.factor, inputs.n)
"""
        uses = {"    driver.copy(outputs.y, state)\n": 1 << 20,
                "    driver.copy(state, inputs.x)\n    driver.copy(outputs.y, state)\n": 0,
                "    return state\n": 1 << 20}
        for use, start in uses.items():
            with self.subTest(use):
                outcome = self.accepted(mappings.replace("START", str(start)) + use,
                                        [shape(n=1 << 20)])
                self.assertEqual(outcome.dump().count(" state"), 1, outcome.dump())
                self.assertNotIn("6.0 MiB", outcome.output)  # left out

    def test_reservations_of_more_than_the_memory(self):
        """torch reserves 9/8 of the memory for each stream and kind of pool."""
        self.accepted(SCALE + """
def prepare(ctx):
    for i in range(8):
        driver.call("cuMemAddressReserve", ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(158 << 30),
                    ctypes.c_size_t(0), ctypes.c_uint64(0), ctypes.c_uint64(0))
""")

    def test_fork_by_the_contestant(self):
        outcome = self.accepted(PRELUDE + """
def prepare(ctx):
    child = os.fork()
    if child == 0:
        print("child goes on")
        return None
    os.waitpid(child, 0)

def kernel_fn(state, inputs, outputs):
    print("kernel_fn")
    kernels["scale"].launch(4, 1, outputs.y, inputs.x, inputs.factor, inputs.n)
""")
        self.assertEqual(outcome.output.count("kernel_fn"), 3)
        outcome.dump()

    def test_thread_that_never_ends(self):
        self.accepted(SCALE + """
import time
threading.Thread(target=lambda: time.sleep(1000)).start()
""")

    def test_several_files_and_build(self):
        self.accepted("""
import driver, helper
def prepare(ctx):
    path = driver.build("twice.c", "-DFACTOR=2")
    assert driver.build(["twice.c"], ["-DFACTOR=2"]) == path
    return driver.load(path)
def kernel_fn(state, inputs, outputs):
    helper.run(state, inputs, outputs)
""", files={"helper.py": """
def run(module, inputs, outputs):
    module["twice"].launch(1, 1, outputs.y, inputs.x, inputs.n)
""", "twice.c": """
#include <kjudge/host_kernel.h>
KJ_KERNEL(twice, (float *, y), (const float *, x), (int64_t, n)) {
  for (int64_t i = 0; i < n; ++i) y[i] = FACTOR * x[i];
}
"""}).dump()

    def test_eager_mode_runs_one_shape_and_writes_nothing(self):
        outcome = self.accepted(SCALE + "    print('ran', inputs.shape)\n", eager=True,
                                shapes=[shape("a"), shape("b")])
        self.assertEqual(outcome.output.count("ran"), 1)
        self.assertFalse(os.path.exists(outcome.bundle))

    def test_one_based_pointers(self):
        # And one past the end of the memory before.
        outcome = self.accepted(PRELUDE + """
def prepare(ctx):
    return driver.zeros(1 << 19), driver.array([1.0] * 8), driver.zeros(1 << 19)

def kernel_fn(state, inputs, outputs):
    kernels["add"].launch(4, 1, outputs.y, inputs.x, state[1].address - 4, 0)
    kernels["add"].launch(4, 1, outputs.y, inputs.x, state[2].address + (2 << 20), 0)
    kernels["scale"].launch(4, 1, outputs.y, inputs.x, inputs.factor, inputs.n)
""")
        self.assertEqual(outcome.dump().count(" state"), 2, outcome.dump())
        self.assertIn("leaves out 1 allocation", outcome.output)

    def test_one_based_pointer_to_the_first_allocation_in_memory(self):
        outcome = self.accepted(PRELUDE + """
first = driver.array([1.0] * 8)
def prepare(ctx):
    return driver.array([first.address - 4], "int64")

def kernel_fn(state, inputs, outputs):
    kernels["scale"].launch(4, 1, outputs.y, inputs.x, inputs.factor, inputs.n)
    kernels["scale_by_table"].launch(4, 1, state, 2.0, 0)
""")
        self.assertEqual(outcome.dump().count(" state"), 2, outcome.dump())

    def test_pointer_in_a_packed_structure(self):
        outcome = self.accepted(PRELUDE + """
class Job(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("n", ctypes.c_int), ("in_", ctypes.c_uint64)]

def prepare(ctx):
    return driver.array([1.0] * ctx.shapes[0].n)

def kernel_fn(state, inputs, outputs):
    kernels["scale_packed"].launch(4, 1, outputs.y, Job(inputs.n, state.address))
""")
        self.assertEqual(outcome.dump().count(" state"), 1, outcome.dump())


if __name__ == "__main__":
    _capture.main()
