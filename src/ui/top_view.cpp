// SPDX-License-Identifier: Apache-2.0
#include "ui/top_view.hpp"

#include <algorithm>
#include <map>

#include "base/bytes.hpp"
#include "base/formatted.hpp"
#include "base/text.hpp"
#include "ui/human.hpp"
#include "ui/json_text.hpp"
#include "ui/table.hpp"
#include "ui/use_view.hpp"
#include "ui/width.hpp"

namespace gridctl::ui {

namespace {
constexpr std::size_t k_rows_least = 3;  // of each table, its heading counted
constexpr std::size_t k_bars_shown = 15;

// Sums up the members of a job, or those on one host.
struct Together {
  std::size_t members = 0;
  Use use;
  double given = 0;
  std::vector<int> sums;  // of histories, aligned at their ends
  std::vector<int> counts;

  void add(const registry::MemberUse& member) {
    ++members;
    if (member.use.cpus) use.cpus = use.cpus.value_or(0) + *member.use.cpus;
    use.memory_bytes += member.use.memory_bytes;
    use.gpus.insert(use.gpus.end(), member.use.gpus.begin(), member.use.gpus.end());
    given += member.cpus_given;
    const std::size_t length = std::max(sums.size(), member.history.size());
    sums.insert(sums.begin(), length - sums.size(), 0);
    counts.insert(counts.begin(), length - counts.size(), 0);
    for (std::size_t i = 0; i < member.history.size(); ++i) {
      const std::size_t at = length - member.history.size() + i;
      sums[at] += member.history[i];
      ++counts[at];
    }
  }
  [[nodiscard]] std::vector<int> history() const {
    std::vector<int> means;
    for (std::size_t i = 0; i < sums.size(); ++i) means.push_back(sums[i] / std::max(counts[i], 1));
    return means;
  }
};

std::string or_dash(std::string text) { return text.empty() ? "-" : text; }
std::string cpus_of(const Together& together) {
  return together.use.cpus ? formatted("%.1f", *together.use.cpus) : "-";
}
std::string memory_of(const Together& together) {
  return together.use.memory_bytes > 0 ? format_size(together.use.memory_bytes) : "-";
}

std::map<std::string, Together> by_host(const TopView& view) {
  std::map<std::string, Together> hosts;
  for (const registry::JobUse& job : view.use.jobs)
    for (const registry::MemberUse& member : job.members) hosts[member.host.value].add(member);
  return hosts;
}

std::string held_text(const registry::HostLoad* load, std::size_t gpus) {
  if (gpus == 0) return "-";
  return (load == nullptr || load->gpus_held < 0 ? "?" : std::to_string(load->gpus_held)) + "/" + std::to_string(gpus);
}

Table hosts_table(const TopView& view, WallTime now) {
  Table table({{.title = "HOST"},
               {.title = "STATE", .width_min = 9},
               {.title = "GPUS", .right = true},
               {.title = "BUSY", .right = true},
               {.title = "GPU MEMORY", .right = true, .drop = 3},
               {.title = "HEAT", .right = true, .drop = 4},
               {.title = "LOAD", .right = true},
               {.title = "CPUS", .right = true, .drop = 5},
               {.title = "DISK FREE", .right = true, .drop = 6},
               {.title = "JOBS", .right = true},
               {.title = "$/H", .right = true, .drop = 1},
               {.title = "SEEN", .right = true, .drop = 2}});
  std::map<std::string, Together> used = by_host(view);
  for (const TopHost& host : view.hosts) {
    const registry::Provider& provider = host.provider;
    const Together& together = used[provider.name.value];
    const registry::HostLoad* load = view.use.of(provider.name);
    table.add({provider.name.value, host.state, held_text(load, provider.inventory->gpus.size()),
               percent_text(gpu_percent(together.use)), or_dash(gpu_memory_text(together.use)), or_dash(heat_text(together.use)),
               load == nullptr ? "-" : formatted("%.1f", load->load1), number(provider.inventory->cpus),
               load == nullptr ? "-" : format_size(load->disk_free_bytes), std::to_string(together.members),
               money(provider.price_per_hour), age(provider.last_seen_at, now)},
              {Paint::bold, paint_of_liveness(host.state)});
  }
  return table;
}

Table jobs_table(const TopView& view, WallTime now) {
  Table table({{.title = "JOB", .whole = true},
               {.title = "NAME", .shrinks = true},
               {.title = "STATE", .width_min = 9},
               {.title = "PROVIDER", .shrinks = true},
               {.title = "GPU", .right = true},
               {.title = "GPU MEMORY", .right = true, .drop = 2},
               {.title = "HEAT", .right = true, .drop = 3},
               {.title = "CPU", .right = true},
               {.title = "MEMORY", .right = true, .drop = 4},
               {.title = "TOOK", .right = true},
               {.title = "LAST MINUTES", .drop = 1},
               {.title = "REASON", .shrinks = true, .drop = 5}});
  for (const registry::JobRow& job : view.jobs) {
    Together together;
    if (const registry::JobUse* use = view.use.of(job.id))
      for (const registry::MemberUse& member : use->members) together.add(member);
    const std::string more = together.members > 1 ? " +" + std::to_string(together.members - 1) : "";
    table.add({job.id.value, job.name, std::string(job::state_name(job.state)), or_dash(job.provider.value + more),
               percent_text(gpu_percent(together.use)), or_dash(gpu_memory_text(together.use)), or_dash(heat_text(together.use)),
               cpus_of(together), memory_of(together), span(job.submitted_at, job.ended_at, now),
               sparkline(together.history(), k_bars_shown), job.reason},
              {Paint::none, Paint::bold, paint_of(job.state)});
  }
  return table;
}

std::string headline(const TopView& view, WallTime now, const std::string& keys) {
  std::size_t answering = 0, running = 0, gpus = 0;
  int held = 0;
  for (const TopHost& host : view.hosts) {
    const registry::HostLoad* load = view.use.of(host.provider.name);
    if (load != nullptr) ++answering;
    gpus += host.provider.inventory->gpus.size();
    if (load != nullptr) held += std::max(load->gpus_held, 0);
  }
  for (const registry::JobRow& job : view.jobs) running += job.state == job::JobState::running ? 1 : 0;
  std::string line = moment(now, now) + "  " + std::to_string(answering) + " of " + std::to_string(view.hosts.size()) +
                     " hosts answer, " + std::to_string(running) + " of " + std::to_string(view.jobs.size()) + " jobs run";
  if (gpus > 0) line += ", " + std::to_string(held) + " of " + std::to_string(gpus) + " GPUs in use";
  return line + (keys.empty() ? "" : "  " + keys);
}

void append(std::vector<std::string>& lines, const Table& table, std::size_t columns, std::size_t rows, Style style,
            std::string_view what) {
  std::vector<std::string> all = split_lines(table.render(columns, style));
  if (rows > 0 && all.size() > rows) {
    const std::size_t left_out = all.size() - rows + 1;
    all.resize(rows - 1);
    all.push_back(style(Paint::dim, truncate("and " + std::to_string(left_out) + " more " + std::string(what), columns)));
  }
  lines.insert(lines.end(), all.begin(), all.end());
}

std::string host_json(const TopHost& host, const registry::HostLoad* load, const Together& used) {
  const std::size_t gpus = host.provider.inventory->gpus.size();
  JsonObject json;
  json("name", host.provider.name.value)("state", host.state)("gpus", gpus);
  json("gpus_in_use", load == nullptr || load->gpus_held < 0 ? std::nullopt : std::optional(load->gpus_held));
  json("gpu_busy_percent", gpu_percent(used.use))("cpus", host.provider.inventory->cpus);
  json("load", load == nullptr ? std::nullopt : std::optional(load->load1));
  json("disk_free_bytes", load == nullptr ? std::nullopt : std::optional(load->disk_free_bytes));
  return json("jobs", used.members).text();
}

std::string job_json(const registry::JobRow& job, const registry::JobUse* use) {
  const auto member_json = [](const registry::MemberUse& member) {
    return JsonObject()("rank", member.rank)("provider", member.host.value).raw("use", use_json(member, {})).text();
  };
  JsonObject json;
  json("job_id", job.id.value)("name", job.name)("state", job::state_name(job.state));
  json.text_or_null("provider", job.provider.value)("submitted_at", job.submitted_at);
  return json.raw("members", use == nullptr ? "[]" : json_list(use->members, member_json)).text();
}
}  // namespace

std::vector<std::string> top_screen(const TopView& view, WallTime now, std::size_t columns, std::size_t rows, Style style,
                                    const std::string& keys) {
  const std::string head = headline(view, now, keys);
  std::vector<std::string> lines{columns == 0 ? head : truncate(head, columns), ""};
  std::size_t host_rows = 0, job_rows = 0;
  if (rows > 0) {
    const std::size_t room = std::max(rows, lines.size() + 1 + 2 * k_rows_least) - lines.size() - 1;
    const std::size_t hosts = view.hosts.size() + 1, jobs = view.jobs.size() + 1;
    // Each half gets half the rows; rows that one does not need go to the other.
    host_rows = std::max({k_rows_least, room / 2, room - std::min(room, jobs)});
    job_rows = std::max(k_rows_least, room - std::min({room, host_rows, hosts}));
  }
  if (view.hosts.empty()) lines.push_back("no hosts yet: gridctl provider register NAME USER@HOST");
  else append(lines, hosts_table(view, now), columns, host_rows, style, "hosts");
  lines.push_back("");
  if (view.jobs.empty()) lines.push_back("no active jobs");
  else append(lines, jobs_table(view, now), columns, job_rows, style, "jobs");
  return lines;
}

std::string top_json(const TopView& view, WallTime now) {
  std::map<std::string, Together> used = by_host(view);
  const std::string hosts = json_list(view.hosts, [&](const TopHost& host) {
    return host_json(host, view.use.of(host.provider.name), used[host.provider.name.value]);
  });
  const std::string jobs =
      json_list(view.jobs, [&](const registry::JobRow& job) { return job_json(job, view.use.of(job.id)); });
  return JsonObject()("at", now).raw("providers", hosts).raw("jobs", jobs).text();
}

}  // namespace gridctl::ui
