// SPDX-License-Identifier: Apache-2.0
// Asks the registry of an image which digest its tag has now, without a login (OCI Distribution 1.1). Over TLS; only a
// registry on this machine's own loopback is asked without.
#pragma once

#include <functional>
#include <string>

#include "base/result.hpp"
#include "base/time.hpp"
#include "http/client.hpp"
#include "job/image_reference.hpp"
#include "os/clock.hpp"

namespace gridctl::images {

using Exchange = std::function<Result<http::Answer>(const http::Request&)>;

// Returns "sha256:…", the hash of the bytes that the registry sent for the tag. Blocks until `deadline` at most. Errors
// name the registry: not_found, auth_refused (private, or unknown there), protocol_violation, timed_out, and those of
// http::Client. usage: the image has no registry.
[[nodiscard]] Result<std::string> ask_digest(const job::ImageReference& image, BootTime deadline, os::Clock& clock, const Exchange& exchange);
// Asks over libcurl, and takes no longer than `within` in all.
[[nodiscard]] Result<std::string> ask_digest(const job::ImageReference& image, Duration within, os::Clock& clock);

}  // namespace gridctl::images
