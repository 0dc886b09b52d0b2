// SPDX-License-Identifier: Apache-2.0
#include "judge/bundle_json.h"

#include <string_view>

#include "sha256.h"

namespace kjudge {
namespace {

template <class V>
using Each = std::function<void(const V&)>;

std::string hex_of(std::span<const std::byte> bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digits;
  for (std::byte byte : bytes) {
    digits += kDigits[std::to_integer<unsigned>(byte) >> 4];
    digits += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return digits;
}

std::string hex64_of(std::uint64_t value) {
  std::array<std::byte, 8> bytes;
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(value >> (56 - 8 * i));
  return hex_of(bytes);
}

// Bytes of any number, which matching_kind is not for.
Kind<std::string> hex_kind() {
  Kind<std::string> kind = text_kind(std::size_t{1} << 30);
  kind.expected = "bytes in hexadecimal";
  kind.schema = Json{Json::Object{{"type", Json{std::string("string")}},
                                  {"pattern", Json{std::string("^([0-9a-f]{2})*$")}}}};
  return kind;
}

// JSON numbers of kjudge are signed; addresses and sizes of a valid bundle fit.
Kind<std::int64_t> number_of_any_size() {
  return integer_kind<std::int64_t>(std::numeric_limits<std::int64_t>::min(),
                                    std::numeric_limits<std::int64_t>::max());
}

Kind<std::int64_t> count_kind() {
  return integer_kind<std::int64_t>(0, std::numeric_limits<std::int64_t>::max());
}

// A field that `get` finds in a T, of the type that fits it.
template <class T, class Get>
Field<T> count(const char* name, Get get, const char* doc) {
  return printed_field<T, std::int64_t>(
      name, [=](const T& from) { return static_cast<std::int64_t>(get(from)); }, count_kind(), doc);
}

template <class T, class Get>
Field<T> text(const char* name, Get get, const char* doc) {
  return printed_field<T, std::string>(
      name, [=](const T& from) { return std::string(get(from)); }, text_kind(), doc);
}

template <class T, class Get>
Field<T> hex64(const char* name, Get get, const char* doc) {
  return printed_field<T, std::string>(
      name, [=](const T& from) { return hex64_of(get(from)); }, hexadecimal_kind(16), doc);
}

template <class T, class Get>
Field<T> seconds(const char* name, Get get, const char* doc) {
  return printed_field<T, double>(name, get, number_kind(), doc);
}

FieldTable<Provenance> provenance_table() {
  using P = Provenance;
  return FieldTable<P>(
      {text<P>(
           "arch", [](const P& p) { return p.arch; }, "such as \"x86_64\" or \"sm_90\""),
       text<P>(
           "driver", [](const P& p) { return p.driver; }, "\"host\" or \"cuda\""),
       count<P>(
           "driver_version", [](const P& p) { return p.driver_version; }, "as the driver gives it"),
       text<P>(
           "driver_release", [](const P& p) { return p.driver_release; },
           "of NVIDIA's driver, such as \"580.159.04\"; empty: not known"),
       text<P>(
           "device", [](const P& p) { return p.device; }, "name of the GPU or processor"),
       text<P>(
           "kjudge_version", [](const P& p) { return p.kjudge_version; }, "that recorded it"),
       hex64<P>(
           "seed", [](const P& p) { return p.seed; }, "of the made-up inputs"),
       count<P>(
           "peak_bytes", [](const P& p) { return p.peak_bytes; }, "device memory at its most"),
       seconds<P>(
           "import_s", [](const P& p) { return p.import_s; }, "of the submission's module"),
       seconds<P>(
           "prepare_s", [](const P& p) { return p.prepare_s; }, "prepare(ctx)"),
       seconds<P>(
           "capture_s", [](const P& p) { return p.capture_s; }, "kernel_fn of all shapes"),
       printed_field<P, std::vector<std::string>>(
           "notes", [](const P& p) { return p.notes; }, list_kind(text_kind()),
           "what was left out, and why")});
}

FieldTable<Module> module_table() {
  using M = Module;
  const FieldTable<ModuleVariable> variable(
      {text<ModuleVariable>(
           "name", [](const auto& v) { return v.name; }, "as in the image"),
       count<ModuleVariable>(
           "size", [](const auto& v) { return v.size; }, "bytes")});
  return FieldTable<M>(
      {count<M>(
           "image_bytes", [](const M& m) { return m.image.size(); }, "size of the image"),
       printed_field<M, std::string>(
           "sha256",
           [](const M& m) {
             return sha256_hex(
                 std::string_view(reinterpret_cast<const char*>(m.image.data()), m.image.size()));
           },
           hexadecimal_kind(64), "of the image"),
       printed_field<M, std::vector<ModuleVariable>>(
           "variables", [](const M& m) { return m.variables; }, list_kind(object_kind(variable)),
           "those that device code has")});
}

FieldTable<Region> region_table() {
  using R = Region;
  return FieldTable<R>(
      {hex64<R>(
           "address", [](const R& r) { return r.address; }, "where it begins"),
       count<R>(
           "size", [](const R& r) { return r.size; }, "bytes"),
       text<R>(
           "role", [](const R& r) { return name(r.role); },
           "\"state\", or what the tensors in it are"),
       count<R>(
           "device", [](const R& r) { return r.device; }, "number of the device")});
}

FieldTable<Limit> limit_table() {
  return FieldTable<Limit>(
      {count<Limit>(
           "id", [](const Limit& l) { return l.id; }, "the driver's number of the limit"),
       count<Limit>(
           "value", [](const Limit& l) { return l.value; }, "that was set")});
}

FieldTable<Tensor> tensor_table() {
  using T = Tensor;
  const auto numbers = list_kind(number_of_any_size(), 0, 64);
  return FieldTable<T>(
      {text<T>(
           "name", [](const T& t) { return t.spec.name; }, "of the argument"),
       text<T>(
           "role", [](const T& t) { return name(t.role); }, "\"input\", \"output\" or \"inout\""),
       text<T>(
           "dtype", [](const T& t) { return name(t.spec.dtype); }, "of an element"),
       printed_field<T, std::vector<std::int64_t>>(
           "dims", [](const T& t) { return t.spec.dims; }, numbers, "elements by dimension"),
       printed_field<T, std::vector<std::int64_t>>(
           "strides", [](const T& t) { return t.spec.strides; }, numbers,
           "elements from one to the next, by dimension"),
       hex64<T>(
           "address", [](const T& t) { return t.address; }, "of the first element")});
}

Field<KernelNode> attributes(const char* field, std::vector<Attribute> KernelNode::*member,
                             const char* doc) {
  const FieldTable<Attribute> table(
      {count<Attribute>(
           "id", [](const Attribute& a) { return a.id; }, "the driver's number of it"),
       printed_field<Attribute, std::string>(
           "value", [](const Attribute& a) { return hex_of(a.value); }, hex_kind(),
           "as the driver holds it")});
  return printed_field<KernelNode, std::vector<Attribute>>(
      field, [=](const KernelNode& k) { return k.*member; }, list_kind(object_kind(table)), doc);
}

Field<KernelNode> dimensions(const char* field, Dim3 KernelNode::*member, const char* doc) {
  return printed_field<KernelNode, std::vector<std::int64_t>>(
      field,
      [=](const KernelNode& k) {
        const Dim3& dim = k.*member;
        return std::vector<std::int64_t>{dim.x, dim.y, dim.z};
      },
      list_kind(count_kind(), 3, 3), doc);
}

FieldTable<KernelNode> kernel_node_table() {
  using K = KernelNode;
  const auto arguments = [](const K& k) {
    std::vector<std::string> values;
    for (std::size_t i = 0; i < k.argument_offsets.size(); ++i) {
      values.push_back(
          hex_of(std::span(k.arguments).subspan(k.argument_offsets[i], k.argument_sizes[i])));
    }
    return values;
  };
  return FieldTable<K>(
      {count<K>(
           "module", [](const K& k) { return k.module; }, "index in the list of modules"),
       text<K>(
           "name", [](const K& k) { return k.name; }, "of the kernel, mangled"),
       dimensions("grid", &K::grid, "blocks by dimension"),
       dimensions("block", &K::block, "threads by dimension"),
       count<K>(
           "shared_bytes", [](const K& k) { return k.shared_bytes; }, "dynamic shared memory"),
       printed_field<K, std::vector<std::string>>("arguments", arguments, list_kind(hex_kind()),
                                                  "the bytes of each"),
       attributes("launch_attributes", &K::launch_attributes, "of the launch, that were set"),
       attributes("function_attributes", &K::function_attributes, "of the function, that were set"),
       attributes("observed_attributes", &K::observed_attributes,
                  "of the function, that the driver gave"),
       printed_field<K, std::int64_t>(
           "cache_config", [](const K& k) { return std::int64_t{k.cache_config}; },
           integer_kind<std::int64_t>(-1, 1000), "the driver's number of it; -1: never set")});
}

FieldTable<MemsetNode> memset_table() {
  using M = MemsetNode;
  return FieldTable<M>(
      {hex64<M>(
           "address", [](const M& m) { return m.address; }, "where it begins"),
       count<M>(
           "pitch", [](const M& m) { return m.pitch; }, "bytes from one row to the next"),
       count<M>(
           "value", [](const M& m) { return m.value; }, "of each element"),
       count<M>(
           "element_size", [](const M& m) { return m.element_size; }, "1, 2 or 4 bytes"),
       count<M>(
           "width", [](const M& m) { return m.width; }, "elements of a row"),
       count<M>(
           "height", [](const M& m) { return m.height; }, "rows")});
}

FieldTable<MemcpyNode> memcpy_table() {
  using M = MemcpyNode;
  const char* pitch = "bytes from one row to the next there";
  const char* height = "rows from one slice to the next there";
  return FieldTable<M>(
      {hex64<M>(
           "destination", [](const M& m) { return m.destination; }, "address written"),
       hex64<M>(
           "source", [](const M& m) { return m.source; }, "address read"),
       count<M>(
           "destination_pitch", [](const M& m) { return m.destination_pitch; }, pitch),
       count<M>(
           "source_pitch", [](const M& m) { return m.source_pitch; }, pitch),
       count<M>(
           "destination_height", [](const M& m) { return m.destination_height; }, height),
       count<M>(
           "source_height", [](const M& m) { return m.source_height; }, height),
       count<M>(
           "width_bytes", [](const M& m) { return m.width_bytes; }, "of a row"),
       count<M>(
           "height", [](const M& m) { return m.height; }, "rows of a slice"),
       count<M>(
           "depth", [](const M& m) { return m.depth; }, "slices")});
}

struct ShownNode {
  std::size_t kind = 0;  // index in Node
  const Node* node = nullptr;
};

// A table of what the variant holds, as one of the whole.
template <class Held>
FieldTable<ShownNode> of_node(const FieldTable<Held>& table) {
  std::vector<Field<ShownNode>> fields;
  for (const Field<Held>& field : table.fields()) {
    Field<ShownNode> whole(field);
    whole.read = [](const JsonCursor& at, ShownNode&) { at.fail("is printed and never read"); };
    whole.write = [write = field.write](const ShownNode& shown) {
      return write(std::get<Held>(*shown.node));
    };
    fields.push_back(std::move(whole));
  }
  return FieldTable<ShownNode>(std::move(fields));
}

Kind<ShownNode> node_kind() {
  return tagged_kind<ShownNode, std::size_t>("kind", &ShownNode::kind, "what the node does",
                                             {{"kernel", 0, of_node(kernel_node_table())},
                                              {"memset", 1, of_node(memset_table())},
                                              {"memcpy", 2, of_node(memcpy_table())},
                                              {"empty", 3, of_node(FieldTable<EmptyNode>({}))}});
}

FieldTable<Edge> edge_table() {
  return FieldTable<Edge>(
      {count<Edge>(
           "from", [](const Edge& e) { return e.from; }, "index of the node before"),
       count<Edge>(
           "to", [](const Edge& e) { return e.to; }, "index of the node after"),
       count<Edge>(
           "from_port", [](const Edge& e) { return e.from_port; }, "the driver's number"),
       count<Edge>(
           "to_port", [](const Edge& e) { return e.to_port; }, "the driver's number"),
       count<Edge>(
           "type", [](const Edge& e) { return e.type; }, "the driver's number; 1: programmatic")});
}

struct Shown {
  const Bundle* bundle = nullptr;
  std::size_t shape = 0;
  const CapturedShape& captured() const { return bundle->shapes[shape]; }
};

FieldTable<Shown> shape_table() {
  using S = Shown;
  return FieldTable<S>(
      {text<S>(
           "name", [](const S& s) { return s.captured().name; }, "of the shape or test"),
       printed_list<S, Tensor>(
           "tensors",
           [](const S& s, const Each<Tensor>& each) {
             for (const Tensor& tensor : s.bundle->tensors) {
               if (tensor.shape == s.shape) each(tensor);
             }
           },
           object_kind(tensor_table()), "its arguments"),
       printed_list<S, ShownNode>(
           "nodes",
           [](const S& s, const Each<ShownNode>& each) {
             for (const Node& node : s.captured().graph.nodes) each({node.index(), &node});
           },
           node_kind(), "of its graph"),
       printed_list<S, Edge>(
           "edges",
           [](const S& s, const Each<Edge>& each) {
             for (const Edge& edge : s.captured().graph.edges) each(edge);
           },
           object_kind(edge_table()), "of its graph"),
       printed_list<S, std::string>(
           "output_hashes",
           [](const S& s, const Each<std::string>& each) {
             for (const std::uint64_t hash : s.captured().output_hashes) each(hex64_of(hash));
           },
           hexadecimal_kind(16), "XXH3-64 of each output on the made-up inputs")});
}

template <class V>
Field<Bundle> list_of(const char* field, std::vector<V> Bundle::*member, const FieldTable<V>& table,
                      const char* doc) {
  return printed_list<Bundle, V>(
      field,
      [=](const Bundle& bundle, const Each<V>& each) {
        for (const V& one : bundle.*member) each(one);
      },
      object_kind(table), doc);
}

}  // namespace

const FieldTable<Bundle>& bundle_json_table() {
  static const FieldTable<Bundle> table(
      {format_field<Bundle>("kjudge-dump/1"),
       printed_field<Bundle, Provenance>(
           "provenance", [](const Bundle& bundle) { return bundle.provenance; },
           object_kind(provenance_table()), "where and how it was recorded"),
       list_of("modules", &Bundle::modules, module_table(), "loaded code"),
       list_of("regions", &Bundle::regions, region_table(), "of device memory"),
       list_of("limits", &Bundle::limits, limit_table(), "of the context, that were set"),
       printed_list<Bundle, Shown>(
           "shapes",
           [](const Bundle& bundle, const Each<Shown>& each) {
             for (std::size_t i = 0; i < bundle.shapes.size(); ++i) each({&bundle, i});
           },
           object_kind(shape_table()), "shapes and tests with their graphs")});
  return table;
}

void print_bundle_json(const Bundle& bundle, std::ostream& out) {
  JsonPrinter printer(out);
  bundle_json_table().print(bundle, printer);
}

}  // namespace kjudge
