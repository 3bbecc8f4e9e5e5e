// SPDX-License-Identifier: Apache-2.0
#include "whole/names.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <vector>

#include "base/text.hpp"

namespace gridctl::whole {
namespace {

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Removes leading zeros, so that step-000100 and 100 are the same number.
std::string_view significant(std::string_view digits) {
  const std::size_t at = digits.find_first_not_of('0');
  return at == std::string_view::npos ? digits.substr(digits.size() - 1) : digits.substr(at);
}

// Returns the letters before `at`, with at most one separator between: "rank" of "rank_0".
std::string word_before(std::string_view text, std::size_t at) {
  if (at > 0 && (text[at - 1] == '_' || text[at - 1] == '-' || text[at - 1] == '=' || text[at - 1] == '.')) --at;
  std::size_t begin = at;
  while (begin > 0 && is_letter(text[begin - 1])) --begin;
  return lower(text.substr(begin, at - begin));
}

bool tells_members_apart(std::string_view name, std::size_t begin, std::size_t end) {
  static constexpr std::array<std::string_view, 21> k_words{
      "rank", "shard", "part", "worker", "proc",  "process", "gpu",  "device", "mp",  "dp",   "tp",
      "pp",   "ep",    "cp",   "layer",  "block", "node",    "host", "member", "of",  "group"};
  static constexpr std::array<std::string_view, 6> k_times{"epoch", "step", "steps", "iter", "iteration", "global"};
  if (name.substr(end).starts_with("-of-"))
    return std::ranges::find(k_times, word_before(name, begin)) == k_times.end();
  return std::ranges::find(k_words, word_before(name, begin)) != k_words.end();
}

// Returns the words of a name without its extension and its numbers.
std::vector<std::string> words_of(std::string_view path) {
  std::string_view name = name_of(path);
  const std::size_t dot = name.rfind('.');
  if (dot != std::string_view::npos && dot > 0 && dot + 1 < name.size() && is_letter(name[dot + 1]))
    name = name.substr(0, dot);
  std::vector<std::string> words;
  std::string word;
  for (const char c : name) {
    if (is_letter(c)) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(lower(word));
      word.clear();
    }
  }
  if (!word.empty()) words.push_back(lower(word));
  return words;
}

bool any_word(std::string_view path, std::span<const std::string_view> among) {
  const auto words = words_of(path);
  return std::ranges::any_of(words,
                             [&](const std::string& word) { return std::ranges::find(among, word) != among.end(); });
}

}  // namespace

bool is_temporary_name(std::string_view path) {
  static constexpr std::array<std::string_view, 11> k_ends{
      ".tmp", ".temp", ".part", ".partial", ".incomplete", ".swp", ".swx", ".writing", ".download", ".lock", "~"};
  // Any component may be temporary: savers also write complete folders under a temporary name
  // ("step-10.orbax-checkpoint-tmp-17", "tmp-…").
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view name = path.substr(begin, end - begin);
    begin = end + 1;
    if (std::ranges::any_of(k_ends, [&](std::string_view tail) { return name.ends_with(tail); })) return true;
    if (name.starts_with(".#") || name.starts_with("tmp-") || name.starts_with("tmp_") || name.starts_with(".tmp"))
      return true;
    if (name.find(".tmp.") != std::string_view::npos || name.find("-tmp-") != std::string_view::npos) return true;
    if (name.ends_with("-tmp") || name.ends_with("_temp") || name.find(".tempstate") != std::string_view::npos) return true;  // TensorFlow
    if (name == "tmp") return true;
  }
  return false;
}

bool is_log_name(std::string_view path) {
  static constexpr std::array<std::string_view, 9> k_ends{".log", ".out",   ".err",    ".csv",  ".tsv",
                                                          ".jsonl", ".ndjson", ".wandb", ".trace"};
  const std::string_view name = name_of(path);
  if (name.starts_with("events.out.tfevents.") || name == "stdout" || name == "stderr") return true;
  return std::ranges::any_of(k_ends, [&](std::string_view tail) { return name.ends_with(tail); });
}

std::string slot_of(std::string_view path) {
  std::string slot;
  std::set<std::string, std::less<>> of_folders;  // numbers in the names of its folders
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t slash = path.find('/', begin);
    const std::size_t end = std::min(slash, path.size());
    const std::string_view name = path.substr(begin, end - begin);
    const bool is_file = slash == std::string_view::npos;
    for (std::size_t i = 0; i < name.size();) {
      if (!is_digit(name[i])) {
        slot += name[i++];
        continue;
      }
      const std::size_t from = i;
      while (i < name.size() && is_digit(name[i])) ++i;
      const std::string_view digits = name.substr(from, i - from);
      const bool stays = tells_members_apart(name, from, i) ||
                         (is_file && !of_folders.empty() && !of_folders.contains(significant(digits)));
      if (stays) slot += digits;
      else slot += '#';
      if (!stays && !is_file) of_folders.emplace(significant(digits));
    }
    if (!is_file) slot += '/';
    begin = end + 1;
  }
  return slot;
}

bool names_a_whole_state(std::string_view path) {
  static constexpr std::array<std::string_view, 14> k_words{"ckpt", "checkpoint", "snapshot", "state", "last",
                                                            "latest", "resume",   "save",     "saved", "step",
                                                            "steps",  "epoch",    "iter",     "global"};
  const auto words = words_of(path);
  return std::ranges::all_of(
      words, [&](const std::string& word) { return std::ranges::find(k_words, word) != k_words.end(); });
}

bool names_settings(std::string_view path) {
  static constexpr std::array<std::string_view, 14> k_words{
      "config", "args",   "hparams", "params",       "settings", "tokenizer", "vocab",
      "merges", "readme", "license", "requirements", "options",  "special",   "generation"};
  static constexpr std::array<std::string_view, 7> k_ends{".json", ".yaml", ".yml", ".toml", ".md", ".txt", ".ini"};
  const std::string_view name = name_of(path);
  if (name.ends_with(".py")) return true;  // some frameworks leave scripts beside what they save
  return any_word(path, k_words) &&
         std::ranges::any_of(k_ends, [&](std::string_view tail) { return name.ends_with(tail); });
}

bool names_a_part(std::string_view path) {
  static constexpr std::array<std::string_view, 14> k_words{"model",     "weights", "optimizer", "optim", "opt",
                                                            "scheduler", "sched",   "scaler",    "rng",   "ema",
                                                            "actor",     "critic",  "encoder",   "decoder"};
  return any_word(path, k_words);
}

std::string_view numbered_folder(std::string_view path) {
  for (std::size_t begin = 0;;) {
    const std::size_t slash = path.find('/', begin);
    if (slash == std::string_view::npos) return {};
    const std::string_view name = path.substr(begin, slash - begin);
    if (std::ranges::any_of(name, is_digit)) return path.substr(0, slash);
    begin = slash + 1;
  }
}

}  // namespace gridctl::whole
