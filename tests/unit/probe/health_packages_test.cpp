// SPDX-License-Identifier: Apache-2.0
#include "probe/health_packages.hpp"

#include <algorithm>

#include "fixture.hpp"

namespace gridctl::probe::health_packages_test {
namespace {

using wire::Package;

bool is_exposed(const Package& package, std::string_view id, Exposure to) {
  const auto all = advisories();
  return std::any_of(all.begin(), all.end(),
                     [&](const Advisory& advisory) { return advisory.id == id && exposure(advisory, package) == to; });
}
bool is_exposed_at_all(const Package& package, std::string_view id) {
  return is_exposed(package, id, Exposure::likely) || is_exposed(package, id, Exposure::unclear);
}

TEST(Versions, TheyCompareAsDpkgDoes) {
  // deb-version(7)
  const std::vector<std::string> rising{"1.0~~", "1.0~rc1", "1.0", "1.0-1", "1.0-1+deb12u1",
                                        "1.0a",  "1.0+b",   "1.2", "1.10",  "1:0.1"};
  for (std::size_t i = 0; i < rising.size(); ++i)
    for (std::size_t j = 0; j < rising.size(); ++j)
      EXPECT_EQ(compare_debian(rising[i], rising[j]), i < j ? -1 : i > j ? 1 : 0) << rising[i] << " " << rising[j];
  EXPECT_EQ(upstream_version("1:9.2p1-2+deb12u7"), "9.2p1");
  EXPECT_EQ(upstream_version("1.1.5+ds1-1+deb12u1"), "1.1.5");
  EXPECT_EQ(upstream_version("5:27.3.1-1~debian.12~bookworm"), "27.3.1");
}

TEST(Advisories, TheDistributorsRevisionDecidesWhereItIsKnown) {
  EXPECT_TRUE(is_exposed({"openssh", "1:9.2p1-2+deb12u2", true}, "CVE-2024-6387", Exposure::likely));
  EXPECT_FALSE(is_exposed_at_all({"openssh", "1:9.2p1-2+deb12u3", true}, "CVE-2024-6387"));
  EXPECT_FALSE(is_exposed_at_all({"openssh", "1:9.2p1-2+deb12u10", true}, "CVE-2024-6387")) << "10 is above 3";
  EXPECT_FALSE(is_exposed_at_all({"openssh", "1:8.4p1-5+deb11u3", true}, "CVE-2024-6387")) << "never was in bullseye";
  EXPECT_FALSE(is_exposed_at_all({"runc", "1.1.5+ds1-1+deb12u1", true}, "CVE-2024-21626"));
}

TEST(Advisories, APackageOfAnotherDistributorIsNotCondemned) {
  EXPECT_TRUE(is_exposed({"openssh", "1:8.9p1-3ubuntu0.10", true}, "CVE-2024-6387", Exposure::unclear));
  EXPECT_FALSE(is_exposed({"openssh", "1:8.9p1-3ubuntu0.10", true}, "CVE-2024-6387", Exposure::likely));
}

TEST(Advisories, UpstreamsOwnVersionSpeaksForItself) {
  EXPECT_TRUE(is_exposed({"openssh", "9.7p1", false}, "CVE-2024-6387", Exposure::likely));
  EXPECT_FALSE(is_exposed_at_all({"openssh", "9.8p1", false}, "CVE-2024-6387"));
  EXPECT_FALSE(is_exposed_at_all({"openssh", "8.4p1", false}, "CVE-2024-6387")) << "older than the mistake";
  EXPECT_TRUE(is_exposed({"runc", "1.1.11", false}, "CVE-2024-21626", Exposure::likely));
  EXPECT_FALSE(is_exposed_at_all({"runc", "1.3.3", false}, "CVE-2025-31133"));
  EXPECT_TRUE(is_exposed({"runc", "1.3.2", false}, "CVE-2025-31133", Exposure::likely));
  EXPECT_FALSE(is_exposed_at_all({"runc", "1.2.8", false}, "CVE-2025-31133"));
  EXPECT_TRUE(is_exposed({"nvidia-container-toolkit", "1.17.7-1", true}, "CVE-2025-23266", Exposure::likely))
      << "NVIDIA packages its own";
  EXPECT_FALSE(is_exposed_at_all({"nvidia-container-toolkit", "1.17.8-1", true}, "CVE-2025-23266"));
  EXPECT_TRUE(is_exposed({"docker", "5:23.0.1-1~debian.12~bookworm", true}, "CVE-2024-41110", Exposure::likely));
  EXPECT_FALSE(is_exposed_at_all({"docker", "5:27.3.1-1~debian.12~bookworm", true}, "CVE-2024-41110"));
}

TEST(Advisories, DebiansLibssh2IsNotAmongTheAffected) {
  EXPECT_FALSE(is_exposed_at_all({"libssh2", "1.10.0-3+deb12u1", true}, "CVE-2026-55200"));
  EXPECT_FALSE(is_exposed_at_all({"libssh2", "1.10.0", false}, "CVE-2026-55200")) << "the mistake came later";
  EXPECT_TRUE(is_exposed({"libssh2", "1.11.1", false}, "CVE-2026-55200", Exposure::likely));
}

TEST(Advisories, EachKernelSeriesHasItsOwnBound) {
  EXPECT_TRUE(is_exposed({"linux", "6.1.69-1", true}, "CVE-2024-1086", Exposure::likely));
  EXPECT_FALSE(is_exposed_at_all({"linux", "6.1.119-1", true}, "CVE-2024-1086"));
  EXPECT_FALSE(is_exposed_at_all({"linux", "6.12.57-1", true}, "CVE-2024-1086"));
  EXPECT_TRUE(is_exposed({"linux", "5.10.70-1", true}, "CVE-2022-0847", Exposure::likely));
  EXPECT_FALSE(is_exposed_at_all({"linux", "5.10.127-1", true}, "CVE-2022-0847"));
}

TEST(Advisories, EveryRowIsWhole) {
  for (const Advisory& advisory : advisories()) {
    EXPECT_TRUE(advisory.id.starts_with("CVE-20"));
    EXPECT_FALSE(advisory.package.empty() || advisory.fixed.empty() || advisory.what.empty()) << advisory.id;
    EXPECT_TRUE(advisory.since.empty() || compare_debian(advisory.since, advisory.fixed) < 0) << advisory.id;
  }
}

class PackagesTest : public ProbeTest {};

TEST_F(PackagesTest, ThePackageManagerIsBelievedBeforeThePrograms) {
  file("/proc/version",
       "Linux version 6.1.0-28-amd64 (debian-kernel@lists.debian.org) (gcc-12 (Debian 12.2.0-14) 12.2.0) "
       "#1 SMP PREEMPT_DYNAMIC Debian 6.1.119-1 (2024-11-22)\n");
  std::vector<ToolAnswer> answers(3);
  for (ToolAnswer& answer : answers) answer.found = answer.answered = true;
  answers[0].tool = "dpkg-query";
  answers[0].exit_code = 1;
  answers[0].out = "openssh-server\t1:9.2p1-2+deb12u7\nrunc\t1.1.5+ds1-1+deb12u1\ndocker-ce\t\n";
  answers[1].tool = "ssh";
  answers[1].err = "OpenSSH_9.2p1 Debian-2+deb12u3, OpenSSL 3.0.16 11 Feb 2025\n";
  answers[2].tool = "runc";
  answers[2].out = "runc version 1.3.0\ncommit: x\n";
  const auto packages = read_packages(HostFiles(root()), answers);
  const auto version_of = [&](std::string_view name) {
    const auto found = std::find_if(packages.begin(), packages.end(), [&](const Package& p) { return p.name == name; });
    return found == packages.end() ? std::string("none") : found->version;
  };
  EXPECT_EQ(version_of("openssh"), "1:9.2p1-2+deb12u7");
  EXPECT_EQ(version_of("runc"), "1.1.5+ds1-1+deb12u1");
  EXPECT_EQ(version_of("linux"), "6.1.119-1") << "not the compiler's";
  EXPECT_EQ(version_of("docker"), "none");
}

TEST_F(PackagesTest, WithoutAPackageManagerTheProgramsAreAsked) {
  std::vector<ToolAnswer> answers(2);
  answers[0].tool = "ssh";
  answers[0].answered = true;
  answers[0].err = "OpenSSH_9.2p1 Debian-2+deb12u7, OpenSSL 3.0.16 11 Feb 2025\n";
  answers[1].tool = "nvidia-ctk";
  answers[1].answered = true;
  answers[1].out = "NVIDIA Container Toolkit CLI version 1.17.4\ncommit: x\n";
  const auto packages = read_packages(HostFiles(root()), answers);
  EXPECT_EQ(packages, (std::vector<Package>{{"openssh", "1:9.2p1-2+deb12u7", true},
                                            {"nvidia-container-toolkit", "1.17.4", false}}));
}

TEST(Packages, VersionsCompareByEpochUpstreamAndRevision) {
  for (const auto& [a, b] : {std::pair{"1.0~rc1", "1.0"},
                             {"1.0", "1.0a"},
                             {"1.0a", "1.0+"},
                             {"1.9", "1.10"},
                             {"9", "1:1"},
                             {"1.0-1", "1.0-2"},
                             {"1.0", "1.0-1"},
                             {"1.0-1", "1.0.1"},
                             {"a", "b"},
                             {"1.08", "1.9"}}) {
    EXPECT_LT(compare_debian(a, b), 0) << a << " " << b;
    EXPECT_GT(compare_debian(b, a), 0) << a << " " << b;
  }
  for (const auto& [a, b] : {std::pair{"1.01", "1.1"}, {"0:1", "1"}, {"1.0-0", "1.0"}})
    EXPECT_EQ(compare_debian(a, b), 0) << a;
  EXPECT_EQ(upstream_version("1:9.2p1+dfsg~x-2"), "9.2p1");
}

TEST(Packages, ExposureAtTheEdgesOfARange) {
  const Advisory advisory{"CVE-1", "x", "1.0", "2.0", "bookworm 1.5-1+deb12u2, trixie -", "text"};
  const auto of = [&](const std::string& version, bool packaged) {
    return exposure(advisory, {"x", version, packaged});
  };
  EXPECT_EQ(of("0.9", false), Exposure::none);
  EXPECT_EQ(of("1.0", false), Exposure::likely);
  EXPECT_EQ(of("1.9", false), Exposure::likely);
  EXPECT_EQ(of("2.0", false), Exposure::none);
  EXPECT_EQ(of("1.5", true), Exposure::unclear) << "it may be patched";
  EXPECT_EQ(of("1.5-1+deb12u1", true), Exposure::likely);
  EXPECT_EQ(of("1.5-1+deb12u2", true), Exposure::none);
  EXPECT_EQ(of("1.5-1+deb13u1", true), Exposure::none);
  EXPECT_EQ(of("1.5-1+deb11u1", true), Exposure::unclear) << "of this release nobody says anything";
  EXPECT_EQ(of("1.5-1~debian.12", true), Exposure::likely) << "the maker's own package";
  EXPECT_EQ(exposure(advisory, {"y", "1.5", false}), Exposure::none);
}

}  // namespace
}  // namespace gridctl::probe::health_packages_test
