// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "record/made_up.h"
#include "record/node_rules.h"
#include "record/rules.h"

using namespace kjudge;

TEST_CASE("keys of made-up values are part of what a bundle means") {
  // Bundles outlive the program that wrote them: these never change.
  CHECK(made_up_key(0, "", "") == made_up_key(0, "", "", MadeUp::input));
  const std::uint64_t key = made_up_key(7, "small", "x");
  INFO("key ", key);
  CHECK(key == XXH3_64bits("\x07\0\0\0\0\0\0\0\0small\0x", 16));
  CHECK(made_up_key(7, "small", "x", MadeUp::poison) ==
        XXH3_64bits("\x07\0\0\0\0\0\0\0\1small\0x", 16));

  std::set<std::uint64_t> keys;
  for (const char* shape : {"a", "ab", ""}) {
    for (const char* tensor : {"x", "bx", ""}) {
      for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
        keys.insert(made_up_key(seed, shape, tensor));
        keys.insert(made_up_key(seed, shape, tensor, MadeUp::poison));
      }
    }
  }
  CHECK(keys.size() == 54);
}

TEST_CASE("a refusal says the rule, what is wrong and what to do") {
  std::set<std::string_view> names;
  for (const RuleRow& row : kRules) {
    CHECK(names.insert(row.name).second);
    CHECK(row.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string_view::npos);
    CHECK(row.what_to_do.size() > 20);
  }
  const Refused refused(Rule::host_node, "node 3: a host function");
  CHECK(refused.rule() == Rule::host_node);
  CHECK(refused.fault() == Fault::submission);
  CHECK(std::string(refused.what()) ==
        "node 3: a host function; host functions cannot be replayed; do host work in prepare");
}

TEST_CASE("each kind of node that a graph may not hold has its rule") {
  const auto rule_of = [](CUgraphNodeType type) { return row(refused_kind(type).first).name; };
  CHECK(rule_of(CU_GRAPH_NODE_TYPE_HOST) == "host_node");
  CHECK(rule_of(CU_GRAPH_NODE_TYPE_GRAPH) == "child_graph");
  CHECK(rule_of(CU_GRAPH_NODE_TYPE_WAIT_EVENT) == "event_node");
  CHECK(rule_of(CU_GRAPH_NODE_TYPE_EVENT_RECORD) == "event_node");
  CHECK(rule_of(CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL) == "semaphore_node");
  CHECK(rule_of(CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT) == "semaphore_node");
  CHECK(rule_of(CU_GRAPH_NODE_TYPE_MEM_ALLOC) == "memory_node");
  CHECK(rule_of(CU_GRAPH_NODE_TYPE_MEM_FREE) == "memory_node");
  CHECK(rule_of(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP) == "batch_memory_node");
  CHECK(rule_of(CU_GRAPH_NODE_TYPE_CONDITIONAL) == "conditional_node");
  CHECK(rule_of(static_cast<CUgraphNodeType>(99)) == "unknown_node");
}

TEST_CASE("a copy's ends are linear memory") {
  for (const CUmemorytype type :
       {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_UNIFIED}) {
    CHECK_NOTHROW(require_linear(type));
  }
  try {
    require_linear(CU_MEMORYTYPE_ARRAY);
    FAIL("an array was taken");
  } catch (const Refused& refused) {
    CHECK(row(refused.rule()).name == "array_copy");
    CHECK(std::string(refused.what()) ==
          "copies to or from a CUDA array; copy between linear memory, not CUDA arrays");
  }
}
