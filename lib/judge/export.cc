// SPDX-License-Identifier: Apache-2.0
#include "judge/export.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "bundle/bundle.h"
#include "challenge/challenge_format.h"
#include "error.h"
#include "file.h"
#include "judge/interrupt.h"
#include "judge/profile.h"
#include "judge/version.h"
#include "score/result_json.h"
#include "sha256.h"
#include "store/challenges.h"
#include "store/judgements.h"
#include "store/random.h"
#include "store/standings.h"
#include "unicode.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

constexpr int kLevel = 6;

// A whole document of another format; kept as it is.
Kind<Json> document_kind(const JsonFormat& format) {
  return {cat("an object of the format ", format.name),
          [what = cat("an object of the format ", format.name)](const JsonCursor& at) {
            if (at.get_if<Json::Object>() == nullptr) at.expected(what);
            return at.json();
          },
          [](const Json& json) { return json; }, format.schema};
}

// One of the organizer's records.
Kind<Json> record_kind() {
  Json::List schemas = {json_format(bar_table()).schema, json_format(invalidation_table()).schema,
                        json_format(play_off_table()).schema};
  Kind<Json> kind = document_kind(json_format(bar_table()));
  kind.expected = "an object of the format that the kind has in a results directory";
  kind.schema = Json{Json::Object{{"anyOf", Json{std::move(schemas)}}}};
  return kind;
}

const FieldTable<ExportedFile>& file_table() {
  using F = ExportedFile;
  static const FieldTable<F> table({
      required("name", &F::name, line_kind(1, 1000), "path in the submission's folder"),
      optional("text", &F::text, text_kind(64 << 20), "its content, where that is UTF-8"),
      optional("base64", &F::base64, text_kind(128 << 20), "else its content in base64"),
  });
  return table;
}

std::string base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int size = ::EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                     reinterpret_cast<const unsigned char*>(bytes.data()),
                                     static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

// As JSON strings must be.
bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    if (!take_character(text)) return false;
  }
  return true;
}

// Lines into a compressed file that appears whole.
class LineWriter {
 public:
  explicit LineWriter(const fs::path& path)
      : path_(path),
        temporary_(cat(path.string(), ".tmp.", random_hex(4))),
        fd_(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)),
        context_(::ZSTD_createCCtx(), &::ZSTD_freeCCtx),
        buffer_(::ZSTD_CStreamOutSize(), '\0') {
    if (!fd_.valid()) throw_errno(temporary_);
    KJ_CHECK(context_ != nullptr);
    ::ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, kLevel);
    ::ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
  }
  ~LineWriter() {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  void put(const ExportLine& line) {
    check_interrupt();
    ++lines_;
    compress(print_flat_json(Json{export_table().write(line)}) + "\n", ZSTD_e_continue);
  }
  int lines() const { return lines_; }

  void finish() {
    compress("", ZSTD_e_end);
    if (::fsync(fd_.get()) != 0) throw_errno(temporary_);
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) throw_errno(path_.string());
    temporary_.clear();
    sync_directory(fs::absolute(path_).parent_path());
  }

 private:
  void compress(std::string_view text, ZSTD_EndDirective directive) {
    ZSTD_inBuffer in{text.data(), text.size(), 0};
    for (;;) {
      ZSTD_outBuffer out{buffer_.data(), buffer_.size(), 0};
      const std::size_t left = ::ZSTD_compressStream2(context_.get(), &out, &in, directive);
      if (::ZSTD_isError(left))
        throw Error(Fault::host, cat(path_.string(), ": zstd: ", ::ZSTD_getErrorName(left)));
      write({buffer_.data(), out.pos});
      if (directive == ZSTD_e_end ? left == 0 : in.pos == in.size) return;
    }
  }
  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_.get(), bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw_errno(temporary_);
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  fs::path path_;
  std::string temporary_;
  Fd fd_;
  std::unique_ptr<ZSTD_CCtx, decltype(&::ZSTD_freeCCtx)> context_;
  std::string buffer_;
  int lines_ = 0;
};

