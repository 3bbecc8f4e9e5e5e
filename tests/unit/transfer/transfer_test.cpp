// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <algorithm>
#include <random>

#include "store/materialise.hpp"
#include "store/store_key.hpp"
#include "unit/transfer/fixtures.hpp"

namespace gridctl::transfer::transfer_test {
namespace {

using namespace store::testing;
using namespace transfer::testing;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using store::Tree;
namespace fs = std::filesystem;

class Transfer : public ::testing::Test {
 protected:
  Folder dir;
  MemorySnapshots snapshots;
  ChunkStore laptop = *ChunkStore::open(dir / "laptop");
  ChunkStore cache = *ChunkStore::open(dir / "cache");
  wire::CheckpointRef ref{JobId{"aaaaaaaaaaaaa"}, Epoch{3}, 7};

  Result<TransferStats> push(const os::Path& from) {
    const auto scanned = store::scan(from, {});
    EXPECT_TRUE(scanned);
    const os::Fd fd = *os::open_file(from, O_RDONLY | O_DIRECTORY);
    store::DirectoryChunks chunks(fd.get(), scanned->tree);
    Host host(cache, snapshots);
    return push_tree(*host.link, scanned->tree, to_manifest(scanned->tree), chunks, os::system_clock());
  }
  Result<Pulled> pull(std::uint64_t quota = 0, const Progress& progress = {}, const Tree* earlier = nullptr) {
    Host host(cache, snapshots);
    return pull_checkpoint(*host.link, ref, store::root_of(snapshots.manifest_bytes), quota, laptop, os::system_clock(),
                           progress, earlier);
  }
};

TEST_F(Transfer, PushesATreeThatTheHostThenHolds) {
  write(dir / "src/a.py", "print(1)");
  write(dir / "src/pkg/weights.bin", noise(9'000'000, 1));
  write(dir / "src/empty", "");
  const auto stats = push(dir / "src");
  ASSERT_THAT(stats, IsOk());
  EXPECT_EQ(stats->chunks_sent, 4u);
  EXPECT_EQ(stats->bytes_sent, 9'000'008u);
  const Bytes manifest = to_manifest(store::scan(dir / "src", {})->tree);
  ChunkStore fresh = *ChunkStore::open(dir / "cache");
  const Tree tree = *store::parse_manifest(*fresh.get(store::root_of(manifest)));
  ASSERT_THAT(store::materialise(tree, fresh, dir / "out"), IsOk());
  EXPECT_EQ(slurp(dir / "out/pkg/weights.bin"), noise(9'000'000, 1));
  EXPECT_EQ(store::scan(dir / "out", {})->tree, tree);
}

// The host seals by itself when its connection ends; it may lose its power before.
TEST_F(Transfer, WhatWasPushedIsDurableWhenThatIsSaid) {
  write(dir / "src/a.py", "print(1)");
  const auto scanned = store::scan(dir / "src", {});
  ASSERT_THAT(scanned, IsOk());
  const os::Fd fd = *os::open_file(dir / "src", O_RDONLY | O_DIRECTORY);
  store::DirectoryChunks chunks(fd.get(), scanned->tree);
  Host host(cache, snapshots);
  const Bytes manifest = to_manifest(scanned->tree);
  ASSERT_THAT(push_tree(*host.link, scanned->tree, manifest, chunks, os::system_clock()), IsOk());
  ChunkStore fresh = *ChunkStore::open(dir / "cache");
  EXPECT_THAT(fresh.get(store::root_of(manifest)), IsOk());
}

// It has everything, and then one of the chunks is gone: the manifest, or a file's.
class Forgetful final : public wire::Link {
 public:
  Forgetful(const Digest& lost, bool is_first) : lost_(lost), had_(is_first) {}
  Result<void> send(const wire::Frame& frame, BootTime) override {
    if (const auto have = wire::parse_have(frame.payload)) {
      wire::HaveReply reply;
      const auto at = std::ranges::find(have->chunks, lost_);
      if (at != have->chunks.end() && !std::exchange(had_, false)) reply.missing = {static_cast<std::uint32_t>(at - have->chunks.begin())};
      answers_.push_back({wire::FrameKind::reply, frame.stream, wire::encode(reply)});
    } else if (frame.kind == wire::FrameKind::request) {
      answers_.push_back({wire::FrameKind::reply, frame.stream, "{}"});
    }
    return {};
  }
  Result<wire::Frame> receive(BootTime) override {
    if (answers_.empty()) return make_error(Code::timed_out, "no answer in time");
    const wire::Frame first = answers_.front();
    answers_.erase(answers_.begin());
    return first;
  }

