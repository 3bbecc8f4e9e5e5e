// SPDX-License-Identifier: Apache-2.0
#include "sched/standing/verdict.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>

#include "base/text.hpp"

namespace gridctl::sched::verdict_test {
namespace {

// --- measured figures of sound devices -------------------------------------------------------------------------------

struct Row {
  std::string gpu, tool, metric, note;
  double spec = 0, measured = 0;
};

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    else if (c == ',' && !quoted) cells.emplace_back();
    else cells.back() += c;
  }
  return cells;
}

std::vector<Row> rows_of_the_corpus() {
  std::ifstream file(std::string(GRIDCTL_SOURCE_DIR) + "/tests/data/bench_fractions.csv");
  std::string line;
  std::getline(file, line);
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    const auto cells = cells_of(line);
    Row row{cells.at(0),           cells.at(1), cells.at(2), cells.size() > 8 ? cells[8] : "", std::stod(cells.at(3)),
            std::stod(cells.at(4))};
    const std::string& unit = cells.at(5);
    if (unit == "GFLOPS") {
      row.spec /= 1000;
      row.measured /= 1000;
    }
    rows.push_back(row);
  }
  return rows;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

Metric metric_of(const Row& row) {
  const std::string& m = row.metric;
  if (has(m, "payload 16 MiB") || has(m, "payload 64 MiB") || has(m, "best seen")) return Metric::collective_message;
  if (has(m, "payload") || has(m, "busbw")) return Metric::collective;
  if (has(m, "point to point")) return Metric::network;
  if (has(m, "device-to-device")) return Metric::peer_copy;
  if (has(m, "bidirectional")) return Metric::host_copy_shared;
  if (has(m, "pageable")) return Metric::host_copy_pageable;
  if (has(m, "host-to-device") || has(m, "device-to-host")) return Metric::host_copy;
  if (has(m, "copy bandwidth")) return Metric::memory_copy;
  if (has(m, "bandwidth")) return Metric::memory_read;
  if (has(m, "fp8")) return Metric::gemm8;
  if (has(m, "tf32")) return Metric::gemm_tf32;
  if (has(m, "fp16 accumulate")) return Metric::gemm16_short;
  if (has(m, "GEMM") && has(m, "fp32")) return Metric::gemm_fp32;
  if (m == "fp32" || m == "fp32 vector" || has(m, "half2")) return Metric::fp32;
  return Metric::gemm16;
}
Tool tool_of(const Row& row) { return has(row.tool, "OpenCL") ? Tool::clpeak : Tool::vendor; }

// The catalogue's row, or the family of a model that it does not have.
const GpuModel* model_of(const Row& row) {
  static const std::map<std::string, std::string> k_names{{"Instinct MI250X (one GCD)", ""},
                                                          {"Instinct MI300X (VF)", "Instinct MI300X"}};
  const auto found = k_names.find(row.gpu);
  return model_by_key(found == k_names.end() ? row.gpu : found->second);
}
std::string family_of(const Row& row) {
  static const std::map<std::string, std::string> k_families{{"GTX 1660 Ti", "nv_geforce"},
                                                             {"RTX 2060", "nv_geforce"},
                                                             {"RTX 2080", "nv_geforce"},
                                                             {"K80 (per GPU)", "nv_old"},
                                                             {"Quadro GV100", "nv_old"},
                                                             {"Radeon RX 5500 XT", "amd_radeon"},
                                                             {"Radeon RX 570", "amd_radeon"},
                                                             {"Radeon VII Pro", "amd_dc"},
                                                             {"Instinct MI250X (one GCD)", "amd_dc"},
                                                             {"Instinct MI50 (PCIe 3)", "amd_dc"},
                                                             {"Instinct MI50 (PCIe 4)", "amd_dc"}};
  if (const GpuModel* model = model_of(row)) return model->family;
  const auto found = k_families.find(row.gpu);
  return found == k_families.end() ? "nv_dc" : found->second;
}
bool is_of_the_model(Metric metric) { return metric <= Metric::memory_copy; }

