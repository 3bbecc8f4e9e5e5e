// SPDX-License-Identifier: Apache-2.0
#include "cmd/commands.hpp"

#include "base/numbers.hpp"
#include "base/text.hpp"

namespace gridctl::cmd {

std::span<const Command* const> all_commands() {
  static constexpr const Command* k_all[] = {
      &k_init,
      &k_provider_register, &k_provider_ls, &k_provider_show, &k_provider_links, &k_provider_landmark,
      &k_provider_check, &k_provider_rescan, &k_provider_bench, &k_provider_drain, &k_provider_undrain,
      &k_provider_pause, &k_provider_unpause, &k_provider_price, &k_provider_set, &k_provider_way, &k_provider_rm,
      &k_provider_shell, &k_provider_invite, &k_provider_join,
      &k_lend_join, &k_lend_status, &k_lend_pause, &k_lend_resume, &k_lend_limits, &k_lend_log, &k_lend_leave,
      &k_lend_receipts, &k_lend_earnings,
      &k_job_submit, &k_job_apply, &k_job_ls, &k_job_show, &k_job_watch, &k_job_logs, &k_job_pull, &k_job_exec,
      &k_job_shell, &k_job_cp, &k_job_forward, &k_job_events, &k_job_report, &k_job_explain, &k_job_cancel,
      &k_job_pause, &k_job_resume, &k_job_rerun, &k_job_rm, &k_job_prune, &k_job_drill,
      &k_service_ls, &k_service_show, &k_service_url, &k_service_logs, &k_service_apply, &k_service_stop,
      &k_template_ls, &k_template_show, &k_template_new,
      &k_checkpoint_ls, &k_checkpoint_show, &k_checkpoint_diff, &k_checkpoint_pull, &k_checkpoint_push,
      &k_checkpoint_verify, &k_checkpoint_pin, &k_checkpoint_rm,
      &k_store_add, &k_store_ls, &k_store_rm, &k_store_sync, &k_store_check,
      &k_budget_set, &k_budget_ls, &k_budget_rm,
      &k_receipts_ls, &k_receipts_verify, &k_receipts_export,
      &k_config_ls, &k_config_get, &k_config_set,
      &k_key_show, &k_key_export, &k_key_import,
      &k_daemon_start, &k_daemon_stop, &k_daemon_status, &k_daemon_install, &k_daemon_uninstall, &k_daemon_run,
      &k_top, &k_doctor,
      &k_plan_train, &k_plan_serve, &k_plan_estimate,
      &k_sim, &k_completions, &k_version, &k_docs, &k_complete, &k_gateway,
      &k_lend_serve, &k_lend_dial};
  return k_all;
}

const Command* find_command(std::string_view noun, std::string_view verb) {
  for (const Command* command : all_commands())
    if (command->noun() == noun && command->verb() == verb) return command;
  return nullptr;
}

std::span<const NounText> nouns() {
  static constexpr NounText k_nouns[] = {
      {"init", "register the hosts that ssh knows, and try a job on them"},
      {"provider", "hosts that run jobs"},
      {"lend", "this machine, for other people's jobs"},
      {"job", "what runs on hosts"},
      {"service", "programs that answer requests, behind one address"},
      {"template", "distributed training jobs that survive the loss of a host"},
      {"checkpoint", "a saved state from which a job continues"},
      {"store", "copies of checkpoints in other places"},
      {"budget", "monthly limits on cost"},
      {"receipts", "the cost of attempts on lent hosts, signed by both sides"},
      {"config", "settings, such as whom to notify"},
      {"key", "the secret that encrypts checkpoints"},
      {"daemon", "the background daemon"},
      {"plan", "memory, layout, time and cost of a training job"},
      {"top", "all hosts and active jobs on one screen"},
      {"doctor", "check this machine, the state and every provider"},
      {"sim", "predict time, cost and lost work of a job"},
      {"completions", "shell completion"},
      {"version", "versions of gridctl and its libraries"},
  };
  return k_nouns;
}

std::span<const Option> global_options() {
  static constexpr Option k_options[] = {
      {"state", 0, "DIR", "the state directory",
       "$GRIDCTL_STATE, else $XDG_STATE_HOME/gridctl, else ~/.local/state/gridctl", Completion::directory},
      {"json", 0, "", "machine-readable output; an error is one JSON object on standard error"},
      {"color", 0, "WHEN", "colours; NO_COLOR in the environment disables them", "auto", Completion::choices,
       "auto|always|never"},
      {"verbose", 'v', "", "report progress on standard error"},
      {"help", 'h', "", "show this help"},
  };
  return k_options;
}

const Option& timeout_option() {
  static constexpr Option k_timeout{"timeout", 0, "TIME", "wait at most this long (90s, 15m, 2h), then exit with 124"};
  return k_timeout;
}

std::vector<const Option*> options_of(const Command* command) {
  std::vector<const Option*> options;
  if (command != nullptr)
    for (const Option& option : command->options) options.push_back(&option);
  if (command != nullptr && command->waits) options.push_back(&timeout_option());
  for (const Option& option : global_options()) options.push_back(&option);
  return options;
}

std::span<const ExitText> exit_texts() {
  static constexpr ExitText k_exits[] = {
      {0, "success; if the command waits for a job, the job succeeded"},
      {1, "the job failed by its own code"},
      {2, "wrong usage, or invalid job file"},
      {3, "no such job, provider, checkpoint or remote"},
      {4, "no provider can run the job; the reason for each is given"},
      {5, "a host or the network failed, and retries did not help"},
      {6, "host key mismatch, or authentication refused"},
      {7, "the state directory is in use, unreadable or damaged"},
      {8, "a checkpoint or a stored chunk is damaged or missing"},
      {9, "stopped by a budget, a deadline or a cancellation"},
      {70, "internal error of gridctl"},
      {124, "--timeout expired; the job continues"},
      {130, "interrupted; the job continues, and the command to resume watching is printed"},
  };
  return k_exits;
}

std::string_view exit_meaning(int code) {
  for (const ExitText& text : exit_texts())
    if (text.code == code) return text.meaning;
  return {};
}

std::set<int> exit_codes_of(const Command& command) {
  std::set<int> codes(command.exit_codes.begin(), command.exit_codes.end());
  codes.insert({0, 2});
  if (command.waits) codes.insert(124);
  return codes;
}

std::string Parsed::value(std::string_view name) const {
  const auto found = options.find(name);
  return found == options.end() || found->second.empty() ? std::string{} : found->second.back();
}

std::vector<std::string> Parsed::values(std::string_view name) const {
  const auto found = options.find(name);
  return found == options.end() ? std::vector<std::string>{} : found->second;
}

Result<std::optional<Duration>> Parsed::duration(std::string_view name) const {
  if (!has(name)) return std::optional<Duration>{};
  Result<Duration> parsed = parse_duration(value(name));
  if (!parsed)
    return make_error(Code::usage, "--" + std::string(name) + " " + sanitize(value(name)) + " is not a duration",
                      "write it as 90s, 15m or 2h");
  return std::optional<Duration>{*parsed};
}

Result<std::optional<double>> Parsed::number(std::string_view name) const {
  if (!has(name)) return std::optional<double>{};
  const std::string text = value(name);
  const auto parsed = parse_number<double>(text);
  if (parsed && *parsed >= 0 && *parsed <= 1e12) return parsed;
  return make_error(Code::usage, "--" + std::string(name) + " " + sanitize(text) + " is not a number of at least 0");
}

Result<std::optional<std::uint64_t>> Parsed::whole(std::string_view name) const {
  if (!has(name)) return std::optional<std::uint64_t>{};
  const std::string text = value(name);
  const auto parsed = parse_number<std::uint64_t>(text);
  if (parsed) return parsed;
  return make_error(Code::usage, "--" + std::string(name) + " " + sanitize(text) + " is not a whole number");
}

}  // namespace gridctl::cmd
