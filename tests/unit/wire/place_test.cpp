// SPDX-License-Identifier: Apache-2.0
#include "wire/place.hpp"

#include "support/results.hpp"
#include "wire/messages.hpp"

namespace gridctl::wire {
namespace {
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;

TEST(PlaceMessages, SurviveARoundTrip) {
  for (const PlaceDeed deed :
       {PlaceDeed::make, PlaceDeed::list, PlaceDeed::read, PlaceDeed::put, PlaceDeed::put_new, PlaceDeed::remove}) {
    const PlaceRequest request{deed, "/mnt/\"copies\"", false, "packs/a", ~0ull, k_place_read_max};
    const std::string said = encode(request);
    EXPECT_TRUE(is_place_request(request_name(said))) << said;
    const auto heard = parse_place_request(said);
    ASSERT_THAT(heard, IsOk()) << said;
    EXPECT_EQ(*heard, request) << said;
  }
  for (const bool stored : {true, false}) EXPECT_EQ(parse_place_stored(encode(PlaceStored{stored}))->stored, stored);
}

TEST(PlaceMessages, AreRefusedBeyondTheirLimits) {
  const auto refused = [](const PlaceRequest& request) {
    EXPECT_THAT(parse_place_request(encode(request)), FailsWith(Code::protocol_violation)) << encode(request);
  };
  refused({PlaceDeed::list, "", true, "", 0, 0});
  refused({PlaceDeed::list, std::string(k_place_folder_max + 1, 'a'), true, "", 0, 0});
  refused({PlaceDeed::list, std::string("a\0b", 3), true, "", 0, 0});
  refused({PlaceDeed::remove, "a", true, std::string(k_place_name_max + 1, 'a'), 0, 0});
  refused({PlaceDeed::read, "a", true, "a", 0, k_place_read_max + 1});
  refused({PlaceDeed::put, "a", true, "a", 0, k_place_object_max + 1});
  for (const char* odd :
       {R"({"op":"put","folder":"a","marked":true})", R"({"op":"place_list","folder":"a"})",
        R"({"op":"place_list","marked":true})", R"({"op":"place_","folder":"a","marked":true})", "{}"})
    EXPECT_THAT(parse_place_request(odd), FailsWith(Code::protocol_violation)) << odd;
  EXPECT_THAT(parse_place_stored("{}"), FailsWith(Code::protocol_violation));
  EXPECT_FALSE(is_place_request("put"));
}

}  // namespace
}  // namespace gridctl::wire
