// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/daemon.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.hpp"
#include "control/copies/copier.hpp"
#include "control/copies/housekeeping.hpp"
#include "control/daemon/controller.hpp"
#include "control/daemon/gateways.hpp"
#include "control/daemon/gpu_rechecks.hpp"
#include "control/daemon/host_rescans.hpp"
#include "control/daemon/notifier.hpp"
#include "control/daemon/receipt_keeper.hpp"
#include "control/daemon/user_settings.hpp"
#include "control/follow/job_files.hpp"
#include "control/follow/use_book.hpp"
#include "control/measure/network_watch.hpp"
#include "control/reach/login_agent.hpp"
#include "control/reach/pace.hpp"
#include "control/reach/paths.hpp"
#include "control/reach/ssh_network.hpp"
#include "control/reach/version.hpp"
#include "control/reach/ways.hpp"
#include "lend/call.hpp"
#include "os/entries.hpp"
#include "os/log.hpp"
#include "os/loop_executor.hpp"
#include "os/net.hpp"
#include "os/process.hpp"

namespace gridctl::control {

namespace {

using nlohmann::json;

constexpr int k_stdout = 1;
constexpr Duration k_start_timeout = std::chrono::seconds{10};
constexpr Duration k_stop_timeout = std::chrono::seconds{15};
constexpr Duration k_idle_before_exit = std::chrono::seconds{20};  // so that a row of submits meets one daemon
constexpr Duration k_idle_check = std::chrono::seconds{1};
constexpr Duration k_use_write = std::chrono::seconds{3};   // between two writes of what is new of the use of hosts
constexpr Duration k_load_write = std::chrono::seconds{20};  // of hosts without a running job: well before it is stale
constexpr Duration k_stop_poll = std::chrono::milliseconds{20};
constexpr Duration k_lock_patience =
    std::chrono::seconds{1};  // of a daemon: whoever asks for its state holds the lock a moment

// The process that starts a daemon reads this word from its standard output.
void say_ready() {
  const Result<void> told = os::write_all(k_stdout, as_bytes("ready\n"));
  if (!told) os::log(os::LogLevel::debug, "no process waits for this daemon's start any more");
}

Result<void> write_info(const Paths& paths, WallTime now) {
  const json info{{"pid", os::process_id()},
                  {"host", os::host_name()},
                  {"version", k_version},
                  {"started_at", format_rfc3339(now)}};
  return os::write_file_atomically(paths.daemon_info(), info.dump());
}

DaemonStatus read_info(const Paths& paths) {
  DaemonStatus status;
  status.running = true;
  const Result<std::string> text = os::read_file(paths.daemon_info(), 64 * 1024);
  if (!text) return status;  // between taking the lock and writing the file
  const json info = json::parse(*text, nullptr, false);
  if (!info.is_object()) return status;
  const auto word = [&](const char* key) {
    return info.contains(key) && info[key].is_string() ? info[key].get<std::string>() : std::string();
  };
  if (info.contains("pid") && info["pid"].is_number_integer()) status.pid = info["pid"].get<int>();
  status.host = word("host");
  status.version = word("version");
  status.started_at = word("started_at");
  return status;
}

// The lock may belong to another machine if the file system is shared.
Error already_running(const Paths& paths) {
  const DaemonStatus other = read_info(paths);
  std::string who = other.pid > 0 ? "pid " + std::to_string(other.pid) : "";
  if (!other.host.empty()) who += (who.empty() ? "on " : " on ") + sanitize(other.host);
  return make_error(Code::state_in_use,
                    "another gridctl daemon" + (who.empty() ? "" : " (" + who + ")") + " follows the state directory " +
                        paths.root.string(),
                    "gridctl daemon status");
}

// Path of the file in which `gridctl daemon start` asks a daemon started by a command to stay, by its pid.
os::Path stay_file(const Paths& paths) { return paths.root / "daemon.stay"; }
bool shall_stay(const Paths& paths) {
  if (!os::exists(stay_file(paths))) return false;
  const Result<std::string> text = os::read_file(stay_file(paths), 64);
  return text && *text == std::to_string(os::process_id());
}

}  // namespace

namespace {

// Does the daemon's work on real hosts besides following jobs: measures links and GPUs, and updates inventories.
class HostCare : public FleetListener {
 public:
  HostCare(os::Loop& loop, os::Executor& run, os::Clock& clock, registry::Registry& registry, AgentNetwork& net,
           ControllerId controller, LinkMeter& meter, Controller& jobs, const UserSettings& settings)
      : clock_(clock),
        paths_{registry.directory()},
        net_(net),
        meter_(meter),
        fleet_(jobs.fleet()),
        rescans_(run, clock, registry, net, fleet_),
        rechecks_(
            run, clock, registry, fleet_, jobs.book(), [this](const FleetHost& host) { return access(host); },
            recheck_period(settings)),
        links_(
            loop, clock, registry, paths_, meter,
            [this](const HostName& name) -> std::optional<HostAccess> {
              const FleetHost* host = fleet_.find(name);
              return host == nullptr ? std::nullopt : std::optional{access(*host)};
            },
            [this](const std::string& name) {
              const FleetHost* host = fleet_.find({name});
              return host != nullptr && host->is_up();
            }),
        receipts_(run, clock, paths_, net, std::move(controller), fleet_, jobs.book()),
        use_(clock, fleet_, jobs.book()) {
    fleet_.listen(*this);
    timer_ = run.every(k_tick, [this] {
      links_.tick(clock_.boot());
      rechecks_.tick(clock_.boot());
      receipts_.tick(clock_.boot());
      write_use(clock_.boot());
    });
  }

