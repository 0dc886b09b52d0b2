// SPDX-License-Identifier: Apache-2.0
#include "web/server/serving_json.h"

namespace kjudge {
namespace {

struct Serving {
  std::string address;
};

const FieldTable<Serving>& serving_table() {
  using S = Serving;
  static const FieldTable<S> table(
      {format_field<S>("kjudge-serving/1"),
       required("address", &S::address, line_kind(1, 300), "and port that it listens on")});
  return table;
}

}  // namespace

Json serving_json(const std::string& address) { return Json{serving_table().write({address})}; }

JsonFormat serving_json_format() { return json_format(serving_table()); }

}  // namespace kjudge
