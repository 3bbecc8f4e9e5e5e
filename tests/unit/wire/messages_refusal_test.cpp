// SPDX-License-Identifier: Apache-2.0
// What a peer may not send.
#include <nlohmann/json.hpp>
#include <random>

#include "samples.hpp"
#include "support/results.hpp"
#include "wire/frame.hpp"
#include "wire/messages.hpp"

namespace gridctl::wire::messages_refusal_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using nlohmann::json;

// Fields whose absence means "none".
bool is_optional(const samples::Sample& sample, const std::string& key) {
  if (sample.name == std::string("receipts") && key == "accepts") return true;
  if (sample.name == std::string("receipts-reply") && key == "key") return true;
  if (key == "job") return sample.name == std::string("have-for-job");
  return key == "image_archive" || key == "workdir" || key == "restore" || key == "error" || key == "hint" ||
         key == "retry" || key == "held" || key == "ends_in_ms" || key == "codec" || key == "parameter" ||
         key == "limits" || key == "allowed_ms" || key == "running_ms_ago" || key == "paused_ms" ||
         key == "paused_ms_ago" || key == "gpu_only" || key == "bag" || key == "use" ||
         key == "nonce" || key == "peer_key" || key == "peer_proof";
}

TEST(Refusals, EveryRequiredFieldIsMissed) {
  for (const samples::Sample& sample : samples::all()) {
    const json whole = json::parse(sample.payload);
    for (const auto& [key, value] : whole.items()) {
      json without = whole;
      without.erase(key);
      if (is_optional(sample, key)) continue;
      EXPECT_THAT(sample.again(without.dump()), FailsWith(Code::protocol_violation)) << sample.name << " " << key;
    }
  }
}

TEST(Refusals, EveryMistypedFieldIsSeen) {
  const std::vector<json> others{json(nullptr), json(true),       json(-1),        json(1.5),
                                 json("text"),  json::array({1}), json({{"a", 1}})};
  for (const samples::Sample& sample : samples::all()) {
    const json whole = json::parse(sample.payload);
    for (const auto& [key, value] : whole.items())
      for (const json& other : others) {
        if (is_optional(sample, key) && other.is_null()) continue;
        if (other.type() == value.type() || (other.is_number() && value.is_number())) continue;
        json changed = whole;
        changed[key] = other;
        EXPECT_THAT(sample.again(changed.dump()), FailsWith(Code::protocol_violation))
            << sample.name << " " << key << " " << other;
      }
  }
}

TEST(Refusals, UnknownFieldsAreIgnored) {
  for (const samples::Sample& sample : samples::all()) {
    json more = json::parse(sample.payload);
    more["from_the_future"] = {{"deep", {1, 2, 3}}};
    EXPECT_EQ(sample.again(more.dump()).value_or("refused"), sample.back()) << sample.name;
  }
}

TEST(Refusals, EveryPrefixIsRefused) {
  for (const samples::Sample& sample : samples::all())
    for (std::size_t length = 0; length < sample.payload.size(); length += 1 + length / 50)
      EXPECT_FALSE(sample.again(sample.payload.substr(0, length))) << sample.name << " " << length;
}

TEST(Refusals, MutatedMessagesNeverCrash) {
  std::mt19937 generator(11);  // a fixed seed: the same mutations every time
  for (const samples::Sample& sample : samples::all())
    for (int round = 0; round < 60; ++round) {
      std::string changed = sample.payload;
      for (int change = 0; change <= round % 4; ++change)
        changed[generator() % changed.size()] = "{}[]\",:0-9e\\\xFF\0 n"[generator() % 16];
      const Result<std::string> again = sample.again(changed);
      // What is accepted must be something we could have sent: it comes back unchanged once more.
      if (again) {
        EXPECT_EQ(sample.again(*again).value_or("refused"), *again) << sample.name;
      }
      static_cast<void>(payload_error(changed));
      static_cast<void>(request_name(changed));
    }
}

