// SPDX-License-Identifier: Apache-2.0
// Links that break at any byte, and several connections at once.
#include <fcntl.h>

#include <mutex>

#include "store/materialise.hpp"
#include "support/results.hpp"
#include "unit/transfer/fixtures.hpp"

namespace gridctl::transfer::parallel_transfer_test {
namespace {

using namespace store::testing;
using namespace transfer::testing;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using store::Tree;

constexpr int k_cuts = 30;
constexpr std::uint64_t k_file_max = 1'400'000;  // bytes: one chunk each
constexpr std::uint64_t k_around_max =
    16 * 1024;  // bytes of a connection that are no chunk: manifest, questions, frames

class BrokenLinks : public ::testing::Test {
 protected:
  Folder dir;
  MemorySnapshots snapshots;
  ChunkStore laptop = *ChunkStore::open(dir / "laptop");
  ChunkStore cache = *ChunkStore::open(dir / "cache");
  wire::CheckpointRef ref{JobId{"aaaaaaaaaaaaa"}, Epoch{3}, 7};
  std::mt19937 random{20261};
  Tree tree;

  std::uint64_t between(std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random);
  }

  // Files of one chunk each, of which some compress.
  void make_files(int count) {
    for (int i = 0; i < count; ++i) {
      const std::uint64_t size = between(200'000, k_file_max) / 4 * 4;
      const auto seed = static_cast<std::uint32_t>(i + 1);
      write(dir / "out" / std::to_string(i), i % 4 == 0 ? weights(size / 4, seed) : noise(size, seed));
    }
    snapshots.take(dir / "out");
    tree = store::scan(dir / "out", {})->tree;
  }
  Result<Pulled> pull(const Route& route, ChunkStore& into, const Progress& progress = {}) {
    return pull_checkpoint(route, ref, store::root_of(snapshots.manifest_bytes), 0, into, os::system_clock(), progress);
  }
  Result<TransferStats> push(const Route& route) {
    const os::Fd fd = *os::open_file(dir / "out", O_RDONLY | O_DIRECTORY);
    store::DirectoryChunks chunks(fd.get(), tree);
    return push_tree(route, tree, snapshots.manifest_bytes, chunks, os::system_clock());
  }
  void expect_whole(ChunkStore& store) {
    ASSERT_THAT(store::materialise(tree, store, dir / "back"), IsOk());
    EXPECT_EQ(store::scan(dir / "back", {})->tree, tree);
  }
};

// Until it is through: broken k_cuts times at random bytes, each time begun anew. Returns the bytes that passed.
template <class Attempt>
std::uint64_t with_cuts(std::uint64_t mean, std::mt19937& random, Attempt attempt) {
  std::uint64_t passed = 0;
  for (int cut = 0; cut < k_cuts; ++cut) {
    const std::uint64_t at = std::uniform_int_distribution<std::uint64_t>(1, mean * 2)(random);
    const auto [outcome, bytes] = attempt(Line{at});
    EXPECT_THAT(outcome, FailsWith(Code::host_unreachable)) << "cut " << cut << " at byte " << at;
    passed += bytes;
  }
  const auto [outcome, bytes] = attempt(Line{});
  EXPECT_THAT(outcome, IsOk());
  return passed + bytes;
}

TEST_F(BrokenLinks, APullCutAtThirtyRandomBytesFetchesNoChunkTwice) {
  make_files(48);
  ChunkStore other = *ChunkStore::open(dir / "other");
  FarHost whole(cache, snapshots, {});
  ASSERT_THAT(pull(*whole.link, other), IsOk());
  std::uint64_t chunks = 0;
  const std::uint64_t passed = with_cuts(whole.passed() / (k_cuts + 5), random, [&](Line line) {
    FarHost host(cache, snapshots, line);
    std::uint64_t came = 0;
    auto outcome = pull(*host.link, laptop, [&](const TransferStats& done) {
      came = done.chunks_sent;
      return true;
    });
    chunks += came;
    return std::pair{outcome ? Result<void>() : Result<void>(outcome.error()), host.passed()};
  });
  EXPECT_EQ(chunks, tree.unique_chunks().size());
  EXPECT_LE(passed, whole.passed() + k_cuts * (k_file_max + k_around_max));
  std::printf("pull of %.1f MB with %d cuts: %.1f MB passed, %.2f chunks of the largest size a cut\n",
              static_cast<double>(whole.passed()) / 1e6, k_cuts, static_cast<double>(passed) / 1e6,
              static_cast<double>(passed - whole.passed()) / k_cuts / k_file_max);
  expect_whole(laptop);
}

TEST_F(BrokenLinks, APushCutAtThirtyRandomBytesSendsOneChunkAgainAtMost) {
  make_files(48);
  ChunkStore other = *ChunkStore::open(dir / "other");
  FarHost whole(other, snapshots, {});
  ASSERT_THAT(push({*whole.link, Codecs::ours()}), IsOk());
  const std::uint64_t passed = with_cuts(whole.passed() / (k_cuts + 5), random, [&](Line line) {
    FarHost host(cache, snapshots, line);
    auto outcome = push({*host.link, Codecs::ours()});
    return std::pair{outcome ? Result<void>() : Result<void>(outcome.error()), host.passed()};
  });
  EXPECT_LE(passed, whole.passed() + k_cuts * (k_file_max + k_around_max));
  std::printf("push of %.1f MB with %d cuts: %.1f MB passed, %.2f chunks of the largest size a cut\n",
              static_cast<double>(whole.passed()) / 1e6, k_cuts, static_cast<double>(passed) / 1e6,
              static_cast<double>(passed - whole.passed()) / k_cuts / k_file_max);
  expect_whole(cache);
}

// Every further connection is another far host; the first of them break after so many bytes.
class ManyLinks {
 public:
  ManyLinks(ChunkStore& cache, SnapshotSource& snapshots, std::uint64_t rate, int breaking, std::uint64_t cut_after)
      : cache_(cache), snapshots_(snapshots), rate_(rate), breaking_(breaking), cut_after_(cut_after) {}

