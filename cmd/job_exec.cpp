// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <csignal>
#include <memory>

#include "cmd/commands.hpp"
#include "cmd/running_member.hpp"
#include "control/reach/stream_call.hpp"
#include "os/loop.hpp"
#include "os/terminal.hpp"

namespace gridctl::cmd {

namespace job_exec {
namespace {
const std::initializer_list<Positional> k_job = {{"ID", Completion::job}};
const std::initializer_list<Option> k_options = {k_rank_option, k_attempt_option};
constexpr std::initializer_list<int> k_exits = {3, 5, 6, 7, 130};

constexpr int k_signalled = 128;  // and the number of the signal, as shells say it

struct SessionWish {
  std::vector<std::string> command;  // empty: a shell
  bool terminal = false;
  std::uint32_t rank = 0;
};

// Runs a program on a host with this command's standard streams, or its terminal.
class Session {
 public:
  Session(Context& context, os::Loop& loop, std::unique_ptr<control::AgentChannel> channel)
      : loop_(loop), call_(loop, context.clock, std::move(channel)) {}

  // Runs the program to its end. Returns its exit code; 128 plus the signal that killed it, as shells do.
  Result<int> run(const SessionWish& wish) {
    TRY(begin(wish));
    std::optional<os::RawTerminal> raw;
    if (wish.terminal) {
      TRY_ASSIGN(os::RawTerminal entered, os::RawTerminal::enter(0));
      raw.emplace(std::move(entered));
    }
    std::vector<os::Loop::Watch> signals;
    if (wish.terminal) signals.push_back(loop_.on_signal(SIGWINCH, [this] { tell_size(); }));
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
      signals.push_back(loop_.on_signal(signal, [this, signal] { pass_on(signal); }));
    loop_.run();
    if (!outcome_) return make_error(Code::interrupted, "interrupted");
    return *outcome_;
  }

 private:
  Result<void> begin(const SessionWish& wish) {
    call_.on_lost = [this](const Error& why) { end(why); };
    transfer::StreamEnds ends;
    TRY_ASSIGN(ends.source, os::own_stream(0, O_RDONLY));
    TRY_ASSIGN(ends.sink, os::own_stream(1, O_WRONLY));
    wire::StreamOpen open;
    open.command = wish.command;
    open.rank = wish.rank;
    if (wish.terminal) {
      const os::TerminalSize size = os::terminal_size(0);
      open.terminal = {size.columns, size.rows};
      for (const char* name : {"TERM", "COLORTERM"})
        if (const auto value = os::environment(name)) open.env[name] = *value;
    } else {
      TRY_ASSIGN(os::Fd complaints, os::own_stream(2, O_WRONLY));
      transfer::StreamEnds aside;
      aside.sink = std::move(complaints);
      transfer::StreamEvents events;
      events.closed = [this](const wire::StreamEnd&) {
        errors_ = 0;
        conclude();
      };
      errors_ = open.errors = call_.streams().reserve(std::move(aside), std::move(events));
    }
    transfer::StreamEvents events;
    events.received = [this] { call_.streams().finish(id_, {}); };  // the program has ended: it reads no more
    events.sink_broken = [this] {                                   // nobody reads what it writes
      call_.streams().reset(id_, make_error(Code::cancelled, "the reader of the output has gone"));
      end(k_signalled + SIGPIPE);
    };
    events.closed = [this](const wire::StreamEnd& how) {
      if (how.error) return end(*how.error);
      code_ = how.signal ? k_signalled + *how.signal : how.exit_code.value_or(0);
      conclude();
    };
    id_ = call_.streams().open(open, std::move(ends), std::move(events));
    return {};
  }

  void conclude() {
    if (code_ && errors_ == 0) end(*code_);
  }
  void end(Result<int> outcome) {
    if (!outcome_) outcome_ = std::move(outcome);
    loop_.stop();
  }
  void tell_size() {
    const os::TerminalSize size = os::terminal_size(0);
    wire::StreamNote note;
    note.terminal = {size.columns, size.rows};
    call_.streams().note(id_, note);
  }
  // The first signal goes to the program, which may end on its own; the second ends this command.
  void pass_on(int signal) {
    if (std::exchange(signalled_, true)) return loop_.stop();
    wire::StreamNote note;
    note.signal = signal;
    call_.streams().note(id_, note);
  }

  os::Loop& loop_;
  control::StreamCall call_;
  std::uint32_t id_ = 0, errors_ = 0;
  std::optional<int> code_;
  std::optional<Result<int>> outcome_;
  bool signalled_ = false;
};

Result<int> exec(Context& context, const Parsed& parsed) {
  if (parsed.command.empty())
    return make_error(Code::usage, "no command given",
                      "gridctl job exec " + parsed.positionals[0] + " -- COMMAND, or gridctl job shell " +
                          parsed.positionals[0]);
  TRY_ASSIGN(const RunningMember member, running_member(context, parsed));
  os::Loop loop;
  TRY_ASSIGN(auto channel, enter(context, loop, member.provider, whom(member)));
  const bool terminal = context.terminal_in && context.terminal_out;
  return Session(context, loop, std::move(channel)).run({parsed.command, terminal, member.rank});
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
  return Session(context, loop, std::move(channel)).run({{}, true, member.rank});
}

Result<int> host_shell(Context& context, const Parsed& parsed) {
  TRY(check_terminal(context, ""));
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const registry::Provider provider, registry.provider(HostName{parsed.positionals[0]}));
  os::Loop loop;
  TRY_ASSIGN(auto channel, enter(context, loop, provider, {}));
  return Session(context, loop, std::move(channel)).run({{}, true, 0});
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
