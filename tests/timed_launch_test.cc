// SPDX-License-Identifier: Apache-2.0
#include "replay/timed_launch.h"

#include <doctest/doctest.h>

#include <thread>

#include "kernel_session.h"
#include "replay/contest.h"

using namespace kjudge;

namespace {

struct Write {
  std::uint64_t address = 0;
  unsigned value = 0;
};

// A launch of one memset node, which stands for a kernel that writes where it should not.
struct Launch {
  Launch(DriverKind kind, std::uint64_t timeout_ns)
      : session(kind),
        timed(session.driver, *session.kernels, session.stream, timeout_ns),
        elsewhere(session, 4) {
    timed.clock_tick_ns();  // loads what would else be loaded behind the block kernel
  }

  void run(Write write, std::chrono::milliseconds late = {}) {
    const GraphHandle graph(session.driver);
    CUDA_MEMSET_NODE_PARAMS params{};
    params.dst = write.address;
    params.value = write.value;
    params.elementSize = 4;
    params.width = params.height = 1;
    CUcontext context = nullptr;
    CUgraphNode node = nullptr;
    CUgraphExec exec = nullptr;
    KJ_DRIVER(session.driver, cuCtxGetCurrent(&context));
    KJ_DRIVER(session.driver,
              cuGraphAddMemsetNode(&node, graph.get(), nullptr, 0, &params, context));
    KJ_DRIVER(session.driver, cuGraphInstantiateWithFlags(&exec, graph.get(), 0));
    const GraphExec owned(session.driver, exec);
    KJ_DRIVER(session.driver, cuGraphLaunch(exec, session.stream));
    KJ_DRIVER(session.driver, cuStreamSynchronize(session.stream));
    timed.queue(exec, 1);
    std::this_thread::sleep_for(late);
    timed.run();
  }

  Session session;
  TimedLaunch timed;
  Buffer elsewhere;
};

constexpr std::uint64_t kLong = 60'000'000'000;

}  // namespace

TEST_CASE("a replay that nothing meddles with is neither late nor disturbed") {
  on_each_driver([](DriverKind kind) {
    Launch launch(kind, kLong);
    launch.run({launch.elsewhere.address(), 7});
    CHECK_FALSE(launch.timed.gave_up());
    CHECK_FALSE(launch.timed.disturbed());
    CHECK(launch.timed.event_ns() > 0);
    CHECK(launch.timed.stamp_ns() > 0);
  });
}

TEST_CASE("a replay released after the time-out is late, and nobody's meddling") {
  on_each_driver([](DriverKind kind) {
    Launch launch(kind, 1'000'000);
    launch.run({launch.elsewhere.address(), 7}, std::chrono::milliseconds(50));
    CHECK(launch.timed.gave_up());
    CHECK_FALSE(launch.timed.disturbed());
  });
}

TEST_CASE("a kernel that writes the block's flag cannot have its replay taken again") {
  on_each_driver([](DriverKind kind) {
    for (const unsigned value : {0u, 2u, 77u}) {
      CAPTURE(value);
      Launch launch(kind, kLong);
      launch.run({launch.timed.flag_address(), value});
      CHECK_FALSE(launch.timed.gave_up());
      CHECK(launch.timed.disturbed());
      launch.run({launch.elsewhere.address(), 7});
      CHECK_FALSE(launch.timed.disturbed());
    }
  });
}

TEST_CASE("a kernel that writes a stamp that was not drawn is seen") {
  on_each_driver([](DriverKind kind) {
    Launch launch(kind, kLong);
    int seen = 0;
    for (const std::size_t slot : {1, 2, 3}) {  // two are drawn, with other stamps in them after
      launch.run({launch.timed.stamp_address(slot), 7});
      seen += launch.timed.disturbed() ? 1 : 0;
    }
    CHECK(seen >= 1);
  });
}
