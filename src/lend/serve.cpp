// SPDX-License-Identifier: Apache-2.0
#include "lend/serve.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "lend/gate.hpp"
#include "lend/gpu_openers.hpp"
#include "lend/gpu_power.hpp"
#include "lend/lent.hpp"
#include "lend/receipt_book.hpp"
#include "os/net.hpp"
#include "os/process.hpp"
#include "os/ready.hpp"

namespace gridctl::lend {

namespace {

constexpr Duration k_serve_turn = std::chrono::seconds{1};
constexpr Duration k_again_first = std::chrono::milliseconds{500};
constexpr Duration k_again_max = std::chrono::seconds{2};          // a network that is back is noticed within it
constexpr Duration k_again_refused = std::chrono::minutes{5};      // only a person mends that
constexpr Duration k_hours_look = std::chrono::seconds{20};       // at whether the owner lends at this time of day
constexpr Duration k_terms_look = std::chrono::seconds{2};         // at the GPUs by the vendor's tool, while jobs hold some
constexpr Duration k_uses_look = std::chrono::seconds{1};          // at attempts that have ended and have no receipt
constexpr Duration k_openers_look = std::chrono::milliseconds{100};  // at programs that open a GPU, while jobs hold some
constexpr Duration k_opened_look = std::chrono::milliseconds{200};   // by the vendor's tool after one has: it takes a while
constexpr Duration k_opened_for = std::chrono::seconds{4};           // until it counts as a user
constexpr Duration k_opened_rest = std::chrono::seconds{10};         // then it is asked as before, unless it found one
constexpr Duration k_agent_wait = std::chrono::seconds{10};
constexpr std::string_view k_hours_grace_ms = "30000", k_reclaim_grace_ms = "10000";  // for programs to save
constexpr std::chrono::milliseconds k_reclaimed_for = std::chrono::minutes{1};        // from the last look that saw one
constexpr std::string_view k_taken = "taken", k_free = "free", k_idle = "idle";
constexpr std::string_view k_owner_grace_ms = "10000", k_battery_grace_ms = "30000";  // for programs to save
constexpr Duration k_presence_look = std::chrono::seconds{1}, k_sensors_look = std::chrono::seconds{5};
constexpr Duration k_idle_gpus_look = std::chrono::seconds{10};  // at the GPUs, while no job holds one
constexpr std::chrono::milliseconds k_closed_for = std::chrono::seconds{30};  // from the last look
constexpr Duration k_power_again = std::chrono::seconds{30};     // after the tool has failed
constexpr std::uint64_t k_word_bytes = 64;  // of the file that says until when
constexpr int k_minutes = 60;
constexpr std::size_t k_sessions_max = 16;  // of one researcher: each is an agent, which takes memory
constexpr Duration k_start_wait = std::chrono::seconds{5};
constexpr Duration k_lock_wait = std::chrono::seconds{2}, k_lock_look = std::chrono::milliseconds{30};
constexpr std::string_view k_ready = "ready", k_called = "called", k_error = "error ", k_refused = "refused ";

os::Path lock_file() { return lend_home() / "serve.lock"; }

// The state of this machine, for all guests: what was looked at is not looked at again for a while.
class Machine {
 public:
  explicit Machine(os::Clock& clock) : clock_(clock), look_(clock) {}

  [[nodiscard]] MachineState state(const wire::GuestTerms& terms) {
    if (terms.idle_ms && is_due(presence_at_, k_presence_look)) state_.presence = look_.look();
    if (!terms.on_battery && is_due(battery_at_, k_sensors_look)) state_.battery = on_battery();
    if (terms.heat_celsius && is_due(heat_at_, k_sensors_look)) state_.heat = hottest();
    return state_;
  }

 private:
  bool is_due(BootTime& at, Duration every) {
    if (clock_.boot() < at) return false;
    at = clock_.boot() + every;
    return true;
  }

  os::Clock& clock_;
  PresenceLook look_;
  MachineState state_;
  BootTime presence_at_{}, battery_at_{}, heat_at_{};
};

// The connections of one researcher.
class Guest {
 public:
  Guest(Lent lent, std::string program, Machine& machine, os::Clock& clock)
      : lent_(std::move(lent)), program_(std::move(program)), machine_(machine), clock_(clock) {}
  ~Guest() {
    for (const Session& session : sessions_)
      if (os::send_signal(session.process, SIGKILL)) (void)os::wait(session.process.pid);
  }
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;

  void turn() {
    std::erase_if(sessions_, [&](Session& session) { return read_news(session); });
    if (clock_.boot() >= next_look_) keep_terms();
    if (clock_.boot() >= next_uses_) keep_receipts();
    const bool waits = std::ranges::any_of(sessions_, [](const Session& one) { return !one.called; });
    if (!waits && sessions_.size() < k_sessions_max && clock_.boot() >= next_) begin();
  }
  void watch(std::vector<os::Poll>& polls) const {
    for (const Session& session : sessions_)
      if (session.news.valid()) polls.push_back({session.news.get(), {.read = true}, {}});
  }
  [[nodiscard]] BootTime next() const { return next_; }
  [[nodiscard]] bool holds_gpus() const { return holds_gpus_; }
  [[nodiscard]] std::optional<int> gpu_watts() const { return gpu_watts_; }  // while its jobs hold GPUs
  // Processes of a job open what they like: for nothing, the tool is not asked again and again.
  void gpu_opened() {
    if (clock_.boot() < quiet_until_) return;
    opened_at_ = next_look_ = clock_.boot();
    opened_until_ = opened_at_ + k_opened_for;
    quiet_until_ = opened_until_ + k_opened_rest;
  }

 private:
  struct Session {
    os::ProcessId process;
    os::Fd news;
    std::string text;
    bool called = false;
  };

  void begin() {
    auto pipe = os::make_pipe();
    if (!pipe) return;
    os::SpawnOptions options;
    options.stdout_fd = pipe->second.get();
    options.die_with_parent = true;
    const auto pid = os::spawn({program_, "lend", "dial", lent_.id()}, options);
    pause();
    if (!pid || !os::set_nonblocking(pipe->first.get())) return;
    sessions_.push_back({os::identify(*pid).value_or(os::ProcessId{*pid, 0}), std::move(pipe->first), {}, false});
  }

  // The agent lets no job begin outside of the owner's hours; those that run when they end are told to save, and end.
  void keep_hours(const wire::GuestTerms& terms) {
    const os::LocalTime now = os::local_time(clock_.wall());
    if (terms.is_open_at(now.hour * k_minutes + now.minute)) return;
    const std::string ended = ask_agent(terms, {"end", std::string(k_hours_grace_ms), "hours"});
    if (!ended.empty() && !ended.starts_with('0')) lent_.log("the hours are over; jobs end: " + ended, clock_);
  }

  // A program of the owner's on a GPU has it: jobs that hold one end, and none begins until it has ended.
  void keep_gpus(const wire::GuestTerms& terms) {
    forget_old_word();
    const bool looks = terms.reclaim || terms.idle_ms;
    if (!looks && !reclaimed_) return;
    std::vector<std::string> words{"reclaim", std::string(k_reclaim_grace_ms)};
    const BootTime asked = clock_.boot();
    if (reclaimed_ || (terms.idle_ms && asked >= next_idle_gpus_)) {
      words.emplace_back("always");
      next_idle_gpus_ = asked + k_idle_gpus_look;
    }
    const std::string told = looks ? ask_agent(terms, words) : std::string(k_free);
    holds_gpus_ = !told.empty() && told != k_idle;
    const os::Path file = lent_.folder() / wire::k_reclaimed_file;
    if (told.starts_with(k_taken)) {
      const WallTime until{clock_.wall().ms + k_reclaimed_for.count()};
      (void)os::write_file_atomically(file, std::to_string(until.ms));
      const std::vector<std::string> parts = split(told, '\t');
      gpu_program_ = parts.back();
      hear_taken(parts.size() == 3 ? parse_number<int>(parts[1]).value_or(0) : 0, parts.back(), asked);
    } else if (told == k_free && std::exchange(reclaimed_, false)) {
      leaving_since_.reset();
      gpu_program_.clear();
      (void)os::remove_tree(file);
      lent_.log("the GPU is free again", clock_);
    }
  }

  // A process before this one wrote it, and the clock was set back since: it would hold for years.
  void forget_old_word() const {
    const os::Path file = lent_.folder() / wire::k_reclaimed_file;
    if (reclaimed_) return;
    const Result<std::string> text = os::read_file(file, k_word_bytes);
    if (text && parse_number<std::int64_t>(trim(*text)).value_or(0) > clock_.wall().ms + k_reclaimed_for.count()) (void)os::remove_tree(file);
  }

  // `jobs` still hold a GPU that `program` uses. The time until none does is kept, from the first sign of the program.
  void hear_taken(int jobs, const std::string& program, BootTime asked) {
    quiet_until_ = {};
    if (!std::exchange(reclaimed_, true)) {
      lent_.log("the owner's program " + program + " uses a GPU; jobs that end for it: " + std::to_string(jobs), clock_);
      if (jobs > 0) leaving_since_ = asked < opened_until_ ? opened_at_ : asked;
    } else if (jobs == 0 && leaving_since_) {
      const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(clock_.boot() - *std::exchange(leaving_since_, {}));
      lent_.returned(took);
      lent_.log("no job uses the GPU any more, after " + format_duration(took), clock_);
    }
  }

  // No job begins while the machine's state keeps jobs away, and those that run end. The file is old soon after this
  // process has died; then nobody reaches the agent either.
  void keep_gate(const wire::GuestTerms& terms) {
    MachineState state = machine_.state(terms);
    state.gpu_program = gpu_program_;
    std::optional<wire::Closed> closed = gate_.judge(terms, state, clock_.wall(), clock_.boot());
    const os::Path file = lent_.folder() / wire::k_closed_file;
    if (!closed) {
      if (!closed_ && !os::exists(file)) return;
      (void)os::remove_tree(file);
      closed_.reset();
      lent_.log("nothing keeps jobs away any more", clock_);
      return;
    }
    closed->until = {clock_.wall().ms + k_closed_for.count()};
    (void)os::write_file_atomically(file, wire::encode(*closed));
    if (!closed_ || *closed_ != closed->by) lent_.log("jobs are kept away: " + closed->why, clock_);
    const bool known = std::exchange(closed_, closed->by).has_value();
    if (known && nothing_runs_ && clock_.boot() < next_end_) return;
    next_end_ = clock_.boot() + k_sensors_look;
    const std::string_view grace = closed->by == wire::ClosedBy::battery ? k_battery_grace_ms : k_owner_grace_ms;
    const std::string ended = ask_agent(terms, {"end", std::string(grace), std::string(wire::closed_by_name(closed->by)), "fresh"});
    const bool nothing = ended.starts_with('0');
    if (!ended.empty() && !nothing && std::exchange(nothing_runs_, false)) lent_.log("jobs that end for it: " + ended, clock_);
    nothing_runs_ = nothing;
  }

  void keep_receipts() {
    next_uses_ = clock_.boot() + k_uses_look;
    const Result<std::size_t> made = make_receipts(lent_.folder(), clock_);
    const std::string trouble = made ? "" : made.error().one_line();
    if (trouble != receipt_trouble_ && !trouble.empty()) lent_.log("no receipt could be made: " + trouble, clock_);
    receipt_trouble_ = trouble;
  }

