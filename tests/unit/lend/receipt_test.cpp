// SPDX-License-Identifier: Apache-2.0
#include "lend/receipt.hpp"

#include <gtest/gtest.h>

#include "os/files.hpp"

namespace gridctl::lend::receipt_test {
namespace {

Digest seed_of(unsigned char fill) {
  Digest seed;
  seed.bytes.fill(std::byte{fill});
  return seed;
}

struct ReceiptTest : ::testing::Test {
  Digest host = seed_of(1), researcher = seed_of(2);
  ReceiptPair pair{"invitation1", {"controller1"}, crypto::ed25519_public(host), crypto::ed25519_public(researcher)};

  [[nodiscard]] Receipt next(const std::vector<SignedReceipt>& before, std::uint64_t gpu_ms = 60'000) const {
    Receipt one;
    one.pair = pair;
    one.number = before.size() + 1;
    one.previous = before.empty() ? hash_of(pair) : hash_of(before.back().receipt);
    one.job = {"job" + std::to_string(one.number)};
    one.epoch = Epoch{1};
    one.gpus = 1;
    one.cpus_milli = 500;
    one.use = {gpu_ms, gpu_ms / 2, 1'000, 2'000'000};
    one.rates = {250'000, 10'000, 50'000, 20'000};
    one.amount = charge(one.rates, one.use);
    return one;
  }
  // Both sides have signed.
  [[nodiscard]] std::vector<std::string> chain(int count, std::uint64_t gpu_ms = 60'000) const {
    std::vector<SignedReceipt> all;
    std::vector<std::string> lines;
    for (int i = 0; i < count; ++i) {
      SignedReceipt one = sign(next(all, gpu_ms), host);
      const Answer answer = judge(one.receipt, SeenAttempt{60'000, 1, 500, {one.receipt.rates}});
      EXPECT_TRUE(add_answer(one, answer_line(answer, researcher)));
      all.push_back(one);
      lines.push_back(to_line(one));
    }
    return lines;
  }
};

TEST_F(ReceiptTest, AChainThatIsWholeIsGood) {
  const ChainReport report = check_chain(chain(5), 5);
  EXPECT_EQ(report.fault, ChainFault::none) << report.text;
  EXPECT_EQ(report.receipts.size(), 5U);
  EXPECT_EQ(report.disputed + report.unanswered, 0U);
  EXPECT_EQ(report.asked, report.counted);
}

// Receipts that were signed stay as they are. GRIDCTL_ACCEPT=1 writes the file anew.
TEST_F(ReceiptTest, TheBytesOfTheFirstFormStay) {
  const os::Path file = os::Path(GRIDCTL_SOURCE_DIR) / "tests" / "data" / "receipts" / "chain.jsonl";
  std::string text;
  for (const std::string& line : chain(3)) text += line + "\n";
  if (os::environment("GRIDCTL_ACCEPT")) {
    ASSERT_TRUE(os::write_file_durably(file, text, 0644));
  }
  EXPECT_EQ(os::read_file(file).value(), text);
}

TEST_F(ReceiptTest, EveryByteThatIsChangedIsFound) {
  const std::vector<std::string> good = chain(2);
  for (std::size_t at = 0; at < good[1].size(); ++at) {
    for (const char flip : {1, 32}) {
      std::vector<std::string> bad = good;
      bad[1][at] = static_cast<char>(bad[1][at] ^ flip);
      ASSERT_NE(check_chain(bad).fault, ChainFault::none) << "byte " << at << " of " << bad[1];
    }
  }
  std::vector<std::string> spaced = good;
  spaced[0].insert(1, " ");
  EXPECT_EQ(check_chain(spaced).fault, ChainFault::damaged);
  std::vector<std::string> shorter = good;
  shorter[1].pop_back();
  EXPECT_EQ(check_chain(shorter).fault, ChainFault::damaged);
}

TEST_F(ReceiptTest, OneThatIsMissingIsNamed) {
  std::vector<std::string> lines = chain(5);
  lines.erase(lines.begin() + 2);
  const ChainReport middle = check_chain(lines);
  EXPECT_EQ(middle.fault, ChainFault::missing);
  EXPECT_EQ(middle.text, "receipt 3 is missing");
  lines.erase(lines.begin());
  EXPECT_EQ(check_chain(lines).fault, ChainFault::missing);
}

TEST_F(ReceiptTest, AnEndThatWasCutOffIsFoundByWhoKnowsMore) {
  std::vector<std::string> lines = chain(5);
  const ChainReport whole = check_chain(lines);
  lines.resize(3);
  EXPECT_EQ(check_chain(lines).fault, ChainFault::none);
  EXPECT_EQ(check_chain(lines, 5).fault, ChainFault::cut);
  const ChainReport compared = compare_chains(check_chain(lines), whole);
  EXPECT_EQ(compared.fault, ChainFault::cut);
  EXPECT_EQ(compared.text, "cut off: the chain here ends with number 3, and the other one has 5");
  EXPECT_EQ(compare_chains(whole, check_chain(lines)).fault, ChainFault::cut);
  EXPECT_EQ(compare_chains(whole, whole).fault, ChainFault::none);
}

TEST_F(ReceiptTest, TwoThatFollowTheSameOneAreAFork) {
  const std::vector<std::string> one = chain(3), other = chain(3, 30'000);
  std::vector<std::string> forked{one[0]};
  std::vector<SignedReceipt> first{*parse_receipt(one[0])};
  for (const std::uint64_t ms : {60'000U, 45'000U}) forked.push_back(to_line(sign(next(first, ms), host)));
  const ChainReport report = check_chain(forked);
  EXPECT_EQ(report.fault, ChainFault::fork);
  EXPECT_NE(report.text.find("fork: receipt 2"), std::string::npos) << report.text;
  EXPECT_EQ(compare_chains(check_chain(one), check_chain(other)).fault, ChainFault::fork);
  std::vector<std::string> grafted{one[0], other[1]};
  EXPECT_EQ(check_chain(grafted).fault, ChainFault::fork);
  std::vector<std::string> twice{one[0], one[1], one[1]};
  EXPECT_EQ(check_chain(twice).fault, ChainFault::damaged);
}

TEST_F(ReceiptTest, NobodyElseCanSign) {
  const Receipt receipt = next({});
  EXPECT_FALSE(parse_receipt(to_line(sign(receipt, researcher))));
  SignedReceipt one = sign(receipt, host);
  const Answer yes{hash_of(receipt), true, receipt.amount, {}};
  EXPECT_FALSE(add_answer(one, answer_line(yes, host)));
  EXPECT_FALSE(add_answer(one, answer_line({hash_of(pair), true, 0, {}}, researcher)));
  EXPECT_FALSE(one.answer);
  EXPECT_TRUE(add_answer(one, answer_line(yes, researcher)));
  Receipt dear = receipt;
  ++dear.amount;
  EXPECT_FALSE(parse_receipt(to_line(sign(dear, host)))) << "the amount has to be what the rates come to";
}

TEST_F(ReceiptTest, TheResearcherAgreesWithinWhatItSawItself) {
  Receipt receipt = next({});
  receipt.rates.minimum = 0;
  receipt.amount = charge(receipt.rates, receipt.use);
  const SeenAttempt seen{60'000, 1, 500, {receipt.rates}};
  EXPECT_TRUE(judge(receipt, seen).agreed);
  SeenAttempt shorter = seen;
  shorter.ran_ms = 30'000;
  const Answer less = judge(receipt, shorter);
  EXPECT_FALSE(less.agreed);
  EXPECT_NE(less.why.find("more GPU time"), std::string::npos);
  EXPECT_LT(less.amount, receipt.amount);
  EXPECT_GT(less.amount, 0);
  SeenAttempt cheaper = seen;
  cheaper.accepted = {{100'000, 0, 0, 0}};
  const Answer at_our_rates = judge(receipt, cheaper);
  EXPECT_FALSE(at_our_rates.agreed);
  EXPECT_EQ(at_our_rates.amount, 1'666);
  SeenAttempt without = seen;
  without.gpus = 0;
  EXPECT_FALSE(judge(receipt, without).agreed);
  EXPECT_EQ(judge(receipt, std::nullopt).amount, 0);
  SeenAttempt twice = seen;
  twice.billed = 1;
  EXPECT_FALSE(judge(receipt, twice).agreed);
  EXPECT_EQ(judge(receipt, twice).amount, 0);
  EXPECT_NE(judge(receipt, twice).why.find("billed already, by receipt 1"), std::string::npos);
}

TEST_F(ReceiptTest, AHostEarnsNothingByNotStarting) {
  const Receipt receipt = next({});  // its least price would be due again and again
  SeenAttempt refused{0, 1, 500, {receipt.rates}};
  refused.never_began = "start_failed";
  const Answer answer = judge(receipt, refused);
  EXPECT_FALSE(answer.agreed);
  EXPECT_EQ(answer.amount, 0);
  EXPECT_EQ(answer.why, "the attempt never began: its host said start_failed");
}

TEST_F(ReceiptTest, TrafficThatNoLinkCarriesIsNotPaid) {
  Receipt receipt = next({});
  receipt.rates = {0, 0, 50'000, 0};
  receipt.use = {0, 1, k_metered_bytes_max, 0};
  receipt.amount = charge(receipt.rates, receipt.use);
  const Answer answer = judge(receipt, SeenAttempt{60'000, 1, 500, {receipt.rates}});
  EXPECT_FALSE(answer.agreed);
  EXPECT_EQ(answer.amount, 81 * 50'000 + 12'500) << "65 seconds at 10 Gbit/s";
}

TEST(RatesTest, WholeNumbersOnly) {
  const Rates rates{250'000, 10'000, 50'000, 20'000};
  EXPECT_EQ(charge(rates, {3'600'000, 7'200'000, 0, 0}), 270'000);
  EXPECT_EQ(charge(rates, {3'600'000, 0, 500'000'000, 1'500'000'000}), 350'000);
  EXPECT_EQ(charge(rates, {1, 0, 0, 0}), 20'000) << "the minimum";
  EXPECT_EQ(charge(rates, {0, 0, 5, 5}), 0) << "it never ran";
  EXPECT_EQ(charge({1'000'000, 0, 0, 0}, {3'599, 0, 0, 0}), 999) << "parts of a millionth are left off";
  EXPECT_GT(charge({k_rate_max, k_rate_max, k_rate_max, 0}, {k_metered_ms_max, k_metered_ms_max, k_metered_bytes_max, k_metered_bytes_max}), 0);
  EXPECT_EQ(hourly(rates, 2, 8), 580'000);
}

TEST(RatesTest, AreReadAndWritten) {
  for (const char* text : {"gpu=0.25,cpu=0.01,traffic=0.05,minimum=0.02", "gpu=1.00", "cpu=0.000001", "free"}) {
    const Result<Rates> rates = parse_rates(text);
    ASSERT_TRUE(rates) << text;
    EXPECT_EQ(rates_text(*rates), text);
  }
  for (const char* text : {"", "0.25", "gpu=", "gpu=-1", "gpu=1000.01", "gpu=0.0000001", "disk=1", "gpu=1,", "gpu=1e3", "gpu=.5", "gpu=5."})
    EXPECT_FALSE(parse_rates(text)) << text;
  EXPECT_EQ(usd_text(-1'250'000), "-1.25");
  EXPECT_EQ(usd_text(20), "0.00002");
}

}  // namespace
}  // namespace gridctl::lend::receipt_test
