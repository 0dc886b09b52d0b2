// SPDX-License-Identifier: Apache-2.0

// kjudge's own kernels against straightforward host code, on every driver this machine has.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>

#include "check/check.h"
#include "check/oracle.h"
#include "driver/arena.h"
#include "driver/kernels/number.h"
#include "driver/kernels/philox.h"
#include "kernel_session.h"
#include "tensor.h"

using namespace kjudge;

namespace {

CompareReport compared(Session& session, CompareParams params, const std::vector<std::uint8_t>& out,
                       const std::vector<std::uint8_t>& expected) {
  Buffer out_buffer(session, out.size()), expected_buffer(session, expected.size()),
      report_buffer(session, sizeof(CompareReport));
  out_buffer.write(out);
  expected_buffer.write(expected);
  report_buffer.write(
      std::vector<CompareReport>{{0, ~std::uint64_t{0}, 0, 0, 0, 0, 0, 0, ~std::uint64_t{0}, 0}});
  params.out = out_buffer.address();
  params.expected = expected_buffer.address();
  params.report = report_buffer.address();
  session.kernels->compare(session.stream, params);
  return report_buffer.read<CompareReport>().front();
}

}  // namespace

TEST_CASE("philox gives the published words") {
  // Random123's known answers for philox4x32-10: counter 0, key 0.
  const PhiloxWords zero = philox(0, 0);
  CHECK(zero.word[0] == 0x6627e8d5);
  CHECK(zero.word[1] == 0xe169c58d);
  CHECK(zero.word[2] == 0xbc57ac4c);
  CHECK(zero.word[3] == 0x9b00dbd8);
}

TEST_CASE("normal values have the moments of a normal distribution") {
  on_each_driver([](Session& session) {
    const auto values =
        filled<float>(session, fill_of(fill_normal, DType::float32, 1'000'001, 3, 2));
    double sum = 0, squares = 0, cubes = 0, fourths = 0, largest = 0;
    for (float value : values) {
      const double z = (value - 3.0) / 2.0;
      sum += z;
      squares += z * z;
      cubes += z * z * z;
      fourths += z * z * z * z;
      largest = std::max(largest, std::abs(z));
    }
    const double n = static_cast<double>(values.size());
    CHECK(std::abs(sum / n) < 0.005);
    CHECK(std::abs(squares / n - 1) < 0.007);
    CHECK(std::abs(cubes / n) < 0.02);
    CHECK(std::abs(fourths / n - 3) < 0.05);
    CHECK(largest > 4.2);
    CHECK(largest < 6);
  });
}

