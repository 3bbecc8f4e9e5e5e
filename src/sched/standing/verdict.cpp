// SPDX-License-Identifier: Apache-2.0
#include "sched/standing/verdict.hpp"

#include <algorithm>
#include <array>

#include "base/bytes.hpp"
#include "base/formatted.hpp"
#include "base/names.hpp"
#include "base/text.hpp"

namespace gridctl::sched {
namespace {

constexpr double k_mismatch_part = 0.5;  // of the band's low edge
constexpr double k_hashed_low = 0.85;    // of the reported memory: the rest is the driver's, or another program's
constexpr double k_ratio_max = 2.2;      // between two fractions that should be alike
constexpr double k_sustained_low = 0.9;  // a sound device keeps nine tenths of its first rate
constexpr double k_cap_low = 0.97;       // of the default power limit: below it is a cap
constexpr std::uint64_t k_foreign_min = 256ull << 20;  // bytes: a display's or a daemon's share is less
constexpr std::string_view k_power_cap = "sw_power_cap";
constexpr double k_tools_low = 0.75, k_tools_high = 1.05;  // the driver's size of memory as a part of the tools'
constexpr std::size_t k_last_max = 9;
constexpr double k_weight_of_new = 0.2;

std::string number(double value) { return formatted(value >= 100 ? "%.0f" : "%.3g", value); }
std::string percent(double part) { return number(part * 100) + " %"; }

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

bool is_rate(Metric metric) { return metric <= Metric::gemm8; }

// Returns the bytes a second of one lane in one direction.
double lane_gbs(int generation) {
  static constexpr std::array k_lanes{0.0, 0.25, 0.5, 0.985, 1.969, 3.938, 7.563};
  return generation > 0 && generation < static_cast<int>(k_lanes.size()) ? k_lanes[static_cast<std::size_t>(generation)]
                                                                         : 0;
}

// Returns why a sound device is slow, in words; empty if its tools report nothing.
std::string cause_of(const Examination& found) {
  std::vector<std::string> causes;
  const Gpu& gpu = found.loaded ? *found.loaded : found.declared;
  if (gpu.power.cap_watts && gpu.power.default_watts && *gpu.power.cap_watts < *gpu.power.default_watts * k_cap_low)
    causes.push_back("power cap " + number(*gpu.power.cap_watts) + " of " + number(*gpu.power.default_watts) + " W");
  if (gpu.throttle)
    for (const std::string& reason : *gpu.throttle)
      if (reason != k_power_cap) causes.push_back("throttled: " + reason);  // full load meets the cap: that is its use
  if (gpu.heat.now_c && gpu.heat.slowdown_c && *gpu.heat.now_c >= *gpu.heat.slowdown_c)
    causes.push_back("heat: " + std::to_string(*gpu.heat.now_c) + " degrees");
  if (gpu.pcie.width && gpu.pcie.width_max && *gpu.pcie.width < *gpu.pcie.width_max)
    causes.push_back("PCIe width " + std::to_string(*gpu.pcie.width) + " of " + std::to_string(*gpu.pcie.width_max));
  if (gpu.ecc == true && gpu.model.starts_with("RTX")) causes.push_back("ECC is on");
  if (found.foreign_memory >= k_foreign_min)
    causes.push_back("another process holds " + format_size(found.foreign_memory));
  if (found.sustained > 0 && found.sustained < k_sustained_low && causes.empty())
    causes.push_back("heat or power: it sustains " + percent(found.sustained) + " of its first rate");
  return join(causes, ", ");
}

class Examiner {
 public:
  explicit Examiner(const Examination& found) : found_(found), match_(find_model(found.declared)) {
    if (match_.model == nullptr && match_.contradictions.empty() && !found.declared.model.empty())
      match_.model = model_by_key(found.declared.model);
  }

  GpuVerdict judge() {
    if (!found_.no_device.empty()) add(VerdictKind::mismatch, "driver", found_.no_device);
    if (!found_.unproven.empty()) add(VerdictKind::suspect, "driver", found_.unproven);
    for (const std::string& why : found_.wrong_answers) add(VerdictKind::mismatch, "answer", why);
    for (const std::string& why : found_.wrong_clocks) add(VerdictKind::suspect, "clock", why);
    look_at_name();
    if (found_.no_device.empty()) compare_sources();
    look_at_memory();
    look_at_link();
    if (found_.sustained > 0 && found_.sustained < k_sustained_low)
      add(VerdictKind::degraded, "sustained",
          "under load, it falls to " + percent(found_.sustained) + " of its first rate");
    if (match_.model == nullptr) {
      look_at_no_model();
    } else {
      look_at_units();
      for (const Reading& reading : found_.readings) look_at(reading);
      look_at_ratios();
    }
    finish();
    return std::move(verdict_);
  }