  Result<BulkLink> open() {
    const std::scoped_lock guard(mutex_);
    ++opened_;
    const bool breaks = breaking_-- > 0;
    auto host = std::make_unique<FarHost>(cache_, snapshots_,
                                          Line{breaks ? cut_after_ : std::numeric_limits<std::uint64_t>::max(), rate_});
    return BulkLink{std::make_unique<Held>(std::move(host)), Codecs::ours()};
  }
  [[nodiscard]] int opened() const { return opened_; }

 private:
  class Held : public wire::Link {
   public:
    explicit Held(std::unique_ptr<FarHost> host) : host_(std::move(host)) {}
    Result<void> send(const wire::Frame& frame, BootTime deadline) override {
      return host_->link->send(frame, deadline);
    }
    Result<wire::Frame> receive(BootTime deadline) override { return host_->link->receive(deadline); }

   private:
    std::unique_ptr<FarHost> host_;
  };
  ChunkStore& cache_;
  SnapshotSource& snapshots_;
  const std::uint64_t rate_;
  std::mutex mutex_;
  int breaking_;
  const std::uint64_t cut_after_;
  std::atomic<int> opened_{0};
};

constexpr std::uint64_t k_line_rate = 6'000'000;  // bytes a second of one connection; it is weighed after some 7 MB

TEST_F(BrokenLinks, SeveralConnectionsPullWhatOneIsTooSlowForEvenWhenSomeBreak) {
  make_files(60);
  ManyLinks links(cache, snapshots, k_line_rate, 1, 3'000'000);
  FarHost first(cache, snapshots, {.bytes_per_second = k_line_rate});
  const auto pulled = pull({*first.link, Codecs::ours(), [&] { return links.open(); }}, laptop);
  ASSERT_THAT(pulled, IsOk());
  EXPECT_GE(links.opened(), 1);
  EXPECT_EQ(pulled->stats.chunks_sent, tree.unique_chunks().size());
  expect_whole(laptop);
}

TEST_F(BrokenLinks, SeveralConnectionsPushWhatOneIsTooSlowForEvenWhenSomeBreak) {
  make_files(60);
  ManyLinks links(cache, snapshots, k_line_rate, 1, 3'000'000);
  FarHost first(cache, snapshots, {.bytes_per_second = k_line_rate});
  const auto pushed = push({*first.link, Codecs::ours(), [&] { return links.open(); }});
  ASSERT_THAT(pushed, IsOk());
  EXPECT_GE(links.opened(), 1);
  expect_whole(cache);
}

TEST_F(BrokenLinks, WhereLoginsTakeLongSeveralConnectionsComeAtOnce) {
  make_files(110);
  ManyLinks links(cache, snapshots, Line{}.bytes_per_second, 0, 0);
  FarHost first(cache, snapshots, {});
  const Route far{*first.link, Codecs::ours(), [&] { return links.open(); }, std::chrono::seconds{1}};
  const auto pulled = pull(far, laptop);
  ASSERT_THAT(pulled, IsOk());
  ASSERT_GT(pulled->stats.bytes, 64u << 20);
  EXPECT_GE(links.opened(), 3);
  expect_whole(laptop);
}

TEST_F(BrokenLinks, ALyingFurtherConnectionEndsThePull) {
  make_files(60);
  MemorySnapshots lies;
  lies.chunks = snapshots.chunks;
  for (auto& [digest, content] : lies.chunks) content.back() ^= std::byte{1};
  ManyLinks liars(cache, lies, k_line_rate, 0, 0);
  FarHost first(cache, snapshots, {.bytes_per_second = k_line_rate});
  EXPECT_THAT(pull({*first.link, Codecs::ours(), [&] { return liars.open(); }}, laptop),
              FailsWith(Code::checkpoint_damaged));
}

TEST_F(BrokenLinks, AHostThatTakesNoFurtherConnectionIsPulledFromAllTheSame) {
  make_files(60);
  std::atomic<int> asked{0};
  FarHost first(cache, snapshots, {.bytes_per_second = k_line_rate});
  const auto refuse = [&]() -> Result<BulkLink> {
    ++asked;
    return make_error(Code::auth_refused, "no more logins");
  };
  ASSERT_THAT(pull({*first.link, Codecs::ours(), refuse}, laptop), IsOk());
  EXPECT_GE(asked, 1);
  EXPECT_LT(asked, static_cast<int>(k_lanes_max));
  expect_whole(laptop);
}

}  // namespace
}  // namespace gridctl::transfer::parallel_transfer_test
