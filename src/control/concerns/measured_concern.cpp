// SPDX-License-Identifier: Apache-2.0
// Measures borrowed hosts before their GPUs get a first job: who claims a GPU may have another one, or none. The rule
// ends for a host with its benchmark, or when it cannot be measured: then its GPUs are used all the same, and its history
// says so. Jobs without GPUs do not wait, nor do those whose file says `unmeasured: allow`.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "control/concerns/table.hpp"
#include "control/measure/bench.hpp"
#include "control/measure/unmeasured.hpp"
#include "sched/geo/residency.hpp"

namespace gridctl::control {

namespace {

constexpr Duration k_begins_within = std::chrono::minutes{10};  // from when a job wanted the host first; then it has it
constexpr Duration k_measured_within = std::chrono::minutes{10};  // all tries together, and the pauses between them
constexpr Duration k_between_tries = std::chrono::seconds{20};
constexpr int k_measuring_tries = 3;
constexpr auto k_for_host = std::chrono::seconds{60}, k_for_gpu = std::chrono::seconds{30};  // as a person is told
constexpr const char* k_has_bench = "verified";  // a figure that each benchmark leaves

bool wants_gpus(const job::Spec& spec) {
  return !spec.resources.gpus.empty() ||
         std::ranges::any_of(spec.variants, [&](const job::Variant& one) { return !job::gpus_wanted(spec, one).empty(); });
}

// Returns the hosts whose GPUs the scheduler would give the job now.
std::vector<HostName> wished_hosts(const TrackedJob& asking, const Question& question,
                                   const std::vector<sched::HostFacts*>& unmeasured) {
  std::vector<HostName> names;
  job::Spec spec = question.spec;
  const auto ask = [&](const std::vector<sched::HostFacts>& hosts) {
    const sched::Decision decision = sched::place(spec, hosts, asking.state().avoided, question.known);
    if (decision.placement && !decision.placement->gpu_uuids.empty()) names.push_back(decision.placement->host);
  };
  if (std::exchange(spec.num_nodes, 1) <= 1) ask(question.hosts);
  else  // each that could be a member
    for (const sched::HostFacts* host : unmeasured) ask({*host});
  return names;
}

class MeasuredConcern : public Concern {
 public:
  explicit MeasuredConcern(const Controls& controls) : controls_(controls) {}

  void tick(BootTime now) override {
    std::erase_if(hosts_, [&](const auto& entry) { return controls_.fleet.find({entry.first}) == nullptr; });
    if (running_ && now > running_->until) {
      const HostName name = std::exchange(running_, std::nullopt)->name;
      give_up(name, "measuring it takes longer than " + format_duration(k_measured_within));
    }
    if (running_) return;
    const FleetHost* first = nullptr;
    BootTime since{};
    for (auto& [name, mine] : hosts_) {
      if (mine.over || !mine.wanted_since) continue;
      const FleetHost* host = controls_.fleet.find({name});
      const BootTime latest = mine.give_up_at.value_or(*mine.wanted_since + k_begins_within);
      const bool expired = now > latest;
      if (host->provider.figures.contains(k_has_bench) || (expired && !host->is_up())) {
        mine.wanted_since.reset(), mine.give_up_at.reset();
      } else if (expired) {
        give_up({name}, "for " + format_duration(k_begins_within) + ", something else ran there, or other hosts were measured");
      } else if (now >= mine.next_try && is_idle(*host) && (first == nullptr || *mine.wanted_since < since)) {
        first = host;
        since = *mine.wanted_since;
      }
    }
    if (first != nullptr) measure(*first, now);  // one host at a time: it costs us a few seconds of a processor
  }

  void shape(const TrackedJob& asking, Question& question) const override {
    if (question.spec.constraints.unmeasured || !wants_gpus(question.spec)) return;
    const job::Attempt* attempt = asking.state().attempt();
    std::vector<sched::HostFacts*> unmeasured;
    for (sched::HostFacts& host : question.hosts) {
      const bool concerned = sched::is_lent(host.host_class, host.labels) && !host.inventory->gpus.empty() &&
                             !host.figures.contains(k_has_bench);
      const bool has_it = attempt != nullptr && attempt->on(host.name) != nullptr;
      if (concerned && !has_it && !is_over(host.name)) unmeasured.push_back(&host);
    }
    if (unmeasured.empty()) return;
    for (const HostName& name : wished_hosts(asking, question, unmeasured)) {
      const bool it_is = std::ranges::any_of(unmeasured, [&](const sched::HostFacts* one) { return one->name == name; });
      if (it_is && !hosts_[name.value].wanted_since) hosts_[name.value].wanted_since = controls_.world.clock.boot();
    }
    for (sched::HostFacts* host : unmeasured)
      host->unmeasured = text_for(*host) + "; to do without: gridctl job cancel " + asking.id().value +
                         " && gridctl job resume " + asking.id().value + " --unmeasured allow";
  }

