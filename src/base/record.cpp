// SPDX-License-Identifier: Apache-2.0
#include "base/record.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.hpp"

namespace gridctl {

using nlohmann::json;

namespace record {

namespace {
constexpr std::int64_t k_ns_in_us = 1000, k_ns_in_ms = 1'000'000;

std::int64_t ns_in_unit(std::string_view key) {
  return key.ends_with("_ns") ? 1 : key.ends_with("_us") ? k_ns_in_us : k_ns_in_ms;
}
}  // namespace

std::int64_t in_unit(Duration duration, std::string_view key) { return duration.count() / ns_in_unit(key); }
Duration of_unit(std::int64_t count, std::string_view key) { return Duration{count * ns_in_unit(key)}; }

}  // namespace record

namespace {
constexpr Duration k_duration_max = std::chrono::hours{10 * 366 * 24};  // ten years, as in job files
constexpr std::string_view k_id_first = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view k_id_rest = "abcdefghijklmnopqrstuvwxyz0123456789-";
constexpr std::string_view k_op_first = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view k_op_rest = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@+-";

bool matches(std::string_view id, std::size_t bytes_max, std::string_view first, std::string_view rest) {
  return !id.empty() && id.size() <= bytes_max && first.find(id[0]) != std::string_view::npos &&
         id.find_first_not_of(rest) == std::string_view::npos;
}

// Counted before parsing, so that no deep structure is ever built.
bool is_too_deep(std::string_view text, std::size_t depth_max) {
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
      if (++depth > depth_max) return true;
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return false;
}
}  // namespace

RecordWriter::RecordWriter(json& object) : object_(&object) { object = json::object(); }

json& RecordWriter::slot(const char* key) { return (*object_)[key] = nullptr; }
json& RecordWriter::list_at(json& slot) { return slot = json::array(); }
json& RecordWriter::push(json& list) { return list.emplace_back(); }
json& RecordWriter::key_of(json& slot, const std::string& name) { return slot[name]; }
void RecordWriter::put(json& slot, bool value) { slot = value; }
void RecordWriter::put(json& slot, std::int64_t value) { slot = value; }
void RecordWriter::put(json& slot, std::uint64_t value) { slot = value; }
void RecordWriter::put(json& slot, double value) { slot = value; }
void RecordWriter::put(json& slot, const std::string& value) { slot = value; }

RecordReader::RecordReader(const json& object, std::string where, const ReadRules& rules)
    : object_(&object), where_(std::move(where)), rules_(&rules) {
  if (!object.is_object()) fail("is no object");
}

void RecordReader::fail(const std::string& what) const { throw BadRecord(where_ + " " + what); }

void RecordReader::refuse(const char* key, const char* why) const {
  fail(std::string("has a '") + key + "' that " + why);
}

const json* RecordReader::find(const char* key) const {
  const auto found = object_->find(key);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

bool RecordReader::is_number(const char* key) const {
  const json* found = find(key);
  return found != nullptr && found->is_number();
}

const json* RecordReader::required(const char* key) const {
  if (rules_->absent_is_unknown) return find(key);
  const auto found = object_->find(key);
  if (found == object_->end()) fail(std::string("lacks '") + key + "'");
  return &*found;
}

void RecordReader::each(const json& list, const char* key, std::size_t count_max,
                        const std::function<void(const json&)>& take) const {
  if (!list.is_array()) refuse(key, "is no list");
  if (list.size() > count_max) fail("has more than " + std::to_string(count_max) + " '" + key + "'");
  for (const json& element : list) take(element);
}

void RecordReader::each_named(const json& object, const char* key, std::size_t count_max,
                              const std::function<void(const std::string&, const json&)>& take) const {
  if (!object.is_object()) refuse(key, "is no object");
  if (object.size() > count_max) fail(std::string("has too many '") + key + "'");
  for (const auto& [name, value] : object.items()) {
    if (rules_->foreign && (name.empty() || name.size() > rules_->text_max || name.find('\0') != std::string::npos))
      fail(std::string("has a bad name in '") + key + "'");
    take(name, value);
  }
}

void RecordReader::take(const json& in, const char* key, bool& value) const {
  if (!in.is_boolean()) refuse(key, "is not true or false");
  value = in.get<bool>();
}

void RecordReader::take(const json& in, const char* key, std::uint64_t& value, std::uint64_t max) const {
  if (!in.is_number_unsigned() || in.get<std::uint64_t>() > max) refuse(key, "is no number within its limits");
  value = in.get<std::uint64_t>();
}

void RecordReader::take(const json& in, const char* key, std::int64_t& value, std::int64_t min,
                        std::int64_t max) const {
  const bool fits = in.is_number_unsigned() ? in.get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX)
                                            : in.is_number_integer();
  if (!fits || in.get<std::int64_t>() < min || in.get<std::int64_t>() > max)
    refuse(key, "is no number within its limits");
  value = in.get<std::int64_t>();
}

void RecordReader::take(const json& in, const char* key, double& value, double min, double max) const {
  const double number = in.is_number() ? in.get<double>() : NAN;
  if (!std::isfinite(number) || number < min || number > max) refuse(key, "is no number within its limits");
  value = number;
}

void RecordReader::take(const json& in, const char* key, std::string& value, std::size_t bytes_max) const {
  if (!in.is_string()) refuse(key, "is no text");
  const auto& text = in.get_ref<const std::string&>();
  if (text.size() > bytes_max) refuse(key, "is too long");
  if (rules_->foreign && !rules_->any_text && text.find('\0') != std::string::npos)
    fail(std::string("has a '") + key + "' with a NUL character");
  value = text;
}

void RecordReader::take(const json& in, const char* key, Digest& value) const {
  const Result<Digest> digest = parse_digest(in.is_string() ? in.get_ref<const std::string&>() : "");
  if (!digest) refuse(key, "is no digest");
  value = *digest;
}

void RecordReader::take(const json& in, const char* key, Duration& value) const {
  std::int64_t count = 0;
  const std::int64_t max = record::in_unit(rules_->foreign ? k_duration_max : Duration::max(), key);
  take(in, key, count, rules_->foreign ? 0 : -max, max);
  value = record::of_unit(count, key);
}

void RecordReader::check_id(const char* key, const std::string& id, bool operation) const {
  if (operation ? !matches(id, 128, k_op_first, k_op_rest) : !matches(id, 64, k_id_first, k_id_rest))
    refuse(key, operation ? "is no operation id" : "is no id");
}

std::string write_object(const std::function<void(RecordWriter&)>& write) {
  json object;
  RecordWriter writer(object);
  write(writer);
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<void> read_object(std::string_view text, std::string_view what, const ReadRules& rules, Code code,
                         const std::function<void(RecordReader&)>& read) {
  const auto refuse = [&](const std::string& why) { return make_error(code, sanitize(why, 300)); };
  if (is_too_deep(text, rules.depth_max)) return refuse(std::string(what) + " is nested too deep");
  try {
    const json object = json::parse(text);
    RecordReader reader(object, std::string(what), rules);
    read(reader);
    return {};
  } catch (const BadRecord& problem) {
    return refuse(problem.what());
  } catch (const json::exception& problem) {
    return refuse(std::string(what) + ": " + problem.what());
  }
}

}  // namespace gridctl
