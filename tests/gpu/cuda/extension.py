# SPDX-License-Identifier: Apache-2.0
"""features.cu as a shared library with a static CUDA runtime, compiled where it is loaded."""

import ctypes
import os
import subprocess

P, L = ctypes.c_void_p, ctypes.c_long
SIGNATURES = {"prepare": [], "run": [ctypes.c_int, P, P, L, P, P], "fault": [ctypes.c_int, P, P, L, P, P],
              "change_variable": [], "read_variable": [P, P, L, P], "plus_one": [P, P, L, P],
              "host_function": [P], "variable_address": [], "external_event": [P],
              "persisting_window": [P, P, L, P], "managed": [L], "child_graph": [P, L, P],
              "memory_node": [P], "one_off": [P, P, L, P], "far_pointer": [P, P, P], "shrinking_shared": [P, P, L, P],
              "conditional_node": [P], "device_updatable": [P, P, L, P]}
ADDRESSES = ("variable_address", "managed")
FEATURES = ["cooperative", "clusters", "programmatic", "priorities", "shared_memory", "copies",
            "attributes"]


def compiled(name, *flags):
    here = os.path.dirname(os.path.abspath(__file__))
    ready = os.environ.get("KJUDGE_TEST_CUDA")  # a folder: compiled once for many captures
    library = os.path.join(ready or here, name + ".so")
    if not ready or not os.path.exists(library):
        subprocess.run(["nvcc", "-arch=sm_90", "-shared", "-Xcompiler", "-fPIC", "-std=c++17", *flags,
                        "-o", library, os.path.join(here, name + ".cu")], check=True)
    return ctypes.CDLL(library)


def load_heap():
    loaded = compiled("heap")
    loaded.allocate.argtypes = [P, P, L, P]
    return loaded


def load_device_launch():
    loaded = compiled("device_launch", "-rdc=true", "-lcudadevrt")
    loaded.start.argtypes = [P, P, L, P]
    return loaded


def load_managed_variable():
    loaded = compiled("managed_variable")
    loaded.add.argtypes = [P, P, L, P]
    return loaded


def load():
    loaded = compiled("features")
    for name, types in SIGNATURES.items():
        function = getattr(loaded, name)
        function.argtypes = types
        function.restype = ctypes.c_void_p if name in ADDRESSES else ctypes.c_int
    if loaded.prepare() != 0:
        raise RuntimeError("features.cu: prepare failed")
    return loaded


def check(result):
    if result != 0:
        raise RuntimeError("CUDA error %d" % result)
