// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/notifier.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>

#include "base/text.hpp"
#include "base/time.hpp"
#include "control/daemon/notify_journal.hpp"
#include "control/daemon/user_settings.hpp"
#include "http/client.hpp"
#include "os/clock.hpp"
#include "os/host_pool.hpp"
#include "os/log.hpp"
#include "os/mutex.hpp"
#include "os/process.hpp"
#include "registry/feed.hpp"
#include "registry/registry.hpp"

namespace gridctl::control {

namespace {
using namespace std::chrono_literals;
constexpr Duration k_notify_timeout = std::chrono::seconds{30};

enum class Fate : std::uint8_t {
  sent,
  refused,  // it surely did not arrive, and may when it is sent again
  lost,     // it cannot arrive, or it may have arrived
};
struct Sent {
  Fate fate = Fate::sent;
  std::string why;                  // for people, without the path of a URL
  std::optional<Duration> after{};  // as the receiver asked; foreign
};

constexpr int k_try_later = 75;  // EX_TEMPFAIL of sysexits.h, as mail programs have it

Sent sent_by_program(const std::string& name, const Result<os::RunOutcome>& outcome) {
  if (!outcome) return {Fate::lost, name + ": " + outcome.error().one_line()};
  if (outcome->status.success()) return {};
  const std::string why = name + " ended with exit code " + std::to_string(outcome->status.code) + ": " +
                          std::string(trim(outcome->err.substr(0, 300)));
  return {outcome->status.code == k_try_later ? Fate::refused : Fate::lost, why};
}

Sent run_command(const Delivery& delivery) {
  const Message& message = delivery.message;
  os::RunOptions options;
  options.timeout = k_notify_timeout;
  options.input = to_json(message) + "\n";
  options.environment_extra = {{"GRIDCTL_NOTICE", std::string(job::notice_name(message.notice))},     {"GRIDCTL_JOB_ID", message.job_id},
                               {"GRIDCTL_JOB_NAME", message.job_name}, {"GRIDCTL_JOB_STATE", message.state},
                               {"GRIDCTL_MESSAGE", to_line(message)},  {"GRIDCTL_NOTICE_ID", message.id}};
  return sent_by_program("the command", os::run({"/bin/sh", "-c", delivery.address}, options));
}

Sent post(const Delivery& delivery, os::Clock& clock) {
  const std::string body = to_json(delivery.message);
  const Result<http::Origin> origin = http::parse_origin(delivery.address);
  const std::string name = origin ? origin->scheme + "://" + origin->authority : "the webhook";
  bool begun = false;  // some of the body has left
  http::Request request;
  request.method = "POST";
  request.url = delivery.address;
  request.headers = {{"Content-Type", "application/json"}, {"User-Agent", "gridctl"}, {"Idempotency-Key", delivery.message.id}};
  request.body = http::source_of(as_bytes(body));
  request.body->read = [&begun, read = request.body->read](std::uint64_t offset, std::span<std::byte> into) {
    begun = true;
    return read(offset, into);
  };
  request.limits = {.body_max = 64u << 10, .connect_max = 10s, .stalled_max = k_notify_timeout, .total_max = k_notify_timeout};
  const Result<http::Answer> answer = http::Client({}, clock).perform(request);
  if (!answer) {
    const bool may_come = !begun && (answer.error().code == Code::host_unreachable || answer.error().code == Code::timed_out);
    return {may_come ? Fate::refused : Fate::lost, name + ": " + answer.error().one_line()};
  }
  if (answer->status < 300) return {};
  const bool later = answer->status >= 500 || answer->status == 429;
  return {later ? Fate::refused : Fate::lost, name + " answered with status " + std::to_string(answer->status), answer->retry_after};
}

std::string sendmail_path(const std::string& given) {
  if (!given.empty()) return given;
  if (const std::optional<os::Path> found = os::find_program("sendmail")) return found->string();
  for (const char* path : {"/usr/sbin/sendmail", "/usr/lib/sendmail"})
    if (os::exists(path)) return path;
  return "";
}

Sent mail(const Delivery& delivery, const std::string& sendmail) {
  const std::string program = sendmail_path(sendmail);
  if (program.empty()) return {Fate::lost, "no sendmail is installed (gridctl config set notify.sendmail PATH)"};
  const Message& message = delivery.message;
  const std::string line = to_line(message);
  os::RunOptions options;
  options.timeout = k_notify_timeout;
  options.input = "To: " + delivery.address + "\nSubject: gridctl: " + line.substr(0, 200) +
                  "\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nAuto-Submitted: auto-generated\n\n" + line + "\n\n" +
                  format_rfc3339(message.at) + "\n" +
                  (message.job_id.empty() ? "gridctl provider show " + message.provider : "gridctl job show " + message.job_id) + "\n";
  return sent_by_program("sendmail", os::run({program, "-i", "-t"}, options));
}

// Blocks for at most half a minute. `sendmail`: a path, or empty.
Sent send_notification(const Delivery& delivery, const std::string& sendmail, os::Clock& clock) {
  switch (delivery.channel) {
    case Channel::command: return run_command(delivery);
    case Channel::webhook: return post(delivery, clock);
    case Channel::mail: return mail(delivery, sendmail);
  }
  return {Fate::lost, "unknown channel"};
}

constexpr Duration k_look = std::chrono::seconds{1};
constexpr unsigned k_senders = 8;
constexpr std::size_t k_page = 500;       // events read at once
constexpr std::size_t k_open_max = 1000;  // notifications waiting; the oldest give way
constexpr Duration k_after_max = std::chrono::minutes{10};

void warn(const std::string& text) { os::log(os::LogLevel::warn, "notify: " + text); }

std::string subject_of(const Message& message) {
  return message.job_id.empty() ? "host " + message.provider : "job " + message.job_id;
}
}  // namespace

struct Notifier::State {
  State(os::Clock& the_clock, Paths the_paths) : clock(the_clock), paths(std::move(the_paths)) {}

