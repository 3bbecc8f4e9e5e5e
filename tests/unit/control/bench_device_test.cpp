// SPDX-License-Identifier: Apache-2.0
// The tests of one device: what is asked, what is taken by whose clock, and what counts as a lie.
#include "control/measure/bench_device.hpp"

#include <gmock/gmock.h>

#include "crypto/sha256.hpp"
#include "fake_gpus.hpp"
#include "support/results.hpp"

namespace gridctl::control::bench_device_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using testing::FakeGpus;
using testing::HandClock;
using testing::plain_gpu;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using enum sched::VerdictKind;

class BenchDevice : public ::testing::Test {
 protected:
  BenchDevice() {
    talk.link = &gpus;
    talk.clock = &clock;
    talk.draw = [this] { return ++drawn * 0x9e3779b97f4a7c15u; };
    target.gpu = plain_gpu("GPU-a");
    target.backend = "cuda";
    target.index = 3;
    options.under_load = 2ms;
  }
  Result<GpuBench> measure() {
    BenchConversation conversation(talk);
    return bench_device(conversation, target, options, gpus.round_trip);
  }
  GpuBench bench() {
    auto found = measure();
    EXPECT_THAT(found, IsOk());
    return *std::move(found);
  }
  // Of what is found first, "answer", "clock"…; empty when nothing is wrong.
  std::string wrong() {
    const GpuBench found = bench();
    return found.verdict.kind <= unverified ? "" : found.verdict.findings.front().what;
  }
  void answer_with(const std::string& test, const Error& error) {
    gpus.instead = [this, test, error](const std::string& op, const std::string& payload) {
      const bool meant = op == "bench-begin" && wire::parse_bench_begin(payload)->test == test;
      if (meant) gpus.begun.push_back(*wire::parse_bench_begin(payload));
      return meant ? std::optional(Result<std::string>(error)) : std::nullopt;
    };
  }

  HandClock clock;
  FakeGpus gpus{clock};
  std::uint64_t drawn = 0;
  BenchTalk talk;
  BenchTarget target;
  BenchOptions options;
};

TEST_F(BenchDevice, TakesRatesByOurClockWithoutTheWayThereAndBack) {
  gpus.took = {{"fill", 500ms}, {"hash", 250ms}, {"gemm", 2s}, {"fma", 4s}};
  gpus.claimed = gpus.took;
  auto figures = bench().figures;
  EXPECT_DOUBLE_EQ(figures.at("memory_hashed_bytes"), 8192);
  EXPECT_DOUBLE_EQ(figures.at("memory_fill_gbs"), 8192 / 0.5 * 1e-9);
  EXPECT_DOUBLE_EQ(figures.at("memory_hash_gbs"), 8192 / 0.25 * 1e-9);
  EXPECT_DOUBLE_EQ(figures.at("gemm16_tflops"), 2.0 * 2 * 128 * 128 * 128 / 2 * 1e-12);
  EXPECT_DOUBLE_EQ(figures.at("fma_tflops"), 2.0 * 5 * 256 * 8 * 100 / 4 * 1e-12);
  EXPECT_DOUBLE_EQ(figures.at("fp32_tflops"), figures.at("fma_tflops")) << "of CUDA, by our clock";
  EXPECT_DOUBLE_EQ(figures.at("fp32_peak_tflops"), 60);
  EXPECT_DOUBLE_EQ(figures.at("fp16_peak_tflops"), 120);
  EXPECT_DOUBLE_EQ(figures.at("memory_read_gbs"), 3000);
  EXPECT_DOUBLE_EQ(figures.at("memory_copy_gbs"), 2500);
  EXPECT_DOUBLE_EQ(figures.at("h2d_gbs"), 50);
  EXPECT_DOUBLE_EQ(figures.at("d2h_gbs"), 55);
  EXPECT_DOUBLE_EQ(figures.at("sustained_part"), 0.95);
  EXPECT_DOUBLE_EQ(figures.at("units"), 132);
  EXPECT_DOUBLE_EQ(figures.at("memory_bus_bits"), 5120);
}

