// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>

#include "error.h"
#include "file.h"
#include "make_bundle.h"

using namespace kjudge;

namespace {

namespace fs = std::filesystem;

void write_bundle(const fs::path& path, const Bundle& bundle,
                  const BundleWriter::ReadMemory& contents) {
  BundleWriter writer(path);
  for (const auto& region : bundle.regions) {
    if (region.role == Role::state) writer.add_memory(region, contents);
  }
  writer.finish(bundle);
}

std::string small_file() {
  TempDir directory;
  write_bundle(directory.path() / "b.kjb", rich_bundle(), fill_one_page);
  return read_file(directory.path() / "b.kjb");
}

}  // namespace

TEST_CASE("bundle: what is written is read, contents too") {
  TempDir directory;
  const auto path = directory.path() / "b.kjb";
  const Bundle bundle = rich_bundle();
  write_bundle(path, bundle, fill_contents);

  const BundleReader reader(path);
  CHECK(all_records(reader.bundle()) == all_records(bundle));
  CHECK(reader.file_bytes() == fs::file_size(path));
  for (std::size_t i = 0; i < bundle.regions.size(); ++i) {
    const auto& region = bundle.regions[i];
    Bytes expected(region.size), read(region.size);
    if (region.role == Role::state) fill_contents(0, expected);
    std::uint64_t passed = 0, end = 0;
    reader.read_memory(i, [&](std::uint64_t offset, std::span<const std::byte> bytes) {
      CHECK(offset >= end);
      end = offset + bytes.size();
      passed += bytes.size();
      std::copy(bytes.begin(), bytes.end(), read.begin() + static_cast<std::ptrdiff_t>(offset));
    });
    CHECK(read == expected);
    // Two pages of four are zero, and not in the file.
    CHECK(passed == (region.role == Role::state ? region.size / 2 : 0));
    CHECK(reader.stored_memory(i).bytes == passed);
  }
}

TEST_CASE("bundle: the same calls give the same bytes") {
  TempDir directory;
  const auto first = directory.path() / "a.kjb", second = directory.path() / "b.kjb";
  write_bundle(first, rich_bundle(), fill_contents);
  write_bundle(second, rich_bundle(), fill_contents);
  CHECK(read_file(first) == read_file(second));
}

TEST_CASE("bundle: memory that is zero takes no space") {
  TempDir directory;
  Bundle bundle = rich_bundle();
  bundle.regions[4].size = 1u << 30;
  write_bundle(directory.path() / "b.kjb", bundle, [](std::uint64_t, std::span<std::byte> out) {
    std::fill(out.begin(), out.end(), std::byte{0});
  });
  const BundleReader reader(directory.path() / "b.kjb");
  CHECK(reader.stored_memory(4).blocks == 0);
  CHECK(reader.file_bytes() < 8192);
}

TEST_CASE("bundle: 64 MiB stream through, compressible or not") {
  TempDir directory;
  Bundle bundle = rich_bundle();
  bundle.regions[4].size = 64u << 20;
  write_bundle(directory.path() / "b.kjb", bundle, fill_contents);
  const BundleReader reader(directory.path() / "b.kjb");
  std::size_t largest = 0;
  bool same = true;
  std::uint64_t passed = 0;
  reader.read_memory(4, [&](std::uint64_t offset, std::span<const std::byte> bytes) {
    Bytes expected(bytes.size());
    fill_contents(offset, expected);
    same = same && std::equal(bytes.begin(), bytes.end(), expected.begin());
    largest = std::max(largest, bytes.size());
    passed += bytes.size();
  });
  CHECK(same);
  CHECK(passed == 32u << 20);
  CHECK(largest <= kMaxBundleBlock);
  // 16 MiB that do not compress, 16 MiB of a few bytes.
  CHECK(reader.stored_memory(4).file_bytes < 17u << 20);
}

