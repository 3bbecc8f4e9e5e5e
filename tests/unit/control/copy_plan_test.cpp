// SPDX-License-Identifier: Apache-2.0
#include "control/copies/copy_plan.hpp"

#include <gmock/gmock.h>

#include "control/copies/remotes.hpp"
#include "support/results.hpp"

namespace gridctl::control::copy_plan_test {
namespace {

using gridctl::testing::FailsWith;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

registry::CopyWanted wanted(std::uint64_t seq, int copies, const std::string& job = "j") {
  registry::CopyWanted one;
  one.checkpoint.job = {job};
  one.checkpoint.seq = {seq};
  one.copies = copies;
  return one;
}
registry::Copy copy(const std::string& remote, std::uint64_t seq, const std::string& job = "j") {
  return {remote, {job}, {seq}, {}};
}
std::vector<std::uint64_t> numbers(const std::vector<registry::CopyWanted>& list) {
  std::vector<std::uint64_t> out;
  for (const auto& one : list) out.push_back(one.checkpoint.seq.value);
  return out;
}

const std::vector<RemoteOffer> k_three{{"a", "disk a"}, {"b", "disk b"}, {"c", "disk c"}};

TEST(DueAt, AsksTheFirstPlacesForAsManyCopiesAsTheJobWants) {
  const std::vector<registry::CopyWanted> list{wanted(3, 2), wanted(2, 3), wanted(1, 1)};
  EXPECT_THAT(numbers(due_at("a", k_three, list, {})), ElementsAre(3, 2));
  EXPECT_THAT(numbers(due_at("b", k_three, list, {})), ElementsAre(2));
  EXPECT_THAT(numbers(due_at("c", k_three, list, {})), IsEmpty());
}

TEST(DueAt, CountsWhatIsThere) {
  const std::vector<registry::CopyWanted> list{wanted(3, 2), wanted(2, 3)};
  const std::vector<registry::Copy> copies{copy("c", 3), copy("a", 2)};
  EXPECT_THAT(numbers(due_at("a", k_three, list, copies)), IsEmpty());
  EXPECT_THAT(numbers(due_at("b", k_three, list, copies)), ElementsAre(2));
}

TEST(DueAt, TurnsToAnotherPlaceWhileOneIsInTrouble) {
  std::vector<RemoteOffer> remotes = k_three;
  remotes[0].in_trouble = true;
  EXPECT_THAT(numbers(due_at("b", remotes, {wanted(1, 2)}, {})), ElementsAre(1));
  EXPECT_THAT(numbers(due_at("a", remotes, {wanted(1, 2)}, {})), IsEmpty());
  EXPECT_THAT(numbers(due_at("a", remotes, {wanted(1, 4)}, {})), ElementsAre(1));  // it is still needed
}

TEST(DueAt, TakesPlacesThatAreLostTogetherForOne) {
  const std::vector<RemoteOffer> remotes{{"a", "bucket"}, {"b", "bucket"}, {"c", "disk"}};
  EXPECT_THAT(numbers(due_at("a", remotes, {wanted(1, 3)}, {})), ElementsAre(1));
  EXPECT_THAT(numbers(due_at("b", remotes, {wanted(1, 3)}, {})), IsEmpty());
  EXPECT_THAT(numbers(due_at("c", remotes, {wanted(1, 3)}, {})), ElementsAre(1));
  EXPECT_THAT(numbers(due_at("a", remotes, {wanted(1, 3)}, {copy("b", 1)})), IsEmpty());
}

// A job that must stay in Germany, beside others.
registry::CopyWanted resident(std::uint64_t seq) {
  registry::CopyWanted one = wanted(seq, 2, "resident");
  one.constraints.region_in = {"DE"};
  return one;
}
const std::vector<RemoteOffer> k_abroad{{"us", "disk a", false, "US"},
                                       {"somewhere", "disk b"},
                                       {"bavaria", "disk c", false, "de-by"},
                                       {"market", "disk d", false, "DE", true}};

TEST(Residency, BindsWhereCopiesGo) {
  const std::vector<registry::CopyWanted> list{resident(2), wanted(1, 2)};
  EXPECT_THAT(numbers(due_at("us", k_abroad, list, {})), ElementsAre(1));
  EXPECT_THAT(numbers(due_at("somewhere", k_abroad, list, {})), IsEmpty());
  EXPECT_THAT(numbers(due_at("bavaria", k_abroad, list, {})), ElementsAre(2));
  EXPECT_THAT(numbers(missing_at(k_abroad[0], list, {})), ElementsAre(1));
  EXPECT_THAT(numbers(missing_at(k_abroad[2], list, {})), ElementsAre(2, 1));
  EXPECT_EQ(copy_refusal(resident(1), k_abroad[0]), "it is in US, wanted DE");
  EXPECT_EQ(copy_refusal(resident(1), k_abroad[1]), "its region is unknown, wanted DE");
}

TEST(Residency, KeepsPrivateJobsFromPlacesOfOthers) {
  registry::CopyWanted secret = wanted(1, 2);
  secret.constraints.is_private = true;
  EXPECT_THAT(copy_refusal(secret, k_abroad[3]), ::testing::HasSubstr("owned by others"));
  EXPECT_EQ(copy_refusal(secret, k_abroad[1]), "");
  EXPECT_EQ(copy_refusal(wanted(1, 2), k_abroad[3]), "");
}

TEST(Residency, NamesAJobOnceThatIsRefused) {
  const auto refused = refused_at(k_abroad[0], {resident(3), resident(2), wanted(1, 2)});
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].job.value, "resident");
  registry::CopyWanted alone = resident(1);
  alone.copies = 1;
  EXPECT_THAT(refused_at(k_abroad[0], {alone}), IsEmpty()) << "it asks for none";
}

