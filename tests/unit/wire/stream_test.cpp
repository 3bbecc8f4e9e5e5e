// SPDX-License-Identifier: Apache-2.0
#include "wire/stream.hpp"

#include <gtest/gtest.h>

#include <random>

namespace gridctl::wire::stream_test {
namespace {

StreamOpen full_open() {
  StreamOpen open;
  open.kind = StreamKind::put;
  open.port = 8888;
  open.command = {"sh", "-c", "echo \"läuft\""};
  open.terminal = {132, 50};
  open.env = {{"TERM", "xterm-256color"}};
  open.errors = 3;
  open.rank = 7;
  open.path = "out/ckpt.pt";
  open.offset = 1ull << 40;
  open.digest = std::string(64, 'a');
  open.mode = 0755;
  return open;
}

TEST(StreamMessages, SurviveARoundTrip) {
  const std::string open = encode(full_open());
  ASSERT_TRUE(parse_stream_open(open));
  EXPECT_EQ(encode(*parse_stream_open(open)), open);
  const std::string plain = encode(StreamOpen{});
  EXPECT_EQ(encode(*parse_stream_open(plain)), plain);
  const std::string note = encode(StreamNote{1, 2, 3, Terminal{80, 24}, 15});
  EXPECT_EQ(encode(*parse_stream_note(note)), note);
  const std::string end = encode(StreamEnd{{}, 3, {}});
  EXPECT_EQ(encode(*parse_stream_end(end)), end);
  const std::string entry = encode(StreamEntry{"a/b", EntryType::link, 0, 0777, "../c"});
  EXPECT_EQ(encode(*parse_stream_entry(entry)), entry);
  const std::string enter = encode(EnterRequest{JobId{"k3jf7qw2mxnpa"}, Epoch{7}});
  EXPECT_EQ(encode(*parse_enter(enter)), enter);
  const std::string allow = encode(AllowRequest{{8888, 6006}});
  EXPECT_EQ(encode(*parse_allow(allow)), allow);
  const std::string answer = encode(StreamAnswer{5, 6});
  EXPECT_EQ(encode(*parse_stream_answer(answer)), answer);
}

TEST(StreamMessages, RefuseWhatGoesBeyondTheirLimits) {
  StreamOpen open = full_open();
  open.command.assign(k_arguments_max + 1, "x");
  EXPECT_FALSE(parse_stream_open(encode(open)));
  open = full_open();
  open.path = std::string(k_stream_path_max + 1, 'x');
  EXPECT_FALSE(parse_stream_open(encode(open)));
  EXPECT_FALSE(parse_stream_open(R"({"op":"open","kind":"socket"})"));
  EXPECT_FALSE(parse_stream_open(R"({"op":"open","kind":"port","port":65536})"));
  EXPECT_FALSE(parse_stream_note(R"({"signal":-9})"));
  EXPECT_FALSE(parse_stream_note(R"({"credit":-1})"));
  EXPECT_FALSE(parse_stream_end(R"({"exit_code":256})"));
  EXPECT_FALSE(parse_enter(R"({"op":"enter","job":"k3jf7qw2mxnpa"})")) << "a job without an epoch";
  EXPECT_FALSE(parse_enter(R"({"op":"enter","job":"../etc","epoch":1})"));
}

TEST(StreamMessages, AreParsedOrRefusedWhateverBytesCome) {
  std::mt19937 random(4711);  // NOLINT: the same bytes each time
  const std::vector<std::string> texts{encode(full_open()), encode(StreamNote{1, 2, 3, Terminal{80, 24}, 15}),
                                       encode(StreamEnd{make_error(Code::refused, "no"), 3, 9}),
                                       encode(StreamEntry{"a", EntryType::file, 5, 0644, ""})};
  for (int round = 0; round < 20'000; ++round) {
    std::string text = texts[random() % texts.size()];
    for (unsigned change = 0; change <= random() % 4; ++change) text[random() % text.size()] = static_cast<char>(random());
    (void)parse_stream_open(text);
    (void)parse_stream_note(text);
    (void)parse_stream_end(text);
    (void)parse_stream_entry(text);
  }
}

TEST(Ports, AreReadAsTheHostIsTold) {
  EXPECT_EQ(parse_ports("8888,6006"), (std::vector<std::uint16_t>{8888, 6006}));
  EXPECT_TRUE(parse_ports("").empty());
  EXPECT_EQ(parse_ports("0,x,70000,-1,22"), (std::vector<std::uint16_t>{22}));
}

}  // namespace
}  // namespace gridctl::wire::stream_test
