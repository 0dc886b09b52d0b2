# SPDX-License-Identifier: Apache-2.0
"""What a submission is given, and what it may give back.

    prepare(ctx) -> state                  ctx: Context
    kernel_fn(state, inputs, outputs)      inputs, outputs: Arguments
"""

import driver


class ContractError(Exception):
    """The submission does not keep to the contract; the message says how."""


class Arguments:
    """The tensors of one shape by name (inputs.x), by position (inputs[0]) or in order (for t in
    inputs); of inputs also the dimensions and scalars by name (inputs.rows). `shape` is the shape's
    name."""

    def __init__(self, shape, tensors, numbers):
        self.__dict__.update(numbers)
        self.__dict__.update(tensors)
        self.__dict__["shape"] = shape
        self.__dict__["_tensors"] = tuple(tensors)

    def __getattr__(self, name):
        known = [key for key in self.__dict__ if not key.startswith("_")]
        raise AttributeError("no %s here; there are %s" % (name, ", ".join(sorted(known))))

    def __setattr__(self, name, value):
        raise AttributeError("%s cannot be replaced: write into its memory, or return a tensor" % name)

    def __getitem__(self, key):
        if isinstance(key, str):
            return getattr(self, key)
        return self._tensors[key][1]

    def __iter__(self):
        return iter([tensor for _, tensor in self._tensors])

    def __len__(self):
        return len(self._tensors)

    def keys(self):
        return [name for name, _ in self._tensors]

    def __repr__(self):
        return "Arguments(shape=%r, %s)" % (
            self.shape, ", ".join("%s=%r" % named for named in self._tensors))


class TensorSpec:
    """name, dtype and dims of an argument; `inout` for an input that kernels may also write."""

    def __init__(self, spec):
        self.name = spec["name"]
        self.dtype = spec["dtype"]
        self.dims = tuple(spec["dims"])
        self.inout = spec.get("inout", False)

    def __repr__(self):
        return "TensorSpec(%s: %s%s)" % (self.name, self.dtype, list(self.dims))


class ShapeSpec:
    """One shape of the challenge: name, timed, arch, dtype, dims and scalars (dicts), inputs and
    outputs (TensorSpecs). Dimensions and scalars are attributes too."""

    def __init__(self, shape):
        self.__dict__.update(shape["dims"])
        self.__dict__.update(shape["scalars"])
        self.name = shape["name"]
        self.timed = shape["timed"]
        self.arch = shape["arch"]
        self.dtype = shape["dtype"]
        self.dims = dict(shape["dims"])
        self.scalars = dict(shape["scalars"])
        self.inputs = [TensorSpec(spec) for spec in shape["inputs"]]
        self.outputs = [TensorSpec(spec) for spec in shape["outputs"]]

    def __repr__(self):
        return "ShapeSpec(%s: %s)" % (self.name, self.dims)


class Context:
    """What prepare is given: where it runs and which shapes will come, never their values."""

    def __init__(self, request):
        self.device = request["device"]
        self.rank = 0
        self.world_size = 1
        self.comm = None
        self.shapes = [ShapeSpec(shape) for shape in request["shapes"]]

    def __repr__(self):
        return "Context(device=%d, shapes=%r)" % (self.device, self.shapes)


_TORCH_NAMES = {"float8_e4m3fn": "float8_e4m3", "float4_e2m1fn_x2": "float4_e2m1"}
_TYPESTRS = {"f8": "float64", "f4": "float32", "f2": "float16", "V2": "bfloat16", "i8": "int64",
             "i4": "int32", "i2": "int16", "i1": "int8", "u1": "uint8", "b1": "bool"}


def _described(value):
    """(shape, dtype or None, contiguous) of any tensor; None when it is none."""
    if isinstance(value, driver.Array):
        return value.shape, value.dtype, True
    if hasattr(value, "data_ptr") and hasattr(value, "is_contiguous"):  # torch
        name = str(value.dtype).rpartition(".")[2]
        return tuple(value.shape), _TORCH_NAMES.get(name, name), value.is_contiguous()
    for name in ("__cuda_array_interface__", "__array_interface__"):
        interface = getattr(value, name, None)
        if interface is not None:
            dtype = _TYPESTRS.get(interface["typestr"][1:])
            shape = tuple(interface["shape"])
            strides = interface.get("strides")
            size = int(interface["typestr"][2:])
            expected = tuple(step * size for step in driver._contiguous(shape))
            return shape, dtype, strides is None or tuple(strides) == expected
    return None


def _check(name, value, spec):
    found = _described(value)
    if found is None:
        raise ContractError("kernel_fn returned a %s for output %s, not a tensor" %
                            (type(value).__name__, name))
    shape, dtype, contiguous = found
    if shape != tuple(spec["dims"]):
        raise ContractError("output %s was returned with dims %s, the challenge asks for %s" %
                            (name, list(shape), list(spec["dims"])))
    if dtype != spec["dtype"]:
        raise ContractError("output %s was returned as %s, the challenge asks for %s" %
                            (name, dtype, spec["dtype"]))
    if not contiguous:
        raise ContractError("output %s was returned with gaps; make it contiguous" % name)


def match_returned(returned, specs):
    """[(output's name, tensor)] of what kernel_fn returned: a tensor, a tuple or list in the order
    of the outputs, or a dict by name; [] for None: it wrote the outputs it was given."""
    if returned is None:
        return []
    names = [spec["name"] for spec in specs]
    if isinstance(returned, Arguments):
        returned = dict(returned._tensors)
    if isinstance(returned, dict):
        if set(returned) != set(names):
            raise ContractError("kernel_fn returned outputs %s, the challenge has %s" %
                                (", ".join(map(str, returned)) or "(none)", ", ".join(names)))
        values = [returned[name] for name in names]
    else:
        values = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        if len(values) != len(names):
            raise ContractError("kernel_fn returned %d tensors, the challenge has %d outputs (%s)" %
                                (len(values), len(names), ", ".join(names)))
    for name, value, spec in zip(names, values, specs):
        _check(name, value, spec)
    return list(zip(names, values))
