// SPDX-License-Identifier: Apache-2.0
// Converts errors to and from their form on the wire.

#include "base/text.hpp"
#include "wire/coding.hpp"

namespace gridctl {

namespace {
constexpr int k_code_scan_max = 255;         // codes are small and dense
constexpr std::size_t k_message_max = 4096;  // bytes of an error's text that are kept
}  // namespace

// A hint is a command that we tell the user to type: a hint from a host is dropped, however plain it looks.
template <class R>
void fields(R& r, Of<R, Error>& m) {
  std::string message;
  if constexpr (!R::reads) {
    message = m.one_line().substr(0, k_message_max);
    r("hint", m.hint.substr(0, k_message_max));
  }
  r.word_or("code", m.code, code_name, scan(code_name, static_cast<Code>(k_code_scan_max)), Code::protocol_violation);
  r("message", message);
  r.word_or("retry", m.retry, retry_name, scan(retry_name, Retry::needs_user), m.retry);
  if constexpr (R::reads) {
    m.message = sanitize(message, k_message_max);
  }
}
GRIDCTL_FIELDS(Error)

}  // namespace gridctl

namespace gridctl::wire {

struct ErrorRecord {
  std::optional<Error> error;
};

template <class R>
void fields(R& r, Of<R, ErrorRecord>& m) {
  r.maybe("error", m.error);
}

std::string error_payload(const Error& error) { return write_record(ErrorRecord{error}); }

std::optional<Error> payload_error(std::string_view payload) {
  // Most replies are not errors, and the caller parses them: they are not parsed twice. A name may also be written in
  // escapes.
  const bool is_named = payload.find("error\"") != std::string_view::npos;  // every second byte of JSON is a quote
  if (!is_named && payload.find('\\') == std::string_view::npos) return std::nullopt;
  const Result<ErrorRecord> read = parse_message<ErrorRecord>(payload, "reply");
  if (read) return read->error;
  // A payload that claims to be an error and cannot be read is an error; one that is not JSON at all fails where it is
  // parsed.
  if (is_named) return read.error();
  return std::nullopt;
}

}  // namespace gridctl::wire
