// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bundle/bundle.h"
#include "record/interpose.h"

namespace kjudge {

// Everything a captured graph holds, copied at once: the arrays that the driver shows belong to its
// nodes. KernelNode::module indexes Observed's images. Refused names the node for what cannot be
// replayed; what node arguments point to is checked later, when memory is as it will be.
Graph copy_graph(const Watched& watched, CUgraph graph);

// "node 3, kernel softmax_rows", "node 4, memset".
std::string describe_node(const Graph& graph, std::size_t index);

}  // namespace kjudge
