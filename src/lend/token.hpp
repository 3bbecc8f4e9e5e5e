// SPDX-License-Identifier: Apache-2.0
// An invitation, as one line of text: everything that the machine of its owner needs to be reached by one researcher.
// gridctl-lend(7).
#pragma once

#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "ssh/target.hpp"

namespace gridctl::lend {

struct Token {
  std::string name;          // of the provider, as the researcher calls it
  std::string who;           // "alice@laptop"
  std::string id;            // of this invitation; a safe file name
  ControllerId controller;   // of the researcher
  std::string relay;         // "user@host:port" with an SSH server that both sides reach
  ssh::HostKey relay_key;    // Ed25519
  Digest secret{};           // all keys of the two sides come from it
  WallTime expires;          // for joining; a machine that has joined stays
};

[[nodiscard]] std::string encode(const Token& token);
// usage: no token, cut off, changed, or of a later version; each in words for its owner. White space and line breaks
// that a mail has added are borne.
[[nodiscard]] Result<Token> parse_token(std::string_view text);

}  // namespace gridctl::lend
