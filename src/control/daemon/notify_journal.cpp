// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/notify_journal.hpp"

#include <array>
#include <nlohmann/json.hpp>

#include "base/names.hpp"
#include "base/record.hpp"
#include "base/text.hpp"

namespace gridctl::control {

namespace {
using namespace std::chrono_literals;
constexpr Names<Channel, Channel::mail> k_channels{"command", "webhook", "mail"};
constexpr std::array<Duration, 5> k_retries{2s, 10s, 30s, 2min, 10min};
}  // namespace

std::string_view channel_name(Channel channel) { return k_channels(channel); }

std::optional<Duration> retry_after(std::uint64_t tries) {
  if (tries == 0 || tries > k_retries.size()) return std::nullopt;
  return k_retries[tries - 1];
}

std::string to_line(const Message& message) {
  if (message.job_id.empty()) return sanitize("host " + message.provider + ": " + message.text);
  return sanitize(message.job_name + " (" + message.job_id + ") " + (message.notice == job::Notice::move ? "runs again" : message.kind) +
                  (message.text.empty() ? "" : ": " + message.text));
}

std::string to_json(const Message& message) {
  const auto or_null = [](const std::string& text) { return text.empty() ? nlohmann::json() : nlohmann::json(text); };
  const std::string line = to_line(message);
  return nlohmann::ordered_json{{"id", message.id},
                                {"notice", std::string(job::notice_name(message.notice))},
                                {"job_id", or_null(message.job_id)},
                                {"name", or_null(message.job_name)},
                                {"state", or_null(message.state)},
                                {"provider", or_null(message.provider)},
                                {"kind", message.kind},
                                {"at", format_rfc3339(message.at)},
                                {"text", line},
                                {"content", line}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

template <class R>
void fields(R& r, Of<R, Message>& m) {
  r("id", m.id).word("notice", m.notice, job::notice_name, scan(job::notice_name, job::Notice::silence));
  r("job_id", m.job_id)("job_name", m.job_name)("state", m.state);
  r("provider", m.provider)("kind", m.kind)("text", m.text)("at_ms", m.at);
}

template <class R>
void fields(R& r, Of<R, Delivery>& m) {
  r("message", m.message).word("channel", m.channel, channel_name, scan(channel_name, Channel::mail));
  r("address", m.address)("tries", m.tries)("next_ms", m.next)("sending", m.sending);
}

template <class R>
void fields(R& r, Of<R, NotifyJournal>& m) {
  r("event", m.event)("host_event", m.host_event)("open", m.open);
}

Result<NotifyJournal> NotifyJournal::read(const os::Path& file, std::vector<Delivery>& doubtful) {
  TRY_ASSIGN(const std::string text, os::read_file(file, 64u << 20));
  TRY_ASSIGN(NotifyJournal journal, read_record<NotifyJournal>(text, "the journal of notifications", k_lenient_rules, Code::state_unreadable));
  for (const Delivery& one : journal.open)
    if (one.sending) doubtful.push_back(one);
  std::erase_if(journal.open, [](const Delivery& one) { return one.sending; });
  return journal;
}

Result<void> NotifyJournal::write(const os::Path& file) const { return os::write_file_durably(file, write_record(*this)); }

}  // namespace gridctl::control
