# SPDX-License-Identifier: Apache-2.0
"""The capture process: right submissions give bundles, wrong ones their verdict."""

import array
import os
import subprocess
import tempfile
import textwrap
import types
import unittest

import _capture
from _capture import CaptureTest, LIBRARY, PRELUDE, SCALE, shape

import _torch_rng  # noqa: E402  (of the harness, whose folder _capture adds)


# CUmemAllocationProp, for what maps memory itself.
MAPPING = PRELUDE + """
G = 2 << 20

class Properties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("kind", ctypes.c_int),
                ("id", ctypes.c_int), ("rest", ctypes.c_uint64 * 2)]
"""

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


class Fails(CaptureTest):
    def test_raise_in_prepare(self):
        outcome = self.fails("runtime_error", """
def helper():
    return {}["missing"]
def prepare(ctx):
    helper()
def kernel_fn(state, inputs, outputs):
    pass
""", "prepare raised KeyError", "submission.py, line 3, in helper")
        self.assertIn("line 5, in prepare", outcome.traceback)
        for name in ("capture.py", "contestant", "harness"):
            self.assertNotIn(name, outcome.traceback)

    def test_raise_in_kernel_fn(self):
        outcome = self.fails("runtime_error", """
def kernel_fn(state, inputs, outputs):
    inputs.nothing
""", "kernel_fn of shape small raised AttributeError", "line 3, in kernel_fn")
        self.assertIn("there are factor, n, shape, x", outcome.message)

    def test_raise_only_while_captured(self):
        outcome = self.fails("runtime_error", SCALE.replace("def kernel_fn", "calls = []\ndef kernel_fn") + """
    calls.append(1)
    if len(calls) == 3: raise ValueError("third")
""", "ValueError: third")
        self.assertIn("kernel_fn", outcome.traceback)

    def test_syntax_error(self):
        outcome = self.fails("runtime_error", "def kernel_fn(:\n", "SyntaxError", "submission.py, line 1")
        self.assertEqual(outcome.message.count("line 1"), 1)
        self.assertIn("def kernel_fn(:", outcome.traceback)

    def test_chained_exceptions_show_only_the_contestants_frames(self):
        outcome = self.fails("runtime_error", """
import driver
def prepare(ctx):
    try:
        driver.load(b"no image")
    except driver.DriverError as e:
        raise RuntimeError("wrapped") from e
def kernel_fn(state, inputs, outputs): pass
""", "wrapped")
        self.assertIn("DriverError", outcome.traceback)
        self.assertNotIn("driver.py", outcome.traceback)

    def test_no_kernel_fn(self):
        self.fails("runtime_error", "x = 1\n", "submission.py defines no kernel_fn")

    def test_sys_exit(self):
        self.fails("runtime_error", "import sys\nsys.exit(0)\n", "ends the process")

    def test_exit_without_a_word(self):
        outcome = self.capture("import os\nos._exit(0)\n")
        self.assertIsNone(outcome.status)

    def test_returned_wrongly(self):
        for returned, words in {
            "driver.empty(inputs.n, 'float64')": ("output y was returned as float64", "float32"),
            "driver.empty(inputs.n + 1)": ("dims [1001]", "[1000]"),
            "(driver.empty(inputs.n), driver.empty(inputs.n))": ("returned 2 tensors", "1 outputs (y)"),
            "{'z': driver.empty(inputs.n)}": ("returned outputs z, the challenge has y",),
            "3": ("returned a int for output y",),
            "[[1.0]]": ("returned a list",),
        }.items():
            with self.subTest(returned=returned):
                self.fails("runtime_error", PRELUDE + "def kernel_fn(state, inputs, outputs):\n"
                           "    return %s\n" % returned, *words)

    def test_returned_memory_that_was_never_allocated(self):
        self.fails("refused", PRELUDE + """
def kernel_fn(state, inputs, outputs):
    return driver.Array(0x12340000, inputs.n, "float32")
""", "no memory that was allocated", rule="outside_arena")

    def test_replacing_an_output(self):
        self.fails("runtime_error", PRELUDE + """
def kernel_fn(state, inputs, outputs):
    outputs.y = driver.empty(inputs.n)
""", "y cannot be replaced")

    def test_out_of_memory(self):
        outcome = self.fails("out_of_memory", PRELUDE + """
def prepare(ctx):
    return [driver.empty(1 << 20, "uint8") for _ in range(50)]
def kernel_fn(state, inputs, outputs): pass
""", "cuMemAlloc of 1048576 bytes", "33554432 are allowed", memory_bytes=32 << 20)
        self.assertIn("in prepare", outcome.traceback)

    def test_limits_of_the_context_count_as_memory(self):
        for limit, value, words in ((0, 1 << 24, "stacks"), (1, 1 << 27, "printf"), (2, 1 << 27, "heap")):
            with self.subTest(words):
                set_limit = 'driver.call("cuCtxSetLimit", ctypes.c_int(%d), ctypes.c_size_t(%d))'
                self.fails("out_of_memory", SCALE + "def prepare(ctx):\n    " +
                           set_limit % (limit, value), "prepare: cuCtxSetLimit", words, "are allowed",
                           memory_bytes=1 << 26)
                self.fails("out_of_memory", SCALE + "def prepare(ctx):\n    " +
                           set_limit % (limit, 1 << 60), words, "are there")
        dump = self.accepted(SCALE + """
def prepare(ctx):
    for value in (1 << 25, 1 << 24):
        driver.call("cuCtxSetLimit", ctypes.c_int(2), ctypes.c_size_t(value))
""", memory_bytes=1 << 26).dump()
        self.assertGreaterEqual(int(dump.split("peak_bytes ")[1].split()[0]), 3 << 23)

    def test_managed_memory_counts(self):
        self.fails("out_of_memory", SCALE + """
def prepare(ctx):
    address = ctypes.c_uint64()
    driver.call("cuMemAllocManaged", ctypes.byref(address), ctypes.c_size_t(1 << 27), ctypes.c_uint(1))
""", "cuMemAllocManaged of 134217728 bytes", memory_bytes=1 << 26)

    def test_module_variables_count(self):
        big = """
#include <kjudge/host_kernel.h>
typedef float many[1 << 22];
KJ_VARIABLE(many, table) = {1};
KJ_KERNEL(nothing, (float *, out)) { if (block->index.x == 1000000) out[0] = table[1]; }
"""
        source = SCALE + """
def prepare(ctx):
    return driver.load(driver.build("big.c"))
"""
        self.fails("out_of_memory", source, "variables of modules", "are allowed", files={"big.c": big},
                   memory_bytes=1 << 23)
        dump = self.accepted(source, files={"big.c": big}).dump()
        self.assertGreater(int(dump.split("peak_bytes ")[1].split()[0]), 1 << 24)

    def test_freed_memory_counts_no_more(self):
        self.accepted(PRELUDE + """
def prepare(ctx):
    for _ in range(100): driver.empty(1 << 20, "uint8")
def kernel_fn(state, inputs, outputs):
    kernels["scale"].launch(4, 1, outputs.y, inputs.x, inputs.factor, inputs.n)
""", memory_bytes=32 << 20)

    def test_kernel_fault(self):
        self.fails("gpu_fault", PRELUDE + """
def kernel_fn(state, inputs, outputs):
    kernels["store_far"].launch(1, 1, outputs.y)
""", "kernel_fn of shape small", "CUDA_ERROR_ILLEGAL_ADDRESS")

    def test_overrun_into_the_next_allocation_is_a_fault(self):
        self.fails("gpu_fault", PRELUDE + """
def kernel_fn(state, inputs, outputs):
    kernels["scale"].launch(1, 1, outputs.y, inputs.x, 1.0, 1 << 20)
""", "CUDA_ERROR_ILLEGAL_ADDRESS")

    def test_compiler_error(self):
        outcome = self.fails("build_error", """
import driver
def prepare(ctx):
    driver.build("bad.c")
def kernel_fn(state, inputs, outputs): pass
""", "prepare", "bad.c", "nonsense", files={"bad.c": "nonsense nonsense;\n"})
        self.assertIn("in prepare", outcome.traceback)

    def test_wrong_arguments(self):
        for arguments, words in {
            "outputs.y, inputs.x, 1.0": ("kernel scale takes 4 arguments, 3 were given",),
            "outputs.y, inputs.x, 1.0, 2.0, 5": ("takes 4 arguments",),
            "outputs.y, inputs.x, inputs.x, 5": ("argument 2 has 4 bytes, 8 were given",),
            "outputs.y, inputs.x, 1.0, None": ("argument 3: NoneType is no array",),
            "outputs.y, inputs.x, 1 << 32, 5": ("argument 2: 4294967296 does not fit 4 bytes",),
            "outputs.y, inputs.x, ctypes.c_double(1), 5": ("argument 2 has 4 bytes, 8",),
        }.items():
            with self.subTest(arguments=arguments):
                self.fails("runtime_error", PRELUDE + "def kernel_fn(state, inputs, outputs):\n"
                           "    kernels['scale'].launch(1, 1, %s)\n" % arguments, *words)

    def test_exceptions_that_cannot_be_told(self):
        outcome = self.fails("runtime_error", """
class Odd(Exception):
    def __str__(self): raise ValueError
def prepare(ctx):
    raise Odd()
def kernel_fn(state, inputs, outputs): pass
""", "prepare raised Odd")
        self.assertIn("in prepare", outcome.traceback)
        outcome = self.fails("runtime_error", """
def prepare(ctx):
    raise ValueError("\\0\\ud800" + "long" * 100000)
def kernel_fn(state, inputs, outputs): pass
""", "prepare raised ValueError")
        self.assertLess(len(outcome.message) + len(outcome.traceback), 100000)

    def test_harness_failure_is_no_verdict(self):
        outcome = self.capture(SCALE, environment={"KJUDGE_RECORDER": "/nowhere/recorder.so"})
        self.assertNotEqual(outcome.exit_status, 0)
        self.assertIsNone(outcome.status)
        self.assertIn("/nowhere/recorder.so", outcome.output)
        self.assertNotIn("code starts here", outcome.output)

    def test_harness_failure_after_the_submission_began_is_its_own(self):
        self.fails("runtime_error", SCALE + """
import json
def prepare(ctx):
    import _arguments
    _arguments.Arguments.__init__ = None
""", "after the submission's code had run, with TypeError")

    THIRD_CALL = PRELUDE + """
calls = []
def kernel_fn(state, inputs, outputs):
    calls.append(1)
    kernels["scale"].launch(4, 1, outputs.y, inputs.x, inputs.factor, inputs.n)
    if len(calls) == %d:
        driver.synchronize() if len(calls) < 3 else None
        %s
"""

    def test_freeing_an_argument(self):
        for name in ("inputs.x", "outputs.y"):
            for call in (1, 2, 3):
                with self.subTest(name=name, call=call):
                    self.fails("runtime_error", self.THIRD_CALL % (
                        call, 'driver.call("cuMemFree_v2", ctypes.c_uint64(%s.address))' % name),
                               "cuMemFree of an argument of kernel_fn", "free only what the submission")

    def test_destroying_the_current_stream(self):
        self.fails("runtime_error", self.THIRD_CALL % (
            2, 'driver.call("cuStreamDestroy_v2", ctypes.c_void_p(driver.current_stream().handle))'),
                   "shape small: the stream that kernel_fn was called on cannot be captured",
                   "leave the arguments, the current stream")

    def test_resetting_the_device(self):
        self.fails("runtime_error", self.THIRD_CALL % (
            2, 'driver.call("cuDevicePrimaryCtxReset_v2", ctypes.c_int(0))'), "CUDA_ERROR_CONTEXT_IS_DESTROYED")

    def test_unmapping_allocated_memory(self):
        self.fails("runtime_error", SCALE + """
def prepare(ctx):
    array = driver.empty(4)
    driver.call("cuMemUnmap", ctypes.c_uint64(array.address), ctypes.c_size_t(2 << 20))
""", "cuMemUnmap of 16 bytes of cuMemAlloc", "unmap only what cuMemMap mapped")

    def test_taking_access_away(self):
        self.fails("runtime_error", SCALE + """
def prepare(ctx):
    array = driver.empty(4)
    driver.call("cuMemSetAccess", ctypes.c_uint64(array.address), ctypes.c_size_t(2 << 20),
                (ctypes.c_int * 3)(1, 0, 0), ctypes.c_size_t(1))
""", "cuMemSetAccess takes access to memory away")

    def test_memory_mapped_without_access(self):
        self.fails("runtime_error", MAPPING + """
def prepare(ctx):
    c = ctypes
    address, handle = c.c_uint64(), c.c_uint64()
    driver.call("cuMemAddressReserve", c.byref(address), c.c_size_t(G), c.c_size_t(0), c.c_uint64(0), c.c_uint64(0))
    driver.call("cuMemCreate", c.byref(handle), c.c_size_t(G), c.byref(Properties(1, 1, 1, 0)), c.c_uint64(0))
    driver.call("cuMemMap", address, c.c_size_t(G), c.c_size_t(0), handle, c.c_uint64(0))
    return driver.array([address.value], "int64")

def kernel_fn(state, inputs, outputs):
    kernels["scale"].launch(4, 1, outputs.y, inputs.x, inputs.factor, inputs.n)
    kernels["scale_by_table"].launch(4, 1, state, 2.0, 0)
""", "2097152 bytes of cuMemMap cannot be read", "give it access with cuMemSetAccess")

    def test_a_failure_that_was_caught_is_not_told_again(self):
        outcome = self.fails("runtime_error", SCALE + """
def prepare(ctx):
    try:
        driver.call("cuMemFree_v2", ctypes.c_uint64(0x2d1b00000000 + (1 << 38)))
    except driver.DriverError:
        pass

def kernel_fn(state, inputs, outputs):
    driver.call("cuMemFree_v2", ctypes.c_uint64(12345))
""", "CUDA_ERROR_INVALID_VALUE")
        self.assertNotIn("not allocated", outcome.message)

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


