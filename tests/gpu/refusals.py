# SPDX-License-Identifier: Apache-2.0
"""One small program for each thing that a recording cannot hold, with the rule and words of its
message; and kernels that go wrong in a replay, after which the next evaluation is right."""

import concurrent.futures
import json
import os
import tempfile
import unittest

from _gpu import BINARY, HERE, Case, python, run

SOURCE = os.path.join(HERE, "cuda")
N = 1 << 16

PRELUDE = """
import ctypes, sys
sys.path.insert(0, %r)
import torch
import extension

class State: pass

def stream():
    return torch.cuda.current_stream().cuda_stream

def prepare(ctx):
    state = State()
    state.library = extension.load()
    prepare_more(state)
    return state

def cuda(name, *arguments):
    result = getattr(ctypes.CDLL("libcuda.so.1"), name)(*arguments)
    if result != 0:
        raise RuntimeError(name + ": CUresult " + str(result))

def in_thread(function):
    import threading
    context, failed = ctypes.c_void_p(), []
    cuda("cuCtxGetCurrent", ctypes.byref(context))
    def call():
        try:
            cuda("cuCtxSetCurrent", context)
            function()
        except Exception as error:
            failed.append(error)
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]

def mapped_twice():
    size, zero, handle = ctypes.c_size_t(1 << 21), ctypes.c_uint64(0), ctypes.c_uint64()
    cuda("cuMemCreate", ctypes.byref(handle), size, (ctypes.c_uint32 * 8)(1, 0, 1, 0), zero)
    places = [ctypes.c_uint64(), ctypes.c_uint64()]
    for place in places:
        cuda("cuMemAddressReserve", ctypes.byref(place), size, zero, zero, zero)
        cuda("cuMemMap", place, size, zero, handle, zero)
        cuda("cuMemSetAccess", place, size, (ctypes.c_uint32 * 3)(1, 0, 3), ctypes.c_size_t(1))
    return places[0].value

def plus_one(state, x, y, n):
    extension.check(state.library.plus_one(x if isinstance(x, int) else x.data_ptr(), y.data_ptr(), n,
                                           stream()))
""" % SOURCE

