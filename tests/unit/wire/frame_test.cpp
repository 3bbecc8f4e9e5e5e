// SPDX-License-Identifier: Apache-2.0
#include "wire/frame.hpp"

#include <random>

#include "support/results.hpp"

namespace gridctl::wire::frame_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;

// Everything that comes out of `bytes` fed in pieces of at most `piece` bytes; stops at an error.
struct Decoded {
  std::vector<Frame> frames;
  std::optional<Error> error;
};
Decoded decode(std::string_view bytes, std::size_t piece, bool await_preamble = false) {
  Decoder decoder(await_preamble);
  Decoded out;
  for (std::size_t at = 0; at < bytes.size() && !out.error; at += piece) {
    decoder.feed(as_bytes(bytes.substr(at, piece)));
    for (;;) {
      Result<std::optional<Frame>> frame = decoder.next();
      if (!frame) out.error = frame.error();
      if (!frame || !frame->has_value()) break;
      out.frames.push_back(std::move(**frame));
    }
  }
  return out;
}

const std::vector<Frame>& some_frames() {
  static const std::vector<Frame> frames{{FrameKind::request, 1, R"({"op":"probe"})"},
                                         {FrameKind::reply, 1, "{}"},
                                         {FrameKind::data, 0xFFFFFFFF, std::string("\0GF\n\xFF", 5)},
                                         {FrameKind::end, 7, ""},
                                         {FrameKind::event, 0, std::string(70'000, 'x')}};
  return frames;
}

std::string encoded(const std::vector<Frame>& frames) {
  std::string bytes;
  for (const Frame& frame : frames) bytes += encode(frame);
  return bytes;
}

TEST(Crc32, HasTheWellKnownCheckValue) {
  EXPECT_EQ(crc32("123456789"), 0xCBF43926u);
  EXPECT_EQ(crc32(""), 0u);
  EXPECT_EQ(crc32("6789", crc32("12345")), 0xCBF43926u);
}

TEST(Decoder, GivesBackFramesHoweverTheBytesAreCut) {
  const std::string bytes = encoded(some_frames());
  for (const std::size_t piece : {std::size_t{1}, std::size_t{2}, std::size_t{15}, std::size_t{4096}, bytes.size()}) {
    const Decoded out = decode(bytes, piece);
    EXPECT_FALSE(out.error);
    EXPECT_EQ(out.frames, some_frames()) << piece;
  }
}

TEST(Decoder, GivesNothingForEveryProperPrefix) {
  const std::string bytes = encode({FrameKind::request, 9, R"({"op":"probe"})"});
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const Decoded out = decode(bytes.substr(0, length), bytes.size());
    EXPECT_FALSE(out.error) << length;
    EXPECT_TRUE(out.frames.empty()) << length;
  }
}

TEST(Decoder, NeverAcceptsAFrameWithAFlippedBit) {
  const std::string bytes = encode({FrameKind::reply, 0x01020304, R"({"already":true})"});
  for (std::size_t at = 0; at < bytes.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      const Decoded out = decode(damaged + std::string(64, '\0'), 4096);
      EXPECT_TRUE(out.frames.empty()) << "byte " << at << " bit " << bit;
    }
}

TEST(Decoder, NeverCrashesOnBytesOfChance) {
  std::mt19937 generator(7);  // a fixed seed: the same bytes every time
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = round % 2 == 0 ? encoded({some_frames()[0], some_frames()[1]}) : std::string(64, '\0');
    for (int change = 0; change < 6; ++change) bytes[generator() % bytes.size()] = static_cast<char>(generator());
    const Decoded out = decode(bytes, 1 + generator() % bytes.size(), round % 3 == 0);
    EXPECT_LE(out.frames.size(), 2u);
  }
}

TEST(Decoder, RefusesFramesLargerThanTheLimitBeforeTheirPayloadCame) {
  std::string header = encode({FrameKind::data, 1, ""});
  header[8] = '\x00', header[9] = '\x10', header[10] = '\x00', header[11] = '\x01';  // 1 MiB + 1
  EXPECT_TRUE(decode(header, header.size()).error);
  EXPECT_EQ(decode(encode({FrameKind::data, 1, std::string(k_frame_max, 'x')}), 1 << 16).frames.size(), 1u);
}

TEST(Decoder, RefusesUnknownKindsAndFlags) {
  for (const std::size_t at : {std::size_t{2}, std::size_t{3}}) {
    std::string bytes = encode({FrameKind::data, 1, ""});
    bytes[at] = 6;
    const Decoded out = decode(bytes, bytes.size());
    ASSERT_TRUE(out.error);
    EXPECT_EQ(out.error->code, Code::protocol_violation);
  }
}

TEST(Decoder, StaysBrokenOnceBroken) {
  Decoder decoder(false);
  decoder.feed(as_bytes("no frame"));
  EXPECT_THAT(decoder.next(), FailsWith(Code::protocol_violation));
  decoder.feed(as_bytes(encode({FrameKind::reply, 1, "{}"})));
  EXPECT_THAT(decoder.next(), FailsWith(Code::protocol_violation));
  EXPECT_EQ(decoder.buffered(), 0u);
}

TEST(Decoder, SkipsLoginNoiseBeforeThePreamble) {
  const std::string noise = "Welcome!\nLast login: today GF\nGRIDCTL-AGENT/0\n";
  const std::string bytes = noise + std::string(k_preamble) + encode(some_frames()[0]);
  for (const std::size_t piece : {std::size_t{1}, bytes.size()}) {
    const Decoded out = decode(bytes, piece, true);
    EXPECT_FALSE(out.error);
    ASSERT_EQ(out.frames.size(), 1u);
  }
  EXPECT_EQ(decode(std::string(k_preamble) + encode(some_frames()[0]), 3, true).frames.size(), 1u);
}

TEST(Decoder, AcceptsNoiseUpToItsLimitAndQuotesItSafelyBeyond) {
  const std::string tail = std::string(k_preamble) + encode(some_frames()[0]);
  EXPECT_EQ(decode(std::string(k_noise_max, 'n') + tail, 1000, true).frames.size(), 1u);
  const Decoded out = decode("\x1b[2Jexec failed" + std::string(k_noise_max, 'n') + tail, 1000, true);
  EXPECT_TRUE(out.frames.empty());
  ASSERT_TRUE(out.error);
  EXPECT_NE(out.error->message.find("^[[2Jexec failed"), std::string::npos) << out.error->message;
}

TEST(Decoder, HoldsNoMoreThanWhatIsNotTakenYet) {
  Decoder decoder(false);
  const std::string bytes = encode(some_frames()[4]);
  for (int i = 0; i < 50; ++i) {
    decoder.feed(as_bytes(bytes));
    ASSERT_THAT(decoder.next(), IsOk());
    EXPECT_EQ(decoder.buffered(), 0u);
  }
}

}  // namespace
}  // namespace gridctl::wire::frame_test
