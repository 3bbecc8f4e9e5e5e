// SPDX-License-Identifier: Apache-2.0
#include "store/tree.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "os/entries.hpp"
#include "store/big_endian.hpp"
#include "store/materialise.hpp"
#include "store/scan.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::store::tree_test {
namespace {

using namespace testing;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
namespace fs = std::filesystem;

Tree small_tree() {
  const Digest id = digest_of("hello");
  return *make_tree({{EntryKind::directory, 0755, "d", 0, {}, {}},
                     {EntryKind::file, 0644, "d/f", 5, {{id, 5}}, {}},
                     {EntryKind::symlink, 0777, "l", 0, {}, "d/f"}});
}
std::vector<std::string> paths_of(const Tree& tree) {
  std::vector<std::string> paths;
  for (const Entry& entry : tree.entries) paths.push_back(entry.path);
  return paths;
}

Entry file_of(const std::string& path, const std::vector<Chunk>& chunks) {
  Entry entry{EntryKind::file, 0644, path, 0, chunks, {}};
  for (const Chunk& chunk : chunks) entry.size += chunk.size;
  return entry;
}
Chunk chunk_of(const std::string& text) { return {digest_of(text), static_cast<std::uint32_t>(text.size())}; }

TEST(EarlierFile, HasTheSamePathOrElseTheNewestNumbers) {
  const Chunk any = chunk_of("x");
  const Tree earlier = *make_tree({file_of("c-10.pt", {any}),
                                   file_of("c-9.pt", {any}),
                                   file_of("c.pt", {any}),
                                   file_of("d-1.pt", {any}),
                                   {EntryKind::directory, 0755, "c-800.pt", 0, {}, {}}});
  const auto path = [&](const std::string& now) {
    const Entry* found = earlier_file(earlier, now);
    return found == nullptr ? "" : found->path;
  };
  EXPECT_EQ(path("c-9.pt"), "c-9.pt");
  EXPECT_EQ(path("c-11.pt"), "c-10.pt");
  EXPECT_EQ(path("c-100.pt"), "c-10.pt");
  EXPECT_EQ(path("c-800.pt"), "");  // was a directory
  EXPECT_EQ(path("d-22.pt"), "d-1.pt");
  EXPECT_EQ(path("e.pt"), "");
  EXPECT_EQ(path("e-1.pt"), "");
}

TEST(EarlierChunks, StoodAtTheSameOffsetInTheSameLength) {
  const Tree earlier =
      *make_tree({file_of("f", {chunk_of("head"), chunk_of("aaaa"), chunk_of("bb"), chunk_of("cccc")})});
  const Tree now = *make_tree({file_of("f", {chunk_of("head"), chunk_of("AAAA"), chunk_of("BBB"), chunk_of("CCC")}),
                               file_of("g", {chunk_of("GGGG")})});
  EXPECT_THAT(earlier_chunks(now, earlier), ElementsAre(::testing::Pair(digest_of("AAAA"), digest_of("aaaa"))));
  EXPECT_THAT(earlier_chunks(earlier, earlier), IsEmpty());
}

TEST(Manifest, HasExactlyTheSpecifiedBytes) {
  const std::string golden =
      "4752494454524545"
      "0001"
      "0000"
      "00000003"
      "0000000000000005"  // header
      "01"
      "01ed"
      "0001"
      "64"  // directory 0755 "d"
      "02"
      "01a4"
      "0003"
      "642f66"
      "0000000000000005"
      "00000001"
      "00000005"
      "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
      "03"
      "01ff"
      "0001"
      "6c"
      "0003"
      "642f66";
  EXPECT_EQ(to_hex(to_manifest(small_tree())), golden);
  EXPECT_EQ(*parse_manifest(to_manifest(small_tree())), small_tree());
}

TEST(Manifest, RefusesEveryShorterOneAndEveryAppendedByte) {
  Bytes manifest = to_manifest(small_tree());
  for (std::size_t size = 0; size < manifest.size(); ++size)
    EXPECT_FALSE(parse_manifest(ByteView(manifest).first(size))) << size;
  manifest.push_back(std::byte{0});
  EXPECT_THAT(parse_manifest(manifest), FailsWith(Code::checkpoint_damaged));
}

TEST(Manifest, IsCanonicalSoThatNoChangedByteGivesTheSameTree) {
  const Bytes sound = to_manifest(small_tree());
  for (std::size_t i = 0; i < sound.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes changed = sound;
      changed[i] ^= static_cast<std::byte>(1 << bit);
      const auto tree = parse_manifest(changed);
      if (tree) {
        EXPECT_NE(*tree, small_tree()) << i;
        EXPECT_EQ(to_manifest(*tree), changed) << i;
      }
    }
  }
}

