// SPDX-License-Identifier: Apache-2.0
// Runs every transcript beside this file, each in a directory, a home and a state of its own.
#include "cli/transcript.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/text.hpp"
#include "os/files.hpp"
#include "os/process.hpp"
#include "os/random.hpp"

namespace gridctl::tests::transcript_test {
namespace {

namespace fs = std::filesystem;

const fs::path k_source = fs::path(GRIDCTL_SOURCE_DIR) / "tests" / "cli";
const fs::path k_program_directory = fs::path(GRIDCTL_BINARY_DIR) / "cmd";

std::vector<std::string> names() {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(k_source / "transcripts"))
    if (entry.path().extension() == ".txt") found.push_back(entry.path().stem().string());
  std::sort(found.begin(), found.end());
  return found;
}

class Transcript : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    directory_ = os::temporary_directory() / ("gridctl-cli-" + os::random_id(10));
    for (const char* part : {"home", "work"}) ASSERT_TRUE(os::make_directories(directory_ / part));
  }
  void TearDown() override {
    (void)run(
        "gridctl daemon stop >/dev/null 2>&1; for f in ../pids/*; do [ -e \"$f\" ] && kill \"$(cat \"$f\")\"; done; "
        "true");
    (void)os::remove_tree(directory_);
  }

  Result<os::RunOutcome> run(const std::string& command) {
    os::RunOptions options;
    options.directory = directory_ / "work";
    options.timeout = std::chrono::seconds{60};
    const std::string path =
        k_program_directory.string() + ":" + (k_source / "bin").string() + ":/usr/bin:/bin:/usr/sbin:/sbin";
    const std::vector<std::string> argv{"env",
                                        "-i",
                                        "PATH=" + path,
                                        "HOME=" + (directory_ / "home").string(),
                                        "TRANSCRIPT=" + directory_.string(),
                                        "TMPDIR=" + os::temporary_directory().string(),
                                        "GRIDCTL_STATE=" + (directory_ / "state").string(),
                                        "GRIDCTL_SOURCE_DIR=" GRIDCTL_SOURCE_DIR,
                                        "LC_ALL=C.UTF-8",
                                        "TERM=xterm",
                                        "bash",
                                        "-c",
                                        command};
    return os::run(argv, options);
  }

  fs::path directory_;
};

TEST_P(Transcript, IsWhatHappens) {
  std::ifstream file(k_source / "transcripts" / (GetParam() + ".txt"));
  std::stringstream text;
  text << file.rdbuf();
  Remembered remembered;
  for (const Command& command : parse_transcript(text.str())) {
    const std::string typed = fill_in(command.text, remembered);
    SCOPED_TRACE(GetParam() + ".txt:" + std::to_string(command.line) + ": $ " + typed);
    Result<os::RunOutcome> outcome = run(typed);
    ASSERT_TRUE(outcome) << outcome.error().one_line();
    if (outcome->status.code == 77 && command.exit_code != 77)
      GTEST_SKIP() << outcome->err;  // the place lacks something
    EXPECT_EQ(outcome->status.code, command.exit_code) << "stdout: " << outcome->out << "stderr: " << outcome->err;
    const std::string out = compare(command.out, outcome->out, remembered);
    EXPECT_EQ(out, "") << "stdout";
    const std::string err = compare(command.err, outcome->err, remembered);
    EXPECT_EQ(err, "") << "stderr";
    if (HasFailure()) return;  // what follows would only repeat it
  }
}

INSTANTIATE_TEST_SUITE_P(Cli, Transcript, ::testing::ValuesIn(names()), [](const auto& given) {
  std::string name = given.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

TEST(TranscriptText, RemembersWhatAPlaceholderMatched) {
  Remembered remembered;
  EXPECT_EQ(compare({"job <id:job> ok"}, "job abcdefghijkmn ok\n", remembered), "");
  EXPECT_EQ(fill_in("show {job}", remembered), "show abcdefghijkmn");
  EXPECT_NE(compare({"<id:job>"}, "nmkjihgfedcba\n", remembered), "");
}

TEST(TranscriptText, LetsEllipsisStandForAnyLines) {
  Remembered remembered;
  EXPECT_EQ(compare({"a", "...", "z"}, "a\nb\nc\nz\n", remembered), "");
  EXPECT_EQ(compare({"..."}, "", remembered), "");
  EXPECT_NE(compare({}, "something\n", remembered), "");
}

}  // namespace
}  // namespace gridctl::tests::transcript_test
