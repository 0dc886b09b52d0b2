# SPDX-License-Identifier: Apache-2.0
"""harness/driver.py and harness.py on the host driver, without the recorder.

python3 driver_test.py LIBRARY_DIR [unittest's arguments]
"""

import ctypes
import math
import os
import subprocess
import sys
import tempfile
import threading
import unittest

LIBRARY = os.path.abspath(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
for variable in ("KJUDGE_DRIVER", "KJUDGE_DRIVER_LIBRARY"):
    os.environ.pop(variable, None)  # as a contestant without kjudge's environment has it
sys.path.insert(0, os.path.join(LIBRARY, "harness"))

import _dlpack  # noqa: E402
import driver  # noqa: E402
from _arguments import Arguments  # noqa: E402


class Arrays(unittest.TestCase):
    def test_values_come_back(self):
        for dtype, values in {
            "float64": [1.5, -2.0, math.inf], "float32": [0.25, -1.0, 3.0], "float16": [0.5, 65504.0],
            "bfloat16": [1.0, -3.5, 0.0], "int64": [-2**63, 2**63 - 1], "int32": [-5, 7],
            "int16": [-300], "int8": [-128, 127], "uint8": [0, 255], "bool": [True, False],
            "float8_e4m3": [0, 126], "float4_e2m1": [1, 15, 8],
        }.items():
            with self.subTest(dtype=dtype):
                self.assertEqual(driver.array(values, dtype).tolist(), values)

    def test_bfloat16_rounds_to_nearest_even(self):
        # 1 + 2^-8 lies between two values; 1 + 3 * 2^-8 does too, with an odd one below.
        self.assertEqual(driver.array([1 + 2**-8, 1 + 3 * 2**-8], "bfloat16").tolist(),
                         [1.0, 1 + 2**-6])
        self.assertTrue(math.isnan(driver.array([math.nan], "bfloat16").tolist()[0]))

    def test_nested(self):
        array = driver.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        self.assertEqual((array.shape, array.strides, array.nbytes), ((2, 3), (3, 1), 24))
        self.assertEqual(array.tolist(), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        self.assertEqual(array.reshape(3, 2).tolist(), [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        self.assertEqual(driver.zeros((0, 4)).tolist(), [])
        self.assertEqual(driver.zeros(()).tolist(), 0.0)

    def test_memory_of_a_view_lives_with_it(self):
        view = driver.array([7.0] * 100).reshape(10, 10)
        self.assertEqual(view.tolist()[9], [7.0] * 10)

    def test_mistakes(self):
        with self.assertRaisesRegex(ValueError, "no element type 'float'; one of float64"):
            driver.empty(3, "float")
        for shape in (-1, (2, -1), 1.5, (True,)):
            with self.assertRaises((ValueError, TypeError)):
                driver.empty(shape)
        with self.assertRaisesRegex(ValueError, "8 bytes for an array of 12"):
            driver.empty(3).copy_from([1.0, 2.0])
        with self.assertRaisesRegex(ValueError, "has 4 elements, not 3"):
            driver.empty(3).reshape(2, 2)

    def test_copies(self):
        a, b = driver.array([1.0, 2.0]), driver.empty(2)
        driver.copy(b, a)
        self.assertEqual(b.tolist(), [1.0, 2.0])
        pinned = driver.HostMemory(8)
        driver.copy(pinned, b)
        driver.synchronize()
        self.assertEqual(bytes(pinned.buffer), b.tobytes())
        back = bytearray(8)
        driver.copy(back, b)
        driver.synchronize()
        self.assertEqual(bytes(back), b.tobytes())
        with self.assertRaisesRegex(ValueError, "8 bytes to 12"):
            driver.copy(driver.empty(3), a)

    def test_dlpack(self):
        array = driver.array([[1.0, 2.0], [3.0, 4.0]])
        self.assertEqual(array.__dlpack_device__(), (1, 0))
        capsule = array.__dlpack__()
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        managed = _dlpack.ManagedTensor.from_address(get(capsule, b"dltensor"))
        tensor = managed.tensor
        self.assertEqual((tensor.data, tensor.ndim, tensor.code, tensor.bits, tensor.lanes),
                         (array.address, 2, 2, 32, 1))
        self.assertEqual((tensor.shape[:2], tensor.strides[:2]), ([2, 2], [2, 1]))
        # A consumer renames the capsule and calls the deleter; both ways leave nothing.
        kept = len(_dlpack.exported)
        del tensor, managed, capsule
        self.assertEqual(len(_dlpack.exported), kept - 1)
        with self.assertRaisesRegex(BufferError, "float8_e4m3"):
            driver.empty(3, "float8_e4m3").__dlpack__()

    def test_the_interface_is_of_where_the_memory_lies(self):
        self.assertTrue(hasattr(driver.empty(1), "__array_interface__"))
        self.assertFalse(hasattr(driver.empty(1), "__cuda_array_interface__"))

    def test_freed_memory_comes_back(self):
        before = driver.memory_info()[0]
        for _ in range(50):
            driver.empty(4 << 20, "uint8")
        self.assertGreater(driver.memory_info()[0], before - (64 << 20))


class Launches(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.module = driver.load(driver.build(os.path.join(HERE, "kernels.c"), ["-O1"]))

    def test_launch(self):
        x, y = driver.array([1.0, 2.0, 3.0]), driver.zeros(3)
        kernel = self.module["scale"]
        self.assertEqual(kernel.parameter_sizes(), [8, 8, 4, 8])
        kernel.launch((2, 1), 1, y, x, 2.0, 3)
        self.assertEqual(y.tolist(), [2.0, 4.0, 6.0])
        kernel.launch(1, (1, 1, 1), y.address, x, ctypes.c_float(0.5), 3, stream=driver.Stream())
        self.assertEqual(y.tolist(), [0.5, 1.0, 1.5])

    def test_streams_and_events(self):
        one, two = driver.Stream(), driver.Stream(priority=-1)
        x, y = driver.array([1.0]), driver.array([0.0])
        before = driver.Event(timing=True).record(one)
        with one:
            self.assertIs(driver.current_stream(), one)
            self.module["scale"].launch(1, 1, y, x, 2.0, 1)
            done = driver.Event(timing=True).record()
        self.assertIs(driver.current_stream(), driver.default_stream())
        two.wait(done)
        self.module["scale"].launch(1, 1, y, y, 2.0, 1, stream=two)
        two.synchronize()
        self.assertEqual(y.tolist(), [4.0])
        self.assertGreaterEqual(done.milliseconds_since(before), 0)

    def test_host_function(self):
        called = threading.Event()
        stream = driver.Stream()
        stream.launch_host_function(called.set)
        stream.synchronize()
        self.assertTrue(called.is_set())

    def test_variables(self):
        factors = self.module.variable("factors")
        self.assertEqual(factors.nbytes, 16)
        with self.assertRaisesRegex(driver.DriverError, "cuModuleGetGlobal"):
            self.module.variable("nothing")

    def test_mistakes(self):
        with self.assertRaisesRegex(KeyError, "has no kernel nothing"):
            self.module["nothing"]
        for grid in (0, -1, (1, 0), (1, 1, 1, 1), (), 1.5, (2 / 1, 1), None, "1"):
            with self.subTest(grid=grid), self.assertRaisesRegex(ValueError, "grid is 1 to 3 positive whole numbers"):
                self.module["store_far"].launch(grid, 1, driver.empty(1))
        with self.assertRaisesRegex(driver.DriverError, "cuModuleLoadData"):
            driver.load(b"nonsense")
        with self.assertRaises(FileNotFoundError):
            driver.load("/no/such/file")

    def test_threads_have_the_context(self):
        made = []
        thread = threading.Thread(target=lambda: made.append(driver.array([5.0]).tolist()))
        thread.start()
        thread.join()
        self.assertEqual(made, [[5.0]])

    def test_build(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "k.cc")
            with open(path, "w") as file:
                file.write('#include <kjudge/host_kernel.h>\n#include <vector>\n'
                           'KJ_KERNEL(five, (float *, y)) { y[0] = std::vector<float>{5}[0]; }\n')
            first = driver.build([path])
            y = driver.zeros(1)
            driver.load(first)["five"].launch(1, 1, y)
            self.assertEqual(y.tolist(), [5.0])
            self.assertEqual(driver.build(path), first)
            with open(path, "a") as file:
                file.write("broken")
            with self.assertRaisesRegex(driver.BuildError, "k.cc:4"):
                driver.build(path)


class Given(unittest.TestCase):
    def test_arguments(self):
        inputs = Arguments("small", [("x", 1), ("w", 2)], {"n": 5, "eps": 0.5})
        self.assertEqual((inputs.x, inputs["w"], inputs[0], inputs.n, inputs.eps, inputs.shape),
                         (1, 2, 1, 5, 0.5, "small"))
        self.assertEqual((list(inputs), len(inputs), inputs.keys()), ([1, 2], 2, ["x", "w"]))
        with self.assertRaisesRegex(AttributeError, "no z here; there are eps, n, shape, w, x"):
            inputs.z
        with self.assertRaises(AttributeError):
            inputs.x = 3


class Harness(unittest.TestCase):
    def test_says_what_is_missing(self):
        done = subprocess.run(["python3", os.path.join(LIBRARY, "harness", "harness.py"), "s.py"],
                              env=dict(os.environ, KJUDGE="/no/such/kjudge"), text=True,
                              stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 6)
        self.assertIn("/no/such/kjudge: not found", done.stderr)
        self.assertIn("cmake --build build", done.stderr)

    def test_runs_selftest(self):
        with tempfile.TemporaryDirectory() as folder:
            fake = os.path.join(folder, "kjudge")
            with open(fake, "w") as file:
                file.write("#!/bin/sh\necho \"$@\"\nexit 1\n")
            os.chmod(fake, 0o755)
            done = subprocess.run(["python3", os.path.join(LIBRARY, "harness", "harness.py"),
                                   "s.py", "--json"], env=dict(os.environ, KJUDGE=fake), text=True,
                                  stdout=subprocess.PIPE, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, "selftest s.py --json\n"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