TEST(Refusals, DeepNestingIsRefusedBeforeItIsBuilt) {
  const auto nested = [](std::size_t depth) {
    return R"({"op":"probe","x":)" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_EQ(request_name(nested(k_json_depth_max - 1)), "probe");
  EXPECT_EQ(request_name(nested(k_json_depth_max)), "");
  EXPECT_EQ(request_name(nested(400'000)), "");
  EXPECT_EQ(request_name(R"({"op":"probe","x":")" + std::string(100, '[') + R"(\"["})"), "probe");
}

TEST(Refusals, TextsHaveLimits) {
  AttemptSpec spec = samples::spec();
  spec.run.assign(k_script_max, 'x');
  EXPECT_THAT(parse_attempt_spec(encode(spec)), IsOk());
  spec.run += 'x';
  EXPECT_THAT(parse_attempt_spec(encode(spec)), FailsWith(Code::protocol_violation));
  spec = samples::spec();
  spec.envs["BIG"].assign(k_text_max + 1, 'x');
  EXPECT_THAT(parse_attempt_spec(encode(spec)), FailsWith(Code::protocol_violation));
  spec = samples::spec();
  spec.image = std::string("a\0b", 3);
  EXPECT_THAT(parse_attempt_spec(encode(spec)), FailsWith(Code::protocol_violation));
}

TEST(Refusals, AGangWithoutThisHostOrWithoutRanksIsRefused) {
  AttemptSpec spec = samples::spec();
  spec.gang = Gang{};
  EXPECT_THAT(parse_attempt_spec(encode(spec)), FailsWith(Code::protocol_violation));
  spec.gang->members = {{"ada", "10.0.0.7", 1}};
  EXPECT_THAT(parse_attempt_spec(encode(spec)), IsOk());
  spec.gang->node_rank = 1;
  EXPECT_THAT(parse_attempt_spec(encode(spec)), FailsWith(Code::protocol_violation));
  spec.gang->node_rank = 0;
  spec.gang->members[0].ranks = 0;
  EXPECT_THAT(parse_attempt_spec(encode(spec)), FailsWith(Code::protocol_violation));
  spec.gang->members.assign(k_gang_members_max + 1, {"ada", "10.0.0.7", 1});
  EXPECT_THAT(parse_attempt_spec(encode(spec)), FailsWith(Code::protocol_violation));
}

TEST(Refusals, ListsHaveLimits) {
  HaveRequest have;
  have.chunks.assign(k_chunks_max + 1, samples::digest(1));
  EXPECT_THAT(parse_have(encode(have)), FailsWith(Code::protocol_violation));
  PollRequest poll;
  poll.attempts.assign(k_attempts_max + 1, {{"j"}, {1}, 0});
  EXPECT_THAT(parse_poll(encode(poll)), FailsWith(Code::protocol_violation));
  EXPECT_THAT(parse_have_reply(R"({"missing":[4096]})"), FailsWith(Code::protocol_violation));
}

TEST(Refusals, IdsThatAreNoFileNamesAreRefused) {
  for (const char* id : {"", "..", ".", "a/b", "-a", "A", "a b", "a.b", "ä", "a\\nb"})
    EXPECT_THAT(parse_prepare(std::string(R"({"op":"prepare","id":"o","epoch":1,"job":")") + id + "\"}"),
                FailsWith(Code::protocol_violation))
        << id;
  for (const char* id : {"", "../x", ".hidden", "a/b", "a b", "-a"})
    EXPECT_THAT(parse_prepare(std::string(R"({"op":"prepare","job":"j","epoch":1,"id":")") + id + "\"}"),
                FailsWith(Code::protocol_violation))
        << id;
  EXPECT_THAT(parse_prepare(R"({"op":"prepare","job":"j","epoch":1,"id":")" + std::string(129, 'o') + "\"}"),
              FailsWith(Code::protocol_violation));
}

TEST(Refusals, NumbersOutsideTheirRangeAreRefused) {
  for (const char* epoch : {"-1", "1.0", "18446744073709551616", "1e3", "\"1\""})
    EXPECT_THAT(parse_prepare(std::string(R"({"op":"prepare","id":"o","job":"j","epoch":)") + epoch + "}"),
                FailsWith(Code::protocol_violation))
        << epoch;
  EXPECT_THAT(parse_prepare(R"({"op":"prepare","id":"o","job":"j","epoch":18446744073709551615})"), IsOk());
  EXPECT_THAT(parse_prepare_reply(R"({"boot_id":"b","host_time_ns":9223372036854775808})"),
              FailsWith(Code::protocol_violation));
  EXPECT_THAT(parse_prepare_reply(R"({"boot_id":"b","host_time_ns":-1})"), FailsWith(Code::protocol_violation));
}

TEST(Refusals, ARequestOfAnotherNameIsRefused) {
  EXPECT_THAT(parse_stop(encode(CleanRequest{{"o"}, {"j"}, {1}})), FailsWith(Code::protocol_violation));
}

TEST(Refusals, AreOneSafeLine) {
  const Result<PrepareReply> reply = parse_prepare_reply("{\"\x1b[31m\n");
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().message.find_first_of("\x1b\n"), std::string::npos) << reply.error().message;
}

}  // namespace
}  // namespace gridctl::wire::messages_refusal_test
