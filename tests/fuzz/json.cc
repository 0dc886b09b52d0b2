// SPDX-License-Identifier: Apache-2.0
// Any bytes as each JSON format that kjudge reads, and as the table that Nsight Compute prints.
// What is accepted is shown as the commands show it, written, and read again.
//
// Most changes are made to the values of the document, so that it stays JSON: one is replaced,
// taken away, doubled or exchanged with another. One change in four is to the text.

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>

#include "accepted.h"
#include "challenge/challenge.h"
#include "challenge/package.h"
#include "challenge/shape_request.h"
#include "file.h"
#include "judge/capture_protocol.h"
#include "judge/profile.h"
#include "judge/report.h"
#include "score/rank.h"
#include "score/result_json.h"
#include "score/scores_json.h"
#include "store/results.h"

using namespace kjudge;

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

namespace fs = std::filesystem;
using Random = std::minstd_rand;

void must(bool right) {
  if (!right) std::abort();
}

// A new file each time: some file systems write one that is cut to nothing to the disk at once.
void write(const fs::path& path, const std::string& text) {
  fs::remove(path);
  std::ofstream(path, std::ios::binary) << text;
}

void read_any(const std::string& text) {
  const Json json = parse_json(text, "fuzz.json", Fault::malformed);
  const std::string printed = print_json(json);
  must(print_json(parse_json(printed, "fuzz.json", Fault::bug)) == printed);
}

void read_challenge_file(const std::string& text) {
  static const TempDir folder("kjudge-fuzz");
  static const bool made = [] {
    for (const char* name : {"TASK.md", "reference.py", "baseline.py", "submission.py"}) {
      write(folder.path() / name, "");
    }
    return true;
  }();
  must(made);
  write(folder.path() / "challenge.json", text);
  const Challenge challenge = read_challenge(folder.path());
  must(!challenge.shapes.empty());
  for (const Shape& shape : challenge.shapes) {
    print_json(shape_request(shape, OutputTypes::submitted));
    print_json(shape_request(shape, OutputTypes::expected));
  }
}

void read_result(const std::string& text) {
  const Evaluation evaluation = result_from_json(text, "fuzz.json");
  evaluation_page(evaluation);
  print_json(scores_json({scored_file("fuzz.json", evaluation)}));
  const Score scored = score(evaluation);
  must(rank({{"1", "run", scored}, {"2", "run", scored}}).ranked.size() ==
       (scored.ranked ? 2u : 0u));
  const std::string written = result_to_json(evaluation);
  must(result_to_json(result_from_json(written, "written.json")) == written);
}

void read_status(const std::string& text) { printable(parse_capture_status(text).message); }

void read_submission(const std::string& text) {
  static const TempDir folder("kjudge-fuzz");
  const fs::path submission = folder.path() / "submissions" / "1";
  static const bool made = fs::create_directories(submission);
  must(made);
  write(submission / "submission.json", text);
  ResultsDirectory(folder.path()).submission(1);
}

void read_package(const std::string& text) {
  const std::string written = package_to_json(package_from_json(text, "fuzz.json"));
  must(package_to_json(package_from_json(written, "written.json")) == written);
}

void read_table(const std::string& text) {
  Profile profile;
  profile.kernels = kernels_from_csv(text);
  profile_table(profile);
  profile_to_json(profile);
}

bool try_to(void (*read)(const std::string&), const std::string& text) {
  try {
    read(text);
    return true;
  } catch (const Error& error) {
    if (error.fault() != Fault::malformed && error.fault() != Fault::package) throw;
  }
  return false;
}

Accepted& accepted() {
  static Accepted inputs;
  return inputs;
}

struct Format {
  const char* name;
  void (*read)(const std::string&);
};
// A text that names none of these is no more than JSON to any of their readers.
constexpr Format kFormats[] = {
    {"kjudge-challenge/", read_challenge_file}, {"kjudge-result/", read_result},
    {"kjudge-capture-status/", read_status},    {"kjudge-package/", read_package},
    {"kjudge-submission/", read_submission},    {"Kernel Name", read_table}};