TEST(Verdict, EveryMeasuredRowIsOkForWhatItWasDeclaredAs) {
  const auto rows = rows_of_the_corpus();
  ASSERT_GE(rows.size(), 91u);
  for (const Row& row : rows) {
    const Band band = band_of(metric_of(row), tool_of(row), family_of(row), model_of(row));
    EXPECT_EQ(verdict_name(judge_fraction(row.measured / row.spec, band)), "ok")
        << row.gpu << ", " << row.metric << ": " << row.measured / row.spec << " in " << band.low << " to "
        << band.high;
  }
}

// One figure alone, against every other row of the catalogue. Models that have the same figure cannot be told apart by
// it, and are left out; nothing else is.
TEST(Verdict, AFigureWithAnotherModelsDeclarationIsFlaggedInNineOfTen) {
  int pairs = 0, flagged = 0, rows_below = 0, rows = 0, equal = 0;
  for (const Row& row : rows_of_the_corpus()) {
    const Metric metric = metric_of(row);
    if (!is_of_the_model(metric)) continue;
    const GpuModel* own = model_of(row);
    int row_pairs = 0, row_flagged = 0;
    for (const GpuModel& other : catalogue()) {
      if (&other == own || other.confirmed == Confirmed::unconfirmed) continue;
      const auto figure = nominal(other, metric);
      if (figure && std::abs(*figure / row.spec - 1) < 0.05) {
        ++equal;
        continue;
      }
      ++row_pairs;
      // A model that cannot do what was measured is another model.
      if (!figure || judge_fraction(row.measured / *figure, band_of(metric, tool_of(row), other.family, &other)) !=
                         VerdictKind::ok)
        ++row_flagged;
    }
    pairs += row_pairs;
    flagged += row_flagged;
    ++rows;
    if (row_flagged < row_pairs * 0.9) ++rows_below;
  }
  RecordProperty("pairs", pairs);
  RecordProperty("flagged", flagged);
  std::printf(
      "FIGURE flagged by one figure alone: %d of %d pairs (%.1f %%), %d of %d rows below nine of ten; "
      "%d pairs of equal figures left out\n",
      flagged, pairs, 100.0 * flagged / pairs, rows_below, rows, equal);
  EXPECT_GE(flagged, pairs * 0.9);
}

// --- a device as the benchmark sees it -------------------------------------------------------------------------------

Gpu gpu_of(const GpuModel& model) {
  Gpu gpu;
  gpu.vendor = model.vendor;
  gpu.name = model.key;
  gpu.model = model.key;
  gpu.memory_bytes = static_cast<std::uint64_t>(model.memory_gb * 1e9 * 1.05);
  gpu.units = model.units;
  gpu.arch = model.isa;
  gpu.power.default_watts = model.tdp_watts;
  return gpu;
}

// A sound device of a model: every figure in the middle of its band.
Examination sound(const GpuModel& model) {
  Examination found;
  found.declared = gpu_of(model);
  found.units = model.units;
  found.memory_reported = static_cast<double>(found.declared.memory_bytes);
  found.memory_hashed = found.memory_reported * 0.97;
  for (const Metric metric : {Metric::fp32, Metric::gemm16, Metric::memory_read, Metric::memory_copy}) {
    const auto figure = nominal(model, metric);
    const Band band = band_of(metric, Tool::gridctl_cuda, model.family, &model);
    if (figure) found.readings.push_back({metric, Tool::gridctl_cuda, *figure * (band.low + band.high) / 2});
  }
  return found;
}

const GpuModel& model(const char* key) {
  const GpuModel* found = model_by_key(key);
  if (found == nullptr) throw std::runtime_error(key);
  return *found;
}

TEST(Verdict, ASoundDeviceOfEveryModelIsOk) {
  for (const GpuModel& one : catalogue()) {
    if (one.family == "gaudi") continue;
    const GpuVerdict verdict = judge(sound(one));
    EXPECT_EQ(verdict_name(verdict.kind), "ok")
        << one.key << ": " << (verdict.findings.empty() ? "" : verdict.findings[0].text);
  }
}

