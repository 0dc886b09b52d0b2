// SPDX-License-Identifier: Apache-2.0
#include "challenge/challenge_format.h"

namespace kjudge {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 40;

// In Python they are attributes, `inputs.x`.
Kind<std::string> variable_kind() {
  return matching_kind("a name of letters, digits and underscores that begins with a letter",
                       "[A-Za-z][A-Za-z0-9_]{0,63}");
}

// Of shapes and regimes: on command lines and in paths.
Kind<std::string> label_kind() {
  return matching_kind("a name of letters, digits, dots, underscores and dashes",
                       "[A-Za-z0-9][A-Za-z0-9._-]{0,63}");
}

Kind<DType> dtype_kind() {
  std::vector<std::pair<std::string, DType>> words;
  for (int i = 0; i < kDTypeCount; ++i) {
    words.emplace_back(name(static_cast<DType>(i)), static_cast<DType>(i));
  }
  return word_kind(words);
}

Kind<std::optional<DType>> tensor_dtype_kind() {
  std::vector<std::pair<std::string, std::optional<DType>>> words = {{"$dtype", std::nullopt}};
  for (int i = 0; i < kDTypeCount; ++i) {
    words.emplace_back(name(static_cast<DType>(i)), static_cast<DType>(i));
  }
  return word_kind(words);
}

// A whole number where the program has a double.
Kind<double> whole_kind() {
  const auto integer = integer_kind<std::int64_t>(-(std::int64_t{1} << 53), std::int64_t{1} << 53);
  return {integer.expected,
          [integer](const JsonCursor& at) { return static_cast<double>(integer.read(at)); },
          [](const double& value) { return Json{static_cast<std::int64_t>(value)}; },
          integer.schema};
}

Kind<DimFile> dim_kind() {
  const auto size = integer_kind<std::int64_t>(1, kMostElements);
  const auto symbol = variable_kind();
  const std::string what = cat(size.expected, " or the name of one of the shape's dims");
  return {what,
          [=](const JsonCursor& at) -> DimFile {
            if (at.get_if<std::string>() != nullptr) return symbol.read(at);
            if (at.get_if<std::int64_t>() != nullptr) return size.read(at);
            at.expected(what);
          },
          [=](const DimFile& dim) {
            const auto* number = std::get_if<std::int64_t>(&dim);
            return number != nullptr ? size.write(*number)
                                     : symbol.write(std::get<std::string>(dim));
          },
          Json{Json::Object{{"oneOf", Json{Json::List{size.schema, symbol.schema}}}}}};
}

using ScalarValue = std::variant<std::int64_t, double, bool>;

Kind<ScalarValue> scalar_kind() {
  const std::string what = "a number, true or false";
  return {what,
          [=](const JsonCursor& at) -> ScalarValue {
            if (const auto* integer = at.get_if<std::int64_t>()) return *integer;
            if (const auto* real = at.get_if<double>()) return *real;
            if (const auto* boolean = at.get_if<bool>()) return *boolean;
            at.expected(what);
          },
          [](const ScalarValue& value) {
            return std::visit([](auto held) { return Json{held}; }, value);
          },
          Json{Json::Object{{"type", Json{Json::List{Json{std::string("number")},
                                                     Json{std::string("boolean")}}}}}}};
}

Kind<GeneratorFile> generator_kind() {
  using File = GeneratorFile;
  using Table = FieldTable<File>;
  const auto real = number_kind(-0x1p120, 0x1p120);
  const auto size = integer_kind<std::int64_t>(0, kMostElements);
  const auto mean = optional("mean", &File::mean, real, "mean of the values");
  const auto deviation =
      optional("deviation", &File::deviation, number_kind(0, 0x1p120), "their standard deviation");
  const auto low = required("low", &File::low, whole_kind(), "smallest value");
  const auto high = required("high", &File::high, whole_kind(), "largest value");
  const auto one = optional("value", &File::value, real, "what is not 0");
  const auto skew = optional("skew", &File::skew, number_kind(0, 1),
                             "0: lengths are all alike, 1: a few have most of the total");
  const auto total = required("total", &File::total, dim_kind(), "the sum of the lengths");
  const auto least = optional("least", &File::least, size, "the smallest length");
  const auto most =
      optional("most", &File::most, dim_kind(), "the largest length; \"total\" where absent");
  return tagged_kind<File, FillKind>(
      "kind", &File::kind, "how values are drawn",
      {{"normal", fill_normal, Table({mean, deviation})},
       {"uniform", fill_uniform,
        Table({required("low", &File::low, real, "smallest value"),
               required("high", &File::high, real, "values are below this")})},
       {"integers", fill_integers, Table({low, high})},
       {"constant", fill_constant,
        Table({required("value", &File::value, real, "every element is this")})},
       {"bernoulli", fill_bernoulli,
        Table({required("probability", &File::probability, number_kind(0, 1),
                        "share of the elements that are not 0"),
               one})},
       {"permutation", fill_permutation, Table({})},
       {"block_table", fill_block_table,
        Table({required("blocks", &File::blocks, dim_kind(), "how many blocks there are"),
               optional("lengths", &File::lengths, variable_kind(),
                        "an input with the length of each row, which needs so much of its blocks"),
               optional("block_size", &File::block_size, dim_kind(),
                        "what one block holds of a length"),
               optional("unused", &File::unused, whole_kind(),
                        "stands where a row needs no more blocks")})},
       {"one_hot", fill_one_hot, Table({one})},
       {"power_law", fill_power_law,
        Table({low, high,
               optional("exponent", &File::exponent, number_kind(0, 8),
                        "how steep; 0: all values are as frequent"),
               optional("scattered", &File::scattered, boolean_kind(),
                        "which values are frequent is random, too; else the smallest")})},
       {"lengths", fill_lengths, Table({total, least, most, skew})},
       {"offsets", fill_offsets,
        Table(
            {optional("of", &File::of, variable_kind(),
                      "an input whose generator is \"lengths\"; in the place of all that follows"),
             optional("total", &File::total, dim_kind(), "the last of the offsets"), least, most,
             skew})},
       {"sorted", fill_sorted, Table({low, high, skew})},
       {"low_rank", fill_low_rank,
        Table({required("rank", &File::rank, integer_kind<std::int64_t>(1, 128),
                        "of each matrix, if it is as large"),
               deviation})},
       {"quantised", fill_quantised,
        Table({required("block", &File::block, dim_kind(),
                        "values along the last dimension that share a scale"),
               optional("power_of_two", &File::power_of_two, boolean_kind(),
                        "scales are powers of two"),
               mean, deviation})},
       {"scales", fill_scales,
        Table({required("of", &File::of, variable_kind(),
                        "an input whose generator is \"quantised\"")})},
       {"python", fill_python, Table({})}});
}

// A field of CheckFile::check in the place of one of CheckFile itself.
Field<CheckFile> check_field(const Field<Check>& inner) {
  Field<CheckFile> field(inner);
  field.read = [read = inner.read](const JsonCursor& at, CheckFile& into) { read(at, into.check); };
  field.write = [write = inner.write](const CheckFile& from) { return write(from.check); };
  return field;
}

Kind<CheckFile> check_kind() {
  using Table = FieldTable<CheckFile>;
  const auto limit = number_kind(1e-18, 1);  // 0 would be another name for `exact`
  const auto dtype = optional("dtype", &CheckFile::dtype, dtype_kind(),
                              "only for shapes of this dtype; for all where absent");
  const auto fraction =
      check_field(optional("max_mismatched", &Check::max_mismatched, number_kind(0, 1),
                           "fraction of the elements that may fail, NaN and infinity excepted"));
  const auto rtol = check_field(optional("rtol", &Check::rtol, number_kind(0, 1),
                                         "error allowed as a share of the expected value"));
  const auto per = check_field(
      optional("per", &Check::per, word_kind<Per>({{"row", Per::row}, {"tensor", Per::tensor}}),
               "what is measured: every row, which is the last dimension, or the tensor as one"));
  Kind<CheckFile> kind = tagged_kind<CheckFile, CheckKind>(
      "kind", &CheckFile::kind, "what makes an output right",
      {{"exact", CheckKind::exact,
        Table({check_field(
                   optional("signed_zero", &Check::signed_zero, boolean_kind(), "-0 and 0 differ")),
               fraction, dtype})},
       {"close", CheckKind::close,
        Table({rtol,
               check_field(optional("atol", &Check::atol, number_kind(0, 0x1p120),
                                    "error allowed anywhere")),
               fraction, dtype})},
       {"rel_l2", CheckKind::rel_l2,
        Table({check_field(required("limit", &Check::limit, limit, "largest relative L2 error")),
               per,
               check_field(optional("quantile", &Check::quantile, number_kind(0.5, 1),
                                    "share of the rows that must be within the limit")),
               dtype})},
       {"cosine", CheckKind::cosine,
        Table({check_field(required("min", &Check::limit, limit, "least cosine similarity")), per,
               dtype})},
       {"row_bound", CheckKind::row_bound,
        Table({rtol,
               check_field(optional("c", &Check::c, number_kind(0, 1),
                                    "error allowed as a share of the root mean square of the "
                                    "row's expected values")),
               dtype})},
       {"codes", CheckKind::codes,
        Table({check_field(optional("same", &Check::same, number_kind(0, 1),
                                    "share of the elements that must be equal")),
               check_field(optional("within", &Check::within, integer_kind<std::uint32_t>(0, 1000),
                                    "steps of the type that any element may be off")),
               dtype})},
       {"versus_baseline", CheckKind::versus_baseline,
        Table({check_field(required("factor", &Check::factor, number_kind(1, 1000),
                                    "of the baseline's error: the largest relative L2 error of "
                                    "a row")),
               check_field(required("floor", &Check::floor, limit,
                                    "relative L2 error that is right whatever the baseline's")),
               dtype})},
       {"custom", CheckKind::custom,
        Table({check_field(required("limit", &Check::limit, number_kind(0, 1e30),
                                    "largest error that check.py may find")),
               check_field(optional("per", &Check::over_evaluation,
                                    word_kind<bool>({{"replay", false}, {"evaluation", true}}),
                                    "what the limit is of: every replay, or the mean over all of "
                                    "an evaluation")),
               dtype})}});
  kind.read = [read = kind.read](const JsonCursor& at) {
    CheckFile check = read(at);
    check.check.kind = check.kind;
    if (check.kind == CheckKind::close && check.check.rtol == 0 && check.check.atol == 0) {
      at.fail("neither \"rtol\" nor \"atol\" is above 0; use \"exact\" for equal values");
    }
    if (check.kind == CheckKind::row_bound && check.check.rtol == 0 && check.check.c == 0) {
      at.fail("neither \"rtol\" nor \"c\" is above 0; use \"exact\" for equal values");
    }
    return check;
  };
  return kind;
}

Kind<std::vector<DimFile>> tensor_shape_kind() { return list_kind(dim_kind(), 0, 16); }

FieldTable<InputFile> input_table() {
  return FieldTable<InputFile>(
      {required("name", &InputFile::name, variable_kind(), "kernel_fn has it as inputs.NAME"),
       required("dtype", &InputFile::dtype, tensor_dtype_kind(),
                "element type; \"$dtype\" is the shape's"),
       required("shape", &InputFile::shape, tensor_shape_kind(),
                "a size per dimension: a number, or the name of one of the shape's dims"),
       optional("inout", &InputFile::inout, boolean_kind(), "the kernel may write to it"),
       optional("generator", &InputFile::generator, generator_kind(),
                "where the values come from; normal for floating types where absent")});
}

FieldTable<OutputFile> output_table() {
  return FieldTable<OutputFile>(
      {required("name", &OutputFile::name, variable_kind(), "kernel_fn has it as outputs.NAME"),
       required("dtype", &OutputFile::dtype, tensor_dtype_kind(),
                "element type; \"$dtype\" is the shape's"),
       required("shape", &OutputFile::shape, tensor_shape_kind(),
                "a size per dimension: a number, or the name of one of the shape's dims"),
       optional("expected_dtype", &OutputFile::expected_dtype, dtype_kind(),
                "what reference.py writes; float64 for floating outputs where absent, else the "
                "output's own"),
       optional("overflow", &OutputFile::overflow,
                word_kind<Overflow>(
                    {{"infinity", Overflow::infinity}, {"saturate", Overflow::saturate}}),
                "what an expected value beyond the type's largest becomes"),
       optional("tf32", &OutputFile::tf32, boolean_kind(),
                "products may be computed in TF32: wider default checks of a float32 output"),
       optional("checks", &OutputFile::checks, list_kind(check_kind(), 0, 16),
                "all must hold; those of the dtype where absent")});
}

FieldTable<TensorsFile> tensors_table() {
  return FieldTable<TensorsFile>(
      {required("inputs", &TensorsFile::inputs, list_kind(object_kind(input_table()), 0, 64),
                "what the kernel reads"),
       required("outputs", &TensorsFile::outputs, list_kind(object_kind(output_table()), 1, 64),
                "what the kernel writes")});
}

FieldTable<RegimeFile> regime_table() {
  return FieldTable<RegimeFile>(
      {required("name", &RegimeFile::name, label_kind(), "such as \"nominal\" or \"large\""),
       required("pairs_per_round", &RegimeFile::pairs_per_round, integer_kind(1, 5),
                "how many of the 5 pairs of every round; those of all regimes add up to 5"),
       optional("generators", &RegimeFile::generators, map_kind(variable_kind(), generator_kind()),
                "generators by the input's name; the input's own where absent")});
}

Kind<std::uint64_t> work_kind() { return integer_kind<std::uint64_t>(0, std::uint64_t{1} << 62); }

FieldTable<ShapeFile> shape_table() {
  return FieldTable<ShapeFile>(
      {optional("name", &ShapeFile::name, label_kind(),
                "where absent made of the dims: 4096x1000, and test-5x3 for a test"),
       required("arch", &ShapeFile::arch,
                matching_kind("\"x86_64\", \"sm_*\" for any GPU, or one GPU type such as \"sm_90\"",
                              "x86_64|sm_\\*|sm_[0-9]{2,3}"),
                "where it runs: x86_64 on the host driver, sm_* on any GPU, sm_90 on that type"),
       required("dtype", &ShapeFile::dtype, dtype_kind(), "what \"$dtype\" stands for"),
       optional("dims", &ShapeFile::dims,
                map_kind(variable_kind(), integer_kind<std::int64_t>(1, kMostElements)),
                "sizes by name"),
       optional("scalars", &ShapeFile::scalars, map_kind(variable_kind(), scalar_kind()),
                "numbers that kernel_fn has as inputs.NAME; every shape gives the same names"),
       optional("floor_us", &ShapeFile::floor_us, number_kind(0, 1e9),
                "the hardware's limit: a submission that is faster is flagged, and still counts"),
       optional("read_bytes", &ShapeFile::read_bytes, work_kind(),
                "bytes of memory that every right kernel reads; a floor is computed from it"),
       optional("written_bytes", &ShapeFile::written_bytes, work_kind(),
                "bytes of memory that every right kernel writes; likewise"),
       optional("operations", &ShapeFile::operations, work_kind(),
                "arithmetic operations that every right kernel does, a multiply-add being two; "
                "likewise"),
       optional("regimes", &ShapeFile::regimes, list_kind(object_kind(regime_table()), 1, 5),
                "in the place of the challenge's, which hold where absent")});
}

FieldTable<DeviceRates> rates_table() {
  const Kind<double> rate = number_kind(1, 1e18);
  return FieldTable<DeviceRates>(
      {required("device", &DeviceRates::device, line_kind(1, 200),
                "devices whose name contains this, such as \"H200\""),
       optional("bytes_per_s", &DeviceRates::bytes_per_s, rate,
                "bytes of memory that it reads and writes in a second"),
       optional("operations_per_s", &DeviceRates::operations_per_s,
                map_kind(dtype_word_kind(), rate),
                "operations that it does in a second, by the shape's dtype")});
}

FieldTable<ChallengeLimits> limits_table() {
  using Limits = ChallengeLimits;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  return FieldTable<Limits>(
      {optional("build_s", &Limits::build_s, number_kind(1, 86400), "seconds for build.sh"),
       optional("prepare_s", &Limits::prepare_s, number_kind(1, 86400),
                "seconds for import and prepare"),
       optional("capture_s", &Limits::capture_s, number_kind(1, 86400),
                "seconds for the capture of all shapes"),
       optional("replay_s", &Limits::replay_s, number_kind(0.001, 3600),
                "seconds for one replay of one shape"),
       optional("memory_bytes", &Limits::memory_bytes, integer_kind<std::uint64_t>(0, kMost),
                "device memory; 0 is what the device has"),
       optional("output_bytes", &Limits::output_bytes,
                integer_kind<std::uint64_t>(1 << 10, 64 << 20),
                "how much of its stdout and stderr is kept"),
       optional("submission_bytes", &Limits::submission_bytes,
                integer_kind<std::uint64_t>(1 << 10, 1 << 30), "size of its files"),
       optional("bundle_bytes", &Limits::bundle_bytes, integer_kind<std::uint64_t>(1 << 16, kMost),
                "size of its recording's file")});
}

}  // namespace

