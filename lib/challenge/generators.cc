// SPDX-License-Identifier: Apache-2.0
#include "challenge/generators.h"

#include <algorithm>
#include <cmath>

#include "driver/kernels/structured.h"
#include "error.h"

namespace kjudge {
namespace {

constexpr double kLargestFloat32 = 3.4028234663852886e38;
// No deviate of the fill kernel is further from the mean: sqrt(2 ln 2^25) is 5.89.
constexpr double kLargestDeviate = 6;
// A shuffle's numbers, and the doubles on the way to the kernel.
constexpr std::uint64_t kMostShuffled = std::uint64_t{1} << 40;

struct ValueRange {
  double low, high;
};

double largest_finite(DType dtype) {
  if (dtype == DType::float16) return 65504;
  const bool small =
      dtype == DType::float8_e4m3 || dtype == DType::float8_e5m2 || dtype == DType::float4_e2m1;
  return small ? quantised_largest(dtype) : kLargestFloat32;  // the fill kernel computes in float32
}

ValueRange range_of(DType dtype) {
  switch (dtype) {
    case DType::int64:
      return {-0x1p53, 0x1p53};  // doubles on the way to the kernel
    case DType::int32:
      return {-2147483648.0, 2147483647.0};
    case DType::int16:
      return {-32768, 32767};
    case DType::int8:
      return {-128, 127};
    case DType::uint8:
      return {0, 255};
    case DType::boolean:
      return {0, 1};
    default:
      return {-largest_finite(dtype), largest_finite(dtype)};
  }
}

double as_double(std::uint64_t number) { return static_cast<double>(number); }

// The generators of one shape in one regime.
class GeneratorResolver {
 public:
  GeneratorResolver(const Shape& shape, const std::string& shape_at,
                    const std::vector<PlacedGenerator>& placed, const FailAt& fail)
      : shape_(shape), shape_at_(shape_at), placed_(placed), fail_(fail) {
    for (std::size_t i = 0; i < placed.size(); ++i) files_.push_back(file_of(i));
  }

  std::vector<Generator> resolve() const {
    std::vector<Generator> made;
    for (std::size_t i = 0; i < files_.size(); ++i) made.push_back(resolve(i));
    return made;
  }

 private:
  [[noreturn]] void fail(const std::string& at, const std::string& message) const {
    fail_(at, message);
    throw Error(Fault::bug, "a generator's failure was ignored");
  }
  [[noreturn]] void fail(std::size_t input, const std::string& message) const {
    fail(placed_[input].at, message);
  }

  const TensorSpec& tensor(std::size_t input) const { return shape_.inputs[input].tensor; }
  DType dtype(std::size_t input) const { return tensor(input).dtype; }
  std::uint64_t count(std::size_t input) const {
    return static_cast<std::uint64_t>(element_count(tensor(input).dims));
  }
  // Elements of a row, which is along the last dimension.
  std::uint64_t row(std::size_t input) const {
    const auto& dims = tensor(input).dims;
    return dims.empty() ? 1 : static_cast<std::uint64_t>(dims.back());
  }
  std::string of(std::size_t input) const {
    return cat(" for ", kjudge::name(dtype(input)), " (", shape_at_, ")");
  }

  GeneratorFile file_of(std::size_t input) const {
    if (placed_[input].generator.has_value()) return *placed_[input].generator;
    GeneratorFile file;
    if (dtype(input) == DType::boolean) {
      file.kind = fill_integers;
      file.high = 1;
    } else if (!is_floating(dtype(input))) {
      fail(input, cat("an input of ", kjudge::name(dtype(input)),
                      " needs a generator, such as {\"kind\": \"integers\", \"low\": 0, "
                      "\"high\": 99}"));
    }
    return file;
  }

  std::uint64_t dim(std::size_t input, const char* field, const DimFile& given) const {
    if (const auto* size = std::get_if<std::int64_t>(&given)) {
      return static_cast<std::uint64_t>(*size);
    }
    const std::string& symbol = std::get<std::string>(given);
    const auto found = shape_.dims.find(symbol);
    if (found == shape_.dims.end()) {
      fail(cat(placed_[input].at, ".", field), cat(shape_at_, ".dims has no \"", symbol, "\""));
    }
    return static_cast<std::uint64_t>(found->second);
  }

