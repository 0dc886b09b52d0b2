// SPDX-License-Identifier: Apache-2.0
#include "challenge/challenge.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "challenge/challenge_format.h"
#include "challenge/generators.h"
#include "challenge/tensor_memory.h"
#include "error.h"
#include "file.h"
#include "file_names.h"
#include "sha256.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

// Pairs of a round: kPairsPerRound of replay/evaluation.h, which stands above this layer.
constexpr int kPairs = 5;
// What names in `inputs.x` must not be.
constexpr std::array<std::string_view, 35> kPythonWords = {
    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};

constexpr const char* kManifest = "challenge.json";

struct RequiredFile {
  std::string_view name, what;
};
constexpr std::array<RequiredFile, 4> kRequiredFiles = {{
    {"TASK.md", "what contestants are asked to write"},
    {"reference.py", "the slow and right answer that outputs are compared with"},
    {"baseline.py", "the kernel that submissions are timed against"},
    {"submission.py", "what contestants start from"},
}};

constexpr std::array<std::string_view, 8> kCheckNames = {
    "exact", "close", "rel_l2", "cosine", "row_bound", "codes", "versus_baseline", "custom"};

struct DefaultChecks {
  double factor, floor;  // versus_baseline
  double rtol, c;        // row_bound; none where both are 0
};

DefaultChecks default_numbers(DType dtype, bool tf32, bool float8_in) {
  switch (dtype) {
    case DType::float64:
      return {2, 1e-14, 1e-13, 1e-13};
    case DType::float32:
      return tf32 ? DefaultChecks{2, 1e-3, 2e-3, 2e-3} : DefaultChecks{3, 1e-5, 1e-5, 1e-5};
    case DType::float16:
      return {3, 1e-3, 2e-3, 1e-3};
    case DType::bfloat16:
      return {3, 5e-3, 1.6e-2, float8_in ? 1e-2 : 4e-3};
    case DType::float8_e4m3:
      return {2, 4e-2, 0.125, 0.125};
    case DType::float8_e5m2:
      return {2, 8e-2, 0.25, 0.25};
    default:
      return {2, 0.15, 0, 0};  // float4_e2m1, whose steps are counted
  }
}

// How much further off an honest sum may be that has `longest` terms, added one after the other in
// the output's own type: its error grows with the root of their number. Softmax of a row of 100,003
// in float32 was off by up to 2.4e-5. Ten times float32's numbers are still below what TF32 or
// float16 in its place would need.
double longer_sums(DType dtype, bool tf32, std::int64_t longest) {
  if (dtype != DType::float64 && (dtype != DType::float32 || tf32)) return 1;
  return std::clamp(std::sqrt(static_cast<double>(longest) / 4096), 1.0, 10.0);
}

// Where a challenge names no checks: as good as the baseline but for a factor, and no element far
// off for the size of its row. `longest` is the longest dimension that could have been summed over.
std::vector<Check> default_checks(DType dtype, bool tf32, bool float8_in, std::int64_t longest) {
  // Sums of whole numbers, sorted keys, indices: there is nothing to tolerate.
  if (!is_floating(dtype)) return {{CheckKind::exact}};
  DefaultChecks numbers = default_numbers(dtype, tf32, float8_in);
  const double longer = longer_sums(dtype, tf32, longest);
  numbers = {numbers.factor, numbers.floor * longer, numbers.rtol * longer, numbers.c * longer};
  Check versus{CheckKind::versus_baseline};
  versus.factor = numbers.factor;
  versus.floor = numbers.floor;
  if (dtype == DType::float4_e2m1) return {versus, {CheckKind::codes}};
  Check bound{CheckKind::row_bound, numbers.rtol};
  bound.c = numbers.c;
  return {versus, bound};
}

// Turns what stands in the file into a Challenge; every message names the file and the field.
class Resolver {
 public:
  Resolver(const ChallengeFile& file, std::string path) : file_(file), path_(std::move(path)) {}