Json read_document(const fs::path& path) {
  return parse_json(read_file(path), path.native(), Fault::malformed);
}

// A traceback in it quotes the code.
void empty_log(Json& result) {
  auto* object = std::get_if<Json::Object>(&result.value);
  if (object == nullptr) return;
  for (JsonMember& member : *object) {
    if (member.name == "log") member.value = Json{std::string()};
  }
}

class Exporter {
 public:
  Exporter(const ResultsDirectory& results, const ExportOptions& options, const fs::path& output,
           const ResultsDirectory::Report& report)
      : results_(results),
        options_(options),
        report_(report),
        index_(results, report),
        source_(read_source(results, index_, report)),
        out_(output),
        challenges_(results) {}

  ExportCounts run() {
    index_.save();
    ExportLine begin;
    begin.made = utc_now();
    begin.kjudge_version = kVersion;
    begin.selection = options_.selection;
    out_.put(begin);
    for (const ScoredSubmission& submission : index_.submissions()) {
      try {
        this->submission(submission);
      } catch (const Error& error) {
        if (error.fault() != Fault::malformed && error.fault() != Fault::host) throw;
        report_(error);
      }
    }
    records<Bar>(ExportKind::bar, kBarRecord, bar_table());
    records<Invalidation>(ExportKind::invalidation, kInvalidationRecord, invalidation_table());
    play_offs();
    ExportLine end;
    end.kind = ExportKind::end;
    end.lines = out_.lines() + 1;
    out_.put(end);
    out_.finish();
    return counts_;
  }

 private:
  struct Exported {
    const Terms* terms;
    Selectable selectable;
  };

  bool all() const { return options_.selection == Selection{}; }

  // Once.
  void tell_challenge(const Terms& terms) {
    const Challenge* challenge = challenges_.of(terms);
    if (challenge == nullptr || !told_.emplace(terms.challenge, terms.challenge_version).second)
      return;
    ExportLine line;
    line.kind = ExportKind::challenge;
    line.name = challenge->name;
    line.version = challenge->version;
    line.sha256 = challenge->sha256;
    line.challenge = read_document(challenge->folder / "challenge.json");
    line.task = read_file(challenge->folder / "TASK.md", 1u << 20);
    out_.put(line);
  }

  void submission(const ScoredSubmission& submission) {
    std::vector<const ScoredEvaluation*> chosen;
    for (const ScoredEvaluation& one : submission.evaluations) {
      if (selects(options_.selection, selectable(index_, submission, one))) chosen.push_back(&one);
    }
    // What waits has no evaluation that a selection could be about.
    if (chosen.empty() && !all()) return;
    const StoredSubmission stored = results_.submission(submission.number);
    for (const ScoredEvaluation* one : chosen) tell_challenge(index_.terms(*one));
    const bool open =
        !submission.evaluations.empty() &&
        may_publish(submission, [this](const Terms& terms) { return challenges_.of(terms); });
    ExportLine line;
    line.kind = ExportKind::submission;
    line.submission = submission.number;
    line.id = stored.identity.id;
    line.run = stored.identity.run;
    line.received = stored.identity.received;
    if (const VariantRequest& asked = stored.identity.variant; asked != VariantRequest{}) {
      line.variant = asked;
    }
    line.sha256 = stored.identity.sha256;
    line.keep = stored.identity.keep;
    line.publish = stored.identity.publish;
    if (!submission.notes.label.empty()) line.label = submission.notes.label;
    if (!submission.notes.license.empty()) line.license = submission.notes.license;
    if (open) line.files = files_of(stored.folder / "files");
    out_.put(line);
    ++counts_.submissions;
    for (const ScoredEvaluation* one : chosen) {
      try {
        evaluation(submission, *one, stored, open);
      } catch (const Error& error) {
        if (error.fault() != Fault::malformed && error.fault() != Fault::host) throw;
        report_(error);
      }
    }
  }

