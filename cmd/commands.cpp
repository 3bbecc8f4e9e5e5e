// SPDX-License-Identifier: Apache-2.0
#include "cmd/commands.hpp"

#include <charconv>

#include "base/text.hpp"

namespace gridctl::cmd {

std::span<const Command* const> all_commands() {
  static constexpr const Command* k_all[] = {&k_provider_register,
                                             &k_provider_ls,
                                             &k_provider_show,
                                             &k_provider_links,
                                             &k_provider_landmark,
                                             &k_provider_check,
                                             &k_provider_rescan,
                                             &k_provider_bench,
                                             &k_provider_drain,
                                             &k_provider_undrain,
                                             &k_provider_price,
                                             &k_provider_rm,
                                             &k_job_submit,
                                             &k_job_ls,
                                             &k_job_show,
                                             &k_job_watch,
                                             &k_job_logs,
                                             &k_job_events,
                                             &k_job_explain,
                                             &k_job_cancel,
                                             &k_job_resume,
                                             &k_job_drill,
                                             &k_template_ls,
                                             &k_template_show,
                                             &k_template_new,
                                             &k_checkpoint_ls,
                                             &k_checkpoint_show,
                                             &k_checkpoint_diff,
                                             &k_checkpoint_pull,
                                             &k_checkpoint_push,
                                             &k_checkpoint_verify,
                                             &k_checkpoint_pin,
                                             &k_checkpoint_rm,
                                             &k_store_add,
                                             &k_store_ls,
                                             &k_store_rm,
                                             &k_store_sync,
                                             &k_store_check,
                                             &k_budget_set,
                                             &k_budget_ls,
                                             &k_budget_rm,
                                             &k_key_show,
                                             &k_key_export,
                                             &k_key_import,
                                             &k_daemon_start,
                                             &k_daemon_stop,
                                             &k_daemon_status,
                                             &k_daemon_run,
                                             &k_doctor,
                                             &k_sim,
                                             &k_completions,
                                             &k_version,
                                             &k_docs,
                                             &k_complete};
  return k_all;
}

const Command* find_command(std::string_view noun, std::string_view verb) {
  for (const Command* command : all_commands())
    if (command->noun == noun && command->verb == verb) return command;
  return nullptr;
}

std::string full_name(const Command& command) {
  std::string name(command.noun);
  if (!command.verb.empty()) name += " " + std::string(command.verb);
  return name;
}

std::span<const NounText> nouns() {
  static constexpr NounText k_nouns[] = {
      {"provider", "hosts that run jobs"},
      {"job", "what runs on them"},
      {"template", "distributed trainings to begin with"},
      {"checkpoint", "what a job continues from"},
      {"store", "copies of checkpoints in other places"},
      {"budget", "what a month may cost"},
      {"key", "what checkpoints are encrypted with"},
      {"daemon", "the background supervisor"},
      {"doctor", "check this machine, the state and every provider"},
      {"sim", "what would happen: expected time, cost and lost work of a job"},
      {"completions", "completion of the command line for a shell"},
      {"version", "versions of gridctl and of its libraries"},
  };
  return k_nouns;
}

std::span<const Option> global_options() {
  static constexpr Option k_options[] = {
      {"state", 0, "DIR", "the state directory",
       "$GRIDCTL_STATE, else $XDG_STATE_HOME/gridctl, else ~/.local/state/gridctl", Completion::directory},
      {"json", 0, "", "machine-readable output; an error is one JSON object on standard error"},
      {"color", 0, "WHEN", "colours; NO_COLOR in the environment switches them off", "auto", Completion::choices,
       "auto|always|never"},
      {"verbose", 'v', "", "say on standard error what is being done"},
      {"help", 'h', "", "show this help"},
  };
  return k_options;
}

const Option& timeout_option() {
  static constexpr Option k_timeout{"timeout", 0, "TIME", "wait no longer (90s, 15m, 2h); then exit 124"};
  return k_timeout;
}

std::span<const ExitText> exit_texts() {
  static constexpr ExitText k_exits[] = {
      {0, "done; where the command waits for a job: it succeeded"},
      {1, "the job failed by its own code"},
      {2, "usage, or a bad job file"},
      {3, "no such job, provider, checkpoint or place"},
      {4, "no provider can run it; the reason for each is given"},
      {5, "a host or the network failed, and retrying did not help"},
      {6, "host key mismatch, or authentication refused"},
      {7, "the state directory is in use, unreadable or damaged"},
      {8, "a checkpoint or a stored chunk is damaged or missing"},
      {9, "stopped by budget, deadline or cancellation"},
      {70, "a fault in gridctl itself"},
      {124, "--timeout ran out; the job goes on"},
      {130, "interrupted; the job goes on, the line that resumes watching is printed"},
  };
  return k_exits;
}

std::string_view exit_meaning(int code) {
  for (const ExitText& text : exit_texts())
    if (text.code == code) return text.meaning;
  return {};
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
    return make_error(Code::usage, "--" + std::string(name) + " " + sanitize(value(name)) + " is not a length of time",
                      "write it as 90s, 15m or 2h");
  return std::optional<Duration>{*parsed};
}

Result<std::optional<double>> Parsed::number(std::string_view name) const {
  if (!has(name)) return std::optional<double>{};
  const std::string text = value(name);
  double parsed = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (problem != std::errc{} || end != text.data() + text.size() || !(parsed >= 0) || parsed > 1e12)
    return make_error(Code::usage, "--" + std::string(name) + " " + sanitize(text) + " is not a number of at least 0");
  return std::optional<double>{parsed};
}

Result<std::optional<std::uint64_t>> Parsed::whole(std::string_view name) const {
  if (!has(name)) return std::optional<std::uint64_t>{};
  const std::string text = value(name);
  std::uint64_t parsed = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (problem != std::errc{} || end != text.data() + text.size())
    return make_error(Code::usage, "--" + std::string(name) + " " + sanitize(text) + " is not a whole number");
  return std::optional<std::uint64_t>{parsed};
}

}  // namespace gridctl::cmd
