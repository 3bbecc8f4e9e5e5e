// SPDX-License-Identifier: Apache-2.0
// The other end of a benchmark: a host with GPUs that answer challenges rightly, in times that the test says. Small
// challenges, a clock by hand, no threads.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "control/measure/bench.hpp"
#include "hand_clock.hpp"
#include "wire/health.hpp"
#include "wire/messages.hpp"

namespace gridctl::control::testing {

class FakeGpus : public wire::Link {
 public:
  explicit FakeGpus(HandClock& clock) : clock_(clock) {
    for (const char* stage : {"fill", "hash", "gemm", "fma"}) took[stage] = claimed[stage] = std::chrono::seconds{1};
  }

  Result<void> send(const wire::Frame& frame, BootTime) override {
    if (broken) return *broken;
    const std::string op = wire::request_name(frame.payload);
    asked.push_back(op);
    clock_.pass(round_trips.empty() ? round_trip : round_trips.front());
    if (!round_trips.empty()) round_trips.pop_front();
    std::optional<Result<std::string>> answered;
    if (instead) answered = instead(op, frame.payload);
    if (!answered) answered = answer(op, frame.payload);
    if (noise) frames_.push_back({wire::FrameKind::event, 0, "{}"});
    if (noise) frames_.push_back({wire::FrameKind::reply, frame.stream - 1, R"({"late":true})"});
    if (answered->has_value()) frames_.push_back({wire::FrameKind::reply, frame.stream, **answered});
    else frames_.push_back({wire::FrameKind::reply, frame.stream, wire::error_payload(answered->error())});
    if (silent) frames_.clear();
    return {};
  }
  Result<wire::Frame> receive(BootTime deadline) override {
    if (lost) return *lost;
    patience.push_back(deadline - clock_.boot());
    if (frames_.empty()) return make_error(Code::timed_out, "no answer in time");
    wire::Frame frame = frames_.front();
    frames_.pop_front();
    return frame;
  }

  [[nodiscard]] std::vector<std::string> tests() const {
    std::vector<std::string> names;
    for (const wire::BenchBegin& one : begun) names.push_back(one.test);
    return names;
  }

  // What was asked.
  std::vector<std::string> asked;
  std::vector<wire::BenchBegin> begun;
  std::vector<Duration> patience;
  Duration part{};  // of the host's own test

  // What it does.
  std::optional<Error> broken, lost;  // of the link
  bool silent = false;                // it answers nothing more
  bool noise = false;                 // frames that nobody waits for come in between
  Duration round_trip = std::chrono::milliseconds{2};
  std::deque<Duration> round_trips;
  std::map<std::string, Duration> took, claimed;  // by stage: "fill", "hash", "gemm", "fma"
  std::function<std::optional<Result<std::string>>(const std::string& op, const std::string& payload)> instead;
  std::function<void(probe::Words&)> spoil;                          // the answer after it was committed
  std::function<void(const std::string& test, wire::BenchStage&)> reshape;  // what it says of a begun test
  wire::BenchStage facts{false, {{"memory_bytes", 8192}, {"units", 132}, {"memory_bus_bits", 5120}}, {{"kind", "gpu"}}, {}};
  std::map<std::string, std::map<std::string, double>> rates{
      {"rates", {{"fp32_gflops", 60'000}, {"fp16_gflops", 120'000}}},
      {"memory", {{"read_gbs", 3000}, {"copy_gbs", 2500}}},
      {"copies", {{"h2d_gbs", 50}, {"d2h_gbs", 55}}},
      {"peer", {{"peer_gbs", 200}}},
      {"sustain", {{"first_gflops", 1000}, {"last_gflops", 950}}}};
  std::map<std::string, double> host{{"cpu_gflops", 100}, {"disk_write_mbs", 2500}};
  wire::BenchDevices devices;
  wire::HealthReply health;

