// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "error.h"
#include "judge/report.h"
#include "left_out.h"
#include "store/identity.h"
#include "store/results.h"
#include "store/tokens_json.h"

namespace kjudge {
namespace {

struct TokenOptions {
  bool json = false;
  std::string results, action, name;
};

int list_tokens(const TokenOptions& options) {
  LeftOut left_out;
  const auto tokens = read_tokens(ResultsDirectory(options.results).path(), left_out.report());
  std::vector<std::vector<std::string>> rows = {{"name", "added", "revoked"}};
  for (const Token& token : tokens) {
    rows.push_back({printable(token.name), token.added, token.revoked});
  }
  if (options.json) {
    std::cout << print_json(tokens_json(tokens));
  } else if (tokens.empty()) {
    say(cat(options.results, ": nobody has a token"));
  } else {
    std::cout << aligned(rows);
  }
  return left_out.status();
}

int token_command(const TokenOptions& options) {
  if (options.action == "list") {
    if (!options.name.empty()) throw Error(Fault::usage, "token list takes no name");
    return list_tokens(options);
  }
  if (options.name.empty()) {
    throw Error(Fault::usage, cat("token ", options.action, ": say the name of whoever has it"));
  }
  if (options.action == "revoke") {
    revoke_token(ResultsDirectory(options.results).path(), options.name);
    std::cerr << "kjudge: the token of " << printable(options.name)
              << " is revoked; its runs stay its own\n";
    return exit_done;
  }
  const std::string token =
      issue_token(ResultsDirectory::make(options.results).path(), options.name);
  if (options.json) {
    std::cout << print_json(added_token_json(options.name, token));
  } else {
    std::cout << token << "\n";
  }
  std::cerr << "kjudge: this is shown once; who gets it says: export KERNELS_TOKEN=...\n";
  return exit_done;
}

}  // namespace

void add_token(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<TokenOptions>(
      app, "token", "Give people tokens to hand in with, and take them back", command);
  command
      ->add_option("action", options->action,
                   "Print a new token for a name; list the names; make a name's token good for "
                   "nothing")
      ->required()
      ->check(CLI::IsMember({"add", "list", "revoke"}));
  command->add_option("name", options->name, "Whose token")->type_name("NAME");
  command
      ->add_option("--results", options->results,
                   "Results directory that the tokens are for; made if need be")
      ->type_name("FOLDER")
      ->required()
      ->envname("KJUDGE_RESULTS");
  command->callback([=, &status] { status = token_command(*options); });
}

}  // namespace kjudge