TEST(Manifest, RefusesClaimsWithoutReservingMemoryForThem) {
  Bytes bomb = to_manifest(Tree{});
  for (std::size_t i = 12; i < 16; ++i) bomb[i] = std::byte{0xff};  // four billion entries
  EXPECT_THAT(parse_manifest(bomb), FailsWith(Code::checkpoint_damaged));
  for (const std::size_t byte : {9u, 11u}) {  // of the version, of the features
    Bytes newer = to_manifest(Tree{});
    newer[byte] = std::byte{2};
    EXPECT_THAT(parse_manifest(newer), FailsWith(Code::unsupported));
  }
}

TEST(Manifest, RefusesSizesThatDoNotAddUpAndMoreThanTheQuota) {
  const Digest id = digest_of("x");
  EXPECT_FALSE(make_tree({{EntryKind::file, 0644, "f", 6, {{id, 5}}, {}}}));
  EXPECT_FALSE(make_tree({{EntryKind::file, 0644, "f", 0, {{id, 0}}, {}}}));
  EXPECT_FALSE(make_tree({{EntryKind::file, 0644, "f", k_chunk_max + 1u, {{id, k_chunk_max + 1u}}, {}}}));
  EXPECT_FALSE(make_tree({{EntryKind::file, 04755, "f", 0, {}, {}}}));
  EXPECT_FALSE(make_tree({{EntryKind::directory, 0755, "f", 1, {}, {}}}));
  TreeLimits limits;
  limits.bytes_max = 4;
  EXPECT_FALSE(parse_manifest(to_manifest(small_tree()), limits));
  limits.bytes_max = 5;
  EXPECT_THAT(parse_manifest(to_manifest(small_tree()), limits), IsOk());
  limits.entries_max = 2;
  EXPECT_FALSE(parse_manifest(to_manifest(small_tree()), limits));
}

TEST(Scan, RoundTripsFilesFoldersModesAndLinks) {
  Folder dir;
  write(dir / "in/run.sh", "#!/bin/sh\n");
  fs::permissions(dir / "in/run.sh", fs::perms(04755));
  write(dir / "in/big", noise(10'000'000, 1));
  write(dir / "in/empty", "");
  fs::create_directories(dir / "in/deep/er");
  fs::permissions(dir / "in/deep", fs::perms(0750));
  fs::create_symlink("big", dir / "in/link");
  ChunkStore store = *ChunkStore::open(dir / "s");
  ScanOptions options;
  options.on_chunk = [&](const Digest& id, ByteView content) { return store.put(id, content); };
  const auto scanned = scan(dir / "in", options);
  ASSERT_THAT(scanned, IsOk());
  EXPECT_THAT(paths_of(scanned->tree), ElementsAre("big", "deep", "deep/er", "empty", "link", "run.sh"));
  EXPECT_THAT(scanned->tree.find("big")->chunks, SizeIs(3));
  EXPECT_EQ(scanned->tree.find("run.sh")->mode, 0755);
  MaterialiseOptions sync;
  sync.sync = true;
  ASSERT_THAT(materialise(scanned->tree, store, dir / "out", sync), IsOk());
  EXPECT_EQ(scan(dir / "out", {})->tree, scanned->tree);
  EXPECT_EQ(slurp(dir / "out/big"), noise(10'000'000, 1));
  EXPECT_THAT(materialise(scanned->tree, store, dir / "out"), FailsWith(Code::exists));
}

