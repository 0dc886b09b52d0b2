# SPDX-License-Identifier: Apache-2.0
"""Programs of torch: make(name) draws a program's weights and returns a function of a float32 vector
of SIZES[name] elements that returns a tensor. The same in every process."""

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import scale_kernel

BF, HALF, FLOAT = torch.bfloat16, torch.float16, torch.float32
M = 1 << 20
PROGRAMS, SIZES = {}, {}


def program(size, **variants):
    """Registers make_NAME(weights) under the function's name; with variants, one for each."""

    def add(make):
        for suffix, argument in (variants or {"": None}).items():
            name = make.__name__ + ("_" + suffix if suffix else "")
            PROGRAMS[name] = (lambda a: lambda: make() if a is None else make(a))(argument)
            SIZES[name] = size
        return make

    return add


def make(name):
    torch.manual_seed(sum(map(ord, name)))
    return PROGRAMS[name]()


def randn(*shape, dtype=FLOAT):
    return torch.randn(*shape, device="cuda", dtype=FLOAT).mul_(0.05).to(dtype)


@program(4 * M, bf16=BF, fp16=HALF, fp32=FLOAT)
def product(dtype):
    w = randn(2048, 2048, dtype=dtype)
    return lambda x: x.view(2048, 2048).to(dtype) @ w


@program(16 * 8192)
def skinny_product():
    w = randn(8192, 8192, dtype=BF)
    return lambda x: x.view(16, 8192).to(BF) @ w


@program(8192)
def matrix_vector():
    w = randn(8192, 8192, dtype=BF)
    return lambda x: w @ x.to(BF)


@program(4 * M)
def batched_product():
    w = randn(64, 256, 256, dtype=BF)
    return lambda x: torch.bmm(x.view(64, 256, 256).to(BF), w)


@program(2 * M)
def linear_bias_relu():
    w, b = randn(4096, 1024, dtype=BF), randn(4096, dtype=BF)
    return lambda x: F.relu(F.linear(x.view(2048, 1024).to(BF), w, b))


@program(4 * M)
def addmm_half():
    w, b = randn(2048, 1024, dtype=HALF), randn(1024, dtype=HALF)
    return lambda x: torch.addmm(b, x.view(2048, 2048).to(HALF), w)


@program(4 * M)
def product_fp8():
    w = randn(2048, 2048).to(torch.float8_e4m3fn)
    one = torch.ones((), device="cuda")
    return lambda x: torch._scaled_mm(x.view(2048, 2048).to(torch.float8_e4m3fn), w.t(), scale_a=one,
                                      scale_b=one, out_dtype=BF)


@program(8 * 64 * 56 * 56)
def conv_3x3_fp32():
    w = randn(64, 64, 3, 3)
    return lambda x: F.conv2d(x.view(8, 64, 56, 56), w, padding=1)


@program(16 * 128 * 56 * 56)
def conv_3x3_channels_last():
    w = randn(128, 128, 3, 3, dtype=BF).to(memory_format=torch.channels_last)
    return lambda x: F.conv2d(
        x.view(16, 128, 56, 56).to(BF).to(memory_format=torch.channels_last), w, padding=1)


@program(16 * 256 * 28 * 28)
def conv_1x1_half():
    w = randn(512, 256, 1, 1, dtype=HALF)
    return lambda x: F.conv2d(x.view(16, 256, 28, 28).to(HALF), w)


@program(16 * 128 * 56 * 56)
def conv_depthwise():
    w = randn(128, 1, 3, 3)
    return lambda x: F.conv2d(x.view(16, 128, 56, 56), w, padding=1, groups=128)


@program(16 * 64 * 4096)
def conv_1d():
    w = randn(64, 64, 5)
    return lambda x: F.conv1d(x.view(16, 64, 4096), w, padding=2)


@program(8 * 64 * 28 * 28)
def conv_transposed():
    w = randn(64, 64, 4, 4)
    return lambda x: F.conv_transpose2d(x.view(8, 64, 28, 28), w, stride=2, padding=1)


@program(2 * 32 * 32 * 32 * 32)
def conv_3d():
    w = randn(32, 32, 3, 3, 3)
    return lambda x: F.conv3d(x.view(2, 32, 32, 32, 32), w, padding=1)


@program(16 * 64 * 112 * 112)
def max_pool():
    return lambda x: F.max_pool2d(x.view(16, 64, 112, 112), 3, 2, 1)


@program(16 * 64 * 112 * 112)
def average_pool():
    return lambda x: F.avg_pool2d(x.view(16, 64, 112, 112), 2)


@program(64 * 512 * 14 * 14)
def adaptive_pool():
    return lambda x: F.adaptive_avg_pool2d(x.view(64, 512, 14, 14), 1)


@program(16 * M, fp32=FLOAT, bf16=BF)
def layer_norm(dtype):
    w, b = randn(4096, dtype=dtype), randn(4096, dtype=dtype)
    return lambda x: F.layer_norm(x.view(-1, 4096).to(dtype), (4096,), w, b)


@program(16 * M)
def rms_norm():
    w = randn(4096)
    return lambda x: F.rms_norm(x.view(-1, 4096), (4096,), w)


@program(16 * 128 * 56 * 56)
def group_norm():
    w, b = randn(128), randn(128)
    return lambda x: F.group_norm(x.view(16, 128, 56, 56), 32, w, b)