 private:
  const Digest lost_;
  bool had_;
  std::vector<wire::Frame> answers_;
};

TEST_F(Transfer, IsNotDoneWhileTheHostLacksAnyOfIt) {
  write(dir / "src/a.py", "print(1)");
  const auto scanned = store::scan(dir / "src", {});
  const Bytes manifest = to_manifest(scanned->tree);
  const os::Fd fd = *os::open_file(dir / "src", O_RDONLY | O_DIRECTORY);
  store::DirectoryChunks chunks(fd.get(), scanned->tree);
  const auto push_to = [&](const Digest& lost, bool is_first) {
    Forgetful host(lost, is_first);
    return push_tree(host, scanned->tree, manifest, chunks, os::system_clock());
  };
  EXPECT_THAT(push_to(store::root_of(manifest), false), FailsWith(Code::busy));
  EXPECT_THAT(push_to(scanned->tree.unique_chunks().front().digest, true), FailsWith(Code::busy));
  EXPECT_THAT(push_to(Digest{}, false), IsOk());
}

TEST_F(Transfer, SendsOnlyTheChangedChunkAfterAOneLineEdit) {
  for (int i = 0; i < 50; ++i) write(dir / "src" / ("m" + std::to_string(i) + ".py"), "line " + std::to_string(i));
  write(dir / "src/data.bin", noise(12'000'000, 2));
  ASSERT_THAT(push(dir / "src"), IsOk());
  write(dir / "src/m7.py", "line 7, edited");
  const auto stats = push(dir / "src");
  ASSERT_THAT(stats, IsOk());
  EXPECT_EQ(stats->chunks_sent, 1u);
  EXPECT_EQ(stats->bytes_sent, 14u);
}

TEST_F(Transfer, RefusesToPushAFileThatChangedSinceItWasScanned) {
  write(dir / "src/a.py", "one");
  const auto scanned = store::scan(dir / "src", {});
  write(dir / "src/a.py", "two");
  const os::Fd fd = *os::open_file(dir / "src", O_RDONLY | O_DIRECTORY);
  store::DirectoryChunks chunks(fd.get(), scanned->tree);
  Host host(cache, snapshots);
  EXPECT_THAT(push_tree(*host.link, scanned->tree, to_manifest(scanned->tree), chunks, os::system_clock()),
              FailsWith(Code::busy));
}

TEST_F(Transfer, PullsACheckpointWholeAndOnlyOnce) {
  write(dir / "out/ckpt.pt", noise(10'000'000, 3));
  write(dir / "out/step-1/meta.json", "{}");
  snapshots.take(dir / "out");
  const auto pulled = pull();
  ASSERT_THAT(pulled, IsOk());
  EXPECT_EQ(pulled->stats.bytes_sent, 10'000'002u);
  EXPECT_EQ(pulled->tree.file_count(), 2u);
  ChunkStore fresh = *ChunkStore::open(dir / "laptop");
  ASSERT_THAT(store::materialise(pulled->tree, fresh, dir / "back"), IsOk());
  EXPECT_EQ(slurp(dir / "back/ckpt.pt"), noise(10'000'000, 3));
  const auto again = pull();
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->stats.chunks_sent, 0u);
}

TEST_F(Transfer, KeepsWhatHasMovedALittleAsADifference) {
  store::StoreOptions options;
  options.cipher = std::make_shared<store::StoreKey>(store::StoreKey::make());
  laptop = *ChunkStore::open(dir / "encrypted", options);
  std::mt19937 random{1};
  std::normal_distribution<float> normal;
  std::vector<float> weights(1u << 18);
  for (float& value : weights) value = normal(random) * 0.02F;
  const auto save = [&](const std::string& path) {
    for (float& value : weights) value += normal(random) * 3e-5F;
    fs::remove_all(dir / "out");
    write(dir / "out" / path, {reinterpret_cast<const char*>(weights.data()), weights.size() * sizeof(float)});
    snapshots.take(dir / "out");
  };
  const auto stored = [&] { return laptop.stats()->blob_bytes; };
  save("step-9/model.bin");
  const auto first = pull();
  ASSERT_THAT(first, IsOk());
  const std::uint64_t alone = stored();
  save("step-10/model.bin");
  const auto second = pull(0, {}, &first->tree);
  ASSERT_THAT(second, IsOk());
  EXPECT_LT(stored() - alone, alone * 3 / 4);
  ASSERT_THAT(store::materialise(second->tree, laptop, dir / "back"), IsOk());
  EXPECT_EQ(slurp(dir / "back/step-10/model.bin"), slurp(dir / "out/step-10/model.bin"));
}

TEST_F(Transfer, GoesOnWhereABrokenPullStopped) {
  for (int i = 0; i < 20; ++i)
    write(dir / "out" / std::to_string(i), noise(100'000, static_cast<std::uint64_t>(i) + 1));
  snapshots.take(dir / "out");
  snapshots.chunks_until_failure = 12;
  const auto broken = pull();
  ASSERT_THAT(broken, FailsWith(Code::io));
  EXPECT_THAT(broken.error().message, ::testing::HasSubstr("disk of the host broke"));
  EXPECT_FALSE(*laptop.has(store::root_of(snapshots.manifest_bytes)));
  snapshots.chunks_until_failure = 1'000'000;
  const auto rest = pull();
  ASSERT_THAT(rest, IsOk());
  EXPECT_EQ(rest->stats.chunks_sent, 8u);
}

TEST_F(Transfer, RefusesAFalsifiedChunk) {
  write(dir / "out/a", "true content");
  snapshots.take(dir / "out");
  snapshots.chunks.begin()->second = Bytes(12, std::byte{'x'});
  EXPECT_THAT(pull(), FailsWith(Code::checkpoint_damaged));
  snapshots.chunks.begin()->second = Bytes(13, std::byte{'x'});
  EXPECT_THAT(pull(), FailsWith(Code::protocol_violation));
  snapshots.chunks.begin()->second = Bytes(11, std::byte{'x'});
  EXPECT_THAT(pull(), FailsWith(Code::checkpoint_damaged));
}

TEST_F(Transfer, RefusesAManifestThatIsNotTheExpectedOne) {
  write(dir / "out/a", "x");
  snapshots.take(dir / "out");
  Host host(cache, snapshots);
  EXPECT_THAT(pull_checkpoint(*host.link, ref, digest_of("other"), 0, laptop, os::system_clock()),
              FailsWith(Code::checkpoint_damaged));
}

TEST_F(Transfer, RefusesMoreThanTheQuotaBeforeFetchingAnything) {
  write(dir / "out/a", noise(5000, 1));
  snapshots.take(dir / "out");
  EXPECT_THAT(pull(4999), FailsWith(Code::checkpoint_damaged));
  EXPECT_EQ(laptop.stats()->blobs, 0u);
  EXPECT_THAT(pull(5000), IsOk());
}

TEST_F(Transfer, RefusesLinksThatLeadOutOfACheckpoint) {
  const Tree tree{{{store::EntryKind::symlink, 0777, "evil", 0, {}, "../../etc/passwd"}}};
  snapshots.manifest_bytes = to_manifest(tree);
  EXPECT_THAT(pull(), FailsWith(Code::checkpoint_damaged));
}

TEST_F(Transfer, SaysWhatTheHostHasNot) {
  ref.number = 8;
  EXPECT_THAT(pull(), FailsWith(Code::not_found));
}

TEST_F(Transfer, StopsWhenProgressSaysSo) {
  write(dir / "out/a", noise(5000, 1));
  snapshots.take(dir / "out");
  EXPECT_THAT(pull(0, [](const TransferStats&) { return false; }), FailsWith(Code::cancelled));
}

TEST_F(Transfer, MovesTenThousandSmallFilesWithoutARoundTripEach) {
  std::vector<store::Entry> entries;
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    const std::string text = noise(500, i + 1);
    const Digest id = digest_of(text);
    entries.push_back({store::EntryKind::file, 0644, "f" + std::to_string(i), 500, {{id, 500}}, {}});
    snapshots.chunks[id] = Bytes(as_bytes(text).begin(), as_bytes(text).end());
  }
  const Tree tree = *store::make_tree(std::move(entries));
  snapshots.manifest_bytes = to_manifest(tree);
  const BootTime begin = os::system_clock().boot();
  ASSERT_THAT(pull(), IsOk());
  std::printf("10,000 files of 500 bytes pulled in %.2f s\n", seconds(os::system_clock().boot() - begin));
  Host host(cache, snapshots);
  const BootTime pushing = os::system_clock().boot();
  ASSERT_THAT(push_tree(*host.link, tree, snapshots.manifest_bytes, laptop, os::system_clock()), IsOk());
  std::printf("10,000 files of 500 bytes pushed in %.2f s\n", seconds(os::system_clock().boot() - pushing));
}

TEST_F(Transfer, DropsAClientThatAnnouncesTooMuch) {
  Host host(cache, snapshots);
  const BootTime soon = os::system_clock().boot() + std::chrono::seconds{20};
  const std::string request = R"({"op":"put","chunk":")" + std::string(64, 'a') + R"(","bytes":4000000000})";
  ASSERT_THAT(host.link->send({wire::FrameKind::request, 1, request}, soon), IsOk());
  EXPECT_THAT(host.link->receive(soon), FailsWith(Code::host_unreachable));
}

TEST_F(Transfer, AnswersARefusedPutAndGoesOn) {
  Host host(cache, snapshots);
  Conversation with{*host.link, os::system_clock()};
  ASSERT_THAT(with.send(wire::FrameKind::request, 1, wire::encode(wire::PutRequest{digest_of("a"), 1})), IsOk());
  ASSERT_THAT(with.send_data(1, as_bytes("b")), IsOk());
  EXPECT_THAT(with.reply(1), FailsWith(Code::checkpoint_damaged));
  ASSERT_THAT(with.send(wire::FrameKind::request, 2, wire::encode_plain("dance")), IsOk());
  EXPECT_THAT(with.reply(2), FailsWith(Code::unsupported));
  ASSERT_THAT(with.send(wire::FrameKind::request, 3, wire::encode(wire::HaveRequest{{digest_of("a")}})), IsOk());
  EXPECT_EQ(wire::parse_have_reply(*with.reply(3))->missing, std::vector<std::uint32_t>{0});
}

TEST_F(Transfer, DropsAPeerThatSendsEmptyDataOrAnotherStream) {
  const BootTime soon = os::system_clock().boot() + std::chrono::seconds{20};
  for (const wire::Frame& odd : std::vector<wire::Frame>{{wire::FrameKind::data, 1, ""},
                                                         {wire::FrameKind::data, 2, "x"},
                                                         {wire::FrameKind::reply, 1, "{}"},
                                                         {wire::FrameKind::data, 1, "more than announced"},
                                                         {wire::FrameKind::end, 1, R"({"ok":true,"bytes":5})"},
                                                         {wire::FrameKind::end, 1, "[]"}}) {
    Host host(cache, snapshots);
    const wire::PutRequest request{digest_of("a"), 1};
    ASSERT_THAT(host.link->send({wire::FrameKind::request, 1, wire::encode(request)}, soon), IsOk());
    ASSERT_THAT(host.link->send(odd, soon), IsOk());
    EXPECT_THAT(host.link->receive(soon), FailsWith(Code::host_unreachable)) << odd.payload;
  }
}

TEST(FdLink, TimesOutWhenNothingComesAndReportsAClosedLink) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const os::Fd a(ends[0]);
  os::Fd b(ends[1]);
  FdLink link(a.get(), a.get(), false);
  EXPECT_THAT(link.receive(os::system_clock().boot() + std::chrono::milliseconds{20}), FailsWith(Code::timed_out));
  const std::string big(wire::k_frame_max, 'x');
  Result<void> sent;
  while (sent)
    sent = link.send({wire::FrameKind::data, 1, big}, os::system_clock().boot() + std::chrono::milliseconds{20});
  EXPECT_THAT(sent, FailsWith(Code::timed_out));
  b.reset();
  EXPECT_FALSE(link.send({wire::FrameKind::data, 1, "x"}, os::system_clock().boot() + std::chrono::seconds{1}));
}

}  // namespace
}  // namespace gridctl::transfer::transfer_test
