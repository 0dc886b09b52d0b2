# SPDX-License-Identifier: Apache-2.0
"""alone.py COMMAND...: runs it in a network namespace of its own, where this user may make one: tests
that run at the same time do not wait for each other's device lock then, which is an abstract socket."""

import ctypes
import fcntl
import os
import socket
import struct
import sys

CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914
IFF_UP = 1

if ctypes.CDLL(None).unshare(CLONE_NEWNET) == 0:
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))
os.execvp(sys.argv[1], sys.argv[1:])
