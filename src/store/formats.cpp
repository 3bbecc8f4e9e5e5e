// SPDX-License-Identifier: Apache-2.0
#include "store/formats.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.hpp"

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

bool is_json(std::string_view text) {
  if (nlohmann::json::accept(text)) return true;
  std::string plain;  // Python writes numbers that JSON lacks
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::string_view rest = text.substr(at);
    if (quoted && text[at] == '\\' && at + 1 < text.size()) {
      plain += text[at++];
    } else if (text[at] == '"') {
      quoted = !quoted;
    } else if (!quoted && (rest.starts_with("NaN") || rest.starts_with("Infinity"))) {
      plain += '0';
      at += rest.starts_with("NaN") ? 2 : 7;
      continue;
    }
    plain += text[at];
  }
  return nlohmann::json::accept(plain);
}

Result<void> check_json(std::uint64_t file_size, const ReadAt& read) {
  TRY_ASSIGN(const Bytes bytes, read(0, file_size));
  const std::string_view text = trim(as_text(bytes));
  // A truncated number or word may be another number or word; text in brackets has an end.
  const bool bracketed = text.starts_with('{') || text.starts_with('[');
  if (bytes.size() == file_size && bracketed && is_json(text)) return {};
  return make_error(Code::checkpoint_damaged, "not one complete JSON object or array");
}

}  // namespace gridctl::store
