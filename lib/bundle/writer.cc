// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "bundle/format.h"
#include "file.h"

namespace kjudge {
namespace {

constexpr int kMemoryLevel = 1;
constexpr int kMetaLevel = 3;
constexpr std::uint64_t kWriteBehind = 16u << 20;

bool all_zero(std::span<const std::byte> page) {
  return page[0] == std::byte{0} && std::memcmp(page.data(), page.data() + 1, page.size() - 1) == 0;
}

// A new file beside `path`, with the rights that the process's umask gives.
Fd create_beside(const std::filesystem::path& path, std::string& temporary) {
  for (int attempt = 0;; ++attempt) {
    temporary = cat(path.string(), ".tmp.", ::getpid(), ".", attempt);
    Fd fd(::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (fd.valid()) return fd;
    if (errno != EEXIST || attempt == 1000) {
      const std::string what = std::exchange(temporary, {});
      throw_errno(what);
    }
  }
}

}  // namespace

class BundleWriter::Impl {
 public:
  explicit Impl(const std::filesystem::path& path)
      : path_(path), fd_(create_beside(path, temporary_)), end_(sizeof(BundleHeader)) {}

  ~Impl() {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }

  void add_memory(const Region& region, const ReadMemory& read) {
    KJ_CHECK(!temporary_.empty());
    KJ_CHECK(region.role == Role::state && region.size % kRegionGranule == 0);
    const auto index = static_cast<std::uint32_t>(added_.size());
    added_.push_back(region);
    raw_.resize(kMaxBundleBlock);
    for (std::uint64_t offset = 0; offset < region.size; offset += kMaxBundleBlock) {
      const auto chunk = std::span(raw_).first(
          static_cast<std::size_t>(std::min<std::uint64_t>(kMaxBundleBlock, region.size - offset)));
      read(offset, chunk);
      for (std::size_t begin = 0; begin < chunk.size();) {
        std::size_t end = begin;
        while (end < chunk.size() && !all_zero(chunk.subspan(end, kBundlePage))) end += kBundlePage;
        if (end == begin) {
          begin += kBundlePage;
          continue;
        }
        write_block(index, offset + begin, chunk.subspan(begin, end - begin));
        begin = end;
      }
    }
  }

  std::uint64_t size_bytes() const { return end_; }

  void finish(const Bundle& bundle) {
    KJ_CHECK(!temporary_.empty());
    const BundleLimits limits;
    try {
      validate(bundle, limits);
    } catch (const Error& error) {
      throw Error(Fault::bug, cat("bundle to write: ", error.what()));
    }
    number_blocks(bundle);

    BundleHeader header;
    header.table[0] = {BundleSection::memory,       BundleCodec::stored,
                       sizeof(BundleHeader),        end_ - sizeof(BundleHeader),
                       end_ - sizeof(BundleHeader), 0};
    std::uint64_t meta_bytes = 0, record_bytes = 0;
    for (std::uint32_t i = 1; i < kBundleSections; ++i) {
      const auto kind = static_cast<BundleSection>(i + 1);
      BundleEncoder encoder;
      section(encoder, kind, bundle, blocks_);
      header.table[i] = write_section(kind, encoder.bytes());
      meta_bytes += encoder.bytes().size();
      record_bytes += encoder.record_bytes();
    }
    if (std::max(meta_bytes, record_bytes) > limits.meta_bytes) {
      throw Error(Fault::bug, cat("bundle to write: ", meta_bytes, " bytes besides memory, ",
                                  record_bytes, " of records, more than ", limits.meta_bytes));
    }
    header.file_size = end_;
    const auto bytes = std::as_bytes(std::span(&header, 1));
    header.hash = xxh3(bytes.first(sizeof(header) - sizeof(header.hash)));
    write_at(0, bytes);

    if (::fsync(fd_.get()) != 0) throw_errno(temporary_);
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) throw_errno(path_.string());
    temporary_.clear();
    sync_directory(path_.parent_path());
  }

 private:
  void write_block(std::uint32_t region, std::uint64_t offset, std::span<const std::byte> raw) {
    packed_.resize(kMaxBundleBlock);
    BundleBlock block{
        region, BundleCodec::stored, offset, static_cast<std::uint32_t>(raw.size()), 0, 0};
    auto stored = raw;
    if (is_worth_packing(raw)) {
      const std::size_t most = raw.size() - raw.size() / 8;
      const auto size = compressor_.compress(raw, std::span(packed_).first(most), kMemoryLevel);
      if (size) {
        block.codec = BundleCodec::zstd;
        stored = std::span(packed_).first(*size);
      }
    }
    block.stored = static_cast<std::uint32_t>(stored.size());
    block.hash = xxh3(stored);
    blocks_.push_back(block);
    append(stored);
  }

