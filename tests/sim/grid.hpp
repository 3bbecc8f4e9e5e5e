// SPDX-License-Identifier: Apache-2.0
// A world without faults, for tests that add what they are about.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "host.hpp"
#include "memory_records.hpp"
#include "user.hpp"
#include "world.hpp"

namespace gridctl::sim {

inline constexpr Nanos k_patience = 60 * k_min;

class Grid {
 public:
  explicit Grid(const Options& options, std::span<const control::ConcernMaker> concerns = {}) : world(options, std::getenv("GRIDCTL_SIM_TRACE") != nullptr) {
    world.concerns = concerns;
  }
  void add(const std::string& name, const std::function<void(job::Spec&)>& shape = [](job::Spec&) {}) {
    Random random(1);
    job::Spec spec = draw_spec(world.options, 0, random);
    spec.name = name;
    spec.resources.gpus.assign(1, {});
    spec.resources.gpus.front().count_min = spec.resources.gpus.front().count_max = 1;
    spec.workload.work = Duration{world.options.work};
    shape(spec);
    world.add_job({{name}, 0, spec});
  }
  // False when it never comes true.
  bool until(const std::function<bool()>& done) {
    if (!std::exchange(begun_, true)) world.begin();
    for (const Nanos end = world.now + k_patience; world.now < end; world.run_until(world.now + 200 * k_ms))
      if (done()) return true;
    return false;
  }
  [[nodiscard]] Laptop& laptop() { return *world.laptops.front(); }
  [[nodiscard]] registry::Job job(const std::string& name) {
    const Result<registry::Job> row = laptop().records()->job({name});
    return row ? *row : registry::Job{};
  }
  [[nodiscard]] std::string host(const std::string& name) { return job(name).provider.value; }
  [[nodiscard]] bool runs(const std::string& name) { return job(name).state == job::JobState::running; }
  [[nodiscard]] bool ended(const std::string& name) { return job::is_final(job(name).state); }
  [[nodiscard]] bool told(const std::string& name, const std::string& kind) {
    const auto events = dynamic_cast<MemoryRecords*>(laptop().records())->events({name});
    return std::any_of(events.begin(), events.end(), [&](const auto& event) { return event.kind == kind; });
  }

  // Texts of what was told of a job under this word, the oldest first.
  [[nodiscard]] std::vector<std::string> texts(const std::string& name, const std::string& kind) {
    std::vector<std::string> found;
    for (const auto& event : dynamic_cast<MemoryRecords*>(laptop().records())->events({name}))
      if (event.kind == kind) found.push_back(event.text);
    return found;
  }
  // Never within that time.
  [[nodiscard]] bool never(Nanos time, const std::function<bool()>& happens) {
    for (const Nanos end = world.now + time; world.now < end; world.run_until(world.now + 200 * k_ms))
      if (happens()) return false;
    return true;
  }

  // With GRIDCTL_SIM_TRACE set.
  [[nodiscard]] std::string trace() const {
    std::string text;
    for (const std::string& line : world.lines) text += line + "\n";
    return text;
  }

  World world;

 private:
  bool begun_ = false;
};

}  // namespace gridctl::sim
