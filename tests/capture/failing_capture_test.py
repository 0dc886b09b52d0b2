# SPDX-License-Identifier: Apache-2.0
"""The capture process: submissions that go wrong get their verdict, and a message that names the place."""

import _capture
from _capture import CaptureTest, MAPPING, PRELUDE, SCALE, shape


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


if __name__ == "__main__":
    _capture.main()