  // Another input that a field names.
  std::size_t other(std::size_t input, const char* field, const std::string& named) const {
    for (std::size_t i = 0; i < shape_.inputs.size(); ++i) {
      if (i != input && tensor(i).name == named) return i;
    }
    fail(cat(placed_[input].at, ".", field), cat("there is no other input \"", named, "\""));
  }

  void check_range(std::size_t input, double low, double high) const {
    const ValueRange range = range_of(dtype(input));
    if (low < range.low || high > range.high || high - low > kLargestFloat32) {
      fail(input, cat("makes values outside of the range", of(input), ", which is ",
                      range_text(range.low, range.high)));
    }
  }
  void check_whole(std::size_t input, bool whole) const {
    if (whole || is_floating(dtype(input))) return;
    fail(input, cat("makes fractions", of(input), "; use \"integers\" or a whole \"constant\""));
  }
  // Lengths and indices, which a floating type would round.
  void check_integers(std::size_t input) const {
    if (is_floating(dtype(input)) || dtype(input) == DType::boolean) {
      fail(input,
           cat("needs an integer type, not ", kjudge::name(dtype(input)), " (", shape_at_, ")"));
    }
  }
  void check_order(std::size_t input, const GeneratorFile& file) const {
    if (file.low > file.high) fail(input, "\"low\" is greater than \"high\"");
  }
  void check_floating(std::size_t input) const {
    if (!is_floating(dtype(input))) {
      fail(input,
           cat("needs a floating type, not ", kjudge::name(dtype(input)), " (", shape_at_, ")"));
    }
  }
  void check_one_dimension(std::size_t input) const {
    if (tensor(input).dims.size() != 1) {
      fail(input, cat("needs a tensor of one dimension; ", tensor(input).name, " has ",
                      tensor(input).dims.size()));
    }
  }

  Generator resolve(std::size_t input) const {
    const GeneratorFile& file = files_[input];
    Generator made;
    made.kind = file.kind;
    switch (file.kind) {
      case fill_normal:
        normal(input, file, made);
        break;
      case fill_constant:
        made.a = file.value;
        check_whole(input, std::floor(file.value) == file.value);
        check_range(input, file.value, file.value);
        break;
      case fill_uniform:
      case fill_integers:
        check_order(input, file);
        check_whole(input, file.kind == fill_integers);
        check_range(input, file.low, file.high);
        made.a = file.low;
        made.b = file.high;
        break;
      case fill_bernoulli:
      case fill_one_hot:
        check_whole(input, std::floor(file.value) == file.value);
        check_range(input, std::min(file.value, 0.0), std::max(file.value, 0.0));
        made.a = file.probability;
        made.b = file.value;
        made.row = row(input);
        break;
      case fill_permutation:
        check_integers(input);
        made.row = row(input);
        check_range(input, 0, as_double(made.row - 1));
        break;
      case fill_block_table:
        block_table(input, file, made);
        break;
      case fill_power_law:
        power_law(input, file, made);
        break;
      case fill_lengths:
        lengths(input, file, count(input), made);
        break;
      case fill_offsets:
        offsets(input, file, made);
        break;
      case fill_sorted:
        check_integers(input);
        check_one_dimension(input);
        check_order(input, file);
        check_range(input, file.low, file.high);
        made.a = file.low;
        made.b = file.skew;
        made.size = static_cast<std::uint64_t>(file.high - file.low);
        break;
      case fill_low_rank:
        low_rank(input, file, made);
        break;
      case fill_quantised:
        quantised(input, file, made);
        break;
      case fill_scales:
        scales(input, file, made);
        break;
      case fill_python:
        break;  // whatever inputs.py makes
      case fill_bits:
        throw Error(Fault::bug, "a generator of no kind that a challenge may name");
    }
    return made;
  }

  void normal(std::size_t input, const GeneratorFile& file, Generator& made) const {
    made.a = file.mean;
    made.b = file.deviation;
    check_whole(input, false);
    check_range(input, file.mean - kLargestDeviate * file.deviation,
                file.mean + kLargestDeviate * file.deviation);
  }