  std::vector<Shape> shapes() {
    check_names();
    check_regimes(file_.regimes, "regimes", true);
    std::vector<Shape> shapes;
    for (const bool timed : {true, false}) {
      const auto& list = timed ? file_.shapes : file_.tests;
      for (std::size_t i = 0; i < list.size(); ++i) {
        const std::string at = cat(timed ? "shapes[" : "tests[", i, "]");
        Shape shape = resolve(list[i], at, timed);
        for (const Shape& other : shapes) {
          if (other.name == shape.name && arches_overlap(other.arch, shape.arch)) {
            fail(at, cat("the name \"", shape.name,
                         "\" is taken by another shape or test; give \"name\""));
          }
        }
        shapes.push_back(std::move(shape));
      }
    }
    return shapes;
  }

 private:
  [[noreturn]] void fail(std::string_view at, std::string_view message) const {
    throw Error(Fault::package, cat(path_, ": ", at, ": ", message));
  }

  static bool arches_overlap(const std::string& a, const std::string& b) {
    const auto gpu = [](const std::string& arch) { return arch.starts_with("sm_"); };
    return a == b || (gpu(a) && gpu(b) && (a == "sm_*" || b == "sm_*"));
  }

  void check_names() const {
    std::set<std::string> taken;
    const auto take = [&](const std::string& name, const std::string& at) {
      if (std::find(kPythonWords.begin(), kPythonWords.end(), name) != kPythonWords.end()) {
        fail(at, cat("\"", name, "\" is a word of Python; choose another name"));
      }
      if (!taken.insert(name).second) {
        fail(at, cat("the name \"", name, "\" is taken by another input, output or scalar"));
      }
    };
    const TensorsFile& tensors = file_.tensors;
    for (std::size_t i = 0; i < tensors.inputs.size(); ++i) {
      take(tensors.inputs[i].name, cat("tensors.inputs[", i, "].name"));
    }
    for (std::size_t i = 0; i < tensors.outputs.size(); ++i) {
      take(tensors.outputs[i].name, cat("tensors.outputs[", i, "].name"));
    }
    const auto& first = file_.shapes.front().scalars;
    for (const auto& [name, value] : first) take(name, cat("shapes[0].scalars.", name));
  }

  void check_regimes(const std::vector<RegimeFile>& regimes, const std::string& at,
                     bool timed) const {
    std::set<std::string> names;
    int pairs = 0;
    for (std::size_t i = 0; i < regimes.size(); ++i) {
      const RegimeFile& regime = regimes[i];
      if (!names.insert(regime.name).second) {
        fail(cat(at, "[", i, "].name"), cat("the name \"", regime.name, "\" is taken"));
      }
      for (const auto& [input, generator] : regime.generators) {
        const auto& inputs = file_.tensors.inputs;
        if (std::none_of(inputs.begin(), inputs.end(),
                         [&name = input](const InputFile& known) { return known.name == name; })) {
          fail(cat(at, "[", i, "].generators.", input), "there is no input of that name");
        }
      }
      pairs += regime.pairs_per_round;
    }
    if (timed && pairs != kPairs) {
      fail(at, cat("pairs_per_round of the regimes add up to ", pairs, "; they must add up to ",
                   kPairs));
    }
  }

  Shape resolve(const ShapeFile& from, const std::string& at, bool timed) const {
    Shape shape;
    shape.timed = timed;
    shape.arch = from.arch;
    shape.dtype = std::string(kjudge::name(from.dtype));
    for (const auto& [name, size] : from.dims) shape.dims[name] = size;
    shape.name = from.name.value_or(default_name(from, timed));
    if (shape.name.empty()) fail(at, "a shape without dims needs a \"name\"");
    if (from.floor_us.has_value()) {
      if (!timed) fail(at + ".floor_us", "a test is not timed and has no floor");
      shape.floor_ns = *from.floor_us * 1000;
    }
    resolve_work(from, at, shape);
    resolve_scalars(from, at, shape);

    const TensorsFile& tensors = file_.tensors;
    for (std::size_t i = 0; i < tensors.inputs.size(); ++i) {
      const InputFile& input = tensors.inputs[i];
      shape.inputs.push_back(
          {tensor(input.name, input.dtype, input.shape, cat("tensors.inputs[", i, "]"), from, at),
           input.inout});
    }
    for (std::size_t i = 0; i < tensors.outputs.size(); ++i) {
      shape.outputs.push_back(
          output(tensors.outputs[i], cat("tensors.outputs[", i, "]"), from, at, shape.inputs));
    }

    const std::string regimes_at = from.regimes.has_value() ? at + ".regimes" : "regimes";
    const std::vector<RegimeFile>& regimes =
        from.regimes.has_value() ? *from.regimes : file_.regimes;
    if (from.regimes.has_value()) check_regimes(regimes, regimes_at, timed);
    for (std::size_t i = 0; i < regimes.size(); ++i) {
      shape.regimes.push_back(regime(regimes[i], cat(regimes_at, "[", i, "]"), shape, at));
    }
    return shape;
  }

