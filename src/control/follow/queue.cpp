// SPDX-License-Identifier: Apache-2.0
#include "control/follow/queue.hpp"

#include <algorithm>
#include <deque>
#include <functional>

namespace gridctl::control {

namespace {
constexpr double k_cores_of_a_gpu = 8;
}

double load_of(const job::Resources& wanted) {
  int gpus = 0;
  for (const job::GpuRequest& request : wanted.gpus) gpus = std::max(gpus, request.count_min);
  return std::max(static_cast<double>(gpus), wanted.cpus / k_cores_of_a_gpu);
}

double load_of(const job::Member& held) {
  return std::max(static_cast<double>(held.gpu_uuids.size()), held.cpus / k_cores_of_a_gpu);
}

std::vector<std::size_t> in_turn(const std::vector<Waits>& waiting, std::map<std::string, double> held) {
  std::map<int, std::map<std::string, std::deque<std::size_t>>, std::greater<>> queues;  // by priority and owner
  for (std::size_t i = 0; i < waiting.size(); ++i) queues[waiting[i].priority][waiting[i].owner].push_back(i);
  std::vector<std::size_t> turns;
  for (auto& [priority, owners] : queues) {
    for (auto& [owner, jobs] : owners)
      std::stable_sort(jobs.begin(), jobs.end(),
                       [&](std::size_t a, std::size_t b) { return waiting[a].submitted_at < waiting[b].submitted_at; });
    while (!owners.empty()) {
      const auto next = std::min_element(owners.begin(), owners.end(), [&](const auto& a, const auto& b) {
        const double a_holds = held[a.first], b_holds = held[b.first];
        const WallTime a_since = waiting[a.second.front()].submitted_at,
                       b_since = waiting[b.second.front()].submitted_at;
        return a_holds != b_holds ? a_holds < b_holds : a_since < b_since;
      });
      const std::size_t job = next->second.front();
      turns.push_back(job);
      held[next->first] += waiting[job].load;
      next->second.pop_front();
      if (next->second.empty()) owners.erase(next);
    }
  }
  return turns;
}

}  // namespace gridctl::control
