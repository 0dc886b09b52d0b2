// SPDX-License-Identifier: Apache-2.0
#include "judge/device_lock.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <optional>
#include <thread>

#include "error.h"
#include "file.h"
#include "sha256.h"

namespace kjudge {

namespace {

// A connection is never taken; the kernel tells who listens.
std::optional<DeviceLock::Holder> ask_holder(const sockaddr* where, socklen_t length) {
  const Fd asking(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (!asking.valid() || ::connect(asking.get(), where, length) != 0 ||
      ::getsockopt(asking.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return std::nullopt;
  }
  return DeviceLock::Holder{peer.pid, peer.uid};
}

}  // namespace

DeviceLock::DeviceLock(const std::string& device, const Waiting& waiting) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // sun_path[0] stays 0: that makes the name abstract. Hashed, for device names have any length.
  const std::string lock_name = cat("kjudge-device-", sha256_hex(device).substr(0, 32));
  std::memcpy(address.sun_path + 1, lock_name.data(), lock_name.size());
  const auto length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + lock_name.size());

  socket_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket_.valid()) throw_errno("device lock");
  const auto* where = reinterpret_cast<const sockaddr*>(&address);
  std::optional<Holder> holder;
  while (::bind(socket_.get(), where, length) != 0) {
    if (errno != EADDRINUSE) throw_errno("device lock");
    if (!holder) holder = ask_holder(where, length);
    if (waiting) waiting(holder);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  if (::listen(socket_.get(), SOMAXCONN) != 0) throw_errno("device lock");
}

DeviceLock lock_device(const DeviceIdentity& device, int number, const ReportProgress& progress) {
  return DeviceLock(cat(device.driver, " ", number, " ", device.name),
                    [&](const std::optional<DeviceLock::Holder>& holder) {
                      const std::string who =
                          holder ? cat("process ", holder->pid, " of user ", holder->uid)
                                 : "another kjudge";
                      progress({cat("waiting for ", who, ", which has this device"), "", 0});
                    });
}

}  // namespace kjudge