TEST_CASE("bundle: a file appears when it is finished, and not before") {
  TempDir directory;
  const auto path = directory.path() / "b.kjb";
  const auto files = [&] { return std::distance(fs::directory_iterator(directory.path()), {}); };
  const Bundle bundle = rich_bundle();
  {
    BundleWriter writer(path);
    writer.add_memory(bundle.regions[0], fill_one_page);
    CHECK_FALSE(fs::exists(path));
    CHECK(files() == 1);
  }
  CHECK(files() == 0);
  write_bundle(path, bundle, fill_one_page);
  CHECK(files() == 1);
  CHECK_THROWS_AS(BundleWriter(directory.path() / "none" / "b.kjb"), Error);
}

TEST_CASE("bundle: the writer refuses what a reader would") {
  TempDir directory;
  const auto path = directory.path() / "b.kjb";
  const auto failure_of = [&](const Bundle& bundle, std::vector<std::size_t> added) -> std::string {
    BundleWriter writer(path);
    for (const std::size_t region : added) writer.add_memory(bundle.regions[region], fill_one_page);
    try {
      writer.finish(bundle);
    } catch (const Error& error) {
      CHECK(error.fault() == Fault::bug);
      return error.what();
    }
    return "";
  };
  Bundle bundle = rich_bundle();
  CHECK(failure_of(bundle, {0}) ==
        "bundle to write: contents of region 4 were not added, or not in the order of the regions");
  CHECK(failure_of(bundle, {4, 0}) ==
        "bundle to write: contents of region 0 were not added, or not in the order of the regions");
  CHECK(failure_of(bundle, {0, 4, 0}) ==
        "bundle to write: contents were added for a region it does not have");
  bundle.shapes[0].output_hashes.clear();
  CHECK(failure_of(bundle, {0, 4}) ==
        "bundle to write: section shapes: shape 4096x4096: 0 output_hashes for 2 tensors that are "
        "written");
  CHECK_FALSE(fs::exists(path));
}

TEST_CASE("bundle: limits of the caller's hold") {
  const std::string file = small_file();
  CHECK(failure(file, {.nodes = 6}) == "");
  CHECK(failure(file, {.nodes = 5}) ==
        "b.kjb: section shapes: shape 1: node 0: all graphs together have more than 5 nodes");
  CHECK(failure(file, {.memory_bytes = 8u << 20}) ==
        "b.kjb: section regions: region 2: all regions so far have 10485760 bytes, more than the "
        "limit of 8388608");
  CHECK(failure(file, {.meta_bytes = 1000}).find("all sections but memory have more than 1000") !=
        std::string::npos);
}

TEST_CASE("bundle: a writer can tell what a reader will count") {
  const RawBundle raw{rich_bundle(), {}, ""};
  const std::uint64_t counted = meta_bytes(raw.bundle);
  CHECK(failure(raw.file(), {.meta_bytes = counted}) == "");
  CHECK(failure(raw.file(), {.meta_bytes = counted - 1}) != "");
}

