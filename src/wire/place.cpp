// SPDX-License-Identifier: Apache-2.0
#include "wire/place.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "wire/fields.hpp"

namespace gridctl::wire {

namespace {

constexpr std::array<std::string_view, 6> k_operations{"place_make", "place_list",    "place_read",
                                                       "place_put",  "place_put_new", "place_remove"};

std::optional<PlaceDeed> deed_of(std::string_view operation) {
  for (std::size_t i = 0; i < k_operations.size(); ++i)
    if (k_operations[i] == operation) return static_cast<PlaceDeed>(i);
  return std::nullopt;
}

PlaceRequest read_place_request(const Fields& fields) {
  const std::optional<PlaceDeed> deed = deed_of(fields.text("op", 64));
  if (!deed) fields.fail("is another request");
  PlaceRequest request{*deed, fields.text("folder", k_place_folder_max), fields.flag("marked"), "", 0, 0};
  if (request.folder.empty()) fields.fail("names no folder");
  if (fields.has("name")) request.name = fields.text("name", k_place_name_max);
  if (fields.has("offset")) request.offset = fields.number("offset");
  const bool reads = *deed == PlaceDeed::read;
  if (fields.has("bytes")) request.bytes = fields.number("bytes", reads ? k_place_read_max : k_place_object_max);
  return request;
}

PlaceStored read_stored(const Fields& fields) { return {fields.flag("stored")}; }

}  // namespace

bool is_place_request(std::string_view operation) { return deed_of(operation).has_value(); }

std::string encode(const PlaceRequest& request) {
  return dump({{"op", k_operations.at(static_cast<std::size_t>(request.deed))},
               {"folder", request.folder},
               {"marked", request.marked},
               {"name", request.name},
               {"offset", request.offset},
               {"bytes", request.bytes}});
}

std::string encode(const PlaceStored& reply) { return dump({{"stored", reply.stored}}); }

Result<PlaceRequest> parse_place_request(std::string_view text) {
  return parse_message(text, "place request", &read_place_request);
}
Result<PlaceStored> parse_place_stored(std::string_view text) {
  return parse_message(text, "reply of a place", &read_stored);
}

}  // namespace gridctl::wire
