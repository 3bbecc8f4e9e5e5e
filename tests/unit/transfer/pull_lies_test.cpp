// SPDX-License-Identifier: Apache-2.0
// Red team: a host that lies about a checkpoint, to have it committed without its bytes, to learn what other jobs have,
// or to fill our disk.
#include <fcntl.h>

#include <mutex>
#include <set>

#include "crypto/sha256.hpp"
#include "support/results.hpp"
#include "unit/transfer/fixtures.hpp"

namespace gridctl::transfer::pull_lies_test {
namespace {

using namespace store::testing;
using namespace transfer::testing;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;

class LyingHost : public ::testing::Test {
 protected:
  // A host that says of its checkpoint what `manifest_bytes` says, and remembers what it was asked for.
  class Snapshots : public MemorySnapshots {
   public:
    std::set<Digest> asked;
    std::mutex mutex;
    Result<Bytes> chunk(const wire::CheckpointRef& ref, const Digest& digest) override {
      {
        const std::lock_guard lock(mutex);
        asked.insert(digest);
      }
      return MemorySnapshots::chunk(ref, digest);
    }
  };

  Result<Pulled> pull(const PullGuard& guard = {}) {
    Host host(cache, snapshots);
    return pull_checkpoint(*host.link, ref, store::root_of(snapshots.manifest_bytes), 0, laptop, os::system_clock(), {},
                           nullptr, guard);
  }
  // What another job has here.
  Digest have(const std::string& content) {
    const Digest digest = crypto::sha256(as_bytes(content));
    EXPECT_THAT(laptop.put(digest, as_bytes(content)), IsOk());
    EXPECT_THAT(laptop.seal(), IsOk());
    return digest;
  }
  static Bytes manifest_of(const std::vector<store::Chunk>& chunks) {
    store::Tree tree;
    store::Entry file;
    file.mode = 0600, file.path = "model.bin", file.chunks = chunks;
    for (const store::Chunk& chunk : chunks) file.size += chunk.size;
    tree.entries.push_back(file);
    return store::to_manifest(store::make_tree(tree.entries).value());
  }

  Folder dir;
  Snapshots snapshots;
  ChunkStore laptop = *ChunkStore::open(dir / "laptop");
  ChunkStore cache = *ChunkStore::open(dir / "cache");
  wire::CheckpointRef ref{JobId{"aaaaaaaaaaaaa"}, Epoch{3}, 7};
};

// It claims to lack the chunk of this number behind the last that it was asked for, and nothing else.
class Greedy final : public wire::Link {
 public:
  explicit Greedy(std::uint32_t behind) : behind_(behind) {}
  Result<void> send(const wire::Frame& frame, BootTime) override {
    const auto asked = wire::parse_have(frame.payload);
    if (asked) questions.push_back({wire::FrameKind::reply, frame.stream,
                                    wire::encode(wire::HaveReply{{static_cast<std::uint32_t>(asked->chunks.size()) + behind_}})});
    return {};
  }
  Result<wire::Frame> receive(BootTime) override {
    if (questions.empty()) return make_error(Code::timed_out, "no answer in time");
    const wire::Frame first = questions.front();
    questions.erase(questions.begin());
    return first;
  }
  std::vector<wire::Frame> questions;

