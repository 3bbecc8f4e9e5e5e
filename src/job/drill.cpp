// SPDX-License-Identifier: Apache-2.0
#include "job/drill.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace gridctl::job {

namespace {
constexpr std::size_t k_line_max = 4096;
constexpr std::size_t k_digits_max = 15;
constexpr std::size_t k_between_max = 4;  // characters between a word and its number
// The finest count comes first: of the words that both attempts print, that one is compared.
constexpr std::array<std::string_view, 5> k_words = {"step", "iteration", "iter", "batch", "epoch"};

// Returns the number after `word` in a line of lower case, if there is one.
std::optional<std::uint64_t> number_after(std::string_view line, std::string_view word) {
  for (std::size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
    if (at > 0 && is_letter(line[at - 1])) continue;
    std::size_t digit = at + word.size();
    const std::size_t end = std::min(line.size(), digit + k_between_max);
    while (digit < end && std::string_view(" \t=:#\"'[(").find(line[digit]) != std::string_view::npos) ++digit;
    if (digit == at + word.size()) continue;  // "step12" is the name of something
    std::size_t stop = digit;
    while (stop < line.size() && is_digit(line[stop])) ++stop;
    if (stop == digit || stop - digit > k_digits_max) continue;
    std::uint64_t number = 0;
    for (; digit < stop; ++digit) number = number * 10 + static_cast<std::uint64_t>(line[digit] - '0');
    return number;
  }
  return std::nullopt;
}

std::optional<std::string> common_word(const DrillFacts& facts) {
  for (const std::string_view word : k_words)
    if (facts.before.contains(std::string(word)) && facts.after.contains(std::string(word))) return std::string(word);
  return std::nullopt;
}

std::optional<DrillVerdict> judge_progress(const DrillFacts& facts, const std::string& word, bool final) {
  const ProgressReader::Range before = facts.before.at(word), after = facts.after.at(word);
  const std::string reached = word + " " + std::to_string(before.highest) + " was reached on " + facts.from;
  if (before.highest > before.lowest && after.lowest <= before.lowest)
    return DrillVerdict{"no",
                        reached + ", and on " + facts.to + " it restarted at " + word + " " +
                            std::to_string(after.lowest) + ": it does not load its checkpoint"};
  if (after.lowest > before.lowest && (after.highest > after.lowest || facts.succeeded)) {
    const std::uint64_t lost = before.highest >= after.lowest ? before.highest - after.lowest + 1 : 0;
    return DrillVerdict{
        "yes", reached + ", it continued at " + word + " " + std::to_string(after.lowest) + " on " + facts.to, lost};
  }
  if (!final) return std::nullopt;
  return DrillVerdict{"unknown",
                      reached + ", and on " + facts.to + " it printed " + word + " " + std::to_string(after.lowest) +
                          " and nothing higher"};
}

std::optional<DrillVerdict> judge_checkpoints(const DrillFacts& facts, bool final) {
  if (facts.saved_after) {
    if (facts.saved_after->root == facts.first.root)
      return DrillVerdict{"no",
                          "its first checkpoint on " + facts.to + " has the same bytes as its first on " + facts.from +
                              ": it restarted from the beginning"};
    if (facts.saved_after->files > facts.restored.files)
      return DrillVerdict{"yes",
                          "on " + facts.to + " it added to checkpoint " + std::to_string(facts.restored.seq.value) +
                              ": " + std::to_string(facts.saved_after->files) + " files after " +
                              std::to_string(facts.restored.files)};
  }
  if (!final) return std::nullopt;
  const std::string did = facts.succeeded     ? "it finished on " + facts.to
                          : facts.saved_after ? "it saved a checkpoint on " + facts.to
                                              : "it ran on " + facts.to;
  return DrillVerdict{
      "unknown",
      did + ", but nothing shows where it continued: make it print lines such as 'step 120', then run the drill again"};
}
}  // namespace

void ProgressReader::read(std::string_view bytes) {
  for (const char c : bytes) {
    if (c == '\n' || c == '\r') {
      read_line();
      line_.clear();
    } else if (line_.size() < k_line_max) {
      line_ += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
}

void ProgressReader::read_line() {
  for (const std::string_view word : k_words) {
    const std::optional<std::uint64_t> number = number_after(line_, word);
    if (!number) continue;
    const auto [range, is_new] = ranges_.try_emplace(std::string(word), Range{*number, *number});
    range->second.lowest = std::min(range->second.lowest, *number);
    range->second.highest = std::max(range->second.highest, *number);
  }
}

bool ProgressReader::moves_or_is_mute() const {
  return ranges_.empty() ||
         std::ranges::any_of(ranges_, [](const auto& entry) { return entry.second.highest > entry.second.lowest; });
}

std::optional<DrillVerdict> judge_drill(const DrillFacts& facts, bool final) {
  if (const std::optional<std::string> word = common_word(facts)) return judge_progress(facts, *word, final);
  return judge_checkpoints(facts, final);
}

}  // namespace gridctl::job