  // Trying 32 KiB spares most of the time of compressing what does not compress, as weights do.
  bool is_worth_packing(std::span<const std::byte> raw) {
    constexpr std::size_t kPieces = 8, kPiece = 4096;
    std::array<std::byte, kPieces * kPiece> sample;
    for (std::size_t i = 0; i < kPieces; ++i) {
      const auto piece = raw.subspan(i * (raw.size() / kPieces), kPiece);
      std::copy(piece.begin(), piece.end(),
                sample.begin() + static_cast<std::ptrdiff_t>(i * kPiece));
    }
    const std::size_t most = sample.size() - sample.size() / 8;
    return compressor_.compress(sample, std::span(packed_).first(most), kMemoryLevel).has_value();
  }

  // Blocks carry the count of their region among those added; the file wants its index in the
  // bundle.
  void number_blocks(const Bundle& bundle) {
    std::vector<std::uint32_t> numbers;
    for (std::size_t i = 0; i < bundle.regions.size(); ++i) {
      const auto& region = bundle.regions[i];
      if (region.role != Role::state) continue;
      const std::size_t next = numbers.size();
      if (next >= added_.size() || added_[next].address != region.address ||
          added_[next].size != region.size) {
        throw Error(Fault::bug, cat("bundle to write: contents of region ", i,
                                    " were not added, or not in the order of the regions"));
      }
      numbers.push_back(static_cast<std::uint32_t>(i));
    }
    if (numbers.size() != added_.size()) {
      throw Error(Fault::bug, "bundle to write: contents were added for a region it does not have");
    }
    for (auto& block : blocks_) block.region = numbers[block.region];
  }

  BundleEntry write_section(BundleSection kind, std::span<const std::byte> raw) {
    BundleEntry entry{kind, BundleCodec::stored, end_, raw.size(), raw.size(), 0};
    auto stored = raw;
    Bytes packed(raw.size());
    if (!raw.empty()) {
      const auto size =
          compressor_.compress(raw, std::span(packed).first(raw.size() - 1), kMetaLevel);
      if (size) {
        entry.codec = BundleCodec::zstd;
        stored = std::span(packed).first(*size);
        entry.stored = *size;
      }
    }
    entry.hash = xxh3(stored);
    append(stored);
    return entry;
  }

  void append(std::span<const std::byte> bytes) {
    write_at(end_, bytes);
    end_ += bytes.size();
    // The disk starts while the next blocks are made, so that fsync finds little left to do.
    if (end_ - on_its_way_ >= kWriteBehind) {
      ::sync_file_range(fd_.get(), static_cast<off_t>(on_its_way_),
                        static_cast<off_t>(end_ - on_its_way_), SYNC_FILE_RANGE_WRITE);
      on_its_way_ = end_;
    }
  }

  void write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (n < 0) {
        if (errno == EINTR) continue;
        throw_errno(temporary_);
      }
      bytes = bytes.subspan(static_cast<std::size_t>(n));
      offset += static_cast<std::uint64_t>(n);
    }
  }

  std::filesystem::path path_;
  std::string temporary_;  // empty once renamed
  Fd fd_;
  std::uint64_t end_;             // of what is written
  std::uint64_t on_its_way_ = 0;  // to the disk
  std::vector<Region> added_;
  std::vector<BundleBlock> blocks_;
  BundleCompressor compressor_;
  Bytes raw_, packed_;
};

BundleWriter::BundleWriter(const std::filesystem::path& path)
    : impl_(std::make_unique<Impl>(path)) {}
BundleWriter::~BundleWriter() = default;

void BundleWriter::add_memory(const Region& region, const ReadMemory& read) {
  impl_->add_memory(region, read);
}
std::uint64_t BundleWriter::size_bytes() const { return impl_->size_bytes(); }
void BundleWriter::finish(const Bundle& bundle) { impl_->finish(bundle); }

std::uint64_t meta_bytes(const Bundle& bundle) {
  const std::vector<BundleBlock> no_blocks;
  std::uint64_t bytes = 0, record_bytes = 0;
  for (std::uint32_t i = 1; i < kBundleSections; ++i) {
    BundleEncoder encoder;
    section(encoder, static_cast<BundleSection>(i + 1), bundle, no_blocks);
    bytes += encoder.bytes().size();
    record_bytes += encoder.record_bytes();
  }
  return std::max(bytes, record_bytes);
}

}  // namespace kjudge
