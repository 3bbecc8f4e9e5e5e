// SPDX-License-Identifier: Apache-2.0
// Reads answers of registries of container images (OCI Distribution 1.1): challenges, tokens, manifests. Pure; nothing
// in them is trusted.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace gridctl::images {

// Media types of manifests and of indexes of them, for the header Accept.
[[nodiscard]] std::string accepted_types();

// Holds what `WWW-Authenticate: Bearer realm="…",service="…"` asks for.
struct Challenge {
  std::string realm;  // URL of the token server
  std::string service;
};
// nullopt: no challenge for bearer tokens, or one without a realm.
[[nodiscard]] std::optional<Challenge> parse_challenge(std::string_view header);
// Returns the URL that gives a token for pulls from the repository.
[[nodiscard]] std::string token_url(const Challenge& challenge, std::string_view repository);
// protocol_violation: no token that fits into a header.
[[nodiscard]] Result<std::string> parse_token(std::string_view body);

// Returns the digest of a manifest or index, as hashed from its bytes. protocol_violation: these are neither, as when a
// login page of a network answers; or `told`, the digest in the answer's headers, is another one. Empty: not told.
[[nodiscard]] Result<std::string> digest_of_manifest(std::string_view media_type, ByteView body, std::string_view told);

}  // namespace gridctl::images
