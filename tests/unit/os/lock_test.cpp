// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include "os/files.hpp"
#include "os/process.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::os::lock_test {
namespace {

using gridctl::testing::IsOk;
using gridctl::testing::TempDir;

TEST(FileLock, IsHeldByOneUntilItIsDropped) {
  const TempDir dir;
  std::optional<FileLock> first = FileLock::try_acquire(dir / "lock").value();
  ASSERT_TRUE(first);
  EXPECT_FALSE(FileLock::try_acquire(dir / "lock").value());
  first.reset();
  EXPECT_TRUE(FileLock::try_acquire(dir / "lock").value());
}

TEST(FileLock, HoldsOurPidForPeople) {
  const TempDir dir;
  const std::optional<FileLock> lock = FileLock::try_acquire(dir / "lock").value();
  EXPECT_EQ(*read_file(dir / "lock"), std::to_string(::getpid()) + "\n");
}

TEST(FileLock, TwoThreadsThatAlsoRemoveTheFileNeverHoldItTogether) {
  const TempDir dir;
  std::atomic<int> inside{0}, together{0};
  const auto work = [&] {
    for (int i = 0; i < 300; ++i) {
      const Result<FileLock> lock = FileLock::acquire(dir / "lock");
      if (++inside > 1) ++together;
      --inside;
      std::filesystem::remove(dir / "lock");  // its holder's last act: whoever waits for the old file must notice
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(together, 0);
}

TEST(FileLock, IsNotInheritedByChildren) {
  const TempDir dir;
  std::optional<FileLock> lock = FileLock::try_acquire(dir / "lock").value();
  ASSERT_TRUE(lock);
  const Result<int> child = spawn({"sleep", "60"}, {});
  ASSERT_THAT(child, IsOk());
  lock.reset();
  EXPECT_TRUE(FileLock::try_acquire(dir / "lock").value());
  ASSERT_TRUE(send_signal(*identify(*child), 9).value());
  EXPECT_EQ(wait(*child)->signal, 9);
}

}  // namespace
}  // namespace gridctl::os::lock_test
