// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/notify_send.hpp"

#include "base/text.hpp"
#include "http/client.hpp"
#include "os/entries.hpp"
#include "os/process.hpp"

namespace gridctl::control {

namespace {
using namespace std::chrono_literals;
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
}  // namespace

Sent send_notification(const Delivery& delivery, const std::string& sendmail, os::Clock& clock) {
  switch (delivery.channel) {
    case Channel::command: return run_command(delivery);
    case Channel::webhook: return post(delivery, clock);
    case Channel::mail: return mail(delivery, sendmail);
  }
  return {Fate::lost, "unknown channel"};
}

}  // namespace gridctl::control