# rule: (what prepare does, what kernel_fn does, words of the message)
REFUSED = {
    "host_node": ("pass", "extension.check(s.library.host_function(stream()))", ["node 0"]),
    "host_pointer": ("s.pinned = torch.zeros(i_n, pin_memory=True)",
                     "plus_one(s, s.pinned, o.y, i.n)", ["plus", "argument 0"]),
    "host_memory_copy": ("s.pinned = torch.zeros(8, pin_memory=True)",
                         "o.y[:8].copy_(s.pinned, non_blocking=True)", ["source lies in host memory"]),
    "module_variable_changed": ("extension.check(s.library.change_variable())",
                                "extension.check(s.library.read_variable(i.x.data_ptr(),"
                                " o.y.data_ptr(), i.n, stream()))", ["changed_variable"]),
    "module_global_pointer": ("s.address = s.library.variable_address()",
                              "plus_one(s, s.address, o.y, 1)", ["changed_variable"]),
    "event_node": ("pass", "o.y.copy_(i.x)\n    if torch.cuda.is_current_stream_capturing():"
                   " extension.check(s.library.external_event(stream()))", ["node 1"]),
    "access_policy_window": ("pass", "extension.check(s.library.persisting_window(i.x.data_ptr(),"
                             " o.y.data_ptr(), i.n, stream()))", []),
    "outside_launch": ("s.side = torch.cuda.Stream()",
                       "o.y.copy_(i.x)\n    with torch.cuda.stream(s.side): s.kept = i.x + 1", []),
    "unjoined": ("s.side = torch.cuda.Stream()",
                 "s.side.wait_stream(torch.cuda.current_stream())\n"
                 "    with torch.cuda.stream(s.side): o.y.copy_(i.x)", []),
    "capture_invalidated": ("pass", "o.y.copy_(i.x); print(float(o.y.sum()))", []),
    "writes_input": ("pass", "i.x.add_(1); o.y.copy_(i.x)", ["input x"]),
    "stale_argument": ("s.x = None", "s.x = i.x if s.x is None else s.x; o.y[:8].copy_(s.x[:8])", ["x of shape one"]),
    "own_capture": ("g = torch.cuda.CUDAGraph(); z = torch.zeros(8, device='cuda')\n"
                    "    with torch.cuda.graph(g): z += 1", "o.y.copy_(i.x)", ["prepare"]),
    "torch_rng": ("pass", "o.y.copy_(i.x + torch.rand(i.n, device='cuda'))", []),
    "device_heap": ("s.heap = extension.load_heap()", "extension.check(s.heap.allocate(i.x.data_ptr(),"
                    " o.y.data_ptr(), i.n, stream()))", ["allocates", "malloc"]),
    "returned_input": ("pass", "return i.x", ["y"]),
    "managed_memory": ("s.managed = s.library.managed(8)", "plus_one(s, s.managed, o.y, 8)",
                       ["argument 0"]),
    "child_graph": ("pass", "extension.check(s.library.child_graph(o.y.data_ptr(), i.n, stream()))",
                    ["node 0"]),
    "memory_node": ("pass", "o.y.copy_(i.x)\n    extension.check(s.library.memory_node(stream()))",
                    ["node 1"]),
    "conditional_node": ("pass", "o.y.copy_(i.x)\n    extension.check(s.library.conditional_node("
                         "stream()))", ["node 1"]),
    "batch_memory_node": ("s.word = torch.zeros(2, device='cuda')",
                          "o.y.copy_(i.x)\n    extension.check(ctypes.CDLL('libcuda.so.1')"
                          ".cuStreamWriteValue32_v2(ctypes.c_void_p(stream()), ctypes.c_uint64("
                          "s.word.data_ptr()), ctypes.c_uint(1), ctypes.c_uint(0)))", ["node 1"]),
    "device_updatable": ("pass", "extension.check(s.library.device_updatable(i.x.data_ptr(),"
                         " o.y.data_ptr(), i.n, stream()))", ["plus"]),
    "freed_memory": ("s.x = torch.zeros(i_n * 4, device='cuda')",
                     "if i.n == %d:\n        o.y.copy_(s.x[:i.n])\n    else:\n        s.x = None\n"
                     "        torch.cuda.empty_cache()\n        o.y.copy_(i.x)" % N, ["shape one"]),
    # Two rules that what lies in memory meets.
    "host_pointer ": ("s.pinned = torch.zeros(8, pin_memory=True)\n"
                      "    s.table = torch.tensor([s.pinned.data_ptr()], device='cuda')",
                      "o.y.copy_(i.x + s.table)", ["holds a pointer into host memory"]),
    "module_global_pointer ": ("s.table = torch.tensor([s.library.variable_address()], device='cuda')",
                               "o.y.copy_(i.x + s.table)", ["holds a pointer into module variable"]),
    "device_launch": ("s.device_launch = extension.load_device_launch()",
                      "extension.check(s.device_launch.start(i.x.data_ptr(), o.y.data_ptr(), i.n,"
                      " stream()))", ["starts", "Launch"]),
    "outside_arena": ("pass", "o.y.copy_(i.x); extension.check(s.library.far_pointer(i.x.data_ptr(),"
                      " o.y.data_ptr(), stream()))", ["plus", "argument 1", "nothing is allocated"]),
}