  void block_table(std::size_t input, const GeneratorFile& file, Generator& made) const {
    check_integers(input);
    made.row = row(input);
    made.size = dim(input, "blocks", *file.blocks);
    if (count(input) > made.size) {
      fail(input, cat("no block stands twice, and ", tensor(input).name, " has ", count(input),
                      " places for ", made.size, " blocks (", shape_at_, ")"));
    }
    made.a = file.unused;
    made.b = 1;
    check_range(input, std::min(0.0, file.unused), std::max(as_double(made.size - 1), file.unused));
    if (file.lengths.has_value() != file.block_size.has_value()) {
      fail(input, "\"lengths\" and \"block_size\" come together");
    }
    if (!file.lengths.has_value()) return;
    made.b = as_double(dim(input, "block_size", *file.block_size));
    const std::size_t source = other(input, "lengths", *file.lengths);
    const std::string at = placed_[input].at + ".lengths";
    if (files_[source].kind == fill_python) {
      fail(at, cat(tensor(source).name, " holds no lengths that are there before inputs.py runs"));
    }
    if (is_floating(dtype(source)) || files_[source].kind == fill_block_table) {
      fail(at, cat(tensor(source).name, " holds no lengths"));
    }
    if (count(source) != count(input) / made.row) {
      fail(at, cat(tensor(source).name, " has ", count(source), " lengths for the ",
                   count(input) / made.row, " rows of ", tensor(input).name, " (", shape_at_, ")"));
    }
    made.other = dtype(source);
    made.source = tensor(source).name;
  }

  void power_law(std::size_t input, const GeneratorFile& file, Generator& made) const {
    check_integers(input);
    check_order(input, file);
    check_range(input, file.low, file.high);
    if (file.scattered && file.high - file.low >= as_double(kMostShuffled)) {
      fail(input, "makes more than 2^40 values, too many to be \"scattered\"");
    }
    made.a = file.low;
    made.b = file.high;
    made.c = file.exponent;
    made.size = file.scattered ? 1 : 0;
  }

  // `count` of them, of which an input holds each or their sums.
  void lengths(std::size_t input, const GeneratorFile& file, std::uint64_t count,
               Generator& made) const {
    check_integers(input);
    check_one_dimension(input);
    made.size = dim(input, "total", *file.total);
    const std::uint64_t most = file.most ? dim(input, "most", *file.most) : made.size;
    const auto least = static_cast<std::uint64_t>(file.least);
    // Of counts up to 2^40: in doubles no product overflows, and those that are near are exact.
    if (as_double(least) * as_double(count) > as_double(made.size) ||
        as_double(most) * as_double(count) < as_double(made.size)) {
      fail(input, cat(count, " lengths from ", least, " to ", most, " do not add up to ", made.size,
                      " (", shape_at_, ")"));
    }
    made.a = as_double(least);
    made.b = file.skew;
    made.c = as_double(most);
    check_range(input, 0,
                as_double(file.kind == fill_offsets ? made.size : std::min(most, made.size)));
  }

  void offsets(std::size_t input, const GeneratorFile& file, Generator& made) const {
    check_one_dimension(input);
    const std::uint64_t segments = count(input) - 1;
    if (segments == 0) fail(input, cat("needs at least 2 elements (", shape_at_, ")"));
    if (file.of.has_value() == file.total.has_value()) {
      fail(input, "give either \"of\" or \"total\"");
    }
    if (!file.of.has_value()) return lengths(input, file, segments, made);
    const std::size_t source = other(input, "of", *file.of);
    const std::string at = placed_[input].at + ".of";
    if (files_[source].kind != fill_lengths) {
      fail(at, cat("the generator of ", tensor(source).name, " is not \"lengths\""));
    }
    if (count(source) != segments) {
      fail(at, cat(tensor(source).name, " has ", count(source), " lengths, and ",
                   tensor(input).name, " the offsets of ", segments, " (", shape_at_, ")"));
    }
    GeneratorFile same = files_[source];
    same.kind = fill_offsets;
    lengths(input, same, segments, made);
    made.key_of = tensor(source).name;
  }

  void low_rank(std::size_t input, const GeneratorFile& file, Generator& made) const {
    check_floating(input);
    const auto& dims = tensor(input).dims;
    if (dims.size() < 2) {
      fail(input,
           cat("makes matrices, and ", tensor(input).name, " has ", dims.size(), " dimensions"));
    }
    made.row = row(input);
    made.size = made.row * static_cast<std::uint64_t>(dims[dims.size() - 2]);
    made.b = file.deviation;
    made.c = static_cast<double>(file.rank);
    const double largest = kLargestDeviate * file.deviation * std::sqrt(made.c);
    check_range(input, -largest, largest);
  }

