// SPDX-License-Identifier: Apache-2.0
// What the store's and the transfer's tests share: a directory of their own, files, bytes, hand-made archives.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "crypto/sha256.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"
#include "os/random.hpp"
#include "store/chunk_store.hpp"
#include "store/formats.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::store::testing {

using Folder = gridctl::testing::TempDir;

class FakeClock : public os::Clock {
 public:
  BootTime boot() const override { return os::system_clock().boot() + ahead; }
  WallTime wall() const override { return {os::system_clock().wall().ms + ahead.count() / 1'000'000}; }
  Duration ahead{};
};

inline void write(const os::Path& path, std::string_view content) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}
inline std::string slurp(const os::Path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// Reproducible bytes that do not repeat.
inline std::string noise(std::size_t size, std::uint64_t seed) {
  std::string text(size, '\0');
  std::uint64_t x = seed * 0x9E3779B97F4A7C15ull + 1;
  for (char& c : text) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    c = static_cast<char>(x >> 32);
  }
  return text;
}
inline Digest digest_of(std::string_view text) { return crypto::sha256(as_bytes(text)); }
inline Digest put(ChunkStore& store, std::string_view text) {
  const auto done = store.put(digest_of(text), as_bytes(text));
  EXPECT_TRUE(done) << done.error().one_line();
  return digest_of(text);
}
// All packs that lie in its folder.
inline VerifyReport verified(ChunkStore& store) {
  VerifyReport all;
  for (const auto& file : std::filesystem::directory_iterator(store.directory() / "packs")) {
    if (file.path().extension() != ".pack") continue;
    const VerifyReport one = store.verify_pack(parse_digest(file.path().stem().native()).value()).value();
    all.damages_total += one.damages_total;
    all.damages.insert(all.damages.end(), one.damages.begin(), one.damages.end());
  }
  return all;
}
inline ReadAt reader_over(std::string bytes) {
  return [bytes = std::move(bytes)](std::uint64_t offset, std::size_t size) -> Result<Bytes> {
    if (offset >= bytes.size()) return Bytes{};
    const ByteView part = as_bytes(std::string_view(bytes).substr(offset, size));
    return Bytes(part.begin(), part.end());
  };
}

inline void little(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

// What torch.save writes: stored entries, data aligned to 64 bytes by the extra field, data descriptors, zip64 ends.
inline std::string torch_zip(const std::vector<std::pair<std::string, std::string>>& entries, bool zip64 = false) {
  std::string out, central;
  for (const auto& [name, data] : entries) {
    const std::size_t header = out.size();
    const std::size_t padding = (64 - (header + 30 + name.size() + 4) % 64) % 64 + 4;
    little(out, 0x04034b50, 4);
    little(out, 0, 2), little(out, 0x0808, 2), little(out, 0, 2), little(out, 0, 4), little(out, 0, 4);
    little(out, data.size(), 4), little(out, data.size(), 4);
    little(out, name.size(), 2), little(out, padding, 2);
    out += name;
    little(out, 0x4246, 2), little(out, padding - 4, 2);
    out.append(padding - 4, 'Z');
    out += data;
    little(out, 0x08074b50, 4), little(out, 0, 4), little(out, data.size(), 4), little(out, data.size(), 4);
    little(central, 0x02014b50, 4), little(central, 0, 4), little(central, 0x0808, 2), little(central, 0, 2);
    little(central, 0, 4), little(central, 0, 4);
    little(central, zip64 ? UINT32_MAX : data.size(), 4), little(central, zip64 ? UINT32_MAX : data.size(), 4);
    little(central, name.size(), 2), little(central, zip64 ? 28 : 0, 2), little(central, 0, 2);
    little(central, 0, 2), little(central, 0, 2), little(central, 0, 4);
    little(central, zip64 ? UINT32_MAX : header, 4);
    central += name;
    if (zip64) {
      little(central, 1, 2), little(central, 24, 2);
      little(central, data.size(), 8), little(central, data.size(), 8), little(central, header, 8);
    }
  }
  const std::size_t offset = out.size();
  out += central;
  if (zip64) {
    const std::size_t end64 = out.size();
    little(out, 0x06064b50, 4), little(out, 44, 8), little(out, 0, 4), little(out, 0, 4), little(out, 0, 4);
    little(out, entries.size(), 8), little(out, entries.size(), 8), little(out, central.size(), 8),
        little(out, offset, 8);
    little(out, 0x07064b50, 4), little(out, 0, 4), little(out, end64, 8), little(out, 1, 4);
  }
  little(out, 0x06054b50, 4), little(out, 0, 4), little(out, entries.size(), 2), little(out, entries.size(), 2);
  little(out, central.size(), 4), little(out, zip64 ? UINT32_MAX : offset, 4), little(out, 0, 2);
  return out;
}

// One F32 tensor for each text, whose size must be a multiple of four.
inline std::string safetensors(const std::vector<std::pair<std::string, std::string>>& tensors) {
  std::string header = "{\"__metadata__\":{\"format\":\"pt\"}", data;
  for (const auto& [name, bytes] : tensors) {
    header += ",\"" + name + "\":{\"dtype\":\"F32\",\"shape\":[" + std::to_string(bytes.size() / 4) +
              "],\"data_offsets\":[" + std::to_string(data.size()) + "," + std::to_string(data.size() + bytes.size()) +
              "]}";
    data += bytes;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string out;
  little(out, header.size(), 8);
  return out + header + data;
}

}  // namespace gridctl::store::testing