  void look(const std::shared_ptr<State>& self);
  Result<void> begin();
  Result<void> take_events();
  Result<void> take_event(const registry::EventRecord& event, const UserSettings& settings);
  void add(const job::Notify& rule, const std::vector<job::Notice>& notices, Message message);
  void send(const std::string& id, Channel channel, const std::string& address);
  void ended(const Delivery& sent, const Sent& outcome);
  Delivery* find(const std::string& id, Channel channel, const std::string& address) GRIDCTL_REQUIRES(mutex);
  void save() GRIDCTL_REQUIRES(mutex);
  [[nodiscard]] os::Path file() const { return paths.root / "notify.json"; }

  os::Clock& clock;
  const Paths paths;
  std::optional<registry::Feed> feed;  // of the looking thread, as the next
  bool begun = false;
  os::Mutex mutex;
  NotifyJournal journal GRIDCTL_GUARDED_BY(mutex);
  std::atomic<bool> is_idle{true};  // read on the loop, which must not wait for a disk
  std::string said;  // the last trouble, so that the log has it once
  os::HostPool senders{k_senders, 1};
};

void Notifier::State::save() {
  is_idle = journal.open.empty();
  if (const Result<void> written = journal.write(file()); !written)
    warn("while recording a sent notification: " + written.error().one_line());
}

Delivery* Notifier::State::find(const std::string& id, Channel channel, const std::string& address) {
  const auto found = std::ranges::find_if(journal.open, [&](const Delivery& one) {
    return one.message.id == id && one.channel == channel && one.address == address;
  });
  return found == journal.open.end() ? nullptr : &*found;
}

// A state directory without notifications so far starts with the events from now on.
Result<void> Notifier::State::begin() {
  if (!feed) {
    TRY_ASSIGN(registry::Feed opened, registry::Feed::open(paths.root));
    feed.emplace(std::move(opened));
  }
  const os::MutexLock lock(mutex);
  std::vector<Delivery> doubtful;
  Result<NotifyJournal> read = os::exists(file()) ? NotifyJournal::read(file(), doubtful) : Result<NotifyJournal>(NotifyJournal{});
  if (!read) warn(read.error().one_line() + "; starting a new one");
  if (!read || !os::exists(file())) {
    TRY_ASSIGN(const registry::Feed::Newest newest, feed->newest());
    journal = {newest.event, newest.host_event, {}};
  } else {
    journal = *std::move(read);
  }
  for (const Delivery& one : doubtful)
    warn("the " + std::string(channel_name(one.channel)) + " for " + subject_of(one.message) +
         " was being sent when the daemon ended; it may have arrived, so gridctl does not send it again");
  is_idle = journal.open.empty();
  TRY(journal.write(file()));
  begun = true;
  return {};
}

void Notifier::State::add(const job::Notify& rule, const std::vector<job::Notice>& notices, Message message) {
  const std::optional<job::Notice> notice = job::wanted(rule, notices);
  if (!notice) return;
  message.notice = *notice;
  const os::MutexLock lock(mutex);
  for (const auto& [channel, address] : {std::pair{Channel::command, rule.command}, std::pair{Channel::webhook, rule.webhook},
                                         std::pair{Channel::mail, rule.mail}})
    if (!address.empty() && find(message.id, channel, address) == nullptr)
      journal.open.push_back({message, channel, address, 0, clock.wall()});
  while (journal.open.size() > k_open_max) {
    warn("too many notifications are waiting; the one for " + subject_of(journal.open.front().message) +
         " was dropped");
    journal.open.erase(journal.open.begin());
  }
}

Result<void> Notifier::State::take_event(const registry::EventRecord& event, const UserSettings& settings) {
  const std::vector<job::Notice> notices = job::notices_of(event.kind, event.attempt.value);
  if (notices.empty()) return {};
  TRY_ASSIGN(registry::Registry registry, registry::Registry::open(paths.root));
  const Result<registry::Job> job = registry.job(event.job);
  if (!job) {  // it was removed, or a newer gridctl wrote it: the events of others count
    if (job.error().code != Code::not_found) warn(job.error().one_line());
    return {};
  }
  if (!job->spec.twin_of.value.empty() || job->spec.envs.contains("GRIDCTL_DRILL")) return {};
  const Message message{"job-event-" + std::to_string(event.id), {}, event.job.value, job->name, std::string(job::state_name(job->state)),
                        event.host.value, event.kind, event.text, event.at};
  add(notify_of(settings), notices, message);
  const Result<std::vector<job::Notify>> rules = read_notify_rules(paths, event.job);
  if (!rules) warn(rules.error().one_line());
  for (job::Notify rule : rules ? *rules : std::vector<job::Notify>{}) {
    if (!may_run_job_commands(settings)) rule.command.clear();
    add(rule, notices, message);
  }
  return {};
}

Result<void> Notifier::State::take_events() {
  if (!begun) TRY(begin());
  std::int64_t event = 0, host_event = 0;
  {
    const os::MutexLock lock(mutex);
    event = journal.event;
    host_event = journal.host_event;
  }
  TRY_ASSIGN(const std::vector<registry::EventRecord> events, feed->events(event, k_page));
  TRY_ASSIGN(const std::vector<registry::HostEvent> host_events, feed->host_events(host_event, k_page));
  if (events.empty() && host_events.empty()) return {};
  TRY_ASSIGN(const UserSettings settings, read_settings(paths));
  Result<void> taken;
  for (const registry::EventRecord& one : events) {
    taken = take_event(one, settings);
    if (!taken) break;  // this one again, the next time; those before it never
    const os::MutexLock lock(mutex);
    journal.event = one.id;
  }
  for (const registry::HostEvent& one : host_events) {
    const std::vector<job::Notice> notices = job::notices_of(one.kind, 0);
    if (!notices.empty())
      add(notify_of(settings), notices,
          {"host-event-" + std::to_string(one.id), {}, "", "", "", one.provider.value, one.kind, one.text, one.at});
    const os::MutexLock lock(mutex);
    journal.host_event = one.id;
  }
  const os::MutexLock lock(mutex);
  save();
  return taken;
}

void Notifier::State::look(const std::shared_ptr<State>& self) {
  const Result<void> taken = take_events();
  const std::string trouble = taken ? "" : taken.error().one_line();
  if (!trouble.empty() && trouble != said) warn(trouble);
  said = trouble;
  const os::MutexLock lock(mutex);
  for (Delivery& one : journal.open) {
    if (one.queued || one.next > clock.wall()) continue;
    one.queued = true;
    senders.submit(std::string(channel_name(one.channel)) + " " + one.address,
                   [self, id = one.message.id, channel = one.channel, address = one.address] { self->send(id, channel, address); });
  }
}

void Notifier::State::send(const std::string& id, Channel channel, const std::string& address) {
  Delivery sending;
  {
    const os::MutexLock lock(mutex);
    Delivery* const one = find(id, channel, address);
    if (one == nullptr) return;
    one->sending = true;
    ++one->tries;
    if (const Result<void> noted = journal.write(file()); !noted) {  // nothing is sent that is not noted
      one->sending = one->queued = false;
      one->next = {clock.wall().ms + 10'000};
      return warn("while recording a notification to send: " + noted.error().one_line());
    }
    sending = *one;
  }
  const Result<UserSettings> settings = read_settings(paths);
  ended(sending, send_notification(sending, settings ? sendmail_of(*settings) : "", clock));
}

void Notifier::State::ended(const Delivery& sent, const Sent& outcome) {
  const std::optional<Duration> again = outcome.fate == Fate::refused ? retry_after(sent.tries) : std::nullopt;
  if (outcome.fate != Fate::sent)
    warn("the " + std::string(channel_name(sent.channel)) + " for " + subject_of(sent.message) + ": " + sanitize(outcome.why) +
         (again ? "; retrying" : "; giving up"));
  if (outcome.fate != Fate::sent && !again && !sent.message.job_id.empty())
    if (Result<registry::Registry> registry = registry::Registry::open(paths.root))
      (void)registry->note({sent.message.job_id}, clock.wall(),
                           {"notify_failed", "could not notify by " + std::string(channel_name(sent.channel)) + ": " + sanitize(outcome.why), {}, {}});
  const os::MutexLock lock(mutex);
  Delivery* const one = find(sent.message.id, sent.channel, sent.address);
  if (one == nullptr) return;
  if (again) {
    const Duration rest = std::max(*again, std::min(outcome.after.value_or(Duration{}), k_after_max));
    one->sending = one->queued = false;
    one->next = {clock.wall().ms + rest / std::chrono::milliseconds{1}};
  } else {
    journal.open.erase(journal.open.begin() + (one - journal.open.data()));
  }
  save();
}

Notifier::Notifier(os::Loop& loop, os::Clock& clock, Paths paths) : state_(std::make_shared<State>(clock, std::move(paths))) {
  timer_ = loop.every(k_look, [this] {
    if (look_.pending() == 0) look_.submit([state = state_] { state->look(state); });
  });
}

Notifier::~Notifier() = default;

bool Notifier::is_idle() const { return state_->is_idle; }

}  // namespace gridctl::control