  void quantised(std::size_t input, const GeneratorFile& file, Generator& made) const {
    if (quantised_largest(dtype(input)) == 0) {
      fail(input, cat("makes int8, float8_e4m3, float8_e5m2 or float4_e2m1, not ",
                      kjudge::name(dtype(input)), " (", shape_at_, ")"));
    }
    made.row = dim(input, "block", *file.block);
    const std::string at = placed_[input].at + ".block";
    if (row(input) % made.row != 0) {
      fail(at, cat("the ", row(input), " values of a row are no whole number of blocks of ",
                   made.row, " (", shape_at_, ")"));
    }
    if (dtype(input) == DType::float4_e2m1 && made.row % 2 != 0) {
      fail(at, cat("two values of float4_e2m1 share a byte; a block of ", made.row,
                   " would end inside one (", shape_at_, ")"));
    }
    made.a = file.mean;
    made.b = file.deviation;
    made.c = file.power_of_two ? 1 : 0;
    std::vector<std::size_t> scales;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      if (files_[i].kind == fill_scales && files_[i].of == tensor(input).name) scales.push_back(i);
    }
    if (scales.size() != 1) {
      fail(input, cat(scales.empty() ? "no input has" : "more than one input has",
                      " the scales: the generator {\"kind\": \"scales\", \"of\": \"",
                      tensor(input).name, "\"}"));
    }
    made.other = dtype(scales.front());
  }

  void scales(std::size_t input, const GeneratorFile& file, Generator& made) const {
    check_floating(input);
    const std::size_t source = other(input, "of", *file.of);
    const std::string at = placed_[input].at + ".of";
    if (files_[source].kind != fill_quantised) {
      fail(at, cat("the generator of ", tensor(source).name, " is not \"quantised\""));
    }
    made = resolve(source);
    made.kind = fill_scales;
    made.other = dtype(source);
    made.key_of = tensor(source).name;
    if (count(input) != count(source) / made.row) {
      fail(at, cat(tensor(source).name, " has ", count(source) / made.row, " blocks, and ",
                   tensor(input).name, " ", count(input), " scales (", shape_at_, ")"));
    }
    const double largest = (std::abs(made.a) + kLargestDeviate * made.b) * (made.c != 0 ? 2 : 1);
    check_range(input, 0, largest / static_cast<double>(quantised_largest(dtype(source))));
    const double usual = std::abs(made.a) + made.b;
    if (usual > 0 &&
        block_scale(static_cast<float>(usual), made.other, dtype(input), made.c != 0) == 0) {
      fail(input, cat("makes scales that are 0", of(input), ", and all that is scaled with them: ",
                      tensor(source).name, " has too small a deviation"));
    }
  }

  const Shape& shape_;
  const std::string& shape_at_;
  const std::vector<PlacedGenerator>& placed_;
  const FailAt& fail_;
  std::vector<GeneratorFile> files_;
};

}  // namespace

std::vector<Generator> resolve_generators(const Shape& shape, const std::string& shape_at,
                                          const std::vector<PlacedGenerator>& placed,
                                          const FailAt& fail) {
  return GeneratorResolver(shape, shape_at, placed, fail).resolve();
}

FillParams fill_params(const Generator& generator, const TensorSpec& tensor) {
  FillParams params{};
  params.count = static_cast<std::uint64_t>(element_count(tensor.dims));
  params.a = generator.a;
  params.b = generator.b;
  params.c = generator.c;
  params.row = generator.row;
  params.size = generator.size;
  params.kind = generator.kind;
  params.dtype = static_cast<std::uint32_t>(tensor.dtype);
  params.other = static_cast<std::uint32_t>(generator.other);
  return params;
}

bool uses_python(const Regime& regime) {
  return std::any_of(regime.generators.begin(), regime.generators.end(),
                     [](const Generator& generator) { return generator.kind == fill_python; });
}

std::vector<std::size_t> fill_order(const std::vector<Generator>& generators) {
  std::vector<std::size_t> order;
  for (const bool reads : {false, true}) {
    for (std::size_t i = 0; i < generators.size(); ++i) {
      if (generators[i].kind == fill_python) continue;
      if (!generators[i].source.empty() == reads) order.push_back(i);
    }
  }
  return order;
}

}  // namespace kjudge
