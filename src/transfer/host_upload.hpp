// SPDX-License-Identifier: Apache-2.0
// Has a host put a pack of its own checkpoint where a signed request says.
#pragma once

#include <functional>

#include "os/clock.hpp"
#include "store/recipe.hpp"
#include "wire/frame.hpp"
#include "wire/upload.hpp"

namespace gridctl::transfer {

// What the host says proves nothing: whoever needs to know asks the remote. `go_on` is asked every few seconds; false:
// cancelled. `longest`: for the sending; the host gives up by itself before. After an error but those that the host
// answers with, the link is in an unknown state: close it, which ends what is under way there.
[[nodiscard]] Result<void> upload_from_host(wire::Link& link, const os::Clock& clock, wire::UploadRequest request,
                                            const store::PackRecipe& recipe, Duration longest,
                                            const std::function<bool()>& go_on = {});

}  // namespace gridctl::transfer