  void keep_terms() {
    const bool soon = leaving_since_ || (!reclaimed_ && clock_.boot() < opened_until_);
    next_look_ = clock_.boot() + (soon ? k_opened_look : k_terms_look);
    const Result<wire::GuestTerms> terms = lent_.terms();
    if (!terms) return;
    // A measurement of the machine that is under way ends with its connection. An agent of another version may know
    // limits that the one in use does not.
    const bool paused = terms->is_paused(clock_.wall());
    const os::Path agent = lent_.agent().value_or(agent_);
    const bool other = !agent_.empty() && agent != agent_;
    agent_ = agent;
    if (other || (std::exchange(paused_, paused) != paused && paused))
      for (const Session& session : sessions_)
        if (session.called) (void)os::send_signal(session.process, SIGKILL);
    paused_ = paused;
    keep_gpus(*terms);
    keep_gate(*terms);
    gpu_watts_ = terms->gpu_watts && parse_number<int>(ask_agent(*terms, {"gpus"})).value_or(0) > 0 ? terms->gpu_watts : std::nullopt;
    if (clock_.boot() < next_hours_) return;
    next_hours_ = clock_.boot() + k_hours_look;
    keep_hours(*terms);
  }

  // The first line of its answer; empty when it fails.
  std::string ask_agent(const wire::GuestTerms& terms, const std::vector<std::string>& words) {
    const Result<os::Path> agent = lent_.agent();
    if (!agent) return {};
    std::vector<std::string> argv{agent->string(), "guest", terms.controller.value};
    argv.insert(argv.end(), words.begin(), words.end());
    os::RunOptions options;
    options.timeout = k_agent_wait;
    const auto told = os::run(argv, options);
    if (!told || !told->status.success()) return {};
    return std::string(trim(std::string_view(told->out).substr(0, told->out.find('\n'))));
  }

  void pause() {
    next_ = clock_.boot() + again_;
    again_ = std::min(again_ * 2, k_again_max);
  }

  // True once it is over.
  bool read_news(Session& session) {
    std::array<std::byte, 1024> piece{};
    while (session.news.valid()) {
      const auto moved = os::read_now(session.news.get(), piece);
      if (!moved || moved->closed) session.news.reset();
      else if (moved->blocked) break;
      else session.text += as_text(ByteView{piece}.first(moved->bytes));
    }
    for (std::size_t end = 0; (end = session.text.find('\n')) != std::string::npos; session.text.erase(0, end + 1))
      hear(session, session.text.substr(0, end));
    if (session.news.valid()) return false;
    const auto ended = os::try_wait(session.process.pid);
    return !ended || ended->has_value();
  }

  void hear(Session& session, const std::string& line) {
    if (line == k_ready || line == k_called) {
      again_ = k_again_first;
      next_ = clock_.boot();
      if (line == k_called) session.called = true;
      note("ready");
    } else if (line.starts_with(k_refused)) {
      next_ = clock_.boot() + k_again_refused;
      note(line);
    } else if (line.starts_with(k_error)) {
      note("away " + line.substr(k_error.size()));
    }
  }

  void note(const std::string& state) {
    if (state == state_) return;
    state_ = state;
    lent_.set_state(state);
    lent_.log(state == "ready" ? "connected to the relay" : state, clock_);
  }

  const Lent lent_;
  const std::string program_;
  Machine& machine_;
  os::Clock& clock_;
  std::vector<Session> sessions_;
  Duration again_ = k_again_first;
  BootTime next_{}, next_look_{}, next_hours_{}, next_uses_{}, opened_at_{}, opened_until_{}, quiet_until_{}, next_idle_gpus_{}, next_end_{};
  std::optional<BootTime> leaving_since_;  // jobs end since then because of the owner's program
  bool reclaimed_ = false, holds_gpus_ = false, paused_ = false;
  Gate gate_;
  std::optional<wire::ClosedBy> closed_;
  bool nothing_runs_ = true;  // when jobs were last told to end for it
  std::optional<int> gpu_watts_;
  os::Path agent_;
  std::string state_, receipt_trouble_, gpu_program_;
};

// Holds the GPUs' power at the lowest limit that a guest with GPUs has.
class PowerKeeper {
 public:
  explicit PowerKeeper(os::Clock& clock) : power_(lend_home() / k_gpu_power_file), clock_(clock) {}

