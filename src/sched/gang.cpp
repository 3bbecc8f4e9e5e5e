// SPDX-License-Identifier: Apache-2.0
#include "sched/gang.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "base/formatted.hpp"
#include "base/text.hpp"
#include "sched/candidate.hpp"
#include "sched/fabric.hpp"
#include "sched/gang_search.hpp"
#include "sched/geo/residency.hpp"
#include "sched/reach_proof.hpp"

namespace gridctl::sched {

namespace {
constexpr std::string_view k_mixed = "mixed";  // GPUs of several models, or of several vendors
// Names the reason for which two hosts may not be members of one gang.
enum class Apart : std::uint8_t {
  measured,  // a link that was measured and is too slow or too long
  lasting,   // a link that was measured and is too long, or two declared sites: rates may be better another time
  unproven,  // each link that is not known to be as fast as an island's
  declared,  // as measured; and two declared sites, unless they were measured near each other
};

// Lists hosts that may form a gang with each other, as far as links and sites allow.
struct Pool {
  std::string name;
  std::string unmeasured;
  std::set<std::string> hosts;  // empty = all
  Apart apart = Apart::measured;
};

constexpr double k_slowest_rate = 10e6;  // bits a second: nobody means slower links by a gang

constexpr std::string_view k_on_trust =
    "the links of these hosts were not measured; `gridctl provider links --measure` measures them";

// Members send each other data unencrypted. The owner of a borrowed host can read and change what a member there exchanges.
bool exposes_traffic(const job::Spec& spec, const HostFacts& host) {
  return !spec.constraints.clear_traffic && is_lent(host.host_class, host.labels);
}
Rejection clear_text_rejection(const HostFacts& host) {
  return {host.name, std::string(k_clear_text),
          "it is owned by others, and the members of a gang exchange data unencrypted; " + std::string(k_clear_text_way_out) +
              " in the job file allows that"};
}

std::string island_name(const std::vector<std::string>& island) {
  const std::size_t others = island.size() - 1;
  return "the island of " + island.front() + " and " + std::to_string(others) + (others == 1 ? " other" : " others");
}

// Returns the property that makes members alike: the GPUs' model; without GPUs, the CPU's.
std::string kind_of(const Candidate& c) {
  if (c.gpus.empty()) return c.host->inventory->cpu_model;
  const Gpu& gpu = *c.gpus.front();
  const bool one_model = std::ranges::all_of(c.gpus, [&](const Gpu* g) { return g->name == gpu.name; });
  return one_model ? (gpu.model.empty() ? gpu.name : gpu.model) : "";
}

// Lists candidates that may be together, each with the same number of GPUs.
struct Group {
  std::string kind;
  std::vector<Candidate> candidates;
};

void keep_gpus(Candidate& c, std::size_t gpus) { c.gpus = best_joined(c.host->inventory, std::move(c.gpus), gpus); }

std::vector<Group> alike(const std::vector<const Candidate*>& fitting) {
  std::map<std::pair<std::string, std::size_t>, Group> groups;
  for (const Candidate* one : fitting) groups[{kind_of(*one), one->gpus.size()}].kind = kind_of(*one);
  for (auto& [key, group] : groups)
    for (const Candidate* one : fitting) {
      const bool belongs = kind_of(*one) == key.first && one->gpus.size() >= key.second;
      if (!belongs || (key.first.empty() && !one->gpus.empty())) continue;  // a mixed host is like no other
      group.candidates.push_back(*one);
      keep_gpus(group.candidates.back(), key.second);
    }
  std::vector<Group> out;
  for (auto& [key, group] : groups) out.push_back(std::move(group));
  return out;
}

std::vector<Group> by_vendor(const std::vector<const Candidate*>& fitting, bool mixed) {
  std::map<int, Group> groups;
  for (const Candidate* one : fitting) {
    const int vendor = mixed || one->gpus.empty() ? -1 : static_cast<int>(one->gpus.front()->vendor);
    groups[vendor].kind = k_mixed;
    groups[vendor].candidates.push_back(*one);
  }
  std::vector<Group> out;
  for (auto& [vendor, group] : groups) out.push_back(std::move(group));
  return out;
}

// Finds pairs that cannot be together: one machine under two names, or a link that was measured and is too slow.
// Measurements use TCP; hosts that both have InfiniBand or RoCE communicate over that instead.
class Conflicts {
 public:
  Conflicts(const GangWish& wish, std::span<const PairLink> links) : site_decides_(wish.near == Near::site) {
    if (wish.near == Near::any) return;
    const double needed = std::min(wish.bits_per_second.value_or(k_island_bits_per_second), k_island_bits_per_second);
    const bool at_one_site = wish.near == Near::site || wish.bits_per_second;
    for (const PairLink& link : links) {
      const Names pair = std::minmax(link.source, link.target);
      const bool slow = link.bits_per_second && *link.bits_per_second < needed;
      if (slow && wish.near == Near::island) slow_.insert(pair);
      if (link.rtt && *link.rtt > (at_one_site ? k_site_rtt : k_island_rtt)) far_.insert(pair);
      if (link.rtt && *link.rtt <= k_site_rtt) near_.insert(pair);
      if (is_fast(link)) ++fast_[pair];
    }
  }
  [[nodiscard]] bool between(const HostFacts& a, const HostFacts& b, Apart apart) const {
    return are_one_machine(a, b) || are_apart(a, b, apart);
  }
  [[nodiscard]] static bool are_one_machine(const HostFacts& a, const HostFacts& b) {
    const auto same = [](const std::string& left, const std::string& right) { return !left.empty() && left == right; };
    return same(a.inventory->machine_id, b.inventory->machine_id) || same(a.inventory->boot_id, b.inventory->boot_id);
  }
  [[nodiscard]] bool are_apart(const HostFacts& a, const HostFacts& b, Apart apart) const {
    const Names pair = std::minmax(a.name.value, b.name.value);
    if (apart == Apart::unproven) {
      const auto found = fast_.find(pair);
      return found == fast_.end() || found->second < 2;  // of the two directions
    }
    if (apart == Apart::measured && site_decides_) return false;
    if (far_.contains(pair)) return true;
    const bool sites_count = apart == Apart::declared || apart == Apart::lasting;
    if (sites_count && !a.site.empty() && !b.site.empty() && a.site != b.site && !near_.contains(pair)) return true;
    return apart != Apart::lasting && slow_.contains(pair) && !common_rdma({&*a.inventory, &*b.inventory});
  }
  [[nodiscard]] bool any_slow() const { return !slow_.empty(); }
  // Returns whether some fast link leads out of an island.
  [[nodiscard]] bool fast_between(const std::vector<std::vector<std::string>>& islands) const {
    std::map<std::string, std::size_t> island_of;
    for (std::size_t i = 0; i < islands.size(); ++i)
      for (const std::string& host : islands[i]) island_of[host] = i + 1;
    return std::ranges::any_of(fast_, [&](const auto& one) {
      return one.second == 2 && island_of[one.first.first] != island_of[one.first.second];
    });
  }