TEST_CASE("bundle: header and table are held to the file") {
  const auto change = [](const std::function<void(BundleHeader&)>& change_header) {
    RawBundle raw{rich_bundle(), {}, "payload"};
    raw.blocks = {{0, BundleCodec::zstd, 0, kBundlePage, 7, 0}};
    raw.change_header = change_header;
    return failure(raw);
  };
  CHECK(change([](auto& h) { h.magic[7] = '\r'; }) == "b.kjb: not a kjudge bundle");
  CHECK(change([](auto& h) { h.version = 3; }) ==
        "b.kjb: bundle version 3; this kjudge reads versions 1 to 2: use the kjudge that wrote it");
  CHECK(change([](auto& h) { h.version = 0; }).find("bundle version 0") != std::string::npos);
  CHECK(change([](auto& h) { h.sections = 9; }) == "b.kjb: header: 9 sections, expected 8");
  CHECK(change([](auto& h) { h.file_size += 1; }).find("but the file has") != std::string::npos);
  CHECK(change([](auto& h) { h.table[3].kind = static_cast<BundleSection>(9); }) ==
        "b.kjb: section 3: unknown or out of order (kind 9)");
  CHECK(change([](auto& h) { std::swap(h.table[3], h.table[4]); }) ==
        "b.kjb: section 3: unknown or out of order (kind 5)");
  CHECK(change([](auto& h) { h.table[3].codec = static_cast<BundleCodec>(2); }) ==
        "b.kjb: section modules: unknown codec 2");
  CHECK(change([](auto& h) { h.table[3].offset -= 1; }) ==
        "b.kjb: section modules: does not begin where the one before it ends");
  CHECK(change([](auto& h) { h.table[3].stored = ~std::uint64_t{0}; }) ==
        "b.kjb: section modules: reaches past the end of the file");
  CHECK(change([](auto& h) { h.table[3].size += 1; }).find("does not fit size") !=
        std::string::npos);
  CHECK(change([](auto& h) {
          h.table[3].codec = BundleCodec::zstd;
          h.table[3].size = ~std::uint64_t{0};
        }).find("all sections but memory have more than 1073741824 bytes") != std::string::npos);
  CHECK(change([](auto& h) {
          h.table[3].codec = BundleCodec::zstd;
          h.table[3].size += 1;
        }).find("section modules: not one zstd frame of") != std::string::npos);
  CHECK(change([](auto& h) { h.table[3].hash ^= 1; }) ==
        "b.kjb: section modules: does not match its hash");
  CHECK(change([](auto& h) { h.table[0].hash = 1; }) ==
        "b.kjb: section memory: has a codec or a hash of its own");
  CHECK(change([](auto& h) {
          h.table[7].stored -= 1;
          h.table[7].size -= 1;
        }) == "b.kjb: bytes after the last section");
  CHECK(failure("") == "b.kjb: not a kjudge bundle");
  CHECK(failure(std::string(4096, 'x')) == "b.kjb: not a kjudge bundle");
}

TEST_CASE("bundle: records are whole, and nothing follows them") {
  const auto change = [](BundleSection section, const std::function<void(std::string&)>& edit) {
    RawBundle raw{rich_bundle(), {}, ""};
    raw.change_section = [&](BundleSection kind, std::string& record) {
      if (kind == section) edit(record);
    };
    return failure(raw);
  };
  CHECK(change(BundleSection::limits, [](auto& r) { r += 'x'; }) ==
        "b.kjb: section limits: 1 bytes after the last field");
  CHECK(change(BundleSection::limits, [](auto& r) { r.pop_back(); }) ==
        "b.kjb: section limits: limit 1: value: cut short");
  CHECK(change(BundleSection::limits, [](auto& r) { r.clear(); }) ==
        "b.kjb: section limits: limit: cut short");
  CHECK(change(BundleSection::limits, [](auto& r) { r.replace(0, 4, "\xff\xff\xff\xff"); }) ==
        "b.kjb: section limits: limit: length 4294967295, but 24 bytes are left");
  CHECK(change(BundleSection::provenance, [](auto& r) {
          r[3] = '\x7f';
        }).find("section provenance: arch: length") != std::string::npos);
  // Count, name, count of nodes, then the first node's kind.
  CHECK(change(BundleSection::shapes, [](auto& r) { r[4 + 4 + 9 + 4] = 4; }) ==
        "b.kjb: section shapes: shape 0: node 0: unknown kind 4");
  CHECK(change(BundleSection::provenance, [](auto& r) {
          const std::uint32_t many = kMaxNotes + 1;
          r.replace(r.find("left out") - 8, 4, reinterpret_cast<const char*>(&many), 4);
          r.append(5 * kMaxNotes, '\0');
        }).find("section provenance: note: 1001, at most 1000 are allowed") != std::string::npos);
}

