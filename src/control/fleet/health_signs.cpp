// SPDX-License-Identifier: Apache-2.0
// Interprets the lines of a health report.
#include <algorithm>

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "control/fleet/health.hpp"

namespace gridctl::control {
namespace {
using sched::Weight;
// Names the kinds of lines in the kernel's log, as reported by probe/health_log.
constexpr std::string_view k_xid = "xid";  // its number decides
enum class Worse : std::uint8_t { never, fatal, often, on_a_gpu };  // the line says so; k_resets_bad; the device is one
struct EventMeaning {
  std::string_view kind;
  bool of_gpu = false;  // of the GPU, if it is known; else of the host
  Weight weight = Weight::note;
  Worse worse_when = Worse::never;
  std::string_view text;
};
constexpr EventMeaning k_events[] = {
    {"sxid", false, Weight::note, Worse::fatal, "NVSwitch error"},
    {"gpu_lost", true, Weight::grave, Worse::never, "the driver gave up the GPU"},
    {"ras", true, Weight::bad, Worse::never, "uncorrectable error in the GPU"},
    {"gpu_reset", true, Weight::note, Worse::often, "the GPU hung and was reset"},
    {"gpu_hang", true, Weight::note, Worse::often, "the GPU hung and was reset"},
    {"gpu_fault", true, Weight::note, Worse::never, "a program accessed memory outside its own"},
    {"machine_check", false, Weight::bad, Worse::never, "hardware error"},
    {"memory_error", false, Weight::bad, Worse::never, "hardware error"},
    {"pcie_fatal", true, Weight::note, Worse::on_a_gpu, "error on the bus"},
    {"fs_error", false, Weight::bad, Worse::never, "file system error"},
    {"hung_task", false, Weight::note, Worse::never, "a program is stuck in the kernel"},
    {"oom", false, Weight::note, Worse::never, "out of memory"},
};
constexpr EventMeaning k_other_event{"", false, Weight::note, Worse::never, "disk error"};


using sched::Sign;
using wire::GpuHealth;
using wire::KernelEvent;

constexpr std::uint64_t k_disk_full = 256ull << 20;  // bytes: no checkpoint can be written
constexpr std::uint64_t k_disk_low = 2ull << 30;     // bytes: the next ones may not be
constexpr std::int64_t k_write_slow_ms = 20'000;     // a small file, synced: something is dying
constexpr double k_pressure_high = 60;               // percent of a minute spent waiting for memory
constexpr std::int64_t k_clock_bad_ms = 5 * 60'000;  // TLS and logs are of no use beyond
constexpr std::int64_t k_clock_off_ms = 5'000;       // worth a word
constexpr std::int64_t k_clock_step_ms = 60'000;
constexpr std::uint64_t k_memory_nobodys = 1ull << 30;  // bytes beyond what an idle driver keeps
constexpr int k_resets_bad = 3;                         // a GPU that its driver resets so often is no program's fault

// "00000000:01:00.0" and "0000:01:00.0" are the same address.
std::string_view short_pci(std::string_view pci) { return pci.size() > 12 ? pci.substr(pci.size() - 12) : pci; }

class Reader {
 public:
  Reader(const wire::HealthReport& report, const Inventory& inventory, const sched::HostStanding& before,
         const HealthContext& context)
      : report_(report), inventory_(inventory), before_(before), context_(context) {}

  sched::Look read() {
    look_.now = context_.now;
    look_.boot_id = report_.boot_id;
    look_.looked_at.insert("");
    look_.file_system_errors = report_.disk.file_system_errors;
    look_.busy = before_.busy;
    read_hung();
    if (report_.gpus_fresh()) read_gpus();
    for (const KernelEvent& event : report_.events) read_event(event);
    read_disk();
    read_engines();
    read_memory();
    read_clock();
    return std::move(look_);
  }

 private:
  // Returns the names of the inventory's GPUs or parts that this uuid stands for; the given name if the inventory has
  // none.
  [[nodiscard]] std::vector<std::string> units_of(std::string_view uuid, std::string_view pci) const {
    std::vector<std::string> units;
    for (const Gpu& gpu : inventory_.gpus) {
      const bool same = (!uuid.empty() && (gpu.uuid == uuid || gpu.partition.parent == uuid)) ||
                        (!pci.empty() && short_pci(gpu.pci) == short_pci(pci));
      if (same) units.push_back(gpu.uuid);
    }
    if (units.empty() && !uuid.empty()) units.emplace_back(uuid);
    return units;
  }
  [[nodiscard]] std::vector<std::string> units_of(Vendor vendor) const {
    std::vector<std::string> units;
    for (const Gpu& gpu : inventory_.gpus)
      if (gpu.vendor == vendor) units.push_back(gpu.uuid);
    return units;
  }

