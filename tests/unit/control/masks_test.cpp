// SPDX-License-Identifier: Apache-2.0
// Red team: a program prints its secrets by mistake, in one piece, in parts, encoded.
#include <gmock/gmock.h>

#include "control/follow/job_book.hpp"
#include "control/follow/job_files.hpp"
#include "control/follow/log_file.hpp"
#include "control/follow/masks.hpp"
#include "hand_clock.hpp"
#include "os/loop_executor.hpp"
#include "registry/registry.hpp"
#include "ssh/encoding.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"
#include "unit/store/remote_fixtures.hpp"

namespace gridctl::control::masks_test {
namespace {

using ::testing::HasSubstr;
using gridctl::testing::IsOk;
using ::testing::Not;
constexpr const char* k_token = "hf_a+b/cDEF0123456789xyz";
constexpr const char* k_key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n";

class PrintedSecret : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(files_.keep_secrets(job_, {{"TOKEN", k_token}, {"KEY", k_key}, {"PIN", "1234"}}), IsOk());
  }
  void print(std::string_view text) {
    ASSERT_THAT(files_.log_append(job_, AttemptNumber{1}, 0, offset_, text), IsOk());
    offset_ += text.size();
  }
  std::string log() { return *os::read_file(paths_.log_of(job_, AttemptNumber{1}), 1 << 20); }

  const gridctl::testing::TempDir folder_;
  const Paths paths_{folder_.path()};
  JobFiles files_{paths_};
  const JobId job_{"abcdefghijk23"};
  std::uint64_t offset_ = 0;
};

using namespace std::chrono_literals;

TEST_F(PrintedSecret, CannotBeReadInTheLog) {
  print("token=" + std::string(k_token) + " of https://hub\n");
  EXPECT_EQ(log(), "token=" + std::string(std::string_view(k_token).size(), '*') + " of https://hub\n");
  EXPECT_EQ(*files_.log_next_offset(job_, AttemptNumber{1}, 0), offset_);
  print("also here: MIIEvQIBADANBgkq\n");  // one line of a key
  EXPECT_THAT(log(), Not(HasSubstr("MIIEvQIB")));
}

// Wherever the two pieces of a stream that it is cut into end.
TEST_F(PrintedSecret, CannotBeReadInTheLogWhenItComesInPieces) {
  const std::string line = std::string("at ") + k_token + " and on\n";
  for (std::size_t cut = 1; cut < line.size(); ++cut) {
    print(line.substr(0, cut));
    print(line.substr(cut));
  }
  for (const char byte : line) print({&byte, 1});
  std::string wanted;
  for (std::size_t i = 0; i < line.size(); ++i)
    wanted += "at " + std::string(std::string_view(k_token).size(), '*') + " and on\n";
  EXPECT_EQ(log(), wanted);
  EXPECT_EQ(*files_.log_next_offset(job_, AttemptNumber{1}, 0), offset_);
}

TEST_F(PrintedSecret, CannotBeReadInBase64) {
  for (const char* before : {"", "u", "us", "user:", "a-user:"}) {
    const std::string encoded = ssh::encode_base64(before + std::string(k_token) + "@h");
    print(encoded + "\n");
    const std::string plain = ssh::decode_base64([&] {
                                std::string text = log().substr(offset_ - encoded.size() - 1, encoded.size());
                                std::replace(text.begin(), text.end(), '*', 'A');
                                return text;
                              }())
                                  .value_or("");
    // What is left of it at either end is less than two bytes.
    for (std::size_t at = 0; at + 3 <= std::string_view(k_token).size(); ++at)
      EXPECT_THAT(plain, Not(HasSubstr(std::string(k_token).substr(at, 3)))) << before;
  }
}

