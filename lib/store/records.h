// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "error.h"
#include "file.h"
#include "json_fields.h"
#include "store/numbered_folders.h"
#include "store/results.h"

namespace kjudge {

// What organizers say about results: RESULTS/bars/3/bar.json is the third record of kind "bar".
// Each appears whole and for good (store/numbered_folders.h), also where several write; none is
// changed or deleted. What a record said is taken back by a later one that has its number.

// RESULTS/bars for "bar".
std::filesystem::path record_folder(const std::filesystem::path& results, const std::string& kind);
// RESULTS/bars/3/bar.json.
std::filesystem::path record_file(const std::filesystem::path& results, const std::string& kind,
                                  int number);

// What add_record() takes, held to its table: Fault::usage with the field where it could not be
// read back.
template <class T>
Json record_json(const FieldTable<T>& table, const T& record, const std::string& kind) {
  Json json{table.write(record)};
  table.read(JsonCursor(json, cat("the ", kind), Fault::usage));
  return json;
}

// Writes the next one; its number. `fill` may put more files into its folder.
int add_record(const ResultsDirectory& results, const std::string& kind, const Json& record,
               const std::function<void(const std::filesystem::path&)>& fill = {});

template <class T>
using Records = std::vector<std::pair<int, T>>;  // ascending by number

// Fault::malformed, Fault::host.
template <class T>
T read_record(const FieldTable<T>& table, const std::filesystem::path& path) {
  const std::string file = path.string();
  const Json json = parse_json(read_file(path, 64u << 20), file, Fault::malformed);
  return table.read(JsonCursor(json, file, Fault::malformed));
}

// Those that can be read; the others are reported.
template <class T>
Records<T> read_records(const ResultsDirectory& results, const std::string& kind,
                        const FieldTable<T>& table, const ResultsDirectory::Report& report) {
  Records<T> records;
  std::vector<int> numbers;
  try {
    numbers = numbered(record_folder(results.path(), kind));
  } catch (const Error& error) {
    report(error);
  }
  for (const int number : numbers) {
    try {
      records.emplace_back(number, read_record(table, record_file(results.path(), kind, number)));
    } catch (const Error& error) {
      report(error);
    }
  }
  return records;
}

// Fault::usage unless `standing` has a record `number`.
template <class T>
void require_record(const Records<T>& standing, int number, const std::string& kind) {
  for (const auto& [present, record] : standing) {
    if (present == number) return;
  }
  throw Error(Fault::usage, cat("there is no ", kind, " ", number, ", or it was taken back"));
}

// Without those that take one back, and those that they take back.
template <class T>
Records<T> standing(const Records<T>& records) {
  Records<T> left;
  for (const auto& [number, record] : records) {
    if (record.takes_back == 0) {
      left.emplace_back(number, record);
    } else {
      std::erase_if(left, [&](const auto& one) { return one.first == record.takes_back; });
    }
  }
  return left;
}

}  // namespace kjudge
