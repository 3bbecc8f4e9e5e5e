// SPDX-License-Identifier: Apache-2.0
// What every remote that keeps copies must do (store::Backend). A test program includes this and names its remotes:
//   INSTANTIATE_TEST_SUITE_P(Directory, BackendSuite, ::testing::Values(RemoteUnderTest{"dir", make_remote}));
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "store/backend.hpp"
#include "support/results.hpp"

namespace gridctl::store::testing {

// Opens another backend on the same remote.
using OpenBackend = std::function<std::unique_ptr<Backend>()>;

struct RemoteUnderTest {
  std::string name;
  std::function<OpenBackend()> make;  // a new, empty remote, which lives until the process ends
  std::size_t many = 1'050;           // objects: more than fit into one page of a listing
};

class BackendSuite : public ::testing::TestWithParam<RemoteUnderTest> {
 protected:
  void SetUp() override {
    open_ = GetParam().make();
    remote_ = open_();
    ASSERT_NE(remote_, nullptr);
  }

  static std::string pattern(std::size_t size, std::uint32_t seed = 1) {
    std::string text(size, '\0');
    for (char& c : text) c = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
    return text;
  }
  static ReadAt content_of(const std::string& text) {
    return [&text](std::uint64_t offset, std::size_t size) -> Result<Bytes> {
      const ByteView part = as_bytes(std::string_view(text).substr(std::min<std::uint64_t>(offset, text.size()), size));
      return Bytes(part.begin(), part.end());
    };
  }
  Result<void> put(const std::string& name, const std::string& text, const Moved& moved = {}) {
    return remote_->put(name, text.size(), content_of(text), moved);
  }
  // Nothing when it is not there.
  std::optional<std::string> content(const std::string& name) {
    std::string all;
    for (;;) {
      const Result<Bytes> part = remote_->read(name, all.size(), k_object_read_max);
      if (!part) {
        EXPECT_EQ(part.error().code, Code::not_found) << part.error().one_line();
        return std::nullopt;
      }
      all += as_text(*part);
      if (part->size() < k_object_read_max) return all;
    }
  }
  std::vector<std::string> names(std::string_view prefix) {
    const Result<std::vector<Object>> objects = remote_->list(prefix);
    EXPECT_THAT(objects, gridctl::testing::IsOk());
    std::vector<std::string> found;
    if (objects)
      for (const Object& object : *objects) found.push_back(object.name);
    return found;
  }

  OpenBackend open_;
  std::unique_ptr<Backend> remote_;
};

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_P(BackendSuite, HasNothingAtFirst) {
  EXPECT_THAT(names(""), IsEmpty());
  EXPECT_THAT(remote_->read("packs/a", 0, 10), FailsWith(Code::not_found));
  EXPECT_THAT(remote_->remove("packs/a"), IsOk());
}

TEST_P(BackendSuite, GivesBackWhatWasPutWholeAndInParts) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{4096}, (std::size_t{8} << 20) + 1, (std::size_t{21} << 20) + 5}) {
    const std::string name = "packs/" + std::to_string(size) + ".pack", text = pattern(size);
    ASSERT_THAT(put(name, text), IsOk()) << size;
    EXPECT_TRUE(content(name) == text) << size;
    for (const auto& [offset, count] :
         {std::pair{size / 2, std::size_t{100}}, std::pair{size, std::size_t{10}},
          std::pair{size + 1'000, std::size_t{10}}, std::pair{size / 3, std::size_t{0}}}) {
      const Result<Bytes> part = remote_->read(name, offset, count);
      ASSERT_THAT(part, IsOk()) << size << " " << offset;
      EXPECT_TRUE(as_text(*part) == std::string_view(text).substr(std::min(offset, size), count))
          << size << " " << offset;
    }
    const auto objects = remote_->list("packs/" + std::to_string(size) + ".");
    ASSERT_THAT(objects, IsOk());
    EXPECT_THAT(*objects, ElementsAre(Object{name, size}));
  }
}

TEST_P(BackendSuite, ListsByNameWhatBeginsWithThePrefix) {
  for (const char* name : {"packs/b", "packs/a", "packs/a-1", "packs/a.b", "packs/A", "packs/c/deep/er", "packs-x",
                           "checkpoints/j_1/7", "z"})
    ASSERT_THAT(put(name, name), IsOk()) << name;
  EXPECT_THAT(names("packs/"),
              ElementsAre("packs/A", "packs/a", "packs/a-1", "packs/a.b", "packs/b", "packs/c/deep/er"));
  EXPECT_THAT(names("packs/a"), ElementsAre("packs/a", "packs/a-1", "packs/a.b"));
  EXPECT_THAT(names("packs/c/"), ElementsAre("packs/c/deep/er"));
  EXPECT_THAT(names("checkpoints/j_1/"), ElementsAre("checkpoints/j_1/7"));
  EXPECT_THAT(names("nothing"), IsEmpty());
  EXPECT_EQ(names("").size(), 9u);
}

TEST_P(BackendSuite, ListsAllOfManyObjects) {
  const std::size_t many = GetParam().many;
  std::atomic<std::size_t> next = 0;
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i)
    writers.emplace_back([&] {
      const auto mine = open_();
      for (std::size_t number = next++; number < many; number = next++)
        EXPECT_THAT(mine->put_new("checkpoints/" + std::to_string(1'000'000 + number), as_bytes("x")), IsOk());
    });
  for (std::thread& writer : writers) writer.join();
  const std::vector<std::string> found = names("checkpoints/");
  ASSERT_EQ(found.size(), many);
  for (std::size_t number = 0; number < many; ++number)
    ASSERT_EQ(found[number], "checkpoints/" + std::to_string(1'000'000 + number));
}

