// SPDX-License-Identifier: Apache-2.0
#include "store/tree.hpp"

#include <gmock/gmock.h>

#include "support/results.hpp"

namespace gridctl::store::tree_overlay_test {
namespace {

using gridctl::testing::IsOk;
using ::testing::ElementsAre;

Entry folder(const std::string& path) { return {EntryKind::directory, 0755, path, 0, {}, {}}; }
Entry link(const std::string& path, const std::string& target) {
  return {EntryKind::symlink, 0777, path, 0, {}, target};
}
std::vector<std::string> shown(const Result<Tree>& tree) {
  EXPECT_THAT(tree, IsOk());
  std::vector<std::string> paths;
  if (tree)
    for (const Entry& entry : tree->entries) paths.push_back(entry.path + (entry.target.empty() ? "" : ">" + entry.target));
  return paths;
}

TEST(Overlay, KeepsWhatIsBelowAndTakesWhatIsNewer) {
  const Tree below = *make_tree({folder("logs"), link("logs/1", "old"), link("logs/2", "old")});
  const Tree above = *make_tree({folder("logs"), link("logs/2", "new"), link("z", "new")});
  EXPECT_THAT(shown(overlay(below, above)), ElementsAre("logs", "logs/1>old", "logs/2>new", "z>new"));
}

TEST(Overlay, LetsNothingBelowStandInTheWay) {
  const Tree folder_below = *make_tree({folder("a"), link("a/b", "old")});
  const Tree file_above = *make_tree({link("a", "new")});
  EXPECT_THAT(shown(overlay(folder_below, file_above)), ElementsAre("a>new"));
  EXPECT_THAT(shown(overlay(file_above, folder_below)), ElementsAre("a", "a/b>old"));
}

}  // namespace
}  // namespace gridctl::store::tree_overlay_test
