// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "unit/whole/directory.hpp"
#include "whole/layout_tools.hpp"

namespace gridctl::whole::shards_test {
namespace {

std::string shard_trouble(const std::vector<std::string>& paths) {
  std::vector<FileFact> files;
  for (const std::string& path : paths) files.push_back({path, 1, 0, 0, 1});
  const auto trouble = missing_shard(files);
  return trouble ? trouble->why + "|" + trouble->blame : "";
}

TEST(Shards, OfASetAreAllThereCountedFromNoughtOrOne) {
  EXPECT_EQ(shard_trouble({"m-00000-of-00002", "m-00001-of-00002"}), "");
  EXPECT_EQ(shard_trouble({"m-00001-of-00002", "m-00002-of-00002"}), "");
  EXPECT_EQ(shard_trouble({"m-00001-of-00002.bin", "n"}),
            "only 1 of 2 shards of 'm--of-00002.bin' are there|m-00001-of-00002.bin");
  EXPECT_NE(shard_trouble({"m-00001-of-00002", "o-00002-of-00002"}), "") << "of two sets";
  EXPECT_EQ(shard_trouble({"m-00001-of-00001.tmp", "m-00001-of-00002.tmp"}), "") << "temporary";
}

TEST(Shards, WhatIsNoSetIsLeftAlone) {
  for (const char* name :
       {"m-0001-of-00002", "m-00001-of-0002", "m00001-of-00002", "00001-of-00002", "m-00003-of-00002",
        "m-00000-of-00000", "m-0000x-of-00002", "m-00001-of-0000x", "plain", "-of-"})
    EXPECT_EQ(shard_trouble({name}), "") << name;
  EXPECT_NE(shard_trouble({"-00001-of-00002"}), "");
  EXPECT_NE(shard_trouble({"m-00002-of-00002"}), "");
}

}  // namespace
}  // namespace gridctl::whole::shards_test
