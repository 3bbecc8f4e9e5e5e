// SPDX-License-Identifier: Apache-2.0
// support/fault_points.hpp names every effect behind the interfaces of disks, database, hosts and remotes: a new member
// of one of them is a fault point, or stands here as one that only reads.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "support/fault_points.hpp"

namespace gridctl::tidy::fault_points_test {
namespace {

struct Part {
  const char* file;
  const char* type;
};
struct Interface {
  const char* name;
  std::vector<Part> parts;
  std::set<std::string> reads;
};
const std::vector<Interface> k_interfaces{
    {"records",
     {{"src/registry/host_records.hpp", "HostRecords"},
      {"src/registry/job_records.hpp", "JobRecords"},
      {"src/registry/job_records.hpp", "RunRecords"},
      {"src/registry/all_records.hpp", "CopyRecords"}},
     {"data_version", "providers", "host_events", "host_report", "host_reports", "host_spans", "links", "inputs", "job", "unfinished",
      "changes", "attempts", "spent", "checkpoints", "checkpoint", "prunable", "results", "paused", "budgets", "spending", "remotes", "copies_of"}},
    {"folders", {{"src/control/reach/job_folders.hpp", "JobFolders"}}, {"log_next_offset", "log_tail", "log_ends", "masked", "secrets", "bag_journal", "bag_output_end", "bag_items"}},
    {"freight", {{"src/control/copies/freight.hpp", "Freight"}}, {"part_of", "copies_of"}},
    {"remote", {{"src/store/backend.hpp", "Backend"}}, {"list", "read", "sign_put"}},
    {"host", {{"src/agent/host_state.hpp", "HostState"}},
     {"now", "boot_id", "blank_reply", "jobs", "lock", "fence", "epochs", "stored", "status", "accepted_by", "exists", "stop_grace",
      "stop_order", "deadline", "kept_from", "check", "adopt", "await_settled"}},
};

std::set<std::string> all_matches(const std::string& text, const std::string& pattern) {
  const std::regex finds(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), finds), end; at != end; ++at) found.insert((*at)[1]);
  return found;
}

std::string text_of(const std::string& file) {
  std::ifstream in(std::string(GRIDCTL_SOURCE_DIR) + "/" + file);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Names of the virtual members of an interface, without those that only commands call.
std::set<std::string> members_of(const Interface& one) {
  std::set<std::string> names;
  for (const Part& part : one.parts) {
    const std::string text = text_of(part.file), type = part.type;
    const std::size_t begin = text.find("\nclass " + type + " ");
    EXPECT_NE(begin, std::string::npos) << part.file;
    std::set<std::string> members =
        all_matches(text.substr(begin, text.find("\n};", begin) - begin), R"(virtual [^;{}()]*?\b(\w+)\()");
    members.erase(type);
    EXPECT_GT(members.size(), 3u) << part.file << ": the search for members is blind";
    names.merge(members);
  }
  static const std::set<std::string> unasked = all_matches(text_of("tests/support/unasked_records.hpp"), R"((\w+)\([^;{}]*\) override \{ return unasked)");
  if (one.name == std::string("records"))
    for (const std::string& name : unasked) names.erase(name);
  return names;
}

TEST(FaultPoints, AreAllEffectsOfTheInterfaces) {
  const std::set<std::string> points(testing::k_point_names.begin(), testing::k_point_names.end());
  EXPECT_EQ(points.size(), testing::k_points) << "a name stands twice";
  for (const Interface& one : k_interfaces) {
    const std::set<std::string> members = members_of(one);
    for (const std::string& member : members)
      EXPECT_NE(points.contains(std::string(one.name) + "." + member), one.reads.contains(member))
          << one.parts.front().file << ": " << member << " is an effect, or only reads: name it in support/fault_points.hpp, or here";
    for (const std::string& point : points)
      EXPECT_TRUE(!point.starts_with(std::string(one.name) + ".") || members.contains(point.substr(point.find('.') + 1)))
          << point << " is no member any more";
    for (const std::string& read : one.reads) EXPECT_TRUE(members.contains(read)) << one.name << "." << read;
  }
}

// A row names points, or an interface whose other points it means.
TEST(FaultPoints, HaveARowInContributing) {
  std::ifstream in(std::string(GRIDCTL_SOURCE_DIR) + "/CONTRIBUTING.md");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::size_t begin = text.find("\n| points |");
  ASSERT_NE(begin, std::string::npos);
  const std::string table = text.substr(begin, text.find("\n\n", begin) - begin);
  std::set<std::string> rows;
  const std::regex word("`([a-z_.]+)`");
  for (std::sregex_iterator at(table.begin(), table.end(), word), end; at != end; ++at)
    EXPECT_TRUE(rows.insert((*at)[1]).second) << (*at)[1] << " stands twice";
  std::set<std::string> names;
  for (const std::string_view point : testing::k_point_names) {
    const std::string name(point), interface = name.substr(0, name.find('.'));
    names.insert(name), names.insert(interface);
    EXPECT_TRUE(rows.contains(name) || rows.contains(interface)) << name << " has no row";
  }
  for (const std::string& row : rows) EXPECT_TRUE(names.contains(row)) << row << " is no fault point";
}

}  // namespace
}  // namespace gridctl::tidy::fault_points_test
