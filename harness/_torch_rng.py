# SPDX-License-Identifier: Apache-2.0
"""Whether a submission draws random numbers with torch. Torch gives the kernel a seed and an offset
that it advances on the host, where a replay has no torch: every replay would draw the same."""

# Of what torch says when a generator is used while it does not know that a graph is captured.
_WORDS = ("CUDAGeneratorImpl", "CUDA generator", "CUDA RNG generator",
          "Offset increment outside graph capture")


def is_rng_error(error):
    return isinstance(error, RuntimeError) and any(word in str(error) for word in _WORDS)


def states(torch):
    """Seed and offset of torch's generator of every GPU; a draw changes them."""
    return [bytes(generator.get_state().tolist()) for generator in torch.cuda.default_generators]
