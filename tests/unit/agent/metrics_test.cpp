// SPDX-License-Identifier: Apache-2.0
#include "agent/metrics.hpp"

#include <gmock/gmock.h>

#include "support/temp_dir.hpp"

namespace gridctl::agent::metrics_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

TEST(Metrics, AreTheNewestNumberOfEachName) {
  EXPECT_THAT(parse_metrics("{\"step\": 1, \"loss\": 0.5}\n{\"loss\": 0.25}\n"),
              ElementsAre(Pair("loss", 0.25), Pair("step", 1)));
  EXPECT_THAT(parse_metrics("{\"loss\": 1}\n{\"loss\": 2"), ElementsAre(Pair("loss", 1)));  // being written
}

TEST(Metrics, TakeNothingButNumbersUnderPlainNames) {
  EXPECT_THAT(
      parse_metrics("loss=1\n[1]\n{\"a b\": 1, \"\": 1, \"\\u001b[2J\": 1, \"t\": \"1\", \"l\": [1], \"n\": null}\n"
                    "{\"big\": 1e999}\n{\"x\": " +
                    std::string(9000, ' ') + "1}\n\n"),
      IsEmpty());
  std::string many;
  for (int i = 0; i < 200; ++i) many += "{\"m" + std::to_string(i) + "\": 1}\n";
  EXPECT_THAT(parse_metrics(many + "{\"m0\": 2}\n"), SizeIs(k_metrics_max));
  EXPECT_EQ(parse_metrics(many + "{\"m0\": 2}\n").at("m0"), 2);
  static_cast<void>(parse_metrics(std::string(8000, '[') + "\n"));
}

TEST(Metrics, OfALineAreTakenUpToEightKibibytes) {
  const std::string longest = "{\"x\": 1" + std::string(8 * 1024 - 8, ' ') + "}";
  ASSERT_EQ(longest.size(), 8u * 1024);
  EXPECT_THAT(parse_metrics(longest + "\n"), SizeIs(1));
  EXPECT_THAT(parse_metrics(longest + " \n"), IsEmpty());
}

TEST(Metrics, OfAFileOfExactlyTheTailAreAll) {
  const gridctl::testing::TempDir run;
  const std::string first = "{\"first\": 1}\n";
  ASSERT_TRUE(os::write_file_atomically(run / "metrics", first + std::string(64 * 1024 - first.size(), '\n')));
  EXPECT_EQ(metrics_bytes(run.path()), 64u * 1024);
  EXPECT_EQ(metrics_tail(run.path()).size(), 64u * 1024);
  EXPECT_THAT(read_metrics(run.path()), ElementsAre(Pair("first", 1)));
  ASSERT_TRUE(os::write_file_atomically(run / "metrics", first + std::string(64 * 1024 - first.size() + 1, '\n')));
  EXPECT_THAT(read_metrics(run.path()), IsEmpty()) << "its first line is cut";
}

TEST(Metrics, ComeFromTheEndOfALongFileAndFromNoLink) {
  const gridctl::testing::TempDir run;
  EXPECT_THAT(read_metrics(run.path()), IsEmpty());
  std::string text = "{\"early\": 1}\n";
  while (text.size() < 200'000) text += "{\"loss\": 3, \"step\": 7}\n";
  ASSERT_TRUE(os::write_file_atomically(run / "metrics", text + "{\"loss\": 2}\n"));
  EXPECT_THAT(read_metrics(run.path()), ElementsAre(Pair("loss", 2), Pair("step", 7)));
  EXPECT_THAT(read_metrics(run.path(), metrics_bytes(run.path()) - 5), ElementsAre(Pair("loss", 3), Pair("step", 7)))
      << "as it was when less had been told";
  EXPECT_THAT(read_metrics(run.path(), 0), IsEmpty());
  std::filesystem::rename(run / "metrics", run / "elsewhere");
  std::filesystem::create_symlink("elsewhere", run / "metrics");
  EXPECT_THAT(read_metrics(run.path()), IsEmpty());
}

}  // namespace
}  // namespace gridctl::agent::metrics_test