@program(16 * 128 * 56 * 56)
def batch_norm():
    mean, var, w, b = randn(128), randn(128).abs() + 1, randn(128), randn(128)
    return lambda x: F.batch_norm(x.view(16, 128, 56, 56), mean, var, w, b)


@program(16 * 128 * 56 * 56)
def instance_norm():
    return lambda x: F.instance_norm(x.view(16, 128, 56, 56))


@program(16 * M)
def softmax():
    return lambda x: torch.softmax(x.view(4096, 4096), 1)


@program(16 * M)
def log_softmax_columns():
    return lambda x: torch.log_softmax(x.view(4096, 4096), 0)


@program(16 * M, all=lambda x: x.sum(), rows=lambda x: x.view(4096, 4096).sum(1),
         columns=lambda x: x.view(4096, 4096).sum(0), mean=lambda x: x.mean(),
         largest=lambda x: x.view(4096, 4096).amax(1), where=lambda x: x.view(4096, 4096).argmax(1),
         variance=lambda x: x.view(4096, 4096).var(1), norm=lambda x: x.norm(),
         logsumexp=lambda x: x.view(4096, 4096).logsumexp(1),
         cumulative=lambda x: x.view(4096, 4096).cumsum(1))
def reduction(function):
    return function


@program(2 * M)
def top_k():
    return lambda x: x.view(512, 4096).topk(64, dim=1).values


@program(M)
def sort():
    return lambda x: x.view(256, 4096).sort(1).values


@program(16 * M, gelu=F.gelu, silu=F.silu, tanh=torch.tanh, sigmoid=torch.sigmoid)
def activation(function):
    return function


@program(16 * M)
def gated():
    return lambda x: (lambda a, b: F.silu(a) * b)(*x.view(2048, 8192).to(BF).chunk(2, 1))


@program(2048 * 1024)
def feed_forward():
    a, b = randn(4096, 1024, dtype=BF), randn(1024, 4096, dtype=BF)
    norm = randn(1024, dtype=BF)

    def run(x):
        x = x.view(2048, 1024).to(BF)
        y = F.layer_norm(x, (1024,), norm)
        return x + F.linear(F.gelu(F.linear(y, a)), b)

    return run


@program(3 * 4 * 16 * 1024 * 64, flash=SDPBackend.FLASH_ATTENTION, cudnn=SDPBackend.CUDNN_ATTENTION,
         efficient=SDPBackend.EFFICIENT_ATTENTION, math=SDPBackend.MATH)
def attention(backend):
    def run(x):
        q, k, v = x.to(BF).view(3, 4, 16, 1024, 64)
        with sdpa_kernel([backend]):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    return run


@program(16 * M)
def rotary():
    angle = randn(4096, 64)
    sine, cosine = angle.sin(), angle.cos()

    def run(x):
        a, b = x.view(4096, 32, 128).chunk(2, 2)
        s, c = sine[:, None], cosine[:, None]
        return torch.cat([a * c - b * s, a * s + b * c], 2)

    return run


@program(4096)
def embedding():
    table = randn(50000, 1024)
    return lambda x: F.embedding((x.abs() * 10000).long() % 50000, table)


@program(4 * M)
def transpose():
    return lambda x: x.view(2048, 2048).t().contiguous()


@program(2 * M)
def cross_entropy():
    target = torch.arange(1024, device="cuda")
    return lambda x: F.cross_entropy(x.view(1024, 2048), target, reduction="none")


@program(M)
def zeroed():
    """A memset, then adds."""
    buffer = torch.empty(M, device="cuda")

    def run(x):
        buffer.zero_()
        return buffer.add_(x, alpha=2)

    return run


@program(4 * M)
def two_triton_configurations():
    return lambda x: scale_kernel.scale(scale_kernel.scale(x, 3.0, 128), 0.5, 1024)


@program(M)
def three_streams():
    w = [randn(1024, 1024, dtype=BF) for _ in range(3)]
    streams = [torch.cuda.Stream() for _ in range(2)]

    def run(x):
        x = x.view(1024, 1024).to(BF)
        main = torch.cuda.current_stream()
        parts = [x @ w[0]]
        for stream, weight in zip(streams, w[1:]):
            stream.wait_stream(main)
            with torch.cuda.stream(stream):
                parts.append(x @ weight)
        for stream in streams:
            main.wait_stream(stream)
        return parts[0] + parts[1] + parts[2]

    return run


@program(4 * M)
def mixed():
    """One Triton kernel at two configurations, a cuBLAS product, layer_norm, cuDNN attention and a
    memset."""
    w = randn(1024, 1024, dtype=BF)
    norm = randn(1024, dtype=BF)
    buffer = torch.empty(4 * M, device="cuda", dtype=BF)

    def run(x):
        x = scale_kernel.scale(scale_kernel.scale(x, 3.0, 128), 0.5, 1024).to(BF)
        y = F.layer_norm(x.view(4096, 1024) @ w, (1024,), norm)
        q = y.view(4, 16, 1024, 64)
        buffer.zero_()
        with sdpa_kernel([SDPBackend.CUDNN_ATTENTION]):
            return buffer.add_(F.scaled_dot_product_attention(q, q, q).reshape(-1))

    return run


@program(8192)
def large_weights():
    """210 MB that do not compress."""
    w = randn(6400, 8192)
    return lambda x: w @ x


@program(4096)
def thousand_nodes():
    def run(x):
        for _ in range(999):
            x = x * 1.0001
        return x

    return run
