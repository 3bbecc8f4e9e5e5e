// SPDX-License-Identifier: Apache-2.0
// Red team: a host that lies about a job's output. Reading it ends, in bounded time and space.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/follow/log_file.hpp"
#include "control/follow/read_output.hpp"
#include "control/reach/work_budget.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"
#include "wire/messages.hpp"

namespace gridctl::control::read_output_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;

struct SteppedClock : os::Clock {
  BootTime now{std::chrono::nanoseconds{std::chrono::hours{1}}.count()};
  [[nodiscard]] BootTime boot() const override { return now; }
  [[nodiscard]] WallTime wall() const override { return {}; }
};

// Answers each question for output as it is told to, after a while.
class LyingHost : public wire::Link {
 public:
  using Answer = std::function<std::pair<std::uint64_t, std::string>(std::uint64_t asked)>;
  LyingHost(SteppedClock& clock, Answer answer, Duration delay = {})
      : clock_(clock), answer_(std::move(answer)), delay_(delay) {}

  Result<void> send(const wire::Frame& frame, BootTime) override {
    questions_ += 1;
    const auto at = frame.payload.find("\"offset\":");
    const auto [offset, bytes] = answer_(std::stoull(frame.payload.substr(at + 9)));
    waiting_.push_back({wire::FrameKind::reply, frame.stream, wire::encode(wire::LogReply{offset, offset})});
    if (!bytes.empty()) waiting_.push_back({wire::FrameKind::data, frame.stream, bytes});
    waiting_.push_back({wire::FrameKind::end, frame.stream, wire::encode(wire::EndRecord{bytes.size(), {}})});
    return {};
  }
  Result<wire::Frame> receive(BootTime deadline) override {
    clock_.now = clock_.now + delay_;
    if (clock_.now > deadline) return make_error(Code::timed_out, "silence");
    wire::Frame frame = std::move(waiting_.front());
    waiting_.erase(waiting_.begin());
    return frame;
  }
  [[nodiscard]] int questions() const { return questions_; }

 private:
  SteppedClock& clock_;
  Answer answer_;
  Duration delay_;
  std::vector<wire::Frame> waiting_;
  int questions_ = 0;
};

class LyingOutput : public ::testing::Test {
 protected:
  const gridctl::testing::TempDir directory_;
  const os::Path log_ = directory_.path() / "attempt-1.log";
  SteppedClock clock_;
  struct Folders : JobFolders {
    explicit Folders(os::Path path) : log(std::move(path)) {}
    Result<std::uint64_t> log_next_offset(const JobId&, AttemptNumber, int) override {
      return control::log_next_offset(log);
    }
    Result<void> log_append(const JobId&, AttemptNumber, int, std::uint64_t offset, std::string_view bytes) override {
      return control::log_append(log, offset, bytes);
    }
    Result<std::string> log_tail(const JobId&, AttemptNumber, int, std::size_t) override { return std::string(); }
    Result<std::map<std::string, std::string>> secrets(const JobId&, const std::vector<std::string>&) override {
      return std::map<std::string, std::string>{};
    }
    Result<void> keep_secrets(const JobId&, const std::map<std::string, std::string>&) override { return {}; }
    Result<void> remove_secrets(const JobId&) override { return {}; }
    const os::Path log;
  };
  Result<void> read(wire::Link& host, std::uint64_t end) {
    return read_output(host, clock_, folders_, {{"job"}, Epoch{1}, {}, 0}, end);
  }
  Folders folders_{log_};
};

constexpr std::uint64_t k_absurd = 1ull << 60;

TEST_F(LyingOutput, CannotHoldUsByBeginningAnew) {
  LyingHost host(clock_, [](std::uint64_t) { return std::pair<std::uint64_t, std::string>(0, "x"); });
  EXPECT_THAT(read(host, k_absurd), FailsWith(Code::protocol_violation));
  EXPECT_LE(host.questions(), 3);
}

TEST_F(LyingOutput, CannotHoldUsByAByteEachTime) {
  LyingHost host(clock_, [](std::uint64_t asked) { return std::pair(asked, std::string("x")); });
  EXPECT_THAT(read(host, k_absurd), FailsWith(Code::protocol_violation));
  EXPECT_LE(host.questions(), 300);
}

TEST_F(LyingOutput, CannotHoldUsByDripping) {
  auto host = std::make_unique<LyingHost>(
      clock_, [](std::uint64_t asked) { return std::pair(asked, std::string("x")); }, std::chrono::seconds{4});
  const BootTime began = clock_.now;
  const auto budget = std::make_shared<WorkBudget>(clock_, WorkBudget::Limits{});
  const auto link = under(budget, std::move(host));
  EXPECT_THAT(read(*link, k_absurd), FailsWith(Code::timed_out));
  EXPECT_LE(clock_.now - began, std::chrono::minutes{3});
}

TEST_F(LyingOutput, CannotNameAnOffsetBeyondAllNumbers) {
  LyingHost host(clock_, [](std::uint64_t) { return std::pair(UINT64_MAX - 1, std::string("end")); });
  EXPECT_THAT(read(host, UINT64_MAX), FailsWith(Code::protocol_violation));
}

TEST_F(LyingOutput, AnHonestHostIsReadToTheEnd) {
  const std::string output(1'500'000, 'o');
  LyingHost host(clock_, [&](std::uint64_t asked) { return std::pair(asked, output.substr(asked, 512 * 1024)); });
  EXPECT_THAT(read(host, output.size()), IsOk());
  EXPECT_EQ(os::read_file(log_).value_or(""), output);
}

}  // namespace
}  // namespace gridctl::control::read_output_test
