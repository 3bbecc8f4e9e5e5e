// SPDX-License-Identifier: Apache-2.0
#include "control/follow/masks.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "ssh/encoding.hpp"

namespace gridctl::control {

namespace {

constexpr std::size_t k_held_most = 4096;    // bytes; what is longer is masked line by line
constexpr std::size_t k_encoded_least = 10;  // characters of base64 that no other text has by chance

// What base64 makes of the value behind 0, 1 or 2 other bytes, without the characters that neighbours have a part in.
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

}  // namespace

Masks::Masks(const std::map<std::string, std::string>& secrets) {
  for (const auto& [name, value] : secrets) {
    add(value);
    for (const std::string& line : split_lines(value)) add(trim(line));
    const std::string plain(trim(value));
    if (plain.size() < k_masked_least) continue;
    std::vector<std::string> encoded{ssh::encode_base64(plain, false)};
    for (const std::size_t before : {0u, 1u, 2u}) encoded.push_back(encoded_behind(before, plain));
    for (const std::string& text : encoded)
      if (text.size() >= std::min(k_encoded_least, plain.size() + 1)) {
        add(text);
        add(for_urls(text));
      }
  }
  for (std::size_t i = 0; i < forms_.size(); ++i)
    by_start_[std::string_view(forms_[i]).substr(0, k_masked_least)].push_back(i);
  for (auto& [start, forms] : by_start_)
    std::sort(forms.begin(), forms.end(),
              [&](std::size_t a, std::size_t b) { return forms_[a].size() > forms_[b].size(); });
}

void Masks::add(std::string_view form) {
  if (form.size() < k_masked_least || std::find(forms_.begin(), forms_.end(), form) != forms_.end()) return;
  forms_.emplace_back(form);
  longest_ = std::max(longest_, form.size());
}

void Masks::mask(std::string& text) const {
  if (empty()) return;
  std::vector<std::pair<std::size_t, std::size_t>> found;  // where and how long; one may lie within another
  const std::string_view all = text;
  for (std::size_t at = 0; at + k_masked_least <= all.size(); ++at) {
    const auto forms = by_start_.find(all.substr(at, k_masked_least));
    if (forms == by_start_.end()) continue;
    for (const std::size_t form : forms->second)
      if (all.substr(at).starts_with(forms_[form])) {
        found.emplace_back(at, forms_[form].size());
        break;
      }
  }
  for (const auto& [at, size] : found) std::fill_n(text.begin() + static_cast<std::ptrdiff_t>(at), size, '*');
}

std::size_t Masks::held(std::string_view text) const {
  const std::size_t most = std::min({text.size(), k_held_most, longest_});
  for (std::size_t size = most; size > 0; --size) {
    const std::string_view end = text.substr(text.size() - size);
    for (const std::string& form : forms_)
      if (form.size() > size && std::string_view(form).starts_with(end)) return size;
  }
  return 0;
}

}  // namespace gridctl::control
