// SPDX-License-Identifier: Apache-2.0
#include "lend/leave.hpp"

#include <csignal>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/numbers.hpp"
#include "os/entries.hpp"
#include "os/process.hpp"

namespace gridctl::lend {

namespace {

constexpr Duration k_users_end = std::chrono::seconds{15};
constexpr Duration k_users_grace = std::chrono::seconds{3};  // for agents to notice that their connection is gone
constexpr Duration k_users_look = std::chrono::milliseconds{50};
constexpr Duration k_removal_most = std::chrono::seconds{10}, k_removal_look = std::chrono::milliseconds{50};
constexpr std::uint64_t k_command_line_max = 64 * 1024;

os::Path withdrawn_home() { return lend_home() / "withdrawn"; }

bool is_called_with(std::string_view command_line, std::initializer_list<std::string_view> words) {
  std::string wanted(1, '\0');
  for (const std::string_view word : words) (wanted += word) += '\0';
  return command_line.find(wanted) != std::string_view::npos;
}

struct Users {
  std::vector<os::ProcessId> dials, agents;
};

// Finds the processes that serve an invitation: those that dial, and the agents behind them.
Users users_of(const std::string& id, const os::Path& terms, const ControllerId& controller) {
  Users users;
  for (const std::string& name : os::list_directory("/proc").value_or(std::vector<std::string>{})) {
    const auto pid = parse_number<int>(name);
    if (!pid || *pid == os::process_id()) continue;
    const auto line = os::read_file(os::Path("/proc") / name / "cmdline", k_command_line_max);
    if (!line) continue;
    const bool dials = is_called_with(*line, {"lend", "dial", id});
    const bool serves = is_called_with(*line, {"connect", "--guest", terms.native()}) || is_called_with(*line, {"guest", controller.value});
    const auto process = dials || serves ? os::identify(*pid) : std::nullopt;
    if (process) (dials ? users.dials : users.agents).push_back(*process);
  }
  return users;
}

Result<void> end_users(const std::string& id, const os::Path& terms, const ControllerId& controller, os::Clock& clock) {
  const BootTime began = clock.boot();
  for (;; os::pause_for(k_users_look)) {
    Users users = users_of(id, terms, controller);
    if (users.dials.empty() && users.agents.empty()) return {};
    const Duration waited = clock.boot() - began;
    for (const os::ProcessId& process : users.dials) (void)os::send_signal(process, SIGKILL);
    for (const os::ProcessId& process : users.agents)
      if (waited >= k_users_grace) (void)os::send_signal(process, SIGKILL);
    if (waited < k_users_end) continue;
    users.dials.insert(users.dials.end(), users.agents.begin(), users.agents.end());
    return make_error(Code::timed_out, "process " + std::to_string(users.dials.front().pid) + " still serves the researcher and does not end",
                      "gridctl lend leave   # once it has ended");
  }
}

}  // namespace

Result<Lent> withdraw(const Lent& lent, const ControllerId& controller, os::Clock& clock) {
  const Lent hidden(lent.id(), withdrawn_home() / lent.id());
  if (os::exists(lent.folder()) && lent.folder() != hidden.folder()) {
    TRY(os::make_directories(withdrawn_home()));
    TRY(remove_for_good(hidden.folder(), clock));
    TRY(os::rename_path(lent.folder(), hidden.folder()));
  }
  const Lent usual(lent.id());
  TRY(end_users(lent.id(), usual.terms_file(), controller, clock));
  TRY(remove_for_good(usual.folder(), clock));  // which an agent may have made once more
  return hidden;
}

std::vector<Lent> withdrawn() {
  std::vector<Lent> all;
  for (const std::string& id : os::list_directory(withdrawn_home()).value_or(std::vector<std::string>{}))
    all.emplace_back(id, withdrawn_home() / id);
  return all;
}

Result<void> remove_for_good(const os::Path& path, os::Clock& clock) {
  for (const BootTime until = clock.boot() + k_removal_most;; os::pause_for(k_removal_look)) {
    Result<void> removed = os::remove_tree(path);
    if (removed) return removed;
    if (clock.boot() < until) continue;
    Error error = std::move(removed).error();
    error.hint = "gridctl lend leave   # once nothing writes there any more";
    return error;
  }
}

}  // namespace gridctl::lend
