// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "unit/whole/directory.hpp"

namespace gridctl::whole::watch_reads_test {
namespace {

TEST(Reads, AreMadeOnceForEachStateOfAFile) {
  ReadCache cache;
  int asked = 0;
  bool fails = false;
  const store::ReadListed read = [&](const FileFact&, std::uint64_t, std::size_t size) -> Result<Bytes> {
    ++asked;
    if (fails) return make_error(Code::io, "x");
    return Bytes(size);
  };
  const FileFact one{"a", 10, 0, 0, 1}, changed{"a", 11, 0, 0, 1};
  for (int i = 0; i < 2; ++i) EXPECT_EQ(cache.read(one, 0, 4, read)->size(), 4u);
  EXPECT_EQ(asked, 1);
  static_cast<void>(cache.read(one, 1, 4, read));
  static_cast<void>(cache.read(one, 0, 5, read));
  EXPECT_EQ(asked, 3) << "other pieces";
  cache.keep_only({one});
  static_cast<void>(cache.read(one, 0, 4, read));
  EXPECT_EQ(asked, 3);
  static_cast<void>(cache.read(changed, 0, 4, read));
  EXPECT_EQ(asked, 4);
  cache.keep_only({one});
  static_cast<void>(cache.read(changed, 0, 4, read));
  EXPECT_EQ(asked, 5) << "another state of it was kept";
  cache.keep_only({});
  static_cast<void>(cache.read(changed, 0, 4, read));
  EXPECT_EQ(asked, 6);
  fails = true;
  EXPECT_FALSE(cache.read(changed, 9, 4, read));
  fails = false;
  EXPECT_TRUE(cache.read(changed, 9, 4, read)) << "an error is not kept";
}

TEST(Reads, BeyondTheirRoomAreMadeAnew) {
  ReadCache cache;
  int asked = 0;
  const store::ReadListed read = [&](const FileFact&, std::uint64_t, std::size_t size) -> Result<Bytes> {
    ++asked;
    return Bytes(size);
  };
  const std::vector<FileFact> files{{"a", 1, 0, 0, 1}, {"b", 1, 0, 0, 2}};
  constexpr std::size_t k_half = 16u << 20;
  for (int i = 0; i < 2; ++i)
    for (const FileFact& file : files) static_cast<void>(cache.read(file, 0, k_half, read));
  EXPECT_EQ(asked, 2) << "both fit";
  cache.keep_only(files);
  static_cast<void>(cache.read(files[0], 1, 1, read));
  EXPECT_EQ(asked, 3);
  static_cast<void>(cache.read(files[0], 0, k_half, read));
  EXPECT_EQ(asked, 4) << "one byte too much, and all is forgotten";
}

}  // namespace
}  // namespace gridctl::whole::watch_reads_test
