// SPDX-License-Identifier: Apache-2.0
#include "agent/bag_host.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "agent/bag_files.hpp"
#include "agent/bag_output.hpp"
#include "os/process.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent::bag_host_test {
namespace {

using std::chrono::milliseconds;
using gridctl::testing::IsOk;
using wire::OrderKind;
using wire::TaskEnd;

class BagHostTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(attempt() / "ctl");
    std::ofstream(attempt() / "boot") << os::boot_id() << "\n";  // else it has ended with another boot
  }
  [[nodiscard]] std::filesystem::path attempt() const { return folder_ / "jobs/ada/job/3"; }
  void begin_run() const { std::filesystem::create_directories(attempt() / "run/1"); }
  wire::BagReply ask(const std::vector<wire::BagAsk>& workers, Duration wait = {}) {
    return host_.answer({workers, wait}, [] { return true; });
  }
  [[nodiscard]] static wire::BagAsk worker(std::uint64_t from, std::vector<wire::BagOrder> orders,
                                           std::uint64_t results_from = 0) {
    return {{"job"}, {3}, from, std::move(orders), results_from};
  }
  static wire::BagOrder grant(std::uint64_t first) { return {OrderKind::grant, first, 1, {}, 0}; }

  gridctl::testing::TempDir folder_;
  Requests requests_{folder_.path(), {"ada"}, os::system_clock()};
  BagHost host_{requests_, os::system_clock()};
};

TEST_F(BagHostTest, TakesOrdersBeforeTheWorkerIsUpAndOnlyOnce) {
  for (int i = 0; i < 2; ++i) {
    const auto told = ask({worker(0, {grant(1), grant(2)})}).workers.at(0);
    ASSERT_FALSE(told.error);
    EXPECT_EQ(told.orders_seen, 2u);
  }
  EXPECT_EQ(OrderReader(attempt() / "ctl").read().size(), 2u);
  EXPECT_EQ(ask({worker(5, {grant(9)})}).workers[0].error->code, Code::refused);
  EXPECT_EQ(ask({worker(5, {})}).workers[0].orders_seen, 2u);
}

TEST_F(BagHostTest, AnswersForEachWorkerByItself) {
  wire::BagAsk other = worker(0, {grant(1)});
  other.epoch = {4};
  wire::BagAsk foreign = worker(0, {grant(1)});
  foreign.job = {"../job"};
  const auto reply = ask({other, worker(0, {grant(7)}), foreign});
  ASSERT_EQ(reply.workers.size(), 3u);
  EXPECT_EQ(reply.workers[0].error->code, Code::not_found);
  EXPECT_FALSE(reply.workers[1].error);
  EXPECT_TRUE(reply.workers[2].error);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "jobs/ada/job/4"));
}

TEST_F(BagHostTest, AnswersWhenThereIsAResultAndNotMuchLater) {
  begin_run();
  auto results = ResultWriter::open(attempt() / "run/1");
  ASSERT_THAT(results, IsOk());
  std::thread worker_process([&] {
    os::pause_for(milliseconds{150});
    EXPECT_TRUE(results->append({8, 1, 0, TaskEnd::timeout}));
  });
  const BootTime began = os::system_clock().boot();
  const auto told = ask({worker(0, {})}, std::chrono::seconds{10}).workers.at(0);
  const Duration took = os::system_clock().boot() - began;
  worker_process.join();
  EXPECT_GE(took, milliseconds{140});
  EXPECT_LT(took, std::chrono::seconds{5});
  ASSERT_EQ(told.results.size(), 1u);
  EXPECT_EQ(told.results[0].index, 8u);
  EXPECT_TRUE(ask({worker(0, {}, 1)}).workers[0].results.empty());
  EXPECT_EQ(ask({worker(0, {}, 1)}).workers[0].results_end, 1u);
}

TEST_F(BagHostTest, HandsOverOutputAndForgetsWhatIsTaken) {
  begin_run();
  OutputWriter writer(attempt() / "run/1", 1ull << 30);
  for (int i = 0; i < 3; ++i) {
    TaskOutput output;
    output.add(std::string(8 << 20, static_cast<char>('a' + i)), 1ull << 30, folder_.path());
    ASSERT_TRUE(writer.append(output));
  }
  auto board = Board::make(attempt() / "run/1", 1);
  ASSERT_THAT(board, IsOk());
  board->tell({0, 0, writer.end()});
  std::string bytes;
  auto head = host_.output({{"job"}, {3}, (8 << 20) - 1, 2}, bytes);
  ASSERT_THAT(head, IsOk());
  EXPECT_EQ(bytes, "ab");
  wire::BagAsk taken = worker(0, {});
  taken.output_from = 20 << 20;
  EXPECT_EQ(ask({taken}).workers[0].output_begin, k_output_piece_bytes);
  head = host_.output({{"job"}, {3}, 0, 1}, bytes);
  ASSERT_THAT(head, IsOk());
  EXPECT_EQ(head->offset, k_output_piece_bytes);
  EXPECT_EQ(bytes, "c");
}

}  // namespace
}  // namespace gridctl::agent::bag_host_test
