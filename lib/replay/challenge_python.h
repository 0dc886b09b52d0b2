// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "challenge/challenge.h"
#include "driver/arena.h"
#include "file.h"
#include "process.h"
#include "replay/protocol.h"

namespace kjudge {

// A Python process that runs a challenge's own code on memory of the supervisor's: reference.py,
// where a reference cannot be recorded, inputs.py, where no generator makes what is needed, or
// check.py, where no check of kjudge's says what is right. It
// is trusted, as a recorded reference is; nothing of a contestant's is in its process, and no
// worker can write to the memory that it writes to. The process is killed and reaped when this
// goes.
class ChallengePython {
 public:
  enum class File { reference, inputs, check };
  struct SharedShape {
    const Shape* shape = nullptr;
    // Inputs; then, but for inputs.py, expected outputs; then, for check.py, a submission's.
    std::vector<const DeviceMemory*> tensors;
  };

  // Starts the process, on a copy of the challenge's folder, and waits for its prepare().
  // Fault::package when the file fails, here, in call() and in fill().
  ChallengePython(const Driver& driver, int device, const Challenge& challenge, File file,
                  const std::vector<SharedShape>& shapes, Channel::Idle idle);

  // Expected outputs of the inputs as they are now, by index into `shapes`; they are there when
  // this returns.
  void call(std::size_t shape);
  // Of inputs.py: has it write the inputs of a regime for a seed, likewise.
  void fill(std::size_t shape, std::size_t regime, std::uint64_t seed);
  // Of check.py: how wrong an output is, as it is now, and words about it for the contestant.
  struct Judgement {
    double error = 0;
    std::string text;
  };
  Judgement judge(std::size_t shape, std::size_t regime, std::size_t output);

 private:
  template <class T>
  T expect(double limit_s, const std::string& where);
  template <class T>
  void send(const T& message, const std::string& where, std::span<const int> fds = {});

  const Challenge& challenge_;
  File file_;
  std::vector<const Shape*> shapes_;
  TempDir work_;
  Channel channel_;
  Child child_;
};

}  // namespace kjudge
