// SPDX-License-Identifier: Apache-2.0
#include "control/measure/bench_device.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "crypto/sha256.hpp"

namespace gridctl::control {
namespace {

constexpr Duration k_test_wait = std::chrono::minutes{2};  // of one stage: a driver that takes longer hangs
constexpr Duration k_reply_slack = std::chrono::seconds{15};
constexpr std::uint32_t k_parts = 4, k_parts_fill = 16;    // recomputed here: half the work skipped is seen 15 in 16
constexpr std::uint64_t k_fill_between_jobs = 4ull << 30;  // bytes: enough to be timed
constexpr double k_clock_slack = 0.5;                      // seconds: a busy host, a stalled line
constexpr double k_clock_factor = 2;                       // beyond this the host's clock and ours cannot both be right
constexpr double k_too_short = 0.02;                       // seconds of our clock: nothing can be told from less

Duration in_seconds(double value) { return Duration{static_cast<std::int64_t>(value * 1e9)}; }

double figure_of(double units, double elapsed) { return elapsed > 0 ? units / elapsed * 1e-9 : 0; }

class Examiner {
 public:
  Examiner(BenchConversation& conversation, const BenchTarget& target, const BenchOptions& options, Duration round_trip)
      : conversation_(conversation), target_(target), options_(options), round_trip_(round_trip) {
    bench_.gpu = target.gpu;
    bench_.backend = target.backend;
    found_.declared = target.gpu;
    found_.foreign_memory = target.foreign_memory;
    tool_ = target.backend == k_cuda ? sched::Tool::gridctl_cuda : sched::Tool::gridctl_opencl;
  }

  Result<GpuBench> run() {
    if (target_.backend.empty()) {
      (target_.unproven ? found_.unproven : found_.no_device) = target_.missing;
      return judged();
    }
    TRY(step("filling and hashing memory", [this] { return fill(); }));
    TRY(step("matrices", [this] { return timed("matrix", options_.challenges_only ? 200 : 400, &Examiner::gemm); }));
    TRY(step("fp32", [this] { return timed("fp32", options_.challenges_only ? 100 : 250, &Examiner::fma); }));
    if (!options_.challenges_only) {
      TRY(step("peak rates", [this] { return measure("rates"); }));
      TRY(step("memory bandwidth", [this] { return measure("memory"); }));
      TRY(step("copies", [this] { return measure("copies"); }));
      if (!options_.quick)
        for (const BenchTarget::Neighbour& other : target_.neighbours)
          TRY(step("copies to " + other.name, [&] { return copy_to(other); }));
      if (!options_.quick)
        TRY(step(format_duration(options_.under_load) + " under load", [this] { return sustain(); }));
    }
    return judged();
  }

 private:
  // A test that fails on the host is a finding; a broken link ends everything.
  template <class Test>
  Result<void> step(const std::string& name, Test test) {
    if (!found_.no_device.empty()) return {};  // a hung driver hangs again
    if (options_.progress) options_.progress(target_.gpu.name + ": " + name);
    const Result<void> done = test();
    if (done) return {};
    if (conversation_.broken()) return done;
    const Error& error = done.error();
    if (error.code == Code::busy) return done;
    if (error.code == Code::timed_out) found_.no_device = name + ": " + error.message;
    else if (error.code == Code::refused) found_.wrong_answers.push_back(error.message);
    else if (error.code == Code::protocol_violation) found_.wrong_answers.push_back(name + ": " + error.message);
    else bench_.verdict.notes.push_back(name + ": " + error.one_line());
    return {};
  }

  // The host chooses a size that takes it `target_ms`. If it was delayed, its choice is too small to time, and it gets
  // more time to fill. `test` says whether its run could be timed.
  Result<void> timed(const char* what, std::uint64_t target_ms, Result<bool> (Examiner::*test)(std::uint64_t)) {
    for (int tries = 0; tries < 3; ++tries, target_ms *= 4) {
      TRY_ASSIGN(const bool known, (this->*test)(target_ms));
      if (known) return {};
    }
    bench_.verdict.notes.push_back(std::string(what) + ": too short to time from here");
    return {};
  }

