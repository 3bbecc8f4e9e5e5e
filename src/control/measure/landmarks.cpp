// SPDX-License-Identifier: Apache-2.0
#include "control/measure/landmarks.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/formatted.hpp"
#include "base/ids.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "ssh/target.hpp"

namespace gridctl::control {

namespace {

constexpr std::uint64_t k_file_max = 64 * 1024;

os::Path file_of(const Paths& paths) { return paths.root / "landmarks"; }

Result<void> check_address(const std::string& address) {
  if (address == "@here") return {};
  if (address.starts_with('@')) return check_name("a provider", address.substr(1));
  TRY_ASSIGN(const ssh::Address parsed, ssh::parse_address(address));
  if (parsed.port && parsed.user.empty()) return {};
  return make_error(Code::usage,
                    "a landmark's address is HOST:PORT, @PROVIDER or @here, not '" + sanitize(address) + "'");
}

void sort_by_name(std::vector<LandmarkRow>& rows) {
  std::ranges::sort(rows, {}, [](const LandmarkRow& row) -> const std::string& { return row.mark.name; });
}

}  // namespace

Result<double> parse_degrees(std::string_view text, char positive, char negative, double max) {
  double value = 0, sign = 1;
  std::string_view digits = text;
  if (!digits.empty() && (digits.back() == positive || digits.back() == negative)) {
    sign = digits.back() == negative ? -1 : 1;
    digits.remove_suffix(1);
  }
  if (!parse_into(digits, value) || !std::isfinite(value) || std::abs(value) > max)
    return make_error(Code::usage, "'" + sanitize(text) + "' is not a number of degrees such as 52.5" + positive +
                                       " or 33.9" + negative);
  return sign * value;
}

Result<LandmarkRow> parse_landmark(const std::vector<std::string>& words) {
  if (words.size() != 4 && words.size() != 5)
    return make_error(Code::usage, "a landmark is NAME LATITUDE LONGITUDE ADDRESS [COUNTRY]");
  LandmarkRow row;
  TRY(check_name("a landmark", words[0]));
  row.mark.name = words[0];
  TRY_ASSIGN(row.mark.at.latitude, parse_degrees(words[1], 'N', 'S', 90));
  TRY_ASSIGN(row.mark.at.longitude, parse_degrees(words[2], 'E', 'W', 180));
  TRY(check_address(words[3]));
  row.address = words[3];
  if (words.size() == 4) return row;
  const auto country = sched::country_of(words[4]);
  if (!country) return make_error(Code::usage, "'" + sanitize(words[4]) + "' is not a country code such as DE");
  row.mark.country = *country;
  const double apart = sched::distance_to(*country, row.mark.at)->nearest_km;
  if (apart > 0)
    return make_error(Code::usage, "landmark " + words[0] + " would be " + std::to_string(std::lround(apart)) +
                                       " km outside " + *country + "; are latitude and longitude in the right order?");
  return row;
}

Result<std::vector<LandmarkRow>> read_landmarks(const Paths& paths) {
  std::vector<LandmarkRow> rows;
  const Result<std::string> text = os::read_file(file_of(paths), k_file_max);
  if (!text && text.error().code == Code::not_found) return rows;
  if (!text) return text.error();
  int number = 0;
  for (const std::string& line : split_lines(*text)) {
    ++number;
    std::istringstream stream(line.substr(0, line.find('#')));
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    if (words.empty()) continue;
    Result<LandmarkRow> row = parse_landmark(words);
    if (!row)
      return make_error(Code::state_unreadable,
                        file_of(paths).string() + ":" + std::to_string(number) + ": " + row.error().message);
    rows.push_back(*std::move(row));
    if (rows.size() > k_landmarks_max)
      return make_error(Code::state_unreadable, file_of(paths).string() + " has more than 64 landmarks");
  }
  sort_by_name(rows);
  return rows;
}

Result<void> write_landmarks(const Paths& paths, std::vector<LandmarkRow> rows) {
  if (rows.size() > k_landmarks_max) return make_error(Code::usage, "there are already 64 landmarks");
  sort_by_name(rows);
  std::string text = "# NAME LATITUDE LONGITUDE ADDRESS [COUNTRY]; see gridctl-provider(1)\n";
  for (const LandmarkRow& row : rows) {
    text += row.mark.name + " " + formatted("%.4f", row.mark.at.latitude) + " " +
            formatted("%.4f", row.mark.at.longitude) + " " + row.address;
    if (!row.mark.country.empty()) text += " " + row.mark.country;
    text += "\n";
  }
  return os::write_file_durably(file_of(paths), text);
}

}  // namespace gridctl::control