  static std::vector<ExportedFile> files_of(const fs::path& folder) {
    std::vector<ExportedFile> files;
    if (!fs::exists(folder)) return files;
    for (const auto& item : fs::recursive_directory_iterator(folder)) {
      if (!item.is_regular_file() || item.is_symlink()) continue;
      ExportedFile& file = files.emplace_back();
      file.name = item.path().lexically_relative(folder).string();
      std::string bytes = read_file(item.path(), 64u << 20);
      if (is_utf8(bytes)) {
        file.text = std::move(bytes);
      } else {
        file.base64 = base64(bytes);
      }
    }
    std::sort(files.begin(), files.end(),
              [](const ExportedFile& a, const ExportedFile& b) { return a.name < b.name; });
    return files;
  }

  void evaluation(const ScoredSubmission& submission, const ScoredEvaluation& one,
                  const StoredSubmission& stored, bool open) {
    const fs::path folder = stored.folder / "evaluations" / std::to_string(one.number);
    ExportLine line;
    line.kind = ExportKind::evaluation;
    line.submission = submission.number;
    line.evaluation = one.number;
    line.device_kind = index_.terms(one).device_kind;
    line.invalid = invalid_reasons(source_.invalidations, selectable(index_, submission, one));
    line.result = read_document(folder / "result.json");
    if (!open) empty_log(*line.result);
    std::vector<ExportLine> cubins;
    if (open && options_.cubins) cubins = cubins_of(folder / "bundle.kjb", line);
    out_.put(line);
    ++counts_.evaluations;
    exported_.push_back({&index_.terms(one), selectable(index_, submission, one)});
    for (const ExportLine& cubin : cubins) out_.put(cubin);
    counts_.cubins += cubins.size();
    profiles(folder, line);
  }

  // nullopt: there is none, or a judge at work prunes it just now.
  static std::optional<BundleReader> reader_of(const fs::path& bundle) {
    if (!fs::exists(bundle)) return std::nullopt;
    try {
      return std::optional<BundleReader>(std::in_place, bundle);
    } catch (const Error&) {
      if (fs::exists(bundle)) throw;
      return std::nullopt;
    }
  }

  // Those that no line had yet; all of them are named in the evaluation's line.
  std::vector<ExportLine> cubins_of(const fs::path& bundle, ExportLine& evaluation) {
    std::vector<ExportLine> lines;
    const auto reader = reader_of(bundle);
    if (!reader) return lines;
    for (const Module& module : reader->bundle().modules) {
      const std::string_view image(reinterpret_cast<const char*>(module.image.data()),
                                   module.image.size());
      const std::string sha256 = sha256_hex(image);
      evaluation.cubins.push_back(sha256);
      if (!cubins_told_.insert(sha256).second) continue;
      ExportLine& line = lines.emplace_back();
      line.kind = ExportKind::cubin;
      line.submission = evaluation.submission;
      line.evaluation = evaluation.evaluation;
      line.sha256 = sha256;
      line.base64 = base64(image);
    }
    return lines;
  }

  void profiles(const fs::path& folder, const ExportLine& evaluation) {
    for (const fs::path& file : profile_files(folder)) {
      profile_from_json(read_file(file), file);
      ExportLine line;
      line.kind = ExportKind::profile;
      line.submission = evaluation.submission;
      line.evaluation = evaluation.evaluation;
      line.profile = read_document(file);
      out_.put(line);
      ++counts_.profiles;
    }
  }

