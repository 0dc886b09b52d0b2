// SPDX-License-Identifier: Apache-2.0
#pragma once

// The host driver: the CUDA driver API on CPU cores, one device for now.
//
// A call goes through entry.h (faults asked for, initialization, the context's sticky error) to the
// file of its subject. Work that is queued or captured is one type (work.h); a stream is a queue
// and a thread that executes it (stream.h), a grid is spread over the cores (pool.h), code that may
// fault or never end runs guarded (guard.h). memory.h is the table of all addresses the driver
// knows.
//
// Where it differs from a GPU:
// - Contexts share addresses: they do not protect memory from each other. Processes do.
// - The virtual memory calls (cuMemCreate to cuMemSetAccess) need no context and work in a broken
// one.
// - Blocks of a launch may run one after another: no cooperative launches, no clusters in fact.
//   Attributes of a launch are checked, kept and answered, and change nothing.
// - Compute capability is 0.0: nothing made for a GPU loads here. No textures, arrays, IPC handles,
//   memory pools, green contexts; conditional nodes can be described but not instantiated.
// - Kernels are code of this process. Loading a module runs its constructors, from a memfd opened
//   through /proc/self/fd, which must be there.
//
// Environment, read once:
//   KJUDGE_HOST_MEMORY             bytes of device memory; otherwise the machine's or container's
//   KJUDGE_HOST_DEVICES            how many devices there seem to be, 1 to 16; otherwise 1
//   KJUDGE_HOST_LAUNCH_TIMEOUT_MS  a launch over it is CUDA_ERROR_LAUNCH_TIMEOUT, sticky
//   KJUDGE_HOST_FAULT              "cuMemCreate:3:OUT_OF_MEMORY,...": the third call of it fails, in
//                                  each process; in one kind of them with "capture-submission/",
//                                  "worker-baseline/", "worker/" (of both arms), "supervisor/" before
//   KJUDGE_HOST_TRACE              file that gets a line "process pid call [error]" for each call
//   KJUDGE_HOST_PROCESS            what this process is to the two above; set by what starts it
//   KJUDGE_HOST_LOG=1              says on stderr why a module was not loaded

// The API's declarations, for those who define it: everything else here is hidden.
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop
