// SPDX-License-Identifier: Apache-2.0
// The registries of container images in the simulated world: their tags move, and for a while they are silent, refuse,
// do not know an image, or send what is none. SimImages is what a daemon asks in place of them.
#pragma once

#include <string>
#include <vector>

#include "control/reach/image_registries.hpp"
#include "executor.hpp"
#include "world.hpp"

namespace gridctl::sim {

class ImageHub {
 public:
  enum class Trouble : std::uint8_t { silent, refused, unknown, nonsense, slow };
  static constexpr int k_registries = 2;

  explicit ImageHub(World& world) : world_(world), troubles_(k_registries), well_since_(k_registries), versions_(static_cast<std::size_t>(world.options.images)) {}
  // As a job file writes it: a tag.
  [[nodiscard]] static std::string written(int image);
  [[nodiscard]] static std::string registry(int image) { return "reg" + std::to_string(image % k_registries) + ".example"; }
  [[nodiscard]] int index_of(const std::string& written) const;  // -1: none of this world
  // Returns the digest that the tag has now.
  [[nodiscard]] std::string digest(int image) const;

  void begin(int registry, Trouble trouble);
  void end(int registry, Trouble trouble);
  void heal();
  void move_tag(int image);
  [[nodiscard]] std::optional<Trouble> trouble(int image) const;
  // Since when its registry answers in good time; nullopt: it does not.
  [[nodiscard]] std::optional<Nanos> well_since(int image) const;
  std::uint64_t asked = 0;

 private:
  World& world_;
  std::vector<std::vector<Trouble>> troubles_;  // by registry; those that last
  std::vector<Nanos> well_since_;
  std::vector<int> versions_;  // of the tags
};

class SimImages : public control::ImageRegistries {
 public:
  SimImages(World& world, SimExecutor& run, int laptop) : world_(world), run_(run), laptop_(laptop) {}
  [[nodiscard]] Result<std::string> digest_of(const job::ImageReference& image) override;

 private:
  [[nodiscard]] bool is_offline() const;

  World& world_;
  SimExecutor& run_;
  const int laptop_;
};

}  // namespace gridctl::sim
