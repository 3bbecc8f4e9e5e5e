// SPDX-License-Identifier: Apache-2.0
#include "control/serve/command_probe.hpp"

#include <array>
#include <utility>

#include "base/text.hpp"
#include "os/ready.hpp"

namespace gridctl::control {

namespace {
constexpr int k_rise = 2, k_fall = 2;
constexpr std::size_t k_said_max = 1024, k_shown_max = 120;  // bytes
}  // namespace

void CommandVerdict::passed() {
  failures_ = 0;
  if (++passes_ >= k_rise) unfit_.clear();
}

void CommandVerdict::failed(const std::string& why) {
  passes_ = 0;
  if (++failures_ >= k_fall || !unfit_.empty()) unfit_ = "the probe's command: " + why;
}

std::string probe_failure(const wire::StreamEnd& end, std::string_view output) {
  if (end.error) return end.error->one_line();
  const std::string how = end.signal ? "ended by signal " + std::to_string(*end.signal)
                                     : "exit code " + std::to_string(end.exit_code.value_or(0));
  output = trim(output);
  const std::string last(output.substr(output.find_last_of('\n') + 1));
  return how + (last.empty() ? "" : ": " + sanitize(last.substr(0, k_shown_max)));
}

CommandProbe::CommandProbe(os::Loop& loop, const job::Service& service, ReplicaWay& way)
    : loop_(loop), service_(service), way_(way) {}

void CommandProbe::tick(BootTime now) {
  if (!has_command()) return;
  if (way_.epoch() != epoch_) {
    give_up();
    epoch_ = way_.epoch();
    verdict_ = {};
    started_ = {};
  }
  if (stream_ != 0 && now - started_ > service_.timeout) {
    give_up();
    verdict_.failed("did not end within " + format_duration(service_.timeout));
  }
  if (stream_ == 0 && way_.is_open() && now - started_ >= service_.every) start(now);
}

void CommandProbe::start(BootTime now) {
  started_ = now;
  said_.clear();
  auto pipe = os::make_pipe();
  const Result<void> ready = pipe ? os::set_nonblocking(pipe->first.get()) : Result<void>(pipe.error());
  if (!ready) return verdict_.failed(ready.error().one_line());
  output_ = std::move(pipe->first);
  output_watch_ = loop_.watch(output_.get(), {true, false}, [this](os::Interest) { read_output(); });
  wire::StreamOpen open;
  open.command = {"/bin/sh", "-c", service_.probe_command};
  transfer::StreamEnds ends;
  ends.sink = std::move(pipe->second);
  transfer::StreamEvents events;
  events.closed = [this, run = ++run_](const wire::StreamEnd& end) {
    if (run != run_) return;
    read_output();
    const bool passed = !end.error && !end.signal && end.exit_code.value_or(0) == 0;
    if (passed) verdict_.passed();
    else verdict_.failed(probe_failure(end, said_));
    give_up();
  };
  stream_ = way_.run(open, std::move(ends), std::move(events));
}

void CommandProbe::give_up() {
  ++run_;
  if (const std::uint32_t stream = std::exchange(stream_, 0); stream != 0)
    way_.end(stream, make_error(Code::cancelled, "the probe has ended"));
  output_watch_.reset();
  output_.reset();
}

void CommandProbe::read_output() {
  std::array<std::byte, 4096> bytes{};
  while (output_.valid()) {
    const Result<os::Moved> moved = os::read_now(output_.get(), bytes);
    if (!moved || moved->bytes == 0) {
      if (!moved || moved->closed) output_watch_.reset();
      return;
    }
    said_.append(as_text(std::span(bytes).first(moved->bytes)));
    if (said_.size() > k_said_max) said_.erase(0, said_.size() - k_said_max);
  }
}

}  // namespace gridctl::control