 private:
  void add(VerdictKind kind, const char* what, std::string text) {
    verdict_.findings.push_back({kind, what, std::move(text)});
  }
  // Compares with the catalogue: a deviation from an unconfirmed row is reported, but never counts against the host.
  void compare(VerdictKind kind, const char* what, std::string text) {
    if (kind != VerdictKind::ok && match_.model->confirmed == Confirmed::unconfirmed) {
      verdict_.notes.push_back(text + " (the catalogue's figure is not confirmed)");
      return;
    }
    add(kind, what, std::move(text));
  }
  std::string model_text() const { return with_article(match_.model->key); }

  // Two sources describe the device: its maker's tools, and its driver in the process of the tests. Their common
  // statement is compared with what the name claims.
  void look_at_name() {
    const Gpu& told = found_.declared;
    const bool part = !told.partition.profile.empty();
    const auto reported = static_cast<std::uint64_t>(found_.memory_reported);
    const std::string& isa = found_.driver.isa.empty() ? told.arch : found_.driver.isa;
    const ModelMatch by_driver =
        find_model(GpuClues{told.vendor, told.name, reported != 0 && !part ? reported : told.memory_bytes,
                            found_.units && told.vendor == Vendor::nvidia ? found_.units : told.units, isa,
                            told.power.default_watts, told.partition.profile, found_.driver.pci_device});
    const ModelMatch& lie = by_driver.contradictions.empty() ? match_ : by_driver;
    if (lie.contradictions.empty()) {
      if (match_.model == nullptr) match_ = by_driver;  // the driver knows what the tools do not say
      return;
    }
    add(VerdictKind::mismatch, "name", "named " + told.name + "; " + join(lie.contradictions, "; "));
    match_ = lie;
  }

  void compare_sources() {
    const Gpu& told = found_.declared;
    const DriverFacts& driver = found_.driver;
    const auto differ = [&](const char* what, const std::string& tools, const std::string& its_driver) {
      add(VerdictKind::mismatch, "driver",
          std::string("the tools say ") + what + " " + tools + ", the driver says " + its_driver);
    };
    // OpenCL names, numbers and sizes devices in its own way.
    if (told.vendor == Vendor::nvidia && told.partition.profile.empty()) {
      if (!driver.name.empty() && !told.name.empty() && !is_same_product(told.name, driver.name))
        differ("the name is", told.name, driver.name);
      if (driver.uuid.starts_with("GPU-") && told.uuid.starts_with("GPU-") && lower(driver.uuid) != lower(told.uuid))
        differ("the UUID is", told.uuid, driver.uuid);
    }
    if (driver.isa.starts_with("sm_") && told.arch.starts_with("sm_") && driver.isa != told.arch)
      differ("the architecture is", told.arch, driver.isa);
    if (found_.memory_reported <= 0 || told.memory_bytes == 0 || !told.partition.profile.empty()) return;
    const double part = found_.memory_reported / static_cast<double>(told.memory_bytes);
    if (part < k_tools_low || part > k_tools_high)
      differ("the memory is", format_size(told.memory_bytes),
             format_size(static_cast<std::uint64_t>(found_.memory_reported)));
  }

  void look_at_no_model() {
    const std::string why = "not compared with a model: " + (match_.why.empty() ? "none is declared" : match_.why);
    const bool declared = found_.declared.vendor != Vendor::other || !found_.declared.uuid.empty();
    if (declared && match_.contradictions.empty()) add(VerdictKind::unverified, "model", why);
    else if (match_.contradictions.empty()) verdict_.notes.push_back(why);
  }

  void look_at_units() {
    if (!found_.units || !match_.model->units || match_.compute_share != 1) return;
    const bool same = *found_.units == *match_.model->units;
    // An OpenCL driver may count pairs of units as one.
    const bool pairs = *found_.units * 2 == *match_.model->units || *found_.units == *match_.model->units * 2;
    const bool good = same || (pairs && match_.model->vendor != Vendor::nvidia);
    compare(good ? VerdictKind::ok : VerdictKind::mismatch, "units",
            std::to_string(*found_.units) + " units, " + model_text() + " has " + std::to_string(*match_.model->units));
  }

