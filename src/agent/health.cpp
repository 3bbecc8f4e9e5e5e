// SPDX-License-Identifier: Apache-2.0
#include "agent/health.hpp"

#include <algorithm>
#include <map>
#include <thread>

#include "agent/attempt_dir.hpp"
#include "agent/use_meter.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "os/log.hpp"
#include "os/mutex.hpp"
#include "os/process.hpp"
#include "probe/health_machine.hpp"

namespace gridctl::agent {
namespace {

constexpr std::uint64_t k_kept_bytes_max = 4u << 20;            // of the kept report
constexpr Duration k_engines_every = std::chrono::minutes{10};  // asking an engine costs 0.1 s of a core
constexpr std::string_view k_with_packages = "packages";
constexpr Duration k_look = std::chrono::milliseconds{50};  // while another process takes the report
constexpr std::size_t k_ancestry_max = 64;                  // deeper trees are not ours
constexpr std::uint64_t k_environ_bytes_max = 1u << 20;

// Holds the report on disk, and the facts that decide whether it is still valid.
struct Kept {
  std::string leases;     // who held what when it was taken
  BootTime engines_at;    // when engines were last asked
  bool packages = false;  // also asked for; there may be none
  wire::HealthReport report;
};

std::string lease_key(const std::vector<Lease>& leases) {
  std::vector<std::string> words;
  for (const Lease& lease : leases)
    if (!lease.gpus.empty())
      words.push_back(lease.controller.value + "." + lease.job.value + "." + std::to_string(lease.epoch.value));
  std::ranges::sort(words);
  return words.empty() ? "-" : join(words, ",");
}

std::optional<Kept> read_kept(const os::Path& file) {
  const auto text = os::read_file(file, k_kept_bytes_max);
  if (!text) return std::nullopt;
  const std::size_t end = text->find('\n');
  if (end == std::string::npos) return std::nullopt;
  const std::vector<std::string> head = split(std::string_view(*text).substr(0, end), ' ');
  Kept kept;
  if (head.size() < 2) return std::nullopt;
  kept.leases = head[0];
  kept.engines_at.ns = leading_number<std::int64_t>(head[1]).value_or(0);
  kept.packages = head.size() > 2 && head[2] == k_with_packages;
  auto report = wire::parse_health_report(std::string_view(*text).substr(end + 1));
  if (!report || report->boot_id != os::boot_id()) return std::nullopt;
  kept.report = std::move(*report);
  return kept;
}

// Reads the tools that hung in this boot: "TOOL TIMES LAST_NS" per line.
std::map<std::string, probe::HungNote> read_hung(const os::Path& file) {
  std::map<std::string, probe::HungNote> notes;
  const auto text = os::read_file(file, 64 * 1024);
  if (!text) return notes;
  const std::vector<std::string> lines = split_lines(*text);
  if (lines.empty() || lines.front() != os::boot_id()) return notes;
  for (const std::string& line : lines) {
    const std::vector<std::string> words = split(line, ' ');
    if (words.size() != 3) continue;
    probe::HungNote& note = notes[words[0]];
    note.times = leading_number<decltype(note.times)>(words[1]).value_or(0);
    note.last.ns = leading_number<std::int64_t>(words[2]).value_or(0);
  }
  return notes;
}

void write_hung(const os::Path& file, const std::map<std::string, probe::HungNote>& notes) {
  std::string text = os::boot_id() + "\n";
  for (const auto& [tool, note] : notes)
    text += tool + " " + std::to_string(note.times) + " " + std::to_string(note.last.ns) + "\n";
  (void)os::write_file_atomically(file, text);  // at worst the tool is tried once more
}

int parent_of(int pid) {
  const auto stat = os::read_file("/proc/" + std::to_string(pid) + "/stat", 64 * 1024);
  return stat ? parse_process_times(*stat).value_or(ProcessTimes{}).parent : 0;
}

}  // namespace

struct Health::Shared : std::enable_shared_from_this<Health::Shared> {
  Shared(os::Path at, os::Clock& time)
      : home(std::move(at)), folder(home / "health"), clock(time), ledger(lease_directory(), Machine::real(), time) {}