Kind<std::string> dtype_word_kind() {
  std::vector<std::pair<std::string, std::string>> words;
  for (int i = 0; i < kDTypeCount; ++i) {
    const std::string dtype(name(static_cast<DType>(i)));
    words.emplace_back(dtype, dtype);
  }
  return word_kind(words);
}

const FieldTable<ChallengeFile>& challenge_table() {
  using File = ChallengeFile;
  static const FieldTable<File> table(
      {format_field<File>("kjudge-challenge/1"),
       required(
           "name", &File::name,
           matching_kind("a name of small letters, digits and dashes", "[a-z0-9][a-z0-9-]{0,63}"),
           "in paths, pages and on command lines"),
       required("version", &File::version, integer_kind(1, 1'000'000),
                "raised whenever results before and after cannot be compared"),
       required("title", &File::title, line_kind(1, 200), "what people call it"),
       required("author", &File::author, line_kind(1, 200), "who to ask"),
       optional("bounty", &File::bounty, line_kind(0, 200),
                "what can be won; nothing where absent"),
       optional("target_us", &File::target_us, number_kind(0, 1e9),
                "geometric mean of the times of all timed shapes that the author hopes for; shown, "
                "not judged"),
       optional("cache", &File::cache,
                word_kind<CacheMode>({{"cold", CacheMode::cold}, {"hot", CacheMode::hot}}),
                "whether caches hold the inputs when a replay starts"),
       optional("reference", &File::reference,
                word_kind<ReferenceMode>(
                    {{"recorded", ReferenceMode::recorded}, {"python", ReferenceMode::python}}),
                "whether reference.py is recorded once or called for every replay"),
       optional("publish_code", &File::publish,
                word_kind<PublishCode>({{"never", PublishCode::never},
                                        {"licensed", PublishCode::licensed},
                                        {"all", PublishCode::all}}),
                "whose code others may see: nobody's, that of submissions which name a license, "
                "everybody's"),
       optional("gpus_per_evaluation", &File::gpus_per_evaluation, integer_kind(1, 16),
                "on how many devices of a node each submission is measured, each apart"),
       optional("compiler_flags", &File::compiler_flags,
                list_kind(matching_kind("a compiler flag that begins with \"-\", without blanks",
                                        "-[!-~]+"),
                          0, 100),
                "flags of nvcc that a contestant may choose"),
       optional("hidden", &File::hidden,
                list_kind(
                    matching_kind(
                        "a path of letters, digits, \"_\", \"-\" and \".\", with \"/\" between its "
                        "parts alone, of which none begins with \".\"",
                        "[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*"),
                    0, 1000),
                "files and folders beside it that are no part of the challenge"),
       optional("limits", &File::limits, object_kind(limits_table()), "what a submission may take"),
       optional("rates", &File::rates, list_kind(object_kind(rates_table()), 0, 100),
                "what devices do at most, by their maker, for the floors of shapes that say their "
                "bytes and operations; the first that names the device holds"),
       required("tensors", &File::tensors, object_kind(tensors_table()), "inputs and outputs"),
       optional("regimes", &File::regimes, list_kind(object_kind(regime_table()), 1, 5),
                "sets of input values; one, \"nominal\", where absent"),
       required("shapes", &File::shapes, list_kind(object_kind(shape_table()), 1, 1000),
                "timed and checked"),
       optional("tests", &File::tests, list_kind(object_kind(shape_table()), 0, 1000),
                "checked, not timed")});
  return table;
}

}  // namespace kjudge