 private:
  struct Mine {
    std::optional<BootTime> wanted_since{};
    BootTime next_try{};
    std::optional<BootTime> give_up_at{};  // from the first try on
    int tries = 0;
    bool over = false;  // the rule has ended for this host
  };
  struct Measurement {
    HostName name;
    BootTime until;
    std::uint64_t number = 0;
  };

  [[nodiscard]] bool is_over(const HostName& name) const {
    if (!std::exchange(loaded_, true)) {
      const auto before = load_unmeasured(controls_.world.records);
      report(before, "while asking which hosts were measured");
      loaded_ = before.has_value();
      if (before)
        for (const auto& [host, why] : *before) hosts_[host].over = true;
    }
    const auto found = hosts_.find(name.value);
    return found != hosts_.end() && found->second.over;
  }

  [[nodiscard]] std::string text_for(const sched::HostFacts& host) const {
    const auto found = hosts_.find(host.name.value);
    if (found == hosts_.end() || !found->second.wanted_since) return "its GPUs are measured before its first job";
    const auto takes = k_for_host + k_for_gpu * host.inventory->gpus.size();
    const std::string how_long = "about " + format_duration(std::chrono::ceil<std::chrono::minutes>(takes));
    if (running_ && running_->name != host.name)
      return "it will be measured before its first job, after " + running_->name.value + "; that takes " + how_long;
    const FleetHost* there = controls_.fleet.find(host.name);
    if (!running_ && there != nullptr && !is_idle(*there))
      return "it will be measured before its first job, when nothing else runs there; that takes " + how_long;
    return "it is being measured before its first job; " + how_long;
  }

  [[nodiscard]] bool is_idle(const FleetHost& host) const {
    if (!host.is_up()) return false;
    if (host.held && !host.held->empty()) return false;
    return std::ranges::none_of(controls_.book.placed(), [&](const auto& entry) {
      return entry.second->state().attempt()->on(host.provider.name) != nullptr;
    });
  }

  void measure(const FleetHost& host, BootTime now) {
    Mine& mine = hosts_[host.provider.name.value];
    ++mine.tries;
    if (!mine.give_up_at) mine.give_up_at = now + k_measured_within;
    running_ = {host.provider.name, *mine.give_up_at, ++measurements_};
    const World& world = controls_.world;
    const os::Lane lane{os::Lane::Kind::bulk, host.provider.name.value};
    world.run.run(lane, [this, number = measurements_,
                         place = HostAccess{host.provider, &world.net, &world.clock, nullptr, host.life}] {
      BenchOptions options;
      options.quick = true;
      auto found = std::make_shared<Result<BenchReport>>(bench_host(place, options, std::nullopt));
      controls_.world.run.post([this, number, name = place.provider.name, found] { measured(number, name, std::move(*found)); });
    });
    controls_.fleet.capacity_freed();  // who waits is told
  }

  void measured(std::uint64_t number, const HostName& name, Result<BenchReport> found) {
    if (running_ && running_->number == number) running_.reset();
    const auto mine = hosts_.find(name.value);
    if (mine == hosts_.end() || controls_.fleet.find(name) == nullptr) return;
    std::string why = found ? join(found->problems, "; ") : found.error().one_line();
    bool hopeless = !found && found.error().code == Code::unsupported;
    if (found) {
      for (const GpuBench& gpu : found->gpus)
        if (gpu.untested) hopeless = true, why = gpu.verdict.findings.empty() ? why : gpu.verdict.findings.front().text;
      std::erase_if(found->gpus, [](const GpuBench& gpu) { return gpu.untested; });
      if (!found->gpus.empty()) return keep(name, mine->second, *found);
    }
    if (mine->second.over) return;
    mine->second.next_try = controls_.world.clock.boot() + k_between_tries;
    if (hopeless || mine->second.tries >= k_measuring_tries) give_up(name, why.empty() ? "its agent measured nothing" : why);
  }

  void keep(const HostName& name, Mine& mine, const BenchReport& found) {
    mine.over = true;
    report(save_bench_report(controls_.world.records, name, found, std::nullopt),
           "while recording a host's measurements");
    controls_.fleet.capacity_freed();
  }

  void give_up(const HostName& name, const std::string& why) {
    if (controls_.fleet.find(name) == nullptr) return;
    Mine& mine = hosts_[name.value];
    mine.over = true;
    report(save_unmeasured(controls_.world.records, name, sanitize(why, 300), controls_.world.clock.wall()),
           "while recording that a host was not measured");
    controls_.fleet.capacity_freed();
  }

  const Controls controls_;
  mutable std::map<std::string, Mine> hosts_;  // of others, by name
  mutable bool loaded_ = false;
  std::optional<Measurement> running_;
  std::uint64_t measurements_ = 0;
};

}  // namespace

std::unique_ptr<Concern> make_measured(const Controls& controls) { return std::make_unique<MeasuredConcern>(controls); }

}  // namespace gridctl::control
