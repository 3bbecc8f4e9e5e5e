// SPDX-License-Identifier: Apache-2.0
// Chunks that travel encoded: agreed on or not, honest or not, worth it or not.
#include <fcntl.h>

#include "store/materialise.hpp"
#include "unit/transfer/fixtures.hpp"

namespace gridctl::transfer::codecs_test {
namespace {

using namespace store::testing;
using namespace transfer::testing;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using store::Codec;
using store::Tree;

TEST(Codecs, AreWordsOfTheHandshake) {
  EXPECT_EQ(Codecs::ours().words(), (std::vector<std::string>{"codec-1", "codec-2"}));
  EXPECT_TRUE(Codecs().words().empty());
  EXPECT_TRUE(Codecs().includes(Codec::raw));
  const Codecs some = Codecs::of({"bulk", "codec-1", "codec-99", "codec-", "codec-2x"});
  EXPECT_TRUE(some.includes(Codec::zstd));
  EXPECT_FALSE(some.includes(Codec::planes));
  EXPECT_FALSE(some.includes(static_cast<Codec>(99)));
}

constexpr std::size_t k_chunk = 4 << 20;

Duration from_seconds(double value) { return std::chrono::nanoseconds{static_cast<std::int64_t>(value * 1e9)}; }

// What the sender of a hundred chunks decides, on a link of so many bytes a second.
int encoded_of_hundred(EncodingWorth& worth, double link_rate, double encode_rate, double stored_share) {
  int count = 0;
  for (int i = 0; i < 100; ++i) {
    std::size_t on_the_wire = k_chunk;
    if (worth.wanted()) {
      ++count;
      on_the_wire = static_cast<std::size_t>(k_chunk * stored_share);
      worth.encoded(k_chunk, on_the_wire, from_seconds(k_chunk / encode_rate));
    }
    worth.sent(on_the_wire, from_seconds(static_cast<double>(on_the_wire) / link_rate));
  }
  return count;
}

TEST(EncodingWorth, EncodesOnASlowLink) {
  EncodingWorth worth;
  EXPECT_EQ(encoded_of_hundred(worth, 12.5e6, 0.8e9, 0.84), 100);
}

TEST(EncodingWorth, GoesOnLookingOnASlowLinkWhereNothingGains) {
  EncodingWorth worth;
  EXPECT_EQ(encoded_of_hundred(worth, 12.5e6, 20e9, 1.0), 100);
}

TEST(EncodingWorth, DoesNotEncodeWhenTheLinkIsFaster) {
  EncodingWorth worth;
  EXPECT_LT(encoded_of_hundred(worth, 1.15e9, 0.8e9, 0.84), 15);
  // and finds out when the link has become slow
  encoded_of_hundred(worth, 12.5e6, 0.8e9, 0.84);
  EXPECT_EQ(encoded_of_hundred(worth, 12.5e6, 0.8e9, 0.84), 100);
}

class Encoded : public ::testing::Test {
 protected:
  Folder dir;
  MemorySnapshots snapshots;
  ChunkStore laptop = *ChunkStore::open(dir / "laptop");
  ChunkStore cache = *ChunkStore::open(dir / "cache");
  wire::CheckpointRef ref{JobId{"aaaaaaaaaaaaa"}, Epoch{3}, 7};

  void snapshot(const std::string& content) {
    write(dir / "out/model", content);
    snapshots.take(dir / "out");
  }
  Result<Pulled> pull(const Route& route) {
    return pull_checkpoint(route, ref, store::root_of(snapshots.manifest_bytes), 0, laptop, os::system_clock());
  }
  Result<TransferStats> push(const os::Path& from, Codecs codecs) {
    const Tree tree = store::scan(from, {})->tree;
    const os::Fd fd = *os::open_file(from, O_RDONLY | O_DIRECTORY);
    store::DirectoryChunks chunks(fd.get(), tree);
    Host host(cache, snapshots);
    return push_tree({*host.link, codecs}, tree, to_manifest(tree), chunks, os::system_clock());
  }
};

TEST_F(Encoded, PullsFewerBytesThanTheCheckpointHas) {
  snapshot(weights(3'000'000, 1) + "tail");
  Host host(cache, snapshots, Codecs::ours());
  const auto pulled = pull(*host.link);
  ASSERT_THAT(pulled, IsOk());
  EXPECT_EQ(pulled->stats.bytes_sent, 12'000'004u);
  EXPECT_LT(pulled->stats.bytes_moved, 12'000'004u * 87 / 100);
  ASSERT_THAT(store::materialise(pulled->tree, laptop, dir / "back"), IsOk());
  EXPECT_EQ(slurp(dir / "back/model"), weights(3'000'000, 1) + "tail");
}

TEST_F(Encoded, PullsPlainBytesWhenWeDidNotSayThatWeDecode) {
  snapshot(weights(1'000'000, 1));
  Host host(cache, snapshots, Codecs());
  const auto pulled = pull(*host.link);
  ASSERT_THAT(pulled, IsOk());
  EXPECT_EQ(pulled->stats.bytes_moved, 4'000'000u + snapshots.manifest_bytes.size());
}

TEST_F(Encoded, PushesFewerBytesOrPlainOnesToAnOldHost) {
  write(dir / "old/model", weights(1'000'000, 1));
  const auto plain = push(dir / "old", Codecs());
  ASSERT_THAT(plain, IsOk());
  EXPECT_EQ(plain->bytes_moved, 4'000'000u + to_manifest(store::scan(dir / "old", {})->tree).size());
  write(dir / "new/model", weights(1'000'000, 2));
  const auto encoded = push(dir / "new", Codecs::ours());
  ASSERT_THAT(encoded, IsOk());
  EXPECT_LT(encoded->bytes_moved, 4'000'000u * 87 / 100);
  const Tree tree = store::scan(dir / "new", {})->tree;
  ASSERT_THAT(store::materialise(tree, cache, dir / "there"), IsOk());
  EXPECT_EQ(slurp(dir / "there/model"), weights(1'000'000, 2));
}

// A host that answers every get with this parcel.
class LyingHost {
 public:
  LyingHost(Bytes manifest, Parcel parcel) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    ours_ = os::Fd(ends[0]);
    theirs_ = os::Fd(ends[1]);
    link = std::make_unique<FdLink>(ours_.get(), ours_.get(), false);
    thread_ = std::thread([this, manifest = std::move(manifest), parcel = std::move(parcel)] {
      FdLink server(theirs_.get(), theirs_.get(), false);
      Conversation with{server, os::system_clock()};
      while (const auto request = server.receive(with.deadline())) {
        const bool get = wire::request_name(request->payload) == "get";
        if (!with.send(wire::FrameKind::reply, request->stream, "{}")) break;
        if (!with.send_data(request->stream, get ? parcel.bytes : manifest, get ? parcel.encoding : store::Encoding{}))
          break;
      }
    });
  }
  ~LyingHost() {
    ::shutdown(ours_.get(), SHUT_RDWR);
    thread_.join();
  }
  std::unique_ptr<FdLink> link;

