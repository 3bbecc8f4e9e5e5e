// SPDX-License-Identifier: Apache-2.0
// Reads the names of container images as engines do, and decides by which name a host is given an image: borrowed hosts
// get "NAME@sha256:…", so that a tag that is moved changes nothing. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace gridctl::job {

struct Spec;

// Stands for a registry in the name of an image that only the engine of a host has.
inline constexpr std::string_view k_no_registry = "localhost";
inline constexpr std::string_view k_image_tags_way_out = "constraints: {images: tags}";

struct ImageReference {
  std::string registry;    // "docker.io", "ghcr.io", "localhost:5000"; k_no_registry: none
  std::string repository;  // "library/debian"
  std::string tag;         // "latest" if the name has neither tag nor digest; empty: a digest alone
  std::string digest;      // "sha256:" and 64 digits; empty: a tag
  [[nodiscard]] std::string name() const { return registry + "/" + repository; }
  [[nodiscard]] bool has_registry() const { return registry != k_no_registry; }
};
// usage: no engine accepts that name.
[[nodiscard]] Result<ImageReference> parse_image_reference(std::string_view text);
// Accepts "sha256:" and 64 hexadecimal digits in lower case.
[[nodiscard]] bool is_image_digest(std::string_view text);

// Lists the images of the job and of its variants, as written, that borrowed hosts cannot get before a registry has said
// which digest their tags have. None with `images: tags`, or for a private job, which such hosts never run.
[[nodiscard]] std::vector<std::string> images_without_digest(const Spec& spec);

// States why a borrowed host must not run an image of the job.
struct TagRefusal {
  std::string text;      // for people, without the ways out
  std::string way_out;   // for people
  bool curable = false;  // its registry may still say the digest
};
// nullopt: it may. `problem`: why the registry has not said the digest; empty: nobody has asked it yet.
[[nodiscard]] std::optional<TagRefusal> tag_refusal(const Spec& spec, const std::string& image, bool is_archive,
                                                    const std::string& problem);

// Returns the name by which the host gets the image: as written, or by digest.
[[nodiscard]] std::string image_on_host(const Spec& spec, const std::string& image, bool lent);

}  // namespace gridctl::job
