// SPDX-License-Identifier: Apache-2.0
// Implements the state machine of a service's replica: no end of its program is final, and a replica that never becomes
// ready ends.
#include <algorithm>

#include "job/state_step.hpp"

namespace gridctl::job {

namespace {
constexpr Duration k_served_long = std::chrono::minutes{1};
constexpr int k_hopeless_starts = 3;  // of a command that the shell does not find
constexpr Duration k_retry_min = std::chrono::minutes{1}, k_retry_max = std::chrono::hours{1};
constexpr int k_doublings_max = 6;
constexpr std::size_t k_failures_kept = 200;
}  // namespace

void Stepper::operator()(const ServerReady& event) {
  if (!s().policy.endless || std::holds_alternative<Done>(s().phase)) return;
  const Attempt* const attempt = current(event.epoch);
  if (attempt != nullptr && s().ready.epoch != event.epoch) {
    s().ready.epoch = event.epoch;
    record("server_ready", "the server on " + attempt->where() + " is ready", event.epoch, attempt->lead().host);
  }
  if (attempt != nullptr || event.epoch == Epoch{}) s().ready.proven = true;
}

void Stepper::operator()(const ServerReplaced& event) {
  const Attempt* const attempt = current(event.epoch);
  if (attempt == nullptr || (phase<Running>() == nullptr && phase<Launching>() == nullptr)) return;
  stop_for_move(Attempt{*attempt}, std::string(event.sleeps ? k_for_sleep : k_for_update),
                event.sleeps ? "no requests: the service goes to sleep" : "a new version of the service replaces it");
}

// A service that was ready once is retried for ever, ever more rarely: a failed start costs money too.
void Stepper::serve_again(const Attempt& attempt, const End& end) {
  const HostName host = attempt.lead().host;
  const bool was_ready = s().ready.epoch == attempt.epoch;
  const WallTime ended = ended_at(attempt);
  if (was_ready && ended - attempt.started_at.value_or(ended) >= k_served_long) {
    s().failures.clear();
    s().restarts_in_row = 0;
  }
  s().recovering = true;
  if (s().failures.size() < k_failures_kept) s().failures.push_back({host, end.exit_code, end.signal, {}, end.last});
  const int count = static_cast<int>(s().failures.size()), most = std::max(s().policy.max_failures, 1);
  const bool hopeless = !never_works(end).empty() && count >= k_hopeless_starts;
  std::string text = std::string(was_ready ? "the server ended: " : "the server ended before it was ready: ") +
                     in_words(end) + " (failure " + std::to_string(count) + " in a row";
  if (!s().ready.proven) text += ", of at most " + std::to_string(most);
  text += ")";
  if (!s().ready.proven && (count >= most || hopeless))
    return done(JobState::failed, std::nullopt, "never_ready", "no replica of the service was ever ready; " + text);
  if (count > 1) avoid(host, "the server ended there: " + in_words(end));
  record("server_ended", text, attempt.epoch, host);
  wait("server_ended", std::move(text));
  if (count <= most) return;
  const Duration rest =
      std::min(k_retry_min * (1 << std::min(count - most - 1, k_doublings_max)), Duration{k_retry_max});
  Waiting* const waiting = phase<Waiting>();
  waiting->backoff = rest;
  waiting->until = at_ + rest;
}

}  // namespace gridctl::job
