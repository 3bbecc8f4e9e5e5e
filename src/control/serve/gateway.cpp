// SPDX-License-Identifier: Apache-2.0
#include "control/serve/gateway.hpp"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "control/reach/ssh_network.hpp"
#include "control/reach/version.hpp"
#include "control/serve/balancer.hpp"
#include "control/serve/command_probe.hpp"
#include "control/serve/gateway_rules.hpp"
#include "control/serve/waiting_room.hpp"
#include "job/twin.hpp"
#include "os/log.hpp"
#include "os/process.hpp"
#include "registry/registry.hpp"

namespace gridctl::control {

namespace {
constexpr Duration k_look = std::chrono::milliseconds{200};
constexpr Duration k_lock_patience = std::chrono::seconds{1};  // who only asks whether it is free holds it a moment
constexpr Duration k_port_patience = std::chrono::seconds{3};  // for the port of the gateway before us
constexpr Duration k_enter_patience = std::chrono::seconds{10};
constexpr unsigned k_logins = 8;              // at once: those of dead hosts take their time
constexpr std::uint16_t k_port_least = 1024;  // lower ones are for root

// The address stays the same as long as it is available, because clients know it.
Result<os::Listener> listen_for(const job::Service& service, const GatewayFiles& files, os::Clock& clock) {
  const std::optional<GatewayInfo> before = read_gateway(files);
  const std::uint16_t wanted = before && before->port != 0    ? before->port
                               : service.port >= k_port_least ? service.port
                                                              : 0;
  const BootTime deadline = clock.boot() + (before ? k_port_patience : Duration{});
  while (wanted != 0) {
    Result<os::Listener> listener = os::listen_local(wanted);
    if (listener || clock.boot() > deadline) {
      if (listener) return listener;
      break;
    }
    os::pause_for(k_look);
  }
  return os::listen_local(0);
}

class Gateway {
 public:
  Gateway(registry::Registry registry, ControllerId controller, const Paths& paths, registry::Job leader,
          GatewayFiles files, os::Listener listener, os::Listener waiting, os::Path program)
      : registry_(std::move(registry)),
        network_(loop_, clock_, paths, std::move(controller)),
        leader_(std::move(leader)),
        files_(std::move(files)),
        before_(read_gateway(files_).value_or(GatewayInfo{})),
        listener_(std::move(listener)),
        balancer_(clock_, std::move(program), *leader_.spec.service, job::slots_of(leader_.spec), listener_.fd.get()),
        waiting_(loop_, clock_, std::move(waiting)),
        rules_(*leader_.spec.service, leader_.spec.twins, job::slots_of(leader_.spec), before_),
        logins_(k_logins),
        looks_(1) {
    const auto enter = [this](const ReplicaPlace& place) {
      return network_.stream(place.provider, {place.job, place.epoch}, clock_.boot() + k_enter_patience);
    };
    for (int replica = 1; replica <= job::slots_of(leader_.spec); ++replica)
      ways_.push_back(std::make_unique<ReplicaWay>(loop_, clock_, logins_, enter, server_socket(replica)));
    for (const auto& way : ways_)
      probes_.push_back(std::make_unique<CommandProbe>(loop_, *leader_.spec.service, *way));
    for (std::size_t i = 0; i < ways_.size(); ++i)
      ways_[i]->on_refused = [this, name = server_name(static_cast<int>(i) + 1)] { balancer_.distrust(name); };
  }

  void run() {
    const auto timer = loop_.every(k_look, [this] { tick(); });
    std::vector<os::Loop::Watch> signals;
    for (const int signal : {SIGTERM, SIGINT}) signals.push_back(loop_.on_signal(signal, [this] { loop_.stop(); }));
    signals.push_back(loop_.on_signal(SIGHUP, [] {}));
    tick();
    loop_.run();
  }

 private:
  void tick() {
    const BootTime now = clock_.boot();
    const Duration passed = now - std::exchange(ticked_, now);
    std::vector<ServerState> wanted;
    for (std::size_t i = 0; i < ways_.size(); ++i) {
      const int number = static_cast<int>(i) + 1;
      ways_[i]->tick(now);
      probes_[i]->tick(now);
      const ReplicaSight sight{ways_[i]->epoch(), ways_[i]->is_open(), balancer_.is_up(number),
                               balancer_.is_drained(number), leaves_now(files_, number, clock_.wall()),
                               probes_[i]->unfit()};
      wanted.push_back(rules_.see(i, sight, passed));
    }
    balancer_.keep(wanted, rules_.stops());
    waiting_.tick(balancer_.any_up());
    rules_.see_requests(now, balancer_.under_way() + waiting_.guests(), balancer_.requests(), balancer_.any_up());
    publish();
    look();
  }

