// SPDX-License-Identifier: Apache-2.0
#include "ssh/tokens.hpp"

namespace gridctl::ssh {
namespace {

std::optional<std::string> value_of(char token, const TokenValues& values) {
  switch (token) {
    case '%': return "%";
    case 'd': return values.home;
    case 'h': return values.host;
    case 'i': return values.uid;
    case 'k': return values.alias;  // without HostKeyAlias, which names no key files in practice
    case 'L': return values.local_host.substr(0, values.local_host.find('.'));
    case 'l': return values.local_host;
    case 'n': return values.alias;
    case 'p': return values.port;
    case 'r': return values.user;
    case 'u': return values.local_user;
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<std::string> expand_tokens(std::string_view text, const TokenValues& values) {
  std::string out;
  if (text.starts_with('~')) {
    if (text.size() > 1 && text[1] != '/') return std::nullopt;
    out = values.home;
    text.remove_prefix(1);
  }
  while (!text.empty()) {
    if (text.starts_with("${")) {
      const std::size_t end = text.find('}');
      if (end == std::string_view::npos) return std::nullopt;
      const auto value = values.variable(text.substr(2, end - 2));
      if (!value) return std::nullopt;
      out += *value;
      text.remove_prefix(end + 1);
    } else if (text.front() == '%') {
      const auto value = text.size() > 1 ? value_of(text[1], values) : std::nullopt;
      if (!value) return std::nullopt;
      out += *value;
      text.remove_prefix(2);
    } else {
      out += text.front();
      text.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace gridctl::ssh
