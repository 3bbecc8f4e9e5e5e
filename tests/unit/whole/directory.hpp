// SPDX-License-Identifier: Apache-2.0
// A checkpoint directory in memory, looked at in virtual time.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "unit/store/fixtures.hpp"
#include "whole/watch.hpp"

namespace gridctl::whole {

class Directory {
 public:
  store::Listing listing;
  std::int64_t now_ms = 1'000'000;

  void pass(std::int64_t ms) { now_ms += ms; }
  // In place, as `open(path, "w")` and one write do.
  void save(const std::string& path, std::string content) { put(path, std::move(content), false); }
  // As a write to another name and a rename do.
  void rename_into(const std::string& path, std::string content) { put(path, std::move(content), true); }
  void append(const std::string& path, const std::string& content) { put(path, contents[path] + content, false); }
  void remove(const std::string& path) {
    if (path == ".commit") listing.marker.reset();
    std::erase_if(listing.files, [&](const store::FileFact& file) { return file.path == path; });
  }
  [[nodiscard]] std::string content(const std::string& path) const {
    const auto at = contents.find(path);
    return at == contents.end() ? "" : at->second;
  }
  [[nodiscard]] Access access() {
    return {[this](const store::FileFact& file) {
              ++inspected;
              return store::inspect_file(file.path, file.size, store::testing::reader_over(contents[file.path]));
            },
            [this](const store::FileFact& file, std::uint64_t offset, std::size_t size) {
              return store::testing::reader_over(contents[file.path])(offset, size);
            }};
  }
  int inspected = 0;

 private:
  void put(const std::string& path, std::string content, bool other_file) {
    store::FileFact fact{path, content.size(), now_ms * 1'000'000, now_ms * 1'000'000, 0};
    contents[path] = std::move(content);
    if (path == ".commit") {
      listing.marker = fact;
      return;
    }
    const store::FileFact* before = store::find_file(listing.files, path);
    fact.inode = before == nullptr || other_file ? ++inodes_ : before->inode;
    remove(path);
    listing.files.push_back(fact);
    std::sort(listing.files.begin(), listing.files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  }

  std::map<std::string, std::string> contents;
  std::uint64_t inodes_ = 0;
};

class WatchTest : public ::testing::Test {
 protected:
  Directory dir;
  WholeWatch watch;
  Writer writer = Writer::running;

  Verdict look() { return watch.look(dir.listing, {dir.now_ms * 1'000'000}, writer, dir.access()); }
  // As the agent does: a look after each change, and at least one a second.
  Verdict look_after(std::int64_t ms) {
    while (ms > 900) {
      dir.pass(900);
      ms -= 900;
      static_cast<void>(look());
    }
    dir.pass(ms);
    return look();
  }
  void take() { watch.taken(dir.listing); }
  void step(int number) {  // a whole folder of a trainer
    const std::string folder = "checkpoint-" + std::to_string(number);
    dir.save(folder + "/model.safetensors", store::testing::safetensors({{"a", store::testing::noise(40, static_cast<std::uint64_t>(number))}}));
    dir.save(folder + "/trainer_state.json", "{}");
  }
  static std::string archive(std::uint64_t seed, const std::string& keys = "model optimizer") {
    return store::testing::torch_zip({{"ckpt/data.pkl", keys + store::testing::noise(200, seed)},
                                      {"ckpt/data/0", store::testing::noise(2000, seed + 1)}});
  }
};

}  // namespace gridctl::whole
