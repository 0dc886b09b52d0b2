// SPDX-License-Identifier: Apache-2.0
#include "judge/device_lock.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <thread>

#include "error.h"
#include "file.h"
#include "sha256.h"

namespace kjudge {

DeviceLock::DeviceLock(const std::string& device, const std::function<void()>& waiting) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // sun_path[0] stays 0: that makes the name abstract. Hashed, for device names have any length.
  const std::string lock_name = cat("kjudge-device-", sha256_hex(device).substr(0, 32));
  std::memcpy(address.sun_path + 1, lock_name.data(), lock_name.size());
  const auto length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + lock_name.size());

  socket_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket_.valid()) throw_errno("device lock");
  while (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    if (errno != EADDRINUSE) throw_errno("device lock");
    if (waiting) waiting();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

DeviceLock lock_device(const DeviceIdentity& device, int number, const ReportProgress& progress) {
  return DeviceLock(cat(device.driver, " ", number, " ", device.name), [&] {
    progress({"waiting for another kjudge on this device", "", 0});
  });
}

}  // namespace kjudge