# More that meets a rule above: (rule, what prepare does, what kernel_fn does, words of the message).
REFUSED_TOO = [
    ("outside_launch", "s.side, s.z = torch.cuda.Stream(), torch.ones(i_n, device='cuda')",
     "o.y.copy_(i.x)\n    with torch.cuda.stream(s.side): s.z.zero_()", ["the first of kernel", "FillFunctor"]),
    ("outside_launch", "s.side, s.z = torch.cuda.Stream(), torch.ones(i_n, device='cuda')",
     "o.y.copy_(i.x)\n    with torch.cuda.stream(s.side): s.z[:8].copy_(i.x[:8])", ["the first of cuMemcpy"]),
    ("outside_launch", "s.z = torch.ones(8, device='cuda')",
     "o.y.copy_(i.x)\n    if torch.cuda.is_current_stream_capturing(): in_thread(lambda:"
     " cuda('cuMemsetD8_v2', ctypes.c_uint64(s.z.data_ptr()), 0, ctypes.c_size_t(8)))",
     ["the first of cuMemsetD8"]),
    ("managed_memory", "pass", "o.y.copy_(i.x); cuda('cuMemAllocManaged', ctypes.byref(ctypes.c_uint64()),"
     " ctypes.c_size_t(4096), 1)", ["cuMemAllocManaged of 4096 bytes"]),
    ("managed_memory", "s.managed = extension.load_managed_variable()",
     "extension.check(s.managed.add(i.x.data_ptr(), o.y.data_ptr(), i.n, stream()))",
     ["adds_shared", "managed variable shared_term"]),
    ("aliased_memory", "s.twice = mapped_twice()", "plus_one(s, s.twice, o.y, 8)",
     ["argument 0", "mapped at two addresses"]),
    ("imported_memory", "cuda('cuMemPoolImportPointer', ctypes.byref(ctypes.c_uint64()), None, None)",
     "o.y.copy_(i.x)", ["cuMemPoolImportPointer"]),
    ("cuda_array", "cuda('cuArrayCreate_v2', ctypes.byref(ctypes.c_void_p()),"
     " (ctypes.c_uint64 * 3)(8, 8, 0x100000020))", "o.y.copy_(i.x)", ["cuArrayCreate"]),
    ("own_capture", "s.side = torch.cuda.Stream()",
     "o.y.copy_(i.x); cuda('cuStreamBeginCapture', ctypes.c_void_p(s.side.cuda_stream))", []),
]

SUBMISSION = PRELUDE + """
def prepare_more(s):
    i_n = %d
    %s

def kernel_fn(s, i, o):
    %s
"""

SCALED = PRELUDE + """
def prepare_more(s):
    pass

def kernel_fn(s, i, o):
    o.y.copy_(i.x * 2 + 1)
"""

# The other rank, a process of its own, lives as long as the capture.
# Without multicast objects: one that goes wrong can take the GPUs of a shared host out of service.
NCCL = """
import atexit, os, subprocess, sys
os.environ["NCCL_NVLS_ENABLE"] = "0"
import torch
import torch.distributed as dist

OTHER = '''
import sys, torch, torch.distributed as dist
torch.cuda.set_device(1)
dist.init_process_group("nccl", init_method="file://" + sys.argv[1], rank=1, world_size=2)
y = torch.ones(int(sys.argv[2]), device="cuda")
while True:
    dist.all_reduce(y)
    torch.cuda.synchronize()
'''

def prepare(ctx):
    file = os.path.abspath("nccl-rendezvous")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("LD_PRELOAD", "CUDA_INJ", "KJUDGE"))}
    other = subprocess.Popen([sys.executable, "-c", OTHER, file, str(ctx.shapes[0].n)], env=clean)
    atexit.register(other.kill)
    dist.init_process_group("nccl", init_method="file://" + file, rank=0, world_size=2)

def kernel_fn(state, i, o):
    o.y.copy_(i.x)
    dist.all_reduce(o.y)
"""

# Of goes_wrong in cuda/features.cu, by its `how`; node 0 of the graph is torch's.
FAULTS = {
    0: ("gpu_fault", ["illegal memory access", "goes_wrong", ": node 1)"]),
    1: ("timeout", ["3 s", "goes_wrong", ": node 1)"]),
    2: ("gpu_fault", ["goes_wrong", ": node 1)"]),
}


