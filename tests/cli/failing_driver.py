# SPDX-License-Identifier: Apache-2.0
"""Calls of the driver that fail, in each process of an evaluation: a verdict or a judge error that
names the call, no hang, nothing left.

As a test it fails each call that an evaluation makes once in each process. By hand, the first, second,
third, tenth, middle and last of them, with each error:

    python3 tests/cli/failing_driver.py --all [PROCESS [CALL]]
"""

import collections
import json
import os
import sys

import _kjudge

ALL = "--all" in sys.argv
ONLY = [word for word in sys.argv[1:] if word != "--all"] if ALL else []
ERRORS = ("UNKNOWN", "OUT_OF_MEMORY", "LAUNCH_FAILED", "INVALID_VALUE")

# What undoes something, where nobody waits for the answer any more.
UNDOING = {"cuMemUnmap", "cuMemAddressFree", "cuMemRelease", "cuMemFree", "cuMemFreeHost",
           "cuGraphDestroy", "cuGraphExecDestroy", "cuModuleUnload", "cuStreamDestroy",
           "cuEventDestroy", "cuDevicePrimaryCtxRelease"}


ENTERING = {"cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxGetCurrent",
            "cuCtxSetCurrent"}

# For these an invalid value is an answer: there is no such parameter or attribute.
ASKING = {"cuFuncGetParamInfo", "cuFuncGetAttribute", "cuGraphKernelNodeGetAttribute"}


def errors(call):
    return [error for error in ERRORS if error != "INVALID_VALUE" or call not in ASKING]


# With memory, an array, a copy and a kernel of its own.
REFERENCE = """
import math
import driver

def prepare(ctx):
    return driver.empty((4,), "float32"), driver.Event()

def kernel_fn(state, inputs, outputs):
    driver.synchronize()
    rows = []
    for row in inputs.x.tolist():
        exps = [math.exp(v - max(row)) for v in row]
        rows.append([e / sum(exps) for e in exps])
    outputs.y.copy_from(rows)
    state[1].record()
    state[1].synchronize()
"""

INPUTS = """
def fill(shape, regime, seed, inputs):
    rows, cols = inputs.x.shape
    inputs.x.copy_from([[(seed % 97 + r * cols + c) % 13 / 4 for c in range(cols)] for r in range(rows)])
"""


