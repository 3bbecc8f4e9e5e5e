// SPDX-License-Identifier: Apache-2.0
#include "wire/place.hpp"

#include "base/names.hpp"
#include "wire/coding.hpp"

namespace gridctl::wire {

namespace {

constexpr Names<PlaceDeed, PlaceDeed::remove> deed_name{"place_make", "place_list",    "place_read",
                                                        "place_put",  "place_put_new", "place_remove"};
constexpr auto deed_of = [](std::string_view name) { return scan(deed_name, PlaceDeed::remove)(name); };

}  // namespace

template <class R>
void fields(R& r, Of<R, PlaceRequest>& m) {
  r.word("op", m.deed, deed_name, deed_of);
  r("folder", m.folder, k_place_folder_max)("marked", m.marked).check(!m.folder.empty(), "names no folder");
  r.added("name", m.name, k_place_name_max).added("offset", m.offset);
  r.added("bytes", m.bytes, m.deed == PlaceDeed::read ? k_place_read_max : k_place_object_max);
}

template <class R>
void fields(R& r, Of<R, PlaceStored>& m) {
  r("stored", m.stored);
}

bool is_place_request(std::string_view operation) { return deed_of(operation).has_value(); }

std::string encode(const PlaceRequest& m) { return write_record(m); }
std::string encode(const PlaceStored& m) { return write_record(m); }

Result<PlaceRequest> parse_place_request(std::string_view text) {
  return parse_message<PlaceRequest>(text, "place request");
}
Result<PlaceStored> parse_place_stored(std::string_view text) {
  return parse_message<PlaceStored>(text, "reply of a place");
}

}  // namespace gridctl::wire
