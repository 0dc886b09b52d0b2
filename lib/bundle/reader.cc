// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "bundle/format.h"
#include "file.h"

namespace kjudge {
namespace {

[[noreturn]] void malformed(const std::string& what) { throw Error(Fault::malformed, what); }

std::string section_name(BundleSection kind) { return cat("section ", name(kind)); }

// Memory that is touched only as it is filled.
struct Buffer {
  explicit Buffer(std::size_t bytes)
      : size(bytes), storage(std::make_unique_for_overwrite<std::byte[]>(bytes)) {}
  std::span<std::byte> span() { return {storage.get(), size}; }

  std::size_t size;
  std::unique_ptr<std::byte[]> storage;
};

}  // namespace

// The grammar is in format.h. Order: header and table, then every section but memory by its hash
// and whole, then the index of blocks, then the bundle's own rules (validate).
class BundleReader::Impl {
 public:
  Impl(Fd fd, std::string name, const BundleLimits& limits)
      : fd_(std::move(fd)), name_(std::move(name)) {
    within(name_, [&] {
      read_header();
      check_table(limits);
      BundleBudget budget(limits);
      for (std::size_t i = 1; i < header_.table.size(); ++i) {
        const BundleEntry& entry = header_.table[i];
        within(section_name(entry.kind), [&] { read_section(entry, budget); });
      }
      validate(bundle_, limits);
      within("section blocks", [&] { check_blocks(); });
    });
  }

  const Bundle& bundle() const { return bundle_; }
  std::uint32_t version() const { return header_.version; }
  std::uint64_t file_bytes() const { return header_.file_size; }
  int fd() const { return fd_.get(); }

  std::span<const BundleBlock> blocks(std::size_t region) const {
    const auto [first, last] = std::equal_range(blocks_.begin(), blocks_.end(), region, ByRegion{});
    return {first, last};
  }

  void read_memory(std::size_t region, const WriteMemory& write) const {
    KJ_CHECK(region < bundle_.regions.size());
    const auto own = blocks(region);
    std::uint32_t largest = 0;
    for (const BundleBlock& block : own) largest = std::max(largest, block.size);
    Buffer stored(largest), raw(largest);
    for (const BundleBlock& block : own) {
      const auto index = static_cast<std::size_t>(&block - blocks_.data());
      std::span<const std::byte> contents;
      within(name_, [&] {
        within("section memory: block", index,
               [&] { contents = read_block(block, payloads_[index], stored.span(), raw.span()); });
      });
      write(block.offset, contents);
    }
  }

 private:
  struct ByRegion {
    bool operator()(const BundleBlock& block, std::size_t region) const {
      return block.region < region;
    }
    bool operator()(std::size_t region, const BundleBlock& block) const {
      return region < block.region;
    }
  };

  void read_header() {
    struct stat status {};
    if (::fstat(fd_.get(), &status) != 0) throw_errno("fstat");
    if (!S_ISREG(status.st_mode)) malformed("not a regular file");
    const auto size = static_cast<std::uint64_t>(status.st_size);
    const auto bytes = std::as_writable_bytes(std::span(&header_, 1));
    const auto present = std::min<std::uint64_t>(size, sizeof(header_));
    read_at(0, bytes.first(present));
    // In the order of what is worth saying: another kind of file, another version, a cut file.
    if (present < 16 || header_.magic != kBundleMagic) malformed("not a kjudge bundle");
    if (header_.version == 0 || header_.version > kBundleVersion) {
      malformed(cat("bundle version ", header_.version, "; this kjudge reads versions 1 to ",
                    kBundleVersion, ": use the kjudge that wrote it"));
    }
    if (present < sizeof(header_)) malformed("header: cut short");
    if (header_.sections != kBundleSections) {
      malformed(cat("header: ", header_.sections, " sections, expected ", kBundleSections));
    }
    if (xxh3(bytes.first(sizeof(header_) - sizeof(header_.hash))) != header_.hash) {
      malformed("header: does not match its hash");
    }
    if (header_.file_size != size) {
      malformed(cat("header: file_size ", header_.file_size, ", but the file has ", size,
                    " bytes: cut short, or something was added"));
    }
  }

  // After this: sections known, each once, one after the other, none past the end of the file, all
  // but memory together no larger than the limit.
  void check_table(const BundleLimits& limits) const {
    std::uint64_t end = sizeof(header_), meta_left = limits.meta_bytes;
    for (std::size_t i = 0; i < header_.table.size(); ++i) {
      const BundleEntry& entry = header_.table[i];
      const auto kind = static_cast<std::uint32_t>(entry.kind);
      if (kind != i + 1)
        malformed(cat("section ", i, ": unknown or out of order (kind ", kind, ")"));
      within(section_name(entry.kind), [&] { check_entry(entry, limits, end, meta_left); });
    }
    if (end != header_.file_size) malformed("bytes after the last section");
  }

  void check_entry(const BundleEntry& entry, const BundleLimits& limits, std::uint64_t& end,
                   std::uint64_t& meta_left) const {
    if (entry.codec != BundleCodec::stored && entry.codec != BundleCodec::zstd) {
      malformed(cat("unknown codec ", static_cast<std::uint32_t>(entry.codec)));
    }
    if (entry.offset != end) malformed("does not begin where the one before it ends");
    if (entry.stored > header_.file_size - end) malformed("reaches past the end of the file");
    end += entry.stored;
    if (entry.codec == BundleCodec::stored ? entry.stored != entry.size
                                           : entry.stored >= entry.size) {
      malformed(cat("stored ", entry.stored, " does not fit size ", entry.size));
    }
    if (entry.kind == BundleSection::memory) {
      if (entry.codec != BundleCodec::stored || entry.hash != 0) {
        malformed("has a codec or a hash of its own");
      }
      return;
    }
    if (entry.size > meta_left) {
      malformed(cat("size ", entry.size, ": all sections but memory have more than ",
                    limits.meta_bytes, " bytes, the limit"));
    }
    meta_left -= entry.size;
  }

