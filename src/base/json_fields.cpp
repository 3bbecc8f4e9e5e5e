// SPDX-License-Identifier: Apache-2.0
#include "base/json_fields.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

namespace gridctl {

using nlohmann::json;

namespace {
[[noreturn]] void refuse(std::string_view name, const char* why) {
  throw BadField("'" + std::string(name.substr(0, 60)) + "' " + why);
}
}  // namespace

JsonFields::JsonFields(const json& object) : object_(&object) {
  if (!object.is_object()) throw BadField("expected an object");
}

const json* JsonFields::find(std::string_view name) const {
  const auto found = object_->find(std::string(name));
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

bool JsonFields::has(std::string_view name) const { return find(name) != nullptr; }

std::string JsonFields::text(std::string_view name) const {
  const json* value = find(name);
  if (value == nullptr) return {};
  if (!value->is_string()) refuse(name, "is not text");
  const auto& text = value->get_ref<const std::string&>();
  if (text.size() > k_field_text_max) refuse(name, "is too long");
  return text;
}

std::optional<bool> JsonFields::maybe_flag(std::string_view name) const {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) refuse(name, "is neither true nor false");
  return value->get<bool>();
}

bool JsonFields::flag(std::string_view name) const { return maybe_flag(name).value_or(false); }

std::optional<std::int64_t> JsonFields::whole(std::string_view name, std::int64_t min, std::int64_t max) const {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_integer()) refuse(name, "is not a whole number");
  if (value->is_number_unsigned() && value->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
    refuse(name, "is out of range");
  const auto number = value->get<std::int64_t>();
  if (number < min || number > max) refuse(name, "is out of range");
  return number;
}

std::optional<double> JsonFields::real(std::string_view name, double min, double max) const {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) refuse(name, "is not a number");
  const double number = value->get<double>();
  if (!std::isfinite(number) || number < min || number > max) refuse(name, "is out of range");
  return number;
}

}  // namespace gridctl