class TorchRng(unittest.TestCase):
    """What the harness asks torch, of a torch that is made up."""

    class Generator:
        def __init__(self, state):
            self.state = state

        def get_state(self):
            return array.array("B", self.state)

    def torch(self, *states):
        cuda = types.SimpleNamespace(default_generators=tuple(map(self.Generator, states)))
        return types.SimpleNamespace(cuda=cuda)

    def test_a_draw_changes_the_states(self):
        before = _torch_rng.states(self.torch(b"\1\0", b"\0\0"))
        self.assertEqual(before, _torch_rng.states(self.torch(b"\1\0", b"\0\0")))
        self.assertNotEqual(before, _torch_rng.states(self.torch(b"\1\4", b"\0\0")))
        self.assertEqual(_torch_rng.states(self.torch()), [])

    def test_errors(self):
        for words in ("Offset increment outside graph capture encountered unexpectedly.",
                      "Attempt to increase offset for a CUDA generator not in capture mode.",
                      "Cannot call CUDAGeneratorImpl::set_current_seed during CUDA graph capture."):
            self.assertTrue(_torch_rng.is_rng_error(RuntimeError(words)))
        self.assertFalse(_torch_rng.is_rng_error(RuntimeError("CUDA error: invalid argument")))
        self.assertFalse(_torch_rng.is_rng_error(ValueError("CUDAGeneratorImpl")))


