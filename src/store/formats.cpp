// SPDX-License-Identifier: Apache-2.0
#include "store/formats.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace gridctl::store {

namespace {
constexpr std::uint64_t k_shortest_known = 8;  // bytes; no checkpoint file is shorter
constexpr std::string_view k_zip_begins = "PK\x03\x04";
}  // namespace

Format guess_format(std::string_view name, std::uint64_t file_size, ByteView first_bytes) {
  static constexpr std::array<std::string_view, 8> k_names{".pt",  ".pth",         ".ckpt", ".npz",
                                                         ".keras", ".safetensors", ".h5",   ".hdf5"};
  const bool known = std::ranges::any_of(k_names, [&](auto end) { return name.ends_with(end); });
  // torch.save empties the file first, and may take seconds until the first byte.
  if (known ? file_size < k_shortest_known : file_size == 0 && name.ends_with(".bin")) return Format::truncated;
  if (name.ends_with(".safetensors")) return Format::safetensors;
  if (name.ends_with(".json") && file_size <= k_json_max) return Format::json;
  if (as_text(first_bytes).starts_with(k_hdf5_begins.substr(0, 4))) return Format::hdf5;
  return as_text(first_bytes).starts_with(k_zip_begins) ? Format::zip : Format::unknown;
}

Result<std::vector<Tensor>> tensors_of(Format format, std::uint64_t file_size, const ReadAt& read) {
  switch (format) {
    case Format::safetensors: return safetensors_tensors(file_size, read);
    case Format::zip: return zip_entries(file_size, read);
    case Format::json:
    case Format::hdf5:
    case Format::truncated:
    case Format::unknown: break;
  }
  return std::vector<Tensor>{};
}

std::vector<Extent> extents_of(const std::vector<Tensor>& tensors) {
  std::vector<Extent> extents;
  extents.reserve(tensors.size());
  for (const Tensor& tensor : tensors) extents.push_back(tensor.at);
  return extents;
}

void sort_by_place(std::vector<Tensor>& tensors) {
  std::ranges::sort(tensors, [](const Tensor& a, const Tensor& b) {
    return std::pair(a.at.begin, a.at.end) < std::pair(b.at.begin, b.at.end);
  });
}

}  // namespace gridctl::store
