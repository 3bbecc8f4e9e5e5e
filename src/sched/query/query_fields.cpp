// SPDX-License-Identifier: Apache-2.0
#include "sched/query/query_fields.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/host_words.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "sched/query/query_text.hpp"
#include "sched/standing/reliability.hpp"

namespace gridctl::sched {

namespace {
using Texts = std::vector<std::string_view>;
using MaybeNumber = std::optional<double>;
constexpr int k_version_parts = 4;
constexpr double k_version_step = 10'000;  // no part of a version is higher

// The GPUs of a host are mostly of one kind: an existing text is not added again.
void add(Texts& out, std::string_view text) {
  if (!text.empty() && (out.empty() || out.back() != text)) out.push_back(text);
}
MaybeNumber known(double value) { return value > 0 ? MaybeNumber{value} : std::nullopt; }

MaybeNumber figure(const Subject& host, std::string_view name) {
  if (host.figures == nullptr) return std::nullopt;
  const auto found = host.figures->find(name);
  return found == host.figures->end() ? std::nullopt : MaybeNumber{found->second};
}

// Returns the least of a number over all GPUs of a host; nullopt if one is not known or there is no GPU.
template <class F>
MaybeNumber least_of_gpus(const Subject& host, F value) {
  MaybeNumber least;
  for (const Gpu& gpu : host.inventory->gpus) {
    const auto own = value(gpu);
    if (!own) return std::nullopt;
    least = std::min(least.value_or(static_cast<double>(*own)), static_cast<double>(*own));
  }
  return least;
}
MaybeNumber least_memory(const Subject& host) {
  return least_of_gpus(host, [](const Gpu& gpu) { return MaybeNumber{static_cast<double>(gpu.memory_bytes) / k_gib}; });
}
MaybeNumber all_memory(const Subject& host) {
  double bytes = 0;
  for (const Gpu& gpu : host.inventory->gpus) bytes += static_cast<double>(gpu.memory_bytes);
  return bytes / k_gib;
}

// Turns "sm_90" into 9.0, "sm_120" into 12.0: the last digit is the minor number.
MaybeNumber capability_of(const Gpu& gpu) {
  if (!gpu.arch.starts_with("sm_")) return std::nullopt;
  const int value = leading_number<int>(std::string_view(gpu.arch).substr(3)).value_or(0);
  return value >= 10 ? MaybeNumber{value / 10.0} : std::nullopt;
}

MaybeNumber fabric_gbytes(const Subject& host) {
  double best = 0;
  for (const GpuLink& link : host.inventory->links)
    if (is_fabric(link.kind) && link.bits_per_second) best = std::max(best, *link.bits_per_second / 8e9);
  return known(best);
}

MaybeNumber has_feature(const Subject& host, std::string_view name) {
  const std::vector<std::string>& features = host.inventory->cpu.features;
  const bool has = std::ranges::any_of(features, [&](const std::string& f) { return f == name; });
  return has ? MaybeNumber{1} : features.empty() ? std::nullopt : MaybeNumber{0};
}

// Turns "Ubuntu 22.04.3 LTS" into 22.04.
MaybeNumber ubuntu_version(const Subject& host) {
  const std::string_view os = host.inventory->os;
  return os.starts_with("Ubuntu ") ? version_number(os.substr(7, 5)) : std::nullopt;
}

MaybeNumber per_gpu(const Subject& host, double value) {
  const std::size_t gpus = host.inventory->gpus.size();
  return gpus == 0 ? std::nullopt : MaybeNumber{value / static_cast<double>(gpus)};
}
MaybeNumber per_dollar(const Subject& host, std::string_view name) {
  const MaybeNumber value = figure(host, name);
  return value && host.price_per_hour > 0 ? MaybeNumber{*value / host.price_per_hour} : std::nullopt;
}

// Returns the figure that a daemon wrote, or the class's expectation. The three classes are computed once.
double expected(const Subject& host, std::string_view name, double (*of)(const Reliability&)) {
  static const std::array<Reliability, 3> k_classes{estimate(class_rate_per_hour("datacenter"), {}, {}),
                                                    estimate(class_rate_per_hour("market"), {}, {}),
                                                    estimate(class_rate_per_hour("home"), {}, {})};
  if (const MaybeNumber own = figure(host, name)) return *own;
  const bool steady = is_steady_class(host.host_class);
  return of(k_classes[steady ? 0 : host.host_class == k_class_market ? 1 : 2]);
}

constexpr Field k_fields[] =
    {
        // --- The host and what its owner said
        {"name", "id host", Unit::text, "the provider's name", false, FieldSource::host, nullptr,
         [](const Subject& h, Texts& out) { add(out, h.name); }},
        {"state", "actual_status", Unit::text, "answering, suspect, unreachable, lost, unknown or drained", true,
         FieldSource::host, nullptr, [](const Subject& h, Texts& out) { add(out, h.state); }},
        {"rentable", "", Unit::flag, "it accepts new jobs: not drained, and it answers or was not contacted yet", true,
         FieldSource::host,
         [](const Subject& h) {
           return MaybeNumber{is_one_of(h.state, {k_host_answering, k_host_unknown}) ? 1.0 : 0.0};
         }},
        {"region", "geolocation country", Unit::region, "as registered; DE is de and DE-BY", false, FieldSource::host,
         nullptr, [](const Subject& h, Texts& out) { add(out, h.region); }},
        {"site", "", Unit::text, "as registered", false, FieldSource::host, nullptr,
         [](const Subject& h, Texts& out) { add(out, h.site); }},
        {"class", "host_class", Unit::text, "datacenter, cloud, market or home", false, FieldSource::host, nullptr,
         [](const Subject& h, Texts& out) { add(out, h.host_class); }},
        {"datacenter", "", Unit::flag, "its class is datacenter", false, FieldSource::host,
         [](const Subject& h) { return MaybeNumber{h.host_class == k_class_datacenter ? 1.0 : 0.0}; }},
        {"engine", "", Unit::text, "auto, docker, podman or process, as registered", false, FieldSource::host, nullptr,
         [](const Subject& h, Texts& out) { add(out, h.engine); }},
        {"price", "dph dph_total dph_base", Unit::usd, "of the complete host, per hour", false, FieldSource::host,
         [](const Subject& h) { return MaybeNumber{h.price_per_hour}; }},
        {"gpu_price", "dph_per_gpu", Unit::usd, "price by number of GPUs", false, FieldSource::host,
         [](const Subject& h) { return per_gpu(h, h.price_per_hour); }},
        {k_label_field, "", Unit::text, "the label KEY, as registered", false, FieldSource::host},
        // --- GPUs
        {"gpu", "", Unit::gpu_spec, "dstack's notation, vendor:names:memory:count, each part optional", false,
         FieldSource::host},
        {"gpu_name", "", Unit::gpu_name, "model; vendor, brand and form factor may be omitted", false,
         FieldSource::host, nullptr,
         [](const Subject& h, Texts& out) {
           for (const Gpu& gpu : h.inventory->gpus) add(out, gpu.name);
         }},
        {"gpu_vendor", "gpu_arch vendor", Unit::text, "nvidia, amd or intel", false, FieldSource::host, nullptr,
         [](const Subject& h, Texts& out) {
           for (const Gpu& gpu : h.inventory->gpus) add(out, vendor_name(gpu.vendor));
         }},
        {"gpu_chip", "", Unit::text, "sm_90, gfx942, xe_hpc…", false, FieldSource::host, nullptr,
         [](const Subject& h, Texts& out) {
           for (const Gpu& gpu : h.inventory->gpus) add(out, gpu.arch);
         }},
        {"num_gpus", "gpus", Unit::count, "GPUs of the host", false, FieldSource::host,
         [](const Subject& h) { return MaybeNumber{static_cast<double>(h.inventory->gpus.size())}; }},
        {"gpu_ram", "gpu_memory", Unit::gpu_gib, "memory of each GPU, at least", false, FieldSource::host,
         least_memory},
        {"gpu_total_ram", "", Unit::gpu_gib, "memory of all GPUs together", false, FieldSource::host, all_memory},
        {"compute_cap", "", Unit::capability, "CUDA compute capability of each GPU, at least", false, FieldSource::host,
         [](const Subject& h) { return least_of_gpus(h, capability_of); }},
        {"gpu_max_power", "", Unit::watts, "power cap in force of each GPU, at least", false, FieldSource::host,
         [](const Subject& h) { return least_of_gpus(h, [](const Gpu& gpu) { return gpu.power.cap_watts; }); }},
        {"gpu_max_temp", "", Unit::celsius, "temperature at which clocks fall", false, FieldSource::host,
         [](const Subject& h) { return least_of_gpus(h, [](const Gpu& gpu) { return gpu.heat.slowdown_c; }); }},
        {"ecc", "", Unit::flag, "every GPU's memory is error-correcting now", false, FieldSource::host,
         [](const Subject& h) { return least_of_gpus(h, [](const Gpu& gpu) { return gpu.ecc; }); }},
        {"pci_gen", "", Unit::count, "PCIe generation of each GPU, at least", false, FieldSource::host,
         [](const Subject& h) { return least_of_gpus(h, [](const Gpu& gpu) { return gpu.pcie.generation_max; }); }},
        {"pci_width", "gpu_lanes", Unit::count, "PCIe lanes of each GPU, at least", false, FieldSource::host,
         [](const Subject& h) { return least_of_gpus(h, [](const Gpu& gpu) { return gpu.pcie.width; }); }},
        {"bw_nvlink", "", Unit::gbyte_s, "NVLink, xGMI or Xe Link between two GPUs, the best pair, as rated", false,
         FieldSource::host, fabric_gbytes},
        {"driver_version", "driver", Unit::version, "the lowest of the GPUs", false, FieldSource::host,
         [](const Subject& h) { return least_of_gpus(h, [](const Gpu& gpu) { return version_number(gpu.driver); }); }},
        {"cuda_vers", "cuda cuda_max_good", Unit::version, "highest CUDA version that the driver supports", false,
         FieldSource::host, [](const Subject& h) { return version_number(h.inventory->cuda); }},
        {"rocm_vers", "rocm", Unit::version, "ROCm's version", false, FieldSource::host,
         [](const Subject& h) { return version_number(h.inventory->rocm); }},
        // --- The rest of the machine
        {"cpus", "cpu_cores_effective", Unit::count, "CPUs that jobs may use", false, FieldSource::host,
         [](const Subject& h) { return MaybeNumber{h.inventory->cpus}; }},
        {"cpu_cores", "", Unit::count, "hardware threads of the machine", false, FieldSource::host,
         [](const Subject& h) {
           const std::optional<int>& threads = h.inventory->cpu.threads;
           return threads ? MaybeNumber{*threads} : known(h.inventory->cpus);
         }},
        {"cpu_ghz", "", Unit::ghz, "highest clock", false, FieldSource::host,
         [](const Subject& h) { return known(h.inventory->cpu.max_mhz.value_or(0) / 1000.0); }},
        {"cpu_name", "", Unit::part, "model, or a part of it", false, FieldSource::host, nullptr,
         [](const Subject& h, Texts& out) { add(out, h.inventory->cpu_model); }},
        {"cpu_arch", "arch", Unit::text, "x86_64 (amd64) or aarch64 (arm64)", false, FieldSource::host, nullptr,
         [](const Subject& h, Texts& out) { add(out, h.inventory->arch); }},
        {"has_avx", "", Unit::flag, "AVX2", false, FieldSource::host,
         [](const Subject& h) { return has_feature(h, "avx2"); }},
        {"cpu_ram", "ram memory", Unit::gib, "memory that jobs may use", false, FieldSource::host,
         [](const Subject& h) { return MaybeNumber{static_cast<double>(h.inventory->memory_bytes) / k_gib}; }},
        {"disk_space", "disk", Unit::gib, "free where gridctl keeps its data", true, FieldSource::host,
         [](const Subject& h) { return MaybeNumber{static_cast<double>(h.inventory->disk_free_bytes) / k_gib}; }},
        {"os", "", Unit::part, "system, or a part of its name", false, FieldSource::host, nullptr,
         [](const Subject& h, Texts& out) { add(out, h.inventory->os); }},
        {"ubuntu_version", "os_version", Unit::version, "of hosts that run Ubuntu", false, FieldSource::host,
         ubuntu_version},
        {"kernel", "", Unit::version, "Linux", false, FieldSource::host,
         [](const Subject& h) { return version_number(h.inventory->kernel); }},
        {"machine_id", "", Unit::text, "of the operating system", false, FieldSource::host, nullptr,
         [](const Subject& h, Texts& out) { add(out, h.inventory->machine_id); }},
        // --- What was measured
        {"verified", "verification", Unit::flag, "the last benchmark confirmed the host's declared hardware", true,
         FieldSource::host, [](const Subject& h) { return figure(h, "verified"); }},
        {"total_flops", "", Unit::tflops, "16-bit matrix rate of all GPUs together", false, FieldSource::host,
         [](const Subject& h) { return figure(h, "total_flops"); }},
        {"dlperf", "", Unit::count,
         "16-bit matrix rate of all GPUs relative to that of an A100 (250 TFLOPS), times 100", false, FieldSource::host,
         [](const Subject& h) {
           const MaybeNumber flops = figure(h, "total_flops");
           return flops ? MaybeNumber{*flops / 2.5} : std::nullopt;
         }},
        {"flops_usd", "", Unit::tflops, "total_flops by price", false, FieldSource::host,
         [](const Subject& h) { return per_dollar(h, "total_flops"); }},
        {"dlperf_usd", "dlperf_per_dphtotal", Unit::count, "dlperf by price", false, FieldSource::host,
         [](const Subject& h) {
           const MaybeNumber flops = per_dollar(h, "total_flops");
           return flops ? MaybeNumber{*flops / 2.5} : std::nullopt;
         }},
        {"gpu_mem_bw", "", Unit::gbyte_s, "memory bandwidth of the slowest GPU", false, FieldSource::host,
         [](const Subject& h) { return figure(h, "gpu_mem_bw"); }},
        {"pcie_bw", "", Unit::gbyte_s, "copies to the slowest GPU", false, FieldSource::host,
         [](const Subject& h) { return figure(h, "pcie_bw"); }},
        {"disk_bw", "", Unit::gbyte_s, "writing to disk", false, FieldSource::host,
         [](const Subject& h) { return figure(h, "disk_bw"); }},
        {"inet_up", "", Unit::mbit, "uplink: the best rate seen from the host to here or to another host", true,
         FieldSource::links, [](const Subject& h) { return figure(h, "inet_up"); }},
        {"inet_down", "", Unit::mbit, "downlink: the best rate seen to the host from here or from another host", true,
         FieldSource::links, [](const Subject& h) { return figure(h, "inet_down"); }},
        {"rtt", "latency ping", Unit::ms, "round trip from here", true, FieldSource::links,
         [](const Subject& h) { return figure(h, "rtt"); }},
        // --- What was seen over time
        {"reliability", "reliability2", Unit::share, "expected share of time up", true, FieldSource::host,
         [](const Subject& h) { return MaybeNumber{reliability_of(h)}; }},
        {"mtbf", "", Unit::hours,
         "expected hours to the next failure; the class's value until the host has been watched", true,
         FieldSource::host, [](const Subject& h) { return MaybeNumber{mtbf_hours_of(h)}; }},
        {"uptime", "", Unit::share, "observed share of time up", true, FieldSource::host,
         [](const Subject& h) { return figure(h, "uptime"); }},
        {"failures", "", Unit::count, "failures seen", true, FieldSource::host,
         [](const Subject& h) { return MaybeNumber{figure(h, "failures").value_or(0)}; }},
        {"watched", "", Unit::hours, "time that gridctl has watched it while up", true, FieldSource::host,
         [](const Subject& h) { return MaybeNumber{figure(h, "watched").value_or(0)}; }},
        {"start_time", "start", Unit::seconds, "from placing a job to its first instruction, 9 of 10 starts", true,
         FieldSource::host, [](const Subject& h) { return figure(h, "start_time"); }},
        {"bench_drift", "", Unit::share, "how far the newest benchmarks are below the usual: 0.1 is 10 % slower", true,
         FieldSource::host, [](const Subject& h) { return figure(h, "bench_drift"); }},
};

constexpr Foreign k_foreign[] = {
    {"direct_port_count", "hosts open no ports for jobs"},
    {"duration", "gridctl has no rental period"},
    {"external", "there is only one market: your own providers"},
    {"gpu_display_active", "gridctl does not check this"},
    {"gpu_frac", "GPUs are leased one by one: use num_gpus"},
    {"inet_down_cost", "traffic is not charged"},
    {"inet_up_cost", "traffic is not charged"},
    {"min_bid", "there are no auctions: use price"},
    {"rented", "leases change by the second: job explain shows which hosts are busy"},
    {"static_ip", "addresses are not rented"},
    {"storage_cost", "storage is not charged"},
    {"vms_enabled", "jobs run in containers or as processes"},
};

bool has_alias(const Field& field, std::string_view name) {
  for (std::string_view rest = field.aliases; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (rest.substr(0, end) == name) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}
}  // namespace

std::string_view unit_name(Unit unit) {
  switch (unit) {
    case Unit::gib:
    case Unit::gpu_gib: return "GiB";
    case Unit::mbit: return "Mbit/s";
    case Unit::gbyte_s: return "GB/s";
    case Unit::hours: return "hours";
    case Unit::seconds: return "seconds";
    case Unit::ms: return "ms";
    case Unit::share: return "0..1";
    case Unit::usd: return "USD";
    case Unit::watts: return "W";
    case Unit::celsius: return "°C";
    case Unit::ghz: return "GHz";
    case Unit::tflops: return "TFLOPS";
    default: return "";
  }
}

std::span<const Field> query_fields() { return k_fields; }
std::span<const Foreign> foreign_fields() { return k_foreign; }

const Field* find_field(std::string_view name) {
  const std::string low = lower(name);
  const bool is_label = low.starts_with("label.") && low.size() > 6;
  for (const Field& field : k_fields)
    if (is_label ? field.name == k_label_field : field.name == low || has_alias(field, low)) return &field;
  return nullptr;
}

std::string_view why_not_here(std::string_view name) {
  const std::string low = lower(name);
  for (const Foreign& foreign : k_foreign)
    if (foreign.name == low) return foreign.why;
  return {};
}

std::optional<double> version_number(std::string_view text) {
  double number = 0;
  int parts = 0;
  for (bool more = true; more && parts < k_version_parts; ++parts) {
    const auto part = take_number<int>(text);
    if (!part || *part < 0) break;
    number = number * k_version_step + std::min<double>(*part, k_version_step - 1);
    more = text.starts_with('.');
    if (more) text.remove_prefix(1);
  }
  if (parts == 0) return std::nullopt;
  for (; parts < k_version_parts; ++parts) number *= k_version_step;
  return number;
}

std::string version_text(double number) {
  std::vector<std::string> parts;
  for (int i = 0; i < k_version_parts; ++i) {
    const double part = std::fmod(number, k_version_step);
    if (part > 0 || !parts.empty() || i == k_version_parts - 2) parts.push_back(std::to_string(static_cast<int>(part)));
    number = (number - part) / k_version_step;
  }
  std::ranges::reverse(parts);
  return join(parts, ".");
}

double reliability_of(const Subject& host) {
  return expected(host, "reliability", [](const Reliability& r) { return r.up_share; });
}
double mtbf_hours_of(const Subject& host) {
  return expected(host, "mtbf", [](const Reliability& r) { return r.mtbf_hours(); });
}

}  // namespace gridctl::sched
