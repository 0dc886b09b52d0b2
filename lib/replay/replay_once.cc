// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include "record/made_up.h"
#include "replay/replay.h"
#include "replay/supervisor_device.h"

namespace kjudge {
namespace {

// Not in the driver's table: the host driver has no profiler, and nothing but this needs one.
void call_profiler(const Driver& driver, const char* entry) {
  if (driver.kind == DriverKind::host) return;
  void* library = ::dlopen(driver.library.c_str(), RTLD_NOW | RTLD_NOLOAD);
  const auto call =
      library == nullptr ? nullptr : reinterpret_cast<CUresult (*)()>(::dlsym(library, entry));
  if (call == nullptr) throw Error(Fault::device, cat("the CUDA driver has no ", entry));
  check_driver(driver, call(), entry);
}

}  // namespace

// The place of the reference is the one where a bundle is replayed without a worker.
void replay_once(const Driver& driver, const Challenge& challenge, const BundleReader& bundle,
                 const std::string& shape_name, int device) {
  const Shape* shape = nullptr;
  for (const Shape& candidate : challenge.shapes) {
    if (candidate.name == shape_name) shape = &candidate;
  }
  if (shape == nullptr) {
    throw Error(Fault::usage, cat("challenge ", challenge.name, " has no shape ", shape_name));
  }
  // Times are not at stake, so neither is what the kernels can reach.
  SupervisorDevice side(driver, device, arena_range(bundle.bundle()), true);
  const std::vector<const Shape*> shapes = {shape};
  side.make_inputs(shapes);
  side.start_inputs(challenge, [] {});
  side.rebuild_reference(bind_shapes(bundle, shapes, ExpectedType::of_submission));
  side.make_buffers();
  const std::uint64_t seed = bundle.bundle().provenance.seed;
  side.fill(0, 0,
            [&](const std::string& tensor) { return made_up_key(seed, shape->name, tensor); });
  side.expect(0);  // the first also poisons the outputs, by a kernel of kjudge's
  call_profiler(driver, "cuProfilerStart");
  side.expect(0);
  call_profiler(driver, "cuProfilerStop");
}

}  // namespace kjudge
