# SPDX-License-Identifier: Apache-2.0
"""Generators whose inputs belong together: what reference and submission see in hidden inputs, in
every regime, and in the made-up ones of a capture."""

import json
import os

import _kjudge

INPUTS = [
    ("table", "int32", ["rows", 8], {"kind": "block_table", "blocks": 400, "lengths": "length",
                                     "block_size": 16, "unused": -1}),
    ("length", "int32", ["rows"], {"kind": "lengths", "total": 1500, "most": 128, "skew": 1}),
    ("start", "int64", ["ends"], {"kind": "offsets", "of": "length"}),
    ("order", "int32", ["rows", 8], {"kind": "permutation"}),
    ("weight", "int8", ["rows", 64], {"kind": "quantised", "block": 32}),
    ("scale", "float32", ["rows", 2], {"kind": "scales", "of": "weight"}),
    ("mask", "uint8", ["rows"], {"kind": "bernoulli", "probability": 0.5}),
    ("pick", "int32", ["rows"], {"kind": "power_law", "low": 0, "high": 99, "scattered": True}),
    ("key", "int32", ["rows"], {"kind": "sorted", "low": 5, "high": 500}),
    ("expert", "int32", ["rows", 4], {"kind": "one_hot"}),
    ("thin", "float32", ["rows", 16], {"kind": "low_rank", "rank": 1}),
]

# Asserts of the judge's own inputs, in the process that computes the expected outputs.
REFERENCE = """
seen = set()

def kernel_fn(state, inputs, outputs):
    table, length, start = inputs.table.tolist(), inputs.length.tolist(), inputs.start.tolist()
    assert sum(length) == 1500 and max(length) <= 128 and min(length) >= 0
    assert start == [sum(length[:i]) for i in range(len(start))], start
    used = [[b for b in row if b >= 0] for row in table]
    assert [len(row) for row in used] == [(n + 15) // 16 for n in length]
    blocks = sum(used, [])
    assert len(set(blocks)) == len(blocks) and max(blocks) < 400
    assert all(sorted(row) == list(range(8)) for row in inputs.order.tolist())
    weight, scale = inputs.weight.tolist(), inputs.scale.tolist()
    for row, scales in zip(weight, scale):
        for b, s in enumerate(scales):
            assert max(map(abs, row[32 * b:32 * b + 32])) == 127 and s > 0
    assert set(inputs.mask.tolist()) <= {0, 1}
    key = inputs.key.tolist()
    assert key == sorted(key) and 5 <= key[0] and key[-1] <= 500
    assert all(sorted(row) == [0, 0, 0, 1] for row in inputs.expert.tolist())
    thin = inputs.thin.tolist()
    for row in thin:  # a multiple of the first
        assert all(abs(abs(v / thin[0][0]) - abs(row[0] / thin[0][0])) < 1e-4 for v in row)
    assert tuple(blocks) not in seen
    seen.add(tuple(blocks))
    outputs.y.copy_from([sum(i * v for i, v in enumerate(sum(table, []))),
                         sum(i * v for i, v in enumerate(start)),
                         sum(i * v for i, v in enumerate(sum(weight, []))),
                         sum(i * v for i, v in enumerate(inputs.pick.tolist()))])
"""

SUBMISSION = """
import driver

SOURCE = '''
#include <kjudge/host_kernel.h>

KJ_KERNEL(weigh, (long *, y), (const int *, table), (const long *, start), (const signed char *, weight),
          (const int *, pick), (long, rows)) {
  if (block->index.x != 0) return;
  y[0] = y[1] = y[2] = y[3] = 0;
  for (long i = 0; i < rows * 8; ++i) y[0] += i * table[i];
  for (long i = 0; i < rows + 1; ++i) y[1] += i * start[i];
  for (long i = 0; i < rows * 64; ++i) y[2] += i * weight[i];
  for (long i = 0; i < rows; ++i) y[3] += i * pick[i];
}
'''


def prepare(ctx):
    with open("weigh.c", "w") as file:
        file.write(SOURCE)
    return driver.load(driver.build("weigh.c")).kernel("weigh")


def kernel_fn(state, inputs, outputs):
    state.launch(1, 1, outputs.y, inputs.table, inputs.start, inputs.weight, inputs.pick, inputs.rows)
"""


class Generators(_kjudge.Case):
    def challenge(self):
        folder = self.path("challenge")
        os.mkdir(folder)
        challenge = {
            "format": "kjudge-challenge/1", "name": "weigh", "version": 1, "title": "Weigh",
            "author": "kjudge", "reference": "python",
            "tensors": {
                "inputs": [{"name": name, "dtype": dtype, "shape": shape, "generator": generator}
                           for name, dtype, shape, generator in INPUTS],
                "outputs": [{"name": "y", "dtype": "int64", "shape": [4]}]},
            "regimes": [
                {"name": "nominal", "pairs_per_round": 4},
                {"name": "even", "pairs_per_round": 1, "generators": {
                    "length": {"kind": "lengths", "total": 1500, "least": 20, "skew": 0}}}],
            "shapes": [{"arch": "x86_64", "dtype": "float32", "dims": {"rows": 40, "ends": 41}}],
        }
        for name, text in (("challenge.json", json.dumps(challenge)), ("reference.py", REFERENCE),
                           ("baseline.py", SUBMISSION), ("submission.py", SUBMISSION),
                           ("TASK.md", "Weigh.\\n")):
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        return folder

    def test_inputs_that_belong_together(self):
        right = self.write("right.py", SUBMISSION)
        result = self.evaluate(right, "--challenge", self.challenge())
        self.assertEqual(result["verdict"], "accepted", result["message"])
        # Else a replay on made-up inputs gave other bits than the capture did on its own.
        self.assertEqual(result["message"], "")
        self.assertEqual({pair["regime"] for round_ in result["shapes"][0]["rounds"]
                          for pair in round_["pairs"]}, {"nominal", "even"})


if __name__ == "__main__":
    _kjudge.main()
