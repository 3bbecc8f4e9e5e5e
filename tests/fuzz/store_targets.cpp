// SPDX-License-Identifier: Apache-2.0
// Formats of the store and of checkpoint files, and paths.
#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "fuzz/target.hpp"
#include "os/entries.hpp"
#include "os/files.hpp"
#include "store/codec.hpp"
#include "store/formats.hpp"
#include "store/ignore.hpp"
#include "store/local_part.hpp"
#include "store/pack.hpp"
#include "store/recipe.hpp"
#include "store/tree.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::store {
namespace {

ReadAt reader_of(std::string_view file) {
  return [file](std::uint64_t offset, std::size_t size) -> Result<Bytes> {
    if (offset >= file.size()) return Bytes{};
    const ByteView bytes = as_bytes(file.substr(offset, size));
    return Bytes(bytes.begin(), bytes.end());
  };
}

void check_extents(const Result<std::vector<Tensor>>& tensors, std::size_t file_size) {
  if (!tensors) return;
  std::uint64_t before = 0;
  for (const Extent& extent : extents_of(*tensors)) {
    PROMISE(extent.begin >= before && extent.begin <= extent.end && extent.end <= file_size);
    before = extent.begin;
  }
}

}  // namespace

FUZZ_TARGET(manifest) {
  const Result<Tree> tree = parse_manifest(as_bytes(input), {1ull << 40, 10'000, true});
  if (!tree) return;
  const Bytes again = to_manifest(*tree);
  PROMISE(as_text(again) == input);  // a tree has one manifest
  for (const Entry& entry : tree->entries) {
    PROMISE(check_path(entry.path));
    PROMISE(entry.kind != EntryKind::symlink || link_stays_inside(entry.path, entry.target));
  }
}

FUZZ_TARGET(pack) {
  const Result<PackIndex> index = read_pack_index(input.size(), reader_of(input));
  if (!index) return;
  for (const PackEntry& entry : index->entries) PROMISE(entry.offset + entry.length <= input.size());
}

FUZZ_TARGET(shards) {
  const Result<std::set<std::string>> own = shards_of_one_rank(as_bytes(input), 4);
  if (!own) return;
  for (const std::string& name : *own) PROMISE(name.starts_with("__") && name.ends_with(".distcp"));
}

FUZZ_TARGET(recipe) {
  const Result<PackRecipe> recipe = parse_recipe(as_bytes(input));
  if (!recipe) return;
  PROMISE(recipe->blobs.size() * k_recipe_blob_bytes < input.size());
  PROMISE(recipe->blobs.back().entry.offset + recipe->blobs.back().entry.length <= recipe->size);
  const Result<PackRecipe> again = parse_recipe(encode(*recipe));
  PROMISE(again && *again == *recipe);
}

// Three bytes choose codec, width and length; the rest is what a damaged store may hold.
FUZZ_TARGET(codec) {
  if (input.size() < 4) return;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(input[i]); };
  const Encoding encoding{static_cast<Codec>(byte(0) % 6), static_cast<std::uint16_t>(byte(1) % 9)};
  const std::size_t plain_size = std::size_t{byte(2) % 16u} * 256 + byte(3);  // larger ones only cost time
  input.remove_prefix(4);
  const Bytes base(plain_size, std::byte{0x5A});
  if (const Result<Bytes> plain = decode(encoding, as_bytes(input), plain_size, base))
    PROMISE(plain->size() == plain_size);
  if (const std::optional<Encoded> encoded = encode(as_bytes(input))) {
    PROMISE(encoded->bytes.size() < input.size());
    const Result<Bytes> back = decode(encoded->encoding, encoded->bytes, input.size());
    PROMISE(back && as_text(*back) == input);
  }
}

FUZZ_TARGET(checkpoint_formats) {
  const ReadAt read = reader_of(input);
  check_extents(safetensors_tensors(input.size(), read), input.size());
  check_extents(zip_entries(input.size(), read), input.size());
  static_cast<void>(check_json(input.size(), read));
  static_cast<void>(
      guess_format("model.safetensors", input.size(), as_bytes(input).first(std::min(input.size(), std::size_t{16}))));
}

// Lines: a path, then patterns.
FUZZ_TARGET(ignore_rules) {
  const std::size_t line = input.find('\n');
  if (line == std::string_view::npos || line == 0) return;
  const std::string path(input.substr(0, line));
  if (!check_path(path)) return;
  IgnoreRules rules;
  rules.add("", input.substr(line + 1));
  static_cast<void>(rules.ignored(path, false));
  static_cast<void>(rules.ignored(path, true));
}

// Whatever a path says, what is opened lies beneath.
FUZZ_TARGET(paths) {
  static const gridctl::testing::TempDir folder;
  static const os::Path root = [] {
    std::filesystem::create_directories(folder / "a/b");
    std::filesystem::create_symlink("..", folder / "a/up");
    std::filesystem::create_symlink("/", folder / "root");
    std::filesystem::create_symlink("a", folder / "link");
    return std::filesystem::canonical(folder.path());
  }();
  static const os::Fd directory = *os::open_file(root, O_RDONLY | O_DIRECTORY);
  const Result<os::Fd> opened = os::open_beneath(directory.get(), input, O_RDONLY | O_NONBLOCK);
  const Result<os::Fd> walked = os::open_beneath_by_walk(directory.get(), input, O_RDONLY | O_NONBLOCK);
  PROMISE(opened.has_value() == walked.has_value());
  if (opened) {
    const std::string remote =
        std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(opened->get())).native() + "/";
    PROMISE(remote.starts_with(root.native() + "/"));
  }
  if (check_path(input)) {
    PROMISE(!input.empty() && input.front() != '/');
    PROMISE(("/" + std::string(input) + "/").find("/../") == std::string::npos);
  }
}

}  // namespace gridctl::store