  void look_at_memory() {
    const double reported = found_.memory_reported;
    if (match_.model != nullptr && reported > 0) {
      const double expected = match_.model->memory_gb * match_.memory_share;
      const bool good = memory_is_nominal(static_cast<std::uint64_t>(reported), expected);
      compare(good ? VerdictKind::ok : VerdictKind::mismatch, "memory",
              "the driver shows " + format_size(static_cast<std::uint64_t>(reported)) + ", " + model_text() + " has " +
                  number(expected) + " GB");
    }
    if (found_.memory_hashed <= 0 || reported <= 0) return;
    const double part = (found_.memory_hashed + static_cast<double>(found_.foreign_memory)) / reported;
    const VerdictKind kind = part >= k_hashed_low      ? VerdictKind::ok
                             : part >= k_mismatch_part ? VerdictKind::degraded
                                                       : VerdictKind::mismatch;
    add(kind, "memory",
        format_size(static_cast<std::uint64_t>(found_.memory_hashed)) + " could be filled and read back, of " +
            format_size(static_cast<std::uint64_t>(reported)));
  }

  void look_at_link() {
    const PcieLink& link = found_.loaded ? found_.loaded->pcie : found_.declared.pcie;
    if (!link.width || !link.width_max || *link.width >= *link.width_max) return;
    std::string text =
        "PCIe runs with " + std::to_string(*link.width) + " of " + std::to_string(*link.width_max) + " lanes";
    const double gbs = lane_gbs(link.generation_max.value_or(0)) * *link.width;
    if (gbs > 0) text += ": expect " + number(gbs) + " GB/s";
    add(VerdictKind::degraded, "pcie", text);
  }

  std::optional<double> nominal_here(Metric metric) const {
    if (metric == Metric::host_copy || metric == Metric::host_copy_pageable || metric == Metric::host_copy_shared) {
      const PcieLink& link = found_.loaded ? found_.loaded->pcie : found_.declared.pcie;
      const double gbs = lane_gbs(link.generation_max.value_or(0)) * link.width.value_or(0);
      return gbs > 0 ? std::optional(gbs) : std::nullopt;
    }
    const auto figure = nominal(*match_.model, metric);
    if (!figure) return std::nullopt;
    return *figure * (is_rate(metric) ? match_.compute_share : match_.memory_share);
  }

  void look_at(const Reading& reading) {
    const std::optional<double> expected = nominal_here(reading.metric);
    const char* const unit = is_rate(reading.metric) ? " TFLOPS" : " GB/s";
    const std::string name(metric_name(reading.metric));
    if (!expected) {
      verdict_.notes.push_back(name + " " + number(reading.value) + unit + ": no figure to compare with");
      return;
    }
    const double fraction = reading.value / *expected;
    const Band band = band_of(reading.metric, reading.tool, match_.model->family, match_.model);
    const VerdictKind kind = excused(judge_fraction(fraction, band));
    compare(kind, name.c_str(),
            name + " " + number(reading.value) + " of " + number(*expected) + unit + ", " + percent(fraction) +
                ", expected " + percent(band.low) + " to " + percent(band.high));
    if (reading.metric == Metric::gemm16) gemm_ = fraction / middle(band);
    if (reading.metric == Metric::fp32) fp32_ = fraction / middle(band);
    if (reading.metric == Metric::memory_read) memory_ = fraction / middle(band);
  }
  static double middle(const Band& band) { return (band.low + band.high) / 2; }

  // A shared device, or one in a power-saving mode, is slow for a visible reason.
  VerdictKind excused(VerdictKind kind) const {
    const Gpu& gpu = found_.loaded ? *found_.loaded : found_.declared;
    const bool capped =
        gpu.power.cap_watts && gpu.power.default_watts && *gpu.power.cap_watts < *gpu.power.default_watts * k_cap_low;
    const bool shared = found_.foreign_memory >= k_foreign_min;
    return kind == VerdictKind::mismatch && (capped || shared) ? VerdictKind::degraded : kind;
  }