TEST_P(BackendSuite, LeavesAnObjectOfTheSameLengthAsItIs) {
  ASSERT_THAT(put("packs/a", "first"), IsOk());
  ASSERT_THAT(put("packs/a", "other"), IsOk());
  EXPECT_EQ(content("packs/a"), "first");
  ASSERT_THAT(put("packs/a", "longer than that"), IsOk());
  EXPECT_EQ(content("packs/a"), "longer than that");
}

TEST_P(BackendSuite, TellsHowMuchHasMovedAndStopsWhenTold) {
  const std::string text = pattern(20 << 20);
  std::uint64_t told = 0;
  ASSERT_THAT(put("packs/told", text,
                  [&](std::uint64_t bytes) {
                    told = bytes;
                    return bytes <= text.size();
                  }),
              IsOk());
  EXPECT_GT(told, 0u);
  EXPECT_THAT(put("packs/stopped", text, [](std::uint64_t) { return false; }), FailsWith(Code::cancelled));
  EXPECT_EQ(content("packs/stopped"), std::nullopt);
  EXPECT_THAT(names("packs/"), ElementsAre("packs/told"));
  ASSERT_THAT(put("packs/stopped", text), IsOk());
  EXPECT_TRUE(content("packs/stopped") == text);
}

TEST_P(BackendSuite, ShowsNothingOfWhatCouldNotBeReadToItsEnd) {
  const std::string text = pattern(20 << 20);
  const ReadAt whole = content_of(text);
  const ReadAt breaks = [&](std::uint64_t offset, std::size_t size) -> Result<Bytes> {
    if (offset + size > text.size() / 2) return make_error(Code::checkpoint_damaged, "the pack is damaged");
    return whole(offset, size);
  };
  EXPECT_THAT(remote_->put("packs/a", text.size(), breaks), FailsWith(Code::checkpoint_damaged));
  const ReadAt ends = [&](std::uint64_t offset, std::size_t size) -> Result<Bytes> {
    if (offset >= text.size() / 2) return Bytes{};
    return whole(offset, size);
  };
  EXPECT_FALSE(remote_->put("packs/a", text.size(), ends));
  EXPECT_EQ(content("packs/a"), std::nullopt);
  EXPECT_THAT(names(""), IsEmpty());
}

TEST_P(BackendSuite, WritesNewThingsOnce) {
  EXPECT_THAT(remote_->put_new("fence/7", as_bytes("mine")), IsOk());
  const Result<bool> again = remote_->put_new("fence/7", as_bytes("another's"));
  ASSERT_THAT(again, IsOk());
  EXPECT_FALSE(*again);
  EXPECT_EQ(content("fence/7"), "mine");
  ASSERT_THAT(remote_->remove("fence/7"), IsOk());
  const Result<bool> anew = remote_->put_new("fence/7", as_bytes("another's"));
  ASSERT_THAT(anew, IsOk());
  EXPECT_TRUE(*anew);
}

TEST_P(BackendSuite, LetsOneOfManyWritersWin) {
  for (int round = 0; round < 5; ++round) {
    const std::string name = "fence/" + std::to_string(round);
    std::atomic<int> winners = 0, winner = -1;
    std::vector<std::thread> writers;
    for (int i = 0; i < 8; ++i)
      writers.emplace_back([&, i] {
        const auto mine = open_();
        const Result<bool> won = mine->put_new(name, as_bytes("writer " + std::to_string(i)));
        EXPECT_THAT(won, IsOk());
        if (won && *won) {
          ++winners;
          winner = i;
        }
      });
    for (std::thread& writer : writers) writer.join();
    EXPECT_EQ(winners, 1);
    EXPECT_EQ(content(name), "writer " + std::to_string(winner));
  }
}

TEST_P(BackendSuite, RemovesAndForgets) {
  ASSERT_THAT(put("packs/a", "text"), IsOk());
  ASSERT_THAT(remote_->remove("packs/a"), IsOk());
  ASSERT_THAT(remote_->remove("packs/a"), IsOk());
  EXPECT_EQ(content("packs/a"), std::nullopt);
  EXPECT_THAT(names(""), IsEmpty());
}

TEST_P(BackendSuite, RefusesWhatIsNoName) {
  for (const std::string& name :
       {std::string(), std::string("/a"), std::string("a/"), std::string("a//b"), std::string(".a"),
        std::string("a/.b"), std::string("../a"), std::string("a/../b"), std::string("a b"), std::string("a\nb"),
        std::string("a\0b", 3), std::string(k_object_name_max + 1, 'a')}) {
    EXPECT_FALSE(put(name, "x")) << name;
    EXPECT_FALSE(remote_->put_new(name, as_bytes("x"))) << name;
    EXPECT_FALSE(remote_->read(name, 0, 1)) << name;
    EXPECT_FALSE(remote_->remove(name)) << name;
  }
  EXPECT_THAT(names(""), IsEmpty());
}

TEST_P(BackendSuite, KeepsTheLongestName) {
  const std::string name = "a/" + std::string(200, 'b') + "/" + std::string(200, 'c');
  ASSERT_THAT(put(name, "text"), IsOk());
  EXPECT_EQ(content(name), "text");
  EXPECT_THAT(names("a/"), ElementsAre(name));
}

}  // namespace gridctl::store::testing
