// SPDX-License-Identifier: Apache-2.0
// A temporary folder with a fake root and fake tools.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "probe/host_files.hpp"
#include "probe/inventory.hpp"

namespace gridctl::probe {

class ProbeTest : public ::testing::Test {
 protected:
  ProbeTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "gridctl-probe-XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
    std::filesystem::create_directories(bin());
    std::filesystem::create_directories(root());
  }
  ~ProbeTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  [[nodiscard]] std::filesystem::path bin() const { return directory_ / "bin"; }
  [[nodiscard]] std::filesystem::path root() const { return directory_ / "root"; }
  [[nodiscard]] std::filesystem::path home() const { return directory_ / "home" / ".gridctl"; }

  // A shell script in our PATH.
  void tool(const std::string& name, const std::string& body) const {
    std::ofstream(bin() / name) << "#!/bin/sh\n" << body << "\n";
    std::filesystem::permissions(bin() / name, std::filesystem::perms{0755});
  }
  // A file of the fake root.
  void file(const std::string& path, const std::string& content) const {
    const auto at = root() / path.substr(1);
    std::filesystem::create_directories(at.parent_path());
    std::ofstream(at) << content;
  }
  [[nodiscard]] HostFiles files() const { return HostFiles(root()); }
  void link(const std::string& path, const std::string& target) const {
    const auto at = root() / path.substr(1);
    std::filesystem::create_directories(at.parent_path());
    std::filesystem::create_symlink(target, at);
  }
  // A device at the end of a branch of bridges, "pci0000:17/0000:17:01.0/0000:18:00.0".
  void device(const std::string& branch, const std::string& numa = "0") const {
    const std::string address = branch.substr(branch.rfind('/') + 1);
    file("/sys/devices/" + branch + "/numa_node", numa + "\n");
    link("/sys/bus/pci/devices/" + address, "../../../devices/" + branch);
  }
  static Gpu gpu(const std::string& pci) {
    Gpu gpu;
    gpu.uuid = gpu.pci = pci;
    return gpu;
  }
  [[nodiscard]] Toolbox toolbox(Duration deadline = std::chrono::seconds{5}) const {
    Toolbox box;
    box.directories = {os::Path(bin())};
    box.deadline = deadline;
    return box;
  }
  [[nodiscard]] ProbeOptions options(Duration deadline = std::chrono::seconds{5}) const {
    ProbeOptions out;
    out.home = home();
    out.toolbox = toolbox(deadline);
    return out;
  }

 private:
  std::filesystem::path directory_;
};

}  // namespace gridctl::probe