  void pinged(const FleetHost& host, Duration round_trip) override { links_.pinged(host.provider.name, round_trip); }

 private:
  [[nodiscard]] HostAccess access(const FleetHost& host) {
    return {host.provider, &net_, &clock_, &meter_, host.life};
  }

  void write_use(BootTime now) {
    const bool news = use_.version() != use_written_;
    if (now - use_written_at_ < (news ? k_use_write : k_load_write)) return;
    use_written_at_ = now;
    use_written_ = use_.version();
    (void)registry::write_use(paths_.root, use_.now());  // a full disk takes what screens show, no more
  }

  os::Clock& clock_;
  const Paths paths_;
  AgentNetwork& net_;
  LinkMeter& meter_;
  Fleet& fleet_;
  HostRescans rescans_;
  GpuRechecks rechecks_;
  NetworkWatch links_;
  ReceiptKeeper receipts_;
  UseBook use_;
  std::uint64_t use_written_ = 0;
  BootTime use_written_at_{};
  os::Executor::Timer timer_;
};

// An owner may join at any moment, and the daemon registers the host.
bool awaits_an_owner(registry::HostRecords& registry, const Paths& paths, WallTime now) {
  const Result<std::vector<registry::Provider>> providers = registry.providers();
  return providers && std::ranges::any_of(*providers, [&](const registry::Provider& provider) {
           if (!is_lent(provider) || provider.last_seen_at) return false;
           const auto invitation = lend::invitation_of(paths.root, provider.address);
           return invitation && now < invitation->expires;
         });
}

}  // namespace

Result<void> run_daemon(const os::Path& state_directory, bool exit_when_idle) {
  const Paths paths{state_directory};
  TRY_ASSIGN(registry::Registry registry, registry::Registry::open(state_directory));
  os::Clock& clock = os::system_clock();
  TRY_ASSIGN(const std::optional<os::FileLock> lock,
             os::FileLock::acquire_within(paths.daemon_lock(), k_lock_patience));
  if (!lock) return already_running(paths);
  os::log_to_file(paths.daemon_log(), os::LogLevel::info);
  TRY(write_info(paths, clock.wall()));
  TRY_ASSIGN(const ControllerId controller, registry.controller_id());

  os::Loop loop;
  LinkMeter meter;
  SshNetwork network(loop, clock, paths, controller);
  StoreFreight freight(network, clock, registry, meter);
  JobFiles folders(paths);
  os::filter_log([&folders](std::string line) { return folders.masked_of_all(std::move(line)); });
  os::LoopExecutor run(loop);
  TRY_ASSIGN(const UserSettings settings, read_settings(paths));
  HttpImageRegistries images;
  Controller jobs({clock, run, network, registry, freight, folders, &images}, {health_period(settings)});
  TRY(jobs.start());
  const HostCare care(loop, run, clock, registry, network, controller, meter, jobs, settings);
  LocalGateways local_gateways(paths);
  const Gateways gateways(run, clock, jobs.book(), local_gateways);
  const auto on_term = loop.on_signal(SIGTERM, [&] { loop.stop(); });
  const auto on_int = loop.on_signal(SIGINT, [&] { loop.stop(); });
  const auto on_hup = loop.on_signal(SIGHUP, [] {});
  Housekeeping housekeeping(loop, paths);
  Copier copier(loop, clock, paths, network);
  const Notifier notifier(loop, clock, paths);
  BootTime busy_at = clock.boot();
  const auto idle_check = loop.every(k_idle_check, [&] {
    const BootTime now = clock.boot();
    if (!jobs.is_idle() || !copier.is_idle() || !notifier.is_idle()) busy_at = now;
    if (exit_when_idle && shall_stay(paths)) exit_when_idle = false;
    if (!exit_when_idle || now - busy_at <= k_idle_before_exit) return;
    if (awaits_an_owner(registry, paths, clock.wall())) {
      busy_at = now;
      return;
    }
    // The daemon first announces that it ends, then looks for work a last time. A command that records a job looks in
    // the opposite order, so one of the two sees the other.
    const Result<void> removed = os::remove_file(paths.daemon_info());
    if (removed && !jobs.has_work()) return loop.stop();
    busy_at = now;
    report(write_info(paths, clock.wall()), "while continuing");
  });
  os::log(os::LogLevel::info, "gridctl " + std::string(k_version) + " follows " + paths.root.string());
  say_ready();
  loop.run();
  os::log(os::LogLevel::info, "the daemon ends; jobs continue on their hosts");
  jobs.save();
  TRY(os::remove_file(paths.daemon_info()));
  // Threads may still wait for a dead host. They are abandoned: everything that matters is durable.
  std::quick_exit(0);
}

Result<DaemonStatus> daemon_status(const os::Path& state_directory) {
  const Paths paths{state_directory};
  DaemonStatus status;
  if (!os::exists(paths.daemon_lock())) return status;
  TRY_ASSIGN(const std::optional<os::FileLock> lock, os::FileLock::try_acquire(paths.daemon_lock()));
  if (lock) return status;
  return read_info(paths);
}

Result<DaemonStatus> ensure_daemon(const os::Path& state_directory, bool exit_when_idle) {
  os::Clock& clock = os::system_clock();
  offer_login_agent(Paths{state_directory});
  TRY_ASSIGN(DaemonStatus status, daemon_status(state_directory));
  // A daemon that does not identify itself is starting or ending at this moment; in the second case, wait for its end.
  for (const BootTime deadline = clock.boot() + k_start_timeout; status.running && status.pid == 0;) {
    if (clock.boot() > deadline) break;
    os::pause_for(k_stop_poll);
    TRY_ASSIGN(status, daemon_status(state_directory));
  }
  if (status.running) {
    if (!exit_when_idle && status.pid > 0)
      TRY(os::write_file_atomically(stay_file(Paths{state_directory}), std::to_string(status.pid)));
    return status;
  }
  TRY_ASSIGN(const os::Path self, os::executable_path());
  TRY_ASSIGN(auto pipe, os::make_pipe());
  std::vector<std::string> argv{self.string(), "daemon", "run", "--state", os::Path(state_directory).string()};
  if (exit_when_idle) argv.push_back("--exit-when-idle");
  os::SpawnOptions options;
  options.detach = true;
  options.new_session = true;
  options.stdout_fd = pipe.second.get();
  TRY(os::spawn(argv, options).context("while starting the daemon"));
  pipe.second.reset();
  std::array<os::Poll, 1> ready{{{pipe.first.get(), {true, false}, {}}}};
  TRY(os::wait_any(ready, clock.boot() + k_start_timeout, clock));
  TRY_ASSIGN(status, daemon_status(state_directory));
  if (status.running) return status;  // ours is ready, or another was quicker
  return make_error(Code::internal, "the daemon did not start; see " + Paths{state_directory}.daemon_log().string(),
                    "gridctl daemon run");
}

Result<DaemonStatus> stop_daemon(const os::Path& state_directory) {
  TRY_ASSIGN(DaemonStatus status, daemon_status(state_directory));
  if (!status.running || status.pid <= 0) return status;
  const std::optional<os::ProcessId> daemon = os::identify(status.pid);
  if (daemon) TRY(os::send_signal(*daemon, SIGTERM));
  os::Clock& clock = os::system_clock();
  for (const BootTime deadline = clock.boot() + k_stop_timeout; clock.boot() < deadline;) {
    TRY_ASSIGN(status, daemon_status(state_directory));
    if (!status.running) return status;
    os::pause_for(k_stop_poll);
  }
  return make_error(Code::timed_out, "the daemon (pid " + std::to_string(status.pid) + ") did not end within " +
                                         format_duration(k_stop_timeout));
}

}  // namespace gridctl::control
