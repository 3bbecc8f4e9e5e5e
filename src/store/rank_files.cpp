// SPDX-License-Identifier: Apache-2.0
#include "store/rank_files.hpp"

#include <vector>

#include "base/numbers.hpp"
#include "base/text.hpp"

namespace gridctl::store {

namespace {

// Returns the word directly before the position, without '-', '_', '=' and spaces between: "rank" before the 3 of
// "rank_3".
std::string word_before(std::string_view name, std::size_t at) {
  while (at > 0 && (name[at - 1] == '-' || name[at - 1] == '_' || name[at - 1] == '=')) --at;
  std::size_t begin = at;
  while (begin > 0 && is_letter(name[begin - 1])) --begin;
  return lower(name.substr(begin, at - begin));
}

struct NumberAt {
  std::size_t begin = 0, end = 0;
};
std::vector<NumberAt> numbers_in(std::string_view name) {
  std::vector<NumberAt> found;
  for (std::size_t i = 0; i < name.size();) {
    if (!is_digit(name[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < name.size() && is_digit(name[end])) ++end;
    found.push_back({i, end});
    i = end;
  }
  return found;
}

// Returns whether the words before a number mean that it counts ranks. Numbers of tensor or pipeline parallelism
// ("mp_rank_00") count other things.
bool counts_ranks(std::string_view name, const NumberAt& number) {
  const std::string word = word_before(name, number.begin);
  for (const char* known : {"rank", "states", "worker", "process", "proc", "shard", "rng"})
    if (word == known) {
      const std::size_t at = number.begin;
      const std::string_view before = name.substr(0, at);
      return !before.ends_with("mp_rank_") && !before.ends_with("tp_rank_") && !before.ends_with("pp_rank_0") &&
             (!before.ends_with("pp_rank_") || before.ends_with("zero_pp_rank_"));
    }
  return false;
}
}  // namespace

std::string_view base_name(std::string_view path) {
  const std::size_t cut = path.rfind('/');
  return cut == std::string_view::npos ? path : path.substr(cut + 1);
}

std::string_view folder_of(std::string_view path) {
  const std::size_t cut = path.rfind('/');
  return cut == std::string_view::npos ? std::string_view{} : path.substr(0, cut);
}

std::optional<std::int64_t> step_in_name(std::string_view name) {
  std::optional<std::int64_t> step;
  for (const NumberAt& number : numbers_in(name)) {
    const std::string word = word_before(name, number.begin);
    for (const char* known : {"step", "checkpoint", "ckpt", "iter", "iteration"})
      if (word == known || (word.ends_with("step") && word.size() > 4))
        step = parse_number<std::int64_t>(name.substr(number.begin, number.end - number.begin));
  }
  return step;
}

std::string RankFamily::name_of(std::uint32_t rank) const {
  std::string number = std::to_string(rank);
  if (number.size() < digits) number.insert(0, digits - number.size(), '0');
  return before + number + after;
}

std::optional<std::string> file_of_a_rank(const MemberTree& member) {
  for (const Entry& entry : member.tree->entries) {
    const std::string_view name = base_name(entry.path);
    if (entry.kind != EntryKind::file) continue;
    for (const NumberAt& number : numbers_in(name)) {
      const auto rank = parse_number<std::uint32_t>(name.substr(number.begin, number.end - number.begin));
      if (rank && counts_ranks(name, number) && *rank >= member.first_rank && *rank < member.first_rank + member.ranks)
        return entry.path;
    }
  }
  return std::nullopt;
}

std::map<RankFamily, std::set<std::uint32_t>> rank_families(std::span<const MemberTree> members) {
  std::map<RankFamily, std::set<std::uint32_t>> families;
  std::set<RankFamily> others;  // a host has a rank's file that is not its own: the number says something else
  for (const MemberTree& member : members)
    for (const Entry& entry : member.tree->entries) {
      const std::string_view name = base_name(entry.path);
      if (entry.kind != EntryKind::file || name.ends_with(".distcp") || name.ends_with(".metadata")) continue;
      const std::size_t offset = entry.path.size() - name.size();
      for (const NumberAt& number : numbers_in(name)) {
        if (!counts_ranks(name, number)) continue;
        const std::string_view digits = name.substr(number.begin, number.end - number.begin);
        const auto rank = parse_number<std::uint32_t>(digits);
        if (!rank) continue;
        const RankFamily family{entry.path.substr(0, offset + number.begin), entry.path.substr(offset + number.end),
                                digits.starts_with('0') ? digits.size() : 1};  // "10" may be of "00", "01"…: below
        const bool own = *rank >= member.first_rank && *rank < member.first_rank + member.ranks;
        if (own) families[family].insert(*rank);
        else others.insert(family);
        break;
      }
    }
  for (auto padded = families.begin(); padded != families.end(); ++padded) {
    if (padded->first.digits == 1) continue;
    const auto plain = families.find({padded->first.before, padded->first.after, 1});
    if (plain == families.end()) continue;
    padded->second.merge(plain->second);
    families.erase(plain);
  }
  std::erase_if(families, [&](const auto& one) { return one.second.size() < 2 || others.contains(one.first); });
  return families;
}

}  // namespace gridctl::store