// The whole examination: figures, units, memory.
TEST(Verdict, ADeviceDeclaredAsAnotherModelIsFlaggedInNineOfTen) {
  int pairs = 0, flagged = 0;
  for (const GpuModel& real : catalogue())
    for (const GpuModel& told : catalogue()) {
      if (&real == &told || real.family == "gaudi" || told.confirmed == Confirmed::unconfirmed) continue;
      Examination found = sound(real);
      found.declared = gpu_of(told);
      ++pairs;
      if (judge(found).kind != VerdictKind::ok) ++flagged;
    }
  std::printf("FIGURE flagged by the whole examination: %d of %d pairs (%.1f %%)\n", flagged, pairs,
              100.0 * flagged / pairs);
  EXPECT_GE(flagged, pairs * 0.95);
}

TEST(Verdict, AnUnconfirmedRowFailsNoHost) {
  Examination found = sound(model("H100 PCIe 80GB"));
  found.declared = gpu_of(model("H800 SXM"));
  found.declared.units.reset();
  found.memory_hashed = 0;
  const GpuVerdict verdict = judge(found);
  EXPECT_EQ(verdict_name(verdict.kind), "ok");
  EXPECT_FALSE(verdict.notes.empty());
}

TEST(Verdict, AWrongAnswerIsAMismatchWhateverTheSpeed) {
  Examination found = sound(model("A100 SXM4 80GB"));
  found.wrong_answers = {"the answer to the matrix challenge is wrong in part 7 of 64"};
  const GpuVerdict verdict = judge(found);
  EXPECT_EQ(verdict_name(verdict.kind), "mismatch");
  EXPECT_EQ(verdict.findings[0].what, "answer");
}

TEST(Verdict, MemoryThatCannotBeHashedIsAMismatch) {
  Examination found = sound(model("A100 SXM4 80GB"));
  found.memory_hashed = found.memory_reported * 0.3;
  EXPECT_EQ(verdict_name(judge(found).kind), "mismatch");
  found.foreign_memory = static_cast<std::uint64_t>(found.memory_reported * 0.6);
  EXPECT_EQ(verdict_name(judge(found).kind), "ok");
}

TEST(Verdict, FasterThanItsModelIsSuspect) {
  Examination found = sound(model("RTX 4090"));
  found.readings[0].value *= 2;
  EXPECT_EQ(verdict_name(judge(found).kind), "suspect");
}

TEST(Verdict, SlownessHasItsCause) {
  Examination found = sound(model("RTX 4090"));
  for (Reading& reading : found.readings)
    if (reading.metric == Metric::fp32) reading.value *= 0.72;
  EXPECT_EQ(verdict_name(judge(found).kind), "degraded");
  EXPECT_EQ(judge(found).cause, "");
  found.declared.power.default_watts = 450;
  found.declared.power.cap_watts = 300;
  EXPECT_EQ(judge(found).cause, "power cap 300 of 450 W");
  found.declared.power.cap_watts = 450;
  found.loaded = found.declared;
  found.loaded->throttle = {{"hw_thermal_slowdown"}};
  EXPECT_EQ(judge(found).cause, "throttled: hw_thermal_slowdown");
  found.loaded->throttle.reset();
  found.loaded->pcie.width = 4;
  found.loaded->pcie.width_max = 16;
  found.loaded->pcie.generation_max = 4;
  const GpuVerdict verdict = judge(found);
  EXPECT_EQ(verdict.cause, "PCIe width 4 of 16");
  EXPECT_EQ(verdict_name(verdict.kind), "degraded");
  found.loaded.reset();
  found.foreign_memory = 3ull << 30;
  EXPECT_EQ(judge(found).cause, "another process holds 3.0 GiB");
}

