// SPDX-License-Identifier: Apache-2.0
// Each change that a request makes on its host fails once, or happens and is told as failed: nothing is left half done,
// and asking again makes it whole.
#include <gmock/gmock.h>

#include <functional>

#include "support/results.hpp"
#include "value_host.hpp"

namespace gridctl::agent::core_faults_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::Fate, gridctl::testing::IsOk;
using wire::AttemptPhase;

struct Operation {
  const char* name;
  std::function<void(ValueHost&)> before;
  std::function<Result<void>(Core&)> act;
  bool again = true;  // it may be asked for once more, and is whole then
};

wire::StartRequest start_of_five() {
  wire::StartRequest request;
  request.op = {"op"};
  request.echo = at(990);
  request.boot_id = "boot";
  request.lease = 60s;
  request.spec.job = {"j"};
  request.spec.epoch = Epoch{5};
  return request;
}
Result<void> poll_three(Core& core) {
  wire::PollRequest request{at(995), 60s, {}};
  request.attempts.push_back({{"j"}, Epoch{3}, 7, {5s, 1s}, wire::Allowance{}});
  TRY(core.poll(request));
  return {};
}

const std::vector<Operation> k_operations{
    {"start", [](ValueHost&) {}, [](Core& core) -> Result<void> { TRY(core.start(start_of_five())); return {}; }, false},
    {"stop", [](ValueHost& host) { host.add(2), host.add(3); },
     [](Core& core) { return core.stop({{"op"}, {"j"}, Epoch{4}, 5s}); }},
    {"clean", [](ValueHost& host) { host.add(2, AttemptPhase::ended), host.add(3, AttemptPhase::ended); },
     [](Core& core) { return core.clean({{"op"}, {"j"}, Epoch{3}, 1h}); }},
    {"poll", [](ValueHost& host) { host.add(3).deadline = at(1020).ns; }, poll_three},
};

// All of it that lasts.
std::string text_of(const ValueHost& host) {
  std::string text;
  for (const auto& [job, fence] : host.fences) text += "fence " + std::to_string(fence.value) + "\n";
  for (const std::uint64_t epoch : host.leases) text += "lease " + std::to_string(epoch) + "\n";
  for (const std::uint64_t epoch : host.kept_work) text += "kept work " + std::to_string(epoch) + "\n";
  for (const auto& [job, attempts] : host.all)
    for (const auto& [epoch, one] : attempts)
      text += "attempt " + std::to_string(epoch) + " stop " + std::to_string(one.stop.value_or(-1)) + " until " +
              std::to_string(one.deadline.value_or(-1)) + " kept from " + std::to_string(one.kept_from.value_or(-1)) +
              (one.tempo ? " tempo" : "") + (one.limits ? " limits" : "") + (one.begun ? " begun" : "") + "\n";
  return text;
}

void expect_whole(const ValueHost& host, bool told_well, const std::string& when) {
  const auto& attempts = host.all.at("j");
  for (const std::uint64_t epoch : host.leases) EXPECT_TRUE(attempts.contains(epoch)) << when << ": a lease of nobody";
  EXPECT_TRUE(told_well || !attempts.contains(5)) << when << ": what is refused is there";
}

TEST(CoreFaults, EachChangeOfARequestMayFail) {
  for (const Operation& operation : k_operations) {
    ValueHost sound;
    sound.all["j"];
    operation.before(sound);
    Core well{sound};
    ASSERT_THAT(operation.act(well), IsOk()) << operation.name;
    ASSERT_GT(sound.effects, 1) << operation.name;
    for (int strike = 1; strike <= sound.effects; ++strike)
      for (const Fate fate : {Fate::fails, Fate::lost}) {
        const std::string when = std::string(operation.name) + ", change " + std::to_string(strike) +
                                 (fate == Fate::lost ? " loses its answer" : " fails");
        ValueHost host;
        host.all["j"];
        operation.before(host);
        host.strike = strike, host.fate = fate;
        Core core{host};
        const auto before = host.all["j"];
        const Result<void> told = operation.act(core);
        expect_whole(host, told.has_value(), when);
        for (const auto& [epoch, one] : before)
          EXPECT_TRUE(host.all["j"].contains(epoch) || host.kept_work.contains(epoch)) << when << ": work is gone";
        if (!operation.again) continue;
        ASSERT_THAT(operation.act(core), IsOk()) << when;
        EXPECT_EQ(text_of(host), text_of(sound)) << when;
      }
  }
}

}  // namespace
}  // namespace gridctl::agent::core_faults_test
