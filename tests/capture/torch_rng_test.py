# SPDX-License-Identifier: Apache-2.0
"""Whether kernel_fn drew random numbers with torch, as the harness asks it."""

import array
import types
import unittest

import _capture

import _torch_rng  # noqa: E402  (of the harness, whose folder _capture adds)


class TorchRng(unittest.TestCase):
    """What the harness asks torch, of a torch that is made up."""

    class Generator:
        def __init__(self, state):
            self.state = state

        def get_state(self):
            return array.array("B", self.state)

    def torch(self, *states):
        cuda = types.SimpleNamespace(default_generators=tuple(map(self.Generator, states)))
        return types.SimpleNamespace(cuda=cuda)

    def test_a_draw_changes_the_states(self):
        before = _torch_rng.states(self.torch(b"\1\0", b"\0\0"))
        self.assertEqual(before, _torch_rng.states(self.torch(b"\1\0", b"\0\0")))
        self.assertNotEqual(before, _torch_rng.states(self.torch(b"\1\4", b"\0\0")))
        self.assertEqual(_torch_rng.states(self.torch()), [])

    def test_errors(self):
        for words in ("Offset increment outside graph capture encountered unexpectedly.",
                      "Attempt to increase offset for a CUDA generator not in capture mode.",
                      "Cannot call CUDAGeneratorImpl::set_current_seed during CUDA graph capture."):
            self.assertTrue(_torch_rng.is_rng_error(RuntimeError(words)))
        self.assertFalse(_torch_rng.is_rng_error(RuntimeError("CUDA error: invalid argument")))
        self.assertFalse(_torch_rng.is_rng_error(ValueError("CUDAGeneratorImpl")))


if __name__ == "__main__":
    _capture.main()
