// SPDX-License-Identifier: Apache-2.0
// The corpus of tests/data/jobs: each bad file has its one line beside it (rewritten with GRIDCTL_ACCEPT=1); good files
// are also cut and mutated.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "config/job_file.hpp"
#include "unit/config/job_context.hpp"

namespace gridctl::config::job_file_corpus_test {
namespace {
namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<fs::path> files_of(const char* folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(GRIDCTL_SOURCE_DIR) / "tests/data/jobs" / folder))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

TEST(BadJobFiles, EachGivesItsLine) {
  const bool accept = std::getenv("GRIDCTL_ACCEPT") != nullptr;
  const auto files = files_of("bad");
  EXPECT_GE(files.size(), 70u);
  for (const fs::path& file : files) {
    const auto job = parse_job_file(read(file), file.filename().string(), ada_s_laptop());
    EXPECT_FALSE(job) << file << " was accepted";
    if (job) continue;
    EXPECT_EQ(job.error().code, Code::bad_job_file) << file;
    const std::string line = job.error().message;
    fs::path expect = file;
    expect.replace_extension(".expect");
    if (accept) std::ofstream(expect) << line << "\n";
    EXPECT_EQ(line + "\n", read(expect)) << file;
    EXPECT_TRUE(line.starts_with(file.filename().string() + ":")) << line;
    EXPECT_LT(line.size(), 400u) << line;
    EXPECT_TRUE(std::none_of(line.begin(), line.end(), [](char c) { return c >= 0 && c < 0x20; })) << line;
  }
  if (accept) GTEST_SKIP() << "expectations were rewritten";
}

TEST(BadJobFiles, AreRefusedBeforeReadingWhenTooLong) {
  const auto job = parse_job_file("run: x\n#" + std::string(256 * 1024, 'x'), "long.yaml", ada_s_laptop());
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().message, "long.yaml:1:1: longer than 256 KiB");
}

TEST(GoodJobFiles, EachIsReadAndSurvivesJson) {
  const auto files = files_of("good");
  EXPECT_GE(files.size(), 15u);
  for (const fs::path& file : files) {
    const auto job = parse_job_file(read(file), file.filename().string(), ada_s_laptop());
    EXPECT_TRUE(job) << job.error().message;
    if (!job) continue;
    EXPECT_FALSE(job->spec.name.empty());
    EXPECT_FALSE(job->spec.run.empty());
    const auto back = job::parse_spec(job::to_json(job->spec));
    ASSERT_TRUE(back) << file << back.error().message;
    EXPECT_EQ(*back, job->spec) << file;
    EXPECT_EQ(job::to_json(job->spec).find("hf_canary"), std::string::npos) << "a secret's value is in the Spec";
  }
}

// Of this thread's processor, which no other work on the machine changes.
double seconds_for(const std::string& text) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double start = now();
  (void)parse_job_file(text, "mutant.yaml", ada_s_laptop());
  return now() - start;
}

// What takes longer than this grows with the square of the text, or worse: a second is much for one pass with
// sanitizers.
constexpr double k_runaway = 20;

TEST(JobFileParser, SurvivesEveryPrefixOfGoodFiles) {
  for (const fs::path& file : files_of("good")) {
    const std::string text = read(file);
    double total = 0;
    for (std::size_t size = 0; size < text.size(); ++size) total += seconds_for(text.substr(0, size));
    EXPECT_LT(total, k_runaway) << file;
  }
}

TEST(JobFileParser, SurvivesRandomMutations) {
  std::mt19937 random(2026);
  std::vector<std::string> texts;
  for (const fs::path& file : files_of("good")) texts.push_back(read(file));
  const std::string nasty = std::string("{}[]:,&*!|>'\"%@`#?-\t\n <=~\x80") + '\0' + '\\';
  double worst = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = texts[random() % texts.size()];
    for (unsigned n = 1 + random() % 8; n > 0 && !text.empty(); --n) {
      const std::size_t at = random() % text.size();
      const char c = nasty[random() % nasty.size()];
      switch (random() % 4) {
        case 0: text[at] = c; break;
        case 1: text.insert(at, 1 + random() % 3, c); break;
        case 2: text.erase(at, 1 + random() % 9); break;
        default: text.insert(at, text.substr(random() % text.size(), random() % 30));
      }
    }
    worst = std::max(worst, seconds_for(text));
  }
  EXPECT_LT(worst, k_runaway);
}

TEST(JobFileParser, IsQuickOnBombs) {
  for (const char* unit : {"[",   "{",     "- ",   "? ",    "a: ",    "{a: ",    "[[],",  "&a ",  "*a ",     "!t ",
                           "'",   "\"",    "|",    "a\n",   "  ",     "a: b\n ", "\n",    "\\",   "- - a\n", ",",
                           "{a,", "\"\\x", "--- ", "...\n", "%A b\n", "#",       "- a\n", "[a]: "}) {
    std::string text;
    while (text.size() < 250'000) text += unit;
    EXPECT_LT(seconds_for(text), k_runaway) << "of " << unit;
    EXPECT_LT(seconds_for("run: " + text), k_runaway) << "run of " << unit;
  }
  std::string keys;
  for (int i = 0; keys.size() < 250'000; ++i) keys += "k" + std::to_string(i) + ": v\n";
  EXPECT_LT(seconds_for(keys), k_runaway);
}
}  // namespace
}  // namespace gridctl::config::job_file_corpus_test
