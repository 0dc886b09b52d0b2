// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

// The driver's entries that have a device or a stream do something, but for launches and graphs,
// whose hooks say more: what they do outside a capture is in no recording. W(X, exported name, name
// for cuGetProcAddress, first CUDA version with this signature) are those that wait for it, Q(...,
// the version of the per-thread one) those that take a stream.
#define KJ_WORK_ENTRIES(W, Q, X)                                                             \
  W(X, cuMemcpy, "cuMemcpy", 4000)                                                           \
  W(X, cuMemcpyPeer, "cuMemcpyPeer", 4000)                                                   \
  W(X, cuMemcpyHtoD_v2, "cuMemcpyHtoD", 3020)                                                \
  W(X, cuMemcpyDtoH_v2, "cuMemcpyDtoH", 3020)                                                \
  W(X, cuMemcpyDtoD_v2, "cuMemcpyDtoD", 3020)                                                \
  W(X, cuMemcpyDtoA_v2, "cuMemcpyDtoA", 3020)                                                \
  W(X, cuMemcpyAtoD_v2, "cuMemcpyAtoD", 3020)                                                \
  W(X, cuMemcpyHtoA_v2, "cuMemcpyHtoA", 3020)                                                \
  W(X, cuMemcpyAtoH_v2, "cuMemcpyAtoH", 3020)                                                \
  W(X, cuMemcpyAtoA_v2, "cuMemcpyAtoA", 3020)                                                \
  W(X, cuMemcpy2D_v2, "cuMemcpy2D", 3020)                                                    \
  W(X, cuMemcpy2DUnaligned_v2, "cuMemcpy2DUnaligned", 3020)                                  \
  W(X, cuMemcpy3D_v2, "cuMemcpy3D", 3020)                                                    \
  W(X, cuMemcpy3DPeer, "cuMemcpy3DPeer", 4000)                                               \
  W(X, cuMemsetD8_v2, "cuMemsetD8", 3020)                                                    \
  W(X, cuMemsetD16_v2, "cuMemsetD16", 3020)                                                  \
  W(X, cuMemsetD32_v2, "cuMemsetD32", 3020)                                                  \
  W(X, cuMemsetD2D8_v2, "cuMemsetD2D8", 3020)                                                \
  W(X, cuMemsetD2D16_v2, "cuMemsetD2D16", 3020)                                              \
  W(X, cuMemsetD2D32_v2, "cuMemsetD2D32", 3020)                                              \
  Q(X, cuMemcpyAsync, "cuMemcpyAsync", 4000, 7000)                                           \
  Q(X, cuMemcpyPeerAsync, "cuMemcpyPeerAsync", 4000, 7000)                                   \
  Q(X, cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync", 3020, 7000)                                \
  Q(X, cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync", 3020, 7000)                                \
  Q(X, cuMemcpyDtoDAsync_v2, "cuMemcpyDtoDAsync", 3020, 7000)                                \
  Q(X, cuMemcpyHtoAAsync_v2, "cuMemcpyHtoAAsync", 3020, 7000)                                \
  Q(X, cuMemcpyAtoHAsync_v2, "cuMemcpyAtoHAsync", 3020, 7000)                                \
  Q(X, cuMemcpy2DAsync_v2, "cuMemcpy2DAsync", 3020, 7000)                                    \
  Q(X, cuMemcpy3DAsync_v2, "cuMemcpy3DAsync", 3020, 7000)                                    \
  Q(X, cuMemcpy3DPeerAsync, "cuMemcpy3DPeerAsync", 4000, 7000)                               \
  Q(X, cuMemcpyBatchAsync_v2, "cuMemcpyBatchAsync", 13000, 13000)                            \
  Q(X, cuMemcpy3DBatchAsync_v2, "cuMemcpy3DBatchAsync", 13000, 13000)                        \
  Q(X, cuMemsetD8Async, "cuMemsetD8Async", 3020, 7000)                                       \
  Q(X, cuMemsetD16Async, "cuMemsetD16Async", 3020, 7000)                                     \
  Q(X, cuMemsetD32Async, "cuMemsetD32Async", 3020, 7000)                                     \
  Q(X, cuMemsetD2D8Async, "cuMemsetD2D8Async", 3020, 7000)                                   \
  Q(X, cuMemsetD2D16Async, "cuMemsetD2D16Async", 3020, 7000)                                 \
  Q(X, cuMemsetD2D32Async, "cuMemsetD2D32Async", 3020, 7000)                                 \
  Q(X, cuMemPrefetchAsync_v2, "cuMemPrefetchAsync", 12020, 12020)                            \
  Q(X, cuMemPrefetchBatchAsync, "cuMemPrefetchBatchAsync", 13000, 13000)                     \
  Q(X, cuMemDiscardBatchAsync, "cuMemDiscardBatchAsync", 13000, 13000)                       \
  Q(X, cuMemDiscardAndPrefetchBatchAsync, "cuMemDiscardAndPrefetchBatchAsync", 13000, 13000) \
  Q(X, cuMemBatchDecompressAsync, "cuMemBatchDecompressAsync", 12060, 12060)                 \
  Q(X, cuStreamWriteValue32_v2, "cuStreamWriteValue32", 11070, 11070)                        \
  Q(X, cuStreamWriteValue64_v2, "cuStreamWriteValue64", 11070, 11070)                        \
  Q(X, cuStreamBatchMemOp_v2, "cuStreamBatchMemOp", 11070, 11070)                            \
  Q(X, cuSignalExternalSemaphoresAsync, "cuSignalExternalSemaphoresAsync", 10000, 10000)     \
  Q(X, cuLaunchHostFunc, "cuLaunchHostFunc", 10000, 10000)                                   \
  Q(X, cuStreamAddCallback, "cuStreamAddCallback", 5000, 7000)

// X(exported name, name, version, per-thread default stream) of all of them, as in KJ_HOOKS.
#define KJ_WAITING_WORK(X, entry, base, version) \
  X(entry, base, version, false)                 \
  X(entry##_ptds, base, 7000, true)
#define KJ_QUEUED_WORK(X, entry, base, version, per_thread_version) \
  X(entry, base, version, false)                                    \
  X(entry##_ptsz, base, per_thread_version, true)
#define KJ_WORK_HOOKS(X) KJ_WORK_ENTRIES(KJ_WAITING_WORK, KJ_QUEUED_WORK, X)

// cuda.h declares those of the per-thread default stream under another setting only.
extern "C" {
#define KJ_DECLARE_WAITING(X, entry, base, version) extern decltype(::entry) entry##_ptds;
#define KJ_DECLARE_QUEUED(X, entry, base, version, per_thread_version) \
  extern decltype(::entry) entry##_ptsz;
KJ_WORK_ENTRIES(KJ_DECLARE_WAITING, KJ_DECLARE_QUEUED, )
#undef KJ_DECLARE_WAITING
#undef KJ_DECLARE_QUEUED
}
