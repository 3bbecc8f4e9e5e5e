// SPDX-License-Identifier: Apache-2.0
// Prints size and speed of the store's codec on one core beside zstd -1, on the same data in the same run. Built by
// `ninja codec_bench`.
#include <zstd.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <random>
#include <vector>

#include "store/codec.hpp"
#include "store/tree.hpp"

namespace gridctl::store {
namespace {

constexpr std::size_t k_total = 64u << 20;  // bytes of each kind, in chunks of 4 MiB

// Seconds of processor time: other programs on this machine do not count.
double seconds_of(const auto& work) {
  const std::clock_t begin = std::clock();
  work();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

std::vector<Bytes> chunks(std::size_t width, float spread) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, spread);
  std::vector<Bytes> all;
  for (std::size_t made = 0; made < k_total; made += k_chunk_max) {
    Bytes chunk(k_chunk_max);
    for (std::size_t i = 0; i < chunk.size(); i += width) {
      const auto bits = std::bit_cast<std::uint32_t>(normal(random));
      const std::uint32_t element = width == 2 ? bits >> 16 : bits;
      std::memcpy(chunk.data() + i, &element, width);
    }
    all.push_back(std::move(chunk));
  }
  return all;
}

void compare(const char* name, const std::vector<Bytes>& plain) {
  const double gigabytes = static_cast<double>(k_total) / 1e9;
  std::vector<Encoded> encoded;
  const double encoding = seconds_of([&] {
    for (const Bytes& chunk : plain) encoded.push_back(*encode(chunk));
  });
  std::size_t kept = 0, zstd_kept = 0;
  bool equal = true;
  double decoding = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    kept += encoded[i].bytes.size();
    Bytes back;
    decoding += seconds_of([&] { back = *decode(encoded[i].encoding, encoded[i].bytes, plain[i].size()); });
    equal = equal && back == plain[i];
  }
  Bytes out(ZSTD_compressBound(k_chunk_max)), back(k_chunk_max);
  double zstd_encoding = 0, zstd_decoding = 0;
  for (const Bytes& chunk : plain) {
    std::size_t size = 0;
    zstd_encoding += seconds_of([&] { size = ZSTD_compress(out.data(), out.size(), chunk.data(), chunk.size(), 1); });
    zstd_decoding += seconds_of([&] { ZSTD_decompress(back.data(), back.size(), out.data(), size); });
    zstd_kept += size;
  }
  const auto share = [](std::size_t bytes) { return static_cast<double>(bytes) / static_cast<double>(k_total); };
  std::printf("%-6s %-9s kept %.3f  encode %.2f GB/s  decode %.2f GB/s  %s\n", name, "gridctl", share(kept),
              gigabytes / encoding, gigabytes / decoding, equal ? "equal" : "DIFFERENT");
  std::printf("%-6s %-9s kept %.3f  encode %.2f GB/s  decode %.2f GB/s  ratio %.2f / %.2f\n", name, "zstd -1",
              share(zstd_kept), gigabytes / zstd_encoding, gigabytes / zstd_decoding, zstd_encoding / encoding,
              zstd_decoding / decoding);
}

}  // namespace
}  // namespace gridctl::store

int main() {
  gridctl::store::compare("bf16", gridctl::store::chunks(2, 0.02F));
  gridctl::store::compare("fp32", gridctl::store::chunks(4, 0.02F));
}
