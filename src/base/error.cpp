// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/names.hpp"

namespace gridctl {

namespace {
struct CodeName {
  Code code;
  std::string_view name;
  int exit_code;
  Retry retry;
};
// clang-format off
constexpr CodeName k_rows[] = {
    {Code::internal, "internal", 70, Retry::never},
    {Code::usage, "usage", 2, Retry::needs_user},
    {Code::bad_job_file, "bad_job_file", 2, Retry::needs_user},
    {Code::not_found, "not_found", 3, Retry::needs_user},
    {Code::no_provider_fits, "no_provider_fits", 4, Retry::same_host_later},
    {Code::host_unreachable, "host_unreachable", 5, Retry::same_host_later},
    {Code::timed_out, "timed_out", 5, Retry::same_host_later},
    {Code::host_key_mismatch, "host_key_mismatch", 6, Retry::needs_user},
    {Code::auth_refused, "auth_refused", 6, Retry::needs_user},
    {Code::state_in_use, "state_in_use", 7, Retry::same_host_later},
    {Code::state_unreadable, "state_unreadable", 7, Retry::needs_user},
    {Code::checkpoint_damaged, "checkpoint_damaged", 8, Retry::never},
    {Code::cancelled, "cancelled", 9, Retry::never},
    {Code::protocol_violation, "protocol_violation", 5, Retry::other_host},
    {Code::refused, "refused", 5, Retry::other_host},
    {Code::busy, "busy", 5, Retry::other_host},
    {Code::no_space, "no_space", 7, Retry::needs_user},
    {Code::io, "io", 7, Retry::never},
    {Code::engine, "engine", 5, Retry::other_host},
    {Code::unsupported, "unsupported", 2, Retry::never},
    {Code::interrupted, "interrupted", 130, Retry::never},
    {Code::job_failed, "job_failed", 1, Retry::needs_user},
    {Code::exists, "exists", 2, Retry::needs_user},
};
// clang-format on

const CodeName& row_of(Code code) {
  for (const CodeName& row : k_rows)
    if (row.code == code) return row;
  return k_rows[0];
}
}  // namespace

std::string_view code_name(Code code) { return row_of(code).name; }
int exit_code(Code code) { return row_of(code).exit_code; }
Retry default_retry(Code code) { return row_of(code).retry; }

std::string_view retry_name(Retry retry) {
  static constexpr Names<Retry, Retry::needs_user> k_names{"never", "same_host_later", "other_host", "needs_user"};
  return k_names(retry);
}

Error&& Error::with_context(std::string line) && {
  context.push_back(std::move(line));
  return std::move(*this);
}

Error&& Error::with_hint(std::string command) && {
  if (hint.empty()) hint = std::move(command);
  return std::move(*this);
}

std::string Error::one_line() const {
  std::string line = message;
  for (const std::string& part : context) line += " (" + part + ")";
  return line;
}

Error make_error(Code code, std::string message, std::string hint) {
  return Error{code, std::move(message), default_retry(code), std::move(hint), {}};
}

Error errno_error(int err, std::string message) {
  const bool full = err == ENOSPC || err == EDQUOT;
  return make_error(full ? Code::no_space : Code::io, std::move(message) + ": " + std::strerror(err));
}

}  // namespace gridctl