TEST_F(BenchDevice, AsksForTheDeviceAndGivesItsTestsTheirTime) {
  options.under_load = 1200ms;
  ASSERT_THAT(measure(), IsOk());
  for (const wire::BenchBegin& one : gpus.begun) {
    EXPECT_EQ(one.backend, "cuda");
    EXPECT_EQ(one.index, 3u);
    EXPECT_EQ(one.gpu, "GPU-a");
    EXPECT_EQ(one.peer, "");
    EXPECT_EQ(one.parameters.at("warm_up_ms"), 4000u);
    EXPECT_EQ(one.parameters.at("part_ms"), 800u);
    EXPECT_EQ(one.deadline, one.test == "sustain" ? 2min + 1200ms : Duration{2min}) << one.test;
  }
  EXPECT_EQ(gpus.begun[1].parameters.at("target_ms"), 400u);
  EXPECT_EQ(gpus.begun[2].parameters.at("target_ms"), 250u);
  EXPECT_FALSE(gpus.begun[0].parameters.contains("bytes_max")) << "all that is free";
  EXPECT_EQ(gpus.begun.back().parameters.at("seconds"), 1u);
  EXPECT_EQ(gpus.patience.back(), 2min + 15s + 1200ms) << "of the sustained run";
  gpus.patience.pop_back();
  EXPECT_THAT(gpus.patience, Each(Duration{2min + 15s}));
}

TEST_F(BenchDevice, IsShorterBetweenJobsAndWhenItShallBeQuick) {
  options.challenges_only = true;
  GpuBench found = bench();
  EXPECT_EQ(gpus.begun[0].parameters.at("bytes_max"), 4ull << 30);
  EXPECT_EQ(gpus.begun[0].parameters.at("warm_up_ms"), 500u);
  EXPECT_EQ(gpus.begun[1].parameters.at("target_ms"), 200u);
  EXPECT_EQ(gpus.begun[2].parameters.at("target_ms"), 100u);
  options.fill_bytes_max = 4096;
  gpus.begun.clear();
  (void)bench();
  EXPECT_EQ(gpus.begun[0].parameters.at("bytes_max"), 4096u);
  options = {};
  options.quick = true;
  gpus.begun.clear();
  (void)bench();
  EXPECT_EQ(gpus.begun[0].parameters.at("warm_up_ms"), 1500u);
  EXPECT_EQ(gpus.begun[0].parameters.at("part_ms"), 300u);
  EXPECT_FALSE(gpus.begun[0].parameters.contains("bytes_max"));
}

TEST_F(BenchDevice, JudgesTheSizeOfTheMemoryOnlyWhenAllOfItWasFilled) {
  gpus.facts.numbers["memory_bytes"] = 80e9;
  EXPECT_EQ(wrong(), "memory");
  options.fill_bytes_max = 8192;
  EXPECT_EQ(wrong(), "");
  options.fill_bytes_max = 0;
  gpus.facts.texts["kind"] = "cpu";
  target.gpu.uuid = "";
  EXPECT_EQ(wrong(), "") << "a processor has no memory of its own";
}

