// SPDX-License-Identifier: Apache-2.0
#include "cmd/session.hpp"

#include <fcntl.h>

#include <csignal>
#include <optional>

#include "control/reach/stream_call.hpp"
#include "os/terminal.hpp"

namespace gridctl::cmd {

namespace {
constexpr int k_signalled = 128;  // and the number of the signal, as shells say it

class Session {
 public:
  Session(Context& context, os::Loop& loop, std::unique_ptr<control::AgentChannel> channel)
      : loop_(loop), call_(loop, context.clock, std::move(channel)) {}

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
}  // namespace

Result<int> run_session(Context& context, os::Loop& loop, std::unique_ptr<control::AgentChannel> channel,
                        const SessionWish& wish) {
  return Session(context, loop, std::move(channel)).run(wish);
}

}  // namespace gridctl::cmd