  Result<wire::BenchStage> begin(const std::string& test, std::map<std::string, std::uint64_t> parameters = {},
                                 const std::string& peer = "") {
    parameters.emplace("warm_up_ms", options_.challenges_only ? 500 : options_.quick ? 1500 : 4000);
    parameters.emplace("part_ms", options_.quick ? 300 : 800);
    const wire::BenchBegin request{test,       target_.backend,     target_.index, target_.gpu.uuid,
                                   parameters, patience_with(test), peer};
    TRY_ASSIGN(const std::string payload, conversation_.ask(wire::encode(request), k_test_wait + k_reply_slack));
    TRY_ASSIGN(wire::BenchStage stage, wire::parse_bench_stage(payload));
    if (found_.memory_reported == 0) learn(stage);
    return stage;
  }
  [[nodiscard]] Duration patience_with(std::string_view test) const {
    return k_test_wait + (is_one_of(test, {"sustain"}) ? options_.under_load : Duration{});
  }
  Result<wire::BenchStage> seed(std::uint64_t value) {
    TRY_ASSIGN(const std::string payload,
               conversation_.ask(wire::encode(wire::BenchSeed{value}), k_test_wait + k_reply_slack));
    return wire::parse_bench_stage(payload);
  }

  void learn(const wire::BenchStage& stage) {
    found_.memory_reported = stage.number("memory_bytes");
    found_.driver = {sanitize(stage.text("name"), 200), stage.text("uuid").substr(0, 64), stage.text("isa").substr(0, 16),
                     stage.text("pci_device").substr(0, 16)};
    if (stage.number("units") > 0 && stage.text("kind") == k_gpu_kind) found_.units = whole(stage, "units");
    if (found_.units) bench_.figures["units"] = *found_.units;
    if (stage.number("memory_bus_bits") > 0) bench_.figures["memory_bus_bits"] = whole(stage, "memory_bus_bits");
    if (!target_.gpu.uuid.empty() && stage.text("kind") != k_gpu_kind)
      found_.no_device = "its driver shows a " + sanitize(stage.text("kind").substr(0, 20)) + " instead of a GPU";
  }

  struct Answered {
    probe::Words words;
    double elapsed = 0;  // seconds, by our clock, without the way there and back
    double claimed = 0;  // seconds, by the host's
  };
  // Sends the seed, times the commitment to the answer, then receives the answer.
  Result<Answered> challenge(BenchTranscript& transcript, std::uint64_t value, const char* seconds_name) {
    const os::Clock& clock = *conversation_.talk().clock;
    const BootTime began = clock.boot();
    TRY_ASSIGN(const wire::BenchStage committed, seed(value));
    Answered answered;
    answered.elapsed = std::max(0.0, seconds(clock.boot() - began - round_trip_));
    answered.claimed = committed.number(seconds_name);
    if (committed.done || !committed.words.contains("commit"))
      return make_error(Code::protocol_violation, "the test ended without an answer");
    TRY_ASSIGN(const wire::BenchStage rest, seed(0));
    const auto found = rest.words.find("answer");
    if (found == rest.words.end()) return make_error(Code::protocol_violation, "the test ended without an answer");
    TRY_ASSIGN(answered.words, probe::words_from_hex(found->second, 2 * probe::k_bench_groups_max));
    transcript.answer_sha256 = to_hex(crypto::sha256(as_bytes(found->second)));
    transcript.seconds_here = answered.elapsed;
    transcript.seconds_there = answered.claimed;
    if (probe::words_to_hex(probe::bench_commitment(answered.words)) != committed.words.at("commit"))
      return make_error(Code::refused, "the answer differs from the one committed to");
    return answered;
  }

  // Draws parts and remembers which ones.
  probe::Draw noting(BenchTranscript& transcript, std::uint32_t groups, const probe::Words& words, std::size_t each) {
    return [this, &transcript, groups, &words, each] {
      const std::uint64_t drawn = conversation_.talk().draw();
      const auto part = static_cast<std::uint32_t>(drawn % groups);
      if (transcript.parts.size() < 2 * k_parts_fill && part * each < words.size()) {
        transcript.parts.push_back(part);
        transcript.words.push_back(words[part * each]);
      }
      return drawn;
    };
  }

  Result<void> conclude(BenchTranscript transcript, const Result<void>& checked) {
    transcript.outcome = checked ? "right" : checked.error().message;
    transcript.at = conversation_.talk().clock->wall();
    bench_.transcripts.push_back(std::move(transcript));
    return checked;
  }

  // Rates use our clock; the host's own figures use its clock, which must agree with ours.
  void compare_clocks(const std::string& what, const Answered& answered) {
    if (answered.claimed * k_clock_factor + k_clock_slack >= answered.elapsed) return;
    found_.wrong_clocks.push_back(what + ": it took " + format_duration(in_seconds(answered.elapsed)) +
                                  " by our clock, " + format_duration(in_seconds(answered.claimed)) + " by the host's");
  }

  // Records a figure that is based on an answer and on our own clock.
  void proven(const std::string& name, sched::Metric metric, double value) {
    bench_.figures[name] = value;
    found_.readings.push_back({metric, tool_, value});
  }

