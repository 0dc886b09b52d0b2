# SPDX-License-Identifier: Apache-2.0
"""Calls a challenge's reference.py for every replay: python3 call_reference.py REQUEST.json SOCKET,
started by the supervisor (lib/replay/challenge_python.h) where a reference cannot be recorded.

Inputs and expected outputs are the supervisor's device memory, which comes as descriptors on the
socket. The messages are those of lib/replay/protocol.h: a header and a struct.
"""

import _python  # noqa: F401

import ctypes
import json
import os
import socket
import struct
import sys
import traceback
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p

import _build
import driver
from _arguments import Arguments, Context, match_returned
from capture import short_traceback, torch_stream, torch_tensor, uses_torch, words_of

MAGIC = 0x4b4a5250
BUILD, BUILT, FAILED, TENSOR, CALL, CALLED = 3, 4, 12, 13, 14, 15
READ, READ_WRITE = 1, 3  # CUmemAccess_flags


class Supervisor:
    """The other end of the socket."""

    def __init__(self, descriptor):
        self.socket = socket.socket(fileno=descriptor)

    def receive(self):
        """(kind, body, descriptors); None when the supervisor is gone."""
        message, descriptors, _, _ = socket.recv_fds(self.socket, 2048, 4)
        if not message:
            return None
        magic, kind = struct.unpack_from("<II", message)
        if magic != MAGIC:
            raise ValueError("a message that is none of the protocol's")
        return kind, message[8:], descriptors

    def send(self, kind, body=b""):
        self.socket.send(struct.pack("<II", MAGIC, kind) + body)

    def fail(self, text):
        text = "".join(c if c.isprintable() else " " for c in text).encode()[:900]
        self.send(FAILED, struct.pack("<iII900s", 0, 0, len(text), text))


def map_memory(descriptor, size, access):
    """Address of memory that another process shares. It stays mapped until this one ends."""
    handle, address = c_uint64(), c_uint64()
    driver.call("cuMemImportFromShareableHandle", byref(handle), c_void_p(descriptor), c_int(1))
    os.close(descriptor)
    driver.call("cuMemAddressReserve", byref(address), c_size_t(size), c_size_t(0), c_uint64(0),
                c_uint64(0))
    driver.call("cuMemMap", address, c_size_t(size), c_size_t(0), handle, c_uint64(0))
    here = (ctypes.c_int * 3)(1, driver.device_number(), access)
    driver.call("cuMemSetAccess", address, c_size_t(size), here, c_size_t(1))
    return address.value


def load_module(name):
    """The challenge's own file, which may import what lies beside it."""
    path = os.path.abspath(name + ".py")
    sys.path.insert(0, os.path.dirname(path))
    module = type(sys)(name)
    module.__file__ = path
    sys.modules[name] = module
    with open(path, "rb") as file:
        exec(compile(file.read(), path, "exec", dont_inherit=True), module.__dict__)
    return module


def wrapper():
    """What makes of an array the tensor that the challenge's code is given."""
    return torch_tensor if uses_torch() else lambda array: array


class Reference:
    def __init__(self, request):
        self.request = request
        self.shapes = request["shapes"]
        self.arrays = [{} for _ in self.shapes]  # of the supervisor's memory, by the tensor's number
        self.arguments = []
        self.stream = driver.Stream()
        self.module, self.state = None, None

    def add_tensor(self, shape, tensor, size, descriptor):
        specs = self.shapes[shape]["inputs"] + self.shapes[shape]["outputs"]
        is_input = tensor < len(self.shapes[shape]["inputs"])
        address = map_memory(descriptor, size, READ if is_input else READ_WRITE)
        self.arrays[shape][tensor] = driver.Array(address, specs[tensor]["dims"],
                                                  specs[tensor]["dtype"])

    def prepare(self):
        self.module = load_module("reference")
        if hasattr(self.module, "prepare"):
            self.state = self.module.prepare(Context(self.request))
        driver.synchronize()
        self.arguments = [self.arguments_of(i) for i in range(len(self.shapes))]

    def arguments_of(self, index):
        shape, arrays = self.shapes[index], self.arrays[index]
        wrap = wrapper()
        inputs, copies = [], []
        for i, spec in enumerate(shape["inputs"]):
            array = arrays[i]
            if spec["inout"]:  # kernel_fn may write to it, and the supervisor's is for all
                array = driver.empty(array.shape, array.dtype)
                copies.append((array, arrays[i]))
            inputs.append((spec["name"], wrap(array)))
        outputs = [(spec["name"], wrap(arrays[len(inputs) + i]))
                   for i, spec in enumerate(shape["outputs"])]
        return (Arguments(shape["name"], inputs, dict(shape["dims"], **shape["scalars"])),
                Arguments(shape["name"], outputs, {}), copies)

    def call(self, index):
        shape = self.shapes[index]
        inputs, outputs, copies = self.arguments[index]
        for array, source in copies:
            driver.copy(array, source, stream=self.stream)
        with self.stream, torch_stream(self.stream):
            returned = self.module.kernel_fn(self.state, inputs, outputs)
        for name, tensor in match_returned(returned, shape["outputs"]):
            expected = self.expected(index, name)
            address = driver.address_of(tensor)
            if address != expected.address:
                made = driver.Array(address, expected.shape, expected.dtype, tensor)
                driver.copy(expected, made, stream=self.stream)
        driver.synchronize()

    def expected(self, index, name):
        names = [spec["name"] for spec in self.shapes[index]["outputs"]]
        return self.arrays[index][len(self.shapes[index]["inputs"]) + names.index(name)]


def serve(served, call, supervisor):
    kind_of_call, layout = call
    for received in iter(supervisor.receive, None):
        kind, body, descriptors = received
        if kind == TENSOR:
            served.add_tensor(*struct.unpack("<IIQ", body), *descriptors)
        elif kind == BUILD:
            served.prepare()
            supervisor.send(BUILT, struct.pack("<I", len(served.shapes)))
        elif kind == kind_of_call:
            supervisor.send(*(served.call(*struct.unpack(layout, body)) or (CALLED,)))
        else:
            raise ValueError("message %d is not known" % kind)


def main(make, call, request_path, descriptor):
    supervisor = Supervisor(int(descriptor))
    try:
        with open(request_path, encoding="utf-8") as file:
            request = json.load(file)
        serve(make(request), call, supervisor)
    except BaseException as error:
        trace, place = short_traceback(error)
        print(trace, file=sys.stderr)
        supervisor.fail("raised %s: %s%s" % (type(error).__name__, words_of(error), place))
        return 1
    return 0


def run(make, call, request_path, descriptor):
    """Serves until the supervisor is gone; `call` is the message, and its layout, that a replay
    brings. It is answered with the message that call() returns, `called` where it returns none. Ends
    the process."""
    code = 1
    try:
        code = main(make, call, request_path, descriptor)
    except BaseException:
        traceback.print_exc()
    _build.remove_folder()
    os._exit(code)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    run(Reference, (CALL, "<I"), *sys.argv[1:])