 private:
  const std::uint32_t behind_;
};

TEST_F(LyingHost, CannotLackAChunkThatItWasNotAskedFor) {
  write(dir / "src/a.py", "one");
  write(dir / "src/b.py", "two");
  const auto scanned = store::scan(dir / "src", {});
  const os::Fd fd = *os::open_file(dir / "src", O_RDONLY | O_DIRECTORY);
  store::DirectoryChunks chunks(fd.get(), scanned->tree);
  for (const std::uint32_t behind : {0u, 1u, 4'000'000'000u}) {
    Greedy host(behind);
    EXPECT_THAT(push_tree(host, scanned->tree, to_manifest(scanned->tree), chunks, os::system_clock()),
                FailsWith(Code::protocol_violation))
        << behind;
  }
}

TEST_F(LyingHost, CannotHaveACheckpointCommittedWhoseChunksHaveOtherLengths) {
  const Digest known = have(std::string(5000, 'a'));
  snapshots.manifest_bytes = manifest_of({{known, 4096}});
  EXPECT_THAT(pull(), FailsWith(Code::checkpoint_damaged));
  EXPECT_FALSE(*laptop.has(store::root_of(snapshots.manifest_bytes)));
}

TEST_F(LyingHost, CannotGiveOneChunkTwoLengths) {
  const std::string content(5000, 'a');
  const Digest digest = crypto::sha256(as_bytes(content));
  snapshots.chunks[digest] = Bytes(as_bytes(content).begin(), as_bytes(content).end());
  snapshots.manifest_bytes = manifest_of({{digest, 5000}, {digest, 100}});
  EXPECT_THAT(pull(), FailsWith(Code::checkpoint_damaged));
}

TEST_F(LyingHost, CannotLearnWhetherAnotherJobHasAFile) {
  const std::string guess = "the other job's file", wrong = "a file that nobody has";
  const Digest theirs = have(guess), nobodys = crypto::sha256(as_bytes(wrong));
  for (const std::string* content : {&guess, &wrong})
    snapshots.chunks[crypto::sha256(as_bytes(*content))] = Bytes(as_bytes(*content).begin(), as_bytes(*content).end());
  snapshots.manifest_bytes = manifest_of(
      {{theirs, static_cast<std::uint32_t>(guess.size())}, {nobodys, static_cast<std::uint32_t>(wrong.size())}});
  PullGuard guard;
  guard.may_reuse = [](const Digest&) { return false; };
  EXPECT_THAT(pull(guard), IsOk());
  EXPECT_TRUE(snapshots.asked.contains(theirs));  // asked for both: it learns nothing
  EXPECT_TRUE(snapshots.asked.contains(nobodys));
}

TEST_F(LyingHost, IsNotAskedAgainForWhatItHasSentItself) {
  write(dir / "out/ckpt.pt", noise(1'000'000, 3));
  snapshots.take(dir / "out");
  std::set<Digest> came;
  std::mutex mutex;
  PullGuard guard;
  guard.may_reuse = [&](const Digest& digest) {
    const std::lock_guard lock(mutex);
    return came.contains(digest);
  };
  guard.came = [&](const Digest& digest) {
    const std::lock_guard lock(mutex);
    came.insert(digest);
  };
  ASSERT_THAT(pull(guard), IsOk());
  const auto again = pull(guard);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->stats.chunks_sent, 0u);
}

TEST_F(LyingHost, CannotSendMoreThanThereIsRoomFor) {
  write(dir / "out/ckpt.pt", noise(3'000'000, 3));
  snapshots.take(dir / "out");
  std::uint64_t wanted = 0;
  PullGuard guard;
  guard.room = [&](std::uint64_t bytes) -> Result<void> {
    wanted = bytes;
    return make_error(Code::no_space, "no room");
  };
  EXPECT_THAT(pull(guard), FailsWith(Code::no_space));
  EXPECT_EQ(wanted, 3'000'000u);
  EXPECT_TRUE(snapshots.asked.empty());  // refused before a byte came
}

TEST_F(LyingHost, CannotLeaveHereWhatItFalsified) {
  write(dir / "out/a", noise(500'000, 1));
  write(dir / "out/b", noise(500'000, 2));
  snapshots.take(dir / "out");
  auto last = snapshots.chunks.begin();
  last->second[0] ^= std::byte{1};
  EXPECT_THAT(pull(), FailsWith(Code::checkpoint_damaged));
  laptop = *ChunkStore::open(dir / "laptop");
  EXPECT_EQ(laptop.stats()->blobs, 0u);
}

}  // namespace
}  // namespace gridctl::transfer::pull_lies_test