  void lasting(const std::vector<std::string>& units, Weight weight, const std::string& code, const std::string& text) {
    for (const std::string& unit : units) look_.signs.push_back({unit, code, weight, true, context_.now, text});
  }
  void lasting(Weight weight, const std::string& code, const std::string& text) {
    lasting(std::vector<std::string>{""}, weight, code, text);
  }
  void happened(const std::vector<std::string>& units, Weight weight, const std::string& code, std::int64_t age_ms,
                const std::string& text) {
    const WallTime at{context_.now.ms - context_.age_ms - std::max<std::int64_t>(0, age_ms)};
    for (const std::string& unit : units) look_.signs.push_back({unit, code, weight, false, at, text});
  }

  void read_hung() {
    for (const wire::HungTool& tool : report_.hung) {
      const Vendor vendor = is_one_of(tool.tool, {"rocm-smi", "amd-smi", "rocminfo"}) ? Vendor::amd
                            : is_one_of(tool.tool, {"xpu-smi"})                       ? Vendor::intel
                                                                                      : Vendor::nvidia;
      lasting(units_of(vendor), tool.in_kernel ? Weight::bad : Weight::doubt, std::string(k_driver_hung),
              "hung driver: " + tool.tool + (tool.in_kernel ? " is stuck in the kernel" : " does not answer"));
    }
  }

  void read_gpus() {
    bool nvidia_told = false;
    std::set<std::string> told;
    for (const GpuHealth& gpu : report_.gpus) {
      const bool nameless = gpu.uuid.empty() && gpu.pci.empty();
      const auto units = nameless ? units_of(Vendor::nvidia) : units_of(gpu.uuid, gpu.pci);
      for (const std::string& unit : units) {
        look_.looked_at.insert(unit);
        look_.busy.erase(unit);
        told.insert(unit);
      }
      nvidia_told = nvidia_told || gpu.uuid.starts_with("GPU-");
      read_gpu(gpu, units, nameless);
    }
    // Finds a GPU that its vendor's tool no longer lists, although it lists others.
    for (const Gpu& gpu : inventory_.gpus)
      if (nvidia_told && gpu.vendor == Vendor::nvidia && !told.contains(gpu.uuid)) {
        look_.looked_at.insert(gpu.uuid);
        lasting({gpu.uuid}, Weight::grave, std::string(k_gpu_gone), "the driver no longer lists it");
      }
  }

  void read_gpu(const GpuHealth& gpu, const std::vector<std::string>& units, bool nameless) {
    if (!gpu.problem.empty()) {
      if (nameless) lasting(units, Weight::doubt, "driver_broken", "the driver does not work: " + gpu.problem);
      else lasting(units, Weight::grave, std::string(k_gpu_gone), gpu.problem);
      return;
    }
    if (is_one_of(gpu.recovery, {"reset", "reboot"}))
      lasting(units, Weight::grave, "gpu_needs_" + gpu.recovery, "the driver asks for a " + gpu.recovery);
    if (is_one_of(gpu.recovery, {"drain"}))
      lasting(units, Weight::bad, "gpu_needs_drain", "the driver asks to take the GPU out of service");
    if (gpu.remap_failed.value_or(false))
      lasting(units, Weight::grave, "remap_failed", "bad memory could not be replaced: the GPU needs repair");
    if (gpu.remap_pending.value_or(false))
      lasting(units, Weight::note, "remap_pending", "bad memory will be replaced at the next reset");
    for (const std::string& reason : gpu.throttle)
      if (reason.starts_with("hw_"))
        lasting(units, Weight::note, "throttled",
                "clocks are limited: " + reason +
                    (gpu.temperature_c ? " at " + std::to_string(*gpu.temperature_c) + " C" : ""));
    read_errors(gpu, units);
    if (!gpu.partitioned) read_use(gpu, units);
  }

  void read_errors(const GpuHealth& gpu, const std::vector<std::string>& units) {
    if (!gpu.ecc_uncorrected) return;
    for (const std::string& unit : units) {
      look_.uncorrected[unit] = *gpu.ecc_uncorrected;
      const auto known = before_.uncorrected.find(unit);
      const bool same_boot = before_.boot_id == report_.boot_id && known != before_.uncorrected.end();
      const std::uint64_t former = same_boot ? known->second : 0;
      if (*gpu.ecc_uncorrected <= former) continue;
      // Errors from before our first look may be weeks old; the driver reports if it needs a reset.
      happened({unit}, same_boot ? Weight::bad : Weight::note, "ecc_uncorrected", 0,
               std::to_string(*gpu.ecc_uncorrected - former) + " uncorrectable memory errors" +
                   (same_boot ? "" : " since the driver was loaded"));
    }
  }

