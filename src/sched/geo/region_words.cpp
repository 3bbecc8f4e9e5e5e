// SPDX-License-Identifier: Apache-2.0
#include "sched/geo/region_words.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.hpp"

namespace gridctl::sched {

namespace {
// Countries with data centres that rent out machines, in English, and what their own people or providers call some of
// them.
constexpr std::pair<std::string_view, std::string_view> k_country_codes[] = {
    {"argentina", "AR"},      {"australia", "AU"},     {"austria", "AT"},      {"belgium", "BE"},
    {"brazil", "BR"},         {"bulgaria", "BG"},      {"canada", "CA"},       {"chile", "CL"},
    {"china", "CN"},          {"colombia", "CO"},      {"croatia", "HR"},      {"cyprus", "CY"},
    {"czechia", "CZ"},        {"czech republic", "CZ"}, {"denmark", "DK"},     {"deutschland", "DE"},
    {"egypt", "EG"},          {"england", "GB"},       {"estonia", "EE"},      {"finland", "FI"},
    {"france", "FR"},         {"germany", "DE"},       {"great britain", "GB"}, {"greece", "GR"},
    {"hong kong", "HK"},      {"hungary", "HU"},       {"iceland", "IS"},      {"india", "IN"},
    {"indonesia", "ID"},      {"ireland", "IE"},       {"israel", "IL"},       {"italy", "IT"},
    {"japan", "JP"},          {"kazakhstan", "KZ"},    {"kenya", "KE"},        {"korea", "KR"},
    {"latvia", "LV"},         {"lithuania", "LT"},     {"luxembourg", "LU"},   {"malaysia", "MY"},
    {"mexico", "MX"},         {"moldova", "MD"},       {"netherlands", "NL"},  {"holland", "NL"},
    {"new zealand", "NZ"},    {"nigeria", "NG"},       {"norway", "NO"},       {"pakistan", "PK"},
    {"peru", "PE"},           {"philippines", "PH"},   {"poland", "PL"},       {"portugal", "PT"},
    {"romania", "RO"},        {"russia", "RU"},        {"saudi arabia", "SA"}, {"serbia", "RS"},
    {"singapore", "SG"},      {"slovakia", "SK"},      {"slovenia", "SI"},     {"south africa", "ZA"},
    {"south korea", "KR"},    {"spain", "ES"},         {"sweden", "SE"},       {"switzerland", "CH"},
    {"taiwan", "TW"},         {"thailand", "TH"},      {"turkey", "TR"},       {"ukraine", "UA"},
    {"united arab emirates", "AE"}, {"united kingdom", "GB"}, {"united states", "US"}, {"united states of america", "US"},
    {"usa", "US"},            {"vietnam", "VN"}};
}  // namespace

std::string region_code(std::string_view name) {
  std::string word = lower(trim(name));
  std::ranges::replace_if(
      word, [](char c) { return c == '_' || c == '-'; }, ' ');
  std::vector<std::string> known;
  for (const auto& [country, code] : k_country_codes) {
    if (word == country) return std::string(code);
    if (word.size() > 4) known.emplace_back(country);  // a slip in a short word may mean anything
  }
  const std::string near = nearest(word, known);
  for (const auto& [country, code] : k_country_codes)
    if (!near.empty() && near == country) return std::string(code);
  return "";
}

}  // namespace gridctl::sched
