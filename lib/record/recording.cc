// SPDX-License-Identifier: Apache-2.0
#include "record/recording.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "elf_image.h"
#include "file.h"
#include "record/cupti.h"
#include "record/device_code.h"
#include "record/graph_copy.h"
#include "record/made_up.h"
#include "record/rules.h"

namespace kjudge {
namespace {

constexpr std::uint64_t kHashBlock = 4u << 20;

// The state memory as it is in the bundle, to go back to before each replay. Address space only,
// where it is zero.
class Snapshot {
 public:
  explicit Snapshot(std::uint64_t size) : size_(size) {
    void* mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) throw_errno("memory for a copy of the recorded state");
    bytes_ = static_cast<std::byte*>(mapped);
  }
  Snapshot(Snapshot&& other) noexcept
      : bytes_(std::exchange(other.bytes_, nullptr)), size_(other.size_) {}
  Snapshot& operator=(Snapshot&&) = delete;
  ~Snapshot() {
    if (bytes_ != nullptr) ::munmap(bytes_, size_);
  }

  void keep(std::uint64_t offset, std::span<const std::byte> from) {
    const bool zero =
        from.empty() || (from[0] == std::byte{0} &&
                         std::memcmp(from.data(), from.data() + 1, from.size() - 1) == 0);
    if (!zero) std::memcpy(bytes_ + offset, from.data(), from.size());
  }
  const std::byte* data() const { return bytes_; }
  std::uint64_t size() const { return size_; }