  // Whether a record is about what was selected: of all of it, each is.
  bool concerns(const Bar& bar) const {
    const VariantRequest& wanted = bar.variant;
    return std::any_of(exported_.begin(), exported_.end(), [&](const Exported& one) {
      return one.terms->challenge == wanted.challenge &&
             (wanted.version == 0 || one.terms->challenge_version == wanted.version) &&
             names_device(wanted.gpu, one.terms->arch, one.terms->device_kind);
    });
  }
  bool concerns(const Invalidation& invalidation) const {
    return std::any_of(exported_.begin(), exported_.end(), [&](const Exported& one) {
      return selects(invalidation.selection, one.selectable);
    });
  }
  bool concerns(const PlayOff& play_off) const {
    const auto is_here = [&](const PlayOffMember& member) {
      return std::any_of(exported_.begin(), exported_.end(), [&](const Exported& one) {
        return one.selectable.submission == member.submission &&
               one.selectable.evaluation == member.id;
      });
    };
    return is_here(play_off.best) &&
           std::all_of(play_off.others.begin(), play_off.others.end(), is_here);
  }

  template <class T>
  void records(ExportKind kind, const std::string& word, const FieldTable<T>& table) {
    std::set<int> told;
    for (const auto& [number, record] : read_records(results_, word, table, report_)) {
      const bool takes_back = record.takes_back != 0;
      if (!all() && !(takes_back ? told.contains(record.takes_back) : concerns(record))) continue;
      told.insert(number);
      ExportLine line;
      line.kind = kind;
      line.number = number;
      line.record = Json{table.write(record)};
      out_.put(line);
    }
  }

  void play_offs() {
    for (const auto& [number, record] :
         read_records(results_, kPlayOffRecord, play_off_table(), report_)) {
      if (!all() && !concerns(record)) continue;
      try {
        play_off(number, record);
      } catch (const Error& error) {
        if (error.fault() != Fault::malformed && error.fault() != Fault::host) throw;
        report_(error);
      }
    }
  }

  void play_off(int number, const PlayOff& record) {
    ExportLine line;
    line.kind = ExportKind::playoff;
    line.number = number;
    line.record = Json{play_off_table().write(record)};
    const fs::path folder = record_file(results_.path(), kPlayOffRecord, number).parent_path();
    for (std::size_t i = 1; i <= record.others.size(); ++i) {
      Json result = read_document(folder / "results" / cat(i, ".json"));
      empty_log(result);
      line.results.push_back(std::move(result));
    }
    out_.put(line);
  }

  const ResultsDirectory& results_;
  const ExportOptions& options_;
  const ResultsDirectory::Report& report_;
  ScoreIndex index_;
  const StandingsSource source_;
  LineWriter out_;
  KeptChallenges challenges_;
  std::set<std::pair<std::string, int>> told_;
  std::set<std::string> cubins_told_;
  std::vector<Exported> exported_;
  ExportCounts counts_;
};

}  // namespace

