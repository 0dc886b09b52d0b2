// SPDX-License-Identifier: Apache-2.0
#include "judge/profile_shape.h"

#include <cstdlib>

#include "error.h"
#include "judge/device.h"
#include "judge/version.h"

namespace kjudge {

namespace fs = std::filesystem;

namespace {

// One that could not be read back would be damage in a results directory.
void require_readable(const Profile& profile) {
  try {
    profile_from_json(profile_to_json(profile), "its profile");
  } catch (const Error& error) {
    throw Error(Fault::device, cat("ncu counted more than a profile holds: ", error.what()));
  }
}

}  // namespace

fs::path ncu_for(const Driver& driver) {
  // A test's, to which all drivers are the same.
  if (const char* program = std::getenv("KJUDGE_TEST_NCU")) return program;
  if (driver.kind != DriverKind::cuda) {
    throw Error(Fault::device,
                "profiling needs a GPU: ncu does not see the host driver's kernels, which are "
                "processor code (perf does); run this where a GPU is, with --driver cuda");
  }
  return find_ncu();
}

Profile profile_shape(const ShapeToProfile& what, NcuRun run, const std::function<void()>& tick) {
  const DeviceIdentity device = identify(what.driver, what.device);
  run.command = {fs::read_symlink("/proc/self/exe"),
                 "replay-once",
                 "--bundle",
                 fs::absolute(what.bundle),
                 "--challenge",
                 fs::absolute(what.challenge.folder),
                 "--shape",
                 what.shape,
                 "--driver",
                 std::string(name(what.driver.kind)),
                 "--device",
                 std::to_string(what.device)};
  Profile profile = run_ncu(run, tick);
  profile.challenge = what.challenge.name;
  profile.shape = what.shape;
  profile.submission = what.submission;
  profile.device = device.name;
  profile.driver = device.driver;
  profile.kjudge_version = kVersion;
  require_readable(profile);
  return profile;
}

}  // namespace kjudge
