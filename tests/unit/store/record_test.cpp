// SPDX-License-Identifier: Apache-2.0
#include "store/record.hpp"

#include "support/results.hpp"
#include "unit/store/remote_fixtures.hpp"

namespace gridctl::store::record_test {
namespace {

using namespace testing;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;

CopyRecord a_record() {
  CopyRecord record;
  record.job = {"abcdefghijk23"};
  record.seq = {41};
  record.epoch = {7};
  record.attempt = {3};
  record.root = digest_of("root");
  record.created_at = {1'700'000'000'123};
  record.bytes = 123'456'789'012;
  record.files = 17;
  record.job_name = "train-gpt";
  record.how = "commit-marker";
  record.packs = {{digest_of("pack a"), 1000}, {digest_of("pack b"), k_object_max}};
  std::sort(record.packs.begin(), record.packs.end());
  return record;
}
RecordName name_of(const CopyRecord& record) { return {record.job, record.seq}; }

TEST(Record, ComesBackAsItWas) {
  const auto key = key_named("one");
  const CopyRecord record = a_record();
  const auto back = open_record(name_of(record), seal_record(record, *key), *key);
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(*back, record);
}

TEST(Record, OpensUnderItsOwnNameAndKeyOnly) {
  const auto key = key_named("one"), other = key_named("another");
  const CopyRecord record = a_record();
  const Bytes sealed = seal_record(record, *key);
  EXPECT_THAT(open_record(name_of(record), sealed, *other), FailsWith(Code::checkpoint_damaged));
  EXPECT_THAT(open_record({record.job, {42}}, sealed, *key), FailsWith(Code::checkpoint_damaged));
  EXPECT_THAT(open_record({{"abcdefghijk24"}, record.seq}, sealed, *key), FailsWith(Code::checkpoint_damaged));
}

TEST(Record, IsRefusedWithAnyByteChangedOrMissing) {
  const auto key = key_named("one");
  const CopyRecord record = a_record();
  const Bytes sealed = seal_record(record, *key);
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    Bytes changed = sealed;
    changed[i] ^= std::byte{1};
    EXPECT_FALSE(open_record(name_of(record), changed, *key)) << i;
    EXPECT_FALSE(open_record(name_of(record), ByteView(sealed).first(i), *key)) << i;
  }
  Bytes longer = sealed;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(open_record(name_of(record), longer, *key));
}

TEST(Record, TellsNothingInTheOpen) {
  const auto key = key_named("one");
  const CopyRecord record = a_record();
  const std::string sealed(as_text(seal_record(record, *key)));
  EXPECT_EQ(sealed.find("train-gpt"), std::string::npos);
  EXPECT_EQ(sealed.find(as_text(record.root.bytes)), std::string::npos);
  EXPECT_NE(seal_record(record, *key), seal_record(record, *key));  // a nonce of its own each time
}

TEST(Record, OfALaterVersionIsNotCalledDamaged) {
  const auto key = key_named("one");
  Bytes sealed = seal_record(a_record(), *key);
  sealed[9] = std::byte{2};
  EXPECT_THAT(open_record(name_of(a_record()), sealed, *key), FailsWith(Code::unsupported));
}

TEST(RecordName, IsReadStrictly) {
  const RecordName name{{"abc2"}, {17}};
  EXPECT_EQ(object_name(name), "checkpoints/abc2/17");
  EXPECT_EQ(parse_record_name("checkpoints/abc2/17"), name);
  for (const char* odd : {"checkpoints/abc2", "checkpoints/abc2/", "checkpoints//17", "checkpoints/abc2/017",
                          "checkpoints/abc2/0", "checkpoints/abc2/-1", "checkpoints/abc2/17/1", "checkpoints/Abc/17",
                          "checkpoints/a_c/17", "checkpoints/abc2/99999999999999999999999", "packs/abc2/17",
                          "checkpoints/abcdefghijklmnopqrstuvwxyz0123456789/1", ""})
    EXPECT_EQ(parse_record_name(odd), std::nullopt) << odd;
  const NeededPack pack{digest_of("x"), 0};
  EXPECT_EQ(parse_pack_object(object_name(pack)), pack.id);
  EXPECT_EQ(parse_pack_object("packs/abc.pack"), std::nullopt);
  EXPECT_EQ(parse_pack_object("packs/" + to_hex(pack.id)), std::nullopt);
}

}  // namespace
}  // namespace gridctl::store::record_test
