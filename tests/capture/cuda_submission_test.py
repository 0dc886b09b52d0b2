# SPDX-License-Identifier: Apache-2.0
"""submission.cu without a GPU: its flags, its build by nvcc, and what its functions are given.

python3 cuda_submission_test.py LIBRARY_DIR NVCC [unittest's arguments]
"""

import gc
import os
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

LIBRARY, NVCC = sys.argv[1:3]
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(LIBRARY, "harness"))

import _build  # noqa: E402
import cuda_submission  # noqa: E402
from _api import DriverError  # noqa: E402
from _arguments import Arguments, Context  # noqa: E402

EXAMPLE = os.path.join(HERE, "..", "..", "examples", "softmax_gpu", "cuda_file", "submission.cu")

# Returns the number of the first thing that is not as the harness gave it.
CHECKS = r"""
#define cudaGetLastError() cudaSuccess  // without a GPU it is an error of its own
#include <kjudge/submission.h>

#define EXPECT(number, what) if (!(what)) return number

static int prepared = 0;

extern "C" int prepare(const kjudge_shape *shapes, int count) {
  EXPECT(101, count == 2);
  EXPECT(102, strcmp(shapes[0].name, "small") == 0 && strcmp(shapes[1].name, "large") == 0);
  EXPECT(103, kjudge_dim_of(&shapes[1], "n") == 70000000000);
  prepared = 1;
  return 0;
}

extern "C" int kernel_fn(const kjudge_shape *shape, void *const *inputs, void *const *outputs,
                         cudaStream_t stream) {
  EXPECT(104, prepared);
  EXPECT(105, shape->dim_count == 2 && strcmp(shape->dims[0].name, "n") == 0);
  EXPECT(106, kjudge_dim_of(shape, "m") == 3 && kjudge_dim_of(shape, "k") == -1);
  EXPECT(107, shape->scalar_count == 3 && kjudge_scalar_of(shape, "none") == NULL);
  EXPECT(108, kjudge_scalar_of(shape, "factor")->real == -2.5);
  EXPECT(109, kjudge_scalar_of(shape, "factor")->integer == -2);
  EXPECT(110, kjudge_scalar_of(shape, "big")->integer == 9007199254740993);
  EXPECT(111, kjudge_scalar_of(shape, "causal")->integer == 1);
  EXPECT(112, shape->input_count == 2 && shape->output_count == 1);
  EXPECT(113, strcmp(shape->inputs[1].name, "b") == 0 && shape->inputs[1].rank == 2);
  EXPECT(114, shape->inputs[1].sizes[0] == 3 && shape->inputs[1].sizes[1] == kjudge_dim_of(shape, "n"));
  EXPECT(115, shape->inputs[0].dtype == KJUDGE_BFLOAT16 && shape->inputs[1].dtype == KJUDGE_BOOL);
  EXPECT(116, shape->outputs[0].dtype == KJUDGE_FLOAT32 && shape->outputs[0].rank == 0);
  EXPECT(117, (size_t)inputs[0] == 0x3000 && (size_t)inputs[1] == 0x300000000000);
  EXPECT(118, (size_t)outputs[0] == 0x5000);
  EXPECT(119, stream == NULL);
  return 0;
}
"""


def shape(name, n):
    return {"name": name, "timed": True, "arch": "sm_*", "dtype": "bfloat16",
            "dims": {"n": n, "m": 3}, "scalars": {"factor": -2.5, "big": 2 ** 53 + 1, "causal": True},
            "inputs": [{"name": "a", "dtype": "bfloat16", "dims": [n]},
                       {"name": "b", "dtype": "bool", "dims": [3, n]}],
            "outputs": [{"name": "y", "dtype": "float32", "dims": []}]}


