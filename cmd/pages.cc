// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <vector>

#include "challenge/challenge.h"
#include "left_out.h"
#include "store/challenges.h"
#include "web/pages_json.h"

namespace kjudge {
namespace {

struct PagesOptions {
  bool json = false;
  std::string results, output, challenge;
};

int pages_command(const PagesOptions& options) {
  const ResultsDirectory results(options.results);
  std::vector<Challenge> challenges = options.challenge.empty()
                                          ? newest_kept_challenges(results)
                                          : std::vector{read_challenge(options.challenge)};
  LeftOut left_out;
  const Site site = read_site(results, std::move(challenges), left_out.report());
  const WrittenSite written = write_site(site, options.output, left_out.report());
  if (options.json) {
    std::cout << print_json(pages_json(written, static_cast<int>(left_out.lines().size())));
  } else {
    std::cout << options.output << ": " << written.pages << " files, " << written.written
              << " of them new or changed, " << written.removed << " removed\n";
  }
  return left_out.status();
}

}  // namespace

void add_pages(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<PagesOptions>(
      app, "pages", "Write a results directory as pages for browsers", command);
  add_results_option(*command, options->results);
  command->add_option("-o,--output", options->output, "Write the pages there; made if need be")
      ->type_name("FOLDER")
      ->required();
  command
      ->add_option("--challenge", options->challenge,
                   "The challenge that is open: its task, bounty and title on the front page")
      ->type_name("FOLDER")
      ->default_str("the newest of each that was judged here")
      ->check(CLI::ExistingDirectory);
  command->callback([=, &status] { status = pages_command(*options); });
}

}  // namespace kjudge
