// SPDX-License-Identifier: Apache-2.0
// Errors as they travel.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "wire/fields.hpp"

namespace gridctl::wire {

using nlohmann::json;

namespace {
constexpr std::uint16_t k_code_scan_max = 255;  // codes are small and dense
constexpr std::size_t k_message_max = 4096;     // bytes of an error's text that are kept

Code code_named(std::string_view name) {
  for (std::uint16_t number = 1; number <= k_code_scan_max; ++number)
    if (code_name(static_cast<Code>(number)) == name) return static_cast<Code>(number);
  return Code::protocol_violation;
}
}  // namespace

json error_json(const Error& error) {
  return {{"code", code_name(error.code)},
          {"message", error.one_line().substr(0, k_message_max)},
          {"hint", error.hint.substr(0, k_message_max)},
          {"retry", retry_name(error.retry)}};
}

Error read_error(const Fields& fields) {
  Error error = make_error(code_named(fields.text("code")), sanitize(fields.text("message"), k_message_max));
  // An error is one line wherever it is shown.
  std::replace(error.message.begin(), error.message.end(), '\n', ' ');
  // A hint is a command that we tell the user to type: a host's is no hint, however plain it looks.
  if (fields.has("retry"))
    for (const Retry retry : {Retry::never, Retry::same_host_later, Retry::other_host, Retry::needs_user})
      if (retry_name(retry) == fields.text("retry")) error.retry = retry;
  return error;
}

std::string error_payload(const Error& error) { return dump({{"error", error_json(error)}}); }

std::optional<Error> payload_error(std::string_view payload) {
  std::optional<Error> error;
  const Result<void> read = read_object(payload, "reply", [&](const Fields& fields) {
    if (fields.has("error")) error = read_error(fields.object("error"));
  });
  // Something that claims to be an error and cannot be read is one; what is no JSON at all fails where it is parsed.
  if (!read && payload.find("\"error\"") != std::string_view::npos) return read.error();
  return error;
}

}  // namespace gridctl::wire
