// SPDX-License-Identifier: Apache-2.0
#include "cmd/commands.hpp"
#include "cmd/context.hpp"
#include "cmd/running_member.hpp"
#include "cmd/session.hpp"

namespace gridctl::cmd {

namespace job_exec {
namespace {
constexpr std::initializer_list<Positional> k_job = {{"ID", Completion::job}};
constexpr std::initializer_list<Option> k_options = {k_rank_option, k_attempt_option};
constexpr std::initializer_list<int> k_exits = {3, 5, 6, 7, 130};

Result<int> exec(Context& context, const Parsed& parsed) {
  if (parsed.command.empty())
    return make_error(Code::usage, "no command given",
                      "gridctl job exec " + parsed.positionals[0] + " -- COMMAND, or gridctl job shell " +
                          parsed.positionals[0]);
  TRY_ASSIGN(const RunningMember member, running_member(context, parsed));
  os::Loop loop;
  TRY_ASSIGN(auto channel, enter(context, loop, member.provider, whom(member)));
  const bool terminal = context.terminal_in && context.terminal_out;
  return run_session(context, loop, std::move(channel), {parsed.command, terminal, member.rank});
}

Result<void> check_terminal(const Context& context, std::string_view instead) {
  if (context.terminal_in && context.terminal_out) return {};
  return make_error(Code::usage, "a shell needs a terminal, but standard input or output is not one",
                    std::string(instead));
}

Result<int> shell(Context& context, const Parsed& parsed) {
  TRY(check_terminal(context, "gridctl job exec " + parsed.positionals[0] + " -- COMMAND"));
  TRY_ASSIGN(const RunningMember member, running_member(context, parsed));
  os::Loop loop;
  TRY_ASSIGN(auto channel, enter(context, loop, member.provider, whom(member)));
  return run_session(context, loop, std::move(channel), {{}, true, member.rank});
}

Result<int> host_shell(Context& context, const Parsed& parsed) {
  TRY(check_terminal(context, ""));
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const registry::Provider provider, registry.provider(HostName{parsed.positionals[0]}));
  os::Loop loop;
  TRY_ASSIGN(auto channel, enter(context, loop, provider, {}));
  return run_session(context, loop, std::move(channel), {{}, true, 0});
}
}  // namespace
}  // namespace job_exec

const Command k_job_exec{
    .name = "job exec",
    .summary = "run a command inside a running job",
    .examples = {
        {"See the GPUs as the job sees them", "gridctl job exec train-gpt -- nvidia-smi"},
        {"Look at a file of the job that you submitted last", "gridctl job exec @last -- tail -n 3 out/metrics.jsonl"},
        {"Run a command with the environment of rank 5", "gridctl job exec train-gpt --rank 5 -- env"}},
    .description =
        "Runs a command on the host of a running job: in its container, as its user, in its working directory, with its "
        "environment and its limits. The exit code is that of the command: 126 or 127 if it cannot be run, 128 and the "
        "signal if one killed it. Standard input, output and error stay separate; if standard input and output are a "
        "terminal, the command gets a terminal too.\n\nThe command ends when this connection or the attempt ends: "
        "it never delays the end of the job.",
    .positionals = job_exec::k_job,
    .options = job_exec::k_options,
    .tail = "COMMAND",
    .exit_codes = job_exec::k_exits,
    .run = job_exec::exec};
const Command k_job_shell{
    .name = "job shell",
    .summary = "open a shell inside a running job",
    .examples = {{"Look around in a running job", "gridctl job shell train-gpt"},
                 {"On the host of rank 3", "gridctl job shell train-gpt --rank 3"}},
    .description =
        "Opens a shell with a terminal on the host of a running job, like 'gridctl job exec': in the job's container, as "
        "its user, in its working directory, with its environment. bash is used if the image has it, otherwise sh. "
        "The exit code is that of the shell.\n\nThe shell and everything it started end with this connection, and with "
        "the attempt.",
    .positionals = job_exec::k_job,
    .options = job_exec::k_options,
    .exit_codes = job_exec::k_exits,
    .run = job_exec::shell};
const Command k_provider_shell{
    .name = "provider shell",
    .summary = "open a shell on a host",
    .examples = {{"Look around on a host", "gridctl provider shell ada"}},
    .description =
        "Opens a login shell with a terminal on a host, as the user that gridctl logs in as. The exit code is "
        "that of the shell. The shell and everything it started end with this connection.",
    .positionals = {{"NAME", Completion::provider}},
    .exit_codes = job_exec::k_exits,
    .run = job_exec::host_shell};

}  // namespace gridctl::cmd
