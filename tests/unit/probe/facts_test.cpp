// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cstdlib>

#include "base/text.hpp"
#include "fixture.hpp"
#include "probe/facts.hpp"

namespace gridctl::probe::facts_test {
namespace {

TEST(Facts, FindIdRangesByNameAndByNumber) {
  EXPECT_TRUE(has_id_range("bob:100000:65536\nada:165536:65536\n", "ada", 1000));
  EXPECT_TRUE(has_id_range("1000:165536:65536\n", "ada", 1000));
  EXPECT_FALSE(has_id_range("ada:165536:1000\n", "ada", 1000));
  EXPECT_FALSE(has_id_range("adam:165536:65536\n", "ada", 1000));
  EXPECT_FALSE(has_id_range("", "ada", 1000));
}

TEST(Facts, FindTheUsersName) {
  EXPECT_EQ(user_name("root:x:0:0::/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/bash\n", 1000), "ada");
  EXPECT_EQ(user_name("root:x:0:0::/root:/bin/sh\n", 1000), "");
}

TEST(Facts, FindTheMountThatHoldsAPath) {
  constexpr const char* k_mounts =
      "21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
      "22 21 8:2 / /home rw,nosuid,noexec - ext4 /dev/sda2 rw\n"
      "23 22 8:3 / /home/my\\040data rw - ext4 /dev/sda3 rw\n";
  EXPECT_EQ(join(mount_of_path(k_mounts, "/var/x").options, ","), "rw,relatime");
  EXPECT_EQ(join(mount_of_path(k_mounts, "/home/ada/.gridctl").options, ","), "rw,nosuid,noexec");
  EXPECT_EQ(join(mount_of_path(k_mounts, "/homework").options, ","), "rw,relatime");
  EXPECT_EQ(join(mount_of_path(k_mounts, "/home/my data/x").options, ","), "rw");
}

TEST(Facts, OfTwoMountsOnAPointTheLaterCounts) {
  constexpr const char* k_mounts =
      "22 21 8:2 / /home rw - ext4 /dev/sda2 rw\n"
      "23 21 8:3 / /home ro,noexec - ext4 /dev/sda3 rw\n"
      "24 21 8:4 / /ho rw,nodev - ext4 /dev/sda4 rw\n"
      "25 21 8:5 / /short\n";
  EXPECT_EQ(join(mount_of_path(k_mounts, "/home").options, ","), "ro,noexec");
  EXPECT_EQ(join(mount_of_path(k_mounts, "/var/../home/./x").options, ","), "ro,noexec");
  EXPECT_EQ(join(mount_of_path(k_mounts, "/short").options, ","), "");
}

TEST(Facts, ReadTheNamesOfMountsAsTheKernelWritesThem) {
  EXPECT_EQ(unescaped_mount("/a\\040b\\134c"), "/a b\\c");
  for (const char* plain : {"", "/a", "\\", "\\0", "\\04", "\\048", "\\080", "\\800", "\\0x0", "\\/00"})
    EXPECT_EQ(unescaped_mount(plain), plain);
  EXPECT_EQ(unescaped_mount("\\0401"), " 1");
}

TEST(Facts, TakeNoLineForAnother) {
  EXPECT_FALSE(has_id_range("ada:100000\n", "ada", 1000));
  EXPECT_FALSE(has_id_range("ada:100000:65535\n", "ada", 1000));
  EXPECT_TRUE(has_id_range("ada:100000:10\nada:200000:65536\n", "ada", 1000)) << "one range that is large enough";
  EXPECT_EQ(user_name("short:x\nada:x:1000\n", 1000), "ada");
}

class HostFactsTest : public ProbeTest {
 protected:
  [[nodiscard]] HostFacts facts() const { return read_facts(HostFiles(root()), toolbox(), home(), os::system_clock()); }
};

TEST_F(HostFactsTest, HaveSubordinateIdsOnlyWithBothKinds) {
  file("/proc/self/status", "Name:\tx\nUid:\t1000\t0\t0\t0\n");
  file("/etc/passwd", "ada:x:1000:1000::/home/ada:/bin/bash\n");
  file("/etc/subuid", "ada:100000:65536\n");
  tool("newuidmap", "");
  EXPECT_FALSE(facts().subuid);
  EXPECT_FALSE(facts().newuidmap);
  file("/etc/subgid", "ada:100000:65536\n");
  tool("newgidmap", "");
  EXPECT_TRUE(facts().subuid);
  EXPECT_TRUE(facts().newuidmap);
  file("/etc/subuid", "");
  std::filesystem::remove(bin() / "newuidmap");
  EXPECT_FALSE(facts().subuid);
  EXPECT_FALSE(facts().newuidmap);
}

TEST_F(HostFactsTest, TellOfAHomeThatNothingMayRunFrom) {
  file("/proc/self/mountinfo", "21 1 8:1 / / rw,noexec,relatime - ext4 /dev/sda1 rw\n");
  EXPECT_TRUE(facts().home_noexec);
  file("/proc/self/mountinfo", "21 1 8:1 / / rw,noexecutable - ext4 /dev/sda1 rw\n");
  EXPECT_FALSE(facts().home_noexec);
  EXPECT_EQ(facts().home_path, home().native());
  EXPECT_EQ(facts().home_file_system, os::file_system_kind(home()));
}

TEST_F(HostFactsTest, NameTheUserByTheLoginWhereNoFileDoes) {
  const std::string user = os::environment("USER").value_or(""), name = os::environment("LOGNAME").value_or("");
  ::setenv("USER", "", 1);
  ::setenv("LOGNAME", "from-ldap", 1);
  EXPECT_EQ(facts().user, "from-ldap");
  ::setenv("USER", "first", 1);
  EXPECT_EQ(facts().user, "first");
  file("/proc/self/status", "Uid:\t7\t7\t7\t7\n");
  file("/etc/passwd", "listed:x:7:7::/:/bin/sh\n");
  EXPECT_EQ(facts().user, "listed");
  ::setenv("USER", user.c_str(), 1);
  ::setenv("LOGNAME", name.c_str(), 1);
}

TEST_F(HostFactsTest, MeasureSharedMemoryWhereThereIsSome) {
  EXPECT_EQ(facts().shm_bytes, 0u);
  std::filesystem::create_directories(root() / "dev/shm");
  EXPECT_GT(facts().shm_bytes, 0u);
}

TEST_F(HostFactsTest, AreReadFromTheHost) {
  file("/proc/self/status", "Uid:\t1000\t1000\t1000\t1000\n");
  file("/etc/passwd", "ada:x:1000:1000::/home/ada:/bin/bash\n");
  file("/etc/subuid", "ada:100000:65536\n");
  file("/etc/subgid", "ada:100000:65536\n");
  tool("newuidmap", "");
  tool("newgidmap", "");
  const HostFacts facts = read_facts(HostFiles(root()), toolbox(), home(), os::system_clock());
  EXPECT_EQ(facts.user, "ada");
  EXPECT_EQ(facts.uid, 1000u);
  EXPECT_TRUE(facts.subuid);
  EXPECT_TRUE(facts.newuidmap);
  EXPECT_TRUE(facts.home_writable) << facts.home_problem;
  EXPECT_FALSE(facts.home_noexec);
  EXPECT_GT(facts.clock_wall_ms, 0);
  EXPECT_TRUE(std::filesystem::is_empty(home())) << "the probe leaves nothing behind";
}

TEST_F(HostFactsTest, SayWhyTheHomeCannotBeWritten) {
  file("/in-the-way", "");
  const HostFacts facts =
      read_facts(HostFiles(root()), toolbox(), root() / "in-the-way" / ".gridctl", os::system_clock());
  EXPECT_FALSE(facts.home_writable);
  EXPECT_FALSE(facts.home_problem.empty());
}

TEST(FactEdges, RangesOfIdsAreLargeEnough) {
  EXPECT_TRUE(has_id_range("ada:1:65536\n", "ada", 5));
  EXPECT_FALSE(has_id_range("ada:1:65535\n", "ada", 5));
  EXPECT_TRUE(has_id_range("ada:1:1\nada:1:65536\n", "ada", 5)) << "any of them";
  EXPECT_FALSE(has_id_range("ada:1:65536:x\n", "ada", 5));
  EXPECT_FALSE(has_id_range("ada:1:x\n", "ada", 5));
  EXPECT_EQ(user_name("a:x\nb:x:7\n", 7), "b");
  const char* one_over_other = "21 1 8:1 / / rw - x\n22 1 8:1 / /a ro - x\n23 1 8:1 / /a noexec - x\n";
  EXPECT_EQ(join(mount_of_path(one_over_other, "/a/b").options, ","), "noexec")
      << "the later one hides the earlier";
  EXPECT_EQ(join(mount_of_path("21 1 8:1 / /\n", "/a").options, ","), "");
  EXPECT_EQ(join(mount_of_path("21 1 8:1 / /a rw - x\n", "/a").options, ","), "rw");
}

}  // namespace
}  // namespace gridctl::probe::facts_test
