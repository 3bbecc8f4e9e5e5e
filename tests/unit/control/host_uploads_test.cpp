// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "control/copies/chunks.hpp"
#include "control/copies/host_uploads.hpp"
#include "control/reach/ssh_network.hpp"
#include "hand_clock.hpp"
#include "registry/registry.hpp"
#include "support/results.hpp"
#include "unit/store/remote_fixtures.hpp"

namespace gridctl::control::host_uploads_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::IsOk;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A bucket that cannot sign, as far as anybody asks.
class Bucket : public store::Backend {
 public:
  Result<std::vector<store::Object>> list(std::string_view) override { return make_error(Code::io, "not asked"); }
  Result<Bytes> read(std::string_view, std::uint64_t, std::size_t) override { return make_error(Code::io, "not asked"); }
  Result<void> put(std::string_view, std::uint64_t, const store::ReadAt&, const std::function<bool(std::uint64_t)>&) override {
    return make_error(Code::io, "not asked");
  }
  Result<bool> put_new(std::string_view, ByteView) override { return make_error(Code::io, "not asked"); }
  Result<void> remove(std::string_view) override { return make_error(Code::io, "not asked"); }
  Result<std::optional<store::SignedPut>> sign_put(std::string_view name, const Digest&) override {
    asked.emplace_back(name);
    if (problem) return *problem;
    return std::optional<store::SignedPut>();
  }
  std::vector<std::string> asked;
  std::optional<Error> problem;
};

class Uploads : public ::testing::Test {
 protected:
  Uploads() {
    registry::Provider provider;
    provider.name = {"ada"};
    EXPECT_THAT(registry.add_provider(provider), IsOk());
    job::Spec spec;
    spec.name = "train";
    spec.run = "true";
    EXPECT_THAT(registry.submit(id, spec, {1}), IsOk());
    EXPECT_THAT(registry.apply(id, {{2}, job::Placed{{job::Member{0, {"ada"}, {}, {}, 1, 0, 0}}, "x"}}), IsOk());
    checkpoint.job = id;
    checkpoint.epoch = registry.attempts(id)->front().epoch;
    checkpoint.host_number = 4;
    checkpoint.root = store::testing::save(chunks, {{"a", store::testing::noise(3 << 20, 1)}}, 1).root;
    const auto found = chunks.packs_of(std::vector{checkpoint.root});
    EXPECT_THAT(found, IsOk());
    pack = found->front();
  }
  void put(const registry::Checkpoint& of, const store::PackFile& which) {
    HostUploads uploads({net, registry, chunks, *key, bucket, clock, memory}, of);
    uploads.put(which, [] { return true; });
    uploads.put(which, [] { return true; });
  }
  [[nodiscard]] Duration pause() { return memory.hosts[HostName{"ada"}].pause; }

  store::testing::Folder here;
  Paths paths{here / "state"};
  testing::HandClock clock;
  registry::Registry registry = *registry::Registry::open(paths.root);
  SshNetwork net{clock, paths, *registry.controller_id()};
  store::ChunkStore chunks = *open_chunks(paths);
  std::optional<store::StoreKey> key = *load_key(paths);
  const JobId id{"abcdefghijk23"};
  registry::Checkpoint checkpoint;
  store::PackFile pack;
  Bucket bucket;
  UploadMemory memory;
};

TEST_F(Uploads, ThatCannotBeAreNotTriedAgainForTenMinutesAndThenTwiceAsLong) {
  put(checkpoint, pack);
  EXPECT_THAT(bucket.asked, SizeIs(1)) << "no more for this checkpoint";
  EXPECT_EQ(pause(), 10min);
  clock.pass(10min - 1s);
  put(checkpoint, pack);
  EXPECT_THAT(bucket.asked, SizeIs(1));
  clock.pass(1s);
  put(checkpoint, pack);
  EXPECT_THAT(bucket.asked, SizeIs(2));
  EXPECT_EQ(pause(), 20min);
  for (int i = 0; i < 12; ++i) {
    clock.pass(25h);
    put(checkpoint, pack);
  }
  EXPECT_EQ(pause(), 24h) << "and no longer than a day";
}

TEST_F(Uploads, AreLeftOutWhereTheyAreNotWorthwhileOrNobodyHasTheFiles) {
  store::PackFile small = pack;
  small.size = (1u << 20) - 1;
  put(checkpoint, small);
  registry::Checkpoint pushed = checkpoint;
  pushed.host_number = 0;
  put(pushed, pack);
  registry::Checkpoint stranger = checkpoint;
  stranger.epoch = {99};
  put(stranger, pack);
  EXPECT_THAT(bucket.asked, IsEmpty());
  EXPECT_THAT(memory.hosts, IsEmpty()) << "no host is to blame";
}

TEST_F(Uploads, ThatWereCancelledBlameNoHost) {
  bucket.problem = make_error(Code::cancelled, "the copy was cancelled");
  put(checkpoint, pack);
  EXPECT_THAT(bucket.asked, SizeIs(1));
  EXPECT_EQ(pause(), 0s);
  bucket.problem = make_error(Code::not_found, "what it differs from is gone there");
  put(checkpoint, pack);
  EXPECT_THAT(bucket.asked, SizeIs(3)) << "the next pack may be another matter";
  EXPECT_EQ(pause(), 0s);
}

TEST_F(Uploads, RememberTheNamesOfWhatTheNextMayDifferFrom) {
  put(checkpoint, pack);
  EXPECT_THAT(memory.names, SizeIs(2)) << "the tree and its only chunk";
}

}  // namespace
}  // namespace gridctl::control::host_uploads_test
