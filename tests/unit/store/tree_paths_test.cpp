// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "store/big_endian.hpp"
#include "store/materialise.hpp"
#include "store/tree.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::store::tree_paths_test {
namespace {

using namespace testing;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using namespace std::string_literals;
namespace fs = std::filesystem;

// Names that must never leave a manifest: climbing, absolute, empty components, zero bytes, too long, too deep.
std::vector<std::string> hostile_paths() {
  std::vector<std::string> paths{"",     "/",     "//",    ".",     "..",    "./",      "../",   "/.",
                                 "/..",  "./.",   "../..", "a/",    "/a",    "a//b",    "a/./b", "a/../b",
                                 "a/..", "a/.",   "./a",   "../a",  "a/b/",  "a/b//",   "//a",   "///",
                                 "\0"s,  "a\0b"s, "a/\0"s, "\0/a"s, "..\0"s, "a/b\0/c"s};
  const std::vector<std::string> targets{"etc/passwd", ".ssh/authorized_keys", "root/.bashrc", "tmp/x", "proc/self/mem",
                                         "dev/sda",    "home/user/x",          "var/lib",      "x",     "usr/bin/sh"};
  for (const std::string& target : targets) {
    paths.push_back("/" + target);
    paths.push_back("//" + target);
    std::string up;
    for (int i = 0; i < 3; ++i) {
      up += "../";
      paths.push_back(up + target);
      paths.push_back("a/" + up + target);
      paths.push_back("./" + up + target);
    }
    paths.push_back(target + "/..");
    paths.push_back(target + "/../../" + target);
    paths.push_back(target + "/.");
  }
  for (std::size_t size : {256u, 257u, 1000u, 4000u}) {
    paths.push_back(std::string(size, 'n'));
    paths.push_back("a/" + std::string(size, 'n'));
    paths.push_back(std::string(size, 'n') + "/a");
  }
  std::string deep = "d";
  for (int i = 0; i < 64; ++i) deep += "/d";
  paths.push_back(deep);
  std::string longest = std::string(200, 'x');
  while (longest.size() < 4096) longest += "/" + std::string(200, 'x');
  paths.push_back(longest);
  return paths;
}

// Odd, but names that file systems have; bytes are kept as they are.
const std::vector<std::string> k_odd_paths{
    "...",   "..a",      "a..",      ".a",  "a.",           " ",         "a b",      "-rf",       "--",     "\n",
    "a\nb",  "\x1b[31m", "\xff\xfe", "con", "aux.txt",      "C:",        "a\\b",     "..\\..\\x", "%2e%2e", "~",
    "$HOME", "`id`",     "*",        "?",   "\xe2\x80\xae", "e\xcc\x81", "\xc3\xa9", "A",         "\x7f",   "&;|"};

Entry file_at(std::string path) { return {EntryKind::file, 0644, std::move(path), 0, {}, {}}; }

TEST(Paths, RefusesEveryHostileName) {
  const auto paths = hostile_paths();
  EXPECT_GE(paths.size(), 150u);
  for (const std::string& path : paths) {
    EXPECT_FALSE(check_path(path)) << path;
    EXPECT_THAT(make_tree({file_at(path)}), FailsWith(Code::checkpoint_damaged)) << path;
    EXPECT_THAT(parse_manifest(to_manifest(Tree{{file_at(path)}})), FailsWith(Code::checkpoint_damaged)) << path;
  }
}

TEST(Paths, WritesNothingOutsideEvenWhenTheTreeWasNotChecked) {
  Folder dir;
  ChunkStore store = *ChunkStore::open(dir / "s");
  fs::create_directories(dir / "jail");
  for (const std::string& path : hostile_paths()) {
    // Through the kernel "a/./b" or "a//b" lead nowhere bad; what matters is that nothing appears outside.
    static_cast<void>(materialise(Tree{{file_at(path)}}, store, dir / "jail/out", {}));
    static_cast<void>(os::remove_tree(dir / "jail/out"));
  }
  EXPECT_TRUE(fs::is_empty(dir / "jail"));
}

TEST(Paths, KeepsOddNamesByteForByte) {
  Folder dir;
  ChunkStore store = *ChunkStore::open(dir / "s");
  std::vector<Entry> entries;
  for (const std::string& path : k_odd_paths) entries.push_back(file_at(path));
  const auto tree = make_tree(std::move(entries));
  ASSERT_THAT(tree, IsOk());
  EXPECT_EQ(parse_manifest(to_manifest(*tree)).value(), *tree);
  ASSERT_THAT(materialise(*tree, store, dir / "out"), IsOk());
  for (const std::string& path : k_odd_paths) EXPECT_TRUE(fs::exists(dir / "out" / path)) << path;
}

TEST(Paths, RefusesFilesBelowFilesAndLinksAndTwins) {
  const Entry file = file_at("a"), below = file_at("a/b");
  const Entry link{EntryKind::symlink, 0777, "a", 0, {}, "/etc"};
  const Entry folder{EntryKind::directory, 0755, "a", 0, {}, {}};
  EXPECT_THAT(make_tree({file, below}), FailsWith(Code::checkpoint_damaged));
  EXPECT_THAT(make_tree({link, below}), FailsWith(Code::checkpoint_damaged));
  EXPECT_THAT(make_tree({below}), FailsWith(Code::checkpoint_damaged));
  EXPECT_THAT(make_tree({file, file}), FailsWith(Code::checkpoint_damaged));
  EXPECT_THAT(make_tree({folder, file}), FailsWith(Code::checkpoint_damaged));
  EXPECT_THAT(make_tree({folder, link}), FailsWith(Code::checkpoint_damaged));
  EXPECT_THAT(make_tree({folder, below, file_at("a-b")}), IsOk());
}

TEST(Paths, TellsLinksThatStayInsideFromThoseThatMayNot) {
  for (const auto& [path, target] : std::vector<std::pair<std::string, std::string>>{{"latest", "step-10"},
                                                                                     {"a/b", "../c"},
                                                                                     {"a/b", "c/d"},
                                                                                     {"a/b/c", "../../x"},
                                                                                     {"l", "./x"},
                                                                                     {"l", "x/"},
                                                                                     {"l", "."}})
    EXPECT_TRUE(link_stays_inside(path, target)) << path << " -> " << target;
  for (const auto& [path, target] : std::vector<std::pair<std::string, std::string>>{{"l", "/etc/passwd"},
                                                                                     {"l", ".."},
                                                                                     {"l", "../x"},
                                                                                     {"a/b", "../../x"},
                                                                                     {"l", "x/../../y"},
                                                                                     {"l", "x/.."},
                                                                                     {"a/l", "x/../y"},
                                                                                     {"l", ""},
                                                                                     {"l", "a\0b"s},
                                                                                     {"l", "//x"},
                                                                                     {"a/b", "../c/../../d"}})
    EXPECT_FALSE(link_stays_inside(path, target)) << path << " -> " << target;
}

TEST(Paths, MakesNoLinkThatMayLeadOutAndLeavesNothingBehind) {
  Folder dir;
  ChunkStore store = *ChunkStore::open(dir / "s");
  const Tree tree{{file_at("a"), {EntryKind::symlink, 0777, "l", 0, {}, "../secret"}}};
  EXPECT_THAT(materialise(tree, store, dir / "out"), FailsWith(Code::checkpoint_damaged));
  EXPECT_FALSE(fs::exists(dir / "out"));
  MaterialiseOptions workdir;
  workdir.links_stay_inside = false;
  ASSERT_THAT(materialise(tree, store, dir / "out", workdir), IsOk());
  EXPECT_EQ(fs::read_symlink(dir / "out/l"), "../secret");
}

TEST(Paths, DoesNotFollowALinkThatIsInTheWay) {
  Folder dir;
  ChunkStore store = *ChunkStore::open(dir / "s");
  fs::create_directories(dir / "victim");
  fs::create_directory_symlink(dir / "victim", dir / "out");
  EXPECT_FALSE(materialise(Tree{{file_at("a")}}, store, dir / "out"));
  EXPECT_TRUE(fs::is_empty(dir / "victim"));
}

}  // namespace
}  // namespace gridctl::store::tree_paths_test
