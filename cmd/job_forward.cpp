// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdlib>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/running_member.hpp"
#include "control/reach/stream_call.hpp"
#include "os/listener.hpp"

namespace gridctl::cmd {

namespace job_forward {
namespace {
constexpr Duration k_look = std::chrono::milliseconds{200};   // at the job: it moves
constexpr Duration k_again = std::chrono::seconds{1};         // after a connection that could not be made, twice as
constexpr Duration k_again_max = std::chrono::seconds{15};    // long each time, up to this

struct Ports {
  std::uint16_t local = 0, remote = 0;
};
Result<Ports> parse_ports(const std::string& text) {
  const auto colon = text.find(':');
  const std::string far = colon == std::string::npos ? text : text.substr(colon + 1);
  const auto remote = parse_number<std::uint16_t>(far);
  const auto local = colon == std::string::npos ? remote : parse_number<std::uint16_t>(text.substr(0, colon));
  if (!remote || !local || *remote == 0)
    return make_error(Code::usage, "'" + sanitize(text) + "' is not a port or a pair of ports",
                      "write PORT or LOCAL:PORT, as in 9000:8888");
  return Ports{*local, *remote};
}

// Runs one forward over all attempts of a job.
class Forward {
 public:
  Forward(Context& context, registry::Registry& registry, JobId job, std::optional<std::uint64_t> rank, Ports ports)
      : context_(context), registry_(registry), job_(std::move(job)), rank_(rank), ports_(ports), pool_(1) {}

  Result<int> run() {
    TRY(connect_first());
    TRY_ASSIGN(os::Listener listener, os::listen_local(ports_.local));
    listener_.emplace(std::move(listener));
    context_.print_line("127.0.0.1:" + std::to_string(listener_->port));
    const auto accepts = loop_.watch(listener_->fd.get(), {true, false}, [this](os::Interest) { take_in(); });
    const auto looks = loop_.every(k_look, [this] { look(); });
    std::vector<os::Loop::Watch> signals;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
      signals.push_back(loop_.on_signal(signal, [this] { end(0); }));
    loop_.run();
    call_.reset();
    return outcome_;
  }

 private:
  // The first connection is made before the port is printed, so that an unreachable job is an error.
  Result<void> connect_first() {
    TRY_ASSIGN(RunningMember member, running_member(registry_, job_, rank_, std::nullopt));
    TRY_ASSIGN(auto channel, enter(context_, loop_, member.provider, whom(member)));
    adopt(member, std::move(channel));
    return {};
  }

  void adopt(const RunningMember& member, std::unique_ptr<control::AgentChannel> channel) {
    at_ = member.epoch;
    place_ = member.provider.name.value;
    call_ = std::make_unique<control::StreamCall>(loop_, context_.clock, std::move(channel));
    call_->on_lost = [this](const Error& why) {
      context_.note("the connection to the job was lost: " + why.one_line());
      drop();
    };
    pause_ = k_again;
  }

  void drop() {
    if (call_ == nullptr) return;
    call_->streams().abandon(make_error(Code::host_unreachable, "the connection to the job was lost"));
    loop_.post([gone = std::shared_ptr<control::StreamCall>(std::move(call_))] {});
  }

  void take_in() {
    while (auto socket = os::accept_local(*listener_)) {
      if (call_ == nullptr) {
        os::break_when_closed(socket->get());
        continue;
      }
      wire::StreamOpen open;
      open.kind = wire::StreamKind::port;
      open.port = ports_.remote;
      transfer::StreamEnds ends;
      ends.source = std::move(*socket);
      ends.duplex = true;
      transfer::StreamEvents events;
      events.closed = [this](const wire::StreamEnd& how) {
        if (how.error) tell(*how.error);
      };
      call_->streams().open(open, std::move(ends), std::move(events));
    }
  }

  // Reports each reason once until the job moves: a browser opens many connections.
  void tell(const Error& error) {
    if (told_.insert(error.message).second)
      context_.note("port " + std::to_string(ports_.remote) + ": " + error.message +
                    (error.hint.empty() ? "" : "\n  " + error.hint));
  }