TEST_F(BenchDevice, KeepsWhatIsNeededToRepeatTheCheck) {
  gpus.took["gemm"] = gpus.claimed["gemm"] = 3s;
  const auto transcripts = bench().transcripts;
  ASSERT_THAT(transcripts, SizeIs(3));
  const BenchTranscript &fill = transcripts[0], &gemm = transcripts[1], &fma = transcripts[2];
  EXPECT_EQ(fill.test + gemm.test + fma.test, "fillgemmfma");
  for (const BenchTranscript& one : transcripts) {
    EXPECT_EQ(one.outcome, "right");
    EXPECT_GT(one.at.ms, 0);
  }
  EXPECT_EQ(gemm.sizes.at("columns"), 128);
  EXPECT_DOUBLE_EQ(gemm.seconds_here, 3);
  EXPECT_DOUBLE_EQ(gemm.seconds_there, 3);
  EXPECT_DOUBLE_EQ(fill.seconds_there, 1) << "of the hash";
  EXPECT_NE(fill.after, 0u);
  EXPECT_NE(fill.seed, fill.after);
  EXPECT_THAT(fill.parts, SizeIs(16));
  EXPECT_THAT(gemm.parts, SizeIs(4));
  ASSERT_THAT(fma.parts, SizeIs(4));
  const probe::FmaChallenge sizes{fma.seed, 5, 100};
  probe::Words all;
  for (std::uint32_t i = 0; i < 5; ++i) all.push_back(probe::fma_part(sizes, i));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(fma.words.at(i), all.at(fma.parts[i]));
  EXPECT_EQ(fma.answer_sha256, to_hex(crypto::sha256(as_bytes(probe::words_to_hex(all)))));
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(gemm.words.at(i), probe::gemm_part({gemm.seed, 2, 128, 128, 128}, gemm.parts[i]).hash);
}

TEST_F(BenchDevice, CatchesAWrongAnswer) {
  for (const char* test : {"fill", "gemm", "fma"}) {
    gpus.begun.clear();
    gpus.instead = [&](const std::string& op, const std::string& payload) -> std::optional<Result<std::string>> {
      if (op != "bench-seed" || gpus.begun.back().test != test || wire::parse_bench_seed(payload)->seed == 0)
        return std::nullopt;
      gpus.spoil = [](probe::Words& words) { words.assign(words.size(), 7); };
      const probe::Words lie(test == std::string("gemm") ? 4 : test == std::string("fma") ? 5 : 2, 7);
      return Result<std::string>(wire::encode(wire::BenchStage{
          false, {}, {}, {{"commit", probe::words_to_hex(probe::bench_commitment(lie))}}}));
    };
    // What it commits to is what comes: only the check sees it.
    const auto answer_of = [&](const std::string& name) {
      for (const BenchTranscript& one : bench().transcripts)
        if (one.test == name) return one.outcome;
      return std::string("none");
    };
    EXPECT_THAT(answer_of(test), Not(HasSubstr("right"))) << test;
    gpus.spoil = nullptr;
  }
}

TEST_F(BenchDevice, CatchesAnAnswerThatIsNotTheOneThatWasCommitted) {
  gpus.spoil = [](probe::Words& words) { words[0] ^= 1; };
  const GpuBench found = bench();
  EXPECT_EQ(found.verdict.kind, mismatch);
  EXPECT_EQ(found.verdict.findings.front().what, "answer");
  EXPECT_THAT(found.verdict.findings.front().text, HasSubstr("differs from the one committed to"));
  ASSERT_THAT(found.transcripts, SizeIs(3)) << "each is kept";
  for (const BenchTranscript& one : found.transcripts) EXPECT_THAT(one.outcome, HasSubstr("committed"));
  for (const char* name : {"gemm16_tflops", "fp32_tflops", "memory_hash_gbs"})
    EXPECT_FALSE(found.figures.contains(name)) << name << " was not proven";
}

TEST_F(BenchDevice, TakesNoAnswerForAWrongOne) {
  const auto end_with = [&](const wire::BenchStage& stage) {
    gpus.instead = [stage](const std::string& op, const std::string&) {
      return op == "bench-seed" ? std::optional(Result<std::string>(wire::encode(stage))) : std::nullopt;
    };
    return bench().verdict;
  };
  const std::map<std::string, std::string> commit{{"commit", "0000000000000000"}};
  for (const wire::BenchStage& stage : {wire::BenchStage{true, {}, {}, commit}, wire::BenchStage{false, {}, {}, {}},
                                        wire::BenchStage{false, {}, {}, commit}}) {
    const sched::GpuVerdict verdict = end_with(stage);
    EXPECT_EQ(verdict.kind, mismatch);
    EXPECT_THAT(verdict.findings.front().text, HasSubstr("the test ended without an answer"));
  }
}

