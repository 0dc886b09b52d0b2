// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

// C API of the recorder (libkjudge_recorder.so), used by harness/capture.py through ctypes.
//
// The library is preloaded into the capture process. From then on it hands out all device memory
// (at addresses that another process can have again) and keeps what the driver cannot be asked for
// later: module images, attributes and limits that were set, pinned host memory. Two variables
// say which driver to watch: KJUDGE_DRIVER (cuda or host) and KJUDGE_DRIVER_LIBRARY (its path).
// Without them it does nothing.
//
// Order of calls:
//   begin, [contestant's import and prepare],
//   for every shape: open_shape, tensor and fill (or load) for each argument, [eager calls],
//     begin_capture, [kernel_fn], end_capture, returned for each output that was returned,
//   write.
//
// Every function returns 0, or 1 after which kjudge_record_failure tells the verdict, the rule that
// was broken (refused only) and a message for the contestant: "judge_error" of begin, and later of
// what only a broken device answers, for the contestant's code may cause all else that fails. Not
// to be called from two threads at once; memory and modules may be used from any thread meanwhile.

#ifdef __cplusplus
extern "C" {
#endif

struct kjudge_record_options {
  int32_t device;
  uint32_t reserved;
  uint64_t seed;                // of the made-up inputs
  uint64_t memory_limit_bytes;  // of device memory in use at a time; 0: what the device has
  uint64_t bundle_limit_bytes;  // of the file that write makes
};

// Retains the device's primary context, makes it current in this thread and reserves the arena.
int kjudge_record_begin(const struct kjudge_record_options* options);

int kjudge_record_open_shape(const char* name);

// Allocates an argument of the open shape in memory of its own. `role` is "input", "output" or
// "inout", `dtype` as in lib/tensor.h.
int kjudge_record_tensor(const char* role, const char* name, const char* dtype, const int64_t* dims,
                         uint32_t rank, uint64_t* address);

// `kind` is a word of lib/driver/fill_kind.h, `other` a dtype; the rest as in FillParams. `key_of`
// and `source` name tensors of the open shape, or are "".
struct kjudge_record_generator {
  const char* kind;
  double a, b, c;
  uint64_t row, size;
  const char *other, *key_of, *source;
};

// Fills an input or inout of the open shape with made-up values. The key is made_up_key(seed,
// shape, tensor), see lib/record/made_up.h. A tensor that others read is filled before them. The
// values are made again before the recorder's own replay.
int kjudge_record_fill(const char* name, const struct kjudge_record_generator* generator);

// The same with the bytes of a file, all of the tensor's.
int kjudge_record_load(const char* name, const char* path);

// Output `name` of the open shape is where kernel_fn returned it, contiguous and of the type and
// dims it was declared with. To be called after end_capture.
int kjudge_record_returned(const char* name, uint64_t address);

// Starts the capture of the open shape on `stream` (a CUstream), ends it, or gives it up. The
// graph's nodes are copied when it ends.
int kjudge_record_begin_capture(void* stream);
int kjudge_record_end_capture(void* stream);
int kjudge_record_abandon_capture(void* stream);

// Fails if the submission has begun or ended a capture of its own since the last call of this or of
// open_shape or begin_capture; not while a capture of the recorder's is open, whose end tells. The
// message begins with `where`.
int kjudge_record_check_no_capture(const char* where);

struct kjudge_record_seconds {
  double import_s, prepare_s, capture_s;
};

// Holds every rule, replays each graph once on the made-up inputs, and writes the bundle. `path`
// appears only when all of it is written.
int kjudge_record_write(const char* path, const struct kjudge_record_seconds* seconds);

// Strings live until the next call; "" where there is none.
struct kjudge_record_failed {
  const char* verdict;  // "refused", "out_of_memory", "gpu_fault", "runtime_error", "judge_error"
  const char* rule;     // see lib/record/rules.h
  const char* message;
};
// Of the last function of this API.
void kjudge_record_failure(struct kjudge_record_failed* failure);
// Of the last driver call of the contestant's that the recorder had to fail, such as an allocation
// over the limit: the driver's code alone does not say that. Told once.
void kjudge_record_call_failure(struct kjudge_record_failed* failure);

// Fails with the rule of this name, see lib/record/rules.h: something that only the caller can see
// breaks it. `what` says where.
int kjudge_record_refuse(const char* rule, const char* what);

// Bytes of device memory in use that write left out, and in how many allocations: no argument of a
// kernel, copy or memset leads there, nor does a pointer in memory that one leads to.
uint64_t kjudge_record_left_out(uint64_t* allocations);

#ifdef __cplusplus
}
#endif