class Refusals(Case):
    def setUp(self):
        super().setUp()
        self.environment = dict(os.environ, KJUDGE_TEST_CUDA=self.folder,
                                XDG_CACHE_HOME=self.path("cache"))
        python("-c", "import extension as e; e.load(); e.load_heap(); e.load_device_launch();"
               " e.load_managed_variable()", cwd=SOURCE, env=self.environment)
        reference = self.path("source")
        os.mkdir(reference)
        with open(os.path.join(reference, "submission.py"), "w") as file:
            file.write(SCALED)
        self.challenge = self.package(reference, {"one": {"n": N, "m": N}, "two": {"n": N + 8, "m": N + 8}})

    def evaluate(self, source, status):
        path = self.path("submission.py")
        with open(path, "w") as file:
            file.write(source)
        return json.loads(run(BINARY, "selftest", path, "--challenge", self.challenge, "--pairs", "5",
                              "--json", status=status, env=self.environment))

    def capture(self, source):
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            path = os.path.join(folder, "submission.py")
            with open(path, "w") as file:
                file.write(source)
            return json.loads(run(BINARY, "capture", path, "--challenge", self.challenge, "-o",
                                  os.path.join(folder, "b.kjb"), "--json", status=1, env=self.environment))

    def test_every_rule(self):
        cases = [(rule, *case) for rule, case in REFUSED.items()] + REFUSED_TOO
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            captures = [pool.submit(self.capture, SUBMISSION % (N, prepare, kernel_fn))
                        for _, prepare, kernel_fn, _ in cases]
        for (rule, _, kernel_fn, words), capture in zip(cases, captures):
            with self.subTest(rule, kernel_fn=kernel_fn):
                told = capture.result()
                print("%s: %s" % (rule, told["message"]))
                self.assertEqual(told["verdict"], "refused", told["message"] + told["log"][-2000:])
                for part in [rule.strip() + ":"] + words:
                    self.assertIn(part, told["message"])

    def test_pointers_one_off(self):
        """Past the end, and before the start of one-based arrays, of allocations that end with a granule."""
        self.challenge = self.package(self.path("source"), {"whole": {"n": 1 << 19, "m": 1 << 19}}, "whole")
        self.assert_fine("one_off")

    def test_shared_memory_set_before_each_launch(self):
        self.assert_fine("shrinking_shared")

    def assert_fine(self, call):
        told = self.evaluate(PRELUDE + """
def prepare_more(s):
    pass

def kernel_fn(s, i, o):
    extension.check(s.library.%s(i.x.data_ptr(), o.y.data_ptr(), i.n, stream()))
""" % call, 0)
        self.assertEqual(told["verdict"], "accepted")

    def test_nccl(self):
        if int(python("-c", "import torch; print(torch.cuda.device_count())")) < 2:
            self.skipTest("needs two GPUs")
        told = self.capture(NCCL)
        print(told["message"])
        self.assertEqual(told["verdict"], "refused", told["message"] + told["log"][-4000:])
        self.assertIn("nccl: ", told["message"])

    def test_kernels_that_go_wrong(self):
        for how, (verdict, words) in FAULTS.items():
            with self.subTest(how=how):
                source = PRELUDE + """
def prepare_more(s):
    s.first = {}

def kernel_fn(s, i, o):
    first = s.first.setdefault(i.n, torch.zeros(1, device="cuda"))
    extension.check(s.library.fault(%d, i.x.data_ptr(), o.y.data_ptr(), i.n, first.data_ptr(),
                                    stream()))
""" % how
                told = self.evaluate(source, 1)
                print("%d: %s" % (how, told["message"]))
                self.assertEqual(told["verdict"], verdict, told["message"] + told["log"][-2000:])
                for part in words:
                    self.assertIn(part, told["message"])
        self.assertEqual(self.evaluate(SCALED, 0)["verdict"], "accepted")


if __name__ == "__main__":
    unittest.main()