class Lookup(unittest.TestCase):
    """The recorder stands before dlsym without being noticed."""

    def same_when_preloaded(self, folder, code):
        outputs = []
        for preload in ("", os.path.join(LIBRARY, "libkjudge_recorder.so")):
            done = subprocess.run(
                ["python3", "-c", textwrap.dedent(code)], cwd=folder, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                env=dict(os.environ, LD_PRELOAD=preload))
            self.assertEqual(done.returncode, 0, done.stdout)
            outputs.append(done.stdout)
        self.assertEqual(*outputs)
        return outputs[0]

    def test_rtld_next_starts_at_the_real_caller(self):
        with tempfile.TemporaryDirectory() as folder:
            def library(name, text, *more):
                with open(os.path.join(folder, name + ".c"), "w") as file:
                    file.write(text)
                subprocess.run(["cc", "-shared", "-fPIC", "-O2", name + ".c", "-o",
                                "lib" + name + ".so", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN"] +
                               list(more), cwd=folder, check=True)

            library("second", "int marker(void) { return 2; }")
            library("first", """
#define _GNU_SOURCE
#include <dlfcn.h>
int marker(void) { return 1; }
int next(void) { return ((int (*)(void))dlsym(RTLD_NEXT, "marker"))(); }
int any(void) { return dlsym(RTLD_DEFAULT, "marker") != 0; }
""", "-L.", "-lsecond")
            out = self.same_when_preloaded(folder, """
                import ctypes
                first = ctypes.CDLL("./libfirst.so")
                print(first.next(), first.marker(), first.any())""")
            self.assertEqual(out.split(), ["2", "1", "1"])

    def test_errors_are_those_of_the_real_one(self):
        out = self.same_when_preloaded(".", """
            import ctypes
            try:
                ctypes.CDLL(None).cuNothing
            except AttributeError as error:
                print(error)""")
        self.assertIn("undefined symbol: cuNothing", out)

    def test_only_the_named_symbols_are_shown(self):
        done = subprocess.run(["nm", "-D", "--defined-only",
                               os.path.join(LIBRARY, "libkjudge_recorder.so")],
                              capture_output=True, text=True, check=True)
        names = [line.split()[-1] for line in done.stdout.splitlines()]
        others = [name for name in names
                  if name not in ("dlsym", "InitializeInjection") and not name.startswith(("cu", "kjudge_record_"))]
        self.assertEqual(others, [])

    def test_it_needs_only_libc(self):
        done = subprocess.run(["readelf", "-d", os.path.join(LIBRARY, "libkjudge_recorder.so")],
                              capture_output=True, text=True, check=True)
        needed = [line.split("[")[1].rstrip("]") for line in done.stdout.splitlines()
                  if "NEEDED" in line]
        self.assertLessEqual(set(needed), {"libc.so.6", "libdl.so.2", "ld-linux-x86-64.so.2"})


if __name__ == "__main__":
    _capture.main()
