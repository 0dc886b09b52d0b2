# SPDX-License-Identifier: Apache-2.0
"""The features without kjudge: native.py N prints the time of each one's graph as JSON, nanoseconds."""

import json
import os
import sys

import torch

import extension

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from _graph import graph_ns  # noqa: E402


def main(n):
    library = extension.load()
    x, y, scratch = (torch.empty(n + 64, device="cuda").normal_() for _ in range(3))
    stream = torch.cuda.Stream()
    told = {}
    for number, name in enumerate(extension.FEATURES):
        def launch():
            extension.check(library.run(number, x.data_ptr(), y.data_ptr(), n, scratch.data_ptr(),
                                        stream.cuda_stream))

        launch()
        told[name] = graph_ns(launch, stream)
    print(json.dumps(told))


main(int(sys.argv[1]))