const FieldTable<ExportLine>& export_table() {
  using L = ExportLine;
  using K = ExportKind;
  const auto line = [](std::size_t most) { return line_kind(0, most); };
  const auto hash = hexadecimal_kind(64);
  const auto number = integer_kind(0, 1 << 30);
  static const FieldTable<L> table({
      format_field<L>("kjudge-export/1"),
      required("kind", &L::kind,
               word_kind<K>({{"begin", K::begin},
                             {"challenge", K::challenge},
                             {"submission", K::submission},
                             {"evaluation", K::evaluation},
                             {"profile", K::profile},
                             {"cubin", K::cubin},
                             {"bar", K::bar},
                             {"invalidation", K::invalidation},
                             {"playoff", K::playoff},
                             {"end", K::end}}),
               "what the line is"),
      optional("submission", &L::submission, number,
               "number of the submission; absent of other kinds than submission, evaluation, "
               "profile and cubin"),
      optional("evaluation", &L::evaluation, number,
               "number of the evaluation among its submission's; absent of other kinds than "
               "evaluation, profile and cubin"),
      optional("number", &L::number, number, "of a record; absent of kinds that are none"),
      optional("made", &L::made, line(40), "of begin: when, in UTC; absent of other kinds"),
      optional("kjudge_version", &L::kjudge_version, line(100),
               "of begin: that wrote it; absent of other kinds"),
      optional("selection", &L::selection, object_kind(selection_table()),
               "of begin: what was asked for; absent of other kinds"),
      optional("name", &L::name, line(100), "of a challenge; absent of other kinds"),
      optional("version", &L::version, number, "of a challenge; absent of other kinds"),
      optional("sha256", &L::sha256, hash,
               "of the challenge's folder, the submission's files, or a cubin; absent of other "
               "kinds"),
      optional("challenge", &L::challenge, document_kind(json_format(challenge_table())),
               "challenge.json of a challenge; absent of other kinds"),
      optional("task", &L::task, text_kind(), "TASK.md of a challenge; absent of other kinds"),
      optional("id", &L::id, line(64), "UUID of a submission; absent of other kinds"),
      optional("run", &L::run, line(200), "name of a submission's run; absent of other kinds"),
      optional("received", &L::received, line(40),
               "when a submission was handed in, UTC; absent of other kinds"),
      optional("variant", &L::variant, request_kind(),
               "the part of the challenge that a submission asks for; absent: all of it"),
      optional("label", &L::label, line(200), "what a submission says it is; absent: nothing"),
      optional("license", &L::license, line(200), "of a submission's code; absent: none"),
      optional(
          "keep", &L::keep, boolean_kind(),
          "false: a submission's files were not to be kept, so it is not ranked; absent: true"),
      optional("publish", &L::publish, boolean_kind(),
               "false: whoever handed it in declined to show its code; absent: true"),
      optional("files", &L::files, list_kind(object_kind(file_table())),
               "of a submission; absent where its code may not be published"),
      optional("device_kind", &L::device_kind, line(300),
               "of an evaluation: the device without its UUID; absent of other kinds"),
      optional("result", &L::result, document_kind(result_json_format()),
               "of an evaluation, its log empty where code may not be published; absent of other "
               "kinds"),
      optional("invalid", &L::invalid, list_kind(line(1000)),
               "reasons why an evaluation does not count; absent: it does"),
      optional("cubins", &L::cubins, list_kind(hash),
               "of an evaluation: hashes of the modules that it launched kernels of; absent where "
               "code may not be published"),
      optional("profile", &L::profile, document_kind(profile_json_format()),
               "of a shape of an evaluation; absent of other kinds"),
      optional("base64", &L::base64, text_kind(std::size_t{1} << 31),
               "bytes of a cubin; absent of other kinds"),
      optional("record", &L::record, record_kind(),
               "a bar, invalidation or play-off as the results directory has it; absent of other "
               "kinds"),
      optional("results", &L::results, list_kind(document_kind(result_json_format())),
               "of a play-off; absent of other kinds"),
      optional("lines", &L::lines, number,
               "of end: how many lines there are with it; absent of other kinds"),
  });
  return table;
}

const FieldTable<ExportCounts>& exported_table() {
  using C = ExportCounts;
  const auto count = integer_kind<std::size_t>(0, std::size_t{1} << 40);
  static const FieldTable<C> table(
      {format_field<C>("kjudge-exported/1"),
       required("submissions", &C::submissions, count, "how many were written"),
       required("evaluations", &C::evaluations, count, "of them"),
       required("profiles", &C::profiles, count, "of the evaluations"),
       required("cubins", &C::cubins, count, "each once"),
       optional("left_out", &C::left_out, list_kind(text_kind()),
                "what could not be read, and why; absent: nothing")});
  return table;
}

ExportCounts export_results(const ResultsDirectory& results, const ExportOptions& options,
                            const fs::path& output, const ResultsDirectory::Report& report) {
  require_replaceable(output);
  return Exporter(results, options, output, report).run();
}

}  // namespace kjudge
