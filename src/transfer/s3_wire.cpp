// SPDX-License-Identifier: Apache-2.0
#include "transfer/s3_wire.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/text.hpp"
#include "crypto/sha256.hpp"
#include "os/log.hpp"
#include "os/random.hpp"

namespace gridctl::transfer {
namespace {

constexpr std::uint64_t k_error_body_max = 64u << 10;              // bytes; errors have less than 1 KiB
constexpr Duration k_pause_slice = std::chrono::milliseconds{50};  // how soon a cancellation is noticed
constexpr Duration k_skew_least = std::chrono::seconds{2};         // what a correction must change to be one
constexpr unsigned k_fresh_max = 3;                                // changes of credentials within one call

bool fits_host_name(std::string_view bucket) {
  return std::ranges::all_of(bucket,
                             [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

std::string aws_host(const std::string& region) {
  return "s3." + region + ".amazonaws.com" + (region.starts_with("cn-") ? ".cn" : "");
}

// A server might repeat what it was sent.
void hide(std::string& text, const S3Credentials& credentials) {
  for (const std::string* secret : {&credentials.secret_key, &credentials.session_token, &credentials.access_key}) {
    if (secret->size() < 4) continue;  // of such a length it is no secret, and stands in any text
    for (std::size_t at = text.find(*secret); at != std::string::npos; at = text.find(*secret))
      text.replace(at, secret->size(), "***");
  }
}

}  // namespace

Duration S3Skew::now() const {
  const os::MutexLock lock(mutex_);
  return skew_;
}
void S3Skew::set(Duration skew) {
  const os::MutexLock lock(mutex_);
  skew_ = skew;
}

struct S3Wire::Tries {
  unsigned count = 0, fresh = 0;
  std::optional<BootTime> give_up_at;  // from the first failure: a slow upload is none
  bool timed = false;
};

S3Wire::S3Wire(const S3Remote& remote, const S3Options& options, os::Clock& clock, S3Skew& skew)
    : remote_(remote),
      options_(options),
      clock_(clock),
      skew_(skew),
      client_({.ca_bundle = os::environment("AWS_CA_BUNDLE").value_or("")}, clock) {}

S3Message S3Wire::message(const S3Call& call, const S3Login& login) const {
  S3Message out{call.method, remote_.endpoint, "/", call.query, call.headers};
  const bool by_host = remote_.endpoint.empty() && fits_host_name(remote_.bucket);
  if (remote_.endpoint.empty()) out.origin = "https://" + (by_host ? remote_.bucket + "." : "") + aws_host(login.region);
  if (!by_host) out.path += remote_.bucket;
  if (call.bucket) return out;
  if (!by_host) out.path += "/";
  out.path += (remote_.prefix.empty() ? "" : remote_.prefix + "/") + call.name;
  return out;
}

S3Signed S3Wire::signed_now(const S3Call& call, const S3Login& login, const Digest& body) const {
  const WallTime now{clock_.wall().ms + std::chrono::duration_cast<std::chrono::milliseconds>(skew_.now()).count()};
  return sign(message(call, login), login.credentials, {login.region, now}, to_hex(body));
}

Result<S3Signed> S3Wire::signed_for(const S3Call& call, const Digest& body) const {
  TRY_ASSIGN(const S3Login login, find_s3_login(remote_, s3_surroundings()));
  return signed_now(call, login, body);
}

Result<http::Answer> S3Wire::once(const S3Call& call, const S3Login& login) {
  const ByteView body = call.body.value_or(ByteView{});
  S3Signed ready = signed_now(call, login, crypto::sha256(body));
  http::Request request;
  request.method = call.method;
  request.url = std::move(ready.url);
  request.headers = std::move(ready.headers);
  if (call.body) request.body = http::source_of(*call.body);
  request.limits = {.body_max = std::max(call.answer_max, k_error_body_max),
                    .connect_max = options_.connect_max,
                    .stalled_max = options_.stalled_max,
                    .total_max = call.within.value_or(options_.request_max)};
  if (call.progress) request.progress = [&](std::uint64_t sent, std::uint64_t) { return call.progress(sent); };
  return client_.perform(request);
}

bool S3Wire::correct_clock(const http::Answer& answer) {
  const auto date = http::parse_date(answer.header("date"));
  if (!date) return false;
  const Duration skew = std::chrono::milliseconds{date->ms + 500 - clock_.wall().ms};  // it tells whole seconds
  const Duration change = skew - skew_.now();
  if (change < k_skew_least && -change < k_skew_least) return false;
  skew_.set(skew);
  const Duration rounded = std::chrono::abs(std::chrono::round<std::chrono::seconds>(skew));
  const std::string line =
      "the clock of this machine is " + format_duration(rounded) + (skew < Duration::zero() ? " ahead of" : " behind") +
      " that of " + to_url(remote_) + "'s server; requests are signed with the server's time" +
      (lower(remote_.endpoint).starts_with("http://") ? ", which anyone on the network could forge over http://"
                                                     : "");
  if (options_.tell) {
    options_.tell(line);
  } else {
    os::log(os::LogLevel::warn, line);
  }
  return true;
}

// Returns an error if there is no time left.
Result<void> S3Wire::wait(Tries& tries, const S3Call& call, std::optional<Duration> told, const Error& because) {
  const BootTime now = clock_.boot();
  if (!tries.give_up_at) tries.give_up_at = now + call.within.value_or(options_.retry_for);
  const BootTime until = now + std::max(backoff(tries.count, os::random_u64()), told.value_or(Duration::zero()));
  if (until > *tries.give_up_at) {
    Error error = because;
    if (tries.count > 1) error.message += ", " + std::to_string(tries.count) + " times";
    return error;
  }
  while (clock_.boot() < until) {
    if (call.progress && !call.progress(0)) return make_error(Code::cancelled, "stopped");
    os::pause_for(std::min(k_pause_slice, until - clock_.boot()));
  }
  return {};
}

Result<S3Outcome> S3Wire::call(const S3Call& call) {
  Tries tries;
  const S3Surroundings around = s3_surroundings();
  TRY_ASSIGN(S3Login login, find_s3_login(remote_, around));
  for (;;) {
    ++tries.count;
    Result<http::Answer> answer = once(call, login);
    if (!answer) {
      const Code code = answer.error().code;
      if (code != Code::host_unreachable && code != Code::timed_out) return std::move(answer).error();
      TRY(wait(tries, call, std::nullopt, answer.error()));
    } else {
      const bool may_tell = answer->status / 100 != 2 || call.tells_in_xml;
      S3Error told = may_tell ? parse_s3_error(as_text(answer->body)).value_or(S3Error{}) : S3Error{};
      hide(told.message, login.credentials);
      S3Verdict verdict = judge(*answer, told, call.method == "HEAD");
      if (verdict.next == S3Next::take) return S3Outcome{std::move(*answer), std::move(told)};
      if (verdict.next == S3Next::fail) return std::move(verdict.error);
      if (verdict.next == S3Next::again) {
        TRY(wait(tries, call, answer->retry_after, verdict.error));
      }
      if (verdict.next == S3Next::again_timed && (std::exchange(tries.timed, true) || !correct_clock(*answer)))
        return std::move(verdict.error);
      if (verdict.next == S3Next::again_fresh) {
        const S3Credentials before = login.credentials;
        TRY_ASSIGN(login, find_s3_login(remote_, around));
        if (login.credentials == before || ++tries.fresh > k_fresh_max) return std::move(verdict.error);
        continue;
      }
    }
    TRY_ASSIGN(login, find_s3_login(remote_, around));
  }
}

}  // namespace gridctl::transfer
