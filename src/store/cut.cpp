// SPDX-License-Identifier: Apache-2.0
#include "store/cut.hpp"

#include "store/tree.hpp"

namespace gridctl::store {
namespace {

void cut_segment(std::uint64_t length, std::vector<std::uint32_t>& lengths) {
  for (; length > k_chunk_max; length -= k_chunk_max) lengths.push_back(k_chunk_max);
  if (length > 0) lengths.push_back(static_cast<std::uint32_t>(length));
}

}  // namespace

std::vector<std::uint32_t> cut_file(std::uint64_t file_size, const std::vector<Extent>& tensors) {
  std::vector<std::uint32_t> lengths;
  std::uint64_t done = 0;
  for (const Extent& tensor : tensors) {
    if (tensor.end < tensor.begin || tensor.end - tensor.begin < k_aligned_tensor_min) continue;
    if (tensor.begin < done || tensor.end > file_size) continue;
    cut_segment(tensor.begin - done, lengths);
    cut_segment(tensor.end - tensor.begin, lengths);
    done = tensor.end;
  }
  cut_segment(file_size - done, lengths);
  return lengths;
}

std::vector<std::uint32_t> plan_chunks(std::string_view name, std::uint64_t file_size, const ReadAt& read) {
  if (file_size <= k_aligned_tensor_min) return cut_file(file_size, {});
  const Result<Bytes> first = read(0, 4);
  if (!first) return cut_file(file_size, {});
  const Result<std::vector<Tensor>> tensors = tensors_of(guess_format(name, file_size, *first), file_size, read);
  return cut_file(file_size, tensors ? extents_of(*tensors) : std::vector<Extent>{});
}

}  // namespace gridctl::store
