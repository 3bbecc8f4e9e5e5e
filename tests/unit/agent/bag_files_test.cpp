// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>

#include "agent/bag_files.hpp"
#include "agent/bag_output.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent::bag_files_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using wire::OrderKind;
using wire::TaskEnd;

wire::BagOrder granted(std::uint64_t first, std::uint64_t count, std::vector<std::string> items = {}) {
  return {OrderKind::grant, first, count, std::move(items), 0};
}

class BagFiles : public ::testing::Test {
 protected:
  [[nodiscard]] std::uint64_t append(std::uint64_t from, std::vector<wire::BagOrder> orders) const {
    auto count = append_orders(folder_.path(), from, orders);
    EXPECT_THAT(count, IsOk());
    return count ? *count : 0;
  }
  gridctl::testing::TempDir folder_;
};

TEST_F(BagFiles, TakeEachOrderOnceHoweverOftenItIsSent) {
  EXPECT_EQ(append(0, {granted(0, 1), granted(1, 1)}), 2u);
  EXPECT_EQ(append(0, {granted(0, 1), granted(1, 1)}), 2u);
  EXPECT_EQ(append(1, {granted(1, 1), granted(2, 1)}), 3u);
  EXPECT_THAT(append_orders(folder_.path(), 4, {granted(9, 1)}), FailsWith(Code::refused));
  OrderReader reader(folder_.path());
  const auto orders = reader.read();
  ASSERT_EQ(orders.size(), 3u);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(orders[i].first, i);
  EXPECT_TRUE(reader.read().empty());
  EXPECT_EQ(append(3, {granted(3, 1)}), 4u);
  EXPECT_EQ(reader.read().size(), 1u);
}

// Whoever wrote died in the middle: at every length.
TEST_F(BagFiles, GoOnBehindOrdersThatWereTorn) {
  EXPECT_EQ(append(0, {granted(0, 1, {"first"})}), 1u);
  const auto whole = std::filesystem::file_size(folder_ / "orders");
  EXPECT_EQ(append(1, {granted(1, 1, {"second"})}), 2u);
  const auto both = std::filesystem::file_size(folder_ / "orders");
  for (auto length = whole; length < both; ++length) {
    std::filesystem::resize_file(folder_ / "orders", length);
    OrderReader reader(folder_.path());
    EXPECT_EQ(reader.read().size(), 1u);
    EXPECT_EQ(append(1, {granted(1, 1, {"second"})}), 2u) << length;
    EXPECT_EQ(reader.read().size(), 1u);
    EXPECT_EQ(std::filesystem::file_size(folder_ / "orders"), both);
  }
}

TEST_F(BagFiles, GiveResultsByNumberAndNoneThatIsDamaged) {
  auto writer = ResultWriter::open(folder_.path());
  ASSERT_THAT(writer, IsOk());
  ASSERT_TRUE(writer->reserve(100));
  for (std::uint64_t i = 0; i < 100; ++i)
    ASSERT_TRUE(writer->append({i, 1, 7, TaskEnd::oom, 1, 2, {3}, 4, 5, i * 10, 6, 8, 9}));
  BagResults read = read_results(folder_.path(), 90, 5);
  EXPECT_EQ(read.end, 100u);
  ASSERT_EQ(read.results.size(), 5u);
  EXPECT_EQ(read.results[4], (wire::TaskResult{94, 1, 7, TaskEnd::oom, 1, 2, {3}, 4, 5, 940, 6, 8, 9}));
  std::fstream file(folder_ / "tasks", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(72 * 50 + 8) << 'x';
  file.close();
  read = read_results(folder_.path(), 0, 4096);
  EXPECT_EQ(read.results.size(), 50u);
  EXPECT_EQ(read.end, 50u);
}

TEST_F(BagFiles, TellWhatRunsNow) {
  auto board = Board::make(folder_.path(), 3);
  ASSERT_THAT(board, IsOk());
  board->tell({5, 6, 7});
  board->set(0, 0);
  board->set(2, 12);
  board->set(0, std::nullopt);
  const BoardView view = read_board(folder_.path());
  EXPECT_EQ(view.head.orders, 5u);
  EXPECT_EQ(view.head.output_end, 7u);
  EXPECT_EQ(view.running, std::vector<std::uint64_t>{12});
}

TEST_F(BagFiles, KeepOutputInPiecesUntilTheControllerHasIt) {
  constexpr std::uint64_t k_total = 3 * k_output_piece_bytes;
  OutputWriter writer(folder_.path(), k_total);
  const auto add = [&](std::size_t bytes, char fill) {
    TaskOutput output;
    output.add(std::string(bytes, fill), 1ull << 30, folder_.path());
    return writer.append(output);
  };
  EXPECT_TRUE(add(100, 'a'));
  EXPECT_TRUE(add(k_output_piece_bytes * 2, 'b'));  // through a file of its own, over pieces
  EXPECT_TRUE(add(10, 'c'));
  EXPECT_FALSE(add(k_output_piece_bytes, 'd'));
  EXPECT_EQ(writer.end(), k_output_piece_bytes * 2 + 110);
  std::string all;
  while (all.size() < writer.end()) {
    const auto slice = read_output(folder_.path(), 0, all.size(), 1 << 20);
    ASSERT_THAT(slice, IsOk());
    ASSERT_FALSE(slice->bytes.empty());
    all += slice->bytes;
  }
  EXPECT_EQ(all, std::string(100, 'a') + std::string(k_output_piece_bytes * 2, 'b') + std::string(10, 'c'));
  EXPECT_EQ(drop_output(folder_.path(), folder_.path(), k_output_piece_bytes + 5), k_output_piece_bytes);
  EXPECT_EQ(drop_output(folder_.path(), folder_.path(), 0), k_output_piece_bytes);
  EXPECT_EQ(read_output(folder_.path(), k_output_piece_bytes, 0, 100)->offset, k_output_piece_bytes);
  EXPECT_TRUE(add(100, 'd'));
}

TEST_F(BagFiles, CountWhatIsBeyondTheLimitOfATask) {
  TaskOutput output;
  for (int i = 0; i < 10; ++i) output.add(std::string(100'000, 'x'), 450'000, folder_.path());
  EXPECT_EQ(output.size(), 450'000u);
  EXPECT_EQ(output.dropped(), 550'000u);
}

}  // namespace
}  // namespace gridctl::agent::bag_files_test
