// SPDX-License-Identifier: Apache-2.0
// Part of the build: make_manual MAN SHARE writes below SHARE what people and shells know of
// kjudge, from its tables of options and of fields and the hand-written sources in MAN: manual
// pages, completions, JSON Schemas.
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "commands.h"
#include "completion.h"
#include "error.h"
#include "file.h"
#include "judge/formats.h"
#include "manual_page.h"
#include "option_value.h"
#include "options.h"
#include "web/pages_json.h"
#include "web/server/serving_json.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  write_file_atomically(path, text);
}

// The page kjudge-NAME(1) is of the command NAME, any other of the whole program.
const CLI::App& command_of(const CLI::App& app, const std::string& page) {
  for (const CLI::App* command : commands_of(app)) {
    if (page == cat("kjudge-", command->get_name(), ".1")) return *command;
  }
  return app;
}

std::vector<JsonFormat> all_formats() {
  std::vector<JsonFormat> formats = json_formats();
  formats.push_back(pages_json_format());
  formats.push_back(serving_json_format());
  return formats;
}

void make_pages(const fs::path& man, const fs::path& share, const CLI::App& app) {
  for (const CLI::App* command : commands_of(app)) {
    const fs::path source = man / cat("kjudge-", command->get_name(), ".1.in");
    if (!fs::exists(source)) {
      throw Error(Fault::malformed, cat(source.string(),
                                        ": is missing: every command has a page of the manual; "
                                        "kjudge-dump.1.in is a short one to begin from"));
    }
  }
  std::string sources;
  for (const auto& item : fs::directory_iterator(man)) {
    fs::path page = item.path().filename();
    if (page.extension() != ".in") continue;
    page = page.stem();
    const std::string section = page.extension().string().substr(1);
    const fs::path to = share / "man" / ("man" + section) / page;
    const std::string source = read_file(item.path());
    write(to, manual_page(source, item.path().string(), app, command_of(app, page.string()),
                          all_formats()));
    sources += source;
  }
  for (const JsonFormat& format : all_formats()) {
    // What a capture process tells the kjudge that started it is nobody else's.
    if (format.name == "kjudge-capture-status/1") continue;
    if (sources.find(cat("\n@fields ", format.name, "\n")) == sources.npos) {
      throw Error(Fault::malformed, cat(man.string(), ": no page shows the fields of ", format.name,
                                        ", with @fields ", format.name));
    }
  }
}

int make_manual(const fs::path& man, const fs::path& share) {
  // As a reader's, not of whoever builds.
  ::setenv("HOME", "~", 1);
  for (const char* name : {"XDG_CONFIG_HOME", "KJUDGE_CONFIG"}) ::unsetenv(name);
  CLI::App app("", "kjudge");
  int status = 0;
  set_up(app);
  add_commands(app, status);
  make_pages(man, share, app);
  write(share / "bash-completion" / "completions" / "kjudge", bash_completion(app));
  write(share / "zsh" / "site-functions" / "_kjudge", zsh_completion(app));
  write(share / "fish" / "vendor_completions.d" / "kjudge.fish", fish_completion(app));
  for (const JsonFormat& format : all_formats()) {
    std::string name = format.name;  // kjudge-result/1
    name.replace(name.find('/'), 1, "-");
    write(share / "kjudge" / "schema" / (name + ".json"), print_json(format.schema));
  }
  return 0;
}

}  // namespace
}  // namespace kjudge

int main(int argc, char** argv) {
  try {
    KJ_CHECK(argc == 3);
    return kjudge::make_manual(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::cerr << "make_manual: " << error.what() << "\n";
    return 1;
  }
}
