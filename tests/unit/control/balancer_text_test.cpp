// SPDX-License-Identifier: Apache-2.0
#include "control/serve/balancer_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/process.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::control::balancer_text_test {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view k_stats =
    "# pxname,svname,qcur,scur,stot,econ,eresp,wretr,wredis,status,check_status,check_code,hrsp_5xx,rtime,last_chk,\n"
    "f,FRONTEND,,3,90,,,,,OPEN,,,0,,,\n"
    "b,r1,0,2,40,1,2,3,4,UP,L7OK,200,5,30,\"fine, \"\"all\"\" of it\",\n"
    "b,r2,0,0,0,0,0,0,0,MAINT,,,0,0,,\n"
    "b,r3,0,1,7,0,0,0,0,DRAIN,L4CON,,0,9,,\n"
    "b,BACKEND,1,3,47,0,0,0,0,UP,,,0,20,,\n\n";

TEST(BalancerText, StatsAreReadByTheNamesOfTheirColumns) {
  const std::vector<ServerLine> lines = parse_stats(k_stats);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[1].name, "r1");
  EXPECT_TRUE(lines[1].is_up());
  EXPECT_EQ(lines[1].probe, "L7OK/200");
  EXPECT_EQ(lines[1].under_way, 2U);
  EXPECT_EQ(lines[1].requests, 40U);
  EXPECT_EQ(lines[1].failed, 8U);
  EXPECT_EQ(lines[1].retried, 3U);
  EXPECT_EQ(lines[1].answer_ms, 30U);
  EXPECT_FALSE(lines[3].is_up());
  EXPECT_EQ(lines[4].queued, 1U);
  EXPECT_THAT(parse_stats("garbage\n\n,,,\n"), IsEmpty());
}

TEST(BalancerText, OnlyServersThatDifferAreChanged) {
  const std::vector<ServerLine> lines = parse_stats(k_stats);
  using enum ServerState;
  EXPECT_THAT(repairs(lines, std::vector{ready, out, drain}), IsEmpty());
  EXPECT_THAT(repairs(lines, std::vector{out, ready, ready}),
              ElementsAre("set server b/r1 state maint", "set server b/r2 state ready;set server b/r2 health down",
                          "set server b/r3 state ready;set server b/r3 health down"));
  EXPECT_THAT(repairs(lines, std::vector{drain, out, drain, ready}), ElementsAre("set server b/r1 state drain"))
      << "a server that HAProxy does not know is not asked for";
  EXPECT_THAT(repairs(lines, std::vector{ready, ready, drain}, {"r2"}), ElementsAre("set server b/r2 state ready"));
}

TEST(BalancerText, HaproxyTakesTheConfiguration) {
  if (!os::exists("/usr/sbin/haproxy")) GTEST_SKIP() << "haproxy is not installed";
  const gridctl::testing::TempDir folder;
  job::Service service;
  service.port = 8000;
  service.path = "/health?deep=1&x=%20";
  service.retry_post = {"/v1/", "/generate"};
  service.keys_file = "/keys";
  const KeyFiles keys = key_files("# comment\n sesame \r\n\nopen\n");
  EXPECT_EQ(keys.plain, "sesame\nopen\n");
  EXPECT_EQ(keys.bearer, "Bearer sesame\nBearer open\n");
  ASSERT_TRUE(os::write_file_atomically(folder.path() / "bearer.keys", keys.bearer));
  ASSERT_TRUE(os::write_file_atomically(folder.path() / "plain.keys", keys.plain));
  ASSERT_TRUE(os::write_file_atomically(folder.path() / "hold.lua", hold_script()));
  service.probe_headers = {{"X-Key", "it's 100% \"us\" $HOME #1"}};
  service.probe_body = "{\"model\": \"it's\"}";
  for (const auto& [bare, affinity] : {std::pair{false, job::Affinity::none},
                                       {true, job::Affinity::none},
                                       {true, job::Affinity::session},
                                       {true, job::Affinity::prefix}}) {
    if (bare) service = {};
    service.affinity = affinity;
    // A descriptor cannot be checked: a socket stands for it.
    std::string text = balancer_config(service, 3, 7, !bare);
    EXPECT_THAT(text, HasSubstr("server r3 unix@r3.sock"));
    EXPECT_EQ(text.find(R"( hdr X-Key 'it'\''s 100%% "us" $HOME #1' body '{"model": "it'\''s"}')") == std::string::npos, bare);
    EXPECT_EQ(text.find("path_beg /v1/") == std::string::npos, bare);
    EXPECT_EQ(text.find("balance leastconn") != std::string::npos, affinity == job::Affinity::none);
    text.replace(text.find("fd@7"), 4, "unix@front.sock");
    ASSERT_TRUE(os::write_file_atomically(folder.path() / "haproxy.cfg", text));
    os::RunOptions options;
    options.directory = folder.path();
    const auto checked = os::run({"/usr/sbin/haproxy", "-c", "-f", "haproxy.cfg"}, options);
    ASSERT_TRUE(checked) << checked.error().message;
    EXPECT_TRUE(checked->status.success()) << checked->err << text;
  }
}

}  // namespace
}  // namespace gridctl::control::balancer_text_test