  void resolve_work(const ShapeFile& from, const std::string& at, Shape& shape) const {
    if (!from.read_bytes && !from.written_bytes && !from.operations) return;
    if (!shape.timed) fail(at, "a test is not timed and has no floor to compute");
    if (shape.floor_ns) {
      fail(at + ".floor_us",
           "is given, so no floor is computed; leave it out, or the shape's "
           "bytes and operations");
    }
    shape.work = Work{from.read_bytes.value_or(0), from.written_bytes.value_or(0),
                      from.operations.value_or(0)};
  }

  // "4096x1000", "test-5x3", with the dtype where the challenge has several for the arch.
  std::string default_name(const ShapeFile& shape, bool timed) const {
    std::string name;
    for (const auto& [dim, size] : shape.dims) name += cat(name.empty() ? "" : "x", size);
    if (name.empty()) return name;
    const auto other_dtype = [&](const ShapeFile& other) {
      return other.arch == shape.arch && other.dtype != shape.dtype;
    };
    if (std::any_of(file_.shapes.begin(), file_.shapes.end(), other_dtype) ||
        std::any_of(file_.tests.begin(), file_.tests.end(), other_dtype)) {
      name += cat("-", kjudge::name(shape.dtype));
    }
    return timed ? name : "test-" + name;
  }

  // Every shape gives the same scalars: kernel_fn reads them for all.
  void resolve_scalars(const ShapeFile& from, const std::string& at, Shape& shape) const {
    for (const auto& [name, size] : file_.shapes.front().scalars) {
      const auto given = std::find_if(from.scalars.begin(), from.scalars.end(),
                                      [&name = name](const auto& s) { return s.first == name; });
      if (given == from.scalars.end()) {
        fail(at,
             cat("scalar \"", name, "\" of shapes[0] is missing; every shape and test gives it"));
      }
      if (given->second.index() != size.index()) {
        fail(cat(at, ".scalars.", name), "has another type than in shapes[0]");
      }
    }
    for (const auto& [name, value] : from.scalars) {
      const auto& first = file_.shapes.front().scalars;
      if (std::none_of(first.begin(), first.end(),
                       [&name = name](const auto& known) { return known.first == name; })) {
        fail(cat(at, ".scalars.", name),
             "shapes[0] has no such scalar; every shape gives the same");
      }
      shape.scalars.push_back({name, value});
    }
  }

