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

// A reference that cannot be recorded: a Python process that calls the challenge's reference.py on
// the inputs of every replay, in memory of the supervisor's. It is the challenge's code and
// trusted, as a recorded reference is; nothing of a contestant's is in its process, and no worker
// has the memory that it writes to. The process is killed and reaped when this goes.
class PythonReference {
 public:
  struct SharedShape {
    const Shape* shape = nullptr;
    std::vector<const DeviceMemory*> tensors;  // inputs, then expected outputs
  };

  // Starts the process, on a copy of the challenge's folder, and waits for its prepare().
  // Fault::package when reference.py fails, here and in call().
  PythonReference(const Driver& driver, int device, const Challenge& challenge,
                  const std::vector<SharedShape>& shapes, Channel::Idle idle);

  // Expected outputs of the inputs as they are now, by index into `shapes`; they are there when
  // this returns.
  void call(std::size_t shape);

 private:
  template <class T>
  void expect(double limit_s, const std::string& where);
  template <class T>
  void send(const T& message, const std::string& where, std::span<const int> fds = {});

  const Challenge& challenge_;
  std::vector<const Shape*> shapes_;
  TempDir work_;
  Channel channel_;
  Child child_;
};

}  // namespace kjudge
