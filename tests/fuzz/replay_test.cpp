// SPDX-License-Identifier: Apache-2.0
// Gives every target its corpus, what stands in tests/data, and each of those cut and changed in places.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "fuzz/target.hpp"

namespace gridctl::fuzz {
namespace {

namespace fs = std::filesystem;

// Folders of tests/data that hold what a target reads.
const std::multimap<std::string_view, std::string_view> k_data = {
    {"frames", "wire"}, {"messages", "wire"}, {"job_file", "jobs"}, {"gpu_tools", "probe"}, {"health_text", "health"}};

constexpr std::size_t k_bytes_max = 64 * 1024;  // of one file: replay must stay quick
constexpr std::size_t k_changes = 12;           // per file

std::vector<std::string> inputs(std::string_view target) {
  std::vector<fs::path> folders{fs::path(GRIDCTL_SOURCE_DIR) / "tests/fuzz/corpus" / target};
  const auto [first, last] = k_data.equal_range(target);
  for (auto item = first; item != last; ++item)
    folders.push_back(fs::path(GRIDCTL_SOURCE_DIR) / "tests/data" / item->second);
  std::vector<std::string> all;
  for (const fs::path& folder : folders) {
    if (!fs::exists(folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file() || entry.file_size() > k_bytes_max) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      all.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
  }
  return all;
}

class Replay : public ::testing::TestWithParam<Target> {};

TEST_P(Replay, KeepsItsPromises) {
  const Target& target = GetParam();
  target.run({});
  const std::vector<std::string> all = inputs(target.name);
  EXPECT_FALSE(all.empty()) << "no corpus for " << target.name;
  for (const std::string& input : all) {
    target.run(input);
    for (std::size_t i = 0; i < k_changes && !input.empty(); ++i) {
      const std::size_t at = input.size() * i / k_changes;
      target.run(std::string_view(input).substr(0, at));
      std::string changed = input;
      changed[at] = static_cast<char>(changed[at] ^ (1 << (i % 8)));
      target.run(changed);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Replay, ::testing::ValuesIn(targets()),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace gridctl::fuzz