TEST_F(BenchDevice, ComparesTheHostsClockWithOurs) {
  gpus.took["gemm"] = 2500ms;
  gpus.claimed["gemm"] = 1s;
  EXPECT_EQ(wrong(), "") << "a stalled line";
  gpus.claimed["gemm"] = 990ms;
  EXPECT_EQ(wrong(), "clock");
  gpus.took["gemm"] = gpus.claimed["gemm"];
  gpus.took["fma"] = 10s;
  const GpuBench found = bench();
  EXPECT_EQ(found.verdict.kind, suspect);
  EXPECT_EQ(found.verdict.findings.front().text, "fp32: it took 10s by our clock, 1s by the host's");
}

TEST_F(BenchDevice, GivesWhatWasTooShortToBeTimedMoreToDo) {
  gpus.took["gemm"] = gpus.claimed["gemm"] = 19ms;
  GpuBench found = bench();
  std::vector<std::uint64_t> targets;
  for (const wire::BenchBegin& one : gpus.begun)
    if (one.test == "gemm") targets.push_back(one.parameters.at("target_ms"));
  EXPECT_THAT(targets, ElementsAre(400, 1600, 6400));
  EXPECT_FALSE(found.figures.contains("gemm16_tflops"));
  EXPECT_THAT(found.verdict.notes, Contains("matrix: too short to time from here"));
  EXPECT_EQ(found.verdict.kind, unverified);
  gpus.took["gemm"] = 20ms;
  gpus.begun.clear();
  found = bench();
  EXPECT_TRUE(found.figures.contains("gemm16_tflops"));
  EXPECT_THAT(found.verdict.notes, Not(Contains(HasSubstr("too short"))));
  gpus.took["fma"] = 19ms;
  found = bench();
  EXPECT_THAT(found.verdict.notes, Contains("fp32: too short to time from here"));
  EXPECT_FALSE(found.figures.contains("fma_tflops"));
}

TEST_F(BenchDevice, TellsNoRateOfMemoryThatWasFilledTooQuickly) {
  gpus.took["fill"] = gpus.took["hash"] = 20ms;
  auto figures = bench().figures;
  EXPECT_FALSE(figures.contains("memory_fill_gbs"));
  EXPECT_FALSE(figures.contains("memory_hash_gbs"));
  EXPECT_EQ(figures.at("memory_hashed_bytes"), 8192);
  gpus.took["fill"] = gpus.took["hash"] = 21ms;
  figures = bench().figures;
  EXPECT_TRUE(figures.contains("memory_fill_gbs"));
  EXPECT_TRUE(figures.contains("memory_hash_gbs"));
}

TEST_F(BenchDevice, LeavesADriverThatHangs) {
  answer_with("gemm", make_error(Code::timed_out, "no answer within 2m"));
  const GpuBench found = bench();
  EXPECT_THAT(gpus.tests(), ElementsAre("fill", "gemm"));
  EXPECT_EQ(found.verdict.kind, mismatch);
  EXPECT_EQ(found.verdict.findings.front().what, "driver");
  EXPECT_EQ(found.verdict.findings.front().text, "matrices: no answer within 2m");
}

TEST_F(BenchDevice, NotesWhatADeviceCannotDo) {
  answer_with("copies", make_error(Code::unsupported, "no page-locked memory"));
  const GpuBench found = bench();
  EXPECT_EQ(found.verdict.kind, unverified);
  EXPECT_THAT(found.verdict.notes, Contains(HasSubstr("copies: no page-locked memory")));
  EXPECT_THAT(gpus.tests(), Contains("sustain")) << "the others go on";
}