// Every value of a document; a child of an object has its member.
struct Place {
  Json* value;
  Json* parent;
  std::size_t index;
};

void collect(Json& json, Json* parent, std::size_t index, std::vector<Place>& places) {
  places.push_back({&json, parent, index});
  if (auto* list = std::get_if<Json::List>(&json.value)) {
    for (std::size_t i = 0; i < list->size(); ++i) collect((*list)[i], &json, i, places);
  } else if (auto* object = std::get_if<Json::Object>(&json.value)) {
    for (std::size_t i = 0; i < object->size(); ++i) {
      collect((*object)[i].value, &json, i, places);
    }
  }
}

Json other_value(Random& random) {
  switch (random() % 12) {
    case 0:
      return {};
    case 1:
      return Json{random() % 2 == 0};
    case 2:
      return Json{std::int64_t{0}};
    case 3:
      return Json{std::int64_t{-1}};
    case 4:
      return Json{std::int64_t{1} << random() % 63};
    case 5:
      return Json{static_cast<std::int64_t>(random() % 20)};
    case 6:
      return Json{5e-324};
    case 7:
      return Json{1.7e308};
    case 8:
      return Json{(static_cast<double>(random()) - 1e9) / 1e6};
    case 9:
      return Json{std::string(random() % 300, 'x')};
    case 10:
      return Json{Json::List{}};
    default:
      return Json{Json::Object{}};
  }
}

void change_text(std::string& text) {
  constexpr std::size_t kMost = 64;
  const std::size_t size = std::min(text.size(), kMost);
  text.resize(kMost);
  text.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(text.data()), size, kMost));
}

template <class Items>
void take_or_double(Items& items, std::size_t index, Random& random) {
  const auto at = items.begin() + static_cast<std::ptrdiff_t>(index);
  if (random() % 2 == 0) {
    items.erase(at);
  } else {
    auto same = *at;
    items.insert(at, std::move(same));
  }
}

void change(Json& document, Random& random) {
  std::vector<Place> places;
  collect(document, nullptr, 0, places);
  const Place& place = places[random() % places.size()];
  auto* text = std::get_if<std::string>(&place.value->value);
  auto* siblings = place.parent ? std::get_if<Json::List>(&place.parent->value) : nullptr;
  auto* members = place.parent ? std::get_if<Json::Object>(&place.parent->value) : nullptr;
  switch (random() % 5) {
    case 0:
      if (siblings != nullptr) return take_or_double(*siblings, place.index, random);
      if (members != nullptr && random() % 4 == 0) {
        change_text((*members)[place.index].name);
        return;
      }
      if (members != nullptr) return take_or_double(*members, place.index, random);
      [[fallthrough]];
    case 1:
      if (text != nullptr) return change_text(*text);
      [[fallthrough]];
    case 2: {  // another value of the same document, which may well belong here
      Json other = *places[random() % places.size()].value;
      *place.value = std::move(other);
      return;
    }
    case 3:
      if (auto* whole = std::get_if<std::int64_t>(&place.value->value)) {
        if (*whole<INT64_MAX&& * whole> INT64_MIN) *whole += random() % 2 == 0 ? 1 : -1;
        return;
      }
      [[fallthrough]];
    default:
      *place.value = other_value(random);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  bool named = false;
  for (const Format& format : kFormats) {
    if (text.find(format.name) == text.npos) continue;
    named = true;
    if (try_to(format.read, text)) accepted().add({data, size});
  }
  if (!named) try_to(read_any, text);
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  Random random(seed);
  random.discard(8);  // seeds that are near each other begin alike
  if (random() % 4 == 0) return LLVMFuzzerMutate(data, size, most);
  Json document;
  try {
    const auto base = accepted().base({data, size}, random);
    const std::string_view text(reinterpret_cast<const char*>(base.data()), base.size());
    document = parse_json(text, "", Fault::malformed);
    for (std::size_t changes = 1 + random() % 3; changes > 0; --changes) change(document, random);
  } catch (const Error&) {
    return LLVMFuzzerMutate(data, size, most);
  }
  const std::string changed = print_json(document);
  if (changed.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, changed.data(), changed.size());
  return changed.size();
}
