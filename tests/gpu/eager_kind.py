# SPDX-License-Identifier: Apache-2.0
"""Calls a submission's kernel_fn without kjudge's recorder: eager_kind.py SUBMISSION SHAPES FOLDER RUNS.

SHAPES is a JSON list of shapes as a capture's request has them. Writes FOLDER/SHAPE.x.in and
FOLDER/SHAPE.y.eager, RUNS tensors each.
"""

import atexit
import json
import os
import shutil
import sys
import tempfile

from _gpu import BINARY

os.environ["KJUDGE_DRIVER"] = "cuda"  # which a capture would set
# Of the program under test: kjudge's headers lie beside it, too.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(BINARY)), "lib", "kjudge", "harness"))
import cuda_submission  # noqa: E402
import driver  # noqa: E402
from _arguments import Arguments, Context  # noqa: E402


def load(path):
    # What it writes beside itself is not left in the tree.
    folder = tempfile.mkdtemp(prefix="kjudge-eager-")
    atexit.register(shutil.rmtree, folder)
    shutil.copytree(os.path.dirname(path), folder, dirs_exist_ok=True)
    path = os.path.join(folder, os.path.basename(path))
    if path.endswith(".cu"):
        return cuda_submission.CudaSubmission(cuda_submission.compile_shared(
            cuda_submission.find_nvcc(), path, cuda_submission.device_arch(), []))
    sys.path.insert(0, os.path.dirname(path))
    os.chdir(os.path.dirname(path))
    import importlib
    return importlib.import_module(os.path.basename(path)[:-3])


def main(path, shapes, folder, runs):
    submission = load(path)
    uses_torch = "torch" in sys.modules  # else it is given kjudge's own arrays, as in a capture
    import torch
    torch.set_grad_enabled(False)
    torch.zeros(1, device="cuda")

    def given(tensor, dtype):
        return tensor if uses_torch else driver.Array(tensor.data_ptr(), tensor.shape, dtype, tensor)

    prepare = getattr(submission, "prepare", None)
    state = prepare(Context({"device": 0, "shapes": shapes})) if prepare else None
    for shape in shapes:
        dims, name, dtype = shape["dims"], shape["name"], shape["dtype"]
        generator = torch.Generator("cuda").manual_seed(11)
        with open(os.path.join(folder, name + ".x.in"), "wb") as into, \
                open(os.path.join(folder, name + ".y.eager"), "wb") as out:
            for _ in range(runs):
                x = torch.randn(dims["rows"], dims["cols"], device="cuda", generator=generator)
                x = x.to(getattr(torch, dtype))
                y = torch.empty_like(x)
                torch.cuda.synchronize()
                returned = submission.kernel_fn(state, Arguments(name, [("x", given(x, dtype))], dims),
                                                Arguments(name, [("y", given(y, dtype))], {}))
                torch.cuda.synchronize()
                y = y if returned is None else returned
                into.write(x.view(torch.uint8).cpu().numpy().tobytes())
                out.write(y.view(torch.uint8).cpu().numpy().tobytes())


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