 private:
  std::byte* bytes_ = nullptr;
  std::uint64_t size_ = 0;
};

std::uint64_t tensor_bytes(const RecordedTensor& tensor) {
  return static_cast<std::uint64_t>(size_bytes(tensor.spec));
}

std::string architecture(const Driver& driver, int device) {
  if (driver.kind == DriverKind::host) return "x86_64";
  int major = 0, minor = 0;
  KJ_DRIVER(driver,
            cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  KJ_DRIVER(driver,
            cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
  return cat("sm_", major, minor);
}

std::vector<ModuleVariable> variables_of(const Bytes& image) {
  std::vector<ModuleVariable> variables;
  for (const ElfVariable& variable : Elf(image).variables()) {
    const bool known = std::any_of(variables.begin(), variables.end(),
                                   [&](const auto& other) { return other.name == variable.name; });
    if (!known) variables.push_back({std::string(variable.name), variable.size});
  }
  return variables;
}

Bytes read_device(const Driver& driver, std::uint64_t address, std::uint64_t size) {
  Bytes bytes(size);
  KJ_DRIVER(driver, cuMemcpyDtoH(bytes.data(), address, size));
  return bytes;
}

}  // namespace

Recording::Recording(const Watched& watched, const RecordingOptions& options)
    : watched_(watched), driver_(watched.driver), options_(options) {
  KJ_DRIVER(driver_, cuInit(0));
  require_cupti();
  CUdevice device = 0;
  KJ_DRIVER(driver_, cuDeviceGet(&device, options.device));
  CUcontext context = nullptr;
  KJ_DRIVER(driver_, cuDevicePrimaryCtxRetain(&context, device));
  KJ_DRIVER(driver_, cuCtxSetCurrent(context));
  RecordedMemory& memory = watched.observed->memory;
  memory.reserve_arena(device);
  memory.set_limit(options.memory_limit_bytes);
  kernels_ = std::make_unique<KernelModule>(driver_);
}

RecordedShape& Recording::shape() {
  KJ_CHECK(!shapes_.empty());
  return shapes_.back();
}

RecordedTensor& Recording::tensor(std::string_view name) {
  for (RecordedTensor& tensor : shape().tensors) {
    if (tensor.spec.name == name) return tensor;
  }
  throw Error(Fault::bug, cat("shape ", shape().name, " has no tensor ", name));
}

// All that a graph of the contestant's own is good for is to be launched by kernel_fn, and that is
// refused as a child graph or an outside launch; here the cause has its name.
void Recording::check_no_capture(std::string_view where) const {
  if (watched_.observed->watch.take_own_capture()) {
    throw Refused(Rule::own_capture, cat(where, " begins or ends a stream capture"));
  }
}

void Recording::open_shape(std::string name) {
  if (shapes_.empty()) check_no_capture("prepare, or the import,");
  shapes_.emplace_back().name = std::move(name);
}

std::uint64_t Recording::add_tensor(Role role, TensorSpec spec) {
  spec.strides = contiguous_strides(spec.dims);
  RecordedTensor tensor;
  tensor.role = role;
  tensor.spec = std::move(spec);
  const std::uint64_t bytes = std::max<std::uint64_t>(tensor_bytes(tensor), 1);
  tensor.address = watched_.observed->memory.allocate("argument", bytes, role);
  shape().tensors.push_back(std::move(tensor));
  return shape().tensors.back().address;
}

void Recording::fill(std::string_view name, RecordedFill fill) {
  RecordedTensor& filled = tensor(name);
  KJ_CHECK(filled.role != Role::output);
  filled.fill = std::move(fill);
  make_input(shape(), filled);
  KJ_DRIVER(driver_, cuCtxSynchronize());
  filled.filled_hash = hash(filled.address, tensor_bytes(filled));
}

void Recording::make_input(const RecordedShape& shape, const RecordedTensor& tensor) const {
  if (!tensor.fill->file.empty()) {
    const std::string bytes = read_file(tensor.fill->file, tensor_bytes(tensor));
    if (bytes.size() != tensor_bytes(tensor)) {
      throw Error(Fault::bug, cat(tensor.fill->file, ": ", bytes.size(), " bytes for input ",
                                  tensor.spec.name));
    }
    KJ_DRIVER(driver_, cuMemcpyHtoD(tensor.address, bytes.data(), bytes.size()));
    return;
  }
  FillParams params = tensor.fill->params;
  params.address = tensor.address;
  params.count = static_cast<std::uint64_t>(element_count(tensor.spec.dims));
  params.dtype = static_cast<std::uint32_t>(tensor.spec.dtype);
  const std::string& key_of = tensor.fill->key_of;
  params.key = made_up_key(options_.seed, shape.name, key_of.empty() ? tensor.spec.name : key_of);
  for (const RecordedTensor& source : shape.tensors) {
    if (source.spec.name == tensor.fill->source) params.source = source.address;
  }
  kernels_->fill(nullptr, params);
}

void Recording::poison_outputs(const RecordedShape& shape) const {
  for (const RecordedTensor& tensor : shape.tensors) {
    if (tensor.role != Role::output) continue;
    FillParams params{};
    params.address = tensor.address;
    params.count = tensor_bytes(tensor);
    params.key = made_up_key(options_.seed, shape.name, tensor.spec.name, MadeUp::poison);
    params.kind = fill_bits;
    params.dtype = static_cast<std::uint32_t>(DType::uint8);
    kernels_->fill(nullptr, params);
  }
}

std::uint64_t Recording::hash(std::uint64_t address, std::uint64_t bytes) const {
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                              XXH3_freeState);
  KJ_CHECK(state != nullptr && XXH3_64bits_reset(state.get()) == XXH_OK);
  Bytes block(std::min(bytes, kHashBlock));
  for (std::uint64_t offset = 0; offset < bytes; offset += kHashBlock) {
    const std::uint64_t size = std::min(kHashBlock, bytes - offset);
    KJ_DRIVER(driver_, cuMemcpyDtoH(block.data(), address + offset, size));
    XXH3_64bits_update(state.get(), block.data(), size);
  }
  return XXH3_64bits_digest(state.get());
}

void Recording::begin_capture(CUstream stream) {
  KJ_CHECK(!capturing_);
  check_no_capture(cat("shape ", shape().name, ": kernel_fn"));
  check_inputs_unchanged();
  poison_outputs(shape());
  KJ_DRIVER(driver_, cuCtxSynchronize());
  for (RecordedTensor& tensor : shape().tensors) {
    if (tensor.role == Role::input) continue;
    tensor.hash_before_capture = hash(tensor.address, tensor_bytes(tensor));
  }
  // Other threads may call what they like; what they launch is counted.
  const CUresult result =
      driver_.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  check_driver(driver_, result,
               cat("shape ", shape().name,
                   ": the stream that kernel_fn was called on cannot be "
                   "captured: cuStreamBeginCapture"));
  watched_.observed->memory.hold_frees(true);
  watched_.observed->watch.open(stream);
  capturing_ = true;
}

void Recording::end_capture(CUstream stream) {
  KJ_CHECK(capturing_);
  capturing_ = false;
  const CaptureReport report = watched_.observed->watch.close();
  const CUresult result = driver_.cuStreamEndCapture(stream, &shape().captured);
  watched_.observed->memory.hold_frees(false);
  const std::string where = cat("shape ", shape().name);
  // The first cause first: an outside launch also leaves a graph that seems complete, and a nested
  // capture often an invalid one.
  if (report.own_capture) {
    throw Refused(Rule::own_capture, cat(where, ": kernel_fn begins or ends a stream capture"));
  }
  if (report.outside_work != 0) {
    throw Refused(
        Rule::outside_launch,
        cat(where, ": ", report.outside_work,
            report.outside_work == 1 ? " launch, copy or fill" : " launches, copies or fills",
            " on streams that are not part of the capture, the first of ", report.first_outside));
  }
  switch (result) {
    case CUDA_SUCCESS:
      break;
    case CUDA_ERROR_STREAM_CAPTURE_UNJOINED:
      throw Refused(Rule::unjoined, cat(where, ": work on another stream was not joined"));
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
    case CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD:
    case CUDA_ERROR_STREAM_CAPTURE_UNMATCHED:
    case CUDA_ERROR_STREAM_CAPTURE_MERGE:
    case CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
    case CUDA_ERROR_ILLEGAL_STATE:
      throw Refused(Rule::capture_invalidated,
                    cat(where, ": kernel_fn made a call that ends a capture"));
    default:
      check_driver(driver_, result, "cuStreamEndCapture");
  }
  check_untouched();
  check_node_count(where);
  try {
    shape().graph = copy_graph(watched_, shape().captured);
  } catch (Error& error) {
    error.context(where);
    throw;
  }
}

// Before the nodes are copied: what is refused here could not be read from the bundle.
void Recording::check_node_count(std::string_view where) const {
  std::size_t count = 0, before = 0;
  KJ_DRIVER(driver_, cuGraphGetNodes(shapes_.back().captured, nullptr, &count));
  for (const RecordedShape& shape : shapes_) before += shape.graph.nodes.size();
  const std::size_t most = BundleLimits{}.nodes;
  if (count <= most - before) return;
  throw Refused(Rule::too_many_nodes, cat(where, ": ", count, " nodes, and ", before,
                                          " of the shapes before it, are more than ", most));
}

void Recording::abandon_capture(CUstream stream) {
  if (!capturing_) return;
  capturing_ = false;
  watched_.observed->watch.close();
  CUgraph graph = nullptr;
  if (driver_.cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS && graph != nullptr) {
    driver_.cuGraphDestroy(graph);
  }
  watched_.observed->memory.hold_frees(false);
}

// Found here it has a name; in a replay, where inputs are read-only, it is a fault.
void Recording::check_inputs_unchanged() const {
  const RecordedShape& last = shapes_.back();
  for (const RecordedTensor& tensor : last.tensors) {
    if (tensor.role != Role::input || !tensor.fill) continue;
    if (hash(tensor.address, tensor_bytes(tensor)) != tensor.filled_hash) {
      throw Refused(Rule::writes_input,
                    cat("shape ", last.name, ": kernel_fn changed input ", tensor.spec.name));
    }
  }
}

// Nothing that is captured has run yet, so what was written came another way, such as from the
// host.
void Recording::check_untouched() const {
  KJ_DRIVER(driver_, cuCtxSynchronize());
  const RecordedShape& last = shapes_.back();
  for (const RecordedTensor& tensor : last.tensors) {
    const bool input = tensor.role == Role::input;
    if (input && !tensor.fill) continue;
    const std::uint64_t before = input ? tensor.filled_hash : tensor.hash_before_capture;
    if (hash(tensor.address, tensor_bytes(tensor)) == before) continue;
    throw Refused(Rule::outside_launch, cat("shape ", last.name, ": ", tensor.spec.name,
                                            " was written to while kernel_fn was captured, when "
                                            "nothing that it launches is done yet"));
  }
}

void Recording::returned(std::string_view name, std::uint64_t address) {
  RecordedTensor& output = tensor(name);
  KJ_CHECK(output.role == Role::output);
  if (address == output.address) return;
  const std::string what = cat("shape ", shape().name, ": returned output ", name);
  RecordedMemory& memory = watched_.observed->memory;
  const auto allocation = memory.find(address);
  if (!allocation) {
    if (memory.find_freed(address)) {
      throw Refused(Rule::freed_memory, cat(what, " lies in memory that was freed"));
    }
    throw Refused(Rule::outside_arena, cat(what, " lies at ", hex(address),
                                           ", which is no memory "
                                           "that was allocated"));
  }
  if (allocation->role == Role::input || allocation->role == Role::inout) {
    throw Refused(Rule::returned_input, cat(what, " is an input"));
  }
  const std::uint64_t bytes = tensor_bytes(output);
  if (bytes > allocation->address + allocation->requested - address) {
    throw Refused(Rule::outside_arena,
                  cat(what, " of ", bytes, " bytes at byte ", address - allocation->address,
                      " reaches past the end of an allocation of ", allocation->requested));
  }
  for (const RecordedTensor& other : shape().tensors) {
    if (&other == &output || other.role != Role::output) continue;
    if (address < other.address + tensor_bytes(other) && other.address < address + bytes) {
      throw Refused(Rule::outputs_overlap, cat(what, " overlaps ", other.spec.name));
    }
  }
  memory.set_role(output.address, Role::state);  // what it was given is scratch now
  output.address = address;
}

// An output that a submission returned lies in its own memory. A replay poisons it first, so what
// it holds is not worth a place in the bundle.
void Recording::clear_returned() const {
  for (const RecordedShape& shape : shapes_) {
    for (const RecordedTensor& tensor : shape.tensors) {
      if (tensor.role != Role::output) continue;
      const auto allocation = watched_.observed->memory.find(tensor.address);
      if (!allocation || allocation->role != Role::state) continue;
      if (tensor_bytes(tensor) == 0) continue;
      KJ_DRIVER(driver_, cuMemsetD8Async(tensor.address, 0, tensor_bytes(tensor), nullptr));
    }
  }
}

void Recording::require_cupti() const {
  if (driver_.kind == DriverKind::host) return;
  if (const std::string why = cupti_failure(); !why.empty()) {
    throw Error(Fault::device, cat("the recorder cannot watch the driver: ", why));
  }
}

// What CUPTI saw must be what the hooks saw.
void Recording::audit() const {
  if (driver_.kind == DriverKind::host) return;
  require_cupti();
  const std::vector<std::string> past = calls_past_the_hooks();
  if (!past.empty()) {
    throw Refused(Rule::outside_arena, cat(past.size(),
                                           " calls for memory went past the recorder, "
                                           "the first of ",
                                           past.front()));
  }
}

std::vector<std::size_t> Recording::used_images() const {
  std::vector<std::size_t> used;
  for (const RecordedShape& shape : shapes_) {
    for (const Node& node : shape.graph.nodes) {
      if (const auto* kernel = std::get_if<KernelNode>(&node)) used.push_back(kernel->module);
    }
  }
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  for (const std::size_t image : used) {
    if (!is_elf(watched_.observed->modules.image(image).data())) {
      throw Refused(Rule::unknown_module, "a kernel comes from an image that is no ELF");
    }
  }
  return used;
}

void Recording::check_device_code(const std::vector<std::size_t>& used) const {
  for (const std::size_t image : used) {
    const Elf elf(watched_.observed->modules.image(image));
    const auto call = forbidden_call(elf);
    const auto managed = managed_variable(elf);
    if (!call && !managed) continue;
    for (const RecordedShape& shape : shapes_) {
      for (std::size_t i = 0; i < shape.graph.nodes.size(); ++i) {
        const auto* kernel = std::get_if<KernelNode>(&shape.graph.nodes[i]);
        if (kernel == nullptr || kernel->module != image) continue;
        const std::string where =
            cat("shape ", shape.name, ": ", describe_node(shape.graph, i), ": its module ");
        if (call) throw Refused(call->rule, cat(where, "calls ", call->symbol));
        throw Refused(Rule::managed_memory, cat(where, "has the managed variable ",
                                                readable_name(std::string(*managed))));
      }
    }
  }
}

std::vector<LoadedVariable> Recording::loaded_variables() const {
  std::vector<LoadedVariable> variables;
  const RecordedModules& modules = watched_.observed->modules;
  const std::vector<const void*> libraries = modules.libraries();
  const auto library_global = reinterpret_cast<PFN_cuLibraryGetGlobal_v12000>(
      watched_.optional_entry("cuLibraryGetGlobal", 12000));
  for (const auto& [handle, image] : modules.modules()) {
    const Bytes& bytes = modules.image(image);
    if (!is_elf(bytes.data())) continue;
    const bool library = std::find(libraries.begin(), libraries.end(), handle) != libraries.end();
    for (const ModuleVariable& variable : variables_of(bytes)) {
      CUdeviceptr address = 0;
      std::size_t size = 0;
      void* raw = const_cast<void*>(handle);
      CUresult result = CUDA_ERROR_NOT_FOUND;
      if (!library) {
        result = driver_.cuModuleGetGlobal(&address, &size, reinterpret_cast<CUmodule>(raw),
                                           variable.name.c_str());
      } else if (library_global != nullptr) {
        result = library_global(&address, &size, reinterpret_cast<CUlibrary>(raw),
                                variable.name.c_str());
      }
      // Names that the driver does not tell (a static one of a cubin) nobody can change by name.
      if (result == CUDA_SUCCESS) variables.push_back({image, variable.name, address, size});
    }
  }
  return variables;
}

// A second load of the same image says what its variables are at load. Words that hold the address
// of one of the module's own variables differ by where the module lies, and are equal.
std::vector<Recording::Variable> Recording::unchanged_variables(
    const std::vector<std::size_t>& used, const std::vector<LoadedVariable>& all) const {
  std::vector<Variable> variables;
  for (const std::size_t image : used) {
    const bool any = std::any_of(all.begin(), all.end(),
                                 [&](const auto& variable) { return variable.image == image; });
    if (!any) continue;
    CUmodule fresh = nullptr;
    KJ_DRIVER(driver_, cuModuleLoadData(&fresh, watched_.observed->modules.image(image).data()));
    const std::unique_ptr<CUmod_st, CUresult (*)(CUmodule)> owner(fresh, driver_.cuModuleUnload);
    std::map<std::string, std::uint64_t> fresh_addresses;
    for (const LoadedVariable& variable : all) {
      if (variable.image != image) continue;
      CUdeviceptr address = 0;
      KJ_DRIVER(driver_, cuModuleGetGlobal(&address, nullptr, fresh, variable.name.c_str()));
      fresh_addresses[variable.name] = address;
    }
    for (const LoadedVariable& variable : all) {
      if (variable.image != image) continue;
      Bytes now = read_device(driver_, variable.address, variable.size);
      const Bytes at_load = read_device(driver_, fresh_addresses.at(variable.name), variable.size);
      const auto is_own_address = [&](std::uint64_t word, std::uint64_t other) {
        return std::any_of(all.begin(), all.end(), [&](const LoadedVariable& target) {
          return target.image == image && word - target.address < target.size &&
                 word - target.address == other - fresh_addresses.at(target.name);
        });
      };
      for (std::size_t i = 0; i < now.size(); i += 8) {
        std::uint64_t word = 0, other = 0;
        const std::size_t bytes = std::min<std::size_t>(8, now.size() - i);
        std::memcpy(&word, now.data() + i, bytes);
        std::memcpy(&other, at_load.data() + i, bytes);
        if (word == other || (bytes == 8 && is_own_address(word, other))) continue;
        throw Refused(Rule::module_variable_changed,
                      cat("module variable ", readable_name(variable.name), " of ", variable.size,
                          " bytes was changed after it was loaded (byte ", i, ")"));
      }
      variables.push_back({variable, std::move(now)});
    }
  }
  return variables;
}

Bundle Recording::describe(const std::vector<std::size_t>& used,
                           const std::vector<Allocation>& memory,
                           const std::vector<Variable>& variables,
                           const RecordingSeconds& seconds) const {
  Bundle bundle;
  Observed& observed = *watched_.observed;
  Provenance& provenance = bundle.provenance;
  provenance.driver = name(driver_.kind);
  provenance.arch = architecture(driver_, options_.device);
  int version = 0;
  KJ_DRIVER(driver_, cuDriverGetVersion(&version));
  provenance.driver_version = static_cast<std::uint32_t>(version);
  provenance.driver_release = driver_release(driver_.kind);
  char device[200] = "";
  KJ_DRIVER(driver_, cuDeviceGetName(device, sizeof(device), options_.device));
  provenance.device = device;
  provenance.kjudge_version = KJUDGE_VERSION;
  provenance.seed = options_.seed;
  provenance.peak_bytes = observed.memory.peak_bytes();
  provenance.import_s = seconds.import_s;
  provenance.prepare_s = seconds.prepare_s;
  provenance.capture_s = seconds.capture_s;

  std::map<std::size_t, std::uint32_t> module_of;
  for (const std::size_t image : used) {
    module_of[image] = static_cast<std::uint32_t>(bundle.modules.size());
    Module& module = bundle.modules.emplace_back();
    module.image = observed.modules.image(image);
    for (const Variable& variable : variables) {
      if (variable.where.image == image) {
        module.variables.push_back({variable.where.name, variable.where.size});
      }
    }
  }
  for (const Allocation& allocation : memory) {
    bundle.regions.push_back(
        {allocation.address, allocation.size, allocation.role, allocation.device});
  }
  for (const RecordedShape& shape : shapes_) {
    const auto index = static_cast<std::uint32_t>(bundle.shapes.size());
    CapturedShape& captured = bundle.shapes.emplace_back();
    captured.name = shape.name;
    captured.graph = shape.graph;
    for (Node& node : captured.graph.nodes) {
      if (auto* kernel = std::get_if<KernelNode>(&node))
        kernel->module = module_of.at(kernel->module);
    }
    for (const RecordedTensor& tensor : shape.tensors) {
      bundle.tensors.push_back({index, tensor.role, tensor.spec, tensor.address});
    }
  }
  const std::lock_guard lock(observed.mutex);
  for (const auto& [id, value] : observed.limits) {
    if (id <= CU_LIMIT_PERSISTING_L2_CACHE_SIZE) {
      bundle.limits.push_back({static_cast<std::uint32_t>(id), value});
    }
  }
  return bundle;
}

std::vector<std::uint64_t> Recording::replay(const RecordedShape& shape) const {
  for (const bool reads : {false, true}) {
    for (const RecordedTensor& tensor : shape.tensors) {
      if (tensor.fill && !tensor.fill->source.empty() == reads) make_input(shape, tensor);
    }
  }
  poison_outputs(shape);
  KJ_DRIVER(driver_, cuCtxSynchronize());
  CUgraphExec exec = nullptr;
  KJ_DRIVER(driver_, cuGraphInstantiateWithFlags(&exec, shape.captured, 0));
  const std::unique_ptr<CUgraphExec_st, CUresult (*)(CUgraphExec)> owner(
      exec, driver_.cuGraphExecDestroy);
  KJ_DRIVER(driver_, cuGraphLaunch(exec, nullptr));
  KJ_DRIVER(driver_, cuCtxSynchronize());
  std::vector<std::uint64_t> hashes;
  for (const RecordedTensor& tensor : shape.tensors) {
    if (tensor.role != Role::input) hashes.push_back(hash(tensor.address, tensor_bytes(tensor)));
  }
  return hashes;
}

void Recording::write(const std::filesystem::path& path, const RecordingSeconds& seconds) {
  KJ_CHECK(!capturing_);
  KJ_DRIVER(driver_, cuCtxSynchronize());
  audit();
  const std::vector<std::size_t> used = used_images();
  check_device_code(used);
  const std::vector<LoadedVariable> all_variables = loaded_variables();
  std::uint64_t variable_bytes = 0;
  for (const LoadedVariable& variable : all_variables) variable_bytes += variable.size;
  watched_.observed->memory.set_taken("variables of modules", variable_bytes);
  const std::vector<Variable> variables = unchanged_variables(used, all_variables);
  PointerRules rules(watched_, shapes_, all_variables);
  for (const RecordedShape& shape : shapes_) {
    try {
      rules.check(shape);
    } catch (Error& error) {
      error.context(cat("shape ", shape.name));
      throw;
    }
  }

  clear_returned();
  KJ_DRIVER(driver_, cuCtxSynchronize());
  const std::vector<Allocation> memory = rules.reached();
  left_out_ = {};
  for (const Allocation& allocation : watched_.observed->memory.live()) {
    left_out_.bytes += allocation.size;
    ++left_out_.allocations;
  }
  for (const Allocation& allocation : memory) left_out_.bytes -= allocation.size;
  left_out_.allocations -= memory.size();
  Bundle bundle = describe(used, memory, variables, seconds);
  if (left_out_.allocations > 0) {
    bundle.provenance.notes.push_back(
        cat("left out: ", left_out_.allocations, " of ", left_out_.allocations + memory.size(),
            " allocations, ", left_out_.bytes, " bytes, to which no argument of a kernel leads"));
  }
  const std::uint64_t most = BundleLimits{}.meta_bytes;
  if (const std::uint64_t bytes = meta_bytes(bundle); bytes > most) {
    throw Refused(Rule::too_many_nodes, cat("modules, and nodes with their arguments, take ", bytes,
                                            " bytes, more than ", most));
  }
  BundleWriter writer(path);
  const auto require_room = [&] {
    if (writer.size_bytes() <= options_.bundle_limit_bytes) return;
    throw Error(
        Fault::submission,
        cat("the recording is larger than its limit of ", options_.bundle_limit_bytes,
            " bytes: it holds all device memory that kernels can reach and that is not zero "
            "when prepare and kernel_fn have run; free what kernel_fn does not need, or leave it "
            "zero"));
  };
  std::vector<std::pair<std::uint64_t, Snapshot>> snapshots;
  const bool several = shapes_.size() > 1;
  for (const Region& region : bundle.regions) {
    if (region.role != Role::state) continue;
    Snapshot* snapshot =
        several ? &snapshots.emplace_back(region.address, Snapshot(region.size)).second : nullptr;
    writer.add_memory(region, [&](std::uint64_t offset, std::span<std::byte> out) {
      require_room();
      KJ_DRIVER(driver_, cuMemcpyDtoH(out.data(), region.address + offset, out.size()));
      if (snapshot != nullptr) snapshot->keep(offset, out);
    });
  }
  require_room();
  // Each replay from the memory that is in the bundle, as a worker's will be.
  for (std::size_t i = 0; i < shapes_.size(); ++i) {
    if (i > 0) {
      for (const auto& [address, snapshot] : snapshots) {
        KJ_DRIVER(driver_, cuMemcpyHtoD(address, snapshot.data(), snapshot.size()));
      }
      for (const Variable& variable : variables) {
        KJ_DRIVER(driver_, cuMemcpyHtoD(variable.where.address, variable.bytes.data(),
                                        variable.bytes.size()));
      }
    }
    try {
      bundle.shapes[i].output_hashes = replay(shapes_[i]);
    } catch (Error& error) {
      error.context(cat("shape ", shapes_[i].name, ": replay of the captured graph, ",
                        suspects(shapes_[i].graph)));
      throw;
    }
  }
  writer.finish(bundle);
}

}  // namespace kjudge
