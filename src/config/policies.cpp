// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <csignal>

#include "base/metrics.hpp"
#include "config/job_parts.hpp"
#include "sched/query/query.hpp"

namespace gridctl::config {

namespace {
using namespace std::chrono_literals;
constexpr std::size_t k_glob_max = 1024;  // bytes
constexpr Duration k_interval_min = 1s, k_interval_max = 24h * 30;
constexpr Duration k_lost_after_min = 1s, k_lost_after_max = 24h * 7;
constexpr Duration k_hang_after_min = 30s, k_hang_after_max = 24h * 7;
constexpr Duration k_lease_min = 5s, k_lease_max = 24h * 365;
constexpr int k_keep_max = 1000;
constexpr int k_failures_max = 1000;
constexpr Duration k_deadline_min = 1s;
constexpr double k_money_max = 1e9;  // USD
const std::vector<std::string> k_classes{"datacenter", "cloud", "market", "home"};

Result<void> read_interval(const Fields& fields, job::CheckpointPolicy& into) {
  using Interval = job::CheckpointPolicy::Interval;
  const Node* value = fields.find("interval");
  if (value == nullptr) return {};
  const std::string word = value->kind == Node::Kind::scalar ? value->text : "";
  if (word == "auto" || word == "off") {
    into.interval = word == "auto" ? Interval::automatic : Interval::off;
    return {};
  }
  const auto every = parse_duration(word);
  if (!every || *every < k_interval_min || *every > k_interval_max)
    return fields.expected("interval", "auto, off or a duration from 1s to 30d such as 15m");
  into.interval = Interval::fixed;
  into.every = *every;
  return {};
}

Result<void> read_signal(const Fields& fields, std::string_view key, int& into) {
  std::string word;
  TRY(fields.text(key, word));
  if (word.starts_with("SIG")) word.erase(0, 3);
  into = word == "USR1" ? SIGUSR1 : word == "USR2" ? SIGUSR2 : word == "HUP" ? SIGHUP : 0;
  if (into == 0 && !word.empty()) return fields.expected(key, "USR1, USR2 or HUP");
  return {};
}

Result<void> check_regions(const Fields& fields, std::string_view key, const std::vector<std::string>& regions) {
  const auto is_region_char = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-'; };
  for (const std::string& region : regions)
    if (region.size() > 32 || !std::ranges::all_of(region, is_region_char))
      return fields.error(key, "expected regions such as DE, got '" + excerpt(region) + "'");
  return {};
}

Result<void> read_region(const Fields& constraints, job::Constraints& into) {
  const Node* value = constraints.find("region");
  if (value == nullptr) return {};
  if (value->kind != Node::Kind::map) {
    TRY(constraints.words("region", into.region_in));
    return check_regions(constraints, "region", into.region_in);
  }
  TRY_ASSIGN(const Fields region, Fields::open(constraints.source(), *value, "constraints.region", {"in", "not"}));
  TRY(region.words("in", into.region_in));
  TRY(region.words("not", into.region_not));
  TRY(check_regions(region, "in", into.region_in));
  TRY(check_regions(region, "not", into.region_not));
  for (const std::string& wanted : into.region_in)
    if (std::ranges::find(into.region_not, wanted) != into.region_not.end())
      return region.error("not", "'" + excerpt(wanted) + "' is both wanted and excluded");
  return {};
}

Result<void> read_labels(const Fields& fields, job::Constraints& into) {
  const Node* value = fields.find("labels");
  if (value == nullptr) return {};
  if (value->kind != Node::Kind::map) return fields.expected("labels", "a mapping of labels to values");
  for (std::size_t i = 0; i < value->keys.size(); ++i) {
    const Node& item = value->items[i];
    if (item.kind != Node::Kind::scalar || item.text.size() > 256)
      return error_at(
          fields.source().file, item.at,
          "key 'constraints.labels." + excerpt(value->keys[i].text) + "': expected text, got " + shown(item));
    into.labels[value->keys[i].text] = item.text;
  }
  return {};
}

Result<void> read_keep(SourceFile& source, const Fields& checkpoint, job::KeepPolicy& into) {
  const Node* node = checkpoint.find("keep");
  if (node == nullptr || node->kind != Node::Kind::map) return checkpoint.integer("keep", 1, k_keep_max, into.last);
  TRY_ASSIGN(const Fields fields, Fields::open(source, *node, "checkpoint.keep",
                                               {"last", "hourly", "daily", "weekly", "best", "metric", "prefer"}));
  TRY(fields.integer("last", 1, k_keep_max, into.last));
  TRY(fields.integer("hourly", 0, k_keep_max, into.hourly));
  TRY(fields.integer("daily", 0, k_keep_max, into.daily));
  TRY(fields.integer("weekly", 0, k_keep_max, into.weekly));
  TRY(fields.integer("best", 0, k_keep_max, into.best));
  TRY(fields.text("metric", into.metric));
  if (!into.metric.empty() && !is_metric_name(into.metric))
    return fields.expected("metric", "at most 64 letters, digits and characters of _.:/-");
  if (into.best > 0 && into.metric.empty())
    return fields.error("best", "needs 'metric': the name of the value to compare");
  std::string prefer = "lowest";
  TRY(fields.text("prefer", prefer));
  if (prefer != "lowest" && prefer != "highest") return fields.expected("prefer", "lowest or highest");
  into.highest = prefer == "highest";
  return {};
}

Result<void> read_upload_limit(const Fields& fields, std::uint64_t& into) {
  std::string text;
  TRY(fields.text("upload_limit", text));
  if (text.empty()) return {};
  const std::string_view size = text.ends_with("/s") ? std::string_view(text).substr(0, text.size() - 2) : text;
  const Result<std::uint64_t> rate = parse_size(size);
  if (!rate || *rate < job::k_upload_limit_min)
    return fields.expected("upload_limit", "bytes a second such as 20MB/s, at least 100kB/s");
  into = *rate;
  return {};
}
}  // namespace

Result<void> read_checkpoint(SourceFile& source, const Node& node, const std::map<std::string, std::string>& envs,
                             job::CheckpointPolicy& into) {
  TRY_ASSIGN(const Fields fields,
             Fields::open(source, node, "checkpoint",
                          {"path", "interval", "signal", "keep", "standby", "copies", "upload_limit", "shards", "whole_when"}));
  TRY(fields.text("path", into.path));
  if (!into.path.empty()) {
    into.path = expand_envs(into.path, envs);
    if (into.path.find('$') != std::string::npos)
      return fields.error("path", "'" + excerpt(into.path) +
                                      "' names a variable that is not among the job's envs; the program has "
                                      "$GRIDCTL_CKPT_DIR when no path is given");
    if (into.path.starts_with('~'))
      return fields.error("path",
                          "'" + excerpt(into.path) +
                              "' is a different home directory on each host; give a path relative to the working "
                              "directory, or an absolute one");
    const auto path = job_path(into.path);
    if (!path) return fields.error("path", path.error().message);
    into.path = path->size() > 1 && path->ends_with('/') ? path->substr(0, path->size() - 1) : *path;
  }
  if (into.path == "/" || into.path == "." || into.path == "/work")
    return fields.error("path", "expected a directory used only for checkpoints, got '" + into.path + "'");
  TRY(fields.text("whole_when", into.whole_when));
  if (into.whole_when.size() > k_glob_max || into.whole_when.starts_with('/'))
    return fields.expected("whole_when", "a file's name or its path within checkpoint.path, with * ? [..]");
  TRY(read_interval(fields, into));
  TRY(read_signal(fields, "signal", into.signal));
  TRY(fields.boolean("standby", into.standby));
  TRY(fields.integer("copies", 1, job::k_copies_max, into.copies));
  TRY(read_upload_limit(fields, into.upload_limit));
  TRY(fields.choice("shards", "all", "local", into.local_shards));
  return read_keep(source, fields, into.keep);
}

Result<void> read_recovery(SourceFile& source, const Node& node, job::RecoveryPolicy& into) {
  TRY_ASSIGN(const Fields fields,
             Fields::open(source, node, "recovery",
                          {"lost_after", "max_failures", "on_exit", "lease", "hangs", "hang_after", "stragglers", "restore_from", "exact", "notice"}));
  TRY(fields.duration("lost_after", k_lost_after_min, k_lost_after_max, into.lost_after));
  TRY(fields.integer("max_failures", 0, k_failures_max, into.max_failures));
  TRY(fields.duration("lease", k_lease_min, k_lease_max, into.lease));
  bool tell = into.hangs == job::Hangs::tell, replace = into.stragglers == job::Stragglers::replace;
  TRY(fields.choice("hangs", "restart", "tell", tell));
  into.restart_one = fields.find("hangs") != nullptr && !tell;
  TRY(fields.duration("hang_after", k_hang_after_min, k_hang_after_max, into.hang_after));
  TRY(fields.choice("stragglers", "tell", "replace", replace));
  if (fields.find("restore_from") != nullptr) {
    bool trusted = false;
    TRY(fields.choice("restore_from", "any", "trusted", trusted));
    into.restore_from = trusted ? job::RestoreFrom::trusted : job::RestoreFrom::any;
  }
  TRY(fields.choice("exact", "any", "required", into.exact_required));
  TRY(read_signal(fields, "notice", into.notice));
  into.hangs = tell ? job::Hangs::tell : job::Hangs::restart;
  into.stragglers = replace ? job::Stragglers::replace : job::Stragglers::tell;
  if (const Node* on_exit = fields.find("on_exit")) {
    TRY_ASSIGN(const Fields exits, Fields::open(source, *on_exit, "recovery.on_exit", {"restart", "fail"}));
    TRY(exits.exit_codes("restart", into.restart_on));
    TRY(exits.exit_codes("fail", into.fail_on));
    for (int code : into.restart_on)
      if (std::ranges::find(into.fail_on, code) != into.fail_on.end())
        return exits.error("fail", "exit code " + std::to_string(code) + " is also in 'restart'");
  }
  return {};
}

Result<void> check_recovery(const Fields& root, const job::RecoveryPolicy& policy) {
  if (policy.lease > policy.lost_after) return {};
  return root.error("recovery", "the lease (" + format_duration(policy.lease) + ") must be longer than lost_after (" +
                                    format_duration(policy.lost_after) + ")");
}

namespace {
Result<void> read_query(const SourceFile& source, const Node& node, const std::string& path, std::string& into) {
  Result<sched::Query> query = sched::Query::parse(node.text);
  if (query) {
    into = node.text;
    return {};
  }
  Error error = error_at(source.file, node.at, "key '" + path + "': " + query.error().message);
  error.context = query.error().context;
  error.hint = query.error().hint;
  return error;
}
}  // namespace

Result<void> read_constraints(SourceFile& source, const Node& node, job::Constraints& into) {
  if (node.kind == Node::Kind::scalar) return read_query(source, node, "constraints", into.query);
  TRY_ASSIGN(const Fields fields,
             Fields::open(source, node, "constraints",
                          {"region", "class", "max_price", "providers", "labels", "query", "interconnect", "traffic", "unmeasured", "unproven", "images"}));
  if (const Node* query = fields.find("query")) {
    if (query->kind != Node::Kind::scalar) return fields.expected("query", "a text such as 'num_gpus>=2'");
    TRY(read_query(source, *query, "constraints.query", into.query));
  }
  TRY(read_region(fields, into));
  TRY(fields.choice("interconnect", "fast", "any", into.any_interconnect));
  TRY(fields.choice("traffic", "protected", "clear", into.clear_traffic));
  TRY(fields.choice("unmeasured", "refuse", "allow", into.unmeasured));
  TRY(fields.choice("unproven", "refuse", "allow", into.unproven));
  TRY(fields.choice("images", "digests", "tags", into.image_tags));
  TRY(fields.words("class", into.classes));
  for (const std::string& word : into.classes)
    if (std::ranges::find(k_classes, word) == k_classes.end())
      return fields.error("class", "expected datacenter, cloud, market or home, got '" + excerpt(word) + "'" +
                                       suggestion(word, k_classes));
  TRY(fields.number("max_price", {0, k_money_max}, into.max_price));
  TRY(fields.words("providers", into.providers));
  for (const std::string& name : into.providers)
    if (auto checked = check_name("provider", name); !checked)
      return fields.error("providers", checked.error().message);
  return read_labels(fields, into);
}

Result<void> read_container(SourceFile& source, const Node& node, std::optional<bool>& root_writable) {
  TRY_ASSIGN(const Fields fields, Fields::open(source, node, "container", {"root"}));
  std::string root;
  TRY(fields.text("root", root));
  if (root.empty()) return {};
  if (root != "writable" && root != "read-only") return fields.expected("root", "writable or read-only");
  root_writable = root == "writable";
  return {};
}

Result<void> read_budget(SourceFile& source, const Node& node, std::optional<double>& total) {
  TRY_ASSIGN(const Fields fields, Fields::open(source, node, "budget", {"total"}));
  return fields.number("total", k_budget_limits, total);
}

Result<void> read_replication(SourceFile& source, const Node& node, job::Spec& spec) {
  TRY_ASSIGN(const Fields fields, Fields::open(source, node, "replication", {"replicas", "mode"}));
  int twins = 2;
  TRY(fields.integer("replicas", 1, job::k_twins_max, twins));
  std::string mode = "standby";
  TRY(fields.text("mode", mode));
  if (mode == "standby") {
    if (twins > 2) return fields.error("replicas", "standby uses one other host: expected 2, or mode: active");
    spec.checkpoint.standby = spec.checkpoint.standby || twins == 2;
  } else if (mode == "active") {
    spec.twins = twins;
  } else {
    return fields.expected("mode", "standby or active");
  }
  return {};
}

Result<job::Deadline> parse_deadline(std::string_view text) {
  job::Deadline deadline;
  if (const auto after = parse_duration(text); after && *after >= k_deadline_min) deadline.after = *after;
  else if (const auto at = parse_rfc3339(text)) deadline.at = *at;
  else
    return make_error(Code::usage, "a duration of at least " + format_duration(k_deadline_min) +
                                       " such as 6h, or a time such as 2026-12-01T08:00:00Z");
  return deadline;
}

Result<void> read_deadline(const Fields& root, std::optional<job::Deadline>& into) {
  const Node* value = root.find("deadline");
  if (value == nullptr) return {};
  if (value->kind != Node::Kind::map) return root.value("deadline", into, parse_deadline);
  TRY_ASSIGN(const Fields fields, Fields::open(root.source(), *value, "deadline", {"at", "hard"}));
  if (fields.find("at") == nullptr) return fields.expected("at", parse_deadline("").error().message);
  TRY(fields.value("at", into, parse_deadline));
  return fields.boolean("hard", into->hard);
}

}  // namespace gridctl::config
