// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.hpp"
#include "transfer/s3_wire.hpp"

namespace gridctl::transfer {
namespace {

constexpr Duration k_backoff_first = std::chrono::milliseconds{200};  // a slot that a busy server may have by then
constexpr Duration k_backoff_max = std::chrono::seconds{20};          // longer would only lose time when it is back

bool is_passing(int status, const S3Error& error) {
  return status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504) ||
         // BadDigest and similar codes mean that our bytes were changed in transit.
         is_one_of(error.code,
                   {"InternalError", "SlowDown", "ServiceUnavailable", "RequestTimeout", "OperationAborted",
                    "ConditionalRequestConflict", "BadDigest", "XAmzContentSHA256Mismatch", "IncompleteBody"});
}

Error with_retry(Error error, Retry retry) {
  error.retry = retry;
  return error;
}

// States where the bucket is, if it is in another region.
Error wrong_region(const http::Answer& answer, const S3Error& error) {
  const std::string_view header = answer.header("x-amz-bucket-region");
  const std::string_view region = is_s3_region(header) ? header : std::string_view(error.region);
  if (!is_s3_region(region)) return make_error(Code::auth_refused, answered(answer, error));
  return make_error(Code::auth_refused,
                    "the bucket is in the region " + std::string(region) + " (" + answered(answer, error) + ")",
                    "gridctl store add NAME s3://… --region " + std::string(region));
}

S3Verdict refused(const http::Answer& answer, const S3Error& error) {
  const auto fail = [](Error why) { return S3Verdict{S3Next::fail, std::move(why)}; };
  const std::string text = answered(answer, error);
  if (is_one_of(error.code, {"ExpiredToken", "RequestExpired", "TokenRefreshRequired", "InvalidToken"}))
    return {S3Next::again_fresh,
            make_error(Code::auth_refused, "the credentials have expired (" + text + ")", "aws sso login")};
  if (error.code == "RequestTimeTooSkewed")
    return {S3Next::again_timed, make_error(Code::auth_refused, "the clock of this machine is wrong (" + text + ")")};
  if (answer.status == 507 || is_one_of(error.code, {"QuotaExceeded", "XMinioStorageFull", "InsufficientStorage"}))
    return fail(make_error(Code::no_space, "the remote is full (" + text + ")"));
  if (error.code == "NoSuchBucket")
    return fail(with_retry(make_error(Code::io, "the bucket does not exist (" + text + ")"), Retry::needs_user));
  if (answer.status == 307) return fail(make_error(Code::host_unreachable, text));  // a bucket that is new: later
  if (answer.status / 100 == 3 || error.code == "AuthorizationHeaderMalformed")
    return fail(wrong_region(answer, error));
  if (is_one_of(error.code, {"InvalidAccessKeyId", "SignatureDoesNotMatch"}) || answer.status == 401)
    return fail(make_error(Code::auth_refused, "the credentials are not accepted (" + text + ")", "aws configure"));
  if (answer.status == 403 || error.code == "AccessDenied")
    return fail(make_error(Code::auth_refused, "the credentials do not allow this (" + text + ")"));
  return fail(make_error(Code::protocol_violation, text));
}

}  // namespace

std::string answered(const http::Answer& answer, const S3Error& error) {
  std::string text = "the server answered " + std::to_string(answer.status);
  if (!error.code.empty()) text += " " + error.code;
  if (!error.message.empty()) text += ": " + error.message;
  return text;
}

S3Verdict judge(const http::Answer& answer, const S3Error& error, bool head) {
  if (answer.status / 100 == 2 && error.code.empty()) return {};
  if (is_passing(answer.status, error))
    return {S3Next::again, make_error(Code::host_unreachable, answered(answer, error))};
  if (head) return {};
  const bool not_there = answer.status == 404 && is_one_of(error.code, {"NoSuchKey", "NoSuchUpload"});
  if (not_there || is_one_of(std::to_string(answer.status), {"304", "405", "412", "416", "501"})) return {};
  return refused(answer, error);
}

Duration backoff(unsigned tries, std::uint64_t random) {
  const Duration bound = std::min(k_backoff_max, k_backoff_first * (std::int64_t{1} << std::min(tries, 10u)));
  const auto share = static_cast<double>(random) / static_cast<double>(UINT64_MAX);
  return Duration{static_cast<std::int64_t>(static_cast<double>(bound.count()) * share)};
}

}  // namespace gridctl::transfer