TEST(Scan, BringsHolesBack) {
  Folder dir;
  write(dir / "in/sparse", "begin");
  fs::resize_file(dir / "in/sparse", 16u << 20);
  ChunkStore store = *ChunkStore::open(dir / "s");
  ScanOptions options;
  options.on_chunk = [&](const Digest& id, ByteView content) { return store.put(id, content); };
  const auto scanned = scan(dir / "in", options);
  ASSERT_THAT(scanned, IsOk());
  EXPECT_EQ(store.stats()->unsealed_blobs, 2u);
  ASSERT_THAT(materialise(scanned->tree, store, dir / "out"), IsOk());
  const auto status = *os::status_of(dir / "out/sparse");
  EXPECT_EQ(status->size, 16u << 20);
  EXPECT_LT(status->blocks_bytes, 6u << 20);
}

TEST(Scan, SkipsSpecialFilesAndOutwardLinksWithANote) {
  Folder dir;
  write(dir / "in/a", "x");
  ASSERT_EQ(::mkfifo((dir / "in/fifo").c_str(), 0600), 0);
  fs::create_symlink("/etc/passwd", dir / "in/outward");
  write(dir / "in/.commit", "");
  write(dir / "in/sub/.commit", "");
  ScanOptions options;
  options.links_stay_inside = true;
  options.skip_at_top = {".commit"};
  const auto scanned = scan(dir / "in", options);
  ASSERT_THAT(scanned, IsOk());
  EXPECT_THAT(paths_of(scanned->tree), ElementsAre("a", "sub", "sub/.commit"));
  EXPECT_THAT(scanned->notes, ElementsAre(HasSubstr("fifo"), HasSubstr("outward")));
}

TEST(Scan, NoticesAFileThatChangesWhileItIsRead) {
  Folder dir;
  write(dir / "in/f", noise(9'000'000, 1));
  int chunks = 0;
  ScanOptions options;
  options.on_chunk = [&](const Digest&, ByteView) -> Result<void> {
    if (++chunks % 3 == 1) std::ofstream(dir / "in/f", std::ios::app) << "more";
    return {};
  };
  EXPECT_THAT(scan(dir / "in", options), FailsWith(Code::busy));
  chunks = 0;
  options.on_chunk = [&](const Digest&, ByteView) -> Result<void> {
    if (++chunks == 1) std::ofstream(dir / "in/f", std::ios::app) << "more";
    return {};
  };
  EXPECT_THAT(scan(dir / "in", options), IsOk()) << "the second attempt finds it at rest";
}

TEST(Scan, GivesUpBeyondItsLimit) {
  Folder dir;
  write(dir / "in/f", noise(1000, 1));
  ScanOptions options;
  options.bytes_max = 999;
  EXPECT_THAT(scan(dir / "in", options), FailsWith(Code::no_space));
}

TEST(Scan, HonoursIgnoreFilesAndLeavesGitOut) {
  Folder dir;
  write(dir / "in/.gitignore", "*.log\nbuild/\n!keep.log\n");
  write(dir / "in/.gridctlignore", "data\n");
  write(dir / "in/sub/.gitignore", "!sub.log\n/local\n");
  for (const char* path :
       {"a.log", "keep.log", "build/x", "data/y", "sub/sub.log", "sub/b.log", "sub/local", "local", ".git/HEAD"})
    write(dir / "in" / path, "x");
  ScanOptions options;
  options.ignore_files = true;
  EXPECT_THAT(paths_of(scan(dir / "in", options)->tree),
              ElementsAre(".gitignore", ".gridctlignore", "keep.log", "local", "sub", "sub/.gitignore", "sub/sub.log"));
}

TEST(Materialise, RemovesWhatItMadeWhenAChunkIsMissing) {
  Folder dir;
  ChunkStore store = *ChunkStore::open(dir / "s");
  fs::create_directories(dir / "out");
  EXPECT_THAT(materialise(small_tree(), store, dir / "out"), FailsWith(Code::not_found));
  EXPECT_TRUE(fs::is_empty(dir / "out"));
}

}  // namespace
}  // namespace gridctl::store::tree_test
