// SPDX-License-Identifier: Apache-2.0
#include "wire/fields.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "wire/frame.hpp"

namespace gridctl::wire {

using nlohmann::json;

namespace {
constexpr std::int64_t k_duration_max_ms = std::int64_t{10} * 366 * 86'400'000;  // ten years, as in job files

// Counted before parsing, so that no deep structure is ever built.
bool is_too_deep(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      else if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > k_json_depth_max) return true;
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return false;
}

constexpr std::string_view k_id_first = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view k_id_rest = "abcdefghijklmnopqrstuvwxyz0123456789-";
constexpr std::string_view k_op_first = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view k_op_rest = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@+-";

bool matches(std::string_view id, std::size_t bytes_max, std::string_view first, std::string_view rest) {
  return !id.empty() && id.size() <= bytes_max && first.find(id[0]) != std::string_view::npos &&
         id.find_first_not_of(rest) == std::string_view::npos;
}
}  // namespace

Fields::Fields(const json& object, std::string where) : object_(&object), where_(std::move(where)) {
  if (!object.is_object()) fail("is no object");
}

void Fields::fail(const std::string& what) const { throw Violation{where_ + " " + what}; }

bool Fields::has(const char* key) const {
  const auto found = object_->find(key);
  return found != object_->end() && !found->is_null();
}

const json& Fields::at(const char* key) const {
  const auto found = object_->find(key);
  if (found == object_->end()) fail(std::string("lacks '") + key + "'");
  return *found;
}

bool Fields::flag(const char* key) const {
  const json& value = at(key);
  if (!value.is_boolean()) fail(std::string("has a '") + key + "' that is not true or false");
  return value.get<bool>();
}

std::uint64_t Fields::number(const char* key, std::uint64_t max) const {
  const json& value = at(key);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > max)
    fail(std::string("has a '") + key + "' that is no number within its limits");
  return value.get<std::uint64_t>();
}

std::int64_t Fields::integer(const char* key, std::int64_t min, std::int64_t max) const {
  const json& value = at(key);
  const bool fits = value.is_number_unsigned() ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX)
                                               : value.is_number_integer();
  if (!fits || value.get<std::int64_t>() < min || value.get<std::int64_t>() > max)
    fail(std::string("has a '") + key + "' that is no number within its limits");
  return value.get<std::int64_t>();
}

double Fields::real(const char* key) const {
  const json& value = at(key);
  const double number = value.is_number() ? value.get<double>() : -1;
  if (!std::isfinite(number) || number < 0) fail(std::string("has a '") + key + "' that is no number >= 0");
  return number;
}

std::string Fields::text(const char* key, std::size_t bytes_max) const {
  const json& value = at(key);
  if (!value.is_string()) fail(std::string("has a '") + key + "' that is no text");
  const auto& text = value.get_ref<const std::string&>();
  if (text.size() > bytes_max) fail(std::string("has a '") + key + "' that is too long");
  if (text.find('\0') != std::string::npos) fail(std::string("has a '") + key + "' with a NUL character");
  return text;
}

Digest Fields::digest(const char* key) const {
  const Result<Digest> digest = parse_digest(text(key));
  if (!digest) fail(std::string("has a '") + key + "' that is no digest");
  return *digest;
}

std::optional<Digest> Fields::optional_digest(const char* key) const {
  if (!has(key)) return std::nullopt;
  return digest(key);
}

BootTime Fields::boot_time(const char* key) const { return {integer(key, 0, INT64_MAX)}; }

Duration Fields::duration(const char* key) const {
  return std::chrono::milliseconds{integer(key, 0, k_duration_max_ms)};
}

std::string Fields::id(const char* key) const {
  std::string id = text(key);
  if (!matches(id, 64, k_id_first, k_id_rest)) fail(std::string("has a '") + key + "' that is no id");
  return id;
}

OpId Fields::op() const {
  std::string id = text("id");
  if (!matches(id, 128, k_op_first, k_op_rest)) fail("has an 'id' that is no operation id");
  return {id};
}

const json& Fields::array(const char* key, std::size_t count_max) const {
  const json& value = at(key);
  if (!value.is_array()) fail(std::string("has a '") + key + "' that is no list");
  if (value.size() > count_max) fail(std::string("has more than ") + std::to_string(count_max) + " '" + key + "'");
  return value;
}

std::vector<std::string> Fields::texts(const char* key, std::size_t count_max) const {
  std::vector<std::string> values;
  for (const json& value : array(key, count_max)) {
    const json wrapped{{key, value}};
    values.push_back(Fields(wrapped, where_).text(key));
  }
  return values;
}

std::map<std::string, std::string> Fields::text_map(const char* key) const {
  const Fields inner = object(key);
  if (inner.object_->size() > k_list_max) fail(std::string("has too many '") + key + "'");
  std::map<std::string, std::string> values;
  for (const auto& [name, value] : inner.object_->items()) {
    if (name.empty() || name.size() > k_text_max || name.find('\0') != std::string::npos)
      fail(std::string("has a bad name in '") + key + "'");
    values.emplace(name, inner.text(name.c_str()));
  }
  return values;
}

Metrics Fields::metrics(const char* key) const {
  const Fields inner = object(key);
  if (inner.object_->size() > k_metrics_max) fail(std::string("has too many '") + key + "'");
  Metrics values;
  for (const auto& [name, value] : inner.object_->items()) {
    const double number = value.is_number() ? value.get<double>() : NAN;
    if (!is_metric_name(name) || !std::isfinite(number)) fail(std::string("has a bad entry in '") + key + "'");
    values.emplace(name, number);
  }
  return values;
}

std::vector<Digest> Fields::digests(const char* key, std::size_t count_max) const {
  std::vector<Digest> values;
  for (const json& value : array(key, count_max)) {
    const Result<Digest> digest = parse_digest(value.is_string() ? value.get_ref<const std::string&>() : "");
    if (!digest) fail(std::string("has no digest in '") + key + "'");
    values.push_back(*digest);
  }
  return values;
}

std::vector<std::uint32_t> Fields::indexes(const char* key, std::size_t count_max) const {
  std::vector<std::uint32_t> values;
  for (const json& value : array(key, count_max)) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= count_max)
      fail(std::string("has a bad index in '") + key + "'");
    values.push_back(value.get<std::uint32_t>());
  }
  return values;
}

Fields Fields::object(const char* key) const { return {at(key), where_ + "." + key}; }

void Fields::each(const char* key, std::size_t count_max, const std::function<void(const Fields&)>& visit) const {
  const std::string where = where_ + "." + key;
  for (const json& element : array(key, count_max)) visit(Fields(element, where));
}

Result<void> read_object(std::string_view text, std::string_view what, const std::function<void(const Fields&)>& read) {
  const auto refuse = [&](const std::string& why) {
    return make_error(Code::protocol_violation, "message refused: " + sanitize(why, 300));
  };
  if (text.size() > k_frame_max) return refuse(std::string(what) + " is too long");
  if (is_too_deep(text)) return refuse(std::string(what) + " is nested too deep");
  try {
    const json value = json::parse(text);
    read(Fields(value, std::string(what)));
    return {};
  } catch (const Violation& violation) {
    return refuse(violation.what);
  } catch (const json::exception& problem) {
    return refuse(std::string(what) + ": " + problem.what());
  }
}

std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

std::int64_t to_ms(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

}  // namespace gridctl::wire