class Cuda(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=_build.temporary_folder())

    def compile(self, text, more_allowed=()):
        path = os.path.join(self.folder, "submission.cu")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return cuda_submission.compile_shared(NVCC, path, "sm_90a", more_allowed)

    def fails(self, words, text, more_allowed=()):
        with self.assertRaises(_build.BuildError) as caught:
            cuda_submission.CudaSubmission(self.compile(text, more_allowed))
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_flags(self):
        text = ("// kjudge_build: -O2 -std=c++20\nint x; // kjudge_build: -no\n"
                "  //kjudge_build:'-DNAME=\"a b\"' -I. -Iinclude/deep -Xptxas=-v,-O3\n"
                "// kjudge_building: -no\n//   kjudge_build: --special=1\n")
        self.assertEqual(
            cuda_submission.flags_of(text, self.folder, ["--special=1"]),
            ["-O2", "-std=c++20", '-DNAME="a b"', "-I.", "-Iinclude/deep", "-Xptxas=-v,-O3",
             "--special=1"])
        self.assertEqual(cuda_submission.flags_of("", self.folder), [])

    def test_flags_that_are_not_allowed(self):
        for flag in ("-Xcompiler=-fplugin=x.so", "-ccbin=gcc", "-O4", "--run", "-o", "other.cu", "-I..",
                     "-I/usr/include", "-Iin/../..", "-arch=sm_80", "-rdc=true", "@file", "-lnccl"):
            with self.subTest(flag=flag):
                self.fails(["submission.cu, line 2", "flag %s " % flag],
                           "\n// kjudge_build: -O3 %s\n" % flag)
        self.fails(["-maxrregcount=*", "--special=1"], "// kjudge_build: --special=2\n", ["--special=1"])
        self.fails(["line 1: kjudge_build: No closing quotation"], "// kjudge_build: '-O3\n")

    def test_link_out_of_the_folder(self):
        os.symlink("/usr/include", os.path.join(self.folder, "inside"))
        self.fails(["-Iinside leaves the submission's folder"], "// kjudge_build: -Iinside\n")

    def test_include_of_several_folders_or_of_the_next_flag(self):
        os.makedirs(os.path.join(self.folder, "in"))
        for flags, named in (("-I.,/usr/include", "-I.,/usr/include"), ("-Iin,..", "-Iin,.."),
                             ("-I -O3", "-I"), ("-O3 -I", "-I")):
            with self.subTest(flags=flags):
                self.fails(["submission.cu, line 1", "flag %s: write one folder" % named],
                           "// kjudge_build: %s\n" % flags)

    def test_flags_line_without_its_colon(self):
        for start in ("// kjudge_build -O3", "//kjudge_build : -O3", "  //\tkjudge_build\t-w"):
            with self.subTest(start=start):
                self.fails(["submission.cu, line 2: write the colon"], "\n%s\n" % start)
        self.assertEqual(cuda_submission.flags_of("// kjudge_build lines hold flags\n", self.folder), [])

    def test_flags_line_after_a_byte_order_mark(self):
        self.fails(["line 1", "flag -no is not allowed"], "\ufeff// kjudge_build: -no\n")

    def test_flags_that_no_program_can_be_given(self):
        for flag in ("-DX=\0", "-I\0", "-DX=\x1b[31m"):
            with self.subTest(flag=flag):
                self.fails(["line 1: kjudge_build: flag '" + repr(flag)[1:-1], "cannot be printed"],
                           "// kjudge_build: %s\n" % flag)
        self.fails(["cannot be started: Argument list too long"], "// kjudge_build: -D%s\n" % ("x" * 200000))

    def test_wrong_KJUDGE_NVCC_is_not_the_contestants_fault(self):
        with unittest.mock.patch.dict(os.environ, KJUDGE_NVCC="/no/such/nvcc"):
            with self.assertRaisesRegex(FileNotFoundError, "KJUDGE_NVCC names /no/such/nvcc"):
                cuda_submission.find_nvcc()
        with unittest.mock.patch.dict(os.environ, KJUDGE_NVCC=NVCC):
            self.assertEqual(cuda_submission.find_nvcc(), NVCC)
        with unittest.mock.patch.dict(os.environ, KJUDGE_NVCC="", PATH=os.path.dirname(NVCC)):
            self.assertEqual(cuda_submission.find_nvcc(), NVCC)

    def test_example_builds(self):
        made = cuda_submission.compile_shared(NVCC, EXAMPLE, "sm_90a")
        shown = subprocess.run(["nm", "-D", "--defined-only", made], capture_output=True, text=True,
                               check=True).stdout
        for name in ("kernel_fn", "kjudge_last_error", "kjudge_error_name"):
            self.assertRegex(shown, r"(?m) [TW] %s$" % name)
        needed = subprocess.run(["readelf", "-d", made], capture_output=True, text=True,
                                check=True).stdout
        self.assertNotIn("libcudart", needed)

    def test_compiler_errors(self):
        self.fails(["submission.cu(2): error", "nonsense"], "\nnonsense;\n")
        self.fails(["undefined reference", "missing"],
                   'void missing();\nextern "C" int kernel_fn() { missing(); return 0; }\n')
        self.fails(["kernel_fn"], "#include <kjudge/submission.h>\n"
                   'extern "C" int kernel_fn(int) { return 0; }\n')

    def test_no_kernel_fn(self):
        self.fails(['no extern "C" int kernel_fn(const kjudge_shape'], "int kernel_fn() { return 0; }\n")

    def arguments(self, name):
        array = types.SimpleNamespace
        return (Arguments(name, [("a", array(address=0x3000)), ("b", array(address=0x300000000000))], {}),
                Arguments(name, [("y", array(address=0x5000))], {}))

    def test_what_the_functions_are_given(self):
        submission = cuda_submission.CudaSubmission(self.compile(CHECKS))
        context = Context({"device": 0, "shapes": [shape("small", 5), shape("large", 70000000000)]})
        with self.assertRaisesRegex(DriverError, "prepare of submission.cu gave error 101") as caught:
            submission.prepare(Context({"device": 0, "shapes": [shape("small", 5)]}))
        self.assertEqual(caught.exception.result, 101)
        state = submission.prepare(context)
        del context
        gc.collect()
        for name in ("small", "large"):
            submission.kernel_fn(state, *self.arguments(name))

    def test_errors_have_names(self):
        submission = cuda_submission.CudaSubmission(self.compile("""
#include <kjudge/submission.h>
extern "C" int kernel_fn(const kjudge_shape *, void *const *, void *const *, cudaStream_t) {
  return cudaErrorInvalidConfiguration;
}
"""))
        state = submission.prepare(Context({"device": 0, "shapes": [shape("small", 5)]}))
        with self.assertRaisesRegex(DriverError, r"gave error 9 \(cudaErrorInvalidConfiguration\)"):
            submission.kernel_fn(state, *self.arguments("small"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