TEST_F(BenchDevice, CallsNonsenseAWrongAnswer) {
  answer_with("memory", make_error(Code::protocol_violation, "no numbers"));
  const GpuBench found = bench();
  EXPECT_EQ(found.verdict.kind, mismatch);
  EXPECT_EQ(found.verdict.findings.front().text, "memory bandwidth: no numbers");
}

TEST_F(BenchDevice, IsLeftWhenSomebodyHoldsIt) {
  answer_with("gemm", make_error(Code::busy, "job train holds it"));
  EXPECT_THAT(measure(), FailsWith(Code::busy));
}

TEST_F(BenchDevice, ChecksNoMoreThanAnyDeviceNeeds) {
  gpus.reshape = [](const std::string& test, wire::BenchStage& ready) {
    if (test == "gemm") ready.numbers["columns"] = 65536, ready.numbers["inner"] = 8192;
  };
  GpuBench found = bench();
  EXPECT_EQ(found.verdict.kind, mismatch);
  EXPECT_EQ(found.verdict.findings.front().text, "matrices: the host asks to check more than any device needs");
}

TEST_F(BenchDevice, KnowsAGpuFromWhatItsDriverShowsInItsPlace) {
  gpus.facts.texts["kind"] = "cpu";
  const GpuBench found = bench();
  EXPECT_EQ(found.verdict.findings.front().what, "driver");
  EXPECT_EQ(found.verdict.findings.front().text, "its driver shows a cpu instead of a GPU");
  EXPECT_THAT(gpus.tests(), ElementsAre("fill"));
}

TEST_F(BenchDevice, TellsNoUnitsThatTheDriverDoesNot) {
  gpus.facts.numbers["units"] = 0;
  gpus.facts.numbers["memory_bus_bits"] = 0;
  const GpuBench found = bench();
  EXPECT_FALSE(found.figures.contains("units"));
  EXPECT_FALSE(found.figures.contains("memory_bus_bits"));
}

TEST_F(BenchDevice, OfOpenClHasItsRateOfVectorsByItsPeak) {
  target.backend = "opencl";
  gpus.reshape = [](const std::string&, wire::BenchStage& ready) { ready.texts["precision"] = "f32"; };
  auto figures = bench().figures;
  EXPECT_DOUBLE_EQ(figures.at("fp32_tflops"), 60);
  EXPECT_TRUE(figures.contains("gemm_fp32_tflops"));
  EXPECT_FALSE(figures.contains("gemm16_tflops"));
  options.challenges_only = true;
  figures = bench().figures;
  EXPECT_DOUBLE_EQ(figures.at("fp32_tflops"), figures.at("fma_tflops")) << "of a GPU, where nothing else is known";
  target.gpu.uuid = "";
  gpus.facts.texts["kind"] = "cpu";
  EXPECT_FALSE(bench().figures.contains("fp32_tflops")) << "eight chains keep no processor busy";
}

TEST_F(BenchDevice, MeasuresCopiesToItsNeighbours) {
  target.neighbours = {{"GPU-b", "Test GPU", 1, 4, true}, {"GPU-c", "Test GPU", 2, 5, false}};
  gpus.instead = [&](const std::string& op, const std::string&) -> std::optional<Result<std::string>> {
    if (op == "bench-seed" && gpus.begun.back().peer == "GPU-c") gpus.rates["peer"]["peer_gbs"] = 25;
    return std::nullopt;
  };
  const auto figures = bench().figures;
  EXPECT_EQ(figures.at("peer_4_gbs"), 200);
  EXPECT_EQ(figures.at("peer_5_gbs"), 25);
  EXPECT_EQ(figures.at("peer_gbs"), 25) << "the slowest";
  std::vector<std::uint64_t> peers;
  for (const wire::BenchBegin& one : gpus.begun)
    if (one.test == "peer") peers.push_back(one.parameters.at("peer"));
  EXPECT_THAT(peers, ElementsAre(1, 2));
  gpus.begun.clear();
  options.quick = true;
  (void)bench();
  EXPECT_THAT(gpus.tests(), Not(Contains("peer")));
}

