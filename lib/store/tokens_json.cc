// SPDX-License-Identifier: Apache-2.0
#include "store/tokens_json.h"

namespace kjudge {
namespace {

struct AddedToken {
  std::string name, token;
};

const FieldTable<AddedToken>& added_token_table() {
  using A = AddedToken;
  static const FieldTable<A> table(
      {format_field<A>("kjudge-added-token/1"),
       required("name", &A::name, line_kind(1, 200), "whose it is"),
       required("token", &A::token, line_kind(1, 200), "to hand in with; shown this once")});
  return table;
}

struct PrintedTokens {
  std::vector<Token> tokens;
};

FieldTable<Token> listed_token_table() {
  using T = Token;
  return FieldTable<T>({required("name", &T::name, line_kind(1, 200), "whose it is"),
                        required("added", &T::added, line_kind(1, 40), "UTC, RFC 3339"),
                        optional("revoked", &T::revoked, line_kind(0, 40),
                                 "since when it is good for nothing; absent while it is good")});
}

const FieldTable<PrintedTokens>& tokens_table() {
  using P = PrintedTokens;
  static const FieldTable<P> table(
      {format_field<P>("kjudge-tokens/1"),
       required("tokens", &P::tokens, list_kind(object_kind(listed_token_table())),
                "in the order of their names")});
  return table;
}

}  // namespace

Json added_token_json(const std::string& name, const std::string& token) {
  return Json{added_token_table().write({name, token})};
}

Json tokens_json(std::vector<Token> tokens) {
  return Json{tokens_table().write({std::move(tokens)})};
}

std::vector<JsonFormat> tokens_json_formats() {
  return {json_format(added_token_table()), json_format(tokens_table())};
}

}  // namespace kjudge
