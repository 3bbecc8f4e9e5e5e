// SPDX-License-Identifier: Apache-2.0
#include "ui/use_view.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "ui/top_view.hpp"
#include "ui/width.hpp"

namespace gridctl::ui::use_view_test {
namespace {

using ::testing::ElementsAre;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

const WallTime k_seen_at{1'800'000'060'000};

registry::MemberUse a_member(int rank = 0, const std::string& host = "ada") {
  registry::MemberUse member;
  member.rank = rank;
  member.host = {host};
  member.at = k_seen_at;
  member.cpus_given = 8;
  member.use = Use{0, 3.46, 6ull << 30, {{97, 61ull << 30, 80ull << 30, 64}, {91, 60ull << 30, 80ull << 30, 71}}};
  member.history = {0, 50, 100};
  return member;
}

TEST(Sparkline, HasABarForEachPercentage) {
  EXPECT_EQ(sparkline(std::vector{0, 13, 50, 88, 100, 1000, -4}, 10), "▁▂▄▇██▁");
  EXPECT_EQ(sparkline(std::vector{0, 100, 0}, 2), "█▁") << "the newest stay";
  EXPECT_EQ(sparkline({}, 5), "");
}

TEST(UseText, AddsUpTheGpusOfAMember) {
  EXPECT_EQ(use_text(a_member()), "2 GPUs 94 %  121 of 160 GiB  71 °C  CPU 3.5 of 8  memory 6.0 GiB");
  registry::MemberUse plain = a_member();
  plain.use.gpus.clear();
  plain.cpus_given = 0;
  EXPECT_EQ(use_text(plain), "CPU 3.5  memory 6.0 GiB");
  plain.use.gpus = {GpuUse{}};
  plain.use.cpus.reset();
  plain.use.memory_bytes = 0;
  EXPECT_EQ(use_text(plain), "GPU -") << "its host could not tell";
}

TEST(UseLines, NameRanksOnlyOfAGangAndFitTheTerminal) {
  registry::JobUse job{{"job"}, {1}, {a_member()}};
  EXPECT_THAT(use_lines(job, 200, 8), ElementsAre("  ada  2 GPUs 94 %  121 of 160 GiB  71 °C  CPU 3.5 of 8  memory 6.0 GiB  ▁▄█"));
  for (int rank = 1; rank < 20; ++rank) job.members.push_back(a_member(rank, "h" + std::to_string(rank)));
  const std::vector<std::string> lines = use_lines(job, 50, 8);
  ASSERT_THAT(lines, SizeIs(9));
  EXPECT_THAT(lines[1], HasSubstr("rank 1  h1"));
  EXPECT_EQ(lines[8], "  and 12 more members");
  for (const std::string& line : lines) EXPECT_LE(display_width(line), 50u);
}

TEST(UseJson, HasNullForWhatNobodyTold) {
  registry::MemberUse member = a_member();
  member.use.gpus[1] = {};
  member.use.cpus.reset();
  const auto value = nlohmann::json::parse(use_json(member, std::vector<std::string>{"GPU-a"}));
  EXPECT_EQ(value["measured_at"], format_rfc3339(k_seen_at));
  EXPECT_TRUE(value["cpus"].is_null());
  EXPECT_EQ(value["memory_bytes"], 6ull << 30);
  EXPECT_EQ(value["gpus"][0]["uuid"], "GPU-a");
  EXPECT_EQ(value["gpus"][0]["busy_percent"], 97);
  EXPECT_TRUE(value["gpus"][1]["uuid"].is_null());
  EXPECT_TRUE(value["gpus"][1]["temperature_c"].is_null());
  EXPECT_EQ(value["history_percent"], (std::vector{0, 50, 100}));
}

TopView a_screen(int hosts, int jobs) {
  TopView view;
  for (int i = 0; i < hosts; ++i) {
    TopHost host;
    host.provider.name = {"h" + std::to_string(i)};
    Inventory inventory;
    inventory.gpus.resize(2);
    inventory.cpus = 16;
    host.provider.inventory = inventory;
    host.state = "answering";
    view.hosts.push_back(host);
    view.use.hosts.push_back({host.provider.name, k_seen_at, 1.25, 5ull << 30, 1});
  }
  for (int i = 0; i < jobs; ++i) {
    registry::JobRow job;
    job.id = {"job" + std::to_string(i)};
    job.name = "train";
    job.state = job::JobState::running;
    job.provider = {"h0"};
    job.submitted_at = WallTime{k_seen_at.ms - 60'000};
    view.jobs.push_back(job);
    view.use.jobs.push_back({job.id, {1}, {a_member(0, "h0"), a_member(1, "h1")}});
  }
  return view;
}

TEST(TopScreen, ShowsEachHostAndJob) {
  const std::vector<std::string> lines = top_screen(a_screen(2, 1), k_seen_at, 0, 0, {}, "(q ends)");
  ASSERT_THAT(lines, SizeIs(8));
  EXPECT_THAT(lines[0], HasSubstr("2 of 2 hosts answer, 1 of 1 jobs run, 2 of 4 GPUs in use  (q ends)"));
  EXPECT_THAT(lines[3], HasSubstr("1/2  94 %"));
  EXPECT_THAT(lines[7], HasSubstr("h0 +1"));
  EXPECT_THAT(lines[7], HasSubstr("▁▄█"));
}

TEST(TopScreen, FitsATerminalAndCountsWhatItLeavesOut) {
  for (const int hosts : {0, 1, 5, 200})
    for (const int jobs : {0, 1, 5, 200})
      for (const std::size_t rows : {1u, 12u, 24u, 50u}) {
        const std::vector<std::string> lines = top_screen(a_screen(hosts, jobs), k_seen_at, 80, rows, {}, "(q ends)");
        EXPECT_LE(lines.size(), std::max<std::size_t>(rows, 9)) << hosts << " hosts, " << jobs << " jobs";
        for (const std::string& line : lines) EXPECT_LE(display_width(line), 80u) << line;
      }
  const std::vector<std::string> lines = top_screen(a_screen(200, 3), k_seen_at, 80, 24, {}, "");
  EXPECT_THAT(lines, ::testing::Contains(HasSubstr("more hosts")));
  EXPECT_THAT(lines, Each(Not(HasSubstr("more jobs")))) << "what jobs do not need is the hosts'";
  EXPECT_EQ(lines.size(), 24u);
}

TEST(TopJson, IsJsonWithIntegersAsIntegers) {
  TopView view = a_screen(2, 1);
  view.use.hosts.pop_back();
  const auto value = nlohmann::json::parse(top_json(view, k_seen_at));
  EXPECT_EQ(value["providers"][0]["gpus_in_use"], 1);
  EXPECT_TRUE(value["providers"][0]["gpu_busy_percent"].is_number_integer());
  EXPECT_TRUE(value["providers"][1]["load"].is_null());
  EXPECT_EQ(value["jobs"][0]["members"][1]["provider"], "h1");
}

}  // namespace
}  // namespace gridctl::ui::use_view_test
