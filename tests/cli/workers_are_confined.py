# SPDX-License-Identifier: Apache-2.0
"""A kernel of the host driver, which is code of its worker, reaches no file, process or network."""

import ctypes

import _kjudge

# Of the attempt: an expression list in C, and whether the module's loading makes it.
TRIES = """#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int try_it(void) { %(attempt)s }
static int early = -1;
__attribute__((constructor)) static void at_load(void) { if (%(at_load)d) early = try_it(); }
"""


def replaced(text, old, new):
    assert old in text, old
    return text.replace(old, new)


def kernel_that_tries(attempt, at_load):
    source = replaced(_kjudge.RIGHT, "SOURCE = '''", "SOURCE = r'''")
    source = replaced(source, "#include <math.h>\n", TRIES % {"attempt": attempt, "at_load": at_load})
    source = replaced(source, "  for (long row", "  const int worked = (%d ? early : try_it()) >= 0;\n"
                      "  for (long row" % at_load)
    return replaced(source, "y[c] /= sum;", "y[c] = worked ? y[c] / sum : 7;")


class Workers(_kjudge.Case):
    """The kernel's answers are right if what it tries works."""

    def tries(self, attempt, verdict, at_load=False, why=""):
        path = self.write("tries.py", kernel_that_tries(attempt, at_load))
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

    def test_environment_compiles_nothing(self):
        path = self.write("asks.py", kernel_that_tries("""
  const char *process = getenv("KJUDGE_HOST_PROCESS");
  if (process == 0 || strncmp(process, "worker-", 7) != 0) return 0;
  const char *jit = getenv("CUDA_DISABLE_PTX_JIT"), *cache = getenv("CUDA_CACHE_DISABLE");
  return jit && *jit == '1' && cache && *cache == '1' && !getenv("CUDA_FORCE_PTX_JIT") &&
                 !getenv("CUDA_FORCE_JIT") && !getenv("CUDA_LAUNCH_BLOCKING") ? 0 : -1;""", False))
        self.evaluate(path, "--challenge", self.small_challenge(), "--pairs", "1", CUDA_CACHE_DISABLE="0",
                      CUDA_FORCE_PTX_JIT="1", CUDA_FORCE_JIT="1", CUDA_LAUNCH_BLOCKING="1")

    def test_prints_are_no_results(self):
        path = self.write("prints.py", kernel_that_tries('return (int)write(1, "{}\\n", 3);', False))
        self.evaluate(path, "--challenge", self.small_challenge(), "--pairs", "1")


if __name__ == "__main__":
    _kjudge.main()