  void keep(const std::map<std::string, std::unique_ptr<Guest>>& guests) {
    if (clock_.boot() < again_) return;
    std::optional<int> watts;
    for (const auto& [id, guest] : guests)
      if (const auto its = guest->gpu_watts()) watts = std::min(*its, watts.value_or(*its));
    const Result<bool> kept = power_.keep(watts);
    if (kept && !*kept) return;
    again_ = kept ? BootTime{} : clock_.boot() + k_power_again;
    const std::string words = !kept ? "the GPUs' power limit cannot be set: " + kept.error().message
                              : watts ? "GPUs are held to " + std::to_string(*watts) + " W"
                                      : "the GPUs have their old power limit again";
    if (words != said_)
      for (const Lent& lent : all_lent()) lent.log(words, clock_);
    said_ = words;
  }

 private:
  GpuPower power_;
  os::Clock& clock_;
  BootTime again_{};
  std::string said_;
};

}  // namespace

Result<void> serve(const std::function<bool()>& stop, os::Clock& clock) {
  TRY(os::make_directories(lend_home()));
  // Whoever only looks whether somebody serves holds the lock for a moment.
  std::optional<os::FileLock> lock;
  for (const BootTime until = clock.boot() + k_lock_wait; !lock && clock.boot() < until;) {
    TRY_ASSIGN(lock, os::FileLock::try_acquire(lock_file()));
    if (!lock) os::pause_for(k_lock_look);
  }
  if (!lock) return make_error(Code::state_in_use, "another process serves this machine's researchers already");
  TRY_ASSIGN(const os::Path self, os::executable_path());
  std::map<std::string, std::unique_ptr<Guest>> guests;
  GpuOpeners openers(clock);
  Machine machine(clock);
  PowerKeeper power(clock);
  while (!stop()) {
    std::map<std::string, std::unique_ptr<Guest>> present;
    for (Lent& lent : all_lent()) {
      const std::string id = lent.id();
      auto known = guests.extract(id);
      present[id] = known ? std::move(known.mapped()) : std::make_unique<Guest>(std::move(lent), self.string(), machine, clock);
    }
    guests = std::move(present);
    if (guests.empty()) {
      power.keep(guests);
      return {};
    }
    const bool watched = std::ranges::any_of(guests, [](const auto& one) { return one.second->holds_gpus(); });
    const bool opened = watched && openers.look();
    BootTime wake = clock.boot() + (watched ? k_openers_look : k_serve_turn);
    std::vector<os::Poll> polls;
    for (const auto& [id, guest] : guests) {
      if (opened) guest->gpu_opened();
      guest->turn();
      guest->watch(polls);
      if (guest->next() > clock.boot()) wake = std::min(wake, guest->next());
    }
    power.keep(guests);
    TRY(os::wait_any(polls, wake, clock));
  }
  return {};
}

bool is_serving() {
  const auto lock = os::FileLock::try_acquire(lock_file());
  return lock && !lock->has_value();
}

Result<void> ensure_serving(os::Clock& clock) {
  if (is_serving()) return {};
  TRY_ASSIGN(const os::Path self, os::executable_path());
  os::SpawnOptions options;
  options.detach = options.new_session = true;
  options.directory = "/";
  TRY(os::spawn({self.string(), "lend", "serve"}, options));
  for (const BootTime until = clock.boot() + k_start_wait; clock.boot() < until; os::pause_for(std::chrono::milliseconds{50}))
    if (is_serving()) return {};
  return make_error(Code::internal, "the process that serves this machine's researchers does not start", "gridctl lend serve");
}

}  // namespace gridctl::lend
