// SPDX-License-Identifier: Apache-2.0
#include "control/follow/masks.hpp"

#include <algorithm>
#include <set>

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "control/follow/legible.hpp"
#include "ssh/encoding.hpp"

namespace gridctl::control {

namespace {

constexpr std::size_t k_held_most = 64 * 1024;       // bytes; what lies further back is shown
constexpr std::size_t k_held_looks = 4096;           // characters that are compared at the end of a text
constexpr std::size_t k_between_ranks = 128 * 1024;  // bytes of other ranks between two parts of a secret
constexpr std::size_t k_encoded_least = 10;          // characters of base64 that no other text has by chance

// Returns the base64 text of the value after 0, 1 or 2 other bytes, without the characters that neighbours affect.
std::string encoded_behind(std::size_t before, const std::string& value) {
  const std::string whole = ssh::encode_base64(std::string(before, '\0') + value, false);
  const std::size_t from = before == 0 ? 0 : before + 1;
  const std::size_t to = (before + value.size()) * 8 / 6;
  return to > from ? whole.substr(from, to - from) : std::string();
}

std::string for_urls(std::string text) {
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

// Escapes the value like a JSON string.
std::string json_escaped(const std::string& value) {
  std::string out;
  for (const char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') out += "\\n";
    else out += c;
  }
  return out;
}

std::set<std::string> encodings_of(const std::string& value) {
  std::set<std::string> found;
  for (const std::string& form : std::set<std::string>{value, json_escaped(value)}) {
    std::vector<std::string> all{ssh::encode_base64(form, false)};
    for (const std::size_t before : {0u, 1u, 2u}) all.push_back(encoded_behind(before, form));
    for (const std::string& text : all)
      if (text.size() >= std::min(k_encoded_least, form.size() + 1)) found.insert({text, for_urls(text)});
  }
  std::string hexadecimal = to_hex(as_bytes(value));
  found.insert(hexadecimal);
  std::ranges::transform(hexadecimal, hexadecimal.begin(),
                         [](char c) { return c >= 'a' ? static_cast<char>(c - 32) : c; });
  found.insert(hexadecimal);
  return found;
}

Legible as_it_is(std::string_view text) {
  Legible reading{std::string(text), {}};
  reading.spans.reserve(text.size());
  for (std::uint32_t i = 0; i < text.size(); ++i) reading.spans.push_back({i, i + 1});
  return reading;
}

// Covers the text between the characters too, unless that is a line break.
void put_stars(std::string& text, const Legible& reading, std::size_t at, std::size_t size) {
  for (std::size_t i = at; i < at + size; ++i) {
    std::size_t from = reading.spans[i].from;
    const std::size_t before = i > at ? reading.spans[i - 1].to : from;
    if (before < from && text.find('\n', before) >= from) from = before;
    for (; from < reading.spans[i].to; ++from)
      if (text[from] != '\n') text[from] = '*';
  }
}

}  // namespace

// --- Forms -----------------------------------------------------------------------------------------------------------

void Forms::add(const std::string& form) {
  if (form.size() < k_masked_least) return;
  const auto put = [&](std::vector<std::string>& bucket) {
    const auto longer = [&](const std::string& one) { return one.size() > form.size(); };
    const auto at = std::ranges::find_if_not(bucket, longer);
    const bool is_new = std::find(at, bucket.end(), form) == bucket.end();
    if (is_new) bucket.insert(at, form);
    return is_new;
  };
  if (!put(by_start_[form.substr(0, k_masked_least)])) return;
  put(by_end_[form.substr(form.size() - k_masked_least)]);
  for (std::size_t size = 1; size < k_masked_least; ++size) starts_.insert(form.substr(0, size));
  longest_ = std::max(longest_, form.size());
}

template <class Found>
void Forms::find(std::string_view text, const Found& found) const {
  for (std::size_t at = 0; at + k_masked_least <= text.size(); ++at) {
    const auto forms = by_start_.find(std::string(text.substr(at, k_masked_least)));
    if (forms == by_start_.end()) continue;
    for (const std::string& form : forms->second)
      if (text.substr(at).starts_with(form)) {
        found(at, form.size());
        break;
      }
  }
}

std::size_t Forms::begun_at_end(std::string_view text) const {
  for (std::size_t size = std::min({text.size(), k_held_looks, longest_}); size > 0; --size) {
    const std::string_view end = text.substr(text.size() - size);
    if (size < k_masked_least && starts_.contains(std::string(end))) return size;
    const auto forms = by_start_.find(std::string(end.substr(0, k_masked_least)));
    if (size < k_masked_least || forms == by_start_.end()) continue;
    for (const std::string& form : forms->second)
      if (form.size() > size && std::string_view(form).starts_with(end)) return size;
  }
  return 0;
}

std::size_t Forms::ended_at_begin(std::string_view text) const {
  for (std::size_t size = std::min({text.size(), k_held_looks, longest_}); size >= k_masked_least; --size) {
    const std::string_view begin = text.substr(0, size);
    const auto forms = by_end_.find(std::string(begin.substr(size - k_masked_least)));
    if (forms == by_end_.end()) continue;
    for (const std::string& form : forms->second)
      if (form.size() > size && std::string_view(form).ends_with(begin)) return size;
  }
  return 0;
}

// --- Masks -----------------------------------------------------------------------------------------------------------

Masks::Masks(const std::map<std::string, std::string>& secrets) {
  for (const auto& [name, value] : secrets) add(value);
}

void Masks::add(const std::string& value) {
  const auto add_form = [&](std::string_view form) {
    exact_.add(std::string(form));
    legible_.add(legible(form).characters);
  };
  add_form(value);
  for (const std::string& line : split_lines(value)) add_form(trim(line));
  const std::string plain(trim(value));
  if (plain.size() < k_masked_least) return;
  for (const std::string& form : encodings_of(plain)) add_form(form);
}

void Masks::mask(std::string& text) const {
  if (empty()) return;
  const std::string all = text;
  const auto mask_in = [&](const Legible& reading, const Forms& forms) {
    forms.find(reading.characters, [&](std::size_t at, std::size_t size) { put_stars(text, reading, at, size); });
  };
  mask_in(as_it_is(all), exact_);
  mask_in(legible(all), legible_);
  for (const Legible& rank : legible_by_rank(all)) mask_in(rank, legible_);
}

void Masks::mask_cut(std::string& text) const {
  if (empty()) return;
  mask(text);  // first: the end of a secret that repeats itself may look like the beginning of another
  const Legible reading = legible(text);
  const std::string& all = reading.characters;
  if (const std::size_t size = legible_.begun_at_end(all); size >= k_masked_least)
    put_stars(text, reading, all.size() - size, size);
  if (const std::size_t size = legible_.ended_at_begin(all); size > 0) put_stars(text, reading, 0, size);
}

std::size_t Masks::held(std::string_view text) const {
  if (empty()) return 0;
  text = text.substr(text.size() - std::min(text.size(), k_held_most));
  std::size_t held = exact_.begun_at_end(text);
  const auto look = [&](const Legible& reading) {
    const std::size_t size = legible_.begun_at_end(reading.characters);
    if (size == 0) return;
    const std::size_t from = reading.spans[reading.spans.size() - size].from;
    // A complete line waits for the next one only if it is unlikely that its end matches a secret's beginning by
    // chance.
    if (size < k_masked_least && text.find('\n', from) != std::string_view::npos) return;
    held = std::max(held, text.size() - from);
  };
  look(legible(text));
  for (const Legible& rank : legible_by_rank(text)) look(rank);
  return held;
}

std::size_t Masks::reach() const { return empty() ? 0 : k_between_ranks + 4 * legible_.longest(); }

}  // namespace gridctl::control