  [[nodiscard]] os::Path file() const { return folder / "report"; }

  void begin(const wire::HealthRequest& request);
  void take(const wire::HealthRequest& request);
  wire::HealthReport look(const wire::HealthRequest& request, const std::optional<Kept>& before,
                          const std::vector<Lease>& leases, bool engines);

  const os::Path home, folder;
  os::Clock& clock;
  Ledger ledger;
  os::Mutex mutex;
  os::Condition done;
  bool under_way GRIDCTL_GUARDED_BY(mutex) = false;
  // Holds the processor time of the report in progress, because only one runs at a time.
  std::optional<std::uint64_t> busy_ticks;
  BootTime busy_at;
};

void Health::Shared::begin(const wire::HealthRequest& request) {
  {
    const os::MutexLock lock(mutex);
    if (under_way) return;
    under_way = true;
  }
  const auto work = [self = shared_from_this(), request] {
    self->take(request);
    const os::MutexLock lock(self->mutex);
    self->under_way = false;
    self->done.notify_all();
  };
  try {
    std::thread(work).detach();
  } catch (const std::system_error&) {
    work();  // no thread to be had: the connection waits
  }
}

void Health::Shared::take(const wire::HealthRequest& request) {
  if (!os::make_directories(folder)) return;
  const auto lock = os::FileLock::try_acquire(folder / "lock");
  if (!lock || !*lock) return;  // another connection's agent is at it
  const auto leases = ledger.valid().value_or(std::vector<Lease>{});
  const std::optional<Kept> before = read_kept(file());
  const BootTime now = clock.boot();
  // A request for packages comes from a check of the host: engines are asked again too. So is an engine that was
  // broken.
  const bool engines = !before || request.packages || now - before->engines_at > k_engines_every ||
                       std::ranges::any_of(before->report.engines,
                                           [](const wire::EngineHealth& engine) { return !engine.problem.empty(); });
  wire::HealthReport report = look(request, before, leases, engines);
  const std::string head = lease_key(leases) + " " + std::to_string(engines ? now.ns : before->engines_at.ns) +
                           (request.packages ? " " + std::string(k_with_packages) : "") + "\n";
  if (const auto written = os::write_file_atomically(file(), head + wire::encode(report)); !written)
    os::log(os::LogLevel::warn, "cannot keep the health report: " + written.error().one_line());
}

wire::HealthReport Health::Shared::look(const wire::HealthRequest& request, const std::optional<Kept>& before,
                                        const std::vector<Lease>& leases, bool engines) {
  probe::HealthOptions options;
  options.home = home;
  options.engines = engines;
  options.packages = request.packages;
  // Vendor tools disturb measurements and may wait for running jobs: beside jobs, they run only on request.
  options.gpu_tools = request.gpus || lease_key(leases) == "-";
  auto hung = read_hung(folder / "hung");
  for (const auto& [tool, note] : hung)
    if (!probe::may_try(note, clock.boot())) options.skip_tools.push_back(tool);
  options.log = read_kernel_log(options.toolbox);
  wire::HealthReport report = probe::take_health(clock, options);

  std::map<std::string, probe::HungNote> still;
  for (const wire::HungTool& tool : report.hung) {
    probe::HungNote note = hung[tool.tool];
    const bool tried = std::ranges::find(options.skip_tools, tool.tool) == options.skip_tools.end();
    if (tried) ++note.times, note.last = clock.boot();
    still[tool.tool] = note;
  }
  // A tool that was not run this time has not answered yet.
  if (!options.gpu_tools)
    for (const auto& [tool, note] : hung) still.try_emplace(tool, note);
  if (!still.empty() || !hung.empty()) write_hung(folder / "hung", still);

  if (report.gpus.empty() && !options.gpu_tools && before) {
    report.gpus = before->report.gpus;
    report.gpus_at = before->report.gpus_at;
  } else if (!report.gpus.empty() && report.gpus_at.ns == 0) {
    report.gpus_at = report.taken_at;  // told by files alone
  }
  if (!engines && before) report.engines = before->report.engines;
  for (wire::GpuHealth& gpu : report.gpus)
    if (gpu.processes && report.gpus_fresh())
      for (wire::GpuProcess& process : *gpu.processes)
        process.owner = owner_of(facts_of_process(process.pid), gpu.uuid.empty() ? gpu.pci : gpu.uuid, leases);
  for (const Lease& lease : leases) report.leased_cpus += std::max(0.0, lease.cpus);
  const auto ticks = probe::busy_ticks(probe::HostFiles{});
  const BootTime now = clock.boot();
  if (ticks && busy_ticks && *ticks >= *busy_ticks && now > busy_at)
    report.busy_cpus = static_cast<double>(*ticks - *busy_ticks) / 100.0 / seconds(now - busy_at);
  busy_ticks = ticks;
  busy_at = now;
  return report;
}

ProcessFacts facts_of_process(int pid) {
  ProcessFacts facts;
  for (int at = pid; at > 1 && facts.ancestry.size() < k_ancestry_max; at = parent_of(at)) facts.ancestry.push_back(at);
  const auto variables = os::read_file("/proc/" + std::to_string(pid) + "/environ", k_environ_bytes_max);
  facts.marked = variables && variables->find("GRIDCTL_JOB_ID=") != std::string::npos;
  return facts;
}

wire::ProcessOwner owner_of(const ProcessFacts& process, const std::string& gpu_uuid,
                            const std::vector<Lease>& leases) {
  const auto descends_from = [&](const os::ProcessId& from) {
    return from.pid > 1 && std::ranges::find(process.ancestry, from.pid) != process.ancestry.end();
  };
  for (const Lease& lease : leases) {
    if (!descends_from(lease.supervisor) && !descends_from(lease.payload)) continue;
    const bool covers = std::ranges::find(lease.gpus, gpu_uuid) != lease.gpus.end();
    return covers ? wire::ProcessOwner::leased : wire::ProcessOwner::foreign;
  }
  return process.marked ? wire::ProcessOwner::leftover : wire::ProcessOwner::foreign;
}

Health::Health(os::Path home, os::Clock& clock) : shared_(std::make_shared<Shared>(std::move(home), clock)) {}

wire::HealthReply Health::answer(const wire::HealthRequest& request) {
  Shared& shared = *shared_;
  const BootTime give_up = shared.clock.boot() + std::min(request.wait, wire::k_health_wait_max);
  const BootTime asked = shared.clock.boot();
  std::optional<Kept> kept;
  const auto holds = [&] {
    kept = read_kept(shared.file());
    if (!kept) return false;
    const wire::HealthReport& report = kept->report;
    if (request.packages && (!kept->packages || report.taken_at < asked)) return false;
    if (request.gpus && !report.gpus_fresh()) return false;
    if (asked - report.taken_at > request.max_age) return false;
    const auto leases = shared.ledger.valid();
    return leases && kept->leases == lease_key(*leases);
  };
  bool fresh = holds();
  while (!fresh) {
    shared.begin(request);
    const Duration left = give_up - shared.clock.boot();
    if (left <= Duration::zero()) break;
    {
      const os::MutexLock lock(shared.mutex);
      if (shared.under_way) shared.done.wait_for(shared.mutex, left);  // too short a wait is made up for by k_look
    }
    fresh = holds();
    if (!fresh) os::pause_for(std::min(k_look, left));
  }
  wire::HealthReply reply;
  reply.host_time = shared.clock.boot();
  reply.wall_ms = shared.clock.wall().ms;
  reply.under_way = !fresh;
  if (kept && kept->report.taken_at != request.known) reply.report = std::move(kept->report);
  return reply;
}

}  // namespace gridctl::agent
