// SPDX-License-Identifier: Apache-2.0
#include "wire/remote.hpp"

#include "support/results.hpp"
#include "wire/messages.hpp"

namespace gridctl::wire::remote_test {
namespace {
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;

TEST(RemoteMessages, SurviveARoundTrip) {
  for (const RemoteDeed deed :
       {RemoteDeed::make, RemoteDeed::list, RemoteDeed::read, RemoteDeed::put, RemoteDeed::put_new, RemoteDeed::remove}) {
    const RemoteRequest request{deed, "/mnt/\"copies\"", false, "packs/a", ~0ull, k_remote_read_max};
    const std::string said = encode(request);
    EXPECT_TRUE(is_remote_request(request_name(said))) << said;
    const auto heard = parse_remote_request(said);
    ASSERT_THAT(heard, IsOk()) << said;
    EXPECT_EQ(*heard, request) << said;
  }
  for (const bool stored : {true, false}) EXPECT_EQ(parse_remote_stored(encode(RemoteStored{stored}))->stored, stored);
}

TEST(RemoteMessages, AreRefusedBeyondTheirLimits) {
  const auto refused = [](const RemoteRequest& request) {
    EXPECT_THAT(parse_remote_request(encode(request)), FailsWith(Code::protocol_violation)) << encode(request);
  };
  refused({RemoteDeed::list, "", true, "", 0, 0});
  refused({RemoteDeed::list, std::string(k_remote_folder_max + 1, 'a'), true, "", 0, 0});
  refused({RemoteDeed::list, std::string("a\0b", 3), true, "", 0, 0});
  refused({RemoteDeed::remove, "a", true, std::string(k_remote_name_max + 1, 'a'), 0, 0});
  refused({RemoteDeed::read, "a", true, "a", 0, k_remote_read_max + 1});
  refused({RemoteDeed::put, "a", true, "a", 0, k_remote_object_max + 1});
  for (const char* odd :
       {R"({"op":"put","folder":"a","marked":true})", R"({"op":"place_list","folder":"a"})",
        R"({"op":"place_list","marked":true})", R"({"op":"remote_","folder":"a","marked":true})", "{}"})
    EXPECT_THAT(parse_remote_request(odd), FailsWith(Code::protocol_violation)) << odd;
  EXPECT_THAT(parse_remote_stored("{}"), FailsWith(Code::protocol_violation));
  EXPECT_FALSE(is_remote_request("put"));
}

}  // namespace
}  // namespace gridctl::wire::remote_test
