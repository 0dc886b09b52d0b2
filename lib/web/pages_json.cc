// SPDX-License-Identifier: Apache-2.0
#include "web/pages_json.h"

namespace kjudge {
namespace {

struct PrintedSite : WrittenSite {
  int skipped = 0;
};

const FieldTable<PrintedSite>& pages_table() {
  using S = PrintedSite;
  const auto count = integer_kind(0, 1'000'000'000);
  static const FieldTable<S> table(
      {format_field<S>("kjudge-pages/1"),
       required<S, int>("pages", &S::pages, count, "files that there are now"),
       required<S, int>("written", &S::written, count, "of them new or changed"),
       required<S, int>("removed", &S::removed, count, "files that belonged to nothing any more"),
       required("skipped", &S::skipped, count, "lines on standard error: what cannot be read")});
  return table;
}

}  // namespace

Json pages_json(const WrittenSite& written, int skipped) {
  return Json{pages_table().write({written, skipped})};
}

JsonFormat pages_json_format() { return json_format(pages_table()); }

}  // namespace kjudge