TEST(MissingAt, NamesAllThatIsNotThere) {
  EXPECT_THAT(numbers(missing_at({"a", "disk a"}, {wanted(2, 1), wanted(1, 1)}, {copy("a", 2), copy("b", 1)})),
              ElementsAre(1));
}

TEST(ObsoleteAt, NamesCopiesOfWhatIsNotKept) {
  const std::vector<registry::Copy> copies{copy("a", 1), copy("a", 2), copy("b", 1), copy("a", 1, "other")};
  EXPECT_THAT(obsolete_at("a", {{{"j"}, {2}}}, copies), ElementsAre(copies[0], copies[3]));
}

TEST(RemoteUrl, IsReadStrictly) {
  const auto directory = parse_remote_url("dir:/mnt/nas/../nas/x/");
  ASSERT_TRUE(directory);
  EXPECT_EQ(directory->kind, RemoteKind::directory);
  const auto host = parse_remote_url("ssh://ada/copies/mine");
  ASSERT_TRUE(host);
  EXPECT_EQ(host->where, "ada");
  EXPECT_EQ(host->path, "copies/mine");
  EXPECT_EQ(parse_remote_url("ssh://ada//mnt/copies")->path, "/mnt/copies");
  const auto bucket = parse_remote_url("s3://ckpt");
  ASSERT_TRUE(bucket);
  EXPECT_EQ(bucket->where, "ckpt");
  for (const char* odd :
       {"", "nas", "/mnt", "dir:mnt", "dir:/", "ssh://ada", "ssh:///x", "ssh://ada/../x", "s3://", "http://x/y"})
    EXPECT_THAT(parse_remote_url(odd), FailsWith(Code::usage)) << odd;
}

TEST(RemoteUrl, IsSaidAsItWasRead) {
  for (const char* url :
       {"dir:/mnt/nas", "ssh://ada/copies/mine", "ssh://ada//mnt/copies", "s3://ckpt", "s3://ckpt/a/b"})
    EXPECT_EQ(to_text(*parse_remote_url(url)), url);
}

TEST(FateOf, IsThatOfTheBucketOrProvider) {
  registry::Remote one, two;
  one.url = "s3://ckpt/a";
  two.url = "s3://ckpt/b";
  EXPECT_EQ(failure_domain_of(one), failure_domain_of(two));
  two.endpoint = "https://elsewhere";
  EXPECT_NE(failure_domain_of(one), failure_domain_of(two));
  one.url = "ssh://ada/a";
  two = {};
  two.url = "ssh://bob/a";
  EXPECT_NE(failure_domain_of(one), failure_domain_of(two));
}

}  // namespace
}  // namespace gridctl::control::copy_plan_test
