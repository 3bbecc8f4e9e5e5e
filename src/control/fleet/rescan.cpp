// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/rescan.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/host_words.hpp"
#include "base/text.hpp"
#include "registry/change_provider.hpp"
#include "sched/catalogue/gpu_match.hpp"
#include "sched/catalogue/gpu_spec.hpp"

namespace gridctl::control {

using nlohmann::json;

namespace {

constexpr std::size_t k_changes_max = 200;      // more is another machine
constexpr std::size_t k_shown_in_summary = 3;   // the rest is counted
constexpr std::size_t k_value_shown_max = 120;  // bytes

// Attributes that change on their own, or are reported elsewhere.
constexpr std::array k_restless{"version",
                                "boot_id",
                                "memory_free_bytes",
                                "disk_free_bytes",
                                "free_bytes",
                                "gaps",
                                "notes",
                                "facts.clock_wall_ms",
                                "clocks.core_mhz",
                                "clocks.memory_mhz",
                                "power.draw_watts",
                                "heat.now_c",
                                "throttle",
                                "pcie.generation",
                                "model"};

bool contains(const auto& list, std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

bool is_unknown(const json& value) {
  return value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty()) ||
         (value.is_array() && value.empty()) || (value.is_number() && value.get<double>() == 0);
}

using Facts = std::map<std::string, json>;  // "pcie.width" -> 16

void flatten(const json& value, const std::string& name, Facts& into) {
  if (contains(k_restless, name)) return;
  if (!value.is_object()) {
    into[name] = value;
    return;
  }
  for (const auto& [key, member] : value.items()) flatten(member, name.empty() ? key : name + "." + key, into);
}

std::string shown(const json& value) {
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.size() > k_value_shown_max) text = text.substr(0, k_value_shown_max) + "…";
  return text;
}

class Comparison {
 public:
  Comparison(const Inventory& before, const Inventory& after)
      : before_(json::parse(to_json(before))),
        after_(json::parse(to_json(after))),
        older_(before.version < after.version) {}

  std::vector<InventoryChange> run() {
    compare_parts("gpu", "gpus", {"uuid"}, "name");
    compare_parts("disk", "disks", {"mount"}, "file_system");
    compare_parts("network", "nics", {"device", "interface", "port"}, "kind");
    compare_parts("engine", "engines", {"kind"}, "version");
    compare_links();
    for (const char* part : {"gpus", "disks", "nics", "engines", "links"}) {
      before_.erase(part);
      after_.erase(part);
    }
    compare("", before_, after_);
    return std::move(changes_);
  }

 private:
  void add(std::string what, std::string before, std::string after) {
    if (changes_.size() < k_changes_max) changes_.push_back({std::move(what), std::move(before), std::move(after)});
  }

  void compare(const std::string& owner, const json& one, const json& other) {
    Facts before, after;
    flatten(one, "", before);
    flatten(other, "", after);
    for (const auto& [name, value] : after) {
      const auto former = before.find(name);
      const json& old = former == before.end() ? json() : former->second;
      if (old == value || (older_ && is_unknown(old))) continue;
      if (is_unknown(old) && is_unknown(value)) continue;
      add(owner + name, is_unknown(old) ? "unknown" : shown(old), is_unknown(value) ? "unknown" : shown(value));
    }
  }

  static std::map<std::string, json> keyed(const json& list, const std::vector<std::string>& keys) {
    std::map<std::string, json> out;
    for (const json& item : list) {
      std::vector<std::string> words;
      for (const std::string& key : keys)
        if (const std::string word = shown(item.at(key)); !word.empty()) words.push_back(word);
      out[join(words, " ")] = item;
    }
    return out;
  }

  void compare_parts(const std::string& what, const char* list, const std::vector<std::string>& keys,
                     const char* title) {
    const auto before = keyed(before_.at(list), keys), after = keyed(after_.at(list), keys);
    if (older_ && before.empty()) return;
    for (const auto& [key, item] : before)
      if (!after.contains(key)) add(what + " " + key, shown(item.at(title)), "");
    for (const auto& [key, item] : after) {
      const auto former = before.find(key);
      if (former == before.end()) add(what + " " + key, "", shown(item.at(title)));
      else compare(what + " " + key + " ", former->second, item);
    }
  }

