// SPDX-License-Identifier: Apache-2.0
#include "web/write_site.h"

#include <algorithm>
#include <set>

#include "error.h"
#include "file.h"
#include "judge/interrupt.h"
#include "unfinished.h"
#include "web/site_pages.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

constexpr const char* kList = ".kjudge-pages";
constexpr std::size_t kLargestPage = std::size_t{1} << 30;

// Of a line of the list, which is a file like others: only what this program would have written.
bool is_page_address(const std::string& address) {
  const bool plain = std::all_of(address.begin(), address.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           std::string_view("._~-/").find(static_cast<char>(c)) != std::string_view::npos;
  });
  const auto slash = address.find('/');
  return plain && slash != 0 && address.find('/', slash + 1) == address.npos &&
         address.find("..") == address.npos &&
         (address.ends_with(".html") || address.ends_with(".csv"));
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error(Fault::host, cat(folder.string(), ": ", error.message()));
}

bool is_there(const fs::path& path, std::string_view bytes) {
  std::error_code error;
  return fs::file_size(path, error) == bytes.size() && !error &&
         read_file(path, kLargestPage) == bytes;
}

class SiteWriter {
 public:
  explicit SiteWriter(const fs::path& output) : output_(output) { make_folder(output); }

  void put(const std::string& address, std::string_view bytes) {
    if (addresses_.insert(address).second) written_ += put_page(output_, address, bytes) ? 1 : 0;
  }

  WrittenSite finish() {
    WrittenSite counts{static_cast<int>(addresses_.size()), written_, 0};
    std::set<fs::path> folders{output_};
    for (const std::string& address : addresses_) {
      folders.insert((output_ / address).parent_path());
    }
    for (const fs::path& folder : folders) sweep_unfinished(folder);
    for (const std::string& old : listed()) {
      std::error_code error;
      if (is_page_address(old) && !addresses_.contains(old) && fs::remove(output_ / old, error))
        ++counts.removed;
    }
    std::string list;
    for (const std::string& address : addresses_) list += address + "\n";
    if (!is_there(output_ / kList, list)) write_file_atomically(output_ / kList, list);
    return counts;
  }

 private:
  std::vector<std::string> listed() const {
    std::vector<std::string> addresses;
    if (!fs::exists(output_ / kList)) return addresses;
    const std::string text = read_file(output_ / kList, kLargestPage);
    for (std::string_view rest = text; !rest.empty();) {
      const auto end = std::min(rest.find('\n'), rest.size());
      addresses.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return addresses;
  }

  fs::path output_;
  std::set<std::string> addresses_;
  int written_ = 0;
};

}  // namespace

bool has_site(const fs::path& output) { return fs::exists(output / kList); }

bool put_page(const fs::path& output, const std::string& address, std::string_view bytes) {
  const fs::path path = output / address;
  make_folder(path.parent_path());
  if (is_there(path, bytes)) return false;
  write_file_atomically(path, bytes);
  return true;
}

WrittenSite write_site(const Site& site, const fs::path& output,
                       const ResultsDirectory::Report& report) {
  SiteWriter writer(output);
  const SitePages pages(site, report);
  pages.each([&](const std::string& address) {
    check_interrupt();
    try {
      writer.put(address, pages.render(address).value());
    } catch (const Error& error) {
      if (error.fault() != Fault::malformed) throw;
      report(error);
    }
  });
  return writer.finish();
}

}  // namespace kjudge