  void read_section(const BundleEntry& entry, BundleBudget& budget) {
    Buffer stored(entry.stored);
    read_at(entry.offset, stored.span());
    if (xxh3(stored.span()) != entry.hash) malformed("does not match its hash");
    Buffer raw(entry.codec == BundleCodec::zstd ? entry.size : 0);
    std::span<const std::byte> bytes = stored.span();
    if (entry.codec == BundleCodec::zstd) {
      decompress(bytes, raw.span());
      bytes = raw.span();
    }
    BundleDecoder decoder(header_.version, bytes, budget);
    section(decoder, entry.kind, bundle_, blocks_);
    decoder.finish();
  }

  // Needs valid regions. After this every payload lies in the memory section, and all of it is
  // theirs.
  void check_blocks() {
    const BundleEntry& memory = header_.table[0];
    std::uint64_t payload = memory.offset;
    const std::uint64_t end = memory.offset + memory.stored;
    payloads_.reserve(blocks_.size());
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      within("block", i, [&] {
        check_block(blocks_[i], i == 0 ? nullptr : &blocks_[i - 1]);
        if (blocks_[i].stored > end - payload) malformed("payload reaches past section memory");
      });
      payloads_.push_back(payload);
      payload += blocks_[i].stored;
    }
    if (payload != end) malformed("section memory has bytes that belong to no block");
  }

  void check_block(const BundleBlock& block, const BundleBlock* before) const {
    const auto& regions = bundle_.regions;
    if (block.region >= regions.size()) malformed(cat("region ", block.region, " is unknown"));
    const Region& region = regions[block.region];
    if (region.role != Role::state) malformed(cat("region ", block.region, " is not state"));
    if (block.codec != BundleCodec::stored && block.codec != BundleCodec::zstd) {
      malformed(cat("unknown codec ", static_cast<std::uint32_t>(block.codec)));
    }
    if (block.size == 0 || block.size > kMaxBundleBlock || block.size % kBundlePage != 0 ||
        block.offset % kBundlePage != 0) {
      malformed("offset or size is not in pages of 64 KiB, or size is over 4 MiB");
    }
    if (block.offset > region.size || block.size > region.size - block.offset) {
      malformed(cat("reaches past region ", block.region));
    }
    const bool fits = block.codec == BundleCodec::stored
                          ? block.stored == block.size
                          : block.stored != 0 && block.stored < block.size;
    if (!fits) malformed(cat("stored ", block.stored, " does not fit size ", block.size));
    if (before != nullptr &&
        (block.region < before->region ||
         (block.region == before->region && block.offset < before->offset + before->size))) {
      malformed("overlaps or comes before the one before it");
    }
  }

  std::span<const std::byte> read_block(const BundleBlock& block, std::uint64_t payload,
                                        std::span<std::byte> stored,
                                        std::span<std::byte> raw) const {
    stored = stored.first(block.stored);
    read_at(payload, stored);
    if (xxh3(stored) != block.hash) malformed("contents do not match their hash");
    if (block.codec == BundleCodec::stored) return stored;
    raw = raw.first(block.size);
    decompress(stored, raw);
    return raw;
  }

  void read_at(std::uint64_t offset, std::span<std::byte> out) const {
    while (!out.empty()) {
      const ssize_t n = ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset));
      if (n < 0) {
        if (errno == EINTR) continue;
        throw_errno("read");
      }
      if (n == 0) malformed("the file became shorter while it was read");
      out = out.subspan(static_cast<std::size_t>(n));
      offset += static_cast<std::uint64_t>(n);
    }
  }

  Fd fd_;
  std::string name_;
  BundleHeader header_;
  Bundle bundle_;
  std::vector<BundleBlock> blocks_;      // in order of region and offset
  std::vector<std::uint64_t> payloads_;  // where in the file each block's bytes begin
};

BundleReader::BundleReader(const std::filesystem::path& path, const BundleLimits& limits) {
  // Without O_NONBLOCK, opening a FIFO that someone put there would wait for ever.
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) throw_errno(path.string());
  impl_ = std::make_unique<Impl>(std::move(fd), path.string(), limits);
}

BundleReader::BundleReader(int fd, std::string name, const BundleLimits& limits) {
  Fd own(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!own.valid()) throw_errno(name);
  impl_ = std::make_unique<Impl>(std::move(own), std::move(name), limits);
}

BundleReader::~BundleReader() = default;
BundleReader::BundleReader(BundleReader&&) noexcept = default;

const Bundle& BundleReader::bundle() const { return impl_->bundle(); }
void BundleReader::read_memory(std::size_t region, const WriteMemory& write) const {
  impl_->read_memory(region, write);
}
std::uint32_t BundleReader::version() const { return impl_->version(); }
std::uint64_t BundleReader::file_bytes() const { return impl_->file_bytes(); }
int BundleReader::fd() const { return impl_->fd(); }

StoredMemory BundleReader::stored_memory(std::size_t region) const {
  KJ_CHECK(region < bundle().regions.size());
  StoredMemory memory;
  for (const BundleBlock& block : impl_->blocks(region)) {
    memory.blocks += 1;
    memory.bytes += block.size;
    memory.file_bytes += block.stored;
  }
  return memory;
}

}  // namespace kjudge
