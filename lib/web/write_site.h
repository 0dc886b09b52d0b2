// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "web/site.h"

namespace kjudge {

struct WrittenSite {
  int pages = 0;    // there are now, with their tables
  int written = 0;  // new or changed; what is unchanged is left as it is
  int removed = 0;  // that an earlier run wrote and that belong to nothing now
};

// Writes the pages of `site` into `output`, made if need be, each atomically and none before what
// it links to. A file .kjudge-pages lists them; other files of `output` stay. What cannot be read
// is left out, and reported. Fault::host when a page cannot be written. Lets Interrupted pass.
WrittenSite write_site(const Site& site, const std::filesystem::path& output,
                       const ResultsDirectory::Report& report);

// Whether write_site() wrote all of `output` before.
bool has_site(const std::filesystem::path& output);

// One page of a site; false: it is there already. Fault::host.
bool put_page(const std::filesystem::path& output, const std::string& address,
              std::string_view bytes);

}  // namespace kjudge
