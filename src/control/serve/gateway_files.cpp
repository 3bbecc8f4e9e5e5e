// SPDX-License-Identifier: Apache-2.0
#include "control/serve/gateway_files.hpp"

#include <algorithm>

#include "base/numbers.hpp"
#include "base/record.hpp"
#include "os/process.hpp"

namespace gridctl::control {

namespace {
constexpr Duration k_was_ready_patience = std::chrono::minutes{2};
constexpr Duration k_step_max = std::chrono::seconds{1};  // a longer pause is the sleep of this machine
}  // namespace

Duration patience_with_server(const job::Service& service, bool was_ready) {
  return was_ready ? std::min<Duration>(service.initial_delay, k_was_ready_patience) : service.initial_delay;
}

void ReadyClock::see(Epoch epoch, bool reachable, bool up, Duration passed, const job::Service& service) {
  if (epoch != told_.epoch) {
    told_ = {epoch};
    unready_ = {};
  }
  if (epoch == Epoch{}) return;
  if (up) {
    told_.ready = true;
    told_.late = false;
    unready_ = {};
  } else if (reachable) {
    unready_ += std::min(passed, k_step_max);
    told_.late = unready_ > patience_with_server(service, told_.ready);
  }
}

namespace {
constexpr std::uint64_t k_info_max = 64 * 1024;  // bytes
}

template <class R>
void fields(R& r, Of<R, ReplicaTold>& m) {
  r("epoch", m.epoch)("ready", m.ready)("late", m.late).unless("drained", m.drained, false).unless("unfit", m.unfit, "");
}

template <class R>
void fields(R& r, Of<R, GatewayInfo>& m) {
  r("pid", m.pid)("port", m.port)("trouble", m.trouble)("version", m.version)("replicas", m.replicas)("wanted",
                                                                                                      m.wanted)("asleep", m.asleep);
}

GatewayFiles gateway_files(const Paths& paths, const JobId& service) {
  return {paths.root / "services" / service.value};
}

std::string gateway_url(const GatewayInfo& info) { return "http://127.0.0.1:" + std::to_string(info.port); }

Result<void> save_gateway(const GatewayFiles& files, const GatewayInfo& info) {
  return os::write_file_atomically(files.info(), write_record(info));
}

std::optional<GatewayInfo> read_gateway(const GatewayFiles& files) {
  const Result<std::string> text = os::read_file(files.info(), k_info_max);
  if (!text) return std::nullopt;
  Result<GatewayInfo> info =
      read_record<GatewayInfo>(*text, "the gateway's file", k_lenient_rules, Code::state_unreadable);
  return info ? std::optional(*std::move(info)) : std::nullopt;
}

Result<void> let_leave(const GatewayFiles& files, int replica, WallTime now) {
  return os::write_file_atomically(files.leave(replica), std::to_string((now + k_leave).ms));
}

bool leaves_now(const GatewayFiles& files, int replica, WallTime now) {
  if (!os::exists(files.leave(replica))) return false;
  const Result<std::string> text = os::read_file(files.leave(replica), k_info_max);
  return text && now.ms < parse_number<std::int64_t>(*text).value_or(0);
}

bool gateway_lives(const GatewayFiles& files) {
  if (!os::exists(files.lock())) return false;
  const auto lock = os::FileLock::try_acquire(files.lock());
  return lock && !*lock;
}

Result<void> start_gateway(const Paths& paths, const JobId& service) {
  TRY_ASSIGN(const os::Path self, os::executable_path());
  os::SpawnOptions options;
  options.detach = true;
  options.new_session = true;
  TRY(os::spawn({self.string(), "__gateway", service.value, "--state", paths.root.string()}, options));
  return {};
}

}  // namespace gridctl::control