  TensorSpec tensor(const std::string& name, std::optional<DType> dtype,
                    const std::vector<DimFile>& dims, const std::string& at, const ShapeFile& shape,
                    const std::string& shape_at) const {
    TensorSpec spec;
    spec.name = name;
    spec.dtype = dtype.value_or(shape.dtype);
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (const auto* size = std::get_if<std::int64_t>(&dims[i])) {
        spec.dims.push_back(*size);
        continue;
      }
      const std::string& symbol = std::get<std::string>(dims[i]);
      const auto given = std::find_if(shape.dims.begin(), shape.dims.end(),
                                      [&](const auto& dim) { return dim.first == symbol; });
      if (given == shape.dims.end()) {
        fail(cat(at, ".shape[", i, "]"), cat(shape_at, ".dims has no \"", symbol, "\""));
      }
      spec.dims.push_back(given->second);
    }
    bool fits = false;
    try {
      fits = size_bytes(spec) <= kLargestTensor;
    } catch (const Error&) {
    }
    if (!fits) fail(at, cat("larger than 2^40 bytes with the dims of ", shape_at));
    return spec;
  }

  OutputSpec output(const OutputFile& from, const std::string& at, const ShapeFile& shape,
                    const std::string& shape_at, const std::vector<InputSpec>& inputs) const {
    OutputSpec output;
    output.tensor = tensor(from.name, from.dtype, from.shape, at, shape, shape_at);
    const DType dtype = output.tensor.dtype;
    const bool floating = is_floating(dtype);
    output.expected_dtype = from.expected_dtype.value_or(floating ? DType::float64 : dtype);
    if (floating != is_floating(output.expected_dtype)) {
      fail(at + ".expected_dtype",
           cat(kjudge::name(output.expected_dtype), " cannot stand for an output of ",
               kjudge::name(dtype), " (", shape_at, "): both are floating or neither is"));
    }
    output.overflow = from.overflow;
    // Wider types have no saturating conversion a contestant could use.
    if (output.overflow == Overflow::saturate && (!floating || bits(dtype) > 16)) {
      fail(at + ".overflow", cat("only 16-, 8- and 4-bit floating types saturate, not ",
                                 kjudge::name(dtype), " (", shape_at, ")"));
    }
    for (std::size_t i = 0; i < from.checks.size(); ++i) {
      const CheckFile& check = from.checks[i];
      if (check.dtype.has_value() && *check.dtype != shape.dtype) continue;
      output.checks.push_back(check.check);
    }
    if (from.tf32 && !from.checks.empty()) {
      fail(at + ".tf32", "chooses the checks of an output that names none, and this one does");
    }
    if (from.checks.empty()) {
      std::int64_t longest = longest_dim(output.tensor);
      for (const InputSpec& input : inputs) longest = std::max(longest, longest_dim(input.tensor));
      output.checks = default_checks(dtype, from.tf32, float8_in(shape), longest);
    }
    if (output.checks.empty()) {
      fail(at + ".checks", cat("no check applies to ", kjudge::name(shape.dtype), " (", shape_at,
                               "); give at least one, such as {\"kind\": \"close\", \"rtol\": "
                               "1e-5, \"atol\": 1e-6}"));
    }
    return output;
  }

  static std::int64_t longest_dim(const TensorSpec& tensor) {
    std::int64_t longest = 1;
    for (const std::int64_t dim : tensor.dims) longest = std::max(longest, dim);
    return longest;
  }

  bool float8_in(const ShapeFile& shape) const {
    const auto& inputs = file_.tensors.inputs;
    return std::any_of(inputs.begin(), inputs.end(), [&](const InputFile& input) {
      const DType dtype = input.dtype.value_or(shape.dtype);
      return dtype == DType::float8_e4m3 || dtype == DType::float8_e5m2;
    });
  }

  Regime regime(const RegimeFile& from, const std::string& at, const Shape& shape,
                const std::string& shape_at) const {
    std::vector<PlacedGenerator> placed;
    for (std::size_t i = 0; i < shape.inputs.size(); ++i) {
      const TensorSpec& input = shape.inputs[i].tensor;
      const auto given =
          std::find_if(from.generators.begin(), from.generators.end(),
                       [&](const auto& generator) { return generator.first == input.name; });
      if (given != from.generators.end()) {
        placed.push_back({given->second, cat(at, ".generators.", input.name)});
      } else {
        placed.push_back(
            {file_.tensors.inputs[i].generator, cat("tensors.inputs[", i, "].generator")});
      }
    }
    const auto failing = [this](const std::string& place, const std::string& message) {
      fail(place, message);
    };
    return {from.name, from.pairs_per_round, resolve_generators(shape, shape_at, placed, failing)};
  }

  static constexpr std::int64_t kLargestTensor = std::int64_t{1} << 40;

  const ChallengeFile& file_;
  std::string path_;
};

// Fault::package with `why`, for which it is needed, unless a file is there.
void require_file(const fs::path& path, std::string_view why) {
  std::error_code error;
  const auto status = fs::symlink_status(path, error);
  if (fs::is_regular_file(status)) return;
  std::string_view what = "neither a file nor a folder";
  if (status.type() == fs::file_type::none)
    throw Error(Fault::host, cat(path.string(), ": ", error.message()));
  if (!fs::exists(status)) what = "no such file";
  if (fs::is_directory(status)) what = "is a folder, expected a file";
  if (fs::is_symlink(status)) what = "is a link; copy the file into the challenge";
  throw Error(Fault::package, cat(path.string(), ": ", what, "; ", why));
}

