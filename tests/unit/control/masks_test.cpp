// SPDX-License-Identifier: Apache-2.0
// Red team: a program prints its secrets by mistake, in one piece, in parts, encoded.
#include "control/follow/masks.hpp"

#include <gmock/gmock.h>

#include "control/follow/job_book.hpp"
#include "control/follow/job_files.hpp"
#include "control/follow/log_file.hpp"
#include "os/loop_executor.hpp"
#include "registry/registry.hpp"
#include "ssh/encoding.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::control {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
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

  const testing::TempDir folder_;
  const Paths paths_{folder_.path()};
  JobFiles files_{paths_};
  const JobId job_{"abcdefghijk23"};
  std::uint64_t offset_ = 0;
};

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

TEST_F(PrintedSecret, CannotBeReadInWhatAHostSays) {
  EXPECT_THAT(files_.masked(job_, std::string("KeyError: ") + k_token), Not(HasSubstr("hf_a")));
  EXPECT_EQ(files_.masked(JobId{"other"}, k_token), k_token);  // no secret of that one
}

TEST_F(PrintedSecret, CannotBeReadWhereNobodyKnowsWhatItIs) {
  ASSERT_THAT(os::make_directories(paths_.secrets_of(job_) / "SPOILT"), IsOk());  // a folder: no value can be read
  const std::string said = files_.masked(job_, std::string("KeyError: ") + k_token);
  EXPECT_THAT(said, HasSubstr("left out, for the job's secrets cannot be read: "));
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
  EXPECT_THAT(log(), HasSubstr("bytes of output are left out"));
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
  EXPECT_EQ(Masks().held("sec"), 0u);
}

}  // namespace
}  // namespace gridctl::control