  Result<bool> gemm(std::uint64_t target_ms) {
    TRY_ASSIGN(const wire::BenchStage ready, begin("gemm", {{"target_ms", target_ms}}));
    probe::GemmChallenge sizes;
    sizes.groups = whole(ready, "groups");
    sizes.rows_per_group = whole(ready, "rows_per_group");
    sizes.columns = whole(ready, "columns");
    sizes.inner = whole(ready, "inner");
    sizes.seed = conversation_.talk().draw();
    BenchTranscript transcript{"gemm", {}, sizes.seed, 0, ready.numbers, "", {}, {}, 0, 0, ""};
    const auto answered = challenge(transcript, sizes.seed, "seconds");
    if (!answered) return conclude(std::move(transcript), answered.error()).error();
    TRY(affordable(sizes.flops() / 2 / std::max(1u, sizes.groups)));
    const Result<void> checked = probe::check_gemm(sizes, answered->words, k_parts,
                                                   noting(transcript, std::max(1u, sizes.groups), answered->words, 2));
    TRY(conclude(std::move(transcript), checked));
    const bool plain = is_one_of(ready.text("precision"), {"f32"});
    if (answered->elapsed < k_too_short) return false;
    proven(plain ? "gemm_fp32_tflops" : "gemm16_tflops", plain ? sched::Metric::gemm_fp32 : sched::Metric::gemm16,
           figure_of(sizes.flops(), answered->elapsed) / 1000);
    compare_clocks("matrices", *answered);
    return true;
  }

  Result<bool> fma(std::uint64_t target_ms) {
    TRY_ASSIGN(const wire::BenchStage ready, begin("fma", {{"target_ms", target_ms}}));
    probe::FmaChallenge sizes{conversation_.talk().draw(), whole(ready, "groups"), whole(ready, "steps")};
    BenchTranscript transcript{"fma", {}, sizes.seed, 0, ready.numbers, "", {}, {}, 0, 0, ""};
    const auto answered = challenge(transcript, sizes.seed, "seconds");
    if (!answered) return conclude(std::move(transcript), answered.error()).error();
    TRY(affordable(sizes.flops() / 2 / std::max(1u, sizes.groups)));
    const Result<void> checked = probe::check_fma(sizes, answered->words, k_parts,
                                                  noting(transcript, std::max(1u, sizes.groups), answered->words, 1));
    TRY(conclude(std::move(transcript), checked));
    if (answered->elapsed < k_too_short) return false;
    // Eight chains keep a GPU's vector units busy, but not a processor's.
    bench_.figures["fma_tflops"] = figure_of(sizes.flops(), answered->elapsed) / 1000;
    if (tool_ == sched::Tool::gridctl_cuda || ready.text("kind") == k_gpu_kind)
      proven("fp32_tflops", sched::Metric::fp32, bench_.figures["fma_tflops"]);
    compare_clocks("fp32", *answered);
    return true;
  }

  Result<void> fill() {
    std::map<std::string, std::uint64_t> parameters;
    const std::uint64_t limit =
        options_.challenges_only && options_.fill_bytes_max == 0 ? k_fill_between_jobs : options_.fill_bytes_max;
    if (limit != 0) parameters["bytes_max"] = limit;
    TRY_ASSIGN(const wire::BenchStage ready, begin("fill", parameters));
    probe::FillChallenge sizes{conversation_.talk().draw(), conversation_.talk().draw(), whole(ready, "blocks"),
                               whole(ready, "block_words")};
    BenchTranscript transcript{"fill", {}, sizes.seed, sizes.after, ready.numbers, "", {}, {}, 0, 0, ""};
    const os::Clock& clock = *conversation_.talk().clock;
    const BootTime began = clock.boot();
    const auto filled = seed(sizes.seed);
    if (!filled) return conclude(std::move(transcript), filled.error());
    const double filling = std::max(0.0, seconds(clock.boot() - began - round_trip_));
    const auto answered = challenge(transcript, sizes.after, "hash_seconds");
    if (!answered) return conclude(std::move(transcript), answered.error());
    TRY(affordable(sizes.block_words));
    const Result<void> checked = probe::check_fill(sizes, answered->words, k_parts_fill,
                                                   noting(transcript, std::max(1u, sizes.blocks), answered->words, 1));
    TRY(conclude(std::move(transcript), checked));
    if (ready.text("kind") == k_gpu_kind && limit == 0) found_.memory_hashed = sizes.bytes();
    bench_.figures["memory_hashed_bytes"] = sizes.bytes();
    if (filling > k_too_short) bench_.figures["memory_fill_gbs"] = figure_of(sizes.bytes(), filling);
    if (answered->elapsed > k_too_short) {
      bench_.figures["memory_hash_gbs"] = figure_of(sizes.bytes(), answered->elapsed);
      if (ready.text("kind") == k_gpu_kind)
        found_.readings.push_back({sched::Metric::memory_fill, tool_, bench_.figures["memory_hash_gbs"]});
    }
    return {};
  }

