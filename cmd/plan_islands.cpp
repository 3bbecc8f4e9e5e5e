// SPDX-License-Identifier: Apache-2.0
#include "cmd/plan_islands.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.hpp"
#include "plan/beyond.hpp"
#include "ui/human.hpp"

namespace gridctl::cmd {

namespace {
// Returns the slowest measured pair with one host in each list; nullptr: none was measured.
const registry::HostLink* slowest(const std::vector<registry::HostLink>& links, const std::set<std::string>& from,
                                  const std::set<std::string>& to) {
  const registry::HostLink* out = nullptr;
  for (const registry::HostLink& link : links)
    if (link.bits_per_second && *link.bits_per_second > 0 && link.source != link.target &&
        ((from.contains(link.source) && to.contains(link.target)) ||
         (to.contains(link.source) && from.contains(link.target))) &&
        (out == nullptr || *link.bits_per_second < *out->bits_per_second))
      out = &link;
  return out;
}

std::set<std::string> names_of(const Machines& machines) { return {machines.hosts.begin(), machines.hosts.end()}; }
}  // namespace

void apply_links(const std::vector<registry::HostLink>& links, std::vector<Machines>& all) {
  for (Machines& machines : all) {
    if (machines.hosts.size() < 2 || machines.rdma) continue;
    const std::set<std::string> names = names_of(machines);
    const registry::HostLink* const link = slowest(links, names, names);
    if (link == nullptr) {
      machines.sources.push_back("network between the hosts: not measured, assumed " +
                                 rate_text(machines.cluster.inter_link) + " for each GPU; gridctl provider links measures");
      continue;
    }
    machines.between = *link->bits_per_second / 8;
    machines.cluster.inter_link = machines.between / machines.cluster.gpus_per_node;
    machines.sources.push_back("network between the hosts: measured, " + rate_text(machines.between) + " from " +
                               link->source + " to " + link->target + ", the slowest pair");
  }
}

namespace {
std::optional<plan::Mixed> quickest(const std::vector<const Tried*>& groups) {
  std::vector<plan::Question> questions;
  std::vector<plan::Plan> best;
  for (const Tried* one : groups) {
    questions.push_back(one->question);
    questions.back().training.batch = groups.front()->question.training.batch;
    if (!one->answer.best.empty()) best.push_back(one->answer.best.front());
  }
  std::optional<plan::Mixed> out = plan::mix_layers(questions);
  if (best.size() < groups.size()) return out;
  const std::optional<plan::Mixed> batches = plan::mix_batches(questions, best);
  return batches && (!out || batches->tokens_per_s >= out->tokens_per_s) ? batches : out;
}
}  // namespace

std::optional<TogetherAtSite> together(const std::vector<Tried>& tried) {
  std::map<std::string, std::vector<const Tried*>> sites;
  for (const Tried& one : tried) sites[one.machines.site].push_back(&one);
  std::optional<TogetherAtSite> out;
  for (const auto& [site, groups] : sites) {
    if (groups.size() < 2) continue;
    const std::optional<plan::Mixed> mixed = quickest(groups);
    if (mixed && (!out || mixed->tokens_per_s > out->mixed.tokens_per_s)) out = TogetherAtSite{groups, *mixed};
  }
  return out;
}

std::string together_text(const TogetherAtSite& found, const plan::Plan* alone) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < found.groups.size(); ++i) {
    const plan::MixedPart& part = found.mixed.parts[i];
    const Machines& machines = found.groups[i]->machines;
    std::string text = std::to_string(machines.nodes) + " x " + std::to_string(machines.cluster.gpus_per_node) + " " +
                       machines.cluster.device.name;
    if (found.mixed.by_layers()) {
      std::vector<std::string> layers;
      for (const int count : part.layers) layers.push_back(std::to_string(count));
      text += ": layers " + join(layers, "+");
    } else {
      text += ": " + std::to_string(part.batch) + " sequences, " + plan::text_of(part.parallelism);
    }
    parts.push_back(text);
  }
  const plan::Parallelism& first = found.mixed.parts.front().parallelism;
  std::string out = std::string("all kinds of GPU together, ") +
                    (found.mixed.by_layers() ? "layers over stages by speed (" + plan::text_of(first) + ")"
                                             : std::string("shares of the batch by speed")) +
                    ": " + join(parts, "; ") + "; " + ui::number(found.mixed.seconds, 3) + " s a step, " +
                    std::to_string(static_cast<long long>(found.mixed.tokens_per_s)) + " tokens/s";
  if (alone == nullptr) return out + "; no kind of GPU could train it alone";
  const double gain = found.mixed.tokens_per_s / alone->tokens_per_s;
  return out + (gain > 1.02 ? ", " + ui::number(gain, 3) + " times the best of one kind"
                            : ": no quicker than the best of one kind");
}

