// SPDX-License-Identifier: Apache-2.0
// Stores a job's inputs (working directory, mounts, image archive) as trees when it is submitted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "job/spec.hpp"
#include "registry/records.hpp"
#include "store/chunk_store.hpp"

namespace gridctl::control {

inline constexpr const char* k_image_file = "image.tar";

struct ImportedInputs {
  std::vector<registry::Input> inputs;
  std::vector<std::string> notes;  // files left out and why
  std::vector<std::string> keys;   // paths in the working directory that are sent and look like keys or passwords
};
// Matches ".env", "id_ed25519", "server.pem", "credentials.json": by name, not by content.
[[nodiscard]] bool is_like_a_key(std::string_view path);
// Reads everything into the store and seals it. Errors name the path that could not be read.
[[nodiscard]] Result<ImportedInputs> import_inputs(const job::Spec& spec, store::ChunkStore& store);

// Lists the files that import_inputs would read, by names and sizes alone: nothing is opened.
struct InputListing {
  struct File {
    std::string path;  // in the directory; foreign text
    std::uint64_t bytes = 0;
  };
  std::string role, source, target;  // as in registry::Input, and where it is here
  std::uint64_t files = 0, bytes = 0;
  std::vector<File> largest;       // at most k_largest_listed
  std::vector<std::string> keys;   // that look like keys or passwords
  std::vector<std::string> notes;  // left out and why
};
inline constexpr std::size_t k_largest_listed = 5;
[[nodiscard]] Result<std::vector<InputListing>> list_inputs(const job::Spec& spec);

}  // namespace gridctl::control
