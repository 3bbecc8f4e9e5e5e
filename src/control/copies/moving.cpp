// SPDX-License-Identifier: Apache-2.0
#include "control/copies/moving.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "base/record.hpp"
#include "base/text.hpp"
#include "os/entries.hpp"

namespace gridctl::control {

namespace {
constexpr std::int64_t k_silent_ms = 1000;  // a shorter transfer is not shown
constexpr std::int64_t k_write_ms = 500;    // between two writes
constexpr std::int64_t k_stale_ms = 10'000;
constexpr std::size_t k_file_max = 4096;
}  // namespace

template <class R>
void fields(R& r, Of<R, Moving>& m) {
  r("host", m.host)("up", m.up)("bytes", m.bytes)("of", m.of)("began_ms", m.began)("at_ms", m.at);
}

double Moving::per_second() const {
  return static_cast<double>(bytes) * 1000 / static_cast<double>(std::max<std::int64_t>(at.ms - began.ms, 1));
}

std::string in_words(const Moving& moving) {
  const double rate = moving.per_second();
  std::string text = std::string(moving.up ? "sends " : "fetches ") + format_size(moving.bytes) + " of " +
                     format_size(moving.of) + (moving.up ? " to " : " from ") + sanitize(moving.host) + ", " +
                     format_size(static_cast<std::uint64_t>(rate)) + "/s";
  if (rate >= 1 && moving.of > moving.bytes)
    text += ", " + format_duration(std::chrono::seconds{static_cast<std::int64_t>(
                       static_cast<double>(moving.of - moving.bytes) / rate + 1)}) + " left";
  return text;
}

std::vector<Moving> moving_now(const Paths& paths, const JobId& job, WallTime now) {
  std::vector<Moving> found;
  const Result<std::vector<std::string>> names = os::list_directory(paths.moving());
  if (!names) return found;
  for (const std::string& name : *names) {
    if (!name.starts_with(job.value + ".")) continue;
    const Result<std::string> text = os::read_file(paths.moving() / name, k_file_max);
    if (!text) continue;  // it is over
    Result<Moving> one = read_record<Moving>(*text, "a transfer", k_lenient_rules, Code::state_unreadable);
    if (one && now.ms - one->at.ms < k_stale_ms) found.push_back(*std::move(one));
  }
  return found;
}

MovingFile::MovingFile(const Paths& paths, const JobId& job, const HostName& host, bool up, os::Clock& clock)
    : path_(job.value.empty() ? os::Path() : paths.moving() / (job.value + "." + host.value + (up ? ".up" : ".down"))),
      clock_(clock),
      moving_{host.value, up, 0, 0, clock.wall(), clock.wall()} {}

MovingFile::~MovingFile() {
  if (written_) (void)os::remove_file(path_);
}

void MovingFile::moved(std::uint64_t bytes, std::uint64_t of) {
  const WallTime now = clock_.wall();
  if (path_.empty() || now.ms - moving_.at.ms < (written_ ? k_write_ms : k_silent_ms)) return;
  moving_.bytes = std::min(bytes, of);
  moving_.of = of;
  moving_.at = now;
  if (!written_) (void)os::make_directories(path_.parent_path());
  written_ = os::write_file_atomically(path_, write_record(moving_)).has_value() || written_;
}

}  // namespace gridctl::control
