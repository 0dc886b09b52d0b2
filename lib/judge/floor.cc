// SPDX-License-Identifier: Apache-2.0
#include "judge/floor.h"

#include <algorithm>

#include "replay/plausible.h"

namespace kjudge {
namespace {

struct Rate {
  double per_s = 0;
  FloorFrom from = FloorFrom::measured;
};

using ByDtype = std::vector<std::pair<std::string, double>>;

std::optional<double> find(const ByDtype& rates, const std::string& dtype) {
  for (const auto& [known, per_s] : rates) {
    if (known == dtype) return per_s;
  }
  return std::nullopt;
}

// Of one device: the challenge's words, then what was measured.
struct Rates {
  const DeviceRates* said = nullptr;
  const std::optional<MeasuredRates>& measured;

  std::optional<Rate> bytes() const {
    if (said != nullptr && said->bytes_per_s) return Rate{*said->bytes_per_s, FloorFrom::rates};
    if (!measured) return std::nullopt;
    return Rate{std::max(measured->read_bytes_per_s, measured->copied_bytes_per_s)};
  }
  std::optional<Rate> operations(const std::string& dtype) const {
    if (said != nullptr) {
      if (const auto per_s = find(said->operations_per_s, dtype)) {
        return Rate{*per_s, FloorFrom::rates};
      }
    }
    if (!measured) return std::nullopt;
    const auto per_s = find(measured->operations_per_s, dtype);
    return per_s ? std::optional(Rate{*per_s}) : std::nullopt;
  }
};

std::uint64_t bytes_beyond_caches(const Work& work, CacheMode cache, std::uint64_t cache_bytes) {
  const auto beyond = [&](std::uint64_t bytes) { return bytes - std::min(bytes, cache_bytes); };
  if (cache == CacheMode::hot) return beyond(work.read_bytes + work.written_bytes);
  return work.read_bytes + beyond(work.written_bytes);
}

void keep_longer(Shape& shape, std::uint64_t work, const std::optional<Rate>& rate) {
  if (work == 0 || !rate) return;
  const double ns = std::min(static_cast<double>(work) / rate->per_s * 1e9, kMostNs);
  if (shape.floor_ns && ns <= *shape.floor_ns) return;
  shape.floor_ns = ns;
  shape.floor_from = rate->from;
}

}  // namespace

FloorBasis floor_basis(const Driver& driver, int device, const std::filesystem::path& cache) {
  const DeviceIdentity identity = identify(driver, device);
  CUdevice handle = 0;
  int bytes = 0;
  KJ_DRIVER(driver, cuDeviceGet(&handle, device));
  KJ_DRIVER(driver, cuDeviceGetAttribute(&bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, handle));
  FloorBasis basis{identity.name, static_cast<std::uint64_t>(std::max(bytes, 0)), {}};
  if (const auto measured = read_measured_device(cache, identity)) basis.measured = measured->rates;
  return basis;
}

void compute_floors(Challenge& challenge, const FloorBasis& basis) {
  const auto said =
      std::find_if(challenge.rates.begin(), challenge.rates.end(), [&](const DeviceRates& rates) {
        return basis.device.find(rates.device) != std::string::npos;
      });
  const Rates rates{said == challenge.rates.end() ? nullptr : &*said, basis.measured};
  for (Shape& shape : challenge.shapes) {
    if (!shape.work) continue;
    keep_longer(shape, bytes_beyond_caches(*shape.work, challenge.cache, basis.cache_bytes),
                rates.bytes());
    keep_longer(shape, shape.work->operations, rates.operations(shape.dtype));
  }
}

}  // namespace kjudge
