// SPDX-License-Identifier: Apache-2.0
#include "lend/receipt_book.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "os/entries.hpp"
#include "os/process.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"
#include "wire/guest.hpp"
#include "wire/receipts.hpp"

namespace gridctl::lend::receipt_book_test {
namespace {

struct ReceiptBookTest : ::testing::Test {
  gridctl::testing::TempDir dir;
  os::Path invitation = dir / "lend" / "invitation1", receipts = invitation / wire::k_receipts_folder, uses = receipts / wire::k_receipts_uses;
  os::Clock& clock = os::system_clock();
  Digest researcher;

  void SetUp() override {
    researcher.bytes.fill(std::byte{7});
    wire::GuestTerms terms;
    terms.controller = {"controller1"};
    ASSERT_TRUE(os::make_directories(uses));
    ASSERT_TRUE(os::write_file_durably(invitation / "terms.json", wire::encode(terms)));
    ASSERT_TRUE(os::write_file_durably(receipts / wire::k_receipts_researcher_key, to_hex(crypto::ed25519_public(researcher))));
  }
  void used(const std::string& job, std::uint64_t ms, bool done, std::string boot = os::boot_id()) const {
    wire::UseMark mark;
    mark.job = {job};
    mark.epoch = Epoch{3};
    mark.rates = {3'600'000, 0, 0, 0};
    mark.gpus = 1;
    mark.use.gpu_ms = ms;
    mark.boot_id = std::move(boot);
    mark.done = done;
    ASSERT_TRUE(os::write_file_durably(uses / (job + ".3"), wire::encode(mark)));
  }
  [[nodiscard]] std::size_t make() const {
    const Result<std::size_t> made = make_receipts(invitation, clock);
    EXPECT_TRUE(made) << made.error().message;
    return made ? *made : 0;
  }
  [[nodiscard]] ChainReport check() const {
    const Result<ReceiptBook> book = read_receipts(invitation);
    EXPECT_TRUE(book);
    return check_chain(book->lines, book->head);
  }
};

TEST_F(ReceiptBookTest, AnAttemptThatHasEndedGetsOneReceipt) {
  used("one", 5'000, true);
  used("running", 5'000, false);
  EXPECT_EQ(make(), 1U);
  EXPECT_EQ(make(), 0U);
  used("running", 7'000, true);
  EXPECT_EQ(make(), 1U);
  const ChainReport report = check();
  EXPECT_EQ(report.fault, ChainFault::none) << report.text;
  EXPECT_EQ(report.asked, 12'000);
  EXPECT_FALSE(report.receipts.back().receipt.lost);
}

TEST_F(ReceiptBookTest, OneThatDiedWithTheMachineIsBilledUpToItsLastMark) {
  used("cut", 5'000, false, "another boot");
  EXPECT_EQ(make(), 1U);
  EXPECT_TRUE(check().receipts.front().receipt.lost);
}

TEST_F(ReceiptBookTest, WhatNeverRanCostsNothing) {
  used("refused", 0, true);
  EXPECT_EQ(make(), 0U);
  EXPECT_TRUE(os::list_directory(uses)->empty());
}

TEST_F(ReceiptBookTest, ItWaitsForTheResearchersKey) {
  ASSERT_TRUE(os::remove_file(receipts / wire::k_receipts_researcher_key));
  used("one", 5'000, true);
  EXPECT_EQ(make(), 0U);
  ASSERT_TRUE(os::write_file_durably(receipts / wire::k_receipts_researcher_key, to_hex(crypto::ed25519_public(researcher))));
  EXPECT_EQ(make(), 1U);
}

// The power may go between the receipt and the removal of the mark, and within the receipt's line.
TEST_F(ReceiptBookTest, NeitherLosesNorDoublesAReceiptInACrash) {
  used("one", 5'000, true);
  EXPECT_EQ(make(), 1U);
  used("one", 5'000, true);  // its removal was lost
  EXPECT_EQ(make(), 0U);
  const std::string whole = os::read_file(receipts / wire::k_receipts_book).value();
  for (std::size_t cut = 1; cut < 400; cut += 57) {
    const std::string job = "job" + std::to_string(cut);
    used(job, 1'000, true);
    const std::string before = os::read_file(receipts / wire::k_receipts_book).value();
    std::ofstream(receipts / wire::k_receipts_book, std::ios::app) << whole.substr(0, cut);  // half a line
    EXPECT_EQ(make(), 1U);
    EXPECT_TRUE(os::read_file(receipts / wire::k_receipts_book).value().starts_with(before));
  }
  const ChainReport report = check();
  EXPECT_EQ(report.fault, ChainFault::none) << report.text;
  EXPECT_EQ(report.receipts.size(), 8U);
}

TEST_F(ReceiptBookTest, AnEndThatTheResearcherKnowsIsMissed) {
  used("one", 5'000, true);
  EXPECT_EQ(make(), 1U);
  ASSERT_TRUE(os::write_file_durably(receipts / wire::k_receipts_known, "2\n"));
  EXPECT_EQ(check().fault, ChainFault::cut);
}

TEST_F(ReceiptBookTest, ReceiptsAreSavedBeforeTheFolderGoes) {
  EXPECT_EQ(save_receipts(invitation, dir.path(), "x").value(), os::Path{});
  used("one", 5'000, true);
  EXPECT_EQ(make(), 1U);
  const os::Path file = save_receipts(invitation, dir.path(), "invitation1").value();
  EXPECT_EQ(file, dir / "gridctl-receipts-invitation1.jsonl");
  EXPECT_EQ(os::read_file(file).value(), os::read_file(receipts / wire::k_receipts_book).value());
}

}  // namespace
}  // namespace gridctl::lend::receipt_book_test