TEST_CASE("bundle: blocks of memory are held to their region and payload") {
  const std::string page(kBundlePage, 'x');
  const std::uint64_t hash = xxh3(std::as_bytes(std::span(page)));
  const BundleBlock good{0, BundleCodec::stored, kBundlePage, kBundlePage, kBundlePage, hash};
  const auto change = [&](const std::function<void(BundleBlock&)>& edit) {
    RawBundle raw{rich_bundle(), {good}, page};
    edit(raw.blocks[0]);
    return failure(raw);
  };
  CHECK(change([](auto&) {}) == "");
  CHECK(change([](auto& b) { b.region = 5; }) ==
        "b.kjb: section blocks: block 0: region 5 is unknown");
  CHECK(change([](auto& b) { b.region = 1; }) ==
        "b.kjb: section blocks: block 0: region 1 is not state");
  CHECK(change([](auto& b) { b.codec = static_cast<BundleCodec>(7); }) ==
        "b.kjb: section blocks: block 0: unknown codec 7");
  const std::string pages =
      "b.kjb: section blocks: block 0: offset or size is not in pages of 64 KiB, or size is over "
      "4 MiB";
  CHECK(change([](auto& b) { b.offset = 1; }) == pages);
  CHECK(change([](auto& b) { b.size = 0; }) == pages);
  CHECK(change([](auto& b) { b.size = kBundlePage - 1; }) == pages);
  CHECK(change([](auto& b) { b.size = kMaxBundleBlock + kBundlePage; }) == pages);
  CHECK(change([](auto& b) { b.offset = 4u << 20; }) ==
        "b.kjb: section blocks: block 0: reaches past region 0");
  CHECK(change([](auto& b) { b.offset = ~std::uint64_t{0xffff}; }) ==
        "b.kjb: section blocks: block 0: reaches past region 0");
  CHECK(change([](auto& b) { b.stored -= 1; }) ==
        "b.kjb: section blocks: block 0: stored 65535 does not fit size 65536");
  CHECK(change([](auto& b) { b.codec = BundleCodec::zstd; }) ==
        "b.kjb: section blocks: block 0: stored 65536 does not fit size 65536");
  CHECK(change([](auto& b) {
          b.size *= 2;
          b.stored *= 2;
        }) == "b.kjb: section blocks: block 0: payload reaches past section memory");
  CHECK(change([](auto& b) { b.hash += 1; }) ==
        "b.kjb: section memory: block 0: contents do not match their hash");

  RawBundle raw{rich_bundle(), {good, good}, page + page};
  CHECK(failure(raw) ==
        "b.kjb: section blocks: block 1: overlaps or comes before the one before it");
  raw.blocks[0].region = 4;
  CHECK(failure(raw) ==
        "b.kjb: section blocks: block 1: overlaps or comes before the one before it");
  raw.blocks = {good};
  CHECK(failure(raw) == "b.kjb: section blocks: section memory has bytes that belong to no block");
  raw.payload = page.substr(1);
  raw.blocks = {{0, BundleCodec::zstd, 0, kBundlePage, kBundlePage - 1, 0}};
  raw.blocks[0].hash = xxh3(std::as_bytes(std::span(raw.payload)));
  CHECK(failure(raw) == "b.kjb: section memory: block 0: not one zstd frame of 65536 bytes");
}

TEST_CASE("bundle: no cut and no changed byte is accepted") {
  const std::string file = small_file();
  REQUIRE(failure(file) == "");
  MemoryFile memory(file);
  for (std::size_t i = 0; i < file.size(); ++i) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      const char changed = static_cast<char>(file[i] ^ flip);
      memory.write(i, {&changed, 1});
      CAPTURE(i);
      CHECK(failure(memory.fd()) != "");
    }
    memory.write(i, {&file[i], 1});
  }
  REQUIRE(failure(memory.fd()) == "");
  memory.write(file.size(), "x");
  CHECK(failure(memory.fd()) != "");
  for (std::size_t length = file.size(); length-- > 0;) {
    memory.truncate(length);
    CAPTURE(length);
    CHECK(failure(memory.fd()) != "");
  }
}