// base64 breaks its lines at 76 characters, openssl at 64.
TEST_F(PrintedSecret, CannotBeReadInBase64OfSeveralLines) {
  const std::string secret = "ghp_" + std::string(120, 'x') + "-0123456789+/abcdef";
  ASSERT_THAT(files_.keep_secrets(job_, {{"LONG", secret}}), IsOk());
  for (const std::size_t width : {76u, 64u, 1u, 7u})
    for (const char* before : {"", "user:", "a-user:"}) {
      std::string encoded = ssh::encode_base64(before + secret), lines;
      for (std::size_t at = 0; at < encoded.size(); at += width) lines += encoded.substr(at, width) + (width == 64 ? "\r\n" : "\n");
      const std::uint64_t from = offset_;
      print(lines.substr(0, lines.size() / 2));
      print(lines.substr(lines.size() / 2));
      std::string text = log().substr(from);
      EXPECT_EQ(text.size(), lines.size());
      std::erase_if(text, [](char c) { return c == '\n' || c == '\r'; });
      std::replace(text.begin(), text.end(), '*', 'A');
      const std::string plain = ssh::decode_base64(text).value_or("");
      for (std::size_t at = 0; at + 3 <= secret.size(); ++at)
        ASSERT_THAT(plain, Not(HasSubstr(secret.substr(at, 3)))) << before << " at " << width;
    }
}

