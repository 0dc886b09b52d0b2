// SPDX-License-Identifier: Apache-2.0
#pragma once

// kjudge's own kernels: fill, fill_structured, compare, sum and join rows, judge rows, digest, evict, scrub, block,
// stamp. One source (kernels/kernels.cc) is compiled by nvcc for GPUs and by the host compiler into
// a module of the host driver. The structs below are their parameters, passed by value as one
// argument each; plain types of fixed size only, no pointers but as 64-bit addresses.

#include <cstdint>

#ifdef __cplusplus
namespace kjudge {
#endif

// Values of a tensor from Philox4x32-10 keyed by `key`, at counters that follow from the element's
// index alone: the same bits on every device. Formulas, where the words here are not enough, are in
// kernels/values.h and kernels/structured.h.
enum FillKind : uint32_t {
  fill_constant = 0,  // a
  fill_uniform = 1,   // [a, b)
  fill_normal = 2,    // mean a, standard deviation b
  fill_integers = 3,  // a .. b inclusive, of any dtype
  fill_bits = 4,      // random bytes: poison
  // From here on by fill_structured.
  fill_bernoulli = 5,    // b with probability a, else 0
  fill_permutation = 6,  // each row a permutation of 0 .. row - 1
  fill_block_table = 7,  // no number of 0 .. size - 1 twice; `a` in a row beyond `source`, its
                         //   length, of which each number holds b; source 0: nowhere
  fill_one_hot = 8,      // each row b at one random place, else 0
  fill_power_law = 9,   // a .. b inclusive, the k-th with probability about k^-c; with `size` 1 the
                        //   order of the numbers is random too
  fill_lengths = 10,    // `count` numbers from a to c with sum `size`, uneven by b of 0 .. 1
  fill_offsets = 11,    // 0, then the partial sums of the `count` - 1 numbers of fill_lengths
  fill_sorted = 12,     // ascending numbers from a to a + size, their distances uneven by b
  fill_low_rank = 13,   // rows of `row` elements, matrices of `size` elements, each of rank c;
                        //   every element is normal with mean 0 and standard deviation b
  fill_quantised = 14,  // normal values (a, b), each `row` of them divided by their scale
  fill_scales = 15,     // the scales of a fill_quantised of dtype `other` and the same key
  fill_python = 16,     // by no kernel: a challenge's inputs.py does it
};

struct FillParams {
  uint64_t address;
  uint64_t count;  // elements; bytes for fill_bits
  uint64_t key;
  double a, b, c;
  uint64_t row, size;
  uint64_t source;  // address of another tensor's elements, of dtype `other`
  uint32_t kind;    // FillKind
  uint32_t dtype;   // DType
  uint32_t other;   // DType: of source, of fill_quantised's scales, of what fill_scales are for
  uint32_t reserved;
};

// What compare found; zeroed by the host before the launch, merged by atomics.
struct CompareReport {
  uint64_t mismatched;
  uint64_t first_index;     // smallest mismatched flat index; ~0 when none
  uint64_t worst_abs_bits;  // bits of the largest |out - exp|, a double (non-negative, so its
                            //   bits order like it), over elements finite on both sides
  uint64_t worst_rel_bits;  // likewise |out - exp| / |exp|, over those with exp not 0
  uint64_t nonfinite;       // mismatches with a NaN or infinity on either side
  uint64_t still_poisoned;  // mismatches whose bytes are exactly the poison that was there
  uint64_t any_nonzero;     // 1 when any expected element is not 0
  uint64_t beyond;          // of compare_codes: mismatches of more than `within` steps, and stray
  uint64_t first_beyond;    // smallest flat index of them; ~0 when none
  uint64_t worst_steps;     // of compare_codes, over elements finite on both sides
};

enum CompareKind : uint32_t {
  compare_exact = 0,
  compare_close = 1,      // within atol + rtol * |expected|
  compare_row_bound = 2,  // within atol * rms(row of expected) + rtol * |expected|; in a row that
                          //   is expected to be all 0, as judge_rows has it
  compare_codes = 3,      // the same code; a step is from one value of the type to the next
};

// Compares elements first .. first + count - 1 of contiguous `out` (dtype) with those of `expected`
// (expected_dtype), which is first rounded to `dtype`, nearest even; overflow gives infinity, or
// the largest finite value when `saturate`.
struct CompareParams {
  uint64_t out, expected;
  uint64_t report;  // CompareReport
  uint64_t first, count;
  uint64_t poison_key;  // of the fill_bits that ran before the replay, over out's bytes
  double rtol, atol;
  uint32_t kind;  // CompareKind
  uint32_t dtype, expected_dtype;
  uint32_t signed_zero;  // exact: -0 and 0 differ
  uint32_t saturate;
  uint32_t within;    // compare_codes: steps
  uint64_t sums;      // compare_row_bound: RowSums of the rows from element 0 on
  uint64_t row_size;  // compare_row_bound: `first` is 0 and `count` a multiple of it
  double tiny;        // compare_row_bound: as in JudgeRowsParams
};

// Sums over the elements of a row that are finite on both sides, expected rounded as above. Each
// sum stands for itself times 2^(2 * exponent): 0 but for float64, whose squares a double cannot
// hold.
//
// The order of additions is fixed, so that every device gives the same bits. A row is cut into
// parts of kPartElements. In a part, lane l of 32 adds elements l, l + 32, l + 64, ... in order;
// then lane l adds lane l + 16's sum, then l + 8's, 4, 2, 1. A row of several parts sums its parts
// in that same way. Products and sums are rounded each, nearest even. A tree of fixed shape is what
// reproducible reductions come down to when the data's place is fixed: Collange, Defour, Graillat,
// Iakymchuk, "Numerical reproducibility for the parallel reduction on multi- and many-core
// architectures", Parallel Computing 49 (2015).
struct RowSums {
  double difference, expected, out;  // of the squares
  double product;                    // of out * expected
  uint64_t finite;                   // elements in the sums
  uint64_t stray;  // elements that are NaN or infinite, and not the same on both sides
  int64_t exponent;
};

#ifdef __cplusplus
inline constexpr uint64_t kPartElements = 4096;
inline constexpr int kSumLanes = 32;
constexpr uint64_t parts_per_row(uint64_t row_size) {
  return (row_size + kPartElements - 1) / kPartElements;
}
#endif

// Sums every part of every row. `count` is a multiple of `row_size`, which is above 0.
struct SumParams {
  uint64_t out, expected;
  uint64_t parts;  // RowSums[rows * parts_per_row(row_size)], written
  uint64_t count, row_size;
  uint32_t dtype, expected_dtype;
  uint32_t saturate;
  uint32_t reserved;
};

// Sums the parts of every row.
struct JoinParams {
  uint64_t parts;  // RowSums[rows * parts_per_row]
  uint64_t sums;   // RowSums[rows], written
  uint64_t rows, parts_per_row;
};

// What judge_rows found; zeroed (first_row: ~0) by the host before the launch, merged by atomics.
struct RowReport {
  uint64_t failed;       // rows
  uint64_t first_row;    // smallest of them; ~0 when none
  uint64_t worst_bits;   // bits of the largest error of a row, a non-negative double
  uint64_t stray;        // sum over the rows
  uint64_t any_nonzero;  // 1 when any expected element is not 0
};

enum RowKind : uint32_t {
  row_rel_l2 = 0,  // error: norm of out - expected, by the norm of expected; at most `limit`
  row_cosine = 1,  // error: 1 - cosine of the two; the cosine is at least `limit`
};

// A row with a stray element fails. A row whose expected elements are all 0 has the error 0 where
// the norm of out is at most sqrt(elements) * tiny, else infinity, and fails.
struct JudgeRowsParams {
  uint64_t sums;    // RowSums[rows]
  uint64_t report;  // RowReport
  uint64_t errors;  // double[rows], written; or 0
  uint64_t rows, row_size;
  double limit;
  double tiny;    // smallest normal number of the output's type; 0 for integers
  uint32_t kind;  // RowKind
  uint32_t reserved;
};

// Order-independent 64-bit digest of `bytes` bytes, added to *digest. Detects accidental and
// careless change; the memory it guards is not writable by those it guards against.
struct DigestParams {
  uint64_t address, bytes;  // multiple of 8
  uint64_t digest;          // address of one uint64_t
};

// Reads every line of a clean buffer with plain loads, so that caches hold nothing else.
struct EvictParams {
  uint64_t address, bytes;
  uint64_t sink;  // never written, keeps the loads alive
};

// Fills the shared memory of every multiprocessor with `value`. On the host driver: nothing to do.
struct ScrubParams {
  uint32_t value;
  uint32_t shared_bytes;
};

// Spins until *flag (mapped host memory) is `go`, or about `timeout_ns` passed (then *flag is set
// to `gave_up`: the replay is void).
struct BlockParams {
  uint64_t flag;
  uint64_t timeout_ns;
  uint32_t go, gave_up;
};

// *stamp = nanoseconds of the device's global clock.
struct StampParams {
  uint64_t stamp;
};

// Spins for `iterations` of dependent arithmetic and writes clock cycles and nanoseconds that took:
// the calibration kernel, which tells an off-clock device before a pair.
struct CalibrateParams {
  uint64_t result;  // uint64_t[2]: cycles, ns
  uint64_t iterations;
};

#ifdef __cplusplus
}  // namespace kjudge
#endif
