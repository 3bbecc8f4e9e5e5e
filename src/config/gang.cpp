// SPDX-License-Identifier: Apache-2.0
// Reads keys of jobs on several hosts: num_nodes, spares, ranks_per_node.
#include "config/job_parts.hpp"

namespace gridctl::config {

namespace {
// Reads "4", or "2..4": the job shrinks to two hosts and grows back.
Result<void> read_nodes(const Fields& root, job::Spec& spec) {
  const Node* value = root.find("num_nodes");
  if (value == nullptr) return {};
  const std::string text = value->kind == Node::Kind::scalar ? value->text : "";
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) return root.integer("num_nodes", 1, job::k_nodes_max, spec.num_nodes);
  const auto least = parse_integer(text.substr(0, dots), 1, job::k_nodes_max);
  const auto most = parse_integer(text.substr(dots + 2), 1, job::k_nodes_max);
  if (!least || !most || *least > *most)
    return root.expected("num_nodes", "a number of hosts from 1 to 1024, or a range such as 2..4");
  spec.num_nodes = *most;
  spec.gang.nodes_min = *least < *most ? *least : 0;
  return {};
}
}  // namespace

Result<void> read_gang(const Fields& root, job::Spec& spec) {
  TRY(read_nodes(root, spec));
  TRY(root.integer("spares", 0, job::k_spares_max, spec.gang.spares));
  if (spec.gang.spares > 0 && spec.num_nodes == 1)
    return root.error("spares", "expected num_nodes above 1; for one host, use replication: {mode: standby}");
  return root.integer("ranks_per_node", 1, job::k_ranks_per_node_max, spec.gang.ranks_per_node);
}

}  // namespace gridctl::config