  // Records figures that only the host's clock timed; the challenges have shown the kind of device.
  Result<void> measure(const std::string& test) {
    TRY(begin(test));
    TRY_ASSIGN(const wire::BenchStage stage, seed(1));
    for (const auto& [name, value] : stage.numbers) {
      if (is_one_of(name, {"fp32_gflops", "fp16_gflops"}))
        bench_.figures[name.substr(0, 4) + "_peak_tflops"] = value / 1000;
      else bench_.figures[is_one_of(test, {"memory"}) ? "memory_" + name : name] = value;
    }
    const auto add = [&](const char* name, sched::Metric metric) {
      if (stage.numbers.contains(name)) found_.readings.push_back({metric, tool_, stage.number(name)});
    };
    add("read_gbs", sched::Metric::memory_read);
    add("copy_gbs", sched::Metric::memory_copy);
    add("h2d_gbs", sched::Metric::host_copy);
    add("d2h_gbs", sched::Metric::host_copy);
    if (stage.numbers.contains("fp32_gflops")) {
      const double tflops = stage.number("fp32_gflops") / 1000;
      if (tool_ == sched::Tool::gridctl_opencl) bench_.figures["fp32_tflops"] = tflops;
    }
    return {};
  }

  // Both GPUs are leased meanwhile. The catalogue has a figure only for links between GPUs.
  Result<void> copy_to(const BenchTarget::Neighbour& other) {
    const auto ready = begin("peer", {{"peer", other.index}}, other.uuid);
    if (!ready && ready.error().code == Code::busy) {
      bench_.verdict.notes.push_back("copies to " + sanitize(other.name) + " were not measured: that GPU is in use");
      return {};
    }
    TRY(ready);
    TRY_ASSIGN(const wire::BenchStage stage, seed(1));
    const double rate = stage.number("peer_gbs");
    bench_.figures["peer_" + std::to_string(other.place) + "_gbs"] = rate;
    const auto slowest = bench_.figures.try_emplace("peer_gbs", rate).first;
    slowest->second = std::min(slowest->second, rate);
    if (other.linked) found_.readings.push_back({sched::Metric::peer_copy, tool_, rate});
    return {};
  }

  Result<void> sustain() {
    TRY(begin("sustain", {{"seconds", static_cast<std::uint64_t>(gridctl::seconds(options_.under_load))}}));
    TRY(conversation_.send(wire::encode(wire::BenchSeed{1})));
    // When heat and clocks have settled, the GPU's own tools are asked how it reacts.
    os::pause_for(options_.under_load / 2);
    if (conversation_.talk().look)
      if (const Result<Inventory> seen = conversation_.talk().look())
        for (const Gpu& gpu : seen->gpus)
          if (gpu.uuid == target_.gpu.uuid && !gpu.uuid.empty()) found_.loaded = gpu;
    TRY_ASSIGN(const std::string payload, conversation_.receive(patience_with("sustain") + k_reply_slack));
    TRY_ASSIGN(const wire::BenchStage stage, wire::parse_bench_stage(payload));
    if (stage.number("first_gflops") > 0) found_.sustained = stage.number("last_gflops") / stage.number("first_gflops");
    bench_.figures["sustained_part"] = found_.sustained;
    return {};
  }

  static std::uint32_t whole(const wire::BenchStage& stage, const char* name) {
    return static_cast<std::uint32_t>(std::clamp(stage.number(name), 0.0, 4294967295.0));
  }
  // The host chooses sizes: an answer that would take us minutes to check is not checked.
  static Result<void> affordable(double operations_of_a_part) {
    constexpr double k_most = 6e10;
    if (operations_of_a_part <= k_most) return {};
    return make_error(Code::protocol_violation, "the host asks to check more than any device needs");
  }

  Result<GpuBench> judged() {
    std::vector<std::string> notes = std::move(bench_.verdict.notes);
    bench_.verdict = sched::judge(found_);
    bench_.verdict.notes.insert(bench_.verdict.notes.end(), notes.begin(), notes.end());
    return std::move(bench_);
  }

  BenchConversation& conversation_;
  const BenchTarget& target_;
  const BenchOptions& options_;
  Duration round_trip_;
  sched::Tool tool_ = sched::Tool::gridctl_opencl;
  sched::Examination found_;
  GpuBench bench_;
};

}  // namespace

Result<GpuBench> bench_device(BenchConversation& conversation, const BenchTarget& target, const BenchOptions& options,
                              Duration round_trip) {
  return Examiner(conversation, target, options, round_trip).run();
}

}  // namespace gridctl::control