 private:
  os::Fd ours_, theirs_;
  std::thread thread_;
};

Bytes bytes_of(std::string_view text) { return {as_bytes(text).begin(), as_bytes(text).end()}; }

TEST_F(Encoded, BelievesNoEncodingOfAHost) {
  const std::string content = weights(10'000, 1);
  snapshot(content);
  const store::Encoded good = *store::encode(as_bytes(content));
  const store::Encoded other = *store::encode(as_bytes(weights(10'000, 2)));
  const store::Encoded bomb = *store::encode(as_bytes(std::string(60'000'000, 'x')));
  ASSERT_LT(bomb.bytes.size(), content.size());
  Bytes longer = good.bytes;
  longer.resize(content.size() + 1);
  struct Lie {
    const char* what;
    Parcel parcel;
    Code code;
  };
  const std::vector<Lie> lies{
      {"another content", {other.bytes, other.encoding}, Code::checkpoint_damaged},
      {"more than the chunk has", {bomb.bytes, bomb.encoding}, Code::checkpoint_damaged},
      {"no encoding at all", {bytes_of("nonsense"), {Codec::zstd, 0}}, Code::checkpoint_damaged},
      {"nothing", {{}, {Codec::planes, 4}}, Code::checkpoint_damaged},
      {"an unknown width", {good.bytes, {Codec::planes, 3}}, Code::unsupported},
      {"a codec that nobody agreed on", {good.bytes, {static_cast<Codec>(77), 0}}, Code::protocol_violation},
      {"more bytes than plain ones", {longer, good.encoding}, Code::protocol_violation},
      {"too few, as if plain", {good.bytes, {}}, Code::checkpoint_damaged},
  };
  for (const Lie& lie : lies) {
    LyingHost host(snapshots.manifest_bytes, lie.parcel);
    EXPECT_THAT(pull(*host.link), FailsWith(lie.code)) << lie.what;
  }
  EXPECT_EQ(laptop.stats()->blobs, 0u);
  LyingHost honest(snapshots.manifest_bytes, {good.bytes, good.encoding});
  EXPECT_THAT(pull(*honest.link), IsOk());
}

TEST(Conversation, RefusesEncodedDataThatAreNoChunk) {
  const std::string text(5000, 'm');
  const store::Encoded encoded = *store::encode(as_bytes(text));
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const os::Fd a(ends[0]), b(ends[1]);
  FdLink near(a.get(), a.get(), false), far(b.get(), b.get(), false);
  Conversation sender{far, os::system_clock()}, receiver{near, os::system_clock()};
  ASSERT_THAT(sender.send_data(1, encoded.bytes, encoded.encoding), IsOk());
  EXPECT_THAT(receiver.data(1, 10'000), FailsWith(Code::protocol_violation));
}

TEST_F(Encoded, AHostRefusesABadEncodingAndGoesOn) {
  Host host(cache, snapshots);
  Conversation with{*host.link, os::system_clock()};
  const std::string content = weights(1000, 1);
  const store::Encoded good = *store::encode(as_bytes(content));
  const wire::PutRequest request{digest_of(content), static_cast<std::uint32_t>(content.size())};
  const auto put = [&](std::uint32_t stream, ByteView bytes, store::Encoding encoding) -> Result<void> {
    TRY(with.send(wire::FrameKind::request, stream, wire::encode(request)));
    TRY(with.send_data(stream, bytes, encoding));
    TRY(with.reply(stream));
    return {};
  };
  EXPECT_THAT(put(1, as_bytes("nonsense"), {Codec::zstd, 0}), FailsWith(Code::checkpoint_damaged));
  EXPECT_THAT(put(2, good.bytes, {static_cast<Codec>(9), 0}), FailsWith(Code::protocol_violation));
  EXPECT_THAT(put(3, good.bytes, {}), FailsWith(Code::checkpoint_damaged));
  EXPECT_THAT(put(4, good.bytes, good.encoding), IsOk());
  EXPECT_TRUE(*cache.has(request.chunk));
}

}  // namespace
}  // namespace gridctl::transfer::codecs_test