TEST_F(BenchDevice, LeavesOutANeighbourThatIsInUse) {
  target.neighbours = {{"GPU-b", "Test GPU", 1, 4, true}};
  answer_with("peer", make_error(Code::busy, "job train holds it"));
  const GpuBench found = bench();
  EXPECT_THAT(found.verdict.notes, Contains("copies to Test GPU were not measured: that GPU is in use"));
  EXPECT_FALSE(found.figures.contains("peer_gbs"));
  answer_with("peer", make_error(Code::unsupported, "no way"));
  EXPECT_THAT(bench().verdict.notes, Contains(HasSubstr("no way")));
}

TEST_F(BenchDevice, LooksUnderLoadForWhatHoldsItDown) {
  gpus.rates["sustain"]["last_gflops"] = 800;
  EXPECT_EQ(bench().verdict.cause, "heat or power: it sustains 80 % of its first rate");
  Inventory seen;
  seen.gpus = {plain_gpu("GPU-b"), plain_gpu("GPU-a")};
  seen.gpus[0].throttle = {{"of the other"}};
  seen.gpus[1].throttle = {{"hw_thermal_slowdown"}};
  talk.look = [&]() -> Result<Inventory> { return seen; };
  EXPECT_EQ(bench().verdict.cause, "throttled: hw_thermal_slowdown");
  gpus.rates["sustain"]["first_gflops"] = 0;
  const GpuBench found = bench();
  EXPECT_EQ(found.figures.at("sustained_part"), 0) << "not tested";
  EXPECT_EQ(found.verdict.kind, unverified);
}

TEST_F(BenchDevice, IsJudgedByItsModelWhereItHasOne) {
  target.gpu.name = "NVIDIA H100 80GB HBM3";
  target.gpu.model = "H100 SXM5 80GB";
  target.gpu.pcie = {5, 5, 16, 16};
  gpus.facts.numbers["memory_bytes"] = 85e9;
  target.foreign_memory = 84'000'000'000;  // so that its memory passes
  gpus.rates["memory"]["read_gbs"] = 3000;
  gpus.rates["rates"].clear();
  const auto compared = [&] {
    std::map<std::string, int> count;
    for (const sched::GpuFinding& one : bench().verdict.findings) ++count[one.what];
    return count;
  };
  auto found = compared();
  EXPECT_EQ(found["memory_read"], 1);
  EXPECT_EQ(found["memory_copy"], 1);
  EXPECT_EQ(found["memory_fill"], 1);
  EXPECT_EQ(found["host_copy"], 2) << "there and back";
  EXPECT_EQ(found["gemm16"], 1);
  EXPECT_EQ(found["fp32"], 1);
  EXPECT_EQ(found["units"], 1);
  EXPECT_EQ(found["peer_copy"], 0);
  target.neighbours = {{"GPU-b", "NVIDIA H100", 1, 4, true}, {"GPU-c", "NVIDIA H100", 2, 5, false}};
  EXPECT_EQ(compared()["peer_copy"], 1) << "only a link between GPUs has a figure";
  gpus.rates["copies"].erase("d2h_gbs");
  EXPECT_EQ(compared()["host_copy"], 1);
}

TEST_F(BenchDevice, ThatNoDriverShowsIsNotTested) {
  target.backend = "";
  target.missing = "no CUDA driver";
  EXPECT_EQ(bench().verdict.kind, mismatch);
  target.unproven = true;
  const GpuBench found = bench();
  EXPECT_EQ(found.verdict.kind, suspect);
  EXPECT_EQ(found.verdict.findings.front().text, "no CUDA driver");
  EXPECT_THAT(gpus.asked, IsEmpty());
}

}  // namespace
}  // namespace gridctl::control::bench_device_test
