// SPDX-License-Identifier: Apache-2.0
#include "driver/measuring_module.h"

#include <doctest/doctest.h>

#include "kernel_session.h"

using namespace kjudge;

TEST_CASE("measuring kernels: a copy is of every byte and none more, whatever its length") {
  on_each_driver([](Session& session) {
    const MeasuringModule kernels(session.driver);
    for (const std::uint64_t bytes : {16u, 48u, 4096u, 65552u, 3u << 20}) {
      CAPTURE(bytes);
      std::vector<std::uint8_t> values(bytes);
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
      }
      Buffer from(session, bytes), to(session, bytes + 16);
      from.write(values);
      to.write(std::vector<std::uint8_t>(bytes + 16, 0x77));
      kernels.copy(session.stream, {to.address(), from.address(), bytes});
      values.resize(bytes + 16, 0x77);
      CHECK(to.read<std::uint8_t>() == values);
    }
  });
}

TEST_CASE("measuring kernels: reading and arithmetic write nothing") {
  on_each_driver([](Session& session) {
    const MeasuringModule kernels(session.driver);
    Buffer from(session, 1 << 20), sink(session, 16);
    from.write(std::vector<std::uint8_t>(1 << 20, 0x5a));
    sink.write(std::vector<std::uint64_t>{5, 6});
    kernels.read(session.stream, {from.address(), 1 << 20, sink.address()});
    for (const auto width : {MeasuringModule::Width::float32, MeasuringModule::Width::float64}) {
      const double once =
          kernels.multiply_add(session.stream, width, MultiplyAddParams{1, sink.address(), -1});
      CHECK(once > 0);
      CHECK(kernels.multiply_add(session.stream, width,
                                 MultiplyAddParams{33, sink.address(), -1}) == 33 * once);
    }
    CHECK(sink.read<std::uint64_t>() == std::vector<std::uint64_t>{5, 6});
  });
}

TEST_CASE("measuring kernels: every multiply-add is done") {
  on_each_driver([](Session& session) {
    const MeasuringModule kernels(session.driver);
    // Chain j is (j + 1) * 0.75^n + 1 after n steps: after 2 and 8 or 64 chains this is their sum.
    const double chains = session.driver.kind == DriverKind::host ? kHostChains : kGpuChains;
    const double sum = chains * (chains + 1) / 2 * 0.5625 + chains;
    for (const auto width : {MeasuringModule::Width::float32, MeasuringModule::Width::float64}) {
      Buffer sink(session, 16);
      sink.write(std::vector<std::uint64_t>{5, 6});
      kernels.multiply_add(session.stream, width, MultiplyAddParams{2, sink.address(), sum});
      CHECK(sink.read<std::uint64_t>() == std::vector<std::uint64_t>{1, 6});
    }
  });
}