  // Returns the links by the GPUs' uuids, because positions change when a GPU is gone.
  [[nodiscard]] static std::map<std::string, std::string> links_of(const json& inventory) {
    std::map<std::string, std::string> out;
    const json& gpus = inventory.at("gpus");
    for (const json& link : inventory.at("links")) {
      std::vector<std::string> ends;
      for (const char* end : {"a", "b"}) ends.push_back(shown(gpus.at(link.at(end).get<std::size_t>()).at("uuid")));
      const json& lanes = link.at("lanes");
      out[join(ends, " ")] = shown(link.at("kind")) + (lanes.is_null() ? "" : " x" + lanes.dump());
    }
    return out;
  }

  void compare_links() {
    const auto before = links_of(before_), after = links_of(after_);
    if (older_ && before.empty()) return;
    for (const auto& [ends, kind] : before) {
      const auto now = after.find(ends);
      if (now == after.end()) add("link " + ends, kind, "");
      else if (now->second != kind) add("link " + ends, kind, now->second);
    }
    for (const auto& [ends, kind] : after)
      if (!before.contains(ends)) add("link " + ends, "", kind);
  }

  json before_, after_;
  bool older_;
  std::vector<InventoryChange> changes_;
};

}  // namespace

std::vector<InventoryChange> inventory_changes(const Inventory& before, const Inventory& after) {
  return Comparison(before, after).run();
}

std::string describe(const InventoryChange& change) {
  if (change.before.empty()) return change.what + ": new: " + change.after;
  if (change.after.empty()) return change.what + ": gone: " + change.before;
  return change.what + ": " + change.before + " -> " + change.after;
}

std::string summary(std::span<const InventoryChange> changes) {
  std::vector<std::string> lines;
  for (const InventoryChange& change : changes.first(std::min(changes.size(), k_shown_in_summary)))
    lines.push_back(describe(change));
  if (changes.size() > k_shown_in_summary)
    lines.push_back(std::to_string(changes.size() - k_shown_in_summary) + " more");
  return join(lines, "; ");
}

Result<std::vector<InventoryChange>> keep_examined(registry::HostRecords& registry, const registry::Provider& found,
                                                   WallTime now) {
  Inventory before;
  std::string known;
  TRY(registry::change_provider(registry, found.name, [&](registry::Provider& row) -> Result<void> {
    before = std::exchange(row.inventory, found.inventory);
    row.transport = found.transport;
    known = std::exchange(row.peer_key, found.peer_key);
    row.last_seen_at = found.last_seen_at;
    row.liveness = found.liveness;
    return {};
  }));
  const auto note = [&](const char* kind, std::string text) {
    return registry.add_host_event({0, found.name, now, kind, sanitize(text)});
  };
  if (!before.machine_id.empty() && before.machine_id != found.inventory->machine_id)
    TRY(note("machine_replaced", "another machine answers at this address: its machine id was " + before.machine_id +
                                     " and is " + found.inventory->machine_id));
  else if (!before.boot_id.empty() && before.boot_id != found.inventory->boot_id)
    TRY(note("rebooted", "rebooted since the last check"));
  if (!known.empty() && known != found.peer_key)
    TRY(note("identity_replaced", "its identity was " + known + " and is " + (found.peer_key.empty() ? "none" : found.peer_key)));
  std::vector<InventoryChange> changes = inventory_changes(before, found.inventory);
  if (!changes.empty()) TRY(note("inventory_changed", summary(changes)));
  return changes;
}

std::vector<std::string> contradictions(const registry::Provider& provider) {
  std::vector<std::string> lines;
  const Inventory& has = provider.inventory;
  if (!provider.declared_gpus.empty()) {
    const Result<job::GpuRequest> said = sched::parse_gpu_spec(provider.declared_gpus);
    int fitting = 0;
    for (const Gpu& gpu : has.gpus)
      if (said && sched::match_gpu(*said, gpu) == sched::GpuMismatch::none) ++fitting;
    if (!said) lines.push_back("declared GPUs '" + provider.declared_gpus + "' cannot be read");
    else if (fitting < said->count_min || fitting > said->count_max)
      lines.push_back("declared " + provider.declared_gpus + ", found " + std::to_string(fitting) +
                      " of that kind among its " + std::to_string(has.gpus.size()) + " GPUs");
  }
  for (const Engine& engine : has.engines)
    if (provider.engine == engine_name(engine.kind) && !engine.problem.empty())
      lines.push_back("declared to run " + provider.engine + ", but " + engine.problem);
  const bool laptop = std::any_of(has.gpus.begin(), has.gpus.end(),
                                  [](const Gpu& gpu) { return lower(gpu.name).find("laptop") != std::string::npos; });
  if (laptop && is_steady_class(provider.host_class))
    lines.push_back("declared class " + provider.host_class + ", but it has a GPU made for laptops");
  return lines;
}

}  // namespace gridctl::control
