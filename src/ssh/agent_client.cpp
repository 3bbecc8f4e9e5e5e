// SPDX-License-Identifier: Apache-2.0
#include "ssh/agent_client.hpp"

#include <algorithm>
#include <array>

#include "os/net.hpp"
#include "os/ready.hpp"
#include "ssh/encoding.hpp"

namespace gridctl::ssh {
namespace {

// Message numbers from draft-miller-ssh-agent.
constexpr char k_request_identities = 11, k_identities = 12, k_sign_request = 13, k_sign_response = 14;
constexpr std::size_t k_answer_max = 256 * 1024;  // as OpenSSH's own client
constexpr std::size_t k_keys_max = 64;            // more would not be offered anyway

Error broken(const char* what) { return make_error(Code::io, std::string{"ssh-agent "} + what); }

}  // namespace

Result<AgentClient> AgentClient::open(const os::Path& socket, BootTime deadline, os::Clock& clock) {
  TRY_ASSIGN(os::Fd fd, os::connect_local(socket));
  return AgentClient{std::move(fd), deadline, clock};
}

Result<std::string> AgentClient::ask(std::string_view request) {
  std::string out;
  append_text(out, request);
  std::string in;
  while (true) {
    os::Poll poll{fd_.get(), {.read = out.empty(), .write = !out.empty()}, {}};
    TRY_ASSIGN(const bool ready, os::wait_any({&poll, 1}, deadline_, *clock_));
    if (!ready) return make_error(Code::timed_out, "ssh-agent did not answer in time");
    if (!out.empty()) {
      TRY_ASSIGN(const os::Moved moved, os::write_now(fd_.get(), as_bytes(out)));
      if (moved.closed) return broken("closed the connection");
      out.erase(0, moved.bytes);
      continue;
    }
    std::array<std::byte, 4096> buffer;
    TRY_ASSIGN(const os::Moved moved, os::read_now(fd_.get(), buffer));
    if (moved.closed) return broken("closed the connection");
    in += as_text(ByteView{buffer}.first(moved.bytes));
    FieldReader fields{in};
    const auto size = fields.number();
    if (size && *size > k_answer_max) return broken("sent an answer that is too long");
    if (size && fields.left() >= *size) return std::string{*fields.take(*size)};
  }
}

Result<std::vector<AgentKey>> AgentClient::identities() {
  TRY_ASSIGN(const std::string answer, ask(std::string_view{&k_request_identities, 1}));
  FieldReader fields{answer};
  if (fields.byte() != k_identities) return broken("refused to list its keys");
  const auto count = fields.number();
  if (!count) return broken("sent a malformed answer");
  std::vector<AgentKey> keys;
  for (std::uint32_t i = 0; i < std::min<std::size_t>(*count, k_keys_max); ++i) {
    const auto blob = fields.text();
    const auto comment = fields.text();
    if (!blob || !comment) return broken("sent a malformed answer");
    const auto type = FieldReader{*blob}.text();
    if (type) keys.push_back({std::string{*type}, std::string{*blob}, std::string{*comment}});
  }
  return keys;
}

Result<std::string> AgentClient::sign(const AgentKey& key, std::string_view data) {
  std::string request{k_sign_request};
  append_text(request, key.blob);
  append_text(request, data);
  append_number(request, 0);
  TRY_ASSIGN(const std::string answer, ask(request));
  FieldReader fields{answer};
  if (fields.byte() != k_sign_response) return broken("refused to sign");
  const auto wrapped = fields.text();
  if (!wrapped) return broken("sent a malformed signature");
  FieldReader signature{*wrapped};
  const auto type = signature.text();
  const auto bare = signature.text();
  if (!type || !bare) return broken("sent a malformed signature");
  return std::string{*bare};
}

}  // namespace gridctl::ssh
