// SPDX-License-Identifier: Apache-2.0
#include "wire/bench.hpp"

#include <algorithm>

#include "wire/coding.hpp"

namespace gridctl::wire {

namespace {
constexpr std::size_t k_name_max = 64;  // bytes
}

template <class R>
void fields(R& r, Of<R, BenchStage>& m) {
  r("done", m.done).pairs("numbers", m.numbers, k_bench_values_max, k_name_max);
  r.pairs("texts", m.texts, k_bench_values_max, k_name_max, k_bench_text_max);
  r.pairs("words", m.words, k_bench_values_max, k_name_max, k_bench_words_max);
}

template <class R>
void fields(R& r, Of<R, BenchDevices>& m) {
  r("devices", m.devices, k_bench_devices_max);
  r.pairs("problems", m.problems, k_bench_values_max, k_name_max, k_bench_text_max);
}

template <class R>
void fields(R& r, Of<R, BenchBegin>& m) {
  r.id("test", m.test).id("backend", m.backend)("index", m.index, k_bench_devices_max);
  r("gpu", m.gpu, 256)("peer", m.peer, 256).pairs("parameters", m.parameters, k_bench_values_max, k_name_max);
  r("deadline_ms", m.deadline);
  if constexpr (R::reads) m.deadline = std::min(m.deadline, k_bench_stage_max);
}

template <class R>
void fields(R& r, Of<R, BenchSeed>& m) {
  r("seed", m.seed);
}

template <class R>
void fields(R& r, Of<R, BenchHost>& m) {
  r("part_ms", m.part);
  if constexpr (R::reads) m.part = std::min(m.part, k_bench_stage_max);
}

double BenchStage::number(const std::string& name) const {
  const auto found = numbers.find(name);
  return found == numbers.end() ? 0 : found->second;
}
std::string BenchStage::text(const std::string& name) const {
  const auto found = texts.find(name);
  return found == texts.end() ? "" : found->second;
}

GRIDCTL_REPLY(BenchStage, parse_bench_stage, "a stage of a test")
GRIDCTL_REPLY(BenchDevices, parse_bench_devices, "a list of devices")
GRIDCTL_REQUEST(BenchBegin, parse_bench_begin, k_bench_begin)
GRIDCTL_REQUEST(BenchSeed, parse_bench_seed, k_bench_seed)
GRIDCTL_REQUEST(BenchHost, parse_bench_host, k_bench_host)

}  // namespace gridctl::wire
