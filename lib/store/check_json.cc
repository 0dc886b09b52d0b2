// SPDX-License-Identifier: Apache-2.0
#include "store/check_json.h"

namespace kjudge {
namespace {

FieldTable<StoreFinding> store_finding_table() {
  using F = StoreFinding;
  using K = F::Kind;
  return FieldTable<F>(
      {required("kind", &F::kind,
                word_kind<K>({{std::string(name(K::damage)), K::damage},
                              {std::string(name(K::left_over)), K::left_over}}),
                "damage is for a person to look at; what is left over goes by itself"),
       printed_field<F, std::string>(
           "path", [](const F& finding) { return finding.path.string(); }, text_kind(),
           "of the file or folder"),
       required("what", &F::what, text_kind(), "happened, and what follows from it"),
       required("advice", &F::advice, text_kind(), "what to do")});
}

const FieldTable<StoreCheck>& store_check_table() {
  using C = StoreCheck;
  const auto count = integer_kind<std::size_t>(0, 1'000'000'000);
  static const FieldTable<C> table(
      {format_field<C>("kjudge-fsck/1"),
       required("submissions", &C::submissions, count, "how many there are"),
       required("evaluations", &C::evaluations, count, "how many they have together"),
       required("findings", &C::findings, list_kind(object_kind(store_finding_table())),
                "what is not as it should be")});
  return table;
}

}  // namespace

Json check_json(const StoreCheck& check) { return Json{store_check_table().write(check)}; }

JsonFormat check_json_format() { return json_format(store_check_table()); }

std::string_view name(StoreFinding::Kind kind) {
  return kind == StoreFinding::Kind::damage ? "damage" : "left over";
}

}  // namespace kjudge
