// SPDX-License-Identifier: Apache-2.0
#include "replay/challenge_python.h"

#include <algorithm>

#include "challenge/shape_request.h"
#include "decimal.h"
#include "json.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

std::string request(int device, const std::vector<ChallengePython::SharedShape>& shapes) {
  Json::List list, submitted, regimes;
  for (const auto& shared : shapes) {
    list.push_back(shape_request(*shared.shape, OutputTypes::expected));
    submitted.push_back(shape_request(*shared.shape, OutputTypes::submitted));
    Json::List names;
    for (const Regime& regime : shared.shape->regimes) names.push_back(Json{regime.name});
    regimes.push_back(Json{std::move(names)});
  }
  return print_json(Json{Json::Object{{"format", Json{std::string("kjudge-python/1")}},
                                      {"device", Json{static_cast<std::int64_t>(device)}},
                                      {"shapes", Json{std::move(list)}},
                                      {"submitted", Json{std::move(submitted)}},
                                      {"regimes", Json{std::move(regimes)}}}});
}

std::string_view stem(ChallengePython::File file) {
  switch (file) {
    case ChallengePython::File::reference:
      return "reference";
    case ChallengePython::File::inputs:
      return "inputs";
    case ChallengePython::File::check:
      return "check";
  }
  return {};
}

std::string file_name(ChallengePython::File file) { return cat(stem(file), ".py"); }

ChildOptions child_options(const Driver& driver, int device, ChallengePython::File file,
                           const fs::path& work, int socket) {
  const fs::path library = library_directory();
  ChildOptions options;
  options.program = "/usr/bin/env";
  options.arguments = {"python3", (library / "harness" / cat("call_", file_name(file))).string(),
                       (work / "request.json").string(), "3"};
  options.directory = work / "challenge";
  options.environment = {{"KJUDGE_DRIVER", std::string(name(driver.kind))},
                         {"KJUDGE_DRIVER_LIBRARY", driver.library.string()},
                         {"KJUDGE_DEVICE", std::to_string(device)},
                         {"KJUDGE_HOST_PROCESS", std::string(stem(file))},
                         {"PYTHONDONTWRITEBYTECODE", "1"},
                         // hash("nominal") is then the same in the process that makes inputs again
                         {"PYTHONHASHSEED", "0"},
                         {"TMPDIR", (work / "tmp").string()}};
  options.descriptors = {{2, 1}, {socket, 3}};  // what it prints is talk, not a result
  return options;
}

}  // namespace

ChallengePython::ChallengePython(const Driver& driver, int device, const Challenge& challenge,
                                 File file, const std::vector<SharedShape>& shapes,
                                 Channel::Idle idle)
    : challenge_(challenge), file_(file), work_("kjudge-python"), channel_(Fd(), {}), child_([&] {
        fs::create_directory(work_.path() / "tmp");
        copy_challenge(challenge, work_.path() / "challenge");
        write_file_atomically(work_.path() / "request.json", request(device, shapes));
        auto ends = socket_pair();
        channel_ = Channel(std::move(ends[0]), std::move(idle));
        return Child(child_options(driver, device, file, work_.path(), ends[1].get()));
      }()) {
  std::uint32_t count = 0;
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    shapes_.push_back(shapes[s].shape);
    for (std::size_t t = 0; t < shapes[s].tensors.size(); ++t, ++count) {
      const Fd fd = shapes[s].tensors[t]->export_fd();
      send(ReferenceTensor{static_cast<std::uint32_t>(s), static_cast<std::uint32_t>(t),
                           shapes[s].tensors[t]->size()},
           "", std::array{fd.get()});
    }
  }
  send(Build{count}, "");
  expect<Built>(challenge.limits.prepare_s, "");
}

void ChallengePython::call(std::size_t shape) {
  const std::string where = cat("shape ", shapes_[shape]->name, ": ");
  send(Call{static_cast<std::uint32_t>(shape)}, where);
  expect<Called>(challenge_.limits.capture_s, where);
}

void ChallengePython::fill(std::size_t shape, std::size_t regime, std::uint64_t seed) {
  const std::string where =
      cat("shape ", shapes_[shape]->name, ", regime ", shapes_[shape]->regimes[regime].name, ": ");
  send(Fill{static_cast<std::uint32_t>(shape), static_cast<std::uint32_t>(regime), seed}, where);
  expect<Called>(challenge_.limits.capture_s, where);
}

ChallengePython::Judgement ChallengePython::judge(std::size_t shape, std::size_t regime,
                                                  std::size_t output) {
  const Shape& of = *shapes_[shape];
  const std::string where = cat("shape ", of.name, ", regime ", of.regimes[regime].name,
                                ", output ", of.outputs[output].tensor.name, ": ");
  send(Judge{static_cast<std::uint32_t>(shape), static_cast<std::uint32_t>(regime),
             static_cast<std::uint32_t>(output)},
       where);
  const auto judged = expect<Judged>(challenge_.limits.capture_s, where);
  const std::size_t size = std::min<std::size_t>(judged.text_bytes, judged.text.size());
  return {judged.error, std::string(judged.text.data(), size)};
}

template <class T>
void ChallengePython::send(const T& message, const std::string& where, std::span<const int> fds) {
  // A process that failed says why before it closes its end, and that lies in the queue still.
  if (!channel_.send(message, fds)) expect<Built>(challenge_.limits.prepare_s, where);
}

template <class T>
T ChallengePython::expect(double limit_s, const std::string& where) {
  const auto fails = [&](const std::string& what) {
    throw Error(Fault::package,
                cat((challenge_.folder / file_name(file_)).string(), ": ", where, what));
  };
  const auto limit =
      std::chrono::duration_cast<Channel::Clock::duration>(std::chrono::duration<double>(limit_s));
  const auto received = channel_.receive(Channel::Clock::now() + limit);
  if (received.state == Channel::Received::late) {
    fails(cat("no answer within ", decimal(limit_s), " s"));
  }
  if (received.state == Channel::Received::closed) {
    const auto status = child_.wait(Channel::Clock::now() + std::chrono::seconds(5));
    fails(cat("its process ended: ", status ? describe(*status) : "it closed its socket"));
  }
  if (const auto failed = Channel::read<Failed>(received.message_body)) {
    const std::size_t size = std::min<std::size_t>(failed->text_bytes, failed->text.size());
    fails(std::string(failed->text.data(), size));
  }
  const auto answer = Channel::read<T>(received.message_body);
  if (!answer) fails("its process sent an unexpected message");
  return *answer;
}

}  // namespace kjudge
