// SPDX-License-Identifier: Apache-2.0
#include "store/compare.hpp"

#include <gmock/gmock.h>

#include <bit>
#include <limits>
#include <set>

#include "store/cut.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::store::compare_test {
namespace {

using namespace testing;
using gridctl::testing::FailsWith;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Part {
  std::string name, type, bytes;
  std::size_t width;
};

std::string file_of(const std::vector<Part>& parts) {
  std::string header, data, out;
  for (const Part& part : parts) {
    header += (header.empty() ? "{\"" : ",\"") + part.name + "\":{\"dtype\":\"" + part.type + "\",\"shape\":[" +
              std::to_string(part.bytes.size() / part.width) + "],\"data_offsets\":[" + std::to_string(data.size()) +
              "," + std::to_string(data.size() + part.bytes.size()) + "]}";
    data += part.bytes;
  }
  header += "}";
  little(out, header.size(), 8);
  return out + header + data;
}

template <class Number>
std::string bytes_of(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}
std::string floats(const std::vector<float>& numbers) { return bytes_of(numbers); }

// Chunks in memory; remembers what was read.
class Chunks : public ChunkReader {
 public:
  Tree tree(const std::vector<std::pair<std::string, std::string>>& files) {
    std::vector<Entry> entries;
    for (const auto& [path, content] : files) {
      Entry entry;
      entry.path = path;
      entry.size = content.size();
      std::size_t offset = 0;
      for (const std::uint32_t length : plan_chunks(path, content.size(), reader_over(content))) {
        const std::string part = content.substr(offset, length);
        entry.chunks.push_back({digest_of(part), length});
        kept_[entry.chunks.back().digest] = part;
        offset += length;
      }
      entries.push_back(std::move(entry));
    }
    return *make_tree(std::move(entries));
  }
  Result<Bytes> read(const Digest& digest) override {
    read_.insert(digest);
    const auto found = kept_.find(digest);
    if (found == kept_.end()) return make_error(Code::not_found, "no such chunk");
    const ByteView bytes = as_bytes(found->second);
    return Bytes(bytes.begin(), bytes.end());
  }
  void lose(const Digest& digest) { kept_.erase(digest); }
  [[nodiscard]] bool was_read(const Digest& digest) const { return read_.contains(digest); }

 private:
  std::map<Digest, std::string> kept_;
  std::set<Digest> read_;
};

TEST(Compare, MeasuresTensorsThatChanged) {
  Chunks chunks;
  const Tree before = chunks.tree({{"m.safetensors", file_of({{"kept", "F32", floats({1, 2}), 4},
                                                              {"moved", "F32", floats({3, 4, -12, 0}), 4},
                                                              {"gone", "F32", floats({1}), 4},
                                                              {"grown", "F32", floats({1}), 4}})}});
  const Tree after = chunks.tree({{"m.safetensors", file_of({{"new", "F32", floats({1}), 4},
                                                             {"moved", "F32", floats({3, 4, -9, 4}), 4},
                                                             {"kept", "F32", floats({1, 2}), 4},
                                                             {"grown", "F32", floats({1, 2}), 4}})}});
  const auto found = compare(before, after, chunks);
  ASSERT_TRUE(found) << found.error().one_line();
  std::vector<std::pair<std::string, Change>> changes;
  for (const Difference& one : *found) changes.emplace_back(one.tensor, one.change);
  using P = std::pair<std::string, Change>;
  EXPECT_THAT(changes, ElementsAre(P{"new", Change::added}, P{"moved", Change::changed}, P{"kept", Change::none},
                                   P{"grown", Change::resized}, P{"gone", Change::removed}));
  const Difference& moved = (*found)[1];
  EXPECT_EQ(moved.type, "F32");
  EXPECT_EQ(moved.count, 4u);
  EXPECT_EQ(moved.changed, 2u);
  EXPECT_DOUBLE_EQ(moved.rms_before, 6.5);  // 9 + 16 + 144 + 0 over 4
  EXPECT_DOUBLE_EQ(moved.rms_change, 2.5);  // 9 + 16 over 4
  EXPECT_DOUBLE_EQ(moved.largest, 4);
}

TEST(Compare, ReadsEveryFloatingPointType) {
  const auto brain = [](float value) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16); };
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  Chunks chunks;
  const auto tree = [&](double d, std::uint16_t b, std::uint16_t h, std::uint16_t tiny, float odd) {
    return chunks.tree({{"m.safetensors", file_of({{"d", "F64", bytes_of<double>({d}), 8},
                                                   {"b", "BF16", bytes_of<std::uint16_t>({b}), 2},
                                                   {"h", "F16", bytes_of<std::uint16_t>({h}), 2},
                                                   {"t", "F16", bytes_of<std::uint16_t>({tiny}), 2},
                                                   {"n", "F32", floats({odd}), 4}})}});
  };
  const Tree before = tree(2, brain(-1.5F), 0x3c00 /* 1 */, 0x8001 /* -2^-24 */, nan);
  const Tree after = tree(-2, brain(1.5F), 0xc000 /* -2 */, 0x0001, 1);
  const auto found = compare(before, after, chunks);
  ASSERT_TRUE(found) << found.error().one_line();
  std::vector<double> largest;
  for (const Difference& one : *found) {
    EXPECT_EQ(one.changed, 1u) << one.tensor;
    largest.push_back(one.largest);
  }
  EXPECT_THAT(largest, ElementsAre(4, 3, 3, std::ldexp(1, -23), 0));
  EXPECT_FALSE(found->back().measured);  // NaN has no distance to anything
}

TEST(Compare, ReadsNoChunkThatBothHave) {
  Chunks chunks;
  const std::string base = noise(6u << 20, 1);
  const Tree before = chunks.tree(
      {{"m.safetensors", file_of({{"base", "BF16", base, 2}, {"adapter", "F32", floats({1}), 4}})}, {"x", "abc"}});
  const Tree after = chunks.tree(
      {{"m.safetensors", file_of({{"base", "BF16", base, 2}, {"adapter", "F32", floats({2}), 4}})}, {"x", "aXc"}});
  const auto found = compare(before, after, chunks);
  ASSERT_TRUE(found) << found.error().one_line();
  EXPECT_EQ((*found)[0].change, Change::none);
  EXPECT_EQ((*found)[1].change, Change::changed);
  EXPECT_EQ((*found)[2].changed, 1u);  // a byte of a file without a format
  EXPECT_EQ((*found)[2].count, 3u);
  EXPECT_FALSE((*found)[2].measured);
  for (const Chunk& chunk : after.entries[0].chunks)
    if (chunk.size == k_chunk_max) {
      EXPECT_FALSE(chunks.was_read(chunk.digest));
    }
}

TEST(Compare, TellsFilesThatCameAndWentAndChunksThatAreMissing) {
  Chunks chunks;
  const Tree before = chunks.tree({{"a", "1"}, {"b", "2"}}), after = chunks.tree({{"b", "3"}, {"c", "1"}});
  auto found = compare(before, after, chunks);
  ASSERT_TRUE(found) << found.error().one_line();
  EXPECT_EQ((*found)[0].change, Change::removed);
  EXPECT_EQ((*found)[1].change, Change::changed);
  EXPECT_EQ((*found)[2].change, Change::added);
  EXPECT_THAT(*compare({}, {}, chunks), IsEmpty());
  chunks.lose(digest_of("3"));
  EXPECT_THAT(compare(before, after, chunks), FailsWith(Code::not_found));
}

}  // namespace
}  // namespace gridctl::store::compare_test