  void look() {
    const Result<std::int64_t> version = registry_.data_version();
    const bool changed = !version || *version != seen_;
    if (version) seen_ = *version;
    if (!changed && (call_ != nullptr || connecting_ || context_.clock.boot() < again_at_)) return;
    const Result<registry::Job> job = registry_.job(job_);
    if (!job) return fail(job.error());
    if (job::is_final(job->state)) return finish(*job);
    const Result<RunningMember> member = running_member(registry_, job_, rank_, std::nullopt);
    if (call_ != nullptr && (!member || member->epoch != at_)) {
      context_.note("the job has left " + place_ + ": waiting until it runs again");
      drop();
    }
    if (call_ == nullptr && member && !connecting_ && context_.clock.boot() >= again_at_) connect(*member);
  }

  void connect(const RunningMember& member) {
    connecting_ = true;
    pool_.submit([this, member] {
      auto made = std::make_shared<Result<std::unique_ptr<control::AgentChannel>>>(
          enter(context_, loop_, member.provider, whom(member)));
      loop_.post([this, member, made] { connected(member, std::move(*made)); });
    });
  }

  void connected(const RunningMember& member, Result<std::unique_ptr<control::AgentChannel>> channel) {
    connecting_ = false;
    if (!channel) {
      again_at_ = context_.clock.boot() + pause_;
      pause_ = std::min(pause_ * 2, k_again_max);
      if (context_.verbose) context_.note(channel.error().one_line());
      return;
    }
    told_.clear();
    adopt(member, std::move(*channel));
    context_.note("reconnected to attempt " + std::to_string(member.attempt.value) + " on " +
                  member.provider.name.value);
  }

  void finish(const registry::Job& job) {
    context_.note("job " + job.name + " has ended: " + std::string(job::state_name(job.state)));
    end(job.state == job::JobState::succeeded ? 0 : job.state == job::JobState::cancelled ? 9 : 1);
  }
  void fail(const Error& error) {
    outcome_ = error;
    loop_.stop();
  }
  void end(int code) {
    if (connecting_) std::_Exit(code);  // the thread that logs in would hold this command for as long as that takes
    outcome_ = code;
    loop_.stop();
  }

  Context& context_;
  registry::Registry& registry_;
  const JobId job_;
  const std::optional<std::uint64_t> rank_;
  const Ports ports_;
  os::Loop loop_;
  std::optional<os::Listener> listener_;
  std::unique_ptr<control::StreamCall> call_;  // null while the job does not run, or cannot be reached
  Epoch at_;
  std::string place_;
  std::set<std::string> told_;
  std::int64_t seen_ = -1;
  bool connecting_ = false;
  BootTime again_at_{};
  Duration pause_ = k_again;
  Result<int> outcome_ = 0;
  os::Pool pool_;  // last: its work uses the rest
};

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const Ports ports, parse_ports(parsed.positionals[1]));
  TRY_ASSIGN(const std::optional<std::uint64_t> rank, parsed.whole("rank"));
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const JobId id, registry.resolve(parsed.positionals[0]));
  return Forward(context, registry, id, rank, ports).run();
}
}  // namespace
}  // namespace job_forward

const Command k_job_forward{
    .name = "job forward",
    .summary = "reach a port of a running job from here",
    .examples = {
        {"Open the TensorBoard of a running job at http://127.0.0.1:6006", "gridctl job forward train-gpt 6006"},
        {"Reach Jupyter on a different local port", "gridctl job forward notebook 9000:8888"},
        {"Use any free local port", "gridctl job forward notebook 0:8888"}},
    .description =
        "Forwards connections from a port of this machine to a port on 127.0.0.1 inside a running job: TensorBoard, "
        "Jupyter, a debugger. The first line of output is the local address. The job's file must declare the port "
        "('ports: [8888]'); LOCAL is PORT unless given, and 0 is a free one.\n\nWhen the job moves to another host, its "
        "connections end, and new ones reach the job there as soon as it runs; lines on standard error say so. Ctrl-C "
        "stops forwarding; the job keeps running. The command ends with the job, with its exit code.",
    .positionals = {{"ID", Completion::job}, {"[LOCAL:]PORT"}},
    .options = {k_rank_option},
    .exit_codes = {1, 3, 5, 6, 7, 9},
    .run = job_forward::run};

}  // namespace gridctl::cmd