 private:
  Result<std::string> answer(const std::string& op, const std::string& payload) {
    if (op == "bench-list") return wire::encode(devices);
    if (op == "health") return wire::encode(health);
    if (op == "bench-begin") return begin(*wire::parse_bench_begin(payload));
    if (op == "bench-seed") return go_on(wire::parse_bench_seed(payload)->seed);
    if (op != "bench-host") return std::string("{}");
    part = wire::parse_bench_host(payload)->part;
    return wire::encode(wire::BenchStage{true, host, {}, {}});
  }

  std::string begin(const wire::BenchBegin& request) {
    begun.push_back(request);
    seeds_.clear();
    ready_ = facts;
    std::map<std::string, double> sizes;
    if (request.test == "gemm") sizes = {{"groups", 2}, {"rows_per_group", 128}, {"columns", 128}, {"inner", 128}};
    if (request.test == "fma") sizes = {{"groups", 5}, {"steps", 100}};
    if (request.test == "fill") sizes = {{"blocks", 2}, {"block_words", 1024}};
    ready_.numbers.merge(sizes);
    if (reshape) reshape(request.test, ready_);
    return wire::encode(ready_);
  }

  std::string go_on(std::uint64_t seed) {
    const std::string& test = begun.back().test;
    const auto figures = rates.find(test);
    if (figures != rates.end()) return wire::encode(wire::BenchStage{true, figures->second, {}, {}});
    seeds_.push_back(seed);
    if (test == "fill" && seeds_.size() == 1) {
      clock_.pass(took["fill"]);
      return wire::encode(wire::BenchStage{false, {}, {}, {}});
    }
    if (seed == 0) {
      if (spoil) spoil(words_);
      return wire::encode(wire::BenchStage{true, {}, {}, {{"answer", probe::words_to_hex(words_)}}});
    }
    compute(test);
    const std::string stage = test == "fill" ? "hash" : test;
    clock_.pass(took[stage]);
    return wire::encode(wire::BenchStage{false,
                                         {{test == "fill" ? "hash_seconds" : "seconds", seconds(claimed[stage])}},
                                         {},
                                         {{"commit", probe::words_to_hex(probe::bench_commitment(words_))}}});
  }

  void compute(const std::string& test) {
    const auto size = [&](const char* name) { return static_cast<std::uint32_t>(ready_.number(name)); };
    words_.clear();
    if (test == "gemm") {
      const probe::GemmChallenge sizes{seeds_[0], size("groups"), size("rows_per_group"), size("columns"), size("inner")};
      if (sizes.columns > 128) return words_.resize(2 * sizes.groups);  // nobody waits for an honest answer
      for (std::uint32_t i = 0; i < sizes.groups; ++i) {
        const probe::GemmPart one = probe::gemm_part(sizes, i);
        words_.insert(words_.end(), {one.hash, one.projection});
      }
    } else if (test == "fma") {
      const probe::FmaChallenge sizes{seeds_[0], size("groups"), size("steps")};
      for (std::uint32_t i = 0; i < sizes.groups; ++i) words_.push_back(probe::fma_part(sizes, i));
    } else {
      const probe::FillChallenge sizes{seeds_[0], seeds_[1], size("blocks"), size("block_words")};
      for (std::uint32_t i = 0; i < sizes.blocks; ++i) words_.push_back(probe::fill_part(sizes, i));
    }
  }

  HandClock& clock_;
  std::deque<wire::Frame> frames_;
  std::vector<std::uint64_t> seeds_;
  wire::BenchStage ready_;
  probe::Words words_;
};

// A GPU that no catalogue knows: nothing but what was tested decides.
inline Gpu plain_gpu(const std::string& uuid, const std::string& pci = "") {
  Gpu gpu;
  gpu.name = "Test GPU";
  gpu.uuid = uuid;
  gpu.pci = pci;
  gpu.vendor = Vendor::nvidia;
  return gpu;
}
inline wire::BenchStage device(std::map<std::string, std::string> texts) {
  texts.emplace("backend", "cuda");
  texts.emplace("kind", "gpu");
  return {false, {}, std::move(texts), {}};
}

}  // namespace gridctl::control::testing