// The agent ends a line that a rank has not ended after a second, or after 64 KiB, and begins the next with a label.
TEST_F(PrintedSecret, CannotBeReadOverTheLabelsOfRanks) {
  const std::string token = k_token;
  print("[rank 0] " + token.substr(0, 12) + "\n");
  print("[rank 1] of another " + token.substr(0, 5) + "\n[rank 10] " + token.substr(12) + "\n");
  print("[rank 0] " + token.substr(12) + " and on\n");
  print("[rank 1] " + token.substr(5) + "\n[node 3] " + std::string(70'000, 'x') + token.substr(0, 20) + "\n");
  print("[node 3] " + token.substr(20) + "\n");
  const auto stars = [&](std::size_t from, std::size_t to) { return std::string(to - from, '*'); };
  const std::size_t all = token.size();
  EXPECT_EQ(log(), "[rank 0] " + stars(0, 12) + "\n[rank 1] of another " + stars(0, 5) + "\n[rank 10] " + token.substr(12) +
                       "\n[rank 0] " + stars(12, all) + " and on\n[rank 1] " + stars(5, all) + "\n[node 3] " +
                       std::string(70'000, 'x') + stars(0, 20) + "\n[node 3] " + stars(20, all) + "\n");
}

TEST_F(PrintedSecret, CannotBeReadWhereItIsEscapedOrWrapped) {
  const std::string secret = "pa\"ss'w\\ord <&> \u00e4-%41 0123456789";
  ASSERT_THAT(files_.keep_secrets(job_, {{"ODD", secret}}), IsOk());
  for (const std::string& form : {
           std::string(R"({"token": "pa\"ss'w\\ord <&> \u00e4-%41 0123456789"})"),                   // json.dumps
           std::string(R"({"token": "pa\"ss'w\\ord \u003c\u0026\u003e \u00e4-%41 0123456789"})"),  // of Go
           std::string(R"("{\"token\": \"pa\\\"ss'w\\\\ord <&> \\u00e4-%41 0123456789\"}")"),      // JSON in JSON
           std::string(R"(pa\"ss\'w\\ord\ \<\&\>\ ä-%41\ 0123456789)"),                            // printf %q
           std::string(R"('pa"ss'\''w\ord <&> ä-%41 0123456789')"),                                  // sh
           std::string(R"(b'pa"ss\'w\\ord <&> \xc3\xa4-%41 0123456789')"),                          // Python's bytes
           std::string(R"($'pa"ss\'w\\ord <&> \303\244-%41 0123456789')"),                          // bash
           std::string("pa&quot;ss&#39;w\\ord &lt;&amp;&gt; ä-%41 0123456789"),                       // HTML
           std::string("?t=pa%22ss%27w%5Cord%20%3C%26%3E%20%C3%A4-%2541%200123456789&x=1"),           // a URL
           std::string("pa\"ss'w\\ord <&> \u00e4-\n   %41 0123\n456789"),                             // fold
           std::string("│ pa\"ss'w\\ord <&> \u00e4- │\n│ %41 \x1b[31m0123\x1b[0m456789 │\n"),           // a framed traceback
       }) {
    std::string text = files_.masked(job_, form);
    EXPECT_EQ(text.size(), form.size());
    EXPECT_THAT(text, Not(HasSubstr("ord"))) << form;
    EXPECT_THAT(text, Not(HasSubstr("456"))) << form;
  }
  const std::string hexadecimal = "68665f612b622f63444546303132333435363738397879";
  EXPECT_THAT(files_.masked(job_, "00" + hexadecimal + "7a\n"), Not(HasSubstr(hexadecimal.substr(0, 8))));
}

// Whoever tells it cuts it: a host its reasons, we the names of files.
TEST_F(PrintedSecret, CannotBeReadInWordsThatWereCut) {
  const std::string token = k_token;
  EXPECT_EQ(files_.masked(job_, "cannot open '" + token.substr(0, 9)), "cannot open '*********");
  EXPECT_EQ(files_.masked(job_, token.substr(9) + "': Permission denied"),
            std::string(token.size() - 9, '*') + "': Permission denied");
}

TEST_F(PrintedSecret, CannotBeReadInTheDaemonsLog) {
  EXPECT_EQ(files_.masked_of_all("cannot open 'cache-" + std::string(k_token) + "': Permission denied"),
            "cannot open 'cache-" + std::string(std::string_view(k_token).size(), '*') + "': Permission denied");
  ASSERT_THAT(files_.keep_secrets({"another"}, {{"T", "another-secret"}}), IsOk());
  ASSERT_THAT(files_.secrets({"another"}, {"T"}), IsOk());  // as before a launch
  EXPECT_EQ(files_.masked_of_all("x another-secret"), "x **************");
}

TEST_F(PrintedSecret, CannotBeReadInWhatAHostSays) {
  EXPECT_THAT(files_.masked(job_, std::string("KeyError: ") + k_token), Not(HasSubstr("hf_a")));
  EXPECT_EQ(files_.masked(JobId{"other"}, k_token), k_token);  // no secret of that one
}

TEST_F(PrintedSecret, CannotBeReadWhereNobodyKnowsWhatItIs) {
  ASSERT_THAT(os::make_directories(paths_.secrets_of(job_) / "SPOILT"), IsOk());  // a folder: no value can be read
  const std::string said = files_.masked(job_, std::string("KeyError: ") + k_token);
  EXPECT_THAT(said, HasSubstr("omitted because the job's secrets cannot be read: "));
  EXPECT_THAT(said, Not(HasSubstr("hf_a")));
  EXPECT_EQ(files_.masked(job_, ""), "");
}

class NoNetwork : public AgentNetwork {
 public:
  Result<std::unique_ptr<AgentChannel>> connect(const registry::Provider&, BootTime) override { return nobody(); }
  Result<transfer::BulkLink> open(const registry::Provider&, BootTime) override { return nobody(); }
  static Error nobody() { return make_error(Code::host_unreachable, "nobody is there"); }
};

class NoFreight : public Freight {
 public:
  Result<transfer::BulkLink> reach(const HostReach&, Duration) override { return NoNetwork::nobody(); }
  Result<std::uint64_t> push(const HostReach&, const transfer::BulkLink&, const Digest&) override {
    return NoNetwork::nobody();
  }
  Result<Pulled> pull(const HostReach&, const JobId&, Epoch, const wire::HostCheckpoint&,
                      const std::optional<Digest>&) override {
    return NoNetwork::nobody();
  }
  Result<MergedParts> merge(const std::vector<std::vector<CheckpointPart>>&) override { return NoNetwork::nobody(); }
  Result<CopiesOf> copies_of(const JobId&, CheckpointSeq) override { return NoNetwork::nobody(); }
  Result<std::string> heal(const CopiesOf&, const Digest&) override { return NoNetwork::nobody(); }
  Result<PortProof> prove_port(const HostReach&, const HostReach&, std::uint16_t, std::uint64_t) override {
    return NoNetwork::nobody();
  }
};

TEST_F(PrintedSecret, CannotBeReadInTheHistoryOfTheJob) {
  registry::Registry registry = *registry::Registry::open(folder_.path());
  job::Spec spec;
  spec.name = "train";
  spec.run = "true";
  ASSERT_THAT(registry.submit(job_, spec, {1}), IsOk());
  os::Loop loop;
  os::LoopExecutor executor(loop);
  NoNetwork network;
  NoFreight freight;
  JobBook book({os::system_clock(), executor, network, registry, freight, files_});
  book.refresh();
  job::Member member;
  member.host = {"ada"};
  book.apply(job_, job::Placed{{member}, "the only one"});
  ASSERT_NE(book.find(job_)->state().attempt(), nullptr);
  job::LaunchFailed failed;
  failed.epoch = book.find(job_)->state().epoch;
  failed.detail = std::string("setup said ") + k_token;
  book.apply(job_, failed);
  book.note(job_, {"stacks", std::string("login(token='") + k_token + "')", Epoch{1}, {"ada"}});
  std::string history = book.find(job_)->state().reason_text;
  for (const auto events = *registry.events(job_, 0, 0); const registry::EventRecord& event : events) history += event.text + "\n";
  EXPECT_THAT(history, HasSubstr("setup said ****"));
  EXPECT_THAT(history, HasSubstr("login(token='****"));
  EXPECT_THAT(history, Not(HasSubstr("hf_a")));
}

// A host that was given up comes back when the job has ended, and its secrets are no longer here.
TEST_F(PrintedSecret, CannotBeReadWhenItComesAfterTheEnd) {
  print("begins\n");
  ASSERT_THAT(files_.remove_secrets(job_), IsOk());
  print(std::string(k_token) + "\n");  // the same daemon still knows them
  EXPECT_THAT(log(), Not(HasSubstr("hf_a")));
  JobFiles later(paths_);
  ASSERT_THAT(later.log_append(job_, AttemptNumber{1}, 0, offset_, k_token), IsOk());
  EXPECT_THAT(log(), Not(HasSubstr("hf_a")));
  EXPECT_THAT(log(), HasSubstr("bytes of output are omitted"));
  EXPECT_EQ(*later.log_next_offset(job_, AttemptNumber{1}, 0), offset_ + std::string_view(k_token).size());
}

TEST_F(PrintedSecret, OfFewerThanSixCharactersIsShown) {
  print("pin 1234\n");
  EXPECT_EQ(log(), "pin 1234\n");
}

TEST_F(PrintedSecret, OfAJobThatWasResumedIsTheNewOneToo) {
  print(std::string(k_token) + "\n");
  ASSERT_THAT(files_.remove_secrets(job_), IsOk());
  ASSERT_THAT(files_.keep_secrets(job_, {{"TOKEN", "another-token"}}), IsOk());
  print(std::string(k_token) + " another-token\n");
  EXPECT_THAT(log(), Not(HasSubstr("another-token")));
  EXPECT_THAT(log(), Not(HasSubstr("hf_a")));
}

TEST(Masks, HoldBackWhatMayBeTheBeginningOfASecret) {
  const Masks masks(std::map<std::string, std::string>{{"T", "secret-value"}});
  EXPECT_EQ(masks.held("it is sec"), 3u);
  EXPECT_EQ(masks.held("it is secret-valu"), 11u);
  EXPECT_EQ(masks.held("it is secret-value"), 0u);
  EXPECT_EQ(masks.held("it is."), 0u);
  EXPECT_EQ(masks.held("[rank 0] secret-v\n[rank 1] x\n"), std::string("secret-v\n[rank 1] x\n").size());
  EXPECT_EQ(masks.held("it ends with s\n"), 0u) << "no line waits for a chance";
  EXPECT_EQ(Masks().held("sec"), 0u);
}

TEST(MaskedText, OfNothingButTheSecretIsAllStars) {
  const Masks masks(std::map<std::string, std::string>{{"TOKEN", "secret"}});
  std::string text = "secret";
  masks.mask(text);
  EXPECT_EQ(text, "******");
  text = "secre";
  masks.mask(text);
  EXPECT_EQ(text, "secre");
  EXPECT_EQ(masks.held("my secre"), 5u);
  EXPECT_EQ(masks.held("my secret"), 0u) << "it is whole";
  EXPECT_EQ(masks.held("nothing"), 0u);
}

}  // namespace
}  // namespace gridctl::control::masks_test