  // Reads who uses a GPU without a lease. Leftovers of our jobs are a fault; another user only makes the GPU busy.
  void read_use(const GpuHealth& gpu, const std::vector<std::string>& units) {
    if (!gpu.processes) return;
    std::uint64_t explained = 0;
    bool leased = false;
    for (const wire::GpuProcess& process : *gpu.processes) {
      explained += process.memory_bytes;
      leased = leased || process.owner == wire::ProcessOwner::leased;
      const std::string who = (process.name.empty() ? "a process" : process.name) + " (pid " +
                              std::to_string(process.pid) + ", " + format_size(process.memory_bytes) + ")";
      if (process.owner == wire::ProcessOwner::leftover)
        lasting(units, Weight::bad, "leftover_process", "a job's process is still running: " + who);
      else if (process.owner == wire::ProcessOwner::foreign && !process.draws)
        for (const std::string& unit : units) look_.busy[unit] = who + " uses the GPU without a lease";
    }
    if (!gpu.memory_used || leased) return;
    const std::uint64_t allowed = k_memory_nobodys + gpu.memory_total.value_or(0) / 50;
    if (*gpu.memory_used <= explained + allowed) return;
    const std::string text = format_size(*gpu.memory_used - explained) + " of its memory is in use by no known process";
    for (const std::string& unit : units)
      if (context_.vacated.contains(unit) || before_.state_of(unit) == sched::UnitState::quarantined)
        lasting({unit}, Weight::bad, "leftover_memory", text + " after a job");
      else if (!look_.busy.contains(unit)) look_.busy[unit] = text + " visible to this user";
  }

  void read_event(const KernelEvent& event) {
    look_.log_us = std::max(look_.log_us, event.stamp_us);
    if (before_.boot_id == report_.boot_id && event.stamp_us <= before_.log_us) return;
    const auto gpu = units_of("", event.pci);
    const bool known_gpu = !gpu.empty();
    const std::vector<std::string> host{""};
    const auto& unit = known_gpu ? gpu : host;
    const std::string said = ": " + event.text;
    const auto happens = [&](const std::vector<std::string>& units, Weight weight, const std::string& text) {
      const std::string code = event.code > 0 ? event.kind + "-" + std::to_string(event.code) : event.kind;
      happened(units, weight, code, event.age_ms, text + said);
    };
    if (event.kind == k_xid) {
      const sched::XidMeaning meaning = sched::xid_meaning(event.code);
      const bool nothing = event.code == 154 && event.text.rfind("(None)") > event.text.rfind(" to ") &&
                           event.text.rfind("(None)") != std::string::npos;
      return happens(known_gpu ? gpu : units_of(Vendor::nvidia), nothing ? Weight::note : meaning.weight,
                     "Xid " + std::to_string(event.code) + ", " + std::string(meaning.text));
    }
    const auto known = std::ranges::find(k_events, event.kind, &EventMeaning::kind);
    const EventMeaning meaning = known == std::end(k_events) ? k_other_event : *known;
    Weight weight = meaning.weight;
    if (meaning.worse_when == Worse::fatal && event.text.find(", Fatal") != std::string::npos) weight = Weight::grave;
    if (meaning.worse_when == Worse::often && event.count >= k_resets_bad) weight = Weight::bad;
    if (meaning.worse_when == Worse::on_a_gpu && known_gpu) weight = Weight::bad;
    happens(meaning.of_gpu ? unit : host, weight, std::string(meaning.text));
  }