std::string read_challenge_file(const fs::path& folder, const std::string& name) {
  const bool manifest = name == kManifest;
  try {
    return read_file(folder / name, manifest ? kMostManifestBytes : kMostFileBytes);
  } catch (const Error& error) {
    if (error.fault() != Fault::malformed) throw;
    throw Error(
        Fault::package,
        cat(error.what(), "; make what is large when it is needed, in prepare or inputs.py"));
  }
}

// Of what `sha256sum` prints for the files.
class FilesDigest {
 public:
  void add(const std::string& name, std::string_view bytes) {
    lines_ += cat(sha256_hex(bytes), "  ", name, "\n");
  }
  std::string hex() const { return sha256_hex(lines_); }

 private:
  std::string lines_;
};

// With less even a submission that allocates nothing would be told that it takes too much.
void check_memory(const Challenge& challenge, const fs::path& path) {
  const std::uint64_t limit = challenge.limits.memory_bytes;
  const TensorMemory needed = tensor_memory(challenge);
  if (limit == 0 || limit >= needed.bytes) return;
  throw Error(Fault::package,
              cat(path.string(), ": limits.memory_bytes: ", limit,
                  " is less than the tensors of its shapes for ", needed.arch, " take, ",
                  needed.bytes, " bytes; give that and what submissions may allocate"));
}

bool has_custom_check(const Shape& shape) {
  return std::any_of(shape.outputs.begin(), shape.outputs.end(), [](const OutputSpec& output) {
    return std::any_of(output.checks.begin(), output.checks.end(),
                       [](const Check& check) { return check.kind == CheckKind::custom; });
  });
}

bool is_one_of(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string listed(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += cat(text.empty() ? "" : ", ", name);
  return text;
}

}  // namespace

std::string_view name(FloorFrom from) {
  switch (from) {
    case FloorFrom::challenge:
      return "challenge";
    case FloorFrom::rates:
      return "rates";
    case FloorFrom::measured:
      return "measured";
  }
  return "unknown";
}

std::string_view name(CheckKind kind) { return kCheckNames.at(static_cast<std::size_t>(kind)); }

Challenge read_challenge(const fs::path& folder) {
  const fs::path path = folder / kManifest;
  require_file(path, "a challenge is a folder with challenge.json (see kjudge-challenge(5))");
  for (const RequiredFile& file : kRequiredFiles) {
    require_file(folder / file.name, cat("a challenge needs it: ", file.what));
  }
  const std::string text = read_challenge_file(folder, kManifest);
  const Json json = parse_json(text, path.string(), Fault::package);
  const ChallengeFile file =
      challenge_table().read(JsonCursor(json, path.native(), Fault::package));

  Challenge challenge;
  challenge.folder = folder;
  challenge.name = file.name;
  challenge.version = file.version;
  challenge.title = file.title;
  challenge.author = file.author;
  challenge.bounty = file.bounty;
  if (file.target_us.has_value()) challenge.target_ns = *file.target_us * 1000;
  challenge.cache = file.cache;
  challenge.reference = file.reference;
  challenge.publish = file.publish;
  challenge.gpus_per_evaluation = file.gpus_per_evaluation;
  challenge.compiler_flags = file.compiler_flags;
  challenge.hidden = file.hidden;
  challenge.limits = file.limits;
  challenge.rates = file.rates;
  challenge.shapes = Resolver(file, path.string()).shapes();
  check_memory(challenge, path);
  const auto files = challenge_files(folder, challenge.hidden);
  const auto require = [&](std::string_view name) {
    if (is_one_of(files, name)) return;
    throw Error(Fault::package, cat(path.string(), ": hidden: ", name,
                                    " is needed by those it would be hidden from"));
  };
  require(kManifest);
  for (const RequiredFile& file_needed : kRequiredFiles) require(file_needed.name);
  const bool python =
      std::any_of(challenge.shapes.begin(), challenge.shapes.end(), [](const Shape& shape) {
        return std::any_of(shape.regimes.begin(), shape.regimes.end(), uses_python);
      });
  if (python) {
    require_file(folder / "inputs.py", "it makes the inputs whose generator is \"python\"");
    require("inputs.py");
  }
  const bool custom =
      std::any_of(challenge.shapes.begin(), challenge.shapes.end(), has_custom_check);
  if (custom) {
    require_file(folder / "check.py", "it does the checks that are \"custom\"");
    require("check.py");
  }
  FilesDigest digest;
  for (const std::string& name : files) {
    digest.add(name, name == kManifest ? text : read_challenge_file(folder, name));
  }
  challenge.sha256 = digest.hex();
  return challenge;
}