TEST(Verdict, HeatIsACauseFromItsOwnFiguresAndFromTheFallUnderLoad) {
  Examination found = sound(model("RTX 4090"));
  found.sustained = 0.8;
  EXPECT_EQ(verdict_name(judge(found).kind), "degraded");
  EXPECT_EQ(judge(found).findings[0].what, "sustained");
  EXPECT_EQ(judge(found).cause, "heat or power: it sustains 80 % of its first rate");
  found.loaded = found.declared;
  found.loaded->heat.now_c = 90;
  found.loaded->heat.slowdown_c = 88;
  EXPECT_EQ(judge(found).cause, "heat: 90 degrees");
  found.loaded->throttle = {{"sw_thermal_slowdown"}};
  EXPECT_EQ(judge(found).cause, "throttled: sw_thermal_slowdown, heat: 90 degrees");
  found.sustained = 0.95;
  EXPECT_EQ(verdict_name(judge(found).kind), "ok") << "hot, and as fast as it should be";
}

TEST(Verdict, WhoSharesADeviceIsSlowAndNoLiar) {
  Examination found = sound(model("A100 SXM4 80GB"));
  for (Reading& reading : found.readings) reading.value *= 0.3;
  found.foreign_memory = 2ull << 30;
  EXPECT_EQ(verdict_name(judge(found).kind), "degraded");
  EXPECT_EQ(judge(found).cause, "another process holds 2.0 GiB");
}

TEST(Verdict, LessThanHalfOfTheBandIsAnotherDeviceUnlessACapExplainsIt) {
  Examination found = sound(model("RTX 4090"));
  for (Reading& reading : found.readings) reading.value *= 0.3;
  found.units.reset();
  EXPECT_EQ(verdict_name(judge(found).kind), "mismatch");
  found.declared.power.cap_watts = 120;
  found.declared.power.default_watts = 450;
  EXPECT_EQ(verdict_name(judge(found).kind), "degraded");
}

TEST(Verdict, RatiosGiveAwayASlowedDownOtherChip) {
  Examination found = sound(model("A100 SXM4 80GB"));
  for (Reading& reading : found.readings)
    if (reading.metric == Metric::gemm16) reading.value *= 0.42;
  const GpuVerdict verdict = judge(found);
  bool told = false;
  for (const GpuFinding& finding : verdict.findings) told = told || finding.what == "ratio";
  EXPECT_TRUE(told);
  EXPECT_EQ(verdict_name(verdict.kind), "suspect");
}

TEST(Verdict, ADeviceOfNoModelIsOkAndSaysThatItWasNotCompared) {
  Examination found;
  found.declared.vendor = Vendor::other;
  found.declared.name = "a processor";
  found.memory_reported = 16e9;
  found.readings = {{Metric::fp32, Tool::gridctl_opencl, 0.01}};
  const GpuVerdict verdict = judge(found);
  EXPECT_EQ(verdict_name(verdict.kind), "ok");
  ASSERT_EQ(verdict.notes.size(), 1u);
}

TEST(Verdict, NamesCanBeReadBack) {
  for (const VerdictKind kind : {VerdictKind::ok, VerdictKind::unverified, VerdictKind::degraded, VerdictKind::suspect,
                                 VerdictKind::mismatch}) {
    EXPECT_EQ(parse_verdict(verdict_name(kind)), kind);
    EXPECT_EQ(verdict_of_figure(verdict_figure(kind)), kind);
  }
  EXPECT_EQ(verdict_figure(VerdictKind::mismatch), 3) << "states of earlier versions hold that number";
  EXPECT_EQ(verdict_of_figure(5), std::nullopt);
  EXPECT_EQ(parse_verdict("fine"), std::nullopt);
}

TEST(Trend, OneOutlierIsNoFallAndThreeAre) {
  Trend trend;
  for (const double value : {100.0, 101.0, 99.0, 100.0, 102.0, 100.0, 98.0, 100.0, 101.0}) extend(trend, value);
  EXPECT_LT(fall_of(trend), 0.03);
  extend(trend, 40);
  EXPECT_LT(fall_of(trend), k_drift_alert);
  extend(trend, 100);
  for (int i = 0; i < 3; ++i) extend(trend, 85);
  EXPECT_GT(fall_of(trend), k_drift_alert);
  EXPECT_LE(trend.last.size(), 9u);
  EXPECT_EQ(fall_of(Trend{}), 0);
}

}  // namespace
}  // namespace gridctl::sched::verdict_test
