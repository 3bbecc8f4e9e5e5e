// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fixture.hpp"
#include "probe/software.hpp"

namespace gridctl::probe::software_test {
namespace {

using ::testing::HasSubstr;

TEST_F(ProbeTest, KnowsTheCLibrary) {
  EXPECT_EQ(parse_libc("glibc 2.36\n", ""), "glibc 2.36");
  EXPECT_EQ(parse_libc("", "ldd (Debian GLIBC 2.36-9+deb12u10) 2.36\nThis is free software"), "glibc 2.36");
  EXPECT_EQ(parse_libc("", "ldd (Ubuntu GLIBC 2.35-0ubuntu3.8) 2.35\n"), "glibc 2.35");
  EXPECT_EQ(parse_libc("getconf: GNU_LIBC_VERSION: unknown variable", "musl libc (x86_64)\nVersion 1.2.4\nDynamic"),
            "musl 1.2.4");
  EXPECT_EQ(parse_libc("", ""), "");
}

TEST_F(ProbeTest, KnowsWhatHandsGpusToContainers) {
  EXPECT_EQ(parse_container_toolkit("NVIDIA Container Toolkit CLI version 1.17.4\ncommit: 9b69590c7428470a\n"),
            "1.17.4");
  EXPECT_EQ(parse_container_toolkit("sh: not found"), "");
  EXPECT_EQ(parse_cdi_kind("---\ncdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- name: \"0\"\n"),
            "nvidia.com/gpu");
  EXPECT_EQ(parse_cdi_kind("{\"cdiVersion\":\"0.6.0\",\"kind\":\"amd.com/gpu\",\"devices\":[]}"), "amd.com/gpu");
  EXPECT_EQ(parse_cdi_kind("kind: \x1b[31m/evil"), "");
  file("/etc/cdi/nvidia.yaml", "kind: \"nvidia.com/gpu\"\n");
  file("/var/run/cdi/again.yaml", "kind: nvidia.com/gpu\n");
  Inventory inventory;
  add_software(files(), {}, "{\"Runtimes\": {\"runc\": {}, \"nvidia\": {}}}", inventory);
  EXPECT_EQ(inventory.software.container_gpus.devices, std::vector<std::string>{"nvidia.com/gpu"});
  EXPECT_EQ(inventory.software.container_gpus.docker, true);
}

TEST_F(ProbeTest, FindsInstalledToolkits) {
  file("/usr/local/cuda/version.json", "{\"cuda\": {\"name\": \"CUDA SDK\", \"version\": \"12.4.1\"}}");
  file("/opt/rocm/share/hip/version", "HIP_VERSION_MAJOR=6\nHIP_VERSION_MINOR=3\nHIP_VERSION_PATCH=42131\n");
  std::filesystem::create_directories(root() / "usr/lib/x86_64-linux-gnu");
  std::filesystem::create_symlink("libze_loader.so.1.17.39", root() / "usr/lib/x86_64-linux-gnu/libze_loader.so.1");
  Inventory inventory;
  add_software(files(), {}, "", inventory);
  EXPECT_EQ(inventory.software.cuda_toolkit, "12.4.1");
  EXPECT_EQ(inventory.software.hip, "6.3.42131");
  EXPECT_EQ(inventory.software.level_zero, "1.17.39");
}

TEST_F(ProbeTest, FindsAToolkitWithoutItsVersionFiles) {
  const auto found = [&] {
    Inventory inventory;
    add_software(files(), {}, "", inventory);
    return inventory.software.cuda_toolkit;
  };
  EXPECT_EQ(found(), "");
  file("/usr/include/cuda_runtime_api.h", "#define CUDART_VERSION  11080\n");
  EXPECT_EQ(found(), "11.8") << "a distribution's package";
  std::filesystem::create_directories(root() / "usr/local/cuda-13.0/include");
  std::filesystem::create_directory_symlink("cuda-13.0", root() / "usr/local/cuda");
  EXPECT_EQ(found(), "13.0") << "by the name of its folder";
  file("/usr/local/cuda-13.0/include/cuda_runtime_api.h", "/** */\n#define CUDART_VERSION  13020\n");
  EXPECT_EQ(found(), "13.2");
}

TEST(SoftwareEdges, VersionsAreFoundInWords) {
  EXPECT_EQ(parse_libc("", "musl libc\nDynamic"), "musl");
  EXPECT_EQ(parse_libc("", "ldd (x) none\n"), "");
  EXPECT_EQ(parse_libc("", "other ldd 2.3\n"), "");
  EXPECT_EQ(parse_container_toolkit("version 1.2.3-rc1"), "1.2.3");
  EXPECT_EQ(parse_cdi_kind("kind: 'a/b'"), "a/b");
  EXPECT_EQ(parse_cdi_kind("kind: ab"), "") << "no kind without a slash";
  EXPECT_EQ(parse_cdi_kind("xkind: a/b"), "");
}

TEST_F(ProbeTest, WhyNothingHandsGpusToContainers) {
  const auto gap = [&](Vendor vendor, const std::vector<ToolAnswer>& answers, const std::string& attribute) {
    Inventory inventory;
    if (vendor != Vendor::other) inventory.gpus.emplace_back().vendor = vendor;
    add_software(files(), answers, "", inventory);
    const Gap* found = find_gap(inventory.gaps, "software.container_gpus." + attribute);
    return found == nullptr ? "" : std::string(gap_reason_name(found->reason)) + ": " + found->detail;
  };
  EXPECT_EQ(gap(Vendor::amd, {}, "docker"), "not_applicable: no NVIDIA GPU");
  EXPECT_EQ(gap(Vendor::nvidia, {}, "docker"), "no_tool: docker does not answer here");
  EXPECT_EQ(gap(Vendor::amd, {}, "toolkit"), "not_applicable: no NVIDIA GPU");
  EXPECT_EQ(gap(Vendor::nvidia, {}, "toolkit"), "no_tool: nvidia-container-toolkit is not installed");
  std::vector<ToolAnswer> hung(3);
  hung[2].found = true;
  hung[2].problem = "nvidia-ctk: no answer";
  EXPECT_EQ(gap(Vendor::nvidia, hung, "toolkit"), "timed_out: nvidia-ctk: no answer");
  EXPECT_EQ(gap(Vendor::other, {}, "devices"), "not_applicable: no GPU");
  EXPECT_THAT(gap(Vendor::amd, {}, "devices"), HasSubstr("not_reported: no CDI"));
}

}  // namespace
}  // namespace gridctl::probe::software_test