void read_challenge_files(
    const Challenge& challenge,
    const std::function<void(const std::string& name, std::string bytes)>& take) {
  FilesDigest digest;
  for (const std::string& name : challenge_files(challenge.folder, challenge.hidden)) {
    std::string bytes = read_challenge_file(challenge.folder, name);
    digest.add(name, bytes);
    take(name, std::move(bytes));
  }
  if (digest.hex() == challenge.sha256) return;
  throw Error(Fault::package, cat(challenge.folder.string(),
                                  ": its files were changed while they were in use; try again when "
                                  "nobody writes to them"));
}

std::vector<std::string> challenge_files(const fs::path& folder,
                                         const std::vector<std::string>& hidden) {
  std::vector<std::string> names;
  for (auto entry = fs::recursive_directory_iterator(folder);
       entry != fs::recursive_directory_iterator(); ++entry) {
    const std::string file = entry->path().filename().string();
    const std::string name = entry->path().lexically_relative(folder).generic_string();
    // Running reference.py would change __pycache__.
    if (file.starts_with('.') || file == "__pycache__" || is_one_of(hidden, name)) {
      if (entry->is_directory()) entry.disable_recursion_pending();
      continue;
    }
    // A link's target may change without the challenge.
    if (entry->is_symlink() || !(entry->is_directory() || entry->is_regular_file())) {
      throw Error(Fault::package,
                  cat(entry->path().string(), ": not a regular file; copy it into the challenge"));
    }
    if (!entry->is_regular_file()) continue;
    // The manifest could not tell the name, or sha256sum writes it in another way.
    if (!printable_name(name) || name.find('\\') != name.npos) {
      throw Error(Fault::package,
                  cat(folder.string(), ": ", print_flat_json(Json{name}),
                      " is a file's name that is not one line of UTF-8 without backslashes; rename "
                      "it"));
    }
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_program(std::string_view bytes) {
  return bytes.starts_with("#!") || bytes.starts_with(
                                        "\x7f"
                                        "ELF");
}

void copy_challenge(const Challenge& challenge, const fs::path& to) {
  fs::create_directory(to);
  read_challenge_files(challenge, [&](const std::string& name, const std::string& bytes) {
    fs::create_directories((to / name).parent_path());
    write_new_file(to / name, bytes);
    const mode_t mode = is_program(bytes) ? 0755 : 0644;
    if (::chmod((to / name).c_str(), mode) != 0) throw_errno((to / name).string());
  });
}

bool runs_on(const Shape& shape, const std::string& arch) {
  return shape.arch == arch || (shape.arch == "sm_*" && arch.starts_with("sm_"));
}

Challenge for_arch(const Challenge& challenge, const std::string& arch) {
  Challenge chosen = challenge;
  std::erase_if(chosen.shapes, [&](const Shape& shape) { return !runs_on(shape, arch); });
  if (std::none_of(chosen.shapes.begin(), chosen.shapes.end(),
                   [](const Shape& shape) { return shape.timed; })) {
    std::set<std::string> arches;
    for (const Shape& shape : challenge.shapes) {
      if (shape.timed) arches.insert(shape.arch);
    }
    throw Error(Fault::usage, cat("challenge ", challenge.name, " has no shape for ", arch,
                                  "; it has shapes for ", listed(arches)));
  }
  return chosen;
}

std::uint64_t input_key(const std::string& secret, const std::string& evaluation,
                        const std::string& shape, std::uint64_t replay, const std::string& tensor) {
  // Each part after its length: no two lists of parts give the same bytes.
  std::string bytes;
  const std::string number = std::to_string(replay);
  for (const std::string* part : {&secret, &evaluation, &shape, &number, &tensor}) {
    bytes += cat(part->size(), ":", *part);
  }
  return std::stoull(sha256_hex(bytes).substr(0, 16), nullptr, 16);
}

}  // namespace kjudge