namespace {
struct Islands {
  std::size_t count = 0;
  double bytes_per_s = 0;  // 0: not known
  double step_s = 0;
  std::string what, where;
};

// Returns the hosts of one group with slow links: each of them is an island, for which the quickest plan on one node
// counts.
std::optional<Islands> slow_group(const std::vector<Tried>& tried) {
  for (const Tried& one : tried) {
    const Machines& machines = one.machines;
    if (machines.nodes < 2 || machines.between <= 0 || machines.between > k_slow_link) continue;
    const plan::Plan* alone = nullptr;
    for (const auto& [gpus, plan] : one.answer.by_gpus)
      if (gpus <= machines.cluster.gpus_per_node) alone = &plan;
    if (alone == nullptr) continue;
    const double share = static_cast<double>(machines.nodes);  // of the batch
    return Islands{static_cast<std::size_t>(machines.nodes), machines.between, alone->time.seconds / share, machines.hosts.empty() ? "nodes" : "hosts", "between them"};
  }
  return std::nullopt;
}

std::optional<Islands> sites_apart(const std::vector<Tried>& tried, const std::vector<registry::HostLink>& links) {
  std::map<std::string, std::set<std::string>> hosts;
  std::map<std::string, double> step;
  double uplink = 0;
  for (const Tried& one : tried) {
    if (one.answer.best.empty()) continue;
    hosts[one.machines.site].insert(one.machines.hosts.begin(), one.machines.hosts.end());
    double& best = step[one.machines.site];
    const double seconds = one.answer.best.front().time.seconds;
    best = best == 0 ? seconds : std::min(best, seconds);
    if (one.machines.uplink > 0) uplink = uplink == 0 ? one.machines.uplink : std::min(uplink, one.machines.uplink);
  }
  if (hosts.size() < 2) return std::nullopt;
  Islands out{hosts.size(), 0, 0, "sites", "of the slowest site"};
  // The sites step together: the slowest sets the pace, each with its share of the batch.
  for (const auto& [site, seconds] : step) out.step_s = std::max(out.step_s, seconds / static_cast<double>(hosts.size()));
  for (auto a = hosts.begin(); a != hosts.end(); ++a)
    for (auto b = std::next(a); b != hosts.end(); ++b)
      if (const registry::HostLink* const link = slowest(links, a->second, b->second))
        if (const double rate = *link->bits_per_second / 8; out.bytes_per_s == 0 || rate < out.bytes_per_s) {
          out.bytes_per_s = rate;
          out.where = "from " + link->source + " to " + link->target;
        }
  if (out.bytes_per_s == 0) out.bytes_per_s = uplink;
  return out;
}
}  // namespace

std::string over_wan(const std::vector<Tried>& tried, const std::vector<registry::HostLink>& links,
                     double bytes_per_param) {
  std::optional<Islands> islands = sites_apart(tried, links);
  if (!islands) islands = slow_group(tried);
  if (!islands) return "";
  const std::string who = "over the WAN, " + std::to_string(islands->count) + " " + islands->what;
  if (islands->bytes_per_s <= 0)
    return who + " could train together by DiLoCo, but no link between them was measured; gridctl provider links measures";
  const plan::Training& training = tried.front().question.training;
  const plan::MemoryFacts facts = plan::memory_facts(training);
  const double params = training.method == plan::Method::full ? facts.count.total : facts.trainable;
  const Result<plan::WanPlan> plan =
      plan::plan_wan({islands->bytes_per_s, islands->step_s, params, bytes_per_param});
  if (!plan) return who + " cannot train together: " + plan.error().message;
  return who + " can train together by DiLoCo: over " + rate_text(islands->bytes_per_s) + " " + islands->where +
         ", an exchange of " + ui::number(plan->payload / 1e9, 3) + " GB every " + std::to_string(plan->inner_steps) +
         " steps takes " + ui::number(plan->sync_s, 3) + " s; " + ui::number(100 * plan->utilisation, 3) +
         " % of the time is computing";
}

}  // namespace gridctl::cmd