// 90 kB that claim to be, and decompress to, as much as the limit lets them.
TEST_CASE("bundle: a small file cannot take much memory") {
  constexpr std::uint64_t kLimit = 64u << 20;
  const auto peak_mib = [](const std::string& file, const char* message) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      const std::string found = failure(file, {.meta_bytes = kLimit});
      ::_exit(found.find(message) != std::string::npos ? 0 : 1);
    }
    int status = 0;
    rusage usage{};
    REQUIRE(::wait4(child, &status, 0, &usage) == child);
    CHECK(status == 0);
    return usage.ru_maxrss / 1024;
  };
  const auto packed = [](BundleSection section, std::uint64_t size, std::string record) {
    record.resize(size);
    BundleCompressor compressor;
    Bytes out(record.size() / 2);
    const std::size_t packed_size = *compressor.compress(std::as_bytes(std::span(record)), out, 3);
    RawBundle raw{rich_bundle(), {}, ""};
    raw.change_section = [&](BundleSection kind, std::string& bytes) {
      if (kind == section) bytes.assign(reinterpret_cast<const char*>(out.data()), packed_size);
    };
    raw.change_header = [&](BundleHeader& header) {
      auto& entry = header.table[static_cast<std::size_t>(section) - 1];
      entry.codec = BundleCodec::zstd;
      entry.size = size;
    };
    return raw.file();
  };
  const auto count = [](std::uint32_t value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  std::vector<std::pair<std::string, const char*>> files;
  // Lists of empty records, as many as fit.
  files.emplace_back(packed(BundleSection::shapes, kLimit / 2, count(kMaxShapes)),
                     "after the last field");
  files.emplace_back(packed(BundleSection::limits, kLimit - 8192, count((kLimit - 8192) / 12)),
                     "records take more than 67108864 bytes of memory");
  files.emplace_back(packed(BundleSection::regions, kLimit - 8192, count(0xffffffff)), "length");
  std::string shape = count(1) + count(0) + count(kLimit / 2);
  shape.resize(kLimit / 4, '\x03');
  files.emplace_back(packed(BundleSection::shapes, kLimit / 4, shape), "length");
  shape.replace(8, 4, count(kLimit / 4 - 12));
  files.emplace_back(packed(BundleSection::shapes, kLimit / 4, shape),
                     "records take more than 67108864 bytes of memory");
  files.emplace_back(packed(BundleSection::limits, kLimit + 8, count(0)),
                     "all sections but memory have more than");
  for (const auto& [file, message] : files) {
    CAPTURE(message);
    CHECK(file.size() < 90'000);
    const long peak = peak_mib(file, message);
#ifndef __SANITIZE_ADDRESS__
    CHECK(peak < 256);
#endif
  }
}

// With right hashes, so that what is wrong reaches the records themselves.
TEST_CASE("bundle: changed bytes under right hashes are an error or another valid bundle") {
  RawBundle raw{rich_bundle(), {}, ""};
  for (std::uint32_t kind = 2; kind <= kBundleSections; ++kind) {
    std::size_t size = 0, at = 0;
    char flip = 0;
    raw.change_section = [&](BundleSection section, std::string& record) {
      if (section != static_cast<BundleSection>(kind)) return;
      size = record.size();
      if (at < size) record[at] = static_cast<char>(record[at] ^ flip);
    };
    raw.file();
    for (at = 0; at < size; ++at) {
      for (const char value : {'\x01', '\x80', '\xff'}) {
        flip = value;
        failure(raw);
      }
    }
  }
}

TEST_CASE("bundle: a kernel's symbol is readable") {
  CHECK(readable_name("softmax") == "softmax");
  CHECK(readable_name("_Z7softmaxPfPKfi") == "softmax(float*, float const*, int)");
  CHECK(readable_name("_Z3runILi4EEvPf") == "run<4>(float*)");
  CHECK(readable_name("_Z") == "_Z");
  CHECK(readable_name("_ZN2at99x") == "_ZN2at99x");
  CHECK(readable_name(std::string(500, 'x')) == std::string(157, 'x') + "...");
  // More references than are written out.
  std::string many = "_ZN7cutlass13device_kernelINS_4gemmEEEv";
  for (int i = 0; i < 40; ++i) many += "S1_";
  CHECK(readable_name(many) == "cutlass::device_kernel<...>");
}

// Each type is a function of the type before, and once more of that: the demangler would write 3 x
// 2^n bytes for n of them, and take as long. The judge reads such names when a kernel faults.
TEST_CASE("bundle: a symbol that doubles with each type is not written out") {
  constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string symbol = "_Z4growPFvvE";
  for (std::size_t i = 0; i < 17; ++i) {
    const std::string before = cat("S", kDigits.substr(2 * i, 1), "_");
    symbol += cat("PFv", before, before, "E");
  }
  CHECK(symbol.size() < 250);
  CHECK(readable_name(symbol) == "grow");
}

TEST_CASE("bundle: what may have failed is told with the nodes of its graph") {
  Graph graph;
  CHECK(suspects(graph) == "a copy or memset");
  const auto add = [&](const std::string& kernel) {
    KernelNode node;
    node.name = kernel;
    graph.nodes.emplace_back(node);
  };
  graph.nodes.emplace_back(MemsetNode{});
  add("rows");
  CHECK(suspects(graph) == "kernel rows (node 1)");
  add("rows");
  CHECK(suspects(graph) == "kernel rows (one of nodes 1, 2)");
  add("columns");
  CHECK(suspects(graph) == "one of 3 kernels (rows: nodes 1, 2; columns: node 3)");
  for (int i = 0; i < 20; ++i) add("rows");
  for (int i = 0; i < 7; ++i) add(cat("other", i));
  CHECK(suspects(graph) ==
        "one of 30 kernels (rows: nodes 1, 2, 4, 5, 6, 7, 8, 9 and 14 more; columns: node 3; "
        "other0: node 24; other1: node 25; other2: node 26; other3: node 27; other4: node 28; "
        "other5: node 29; and 1 more)");
}

TEST_CASE("bundle: read by descriptor, which stays the caller's") {
  MemoryFile memory(small_file());
  CHECK(BundleReader(memory.fd(), "b.kjb").bundle().shapes.size() == 2);
  CHECK(BundleReader(memory.fd(), "b.kjb").bundle().shapes.size() == 2);
  CHECK(::lseek(memory.fd(), 0, SEEK_CUR) == 0);
}

TEST_CASE("bundle: what is no regular file is refused, without waiting for it") {
  TempDir directory;
  const auto fault_of = [](const fs::path& path) {
    try {
      const BundleReader reader(path);
    } catch (const Error& error) {
      return std::pair(error.fault(), std::string(error.what()));
    }
    return std::pair(Fault::bug, std::string());
  };
  const auto fifo = directory.path() / "b.kjb";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(fault_of(fifo) == std::pair(Fault::malformed, cat(fifo.string(), ": not a regular file")));
  CHECK(fault_of(directory.path()).first == Fault::malformed);
  CHECK(fault_of(directory.path() / "none").first == Fault::host);
}

// A bundle of each version ever released, as that version wrote it. KJUDGE_WRITE_GOLDEN=1 makes the
// newest one anew, while that version is not released.
TEST_CASE("bundle: golden files stay readable") {
  std::uint32_t version = 0;
  SUBCASE("version 1") { version = 1; }
  SUBCASE("version 2") { version = 2; }
  const auto golden = fs::path(KJUDGE_TEST_FOLDER) / "golden" / cat("bundle-v", version);
  if (std::getenv("KJUDGE_WRITE_GOLDEN") != nullptr && version == kBundleVersion) {
    fs::create_directories(golden);
    write_bundle(golden / "rich.kjb", rich_bundle(), fill_one_page);
    std::ofstream(golden / "rich.dump") << dump(BundleReader(golden / "rich.kjb"));
  }
  const BundleReader reader(golden / "rich.kjb");
  CHECK(reader.version() == version);
  CHECK(reader.bundle().provenance.driver_release == (version == 1 ? "" : "580.159.04"));
  CHECK(dump(reader) == read_file(golden / "rich.dump"));
  std::uint64_t passed = 0;
  reader.read_memory(0, [&](std::uint64_t offset, std::span<const std::byte> bytes) {
    Bytes expected(2 * kBundlePage);
    fill_one_page(0, expected);
    CHECK(offset == kBundlePage);
    CHECK(std::equal(bytes.begin(), bytes.end(), expected.begin() + kBundlePage, expected.end()));
    passed += bytes.size();
  });
  CHECK(passed == kBundlePage);
}
