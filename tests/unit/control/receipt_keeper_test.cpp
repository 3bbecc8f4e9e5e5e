// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/receipt_keeper.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "lend/receipt.hpp"
#include "registry/registry.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::control::receipt_keeper_test {
namespace {

using gridctl::testing::IsOk;
using ::testing::HasSubstr;

constexpr Rates k_rates{3'600'000, 0, 0, 0};  // a dollar for a GPU's thousand seconds
constexpr std::string_view k_chain = "invitation1";

// What agent/guest_receipts.cpp and lend/receipt_book.cpp do on a real host, with an answer that may be lost.
struct FakeHost {
  Digest seed;
  Rates rates = k_rates;
  std::optional<Digest> researcher;
  std::optional<Rates> accepted;
  std::vector<std::string> book, answers, pending;
  int asked = 0, lost_at = 0;  // the n-th request is lost, or its answer is
  bool answer_lost = false;

  FakeHost() { seed.bytes.fill(std::byte{1}); }

  void used(const JobId& job, Epoch epoch, const Digest& researcher_key, std::uint64_t gpu_ms) {
    lend::Receipt next;
    next.pair = {std::string(k_chain), {"controller1"}, crypto::ed25519_public(seed), researcher_key};
    next.number = book.size() + 1;
    next.previous = book.empty() ? lend::hash_of(next.pair) : lend::hash_of(lend::parse_receipt(book.back())->receipt);
    next.job = job;
    next.epoch = epoch;
    next.gpus = 1;
    next.use.gpu_ms = gpu_ms;
    next.rates = rates;
    next.amount = charge(next.rates, next.use);
    book.push_back(lend::to_line(lend::sign(next, seed)));
  }
  Result<wire::ReceiptsReply> ask(const wire::ReceiptsRequest& request) {
    const bool lost = ++asked == lost_at;
    if (lost && !answer_lost) return make_error(Code::host_unreachable, "the connection broke");
    researcher = request.researcher_key;
    if (request.accepts == rates) accepted = rates;
    for (const wire::ReceiptAnswer& one : request.answers)
      if (one.number == answers.size() + 1) answers.push_back(one.line);
    wire::ReceiptsReply reply{crypto::ed25519_public(seed), rates, book.size(), answers.size(), {}, pending};
    for (std::size_t at = request.after; at < book.size() && reply.receipts.size() < 2; ++at) reply.receipts.push_back(book[at]);
    if (lost) return make_error(Code::host_unreachable, "the connection broke");
    return wire::parse_receipts_reply(wire::encode(reply));
  }
};

class ReceiptExchange : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(registry_, IsOk());
    ASSERT_THAT(store_, IsOk());
  }
  // Runs from 3 s to `until_ms`, on one GPU.
  Epoch run(const JobId& id, std::int64_t until_ms, const std::string& on = "bob", const std::string& setup = "") {
    job::Spec spec;
    spec.name = "train";
    spec.run = "true";
    spec.setup = setup;
    spec.resources.gpus = {{}};
    EXPECT_TRUE(registry_->submit(id, spec, {1000}, {}));
    EXPECT_TRUE(registry_->apply(id, {{2000}, job::Placed{{job::Member{0, {on}, {}, {}, 1, 0, 3.6}}, "cheapest"}}));
    const Epoch epoch = registry_->job(id)->machine.epoch;
    EXPECT_TRUE(registry_->apply(id, {{2100}, job::LaunchAccepted{epoch}}));
    EXPECT_TRUE(registry_->apply(id, {{setup.empty() ? 3000 : until_ms - 10'000}, job::PayloadStarted{epoch}}));
    EXPECT_TRUE(registry_->apply(id, {{until_ms}, job::AttemptEnded{epoch, job::End{job::EndKind::exited, 0, 0, ""}}}));
    EXPECT_TRUE(registry_->apply(id, {{until_ms}, job::Collected{epoch, ""}}));
    return epoch;
  }
  Result<ReceiptNews> exchange(const std::optional<Rates>& accepts = std::nullopt) {
    const ReceiptTalk talk{*store_, std::string(k_chain), {"bob"}, {"controller1"}, seed_, now_, 10'000'000,
                           [&](const wire::ReceiptsRequest& request) { return host_.ask(request); }};
    return exchange_receipts(talk, accepts);
  }
  void used(int count) {
    for (int i = 0; i < count; ++i) {
      const JobId id{"job" + std::to_string(host_.book.size() + 1)};
      host_.used(id, run(id, 13'000), key_, 10'000);
    }
  }

  gridctl::testing::TempDir dir_;
  Result<registry::Registry> registry_ = registry::Registry::open(dir_ / "state");
  Result<registry::ReceiptStore> store_ = registry::ReceiptStore::open(dir_ / "state");
  Digest seed_ = receipt_seed(dir_ / "state").value();
  Digest key_ = crypto::ed25519_public(seed_);
  FakeHost host_;
  WallTime now_{2500};
};

TEST_F(ReceiptExchange, RatesAreAcceptedWhenAskedToAndKeptFirst) {
  Result<ReceiptNews> news = exchange();
  ASSERT_THAT(news, IsOk());
  EXPECT_FALSE(news->accepted);
  EXPECT_EQ(news->rates, k_rates);
  EXPECT_FALSE(host_.accepted);
  host_.lost_at = 2;
  EXPECT_FALSE(exchange(k_rates));
  EXPECT_EQ(store_->accepted(std::string(k_chain))->size(), 1U) << "the host may have our word";
  news = exchange();
  ASSERT_THAT(news, IsOk());
  EXPECT_TRUE(news->accepted);
  EXPECT_EQ(host_.accepted, k_rates);
  host_.rates.gpu_hour *= 2;
  news = exchange();
  EXPECT_FALSE(news->accepted) << "another price needs another word";
}

TEST_F(ReceiptExchange, NothingIsAgreedThatTheUserDidNotName) {
  const Rates hours{.gpu_hour = 100}, traffic{.gigabyte = 1}, minimum{.minimum = 1};
  EXPECT_TRUE(is_agreed({100, 0, 0}, hours, 100));
  EXPECT_FALSE(is_agreed({100, 0, 0}, hours, 101));
  EXPECT_FALSE(is_agreed({100, 0, 0}, traffic, 0)) << "an agreed hour says nothing of traffic";
  EXPECT_FALSE(is_agreed({100, 0, 0}, minimum, 0)) << "nor of what the shortest attempt costs";
  EXPECT_TRUE(is_agreed({0, 1, 0}, traffic, 0));
  EXPECT_TRUE(is_agreed({0, 0, 1}, minimum, 0));
  ASSERT_THAT(exchange(), IsOk());
  const auto agreed = [&] { return store_->chain(std::string(k_chain)).value()->agreed; };
  EXPECT_EQ(agreed().hour_micro, 10'000'000);
  EXPECT_EQ(agreed().gigabyte_micro + agreed().minimum_micro, 0);
  ASSERT_THAT(store_->agree(std::string(k_chain), {"bob"}, 7, 8, {}), IsOk());
  ASSERT_THAT(store_->agree(std::string(k_chain), {"bob"}, 9, {}, 10), IsOk());
  EXPECT_EQ(agreed().hour_micro, 9);
  EXPECT_EQ(agreed().gigabyte_micro, 8) << "what is not named stays";
  EXPECT_EQ(agreed().minimum_micro, 10);
  ASSERT_THAT(store_->agree("new", {"carl"}, 7, {}, 8), IsOk());
  EXPECT_EQ(store_->chain("new").value()->agreed.minimum_micro, 8);
}

TEST_F(ReceiptExchange, CostsAndBudgetsAreWhatTheReceiptsSay) {
  ASSERT_THAT(exchange(k_rates), IsOk());
  used(3);
  EXPECT_NEAR(registry_->spent({"job1"}, {50'000})->usd, 0.01, 1e-9) << "as placed, before there is a receipt";
  host_.book.clear();
  for (int i = 1; i <= 3; ++i) host_.used({"job" + std::to_string(i)}, registry_->job({"job" + std::to_string(i)})->machine.epoch, key_, 4'000);
  ASSERT_THAT(exchange(), IsOk());
  EXPECT_NEAR(registry_->spent({"job1"}, {50'000})->usd, 0.004, 1e-9);
  EXPECT_NEAR(registry_->job({"job2"})->cost, 0.004, 1e-9);
  EXPECT_NEAR(registry_->pasts({50'000})->at("job3").usd, 0.004, 1e-9);
  EXPECT_NEAR(registry_->spending("", {0}, {50'000})->usd, 0.012, 1e-9);
  EXPECT_NEAR(registry_->spending("", {8'000}, {50'000})->usd, 0.006, 1e-9) << "the share of this month";
  const auto kept = store_->receipts();
  ASSERT_THAT(kept, IsOk());
  for (const auto& one : *kept) EXPECT_TRUE(one.agreed) << one.line;
}

// It was over before it began, or the power went before the first mark.
TEST_F(ReceiptExchange, AnAttemptForWhichTheHostMakesNoReceiptCostsNothing) {
  ASSERT_THAT(exchange(k_rates), IsOk());
  for (const char* id : {"job1", "job2"}) run({id}, 13'000);
  const auto cost = [&](const char* id) { return registry_->spent({id}, {50'000})->usd; };
  now_ = {12'999};
  ASSERT_THAT(exchange(), IsOk());
  EXPECT_NEAR(cost("job1"), 0.01, 1e-9) << "the host was asked before it ended";
  now_ = {20'000};
  host_.pending = {"job0.1", "job2." + std::to_string(registry_->job({"job2"})->machine.epoch.value)};
  ASSERT_THAT(exchange(), IsOk());
  EXPECT_EQ(cost("job1"), 0);
  EXPECT_EQ(registry_->pasts({50'000})->at("job1").usd, 0);
  EXPECT_NEAR(cost("job2"), 0.01, 1e-9) << "its receipt is still to come";
  EXPECT_NEAR(registry_->spending("", {0}, {50'000})->usd, 0.01, 1e-9);
}

TEST_F(ReceiptExchange, NoCrashLosesOrDoublesAReceipt) {
  ASSERT_THAT(exchange(k_rates), IsOk());
  for (int lost_at = 1; lost_at < 9; ++lost_at) {
    for (const bool answer_lost : {false, true}) {
      used(3);
      host_.asked = 0;
      host_.lost_at = lost_at;
      host_.answer_lost = answer_lost;
      (void)exchange();
      host_.lost_at = 0;
      store_ = registry::ReceiptStore::open(dir_ / "state");
      ASSERT_THAT(exchange(), IsOk());
      const auto kept = store_->receipts();
      ASSERT_EQ(kept->size(), host_.book.size());
      ASSERT_EQ(host_.answers.size(), host_.book.size());
      std::vector<std::string> lines;
      for (const registry::ReceiptRecord& one : *kept) lines.push_back(one.line);
      const lend::ChainReport ours = lend::check_chain(lines, store_->chain(std::string(k_chain))->value().head);
      EXPECT_EQ(ours.fault, lend::ChainFault::none) << ours.text;
      EXPECT_EQ(ours.disputed + ours.unanswered, 0U);
      EXPECT_EQ(ours.asked, lend::check_chain(host_.book).asked);
    }
  }
}

TEST_F(ReceiptExchange, AHostThatAsksForMoreThanWasSeenIsAnsweredWithBothFigures) {
  ASSERT_THAT(exchange(k_rates), IsOk());
  host_.used({"job1"}, run({"job1"}, 13'000), key_, 60'000);
  host_.used({"job2"}, run({"job2"}, 13'000, "eve"), key_, 10'000);
  ASSERT_THAT(exchange(), IsOk());
  const auto kept = *store_->receipts();
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_FALSE(kept[0].agreed);
  EXPECT_EQ(kept[0].asked_micro, 60'000);
  EXPECT_EQ(kept[0].counted_micro, 15'000) << "ten seconds, and the slack";
  EXPECT_EQ(kept[1].counted_micro, 0) << "it ran elsewhere";
  EXPECT_NEAR(registry_->spent({"job1"}, {50'000})->usd, 0.015, 1e-9);
  ASSERT_EQ(host_.answers.size(), 2U);
  EXPECT_THAT(host_.answers[0], HasSubstr("more GPU time"));
}

TEST_F(ReceiptExchange, ASetupIsPaidToo) {
  ASSERT_THAT(exchange(k_rates), IsOk());
  host_.used({"job1"}, run({"job1"}, 73'000, "bob", "pip install x"), key_, 70'000);
  ASSERT_THAT(exchange(), IsOk());
  const auto kept = *store_->receipts();
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_TRUE(kept[0].agreed) << "one minute of setup and ten seconds of run";
  EXPECT_EQ(kept[0].counted_micro, 70'000);
}

TEST_F(ReceiptExchange, AnAttemptThatItsHostDidNotStartIsNotPaid) {
  host_.rates = {0, 0, 0, 20'000};  // two cents at least
  ASSERT_THAT(exchange(host_.rates), IsOk());
  job::Spec spec;
  spec.name = "train";
  spec.run = "true";
  const JobId id{"job1"};
  EXPECT_TRUE(registry_->submit(id, spec, {1000}, {}));
  EXPECT_TRUE(registry_->apply(id, {{2000}, job::Placed{{job::Member{0, {"bob"}, {}, {}, 1, 0, 3.6}}, "cheapest"}}));
  const Epoch epoch = registry_->job(id)->machine.epoch;
  EXPECT_TRUE(registry_->apply(id, {{2100}, job::LaunchAccepted{epoch}}));
  EXPECT_TRUE(registry_->apply(id, {{2200}, job::AttemptEnded{epoch, job::End{job::EndKind::start_failed, -1, 0, "no room"}}}));
  EXPECT_TRUE(registry_->apply(id, {{2200}, job::Collected{epoch, ""}}));
  host_.used(id, epoch, key_, 1'000);
  ASSERT_THAT(exchange(), IsOk());
  const auto kept = *store_->receipts();
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept[0].asked_micro, 20'000);
  EXPECT_EQ(kept[0].counted_micro, 0);
  EXPECT_THAT(host_.answers[0], HasSubstr("never began"));
}

TEST_F(ReceiptExchange, AnAttemptIsPaidOnce) {
  ASSERT_THAT(exchange(k_rates), IsOk());
  const Epoch epoch = run({"job1"}, 13'000);
  for (int twice = 0; twice < 2; ++twice) host_.used({"job1"}, epoch, key_, 10'000);
  ASSERT_THAT(exchange(), IsOk());
  host_.used({"job1"}, epoch, key_, 10'000);
  ASSERT_THAT(exchange(), IsOk());
  const auto kept = *store_->receipts();
  ASSERT_EQ(kept.size(), 3U);
  EXPECT_TRUE(kept[0].agreed);
  for (const std::size_t at : {1, 2}) {
    EXPECT_FALSE(kept[at].agreed);
    EXPECT_EQ(kept[at].counted_micro, 0);
    EXPECT_THAT(host_.answers[at], HasSubstr("billed already, by receipt 1"));
  }
  EXPECT_EQ(store_->disputed({"job1"})->size(), 2U);
}

TEST_F(ReceiptExchange, AChainThatWasCutOrForkedThereIsNoticed) {
  ASSERT_THAT(exchange(k_rates), IsOk());
  used(4);
  ASSERT_THAT(exchange(), IsOk());
  const std::vector<std::string> whole = host_.book;
  const auto trouble = [&] { return exchange()->chain.trouble; };
  EXPECT_EQ(trouble(), "");
  host_.book.resize(3);
  EXPECT_THAT(trouble(), HasSubstr("cut off: the host's last receipt is number 3, and number 4 was already answered here"));
  host_.used({"job4"}, registry_->job({"job4"})->machine.epoch, key_, 9'000);
  EXPECT_THAT(trouble(), HasSubstr("fork: the host has another receipt 4"));
  host_.used({"job9"}, run({"job9"}, 13'000), key_, 10'000);
  EXPECT_THAT(trouble(), HasSubstr("fork: the host has another receipt 4"));
  EXPECT_EQ(store_->receipts()->size(), 4U) << "nothing of it is taken";
  host_.book = whole;
  host_.book[3][20] ^= 1;
  EXPECT_THAT(trouble(), HasSubstr("damaged"));
  host_.book = whole;
  host_.seed.bytes.fill(std::byte{9});
  EXPECT_THAT(trouble(), HasSubstr("another key"));
  host_.seed.bytes.fill(std::byte{1});
  EXPECT_EQ(trouble(), "") << "all is as it was";
}

}  // namespace
}  // namespace gridctl::control::receipt_keeper_test
