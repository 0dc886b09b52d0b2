# SPDX-License-Identifier: Apache-2.0
"""Writes a status with a verdict that is no capture's, and fields that nobody knows.

verdict: refused
"""

import json
import os

def prepare(ctx):
    with open(os.path.join(os.path.dirname(os.getcwd()), "made", "status.json"), "w") as file:
        json.dump({"format": "kjudge-capture-status/1", "verdict": "judge_error", "speedup": 1000}, file)
    os._exit(0)


def kernel_fn(state, inputs, outputs):
    pass