  // Runs on its own thread: a process that commits may make a reader wait for a disk.
  void look() {
    if (looking_) return;
    looking_ = true;
    looks_.submit([this] {
      auto seen = std::make_shared<std::optional<Result<ServiceSeen>>>();
      const Result<std::int64_t> version = registry_.data_version();
      if (!os::exists(files_.folder)) {
        seen->emplace(ServiceSeen{{}, true, true});  // the state directory is gone
      } else if (!version || *version != version_) {
        const auto provider = [this](const HostName& name) { return registry_.provider(name); };
        seen->emplace(service_seen(registry_, provider, leader_.id));
        if (version && **seen) version_ = *version;
      }
      loop_.post([this, seen] {
        looking_ = false;
        if (*seen) take(**seen);
      });
    });
  }

  void take(const Result<ServiceSeen>& seen) {
    if (!seen) return os::log(os::LogLevel::warn, "while looking at the registry: " + seen.error().one_line());
    if (seen->over) return loop_.stop();
    rules_.take(*seen);
    for (std::size_t i = 0; i < ways_.size() && i < seen->replicas.size(); ++i)
      ways_[i]->follow(seen->replicas[i].place);
  }

  void publish() {
    GatewayInfo info{os::process_id(), listener_.port, balancer_.trouble(), std::string(k_version), {}, 0, false};
    rules_.tell(info);
    if (info == told_) return;
    const Result<void> saved = save_gateway(files_, info);
    if (!saved) return os::log(os::LogLevel::warn, "while saving its address: " + saved.error().one_line());
    told_ = std::move(info);
  }

  os::Clock& clock_ = os::system_clock();
  os::Loop loop_;
  registry::Registry registry_;  // for the thread of `looks_` alone
  SshNetwork network_;
  const registry::Job leader_;
  const GatewayFiles files_;
  const GatewayInfo before_;  // of the gateway before this one
  const os::Listener listener_;
  Balancer balancer_;
  WaitingRoom waiting_;
  GatewayRules rules_;
  std::vector<std::unique_ptr<ReplicaWay>> ways_;
  std::vector<std::unique_ptr<CommandProbe>> probes_;  // by slot, as the ways
  BootTime ticked_ = clock_.boot();
  GatewayInfo told_;
  std::int64_t version_ = -1;  // of the registry; for the thread of `looks_`
  bool looking_ = false;
  os::Pool logins_, looks_;  // last: their work uses the rest
};

}  // namespace

Result<void> run_gateway(const os::Path& state_directory, const JobId& service) {
  os::Clock& clock = os::system_clock();
  const Paths paths{std::filesystem::absolute(state_directory)};
  TRY_ASSIGN(registry::Registry registry, registry::Registry::open(paths.root));
  TRY_ASSIGN(const ControllerId controller, registry.controller_id());
  TRY_ASSIGN(registry::Job leader, registry.job(service));
  if (!leader.spec.service || !leader.spec.twin_of.value.empty())
    return make_error(Code::usage, "job " + service.value + " is not a service");
  const GatewayFiles files = gateway_files(paths, service);
  TRY(os::make_directories(files.folder));
  TRY_ASSIGN(const std::optional<os::FileLock> lock, os::FileLock::acquire_within(files.lock(), k_lock_patience));
  if (!lock) return make_error(Code::state_in_use, "another gateway serves " + service.value);
  os::log_to_file(files.log(), os::LogLevel::info);
  const Result<os::Path> program = find_balancer();
  if (!program) {
    TRY(save_gateway(files, {0, 0, program.error().one_line(), std::string(k_version), {}, 0, false}));
    return program.error();
  }
  TRY_ASSIGN(os::Listener listener, listen_for(*leader.spec.service, files, clock));
  std::filesystem::current_path(files.folder);  // paths of sockets are short there
  os::ignore_broken_pipes();
  os::log(os::LogLevel::info, "serves " + leader.spec.name + " at port " + std::to_string(listener.port));
  TRY_ASSIGN(os::Listener waiting, os::listen_at(os::Path(k_wait_socket)));
  const auto gateway = std::make_unique<Gateway>(std::move(registry), controller, paths, std::move(leader), files,
                                                 std::move(listener), std::move(waiting), *program);
  gateway->run();
  os::log(os::LogLevel::info, "the gateway ends");
  std::quick_exit(0);  // threads may still be waiting for a dead host; HAProxy ends with us
}

}  // namespace gridctl::control
