// SPDX-License-Identifier: Apache-2.0
#include "probe/facts.hpp"

#include "fixture.hpp"

namespace gridctl::probe {
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
  EXPECT_EQ(mount_options(k_mounts, "/var/x"), "rw,relatime");
  EXPECT_EQ(mount_options(k_mounts, "/home/ada/.gridctl"), "rw,nosuid,noexec");
  EXPECT_EQ(mount_options(k_mounts, "/homework"), "rw,relatime");
  EXPECT_EQ(mount_options(k_mounts, "/home/my data/x"), "rw");
}

class HostFactsTest : public ProbeTest {};

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

}  // namespace
}  // namespace gridctl::probe
