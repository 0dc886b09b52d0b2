// SPDX-License-Identifier: Apache-2.0
// Speed and peak memory of writing and reading a bundle: bench_bundle_speed [GiB
// [random|weights|zero [times]]]. `weights` are normally distributed float32 in steps of 2^-20,
// most of whose bits do not compress. Files lie in TMPDIR. The best of `times` is told, beside what
// the disk gives a program that only writes and reads. A write is one to the disk, with fsync; a
// cold read is one of a file that is not in the page cache. Reading validates and lands in memory
// that was never touched, as a mapped region is.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "bundle/bundle.h"
#include "error.h"
#include "file.h"

using namespace kjudge;

namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double peak_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

std::uint64_t mix(std::uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

// A few MiB made before, at another offset each time: making them shall not count.
Bytes make_pool(std::string_view kind) {
  Bytes pool(8u << 20);
  for (std::size_t i = 0; i < pool.size(); i += 8) {
    std::uint64_t value = mix((i + 1) * 0x9e3779b97f4a7c15);
    if (kind == "weights") {
      const double u = (static_cast<double>(value >> 40) + 1) / (1 << 24) / 2 + 1e-9;
      const double radius = std::sqrt(-2 * std::log(u));
      const double angle = static_cast<double>(value & 0xffffff) / (1 << 24) * 6.283185307179586;
      const float pair[2] = {static_cast<float>(radius * std::cos(angle) * 0.02),
                             static_cast<float>(radius * std::sin(angle) * 0.02)};
      std::memcpy(&value, pair, sizeof(value));
    }
    if (kind == "zero") value = 0;
    std::memcpy(pool.data() + i, &value, sizeof(value));
  }
  return pool;
}

// The contents at `offset` of the region.
void contents(const Bytes& pool, std::uint64_t offset, std::span<std::byte> out) {
  const std::size_t at = offset / 5 % (pool.size() - out.size()) / 8 * 8;
  std::memcpy(out.data(), pool.data() + at, out.size());
}

// Memory that is there once it is touched.
class Target {
 public:
  explicit Target(std::uint64_t size)
      : size_(size),
        at_(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (at_ == MAP_FAILED) throw_errno("mmap");
  }
  ~Target() { ::munmap(at_, size_); }
  std::byte* at(std::uint64_t offset) { return static_cast<std::byte*>(at_) + offset; }

 private:
  std::uint64_t size_;
  void* at_;
};

void drop_from_page_cache(const std::filesystem::path& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) throw_errno(path.string());
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
}

double seconds_of(const std::function<void()>& work) {
  const double start = now_s();
  work();
  return now_s() - start;
}

void write_plain(const std::filesystem::path& path, const Bytes& pool, std::uint64_t size) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd.valid()) throw_errno(path.string());
  Bytes block(4u << 20);
  for (std::uint64_t offset = 0; offset < size; offset += block.size()) {
    contents(pool, offset, block);
    if (::write(fd.get(), block.data(), block.size()) != static_cast<ssize_t>(block.size())) {
      throw_errno(path.string());
    }
    constexpr std::uint64_t kWriteBehind = 16u << 20;  // as the writer of bundles does
    if ((offset + block.size()) % kWriteBehind == 0) {
      ::sync_file_range(fd.get(), static_cast<off_t>(offset + block.size() - kWriteBehind),
                        kWriteBehind, SYNC_FILE_RANGE_WRITE);
    }
  }
  if (::fsync(fd.get()) != 0) throw_errno(path.string());
}

void read_plain(const std::filesystem::path& path, Target& target, std::uint64_t size) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) throw_errno(path.string());
  for (std::uint64_t offset = 0; offset < size; offset += 4u << 20) {
    if (::read(fd.get(), target.at(offset), 4u << 20) != 4 << 20) throw_errno(path.string());
  }
}

void write_bundle(const std::filesystem::path& path, const Bytes& pool, const Bundle& bundle) {
  BundleWriter writer(path);
  writer.add_memory(bundle.regions[0], [&](std::uint64_t offset, std::span<std::byte> out) {
    contents(pool, offset, out);
  });
  writer.finish(bundle);
}

std::uint64_t read_bundle(const std::filesystem::path& path, Target& target) {
  const BundleReader reader(path);
  reader.read_memory(0, [&](std::uint64_t offset, std::span<const std::byte> block) {
    std::memcpy(target.at(offset), block.data(), block.size());
  });
  return reader.file_bytes();
}

struct Best {
  double seconds = 1e9;
  void take(double other) { seconds = std::min(seconds, other); }
  double mb_per_s(double bytes) const { return bytes / seconds / 1e6; }
};

}  // namespace

int main(int argc, char** argv) try {
  const double gib = argc > 1 ? std::atof(argv[1]) : 1;
  const Bytes pool = make_pool(argc > 2 ? argv[2] : "random");
  const int times = argc > 3 ? std::atoi(argv[3]) : 3;

  Bundle bundle;
  bundle.provenance.arch = "x86_64";
  bundle.provenance.driver = "host";
  const std::uint64_t size = static_cast<std::uint64_t>(gib * 256) * (4u << 20);
  bundle.regions = {{kArenaBase, size, Role::state, 0}};
  bundle.shapes.push_back({"empty", {}, {}});

  TempDir directory;
  const auto path = directory.path() / "speed.kjb", plain = directory.path() / "plain";
  Best write, read, cold_read, plain_write, plain_cold_read;
  std::uint64_t file_bytes = 0;
  double beyond_mib = 0;
  const auto of_bundle = [&] {
    write.take(seconds_of([&] { write_bundle(path, pool, bundle); }));
    for (Best* best : {&read, &cold_read}) {
      Target target(size);
      if (best == &cold_read) drop_from_page_cache(path);
      best->take(seconds_of([&] { file_bytes = read_bundle(path, target); }));
    }
    std::filesystem::remove(path);
    beyond_mib = peak_mib() - static_cast<double>(size) / (1 << 20);
  };
  const auto of_disk = [&] {
    plain_write.take(seconds_of([&] { write_plain(plain, pool, size); }));
    drop_from_page_cache(plain);
    Target target(size);
    plain_cold_read.take(seconds_of([&] { read_plain(plain, target, size); }));
    std::filesystem::remove(plain);
  };
  // In turns: what one has written, a disk may still be busy with when the other starts.
  for (int i = 0; i < times; ++i) {
    if (i % 2 == 1) of_disk();
    of_bundle();
    if (i % 2 == 0) of_disk();
  }
  const auto bytes = static_cast<double>(size);
  std::printf("%.2f GiB, %.2f GiB in the file, best of %d\n", bytes / (1 << 30),
              static_cast<double>(file_bytes) / (1 << 30), times);
  std::printf("bundle: write %5.0f MB/s, read %5.0f MB/s, cold read %5.0f MB/s\n",
              write.mb_per_s(bytes), read.mb_per_s(bytes), cold_read.mb_per_s(bytes));
  std::printf("disk:   write %5.0f MB/s,                 cold read %5.0f MB/s\n",
              plain_write.mb_per_s(bytes), plain_cold_read.mb_per_s(bytes));
  std::printf("peak memory beyond the region: %.0f MiB\n", beyond_mib);
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