 private:
  using Names = std::pair<std::string, std::string>;
  [[nodiscard]] static bool is_fast(const PairLink& link) {
    return link.rtt && *link.rtt <= k_island_rtt && link.bits_per_second &&
           *link.bits_per_second >= k_island_bits_per_second;
  }

  bool site_decides_;  // who is at one site is near enough
  std::set<Names> slow_, far_, near_;
  std::map<Names, int> fast_;
};

// Topology's islands share no host, although the hosts that two of them have in common may be an island too: in that
// case, each set of hosts with fast links among them is considered.
std::vector<Pool> pools_of(Near near, const Topology& topology, bool need_known, const Conflicts& conflicts) {
  std::vector<Pool> pools;
  if (near == Near::any) return {{"all hosts", "", {}}};
  if (near == Near::island && conflicts.fast_between(topology.islands))
    pools.push_back({"hosts with fast links", "", {}, Apart::unproven});
  else
    for (const std::vector<std::string>& island : topology.islands)
      pools.push_back({island_name(island), "", {island.begin(), island.end()}});
  for (const Site& site : topology.sites) {
    const bool on_trust = near == Near::island;
    // The site was measured, so it would be an island, unless the job's exchanges need less.
    if (on_trust && !site.declared && !need_known) continue;
    pools.push_back({"site " + site.name,
                     on_trust && site.declared ? std::string(k_on_trust) : "",
                     {site.hosts.begin(), site.hosts.end()}});
  }
  return pools;
}

// Returns whether `wanted` of these hosts are near enough to each other; also true if this cannot be decided in
// reasonable time.
bool can_be_together(const std::vector<const HostFacts*>& hosts, std::size_t wanted, const Conflicts& conflicts) {
  constexpr int k_looks_max = 100'000;
  int looks = 0;
  std::vector<const HostFacts*> chosen;
  const std::function<bool(std::size_t)> add = [&](std::size_t from) {
    if (chosen.size() >= wanted || looks > k_looks_max) return true;
    for (std::size_t i = from; i + (wanted - chosen.size()) <= hosts.size(); ++i) {
      const auto clashes = [&](const HostFacts* other) {
        return conflicts.are_apart(*other, *hosts[i], Apart::lasting);
      };
      looks += static_cast<int>(chosen.size()) + 1;
      if (std::ranges::any_of(chosen, clashes)) continue;
      chosen.push_back(hosts[i]);
      if (add(i + 1)) return true;
      chosen.pop_back();
    }
    return false;
  };
  return add(0);
}

GangPlan plan_of(const Pool& pool, const Group& group, const GangSearch::Found& found) {
  GangPlan plan;
  plan.pool = pool.name;
  plan.unmeasured = pool.unmeasured;
  plan.group = found.group;
  plan.estimate = found.estimate;
  plan.exact = found.exact;
  for (const std::size_t at : found.members) plan.members.push_back(group.candidates[at].placement);
  const Candidate& first = group.candidates[found.members.front()];
  std::vector<std::string> names;
  for (const Placement& member : plan.members) names.push_back(member.host.value);
  std::ranges::sort(names);
  if (pool.apart == Apart::unproven) plan.pool = island_name(names);
  plan.gpus = group.kind == k_mixed ? std::string(k_mixed)
              : first.gpus.empty()  ? first.host->inventory->cpu_model
                                    : gpus_text(first.gpus);
  std::ranges::sort(plan.members, {}, &Placement::host);
  return plan;
}

struct Search {
  const job::Spec& spec;
  GangWish wish;  // `members` is the size that is looked for just now
  const JobKnowledge& known;
  const Conflicts& conflicts;
  std::vector<GangPlan> plans{};
  std::vector<std::string> short_pools{};
  std::size_t most = 0;  // hosts that fit and are alike, of the largest pool that was too small
};

void search_group(Search& search, const Pool& pool, Group& group) {
  for (Candidate& c : group.candidates) {
    c.placement.gpu_uuids.clear();
    estimate(c, search.known, search.spec.optimize);
  }
  GangSearch in(search.spec.optimize, search.known, search.wish.members);
  for (const Candidate& c : group.candidates) in.add(c);
  const auto found = in.best([&](std::size_t a, std::size_t b) {
    return search.conflicts.between(*group.candidates[a].host, *group.candidates[b].host, pool.apart);
  });
  if (found) search.plans.push_back(plan_of(pool, group, *found));
}

std::string why_not_together(const std::vector<const Candidate*>& fitting) {
  for (const Candidate* a : fitting)
    for (const Candidate* b : fitting)
      if (a < b && Conflicts::are_one_machine(*a->host, *b->host))
        return a->host->name.value + " and " + b->host->name.value + " are the same machine under two names";
  return "too many of their links are too slow";
}

void search_pool(Search& search, const Pool& pool, const std::vector<Candidate>& all) {
  std::vector<const Candidate*> fitting;
  for (const Candidate& c : all)
    if (pool.hosts.empty() || pool.hosts.contains(c.host->name.value)) fitting.push_back(&c);
  if (fitting.empty()) return;
  const std::size_t before = search.plans.size();
  std::size_t most = 0;
  for (Group& group : search.wish.near == Near::any ? by_vendor(fitting, search.wish.mixed_vendors) : alike(fitting)) {
    most = std::max(most, group.candidates.size());
    if (group.candidates.size() >= static_cast<std::size_t>(search.wish.members)) search_group(search, pool, group);
  }
  if (search.plans.size() > before) return;
  search.most = std::max(search.most, most);
  if (pool.apart == Apart::declared && !search.short_pools.empty()) return;
  if (most >= static_cast<std::size_t>(search.wish.members)) {
    search.short_pools.push_back(pool.name + ": " + std::to_string(most) + " hosts fit, but " + why_not_together(fitting));
    return;
  }
  const std::string fit = std::to_string(most) + (most == 1 ? " host fits" : " hosts fit");
  search.short_pools.push_back(pool.name + ": " + fit + (search.wish.near == Near::any || most == 1 ? "" : " and are alike") + ", " +
                               std::to_string(search.wish.members) + " are wanted");
}

bool better(const GangPlan& a, const GangPlan& b, job::Optimize optimize) {
  const auto rank = [&](const GangPlan& plan) {
    // Links known to be fast come before links that were not measured, at any cost.
    return std::tuple(!plan.unmeasured.empty(), aim_of(optimize, plan.estimate, plan.group.failures_per_hour));
  };
  return rank(a) < rank(b);
}

// Avoided hosts are considered if there is no gang without them: the one that failed this job last comes last, so that
// they take turns; this includes hosts that break jobs of all kinds, because another one may fail this job every time.
// 0: a host available at once.
std::size_t turn_of(const HostFacts& host, const std::vector<Avoid>& avoided) {
  const auto found = std::ranges::find(avoided, host.name, &Avoid::host);
  if (found != avoided.end()) return static_cast<std::size_t>(found - avoided.begin()) + 2;
  return host.shunned.empty() ? 0 : 1;
}

void search_size(Search& search, const std::vector<Pool>& pools, const std::vector<Candidate>& all) {
  search.plans.clear();
  search.short_pools.clear();
  search.most = 0;
  const bool alone = search.wish.members == 1;  // near to whom?
  std::vector<Candidate> fitting;
  for (const Candidate& c : all)
    if (alone || !exposes_traffic(search.spec, *c.host)) fitting.push_back(c);
  for (const Pool& pool : alone ? std::vector<Pool>{{"all hosts", "", {}}} : pools) search_pool(search, pool, fitting);
  // Links that were not measured forbid nothing.
  if (!alone && search.wish.near != Near::any && search.plans.empty())
    search_pool(search, {"hosts whose links are not all measured", std::string(k_on_trust), {}, Apart::declared},
                fitting);
  std::ranges::stable_sort(search.plans,
                           [&](const GangPlan& a, const GangPlan& b) { return better(a, b, search.spec.optimize); });
}

// Searches the greatest size for which there are enough hosts.
void search_all(Search& search, const GangWish& wish, const std::vector<Pool>& pools,
                const std::vector<Candidate>& fitting) {
  for (int members = wish.members;;) {
    search.wish.members = members;
    search_size(search, pools, fitting);
    if (!search.plans.empty() || members <= wish.least()) return;
    members = std::max(wish.least(), std::min(members - 1, static_cast<int>(search.most)));
  }
}

std::string size_wished(const GangWish& wish) {
  return (wish.least() < wish.members ? std::to_string(wish.least()) + " to " : "") + std::to_string(wish.members);
}
}  // namespace

GangWish wish_of(const job::Spec& spec, const Coupling& coupling) {
  GangWish wish;
  wish.members = spec.num_nodes;
  wish.members_min = job::nodes_least(spec);
  wish.near = coupling.job_class == job::JobClass::tight    ? Near::island
              : coupling.job_class == job::JobClass::medium ? Near::site
                                                            : Near::any;
  wish.mixed_vendors = coupling.mixed_vendors;
  if (wish.near != Near::island) return wish;
  if (spec.constraints.any_interconnect) wish.near = Near::site;
  wish.joined = !spec.constraints.any_interconnect;
  wish.bits_per_second = needed_bits_per_second(spec, std::nullopt);
  return wish;
}

Topology topology_of(const std::vector<HostFacts>& hosts, std::span<const PairLink> links) {
  std::vector<SiteHost> sites;
  for (const HostFacts& host : hosts) sites.push_back({host.name.value, host.site});
  return derive_topology(sites, links);
}

namespace {
GangDecision place_near(const job::Spec& spec, const GangWish& wish, const std::vector<HostFacts>& hosts,
                        const Topology& topology, std::span<const PairLink> links, const std::vector<Avoid>& avoided,
                        const JobKnowledge& known) {
  GangDecision decision;
  const Result<Query> query = Query::parse(spec.constraints.query);
  std::vector<Candidate> all;
  std::vector<std::size_t> turns;  // of each of `all`
  std::vector<const HostFacts*> possible;  // now or later
  JobKnowledge shared = known;  // as far as one member is concerned
  shared.task.work /= static_cast<double>(std::max<std::size_t>(wish.members, 1));
  for (const HostFacts& host : hosts) {
    Candidate c = consider(spec, query, host);
    if (wish.joined && !c.rejection)
      if (const auto problem = fabric_problem(host.inventory, c.gpus))
        c.reject("fabric", *problem, !host.busy_gpus.empty());
    if (!c.rejection && host.until) {
      estimate(c, shared, spec.optimize);  // anew when it is known with whom
      fits_before_end(c, spec, shared);
      c.placement.gpu_uuids.clear();
    }
    const bool exposed = exposes_traffic(spec, host) && (!c.rejection || c.rejection->temporary);
    if (exposed && wish.least() > 1) c.rejection = clear_text_rejection(host);
    if (!c.rejection || c.rejection->temporary) possible.push_back(&host);
    if (c.rejection) {
      decision.rejections.push_back(*std::move(c.rejection));
      continue;
    }
    turns.push_back(turn_of(host, avoided));
    all.push_back(std::move(c));
  }
  decision.fitting = all.size();
  decision.work_known = known.work_known;
  const Conflicts conflicts(wish, links);
  const std::vector<Pool> pools = pools_of(wish.near, topology, wish.bits_per_second.has_value(), conflicts);
  Search search{spec, wish, known, conflicts};
  std::set<std::size_t> steps(turns.begin(), turns.end());
  steps.insert(0);
  for (auto most = steps.begin(); most != steps.end() && search.plans.empty(); ++most) {
    std::vector<Candidate> some;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (turns[i] <= *most) some.push_back(all[i]);
    search_all(search, wish, pools, some);
  }
  if (!search.plans.empty()) {
    decision.plan = search.plans.front();
    decision.runners_up.assign(search.plans.begin() + 1, search.plans.end());
  }
  const auto is_member = [&](const HostName& name) {
    return decision.plan && std::ranges::find(decision.plan->members, name, &Placement::host) != decision.plan->members.end();
  };
  for (const Candidate& c : all)  // of a gang that may shrink to one host: it runs there alone or not at all
    if (wish.members > 1 && exposes_traffic(spec, *c.host) && !is_member(c.host->name))
      decision.rejections.push_back(clear_text_rejection(*c.host));
  std::ranges::sort(decision.rejections, {}, &Rejection::host);
  decision.short_pools = std::move(search.short_pools);
  decision.could_ever_fit =
      decision.plan || can_be_together(possible, static_cast<std::size_t>(wish.least()), conflicts);
  decision.slow_links = !decision.plan && decision.fitting >= static_cast<std::size_t>(wish.least()) && conflicts.any_slow();
  return decision;
}
}  // namespace

GangDecision place_gang(const job::Spec& spec, const GangWish& wish, const std::vector<HostFacts>& hosts,
                        const Topology& topology, std::span<const PairLink> links, const std::vector<Avoid>& avoided,
                        const JobKnowledge& known) {
  GangDecision decision = place_near(spec, wish, hosts, topology, links, avoided, known);
  if (!decision.slow_links || wish.bits_per_second) return decision;
  GangWish eased = wish;
  for (double rate = k_island_bits_per_second / 2; rate >= k_slowest_rate; rate /= 2) {
    eased.bits_per_second = rate;
    GangDecision slower = place_near(spec, eased, hosts, topology, links, avoided, known);
    if (!slower.plan) continue;
    slower.plan->unmeasured = formatted(
        "the links of these hosts were measured at less than 10 Gbit/s, some at little more than %.2g Gbit/s: members "
        "that exchange a lot of data wait for them; `gridctl provider links --measure --all` measures them again",
        rate / 1e9);
    slower.slow_links = true;
    return slower;
  }
  return decision;
}

namespace {
// There are enough hosts, but no two are known to be near each other.
std::string apart(const GangDecision& decision, const GangWish& wish) {
  if (decision.plan || !decision.short_pools.empty() || decision.fitting < static_cast<std::size_t>(wish.least()))
    return {};
  return std::string("these hosts share no site") + (wish.near == Near::island ? " with fast links" : "") +
         "; declare one (provider register --site), measure it, or use class: federated";
}
}  // namespace

std::string summary(const GangDecision& decision, const GangWish& wish) {
  std::string text = std::to_string(decision.fitting) + (decision.fitting == 1 ? " provider" : " providers") +
                     " can run a member now, " + std::to_string(wish.least()) + " are needed";
  if (const std::string others = counts_text(decision.rejections); !others.empty()) text += " (others: " + others + ")";
  for (const std::string& pool : decision.short_pools) text += "; " + pool;
  if (const std::string why = apart(decision, wish); !why.empty()) text += "; " + why;
  return text;
}

std::string describe(const GangPlan& plan) {
  std::vector<std::string> names;
  for (const Placement& member : plan.members) names.push_back(member.host.value);
  std::string text = std::to_string(names.size()) + (names.size() == 1 ? " host of " : " hosts of ") + plan.pool +
                     ": " + join(names, ", ");
  if (!plan.gpus.empty()) text += "; " + (plan.gpus == k_mixed ? std::string("of any kind") : "each " + plan.gpus);
  return text + "; " + price_text(plan.group.price_per_hour) + " together";
}

std::vector<std::string> explain(const GangDecision& decision, const GangWish& wish) {
  std::vector<std::string> lines;
  if (decision.plan) {
    lines.push_back("would run on " + describe(*decision.plan));
    if (static_cast<int>(decision.plan->members.size()) < wish.members)
      lines.push_back("no more hosts are available now of the " + size_wished(wish) +
                      " that it asks for; the gang grows when there are");
    const Estimate& end = decision.plan->estimate;
    if (decision.work_known)
      lines.push_back((end.is_never() ? "" : formatted("expected: %.2f USD and ", end.cost())) + describe(end));
    if (!decision.plan->unmeasured.empty()) lines.push_back("note: " + decision.plan->unmeasured);
    if (!decision.plan->exact) lines.push_back("note: the search stopped early; a cheaper set may exist");
  } else if (decision.nobody()) {
    lines.push_back("no provider is registered");
  } else {
    lines.push_back("no " + size_wished(wish) + " hosts can run it together" + (decision.could_ever_fit ? " now" : ""));
  }
  for (const GangPlan& other : decision.runners_up) lines.push_back("would do equally well: " + describe(other));
  for (const std::string& text : decision.short_pools) lines.push_back(text);
  if (std::string why = apart(decision, wish); !why.empty()) lines.push_back(std::move(why));
  explain_rejections(decision.rejections, lines);
  return lines;
}

}  // namespace gridctl::sched
