// SPDX-License-Identifier: Apache-2.0
// Parses a harmless subset of YAML into a tree with positions: no anchors, aliases, tags or merge keys, one document,
// bounded size and depth. Scalars stay text: the schema decides their meaning, so `NO` is Norway and never false.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace gridctl::config {

constexpr std::size_t k_yaml_bytes_max = 256 * 1024;  // no job file of a person is larger; bombs are
constexpr int k_yaml_depth_max = 16;                  // the schema needs 6
constexpr std::size_t k_yaml_nodes_max = 20'000;      // keys and values: bounds memory and time

struct Position {
  int line = 1;  // both from 1, as editors count
  int column = 1;
};
struct Key {
  std::string text;
  Position at;
};
struct Node {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  std::string text;  // of a scalar
  Position at;
  std::vector<Key> keys;    // of a map, unique; keys[i] belongs to items[i]
  std::vector<Node> items;  // of a list or a map
  [[nodiscard]] const Node* find(std::string_view key) const;
};

// Makes a node for values read from other formats.
[[nodiscard]] Node text_node(std::string text, Position at);
void put(Node& map, const std::string& key, Node value);

// Fails with bad_job_file and "FILE:LINE:COLUMN: the problem" on one line.
[[nodiscard]] Result<Node> parse_yaml(std::string_view text, const std::string& file);
[[nodiscard]] Error error_at(const std::string& file, Position at, const std::string& what);
// Makes foreign text suitable for a message: one line, printable, at most 60 characters.
[[nodiscard]] std::string excerpt(std::string_view text);

}  // namespace gridctl::config
