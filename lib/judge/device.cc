// SPDX-License-Identifier: Apache-2.0
#include "judge/device.h"

#include <algorithm>
#include <array>

#include "store/terms.h"

namespace kjudge {
namespace {

int attribute(const Driver& driver, CUdevice device, CUdevice_attribute id) {
  int value = 0;
  KJ_DRIVER(driver, cuDeviceGetAttribute(&value, id, device));
  return value;
}

std::string driver_text(std::string_view kind, unsigned version, const std::string& release) {
  return cat(kind, " ", version / 1000, ".", version % 1000 / 10,
             release.empty() ? "" : cat(" (", release, ")"));
}

}  // namespace

DeviceIdentity identify(const Driver& driver, int device) {
  int count = 0;
  KJ_DRIVER(driver, cuDeviceGetCount(&count));
  if (device < 0 || device >= count) {
    throw Error(Fault::usage, cat("device ", device, ": the ", name(driver.kind), " driver has ",
                                  count, count == 1 ? " device" : " devices"));
  }
  CUdevice handle = 0;
  KJ_DRIVER(driver, cuDeviceGet(&handle, device));
  std::array<char, 256> text{};
  KJ_DRIVER(driver, cuDeviceGetName(text.data(), static_cast<int>(text.size()), handle));
  int version = 0;
  KJ_DRIVER(driver, cuDriverGetVersion(&version));

  DeviceIdentity identity;
  identity.name = text.data();
  identity.driver_release = driver_release(driver.kind);
  identity.driver =
      driver_text(name(driver.kind), static_cast<unsigned>(version), identity.driver_release);
  if (driver.kind == DriverKind::host) {
    // All are the same processors; where there seem to be several, a number tells them apart.
    if (count > 1) identity.name += cat(" device ", device);
    identity.arch = "x86_64";
    identity.trust = "process";
    return identity;
  }
  identity.name = cat(identity.name, " ", gpu_uuid(driver, device));
  identity.arch =
      cat("sm_", attribute(driver, handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
          attribute(driver, handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  identity.trust = "device";
  return identity;
}

void check_recorded_here(const Provenance& there, const DeviceIdentity& here) {
  const std::string driver = driver_text(there.driver, there.driver_version, there.driver_release);
  // An identity's name has the UUID too, and the host driver's its number where there are several.
  // Not just the same beginning: there are an L4 and an L40.
  const bool same_model = here.arch == "x86_64" ? here.name.starts_with(there.device)
                                                : device_kind(here.arch, here.name) == there.device;
  // Where one side does not know the release, the version has to do.
  const bool known = !there.driver_release.empty() && !here.driver_release.empty();
  const bool same_driver =
      driver_text(there.driver, there.driver_version,
                  known ? there.driver_release : here.driver_release) == here.driver;
  if (same_driver && there.arch == here.arch && same_model) return;
  throw Error(Fault::malformed, cat("was recorded on ", there.device, " (", there.arch,
                                    ") with driver ", driver, "; this is ", here.name, " (",
                                    here.arch, ") with driver ", here.driver, ": capture it here"));
}

std::vector<int> other_devices(const Driver& driver, const Challenge& challenge, int first) {
  std::vector<int> others;
  const DeviceIdentity here = identify(driver, first);
  for (int i = 1; i < challenge.gpus_per_evaluation; ++i) {
    const int device = first + i;
    try {
      const DeviceIdentity other = identify(driver, device);
      if (device_kind(other.arch, other.name) != device_kind(here.arch, here.name)) {
        throw Error(Fault::usage, cat("device ", device, " is a ", other.name, ", device ", first,
                                      " a ", here.name));
      }
    } catch (Error& error) {
      error.context(cat("challenge ", challenge.name, " wants ", challenge.gpus_per_evaluation,
                        " devices of a kind for each evaluation, from device ", first, " on"));
      throw;
    }
    others.push_back(device);
  }
  return others;
}

const Driver& open_driver(const std::string& choice, const Challenge& challenge) {
  if (choice == "cuda") return Driver::open(DriverKind::cuda);
  if (choice == "host") return Driver::open(DriverKind::host);
  if (choice != "auto") {
    throw Error(Fault::usage, cat("--driver ", choice, ": expected auto, cuda or host"));
  }
  const auto for_processor = [](const Shape& shape) { return shape.arch == "x86_64"; };
  const bool any_host =
      std::any_of(challenge.shapes.begin(), challenge.shapes.end(), for_processor);
  const bool any_gpu =
      !std::all_of(challenge.shapes.begin(), challenge.shapes.end(), for_processor);
  if (any_gpu && cuda_available()) return Driver::open(DriverKind::cuda);
  if (any_host) return Driver::open(DriverKind::host);
  throw Error(Fault::device,
              cat("challenge ", challenge.name,
                  ": all its shapes are for GPUs and no CUDA driver with a device was found; run "
                  "'kjudge doctor', or choose a challenge with shapes for x86_64"));
}

}  // namespace kjudge
