// SPDX-License-Identifier: Apache-2.0
// Makes a host upload a pack of its own checkpoint to the place in a signed request.
#pragma once

#include <functional>

#include "os/clock.hpp"
#include "store/recipe.hpp"
#include "wire/frame.hpp"
#include "wire/upload.hpp"

namespace gridctl::transfer {

// Uploads from the host; its word proves nothing: callers that need certainty ask the remote. `go_on` is asked every
// few seconds; false: cancelled. `longest`: for the sending; the host gives up before. After an error other than the
// host's own answers, the link is in an unknown state: close it, which ends the work in progress there.
[[nodiscard]] Result<void> upload_from_host(wire::Link& link, const os::Clock& clock, wire::UploadRequest request,
                                            const store::PackRecipe& recipe, Duration longest,
                                            const std::function<bool()>& go_on = {});

}  // namespace gridctl::transfer