class FailingDriver(_kjudge.Case):
    def setUp(self):
        super().setUp()
        self.trace = self.path("trace")
        self.challenge = self.small_challenge()
        self.right = self.write("right.py", _kjudge.RIGHT)

    def call_reference_from_python(self):
        """Which has a process of its own then, as inputs.py has."""
        with open(os.path.join(self.challenge, "challenge.json")) as file:
            challenge = json.load(file)
        challenge["reference"] = "python"
        challenge["tensors"]["inputs"][0]["generator"] = {"kind": "python"}
        with open(os.path.join(self.challenge, "challenge.json"), "w") as file:
            json.dump(challenge, file)
        for name, text in (("reference.py", REFERENCE), ("inputs.py", INPUTS)):
            with open(os.path.join(self.challenge, name), "w") as file:
                file.write(text)

    def judge(self, **environment):
        """Exit status, evaluation or None, stderr, and the lines of the driver's trace."""
        if os.path.exists(self.trace):
            os.remove(self.trace)
        process = self.start("selftest", self.right, "--challenge", self.challenge, "--pairs", "1",
                             "--json", KJUDGE_HOST_TRACE=self.trace, **environment)
        try:
            out, err = process.communicate(timeout=60)
        except Exception:
            process.kill()
            process.communicate()
            raise
        with open(self.trace) as file:
            lines = [line.split() for line in file]
        return process.returncode, json.loads(out) if out else None, err, lines

    def calls(self):
        """How often a process of each kind makes each call at most."""
        self.judge()  # its baseline and reference are in the cache from now on
        status, result, err, lines = self.judge()
        self.assertEqual(status, 0, err)
        single = collections.Counter(tuple(words) for words in lines)
        most = {}
        for (process, _, call), count in single.items():
            most[process, call] = max(count, most.get((process, call), 0))
        return most

    def check(self, process, call, n, error):
        status, result, err, lines = self.judge(
            KJUDGE_HOST_FAULT="%s/%s:%d:%s" % (process, call, n, error))
        self.assert_nothing_left()
        failed = [words for words in lines if len(words) > 3]
        told = "%s\n%s" % (json.dumps(result), err)
        verdict = result["verdict"] if result else None
        # The supervisor's last cuCtxSetCurrent lets its context go. In a capture any thread that ends
        # may be the one that lets things of the contestant's go, and enters the context for that.
        # Outside of captures cuCtxSynchronize comes before an unmapping only.
        harmless = (call in UNDOING or n > 1 and (process, call) == ("supervisor", "cuCtxSetCurrent")
                    or call == "cuCtxSynchronize" and not process.startswith("capture")
                    or n > 1 and process.startswith("capture") and call in ENTERING
                    # The recorder finds what it hooks by name as well.
                    or process.startswith("capture") and call == "cuGetProcAddress")
        if not failed or (verdict == "accepted" and harmless):
            self.assertEqual((status, verdict), (0, "accepted"), told)
            return
        self.assertEqual({(words[0], words[2]) for words in failed}, {(process, call)})
        self.assertIn(call, result["message"] + result["log"] if result else err, told)
        if process in ("reference", "inputs"):  # the challenge's own code
            self.assertIn(status, (3, 5), told)
            self.assertIn(verdict, (None, "judge_error"), told)
        elif process == "supervisor" or process == "worker-baseline":
            # What a failed launch says may be the kernels' doing: an error of the challenge's.
            self.assertIn(status, (3, 5) if error == "LAUNCH_FAILED" else (5,), told)
            self.assertIn(verdict, (None, "judge_error"), told)
        else:
            self.assertIn(status, (1, 5), told)
            allowed = {"OUT_OF_MEMORY": ("out_of_memory",), "LAUNCH_FAILED": ("gpu_fault",)}
            self.assertIn(verdict, ("runtime_error", "judge_error", *allowed.get(error, ())), told)

    def walk(self, processes=None):
        for (process, call), last in sorted(self.calls().items()):
            if processes and process not in processes:
                continue
            if ONLY and ONLY[0] != process or ONLY[1:] and ONLY[1] != call:
                continue
            if ALL:
                for n in sorted({1, 2, 3, 10, (last + 1) // 2, last}):
                    if n <= last:
                        for error in errors(call):
                            yield process, call, n, error
            else:
                # Which one, and how, differs from call to call and is the same every time.
                draw = sum(map(ord, process + call))
                yield process, call, 1 + draw % last, errors(call)[draw // 7 % len(errors(call))]

    def test_what_the_supervisor_did_is_told(self):
        self.judge()
        for n, words in ((8, ("shape ", "checking, step ")), (45, ("shape ", "round ", ", step "))):
            _, result, err, _ = self.judge(
                KJUDGE_HOST_FAULT="supervisor/cuMemsetD8Async:%d:UNKNOWN" % n)
            self.assertEqual(result["verdict"], "judge_error", err)
            for word in words:
                self.assertIn(word, result["message"])
            self.assertIn("check", [phase["name"] for phase in result["phases"]])

    def fail_each(self, walk):
        count = 0
        for process, call, n, error in walk:
            count += 1
            with self.subTest(process=process, call=call, n=n, error=error):
                self.check(process, call, n, error)
        if ONLY and count == 0:
            self.skipTest("not among the calls of this test")
        return count

    def test_each_call_in_each_process(self):
        count = self.fail_each(self.walk())
        self.assertGreater(count, 0 if ONLY else 100)

    def test_each_call_of_the_challenges_own_python(self):
        self.call_reference_from_python()
        count = self.fail_each(self.walk(("reference", "inputs")))
        self.assertGreater(count, 0 if ONLY else 20)


if __name__ == "__main__":
    del sys.argv[1:]
    _kjudge.main()