  void read_disk() {
    const wire::DiskHealth& disk = report_.disk;
    if (disk.read_only) lasting(Weight::bad, "disk_read_only", "its disk is mounted read-only");
    else if (disk.total_bytes > 0 && disk.free_bytes < k_disk_full)
      lasting(Weight::bad, "disk_full", "its disk is full: " + format_size(disk.free_bytes) + " free");
    else if (!disk.write_problem.empty())
      lasting(Weight::bad, "disk_write", "cannot write to the disk: " + disk.write_problem);
    else if (disk.write_ms > k_write_slow_ms)
      lasting(Weight::doubt, "disk_slow", "a small file took " + std::to_string(disk.write_ms / 1000) + " s to write");
    if (disk.free_bytes >= k_disk_full && disk.free_bytes < k_disk_low)
      lasting(Weight::note, "disk_low", "its disk has only " + format_size(disk.free_bytes) + " free");
    if (!disk.drive_problem.empty()) lasting(Weight::bad, "drive", disk.drive_problem);
    if (disk.file_system_errors > before_.file_system_errors)
      happened({""}, before_.boot_id.empty() ? Weight::note : Weight::bad, "fs_errors", 0,
               "its file system has recorded " + std::to_string(disk.file_system_errors) + " errors");
  }

  void read_engines() {
    for (const wire::EngineHealth& engine : report_.engines) {
      if (engine.problem.empty()) continue;
      const auto found = std::ranges::find(inventory_.engines, engine.kind, &Engine::kind);
      if (found == inventory_.engines.end() || !found->problem.empty()) continue;  // it never worked: no news
      lasting(Weight::note, engine_sign(engine.kind), engine.problem);  // forbids that engine only: apply_standing
    }
  }

  void read_memory() {
    if (report_.memory_pressure.value_or(0) > k_pressure_high)
      lasting(Weight::doubt, "memory_pressure",
              "programs there spend " + std::to_string(static_cast<int>(*report_.memory_pressure)) +
                  " % of the time waiting for memory");
  }

  void read_clock() {
    look_.clock_base_ms = report_.wall_ms - report_.taken_at.ns / 1'000'000;
    const std::int64_t step = look_.clock_base_ms - before_.clock_base_ms;
    if (before_.boot_id == report_.boot_id && before_.clock_base_ms != 0 && std::abs(step) > k_clock_step_ms)
      happened({""}, Weight::note, "clock_step", 0,
               "its clock was set " + std::string(step > 0 ? "forward" : "back") + " by " +
                   format_duration(std::chrono::milliseconds{std::abs(step)}));
    if (!context_.clock_offset_ms) return;
    const std::int64_t off = std::abs(*context_.clock_offset_ms);
    const std::string text = "its clock is " + format_duration(std::chrono::milliseconds{off}) +
                             (*context_.clock_offset_ms > 0 ? " ahead" : " behind");
    if (off > k_clock_bad_ms) lasting(Weight::bad, "clock", text);
    else if (off > k_clock_off_ms) lasting(Weight::note, "clock_off", text);
  }

  const wire::HealthReport& report_;
  const Inventory& inventory_;
  const sched::HostStanding& before_;
  const HealthContext& context_;
  sched::Look look_;
};

}  // namespace

sched::Look look_of(const wire::HealthReport& report, const Inventory& inventory, const sched::HostStanding& before,
                    const HealthContext& context) {
  return Reader(report, inventory, before, context).read();
}

std::optional<std::int64_t> clock_offset(const std::map<std::string, std::int64_t>& offsets, const std::string& host) {
  const auto found = offsets.find(host);
  if (found == offsets.end()) return std::nullopt;
  std::vector<std::int64_t> all{0};  // our own clock has a vote
  for (const auto& [name, offset] : offsets) all.push_back(offset);
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>((all.size() - 1) / 2);
  std::nth_element(all.begin(), middle, all.end());
  // A single host against us proves nothing against either.
  if (offsets.size() < 2) return std::nullopt;
  return found->second - *middle;
}

namespace {
std::int64_t base_of(WallTime wall, BootTime boot) { return wall.ms - boot.ns / 1'000'000; }
}  // namespace

void HostClocks::heard(const std::string& host, std::int64_t ahead_ms, WallTime wall, BootTime boot) {
  bases_[host] = base_of(wall, boot) + ahead_ms;
  if (std::abs(ahead_ms) <= k_clock_off_ms) agreed_[host] = bases_[host];
}

std::optional<std::int64_t> HostClocks::offset(const std::string& host, WallTime wall, BootTime boot) const {
  if (bases_.size() == 1) {
    const auto known = bases_.find(host), agreed = agreed_.find(host);
    if (known == bases_.end() || agreed == agreed_.end()) return std::nullopt;
    const std::int64_t moved = known->second - agreed->second;  // against our clock since boot: its own was set
    return std::abs(moved) <= k_clock_off_ms ? 0 : moved;
  }
  std::map<std::string, std::int64_t> offsets;
  for (const auto& [name, base] : bases_) offsets[name] = base - base_of(wall, boot);
  return clock_offset(offsets, host);
}

}  // namespace gridctl::control
