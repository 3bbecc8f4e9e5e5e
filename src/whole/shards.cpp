// SPDX-License-Identifier: Apache-2.0
#include "whole/layout_tools.hpp"

#include <map>
#include <set>
#include <utility>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "whole/names.hpp"

namespace gridctl::whole {
namespace {

constexpr std::size_t k_shard_digits = 5;

struct Shard {
  std::string set;  // what all shards of one set share
  unsigned number = 0, count = 0;
};

std::optional<unsigned> five_digits(std::string_view text) {
  return text.size() == k_shard_digits ? parse_number<unsigned>(text) : std::nullopt;
}

std::optional<Shard> shard_of(std::string_view path) {
  const std::size_t of = path.rfind("-of-");
  if (of == std::string_view::npos || of < k_shard_digits + 1 || path[of - k_shard_digits - 1] != '-')
    return std::nullopt;
  const auto number = five_digits(path.substr(of - k_shard_digits, k_shard_digits));
  const auto count = five_digits(path.substr(of + 4, k_shard_digits));
  if (!number || !count || *count == 0 || *number > *count) return std::nullopt;
  std::string set(path.substr(0, of - k_shard_digits));
  set.append(path.substr(of));
  return Shard{std::move(set), *number, *count};
}

}  // namespace

std::optional<Trouble> missing_shard(std::span<const FileFact> files) {
  struct Set {
    unsigned count = 0;
    std::set<unsigned> numbers;
    std::string any;
  };
  std::map<std::string, Set> sets;
  for (const FileFact& file : files) {
    if (is_temporary_name(file.path)) continue;
    if (const auto shard = shard_of(file.path)) {
      Set& set = sets[shard->set];
      set.count = shard->count;
      set.numbers.insert(shard->number);
      set.any = file.path;
    }
  }
  for (const auto& [name, set] : sets)
    if (set.numbers.size() < set.count)
      return Trouble{"only " + std::to_string(set.numbers.size()) + " of " + std::to_string(set.count) + " shards of '" +
                         sanitize(name.substr(0, 200)) + "' are there",
                     set.any};
  return std::nullopt;
}

}  // namespace gridctl::whole
