# SPDX-License-Identifier: Apache-2.0
"""A kernel of the host driver, which is code of its worker, reaches no file, process or network."""

import ctypes

import _kjudge

KERNEL_TRIES = """
import driver

SOURCE = r'''
#include <kjudge/host_kernel.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int try_it(void) { %(attempt)s }
static int early = -1;
__attribute__((constructor)) static void at_load(void) { if (%(at_load)d) early = try_it(); }

KJ_KERNEL(softmax, (float *, out), (const float *, in), (long, rows), (long, cols)) {
  const int worked = (%(at_load)d ? early : try_it()) >= 0;
  for (long row = block->index.x; row < rows; row += block->grid.x) {
    const float *x = in + row * cols;
    float *y = out + row * cols;
    float maximum = x[0];
    for (long c = 1; c < cols; ++c) maximum = fmaxf(maximum, x[c]);
    float sum = 0;
    for (long c = 0; c < cols; ++c) sum += y[c] = expf(x[c] - maximum);
    for (long c = 0; c < cols; ++c) y[c] = worked ? y[c] / sum : 7;
  }
}
'''


def prepare(ctx):
    with open("softmax.c", "w") as file:
        file.write(SOURCE)
    return driver.load(driver.build("softmax.c")).kernel("softmax")


def kernel_fn(state, inputs, outputs):
    rows, cols = inputs.x.shape
    state.launch(min(rows, 64), 1, outputs.y, inputs.x, rows, cols)
"""


class Workers(_kjudge.Case):
    """The kernel's answers are right if what it tries works."""

    def tries(self, attempt, verdict, at_load=False, why=""):
        path = self.write("tries.py", KERNEL_TRIES % {"attempt": attempt, "at_load": at_load})
        result = self.evaluate(path, "--challenge", self.challenge, "--pairs", "1", status=1)
        told = result["message"] + "".join(s.get("message", "") for s in result["shapes"])
        self.assertEqual(result["verdict"], verdict, told)
        self.assertIn(why, told)
        result = self.evaluate(path, "--challenge", self.challenge, "--pairs", "1",
                               KJUDGE_WORKER_FILTER="off")
        self.assertEqual(result["verdict"], "accepted", result["message"])
        self.assert_nothing_left()

    def test_kernels(self):
        self.challenge = self.small_challenge()
        secret = self.write("secret", "x")
        reads = 'int f = open("%s", O_RDONLY); if (f >= 0) close(f); return f;'
        writes = 'int f = open("%s.new", O_WRONLY | O_CREAT, 0600); if (f >= 0) close(f); return f;'
        ends = "SIGSYS"
        for case in (
                dict(attempt=reads % secret, verdict="wrong_result"),
                dict(attempt=reads % "/usr/bin/env", verdict="wrong_result"),
                dict(attempt=reads % "/proc/self/maps", verdict="wrong_result"),
                dict(attempt=writes % secret, verdict="runtime_error", why=ends),
                dict(attempt="return kill(1, 0);", verdict="runtime_error", why=ends),
                dict(attempt="int f = socket(AF_INET, SOCK_STREAM, 0); if (f >= 0) close(f); return f;",
                     verdict="runtime_error", why=ends),
                dict(attempt="int p = fork(); if (p == 0) _exit(0); return waitpid(p, 0, 0);",
                     verdict="runtime_error", why=ends)):
            with self.subTest(case["attempt"]):
                self.tries(**case)

    def test_constructors(self):
        self.challenge = self.small_challenge()
        version = ctypes.CDLL(None).syscall(ctypes.c_long(444), None, ctypes.c_long(0), ctypes.c_long(1))
        if version < 1:
            self.skipTest("not tried, the kernel has no Landlock")
        secret = self.write("secret", "x")
        reads = 'int f = open("%s", O_RDONLY); if (f >= 0) close(f); return f;'
        self.tries(reads % secret, "wrong_result", at_load=True)
        self.tries(reads % "/proc/self/environ", "wrong_result", at_load=True)
        self.tries("int f = socket(AF_UNIX, SOCK_STREAM, 0); if (f >= 0) close(f); return f;",
                   "runtime_error", at_load=True, why="SIGSYS")

    def test_prints_are_no_results(self):
        path = self.write("prints.py", KERNEL_TRIES % {
            "attempt": 'return (int)write(1, "{}\\n", 3);', "at_load": False})
        self.evaluate(path, "--challenge", self.small_challenge(), "--pairs", "1")


if __name__ == "__main__":
    _kjudge.main()
