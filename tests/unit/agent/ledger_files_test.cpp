// SPDX-License-Identifier: Apache-2.0
// One user's own file of leases: who may change it, and what is there afterwards.
#include "agent/ledger_files.hpp"

#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "os/clock.hpp"
#include "os/entries.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent::ledger_files_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class OwnLedgerFile : public ::testing::Test {
 protected:
  const std::string base_ = "gridctl-leases." + std::to_string(::geteuid());
  gridctl::testing::TempDir dir_;
  const os::Path folder_ = dir_ / "leases";
  const Result<LedgerFolder> ledger_ = LedgerFolder::open(folder_);
};

TEST_F(OwnLedgerFile, IsWholeForWhoeverReadsIt) {
  ASSERT_THAT(ledger_, IsOk());
  EXPECT_EQ(ledger_->own().value(), "") << "there is none yet";
  {
    const auto own = ledger_->lock_own(1s, os::system_clock());
    ASSERT_THAT(own, IsOk());
    EXPECT_EQ(own->read().value(), "");
    ASSERT_THAT(own->write("first"), IsOk());
    ASSERT_THAT(own->write("second"), IsOk());
    EXPECT_EQ(own->read().value(), "second");
    EXPECT_EQ(ledger_->own().value(), "second");
  }
  EXPECT_THAT(os::list_directory(folder_).value(), UnorderedElementsAre(base_, base_ + ".lock")) << "no draft is left";
  EXPECT_TRUE(ledger_->others()->empty()) << "ours is not another's";
}

TEST_F(OwnLedgerFile, IsChangedByOneProcessAtATime) {
  ASSERT_THAT(ledger_, IsOk());
  ASSERT_THAT(ledger_->lock_own(1s, os::system_clock())->write("x"), IsOk());
  const os::Fd other(::open((folder_ / (base_ + ".lock")).c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  const auto busy = ledger_->lock_own(50ms, os::system_clock());
  ASSERT_THAT(busy, FailsWith(Code::busy));
  EXPECT_THAT(busy.error().message, HasSubstr("locked by another process"));
  EXPECT_EQ(ledger_->own().value(), "x") << "who only reads waits for nobody";
  ASSERT_EQ(::flock(other.get(), LOCK_UN), 0);
  EXPECT_THAT(ledger_->lock_own(50ms, os::system_clock()), IsOk());
}

TEST_F(OwnLedgerFile, LooksYoungAfterEachUse) {
  ASSERT_THAT(ledger_, IsOk());
  ASSERT_THAT(ledger_->lock_own(1s, os::system_clock()), IsOk());
  const os::Path lock = folder_ / (base_ + ".lock");
  const timespec old[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, lock.c_str(), old, 0), 0);
  ASSERT_THAT(ledger_->lock_own(1s, os::system_clock()), IsOk());
  EXPECT_GT((*os::status_of(lock))->mtime_ns, 1'000'000'000'000'000) << "what looks old is cleared away";
}

TEST_F(OwnLedgerFile, GoesByAnotherNameWhereItsOwnIsTaken) {
  ASSERT_THAT(ledger_, IsOk());
  ASSERT_THAT(os::make_directories(folder_ / base_), IsOk());
  {
    const auto own = ledger_->lock_own(1s, os::system_clock());
    ASSERT_THAT(own, IsOk());
    ASSERT_THAT(own->write("x"), IsOk());
  }
  EXPECT_EQ(ledger_->own().value(), "x");
  const auto again = ledger_->lock_own(1s, os::system_clock());
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->read().value(), "x") << "and by that one from now on";
}

TEST_F(OwnLedgerFile, OfVersionOneIsReadAsThatOfItsOwner) {
  ASSERT_THAT(ledger_, IsOk());
  ASSERT_THAT(os::make_directories(folder_ / "gridctl-leases"), IsOk());
  std::ofstream(folder_ / "gridctl-leases/ledger") << "old";
  const auto others = ledger_->others();
  ASSERT_THAT(others, IsOk());
  ASSERT_EQ(others->size(), 1u);
  EXPECT_EQ(others->front().owner, ::geteuid());
  EXPECT_EQ(others->front().content, "old");
}

TEST_F(OwnLedgerFile, IsNoneOfThoseWhoseNamesAreOdd) {
  ASSERT_THAT(ledger_, IsOk());
  const std::string uid = std::to_string(::geteuid());
  for (const std::string& name : std::vector<std::string>{base_ + "x", base_ + ".", base_ + ".1x", base_ + "-1",
                                                          "gridctl-leases.x", "gridctl-lease." + uid})
    std::ofstream(folder_ / name) << "not ours";
  EXPECT_EQ(ledger_->own().value(), "");
  std::ofstream(folder_ / ("gridctl-leases." + uid + ".7")) << "ours";
  EXPECT_EQ(ledger_->own().value(), "ours");
}

}  // namespace
}  // namespace gridctl::agent::ledger_files_test
