// SPDX-License-Identifier: Apache-2.0
#include "registry/hosts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "db/database.hpp"
#include "registry/registry.hpp"
#include "registry/schema.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::registry::hosts_test {
namespace {

const HostName lab{"lab"};

class Hosts : public ::testing::Test {
 protected:
  Registry open() {
    Result<Registry> opened = Registry::open(dir.path());
    EXPECT_TRUE(opened) << opened.error().one_line();
    return std::move(*opened);
  }
  gridctl::testing::TempDir dir;
};

TEST_F(Hosts, KeepTheNewestEventsOfEach) {
  Registry registry = open();
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(registry.add_host_event({0, i % 2 == 0 ? lab : HostName{"home"}, {i}, "lost", std::to_string(i)}));
  const std::vector<HostEvent> newest = *registry.host_events(lab, 2);
  ASSERT_EQ(newest.size(), 2u);
  EXPECT_EQ(newest[0].text, "2");
  EXPECT_EQ(newest[1].text, "4");
  EXPECT_EQ(registry.host_events({}, 0)->size(), 5u);
}

TEST_F(Hosts, DropEventsBeyondTheLimitOfOneHostOnly) {
  Registry registry = open();
  ASSERT_TRUE(registry.add_host_event({0, {"home"}, {1}, "lost", "old"}));
  {
    Result<db::Database> raw = db::Database::open(dir.path() / "state.db");
    ASSERT_TRUE(raw);
    ASSERT_TRUE(raw->execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < " +
                             std::to_string(k_host_events_max + 10) +
                             ") INSERT INTO host_events(provider, at_ms, kind, text) SELECT 'lab', i, 'x', '' FROM n"));
  }
  ASSERT_TRUE(registry.add_host_event({0, lab, {99999}, "lost", "newest"}));
  EXPECT_EQ(registry.host_events(lab, 0)->size(), static_cast<std::size_t>(k_host_events_max));
  EXPECT_EQ(registry.host_events(lab, 1)->front().text, "newest");
  EXPECT_EQ(registry.host_events({"home"}, 0)->size(), 1u);
}

TEST_F(Hosts, KeepTheNewestReportOfAKind) {
  Registry registry = open();
  EXPECT_FALSE(*registry.host_report(lab, "bench"));
  ASSERT_TRUE(registry.save_host_report({lab, "bench", {1}, "{\"a\":1}"}));
  ASSERT_TRUE(registry.save_host_report({lab, "bench", {2}, "{\"a\":2}"}));
  ASSERT_TRUE(registry.save_host_report({lab, "health", {3}, "{}"}));
  EXPECT_EQ((*registry.host_report(lab, "bench"))->body, "{\"a\":2}");
  EXPECT_EQ(registry.host_reports("bench")->size(), 1u);
  EXPECT_FALSE(registry.save_host_report({lab, "bench", {4}, std::string(k_host_report_max + 1, ' ')}));
}

TEST_F(Hosts, ProlongASpanAndKeepOthers) {
  Registry registry = open();
  ASSERT_TRUE(registry.save_host_span({lab, "", {10}, {20}, ""}));
  ASSERT_TRUE(registry.save_host_span({lab, "", {10}, {30}, "host_lost"}));
  ASSERT_TRUE(registry.save_host_span({lab, "GPU-1", {10}, {40}, ""}));
  ASSERT_TRUE(registry.save_host_span({lab, "", {50}, {60}, ""}));
  const std::vector<HostSpan> spans = *registry.host_spans(lab);
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0].ended_at.ms, 30);
  EXPECT_EQ(spans[0].cause, "host_lost");
}

TEST_F(Hosts, KeepOnlySoManySpansOfEachUnit) {
  Registry registry = open();
  {
    Result<db::Database> raw = db::Database::open(dir.path() / "state.db");
    ASSERT_TRUE(raw);
    ASSERT_TRUE(raw->execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < " +
                             std::to_string(k_host_spans_max + 10) +
                             ") INSERT INTO host_spans SELECT 'lab', '', 10 * i, 10 * i + 5, 'rebooted' FROM n"));
  }
  ASSERT_TRUE(registry.save_host_span({lab, "GPU-1", {1}, {2}, "xid-79"}));
  EXPECT_EQ(registry.host_spans(lab)->size(), static_cast<std::size_t>(k_host_spans_max + 11));
  ASSERT_TRUE(registry.save_host_span({lab, "", {1'000'000}, {2'000'000}, ""}));
  const std::vector<HostSpan> spans = *registry.host_spans(lab);
  EXPECT_EQ(spans.size(), static_cast<std::size_t>(k_host_spans_max + 1));
  EXPECT_EQ(spans.front().unit, "GPU-1");
  EXPECT_EQ(spans.back().ended_at.ms, 2'000'000);
}

TEST_F(Hosts, KeepWhatANewMeasurementOfALinkLeavesOut) {
  Registry registry = open();
  ASSERT_TRUE(registry.save_link({std::string(k_here), "lab", {1}, 500, 1e9}));
  ASSERT_TRUE(registry.save_link({std::string(k_here), "lab", {2}, 700, std::nullopt}));
  const std::vector<HostLink> links = *registry.links();
  ASSERT_EQ(links.size(), 1u);
  EXPECT_EQ(links[0].rtt_us, 700);
  EXPECT_EQ(links[0].bits_per_second, 1e9);
}

TEST_F(Hosts, AreForgottenWithTheirProvider) {
  Registry registry = open();
  Provider provider;
  provider.name = lab;
  ASSERT_TRUE(registry.add_provider(provider));
  ASSERT_TRUE(registry.add_host_event({0, lab, {1}, "lost", ""}));
  ASSERT_TRUE(registry.save_host_report({lab, "bench", {1}, "{}"}));
  ASSERT_TRUE(registry.save_host_span({lab, "", {1}, {2}, ""}));
  ASSERT_TRUE(registry.save_link({"other", "lab", {1}, 5, std::nullopt}));
  ASSERT_TRUE(registry.remove_provider(lab));
  EXPECT_TRUE(registry.host_events(lab, 0)->empty());
  EXPECT_FALSE(*registry.host_report(lab, "bench"));
  EXPECT_TRUE(registry.host_spans(lab)->empty());
  EXPECT_TRUE(registry.links()->empty());
}

TEST_F(Hosts, AreAddedToAStateOfTheFirstSchemaAndACopyIsKept) {
  {
    Result<db::Database> raw = db::Database::open(dir.path() / "state.db");
    ASSERT_TRUE(raw);
    ASSERT_TRUE(raw->execute(k_schema_steps.front()));
    ASSERT_TRUE(raw->execute("INSERT INTO meta VALUES('controller_id', 'the-old-one')"));
    ASSERT_TRUE(raw->set_user_version(1));
  }
  Registry registry = open();
  EXPECT_EQ(registry.controller_id()->value, "the-old-one");
  EXPECT_TRUE(registry.add_host_event({0, lab, {1}, "lost", ""}));
  EXPECT_TRUE(os::exists(dir.path() / "state.db.schema1"));
}

}  // namespace
}  // namespace gridctl::registry::hosts_test
