// SPDX-License-Identifier: Apache-2.0
// What people, tools and terminals say and see.
#include <algorithm>
#include <string>

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "base/time.hpp"
#include "config/job_file.hpp"
#include "fuzz/target.hpp"
#include "job/spec.hpp"
#include "job/state.hpp"
#include "probe/vendor.hpp"
#include "registry/registry.hpp"
#include "ssh/encoding.hpp"
#include "ssh/kex_offer.hpp"
#include "ssh/known_hosts.hpp"
#include "ssh/target.hpp"

namespace gridctl {
namespace {

// Reads one character of valid UTF-8; 0 when there is none.
std::size_t utf8_length(std::string_view text, std::uint32_t& code) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80                   ? 1
                             : lead >= 0xc2 && lead < 0xe0 ? 2
                             : lead >= 0xe0 && lead < 0xf0 ? 3
                             : lead >= 0xf0 && lead < 0xf5 ? 4
                                                           : 0;
  if (length == 0 || length > text.size()) return 0;
  code = length == 1 ? lead : lead & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  return overlong || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : length;
}

}  // namespace

FUZZ_TARGET(terminal) {
  const std::string safe = sanitize(input);
  for (std::string_view rest = safe; !rest.empty();) {
    std::uint32_t code = 0;
    const std::size_t length = utf8_length(rest, code);
    PROMISE(length > 0);
    PROMISE(code >= 0x20 || code == '\n' || code == '\t');
    PROMISE(code < 0x7f || code > 0x9f);                                                  // DEL and C1 controls
    PROMISE(code != 0x061c && !(code >= 0x200e && code <= 0x200f));                       // direction marks
    PROMISE(!(code >= 0x202a && code <= 0x202e) && !(code >= 0x2066 && code <= 0x2069));  // overrides, isolates
    rest.remove_prefix(length);
  }
  PROMISE(shell_quote(input).size() >= input.size());
}

FUZZ_TARGET(job_file) {
  config::Context context;
  context.base_directory = "/base";
  context.environment = [](std::string_view name) -> std::optional<std::string> {
    return name.size() % 2 == 0 ? std::optional<std::string>("value") : std::nullopt;
  };
  context.path_kind = [](const std::string& path) { return static_cast<config::PathKind>(path.size() % 3); };
  context.known_providers = {"lab"};
  const Result<config::ParsedJob> parsed = config::parse_job_file(input, "job.yaml", context);
  if (!parsed) {
    PROMISE(parsed.error().code == Code::bad_job_file || parsed.error().code == Code::usage);
    PROMISE(parsed.error().message.find('\n') == std::string::npos);
    return;
  }
  const Result<job::Spec> again = job::parse_spec(job::to_json(parsed->spec));
  PROMISE(again);
  PROMISE(job::to_json(*again) == job::to_json(parsed->spec));
}

FUZZ_TARGET(state_json) {
  if (const Result<job::State> state = job::parse_state(input)) {
    const Result<job::State> again = job::parse_state(job::to_json(*state));
    PROMISE(again && *again == *state);
  }
  static_cast<void>(job::parse_spec(input));
}

// One byte for the vendor, then the tools' outputs, each ended by a byte 0x1e.
FUZZ_TARGET(gpu_tools) {
  if (input.empty()) return;
  const auto& vendor = probe::vendors()[static_cast<unsigned char>(input.front()) % probe::vendors().size()];
  std::string_view rest = input.substr(1);
  std::vector<probe::ToolAnswer> answers;
  for (int round = 0; round < 2; ++round) {
    const auto calls = vendor.ask(answers);
    for (const probe::ToolCall& call : calls) {
      probe::ToolAnswer answer;
      answer.tool = call.argv.at(0);
      const std::size_t end = std::min(rest.find('\x1e'), rest.size());
      answer.found = answer.answered = true;
      answer.exit_code = 0;
      answer.out = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      answers.push_back(std::move(answer));
    }
  }
  const probe::VendorReading reading = vendor.read(answers);
  PROMISE(reading.gpus.size() <= 256);
}

FUZZ_TARGET(ssh_text) {
  if (const Result<ssh::Address> address = ssh::parse_address(input)) {
    PROMISE(!address->host.empty() && address->host.front() != '-');
    PROMISE(address->user.empty() || address->user.front() != '-');
  }
  static_cast<void>(ssh::parse_known_hosts(input, "host"));
  static_cast<void>(ssh::banner_of(input));
  if (const auto offer = ssh::parse_kex_offer(input)) {
    const std::string types[] = {"ssh-ed25519"};
    PROMISE(sanitize(offer->difference(types)) == offer->difference(types));
  }
  if (const auto decoded = ssh::decode_base64(input))
    PROMISE(ssh::decode_base64(ssh::encode_base64(*decoded)) == decoded);
}

FUZZ_TARGET(words) {
  if (const Result<std::uint64_t> size = parse_size(input)) static_cast<void>(format_size(*size));
  static_cast<void>(parse_duration(input));
  static_cast<void>(parse_digest(input));
  static_cast<void>(registry::parse_checkpoint_name(std::string(input)));
  const std::string words[] = {"alpha", "beta"};
  if (input.size() < 200) static_cast<void>(nearest(input, words));
}

}  // namespace gridctl
