// SPDX-License-Identifier: Apache-2.0
// Asks registries which digest a tag has, as an interface.
#pragma once

#include <string>

#include "base/result.hpp"
#include "base/time.hpp"
#include "images/ask_digest.hpp"
#include "os/clock.hpp"

namespace gridctl::control {

// A person waits for it; a registry that is well answers within a second or two, with its token server.
inline constexpr Duration k_registry_wait = std::chrono::seconds{10};

class ImageRegistries {
 public:
  virtual ~ImageRegistries() = default;
  // Returns "sha256:…". Blocks for k_registry_wait at most; from any thread.
  [[nodiscard]] virtual Result<std::string> digest_of(const job::ImageReference& image) = 0;
};

class HttpImageRegistries final : public ImageRegistries {
 public:
  [[nodiscard]] Result<std::string> digest_of(const job::ImageReference& image) override {
    return images::ask_digest(image, k_registry_wait, os::system_clock());
  }
};

}  // namespace gridctl::control
