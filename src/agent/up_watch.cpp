// SPDX-License-Identifier: Apache-2.0
#include "agent/up_watch.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "agent/guest_receipts.hpp"
#include "agent/owner_terms.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "os/log.hpp"
#include "os/process.hpp"
#include "os/shaping.hpp"

namespace gridctl::agent {

namespace {

constexpr Duration k_up_look = std::chrono::milliseconds{250}, k_up_terms_look = std::chrono::seconds{1};
constexpr Duration k_shape_wait = std::chrono::seconds{5};
constexpr std::uint64_t k_devices_bytes = 64 * 1024;
constexpr std::uint64_t k_much = 2;         // a sender that used half of its share would have used more: TCP leaves gaps
constexpr std::uint64_t k_same = 20;        // a share that changed by less than a twentieth is not set anew
constexpr std::uint64_t k_bits = 8;

std::uint64_t sent_by(int pid) {
  const auto text = os::read_file("/proc/" + std::to_string(pid) + "/net/dev", k_devices_bytes);
  return text ? parse_network_devices(*text).sent : 0;
}

}  // namespace

int shape_command(std::span<char* const> arguments) {
  const auto pid = arguments.size() == 2 ? parse_number<int>(arguments[0]) : std::nullopt;
  const auto rate = arguments.size() == 2 ? parse_number<std::uint64_t>(arguments[1]) : std::nullopt;
  if (!pid || !rate) return 2;
  const Result<void> done = os::shape_network_of(*pid, *rate);
  if (done) return 0;
  std::fprintf(stderr, "gridctl-agent: %s\n", done.error().message.c_str());
  return 1;
}

UpWatch::UpWatch(AttemptDir attempt, int payload_pid, os::Clock& clock)
    : attempt_(std::move(attempt)), pid_(payload_pid), clock_(clock),
      shared_(attempt_.agent_home() / wire::k_up_file, "job." + std::to_string(payload_pid), os::SharedRate::Kind::gaps, clock) {
  thread_ = std::thread([this] { watch(); });
}

UpWatch::~UpWatch() {
  {
    const os::MutexLock lock(mutex_);
    ends_ = true;
    wake_.notify_all();
  }
  thread_.join();
}

void UpWatch::watch() {
  for (;;) {
    look();
    const os::MutexLock lock(mutex_);
    if (!ends_) wake_.wait_for(mutex_, limit_ ? k_up_look : k_up_terms_look);
    if (ends_) return;
  }
}

// The owner may change the limit at any time. Terms that cannot be read leave it as it was.
void UpWatch::look() {
  const BootTime now = clock_.boot();
  if (now >= terms_at_) {
    terms_at_ = now + k_up_terms_look;
    const auto owner = owner_terms(attempt_.agent_home(), attempt_.controller());
    if (owner) limit_ = *owner && (*owner)->terms.up_bits ? std::optional{*(*owner)->terms.up_bits / k_bits} : std::nullopt;
  }
  const std::uint64_t sent = sent_by(pid_);
  if (!limit_) {
    shared_.leave();
    if (held_ > 0) hold(0);
  } else {
    const std::int64_t ms = looked_.ns == 0 ? 0 : (now - looked_).count() / 1'000'000;
    const std::uint64_t used = ms > 0 && sent > sent_ ? (sent - sent_) * 1000 / static_cast<std::uint64_t>(ms) : 0;
    const std::uint64_t share = shared_.share_of(*limit_, used, held_ > 0 && used >= held_ / k_much);
    if ((share > held_ ? share - held_ : held_ - share) > held_ / k_same) hold(share);
  }
  sent_ = sent;
  looked_ = now;
}

// A process of its own enters the container's network: this one has threads.
void UpWatch::hold(std::uint64_t bytes_per_second) {
  const auto self = os::executable_path();
  os::RunOptions options;
  options.timeout = k_shape_wait;
  const auto outcome = self ? os::run({self->string(), std::string(k_shape_command), std::to_string(pid_), std::to_string(bytes_per_second)}, options)
                            : Result<os::RunOutcome>(self.error());
  const bool done = outcome && outcome->status.success();
  if (done) held_ = bytes_per_second;
  if (!std::exchange(failed_, !done) && !done)
    os::log(os::LogLevel::warn, "what the job sends is not held: " + (outcome ? sanitize(trim(outcome->err), 300) : outcome.error().one_line()));
}

}  // namespace gridctl::agent
