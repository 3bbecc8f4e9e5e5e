// SPDX-License-Identifier: Apache-2.0
// The golden directories of tests/data/layouts: what real frameworks wrote, stage by stage in their own order.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/text.hpp"
#include "unit/whole/directory.hpp"

namespace gridctl::whole::layouts_test {
namespace {

namespace fs = std::filesystem;

std::string slurp_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Golden {
  const char* folder;
  const char* layout;
  // Files that may follow what makes a save whole, each of them settled for: they belong to no other save.
  const char* trailing;
};
std::ostream& operator<<(std::ostream& out, const Golden& golden) { return out << golden.folder; }

class Layouts : public ::testing::TestWithParam<Golden> {
 protected:
  fs::path home = fs::path(GRIDCTL_SOURCE_DIR) / "tests/data/layouts" / GetParam().folder;
  Directory dir;
  int saved = 0;

  std::vector<std::vector<std::string>> stages() const {
    std::vector<std::vector<std::string>> all;
    for (const std::string& line : split_lines(slurp_file(home / "stages"))) all.push_back(split(line, ' '));
    return all;
  }
  // Follows renames of the file and of the folders above it.
  std::string final_path(std::string path, const std::vector<std::vector<std::string>>& after) const {
    for (const auto& words : after)
      if (words[0] == "rename" && (path == words[1] || path.starts_with(words[1] + "/")))
        path = words[2] + path.substr(words[1].size());
    return path;
  }
  void move(const std::string& from, const std::string& to) {
    std::vector<std::string> moved;
    for (const auto& file : dir.listing.files)
      if (file.path == from || file.path.starts_with(from + "/")) moved.push_back(file.path);
    for (const std::string& path : moved) {
      const std::int64_t written = store::find_file(dir.listing.files, path)->mtime_ns;
      const std::string target = to + path.substr(from.size());
      // Some close a file only after they have renamed it.
      dir.rename_into(target, dir.content(path).empty() ? final_content(target, {}) : dir.content(path));
      dir.remove(path);
      for (auto& file : dir.listing.files)
        if (file.path == target) file.mtime_ns = written;
    }
  }
  void drop(const std::string& path) {
    std::vector<std::string> gone;
    for (const auto& file : dir.listing.files)
      if (file.path == path || file.path.starts_with(path + "/")) gone.push_back(file.path);
    for (const std::string& one : gone) dir.remove(one);
  }
  void perform(const std::vector<std::vector<std::string>>& all, std::size_t i) {
    const auto& words = all[i];
    dir.pass(40);
    if (words[0] == "open") dir.save(words[1], "");
    if (words[0] == "rename") move(words[1], words[2]);
    if (words[0] == "unlink") drop(words[1]);
    if (words[0] == "save") ++saved;
    if (words[0] == "close") dir.save(words[1], final_content(words[1], {all.begin() + static_cast<long>(i), all.end()}));
  }
  // What the file holds when this save is over.
  std::string final_content(const std::string& path, const std::vector<std::vector<std::string>>& after) const {
    const std::string at = final_path(path, after);
    const fs::path then = home / ("at-" + std::to_string(saved + 1)) / at;
    return slurp_file(fs::exists(then) ? then : home / "files" / at);
  }
  std::vector<Unit> units() { return find_units(dir.listing.files, dir.access()); }
};

// At each stage of the write: no unit that is whole may change afterwards before the save is over.
TEST_P(Layouts, AreJudgedRightlyAtEachStage) {
  const auto all = stages();
  ASSERT_FALSE(all.empty()) << home;
  std::map<std::string, std::size_t> whole_since;  // unit -> stage
  std::size_t saves = 0, last_write = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    perform(all, i);
    if (all[i][0] == "save") {
      ++saves;
      bool found = false;
      for (const Unit& unit : units()) {
        if (unit.layout != GetParam().layout) continue;
        found = true;
        EXPECT_TRUE(unit.whole) << unit.path << " after save " << saves << ": " << unit.why;
      }
      EXPECT_TRUE(found) << "save " << saves;
      whole_since.clear();
      for (const Unit& unit : units()) whole_since[unit.path] = i;
      last_write = i;
      continue;
    }
    const std::string& path = all[i][all[i][0] == "rename" ? 2 : 1];
    for (const Unit& unit : units()) {
      const bool touched = std::any_of(unit.files.begin(), unit.files.end(), [&](const std::string& file) {
        return file == path || file.starts_with(path + "/");
      });
      if (!touched || unit.part) continue;
      // Written to, and whole: then this was the last stage, or what follows is what it settles for.
      if (!unit.whole) continue;
      for (std::size_t j = i + 1; j < all.size() && all[j][0] != "save"; ++j) {
        const std::string& later = all[j][all[j][0] == "rename" ? 2 : 1];
        const bool of_unit = unit.path == "." || later == unit.path || later.starts_with(unit.path + "/");
        const bool settles = unit.settle > Duration{} || later.find(GetParam().trailing) != std::string::npos;
        EXPECT_TRUE(!of_unit || settles || all[j][0] == "unlink")
            << unit.layout << " " << unit.path << " passed for whole at stage " << i << " (" << join(all[i], " ")
            << "), but stage " << j << " is " << join(all[j], " ");
      }
    }
  }
  EXPECT_GE(saves, 2u);
  EXPECT_GT(last_write, 0u);
}

// A file that is cut anywhere makes its unit torn, where the layout knows the format.
TEST_P(Layouts, AreTornWhenAFileIsMissing) {
  const auto all = stages();
  for (std::size_t i = 0; i < all.size(); ++i) perform(all, i);
  const std::vector<Unit> before = units();
  for (const Unit& unit : before) {
    if (unit.layout != GetParam().layout || unit.files.size() < 2) continue;
    int noticed = 0;
    for (const std::string& path : unit.files) {
      const store::Listing kept = dir.listing;
      dir.remove(path);
      const std::vector<Unit> now = units();
      const auto same = std::find_if(now.begin(), now.end(), [&](const Unit& one) { return one.path == unit.path; });
      if (same == now.end() || !same->whole) ++noticed;
      dir.listing = kept;
    }
    EXPECT_GE(noticed, 1) << unit.path;
  }
}

// As many a training loop does, to remember where it is in its data.
TEST_P(Layouts, StayWholeWhenTheProgramAddsAFileOfItsOwn) {
  const auto all = stages();
  for (std::size_t i = 0; i < all.size(); ++i) perform(all, i);
  std::optional<Unit> newest;
  for (const Unit& unit : units())
    if (unit.layout == GetParam().layout && unit.files.size() > 1 && unit.whole) newest = unit;
  if (!newest) return;  // it is one file
  const std::string& one = newest->files.front();
  dir.pass(2000);
  dir.save(one.substr(0, one.rfind('/') + 1) + "progress.json", "{\"step\": 800}");
  for (const Unit& now : units())
    if (now.path == newest->path) newest = now;
  EXPECT_TRUE(newest->whole) << newest->path << ": " << newest->why;
}

INSTANTIATE_TEST_SUITE_P(Golden, Layouts,
                         ::testing::Values(Golden{"transformers", "transformers", "-none-"},
                                           Golden{"transformers-sharded", "transformers", "-none-"},
                                           Golden{"transformers-peft", "transformers", "-none-"},
                                           Golden{"accelerate", "accelerate", "custom_checkpoint"},
                                           Golden{"lightning", "lightning", "-none-"},
                                           Golden{"distributed", "torch-distributed", "-none-"},
                                           Golden{"fsdp", "torch-distributed", "-none-"},
                                           Golden{"deepspeed", "deepspeed", "-none-"},
                                           Golden{"orbax", "orbax", "-none-"},
                                           Golden{"tensorflow", "tensorflow", "-none-"},
                                           Golden{"keras", "keras", "-none-"},
                                           Golden{"stable-baselines", "stable-baselines3", "-none-"},
                                           Golden{"safetensors", "safetensors", "-none-"},
                                           Golden{"peft", "peft", "-none-"}),
                         [](const auto& one) {
                           std::string name = one.param.folder;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace gridctl::whole::layouts_test
