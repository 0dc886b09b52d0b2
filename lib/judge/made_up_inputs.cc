// SPDX-License-Identifier: Apache-2.0
#include "judge/made_up_inputs.h"

#include "challenge/generators.h"
#include "file.h"
#include "judge/interrupt.h"
#include "record/made_up.h"
#include "replay/supervisor_device.h"

namespace kjudge {

void write_made_up_inputs(const Driver& driver, const Challenge& challenge,
                          const CaptureOptions& options, std::uint64_t seed,
                          const std::filesystem::path& folder) {
  std::vector<const Shape*> shapes;
  for (const Shape& shape : challenge.shapes) {
    if (!options.only.takes(shape)) continue;
    if (uses_python(shape.regimes.front())) shapes.push_back(&shape);
  }
  if (shapes.empty()) return;
  // Nothing of a contestant's runs here.
  SupervisorDevice side(driver, options.device, 0, true);
  side.make_inputs(shapes);
  side.start_inputs(challenge, check_interrupt);
  side.make_buffers();  // for digests
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    const Shape& shape = *shapes[s];
    const auto key_of = [&](const std::string& tensor) {
      return made_up_key(seed, shape.name, tensor);
    };
    const std::filesystem::path into = folder / shape.name;
    std::filesystem::create_directory(into);
    side.fill(s, 0, key_of);
    for (std::size_t i = 0; i < shape.inputs.size(); ++i) {
      const Bytes bytes = side.input_bytes(s, i);
      write_file_atomically(
          into / shape.inputs[i].tensor.name,
          std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    }
    const auto before = side.input_digests(s);
    side.fill(s, 0, key_of);
    if (side.input_digests(s) != before) {
      throw Error(Fault::package,
                  cat((challenge.folder / "inputs.py").string(), ": shape ", shape.name,
                      ": the same seed gave other inputs; draw from the seed alone"));
    }
  }
}

}  // namespace kjudge