TEST_CASE("normal values are Box-Muller's of the same words to float precision") {
  on_each_driver([](Session& session) {
    const auto values = filled<float>(session, fill_of(fill_normal, DType::float32, 40'000, 0, 1));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const PhiloxWords words = philox(0x0123456789abcdef, i / 4);
      const std::size_t pair = i % 4 / 2 * 2;
      const double unit = (words.word[pair] >> 8) * 0x1p-24 + 0x1p-25;
      const double turn = words.word[pair + 1] * 0x1p-32 * 2 * std::numbers::pi;
      const double exact =
          std::sqrt(-2 * std::log(unit)) * (i % 2 == 0 ? std::cos(turn) : std::sin(turn));
      REQUIRE(std::abs(values[i] - exact) < 4e-6);
    }
  });
}

TEST_CASE("uniform and integer values keep to their range and reach its ends") {
  on_each_driver([](Session& session) {
    for (float value :
         filled<float>(session, fill_of(fill_uniform, DType::float32, 100'000, -2, 5))) {
      REQUIRE(value >= -2);
      REQUIRE(value < 5);
    }
    std::vector<int> seen(6);
    for (auto value :
         filled<std::int32_t>(session, fill_of(fill_integers, DType::int32, 10'000, -1, 4))) {
      REQUIRE(value >= -1);
      REQUIRE(value <= 4);
      ++seen[static_cast<std::size_t>(value + 1)];
    }
    for (int count : seen) CHECK(count > 1'400);
    for (float value :
         filled<float>(session, fill_of(fill_constant, DType::float32, 999, 0.25, 0))) {
      REQUIRE(value == 0.25f);
    }
  });
}

TEST_CASE("poison is the bytes that poison_byte says, at every length") {
  on_each_driver([](Session& session) {
    for (std::uint64_t count : {1u, 15u, 16u, 17u, 255u, 256u, 257u, 4097u, 70'000u}) {
      const auto bytes =
          filled<std::uint8_t>(session, fill_of(fill_bits, DType::uint8, count, 0, 0));
      REQUIRE(bytes.size() == count);
      for (std::uint64_t i = 0; i < count; ++i) {
        REQUIRE(bytes[i] == poison_byte(0x0123456789abcdef, i));
      }
    }
  });
}

TEST_CASE("host and GPU fill with the same bits") {
  if (!cuda_available()) return;
  Session host(DriverKind::host), cuda(DriverKind::cuda);
  for (int d = 0; d < kDTypeCount; ++d) {
    for (FillKind kind : {fill_uniform, fill_normal, fill_integers}) {
      const auto dtype = static_cast<DType>(d);
      auto params = fill_of(kind, dtype, 33'333, kind == fill_integers ? 0 : -1, 6);
      const auto bytes = static_cast<std::size_t>(size_bytes({"x", dtype, {33'333}, {}}));
      const auto run = [&](Session& session) {
        Buffer buffer(session, bytes);
        params.address = buffer.address();
        session.kernels->fill(session.stream, params);
        return buffer.read<std::uint8_t>();
      };
      CHECK_MESSAGE(run(host) == run(cuda), name(dtype), " kind ", kind);
    }
  }
}

TEST_CASE("every small float decodes and encodes to itself, and rounding agrees with the oracle") {
  for (DType dtype : {DType::float16, DType::bfloat16, DType::float8_e4m3, DType::float8_e5m2,
                      DType::float4_e2m1}) {
    const SmallFloat format = small_float(dtype);
    const std::uint32_t codes = 1u << bits(dtype);
    for (std::uint32_t code = 0; code < codes; ++code) {
      const double value = decode_small(format, code);
      if (value == value) REQUIRE(encode_small(format, value, false) == code);
      // Halfway to the next code and just beside it.
      const double next = decode_small(format, (code + 1) % codes);
      for (double t : {0.25, 0.5, 0.5000001, 0.75}) {
        const double between = value + (next - value) * t;
        if (!std::isfinite(between)) continue;
        for (Overflow overflow : {Overflow::infinity, Overflow::saturate}) {
          const double kernel = rounded_to(dtype, between, overflow == Overflow::saturate);
          const double oracle = round_to(dtype, between, overflow);
          REQUIRE((kernel == oracle || (kernel != kernel && oracle != oracle)));
        }
      }
    }
  }
}

TEST_CASE("compare agrees with the host oracle on special values, poison and ordinary noise") {
  on_each_driver([](Session& session) {
    const double inf = INFINITY, nan = NAN;
    const std::vector<double> special = {0.0,   -0.0,  1,   -1,  1 + 1e-6, 0.1,   1e-40, -1e-40,
                                         65504, 65520, 448, 464, 465,      57344, 61440, 3e38,
                                         4e38,  -inf,  inf, nan, 6,        7,     1e300};
    for (int d = 0; d < kDTypeCount; ++d) {
      const auto dtype = static_cast<DType>(d);
      for (DType expected_dtype : {DType::float64, DType::float32, dtype}) {
        for (std::uint32_t kind : {compare_exact, compare_close, compare_codes}) {
          for (std::uint32_t flags = 0; flags < 4; ++flags) {
            const std::size_t n = special.size() * special.size() + 1031;
            std::vector<std::uint8_t> out(n * 8), expected(n * 8);
            for (std::size_t i = 0; i < n; ++i) {
              const bool noise = i >= special.size() * special.size();
              const double x =
                  noise ? std::sin(static_cast<double>(i)) : special[i % special.size()];
              const double y = noise ? x * (1 + 1e-6 * (static_cast<double>(i % 7) - 3))
                                     : special[i / special.size()];
              store_element(dtype, out.data(), i, y, false);
              store_element(expected_dtype, expected.data(), i, x, false);
            }
            CompareParams params{};
            params.count = n;
            params.poison_key = 99;
            params.rtol = 2e-6;
            params.atol = 1e-9;
            params.kind = kind;
            params.dtype = static_cast<std::uint32_t>(dtype);
            params.expected_dtype = static_cast<std::uint32_t>(expected_dtype);
            params.within = flags;
            params.signed_zero = flags & 1;
            params.saturate = flags >> 1;
            // Some elements were never written.
            const std::size_t size = static_cast<std::size_t>(bits(dtype)) / 8;
            for (std::size_t i = 0; size > 0 && i < 40 * size; ++i) {
              out[(n - 40) * size + i] = poison_byte(99, (n - 40) * size + i);
            }
            const CompareReport device = compared(session, params, out, expected);
            const CompareReport oracle = compare_on_host(params, std::as_bytes(std::span(out)),
                                                         std::as_bytes(std::span(expected)));
            CAPTURE(name(dtype));
            CAPTURE(name(expected_dtype));
            CAPTURE(kind);
            CAPTURE(flags);
            REQUIRE(device.mismatched == oracle.mismatched);
            REQUIRE(device.first_index == oracle.first_index);
            REQUIRE(device.nonfinite == oracle.nonfinite);
            REQUIRE(device.still_poisoned == oracle.still_poisoned);
            REQUIRE(device.worst_abs_bits == oracle.worst_abs_bits);
            REQUIRE(device.worst_rel_bits == oracle.worst_rel_bits);
            REQUIRE(device.any_nonzero == oracle.any_nonzero);
            REQUIRE(device.beyond == oracle.beyond);
            REQUIRE(device.first_beyond == oracle.first_beyond);
            REQUIRE(device.worst_steps == oracle.worst_steps);
          }
        }
      }
    }
  });
}

TEST_CASE("compare: what is off where 0 is expected has no relative error") {
  on_each_driver([](Session& session) {
    std::vector<std::uint8_t> out(512 * 4), expected(512 * 8);
    for (std::size_t i = 0; i < 512; ++i) {
      store_element(DType::float32, out.data(), i, i == 7 ? 1 : 1e-6, false);
      store_element(DType::float64, expected.data(), i, i == 7 ? 1 : 0, false);
    }
    CompareParams params{};
    params.count = 512;
    params.atol = 1e-5;
    params.kind = compare_close;
    params.dtype = static_cast<std::uint32_t>(DType::float32);
    params.expected_dtype = static_cast<std::uint32_t>(DType::float64);
    const CompareReport device = compared(session, params, out, expected);
    const CompareReport oracle =
        compare_on_host(params, std::as_bytes(std::span(out)), std::as_bytes(std::span(expected)));
    CHECK(std::bit_cast<double>(oracle.worst_rel_bits) == 0);
    CHECK(std::memcmp(&device, &oracle, sizeof oracle) == 0);
    CHECK(device.mismatched == 0);
  });
}

namespace {

// Rows on the device, and the oracle's.
struct Rows {
  std::vector<RowSums> device, oracle;
};

Rows summed(Session& session, SumParams params, const std::vector<std::uint8_t>& out,
            const std::vector<std::uint8_t>& expected) {
  const std::uint64_t rows = params.count / params.row_size;
  Buffer out_buffer(session, out.size()), expected_buffer(session, expected.size()),
      sums(session, rows * sizeof(RowSums)),
      parts(session, rows * parts_per_row(params.row_size) * sizeof(RowSums));
  out_buffer.write(out);
  expected_buffer.write(expected);
  params.out = out_buffer.address();
  params.expected = expected_buffer.address();
  params.parts = parts.address();
  session.kernels->sum_rows(session.stream, params, sums.address());
  Rows both{sums.read<RowSums>(), {}};
  for (std::uint64_t row = 0; row < rows; ++row) {
    both.oracle.push_back(sum_row_on_host(params, std::as_bytes(std::span(out)),
                                          std::as_bytes(std::span(expected)), row));
  }
  return both;
}

void require_same_judgement(Session& session, const Rows& rows, std::uint64_t row_size,
                            DType dtype) {
  Buffer sums(session, rows.device.size() * sizeof(RowSums)),
      errors(session, rows.device.size() * 8), report(session, sizeof(RowReport));
  sums.write(rows.device);
  for (const RowKind kind : {row_rel_l2, row_cosine}) {
    JudgeRowsParams params{};
    params.sums = sums.address();
    params.report = report.address();
    params.errors = errors.address();
    params.rows = rows.device.size();
    params.row_size = row_size;
    params.limit = kind == row_cosine ? 0.9 : 0.1;
    params.tiny = is_floating(dtype) ? 1e-3 : 0;
    params.kind = kind;
    report.write(std::vector<RowReport>{{0, ~std::uint64_t{0}, 0, 0, 0}});
    session.kernels->judge_rows(session.stream, params);
    const RowReport device = report.read<RowReport>().front();
    std::vector<double> oracle_errors;
    const RowReport oracle = judge_rows_on_host(params, rows.oracle, &oracle_errors);
    REQUIRE(std::memcmp(&device, &oracle, sizeof oracle) == 0);
    const auto device_errors = errors.read<double>();
    REQUIRE(std::memcmp(device_errors.data(), oracle_errors.data(), oracle_errors.size() * 8) == 0);
  }
}

void require_same_bound(Session& session, const SumParams& rows, const Rows& both,
                        const std::vector<std::uint8_t>& out,
                        const std::vector<std::uint8_t>& expected) {
  Buffer sums(session, both.device.size() * sizeof(RowSums));
  sums.write(both.device);
  CompareParams params{};
  params.count = rows.count;
  params.row_size = rows.row_size;
  params.rtol = 0.05;
  params.atol = 0.02;
  params.kind = compare_row_bound;
  params.dtype = rows.dtype;
  params.expected_dtype = rows.expected_dtype;
  params.saturate = rows.saturate;
  params.sums = sums.address();
  params.tiny = 1e-3;
  const CompareReport device = compared(session, params, out, expected);
  const CompareReport oracle = compare_on_host(params, std::as_bytes(std::span(out)),
                                               std::as_bytes(std::span(expected)), both.oracle);
  REQUIRE(std::memcmp(&device, &oracle, sizeof oracle) == 0);
  REQUIRE(device.mismatched > 0);
}

}  // namespace

TEST_CASE("sums of rows and what is made of them are the oracle's to the last bit") {
  on_each_driver([](Session& session) {
    const double inf = INFINITY, nan = NAN;
    const std::vector<double> special = {0.0,   -0.0,   1e-320, -1e-310, 1e-40, 65520, 448, 3e38,
                                         1e300, -1e308, -inf,   inf,     nan,   1,     -1};
    for (int d = 0; d < kDTypeCount; ++d) {
      const auto dtype = static_cast<DType>(d);
      for (DType expected_dtype : {DType::float64, DType::float32, dtype}) {
        // Rows below, at and above a part's size; the last are several parts.
        for (std::uint64_t row_size : {1u, 3u, 31u, 32u, 781u, 4096u, 4097u, 150'001u}) {
          const std::uint64_t rows = row_size < 100 ? 257 : 3, count = rows * row_size;
          std::vector<std::uint8_t> out(count * 8), expected(count * 8);
          for (std::uint64_t i = 0; i < count; ++i) {
            // Some rows are zeros, some are of specials, most are noise.
            const std::uint64_t kind = i / row_size % 5;
            const double x = kind == 1 ? 0
                             : kind == 2 && i % 3 == 0
                                 ? special[i % special.size()]
                                 : std::sin(static_cast<double>(i)) * (i % 7 == 0 ? 300 : 1);
            const double y = kind == 1   ? (i % 11 == 0 ? 1e-3 : 0)
                             : kind == 2 ? (i % 2 == 0 ? x : special[i / 2 % special.size()])
                                         : x * (1 + 0.01 * static_cast<double>(i % 20));
            store_element(dtype, out.data(), i, y, false);
            store_element(expected_dtype, expected.data(), i, x, false);
          }
          SumParams params{};
          params.count = count;
          params.row_size = row_size;
          params.dtype = static_cast<std::uint32_t>(dtype);
          params.expected_dtype = static_cast<std::uint32_t>(expected_dtype);
          params.saturate = static_cast<std::uint32_t>(row_size % 2);
          const Rows both = summed(session, params, out, expected);
          CAPTURE(name(dtype));
          CAPTURE(name(expected_dtype));
          CAPTURE(row_size);
          for (std::uint64_t row = 0; row < rows; ++row) {
            CAPTURE(row);
            REQUIRE(std::memcmp(&both.device[row], &both.oracle[row], sizeof(RowSums)) == 0);
          }
          require_same_judgement(session, both, row_size, dtype);
          require_same_bound(session, params, both, out, expected);
        }
      }
    }
  });
}

TEST_CASE(
    "a digest sees one changed bit, two swapped words and does not depend on the order of blocks") {
  on_each_driver([](Session& session) {
    auto words = filled<std::uint64_t>(session, [] {
      auto params = fill_of(fill_bits, DType::uint8, 800'000, 0, 0);
      return params;
    }());
    const auto digest = [&] {
      Buffer buffer(session, words.size() * 8), sum(session, 8);
      buffer.write(words);
      sum.write(std::vector<std::uint64_t>{0});
      session.kernels->digest(session.stream, {buffer.address(), words.size() * 8, sum.address()});
      return sum.read<std::uint64_t>().front();
    };
    const std::uint64_t before = digest();
    CHECK(digest() == before);
    words[70'000] ^= 1;
    CHECK(digest() != before);
    words[70'000] ^= 1;
    std::swap(words[1], words[50'001]);
    CHECK(digest() != before);
  });
}

TEST_CASE("block waits for its flag and gives up after its time; stamps ascend") {
  on_each_driver([](Session& session) {
    void* host = nullptr;
    KJ_DRIVER(session.driver, cuMemHostAlloc(&host, 64, CU_MEMHOSTALLOC_DEVICEMAP));
    auto* flag = static_cast<volatile std::uint32_t*>(host);
    auto* stamps = reinterpret_cast<volatile std::uint64_t*>(static_cast<char*>(host) + 8);
    CUdeviceptr mapped = 0;
    KJ_DRIVER(session.driver, cuMemHostGetDevicePointer(&mapped, host, 0));
    *flag = 0;
    session.kernels->stamp(session.stream, {mapped + 8});
    session.kernels->block(session.stream, {mapped, 10'000'000'000, 7, 9});
    session.kernels->stamp(session.stream, {mapped + 16});
    CHECK(session.driver.cuStreamQuery(session.stream) == CUDA_ERROR_NOT_READY);
    *flag = 7;
    KJ_DRIVER(session.driver, cuStreamSynchronize(session.stream));
    CHECK(*flag == 7);
    CHECK(stamps[1] >= stamps[0]);

    *flag = 0;
    session.kernels->block(session.stream, {mapped, 2'000'000, 7, 9});
    KJ_DRIVER(session.driver, cuStreamSynchronize(session.stream));
    CHECK(*flag == 9);
    KJ_DRIVER(session.driver, cuMemFreeHost(host));
  });
}

TEST_CASE("calibrate, evict, scrub and empty run") {
  on_each_driver([](Session& session) {
    Buffer buffer(session, 1 << 20), result(session, 16);
    session.kernels->evict(session.stream, {buffer.address(), 1 << 20, result.address()});
    session.kernels->scrub(session.stream, 0xdeadbeef);
    session.kernels->calibrate(session.stream, {result.address(), 100'000});
    const auto read = result.read<std::uint64_t>();
    CHECK(read[0] > 100'000);
    CHECK(read[1] > 10'000);
    StampParams unused{};
    void* arguments[] = {&unused};
    KJ_DRIVER(session.driver, cuLaunchKernel(session.kernels->empty(), 1, 1, 1, 1, 1, 1, 0,
                                             session.stream, arguments, nullptr));
    KJ_DRIVER(session.driver, cuStreamSynchronize(session.stream));
  });
}

TEST_CASE("a mapping goes right after copies into it, before any kernel") {
  on_each_driver([](Session& session) {
    const Driver& driver = session.driver;
    const DeviceMemory memory = DeviceMemory::create(driver, 0, 16 << 20);
    const int turns = driver.kind == DriverKind::cuda ? 3000 : 20;
    for (int turn = 0; turn < turns; ++turn) {
      // Of sizes that a driver sends in different ways.
      std::vector<std::uint64_t> words((8u << turn % 4 * 4) * 4, static_cast<std::uint64_t>(turn));
      const Mapping mapping(driver, 0, memory, Access::read_write);
      for (std::uint64_t i = 0; i < 8; ++i) {
        KJ_DRIVER(driver, cuMemcpyHtoD(mapping.address() + i * 1'500'000 / 8 * 8, words.data(),
                                       words.size() * 8));
      }
    }
    CHECK(driver.cuCtxSynchronize() == CUDA_SUCCESS);
  });
}
