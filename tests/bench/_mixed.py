# SPDX-License-Identifier: Apache-2.0
"""The challenge of kernels/mixed.py at lengths from 5 us to 1 ms of an H200."""

from _bench import ON_HOST

TENSORS = {
    "inputs": [{"name": "a", "dtype": "bfloat16", "shape": ["m", "k"],
                "generator": {"kind": "uniform", "low": -1, "high": 1}},
               {"name": "b", "dtype": "bfloat16", "shape": ["k", "n"],
                "generator": {"kind": "uniform", "low": -0.03, "high": 0.03}}],
    "outputs": [{"name": "c", "dtype": "bfloat16", "shape": ["m", "n"], "expected_dtype": "float32",
                 "checks": [{"kind": "close", "rtol": 0.016, "atol": 0.02}]}]}

# Rows of 64 elements, 128 bytes, that a copy reads and writes; rows, columns, depth of a product.
COPIES = {5: 12288, 10: 101376, 30: 438272, 100: 1470464, 300: 4440064, 1000: 14811136}
PRODUCTS = {5: (256, 256, 512), 10: (1024, 1024, 1024), 30: (2048, 2048, 2048), 100: (4096, 2048, 4096),
            300: (4096, 6144, 4096), 1000: (8192, 5120, 8192)}
if ON_HOST:
    COPIES = {5: 1024, 1000: 65536}
    PRODUCTS = {5: (16, 16, 16), 1000: (128, 128, 128)}


def dims(kind, microseconds):
    """(m, n, k) of a kernel of about this length."""
    return (COPIES[microseconds], 64, 64) if kind == "copy" else PRODUCTS[microseconds]


def shapes(kinds=("copy", "product"), lengths=None):
    made = []
    for kind in kinds:
        for length in sorted(COPIES if kind == "copy" else PRODUCTS):
            if lengths and length not in lengths:
                continue
            m, n, k = dims(kind, length)
            made.append({"name": "%s-%dus" % (kind, length), "dtype": "bfloat16",
                         "dims": {"m": m, "n": n, "k": k}, "scalars": {"product": int(kind == "product")}})
    return made


def names(kinds=("copy", "product"), lengths=None):
    return [shape["name"] for shape in shapes(kinds, lengths)]