  // Ratios are harder to fake than figures: a slowed-down big chip differs from a small one.
  void look_at_ratios() {
    const auto compare_pair = [&](const std::optional<double>& a, const std::optional<double>& b, const char* text) {
      if (!a || !b || *a <= 0 || *b <= 0) return;
      const double ratio = *a / *b;
      const bool good = ratio < k_ratio_max && ratio > 1 / k_ratio_max;
      if (!good)
        compare(VerdictKind::suspect, "ratio",
                std::string("the ratio of ") + text + " is " + number(ratio) + " times that of " + model_text());
    };
    compare_pair(gemm_, memory_, "16-bit matrices to memory");
    compare_pair(fp32_, gemm_, "fp32 to 16-bit matrices");
    compare_pair(fp32_, memory_, "fp32 to memory");
  }

  void finish() {
    std::ranges::stable_sort(verdict_.findings, std::ranges::greater{}, &GpuFinding::kind);
    if (!verdict_.findings.empty()) verdict_.kind = verdict_.findings.front().kind;
    if (verdict_.kind == VerdictKind::degraded) verdict_.cause = cause_of(found_);
  }

  const Examination& found_;
  ModelMatch match_;
  GpuVerdict verdict_;
  std::optional<double> gemm_, fp32_, memory_;  // fractions, as parts of the middle of their bands
};

constexpr Names<VerdictKind, VerdictKind::mismatch> k_verdict_names{"ok", "unverified", "degraded", "suspect",
                                                                    "mismatch"};
constexpr std::array k_verdict_figures{VerdictKind::ok, VerdictKind::degraded, VerdictKind::suspect,
                                       VerdictKind::mismatch, VerdictKind::unverified};

// Findings that no second run can clear: statements and answers, not speeds.
constexpr std::array<std::string_view, 5> k_certain{"answer", "driver", "name", "model", "units"};
}  // namespace

std::string_view verdict_name(VerdictKind kind) { return k_verdict_names(kind); }
std::optional<VerdictKind> parse_verdict(std::string_view name) { return k_verdict_names.find(name); }

double verdict_figure(VerdictKind kind) {
  return static_cast<double>(std::ranges::find(k_verdict_figures, kind) - k_verdict_figures.begin());
}
std::optional<VerdictKind> verdict_of_figure(double figure) {
  if (!(figure >= 0) || figure >= static_cast<double>(k_verdict_figures.size())) return std::nullopt;
  return k_verdict_figures[static_cast<std::size_t>(figure)];
}

namespace {
bool is_certain(const GpuFinding& finding) { return std::ranges::find(k_certain, finding.what) != k_certain.end(); }
bool is_doubt(const GpuFinding& finding) { return finding.kind >= VerdictKind::degraded && !is_certain(finding); }
}  // namespace

bool deserves_another_run(const GpuVerdict& verdict) {
  return std::ranges::none_of(
             verdict.findings,
             [](const GpuFinding& one) { return one.kind == VerdictKind::mismatch && is_certain(one); }) &&
         std::ranges::any_of(verdict.findings, is_doubt);
}

GpuVerdict confirmed(const GpuVerdict& first, GpuVerdict second) {
  for (GpuFinding& finding : second.findings) {
    if (!is_doubt(finding)) continue;
    const bool twice = std::ranges::any_of(first.findings, [&](const GpuFinding& before) {
      return before.what == finding.what && before.kind >= VerdictKind::degraded;
    });
    if (!twice) finding.kind = VerdictKind::ok, finding.text += "; another run did not confirm this";
  }
  std::ranges::stable_sort(second.findings, std::ranges::greater{}, &GpuFinding::kind);
  second.kind = second.findings.empty() ? VerdictKind::ok : second.findings.front().kind;
  if (second.kind != VerdictKind::degraded) second.cause.clear();
  return second;
}

VerdictKind judge_fraction(double fraction, const Band& band) {
  if (fraction > band.high) return VerdictKind::suspect;
  if (fraction >= band.low) return VerdictKind::ok;
  return fraction < band.low * k_mismatch_part ? VerdictKind::mismatch : VerdictKind::degraded;
}

GpuVerdict judge(const Examination& examination) { return Examiner(examination).judge(); }

void extend(Trend& trend, double value) {
  trend.last.push_back(value);
  if (trend.last.size() > k_last_max) trend.last.erase(trend.last.begin());
  const double median = median_of(trend.last);
  trend.baseline = trend.baseline == 0 ? median : trend.baseline + k_weight_of_new * (median - trend.baseline);
}

double fall_of(const Trend& trend) {
  if (trend.last.size() < 3 || trend.baseline <= 0) return 0;
  const double now = median_of({trend.last.end() - 3, trend.last.end()});
  return std::max(0.0, 1 - now / trend.baseline);
}

}  // namespace gridctl::sched
