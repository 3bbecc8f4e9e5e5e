// SPDX-License-Identifier: Apache-2.0
#include "bag/journal.hpp"

#include <gtest/gtest.h>

#include <random>

#include "bag/bag.hpp"

namespace gridctl::bag::journal_test {
namespace {

wire::TaskResult result(Index index, std::uint64_t order, std::uint8_t exit_code = 0) {
  wire::TaskResult one;
  one.index = index;
  one.order = order;
  one.exit_code = exit_code;
  one.began.ms = 1'764'000'000'000 + static_cast<std::int64_t>(index);
  one.ms = 3;
  one.peak_kib = 900 + static_cast<std::uint32_t>(index % 7);
  one.offset = index * 4;
  one.bytes = 4;
  return one;
}

std::vector<Record> some_records() {
  wire::TaskResult odd = result(9, 3, 200);
  odd.signal = 11;
  odd.end = wire::TaskEnd::oom;
  odd.dropped = 1ull << 40;
  odd.error_bytes = 17;
  odd.file_bytes = 1ull << 33;
  wire::TaskResult several = result(12, 4);
  several.end = wire::TaskEnd::revoked;
  several.count = 8;
  return {Begun{200, 3},
          Joined{{1, 7}, 3, "ada"},
          Ordered{{1, 7}, wire::OrderKind::grant, {{0, 10}, {12, 8}, {5, 1}}, 0},
          Ordered{{1, 7}, wire::OrderKind::revoke, {{12, 8}}, 3},
          Told{{1, 7}, 0, {result(0, 0), result(1, 0), odd, several}},
          Closed{{1, 7}, {3, 4}},
          Resumed{},
          Rebased{{1, 7}, 5, 6},
          Begun{300},
          Joined{{2, 8}, 1, "bob", 2},
          Capped{2},
          Begun{400, 1, true}};
}

std::vector<Record> read_all(std::string_view file, Scan* how = nullptr) {
  std::vector<Record> records;
  const Scan found = scan(file, [&](const Record& one) { records.push_back(one); });
  if (how != nullptr) *how = found;
  return records;
}

std::string file_of(const std::vector<Record>& records) {
  std::string file(k_magic);
  for (const Record& one : records) file += encode(one);
  return file;
}

TEST(Journal, GivesBackWhatWasWritten) {
  Scan how;
  const std::string file = file_of(some_records());
  EXPECT_EQ(read_all(file, &how), some_records());
  EXPECT_FALSE(how.damaged());
  EXPECT_EQ(how.end, file.size());
  EXPECT_TRUE(read_all("").empty());
}

// 1,000,000 tasks are to take at most 20 MB.
TEST(Journal, TakesFewBytesForEachTask) {
  Told told{{1, 1}, 0, {}};
  for (Index index = 0; index < 4096; ++index) told.results.push_back(result(index, index / 64));
  EXPECT_LT(encode(told).size(), 4096 * 12);
}

TEST(Journal, CutAnywhereGivesTheRecordsBeforeTheCut) {
  const std::vector<Record> all = some_records();
  const std::string file = file_of(all);
  for (std::size_t size = 0; size < file.size(); ++size) {
    Scan how;
    const std::vector<Record> got = read_all(std::string_view(file).substr(0, size), &how);
    ASSERT_LE(got.size(), all.size());
    ASSERT_TRUE(std::equal(got.begin(), got.end(), all.begin())) << size;
    ASSERT_LE(how.end, size);
  }
}

// A bag of which results came in any order, with another journal for the same events where bytes are flipped: nothing
// that is said to be done was not done, and nothing is done twice.
TEST(Journal, FlippedAtAnyByteNeverClaimsATaskThatWasNotDone) {
  std::mt19937 draw(99);
  std::vector<Record> records{Begun{500}, Joined{{1, 1}, 1, "ada"}, Joined{{2, 5}, 1, "bob"}};
  std::uint64_t told[2] = {0, 0}, orders[2] = {0, 0};
  std::vector<bool> done(500);
  for (Index first = 0; first < 400; first += 10) {
    const std::uint64_t which = draw() % 2;
    const Worker worker = which == 0 ? Worker{1, 1} : Worker{2, 5};
    records.push_back(Ordered{worker, wire::OrderKind::grant, {{first, 10}}, orders[which]});
    Told results{worker, told[which], {}};
    for (Index index = first; index < first + 10; ++index) {
      results.results.push_back(result(index, orders[which]));
      done[index] = true;
    }
    ++orders[which];
    told[which] += 10;
    records.push_back(results);
  }
  const std::string file = file_of(records);
  for (int i = 0; i < 1000; ++i) {
    std::string bad = file;
    if (i % 2 == 0) bad[draw() % bad.size()] ^= static_cast<char>(1u << (draw() % 8));
    else bad.resize(draw() % bad.size());
    Bag bag;
    Scan how = scan(bad, [&](const Record& one) { bag.apply(one); });
    if (i % 2 == 0) {
      ASSERT_TRUE(how.damaged());
    }
    const Progress now = bag.progress();
    if (i % 2 == 0 && now.tasks > 0) {
      ASSERT_GE(now.done, 390) << "one record is lost, and not what follows";
    }
    std::uint64_t count = 0;
    for (Index index = 0; index < 500; ++index)
      if (bag.is_done(index)) {
        ++count;
        ASSERT_TRUE(done[index]) << index;
      }
    ASSERT_EQ(now.done, count);
    if (now.tasks > 0) {
      ASSERT_EQ(now.tasks, 500);
      ASSERT_LE(now.done + now.failed + now.held + bag.waiting(), 500);
    }
  }
}

TEST(Journal, BytesThatAreNoRecordsAreNoHarm) {
  std::mt19937 draw(5);
  for (int i = 0; i < 300; ++i) {
    std::string noise(draw() % 300, '\0');
    for (char& c : noise) c = static_cast<char>(draw());
    (void)read_all(noise);
    (void)read_all(std::string(k_magic) + noise);
  }
}

}  // namespace
}  // namespace gridctl::bag::journal_test
