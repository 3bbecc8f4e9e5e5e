// SPDX-License-Identifier: Apache-2.0
#include "plan/beyond.hpp"

#include <algorithm>
#include <numeric>

#include "base/formatted.hpp"

namespace gridctl::plan {

std::optional<std::vector<int>> layers_by_speed(int layers, std::span<const double> speeds, std::span<const int> most) {
  if (speeds.empty() || std::accumulate(most.begin(), most.end(), 0LL) < layers) return std::nullopt;
  std::vector<int> out(speeds.size(), 0);
  int left = layers;
  if (static_cast<std::size_t>(layers) >= speeds.size())
    for (std::size_t i = 0; i < out.size(); ++i)
      if (most[i] > 0) {
        out[i] = 1;
        --left;
      }
  // The next layer goes to the stage where it ends first. That is optimal, because all layers cost the same.
  for (; left > 0; --left) {
    std::size_t best = out.size();
    for (std::size_t i = 0; i < out.size(); ++i)
      if (out[i] < most[i] && (best == out.size() || (out[i] + 1) / speeds[i] < (out[best] + 1) / speeds[best]))
        best = i;
    ++out[best];
  }
  return out;
}

std::vector<int> batch_by_speed(int batch, std::span<const double> speeds) {
  const double all = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  std::vector<int> out;
  std::vector<std::pair<double, std::size_t>> remainders;
  int given = 0;
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    const double exact = batch * speeds[i] / all;
    out.push_back(static_cast<int>(exact));
    given += out.back();
    remainders.emplace_back(out.back() - exact, i);
  }
  std::ranges::sort(remainders);
  for (std::size_t i = 0; given < batch; ++i, ++given) ++out[remainders[i % remainders.size()].second];
  return out;
}

WanPlan exchange(const Wan& wan, int inner_steps) {
  WanPlan out;
  out.inner_steps = inner_steps;
  out.payload = 2 * wan.params * wan.bytes_per_param;
  out.sync_s = out.payload / wan.bytes_per_s;
  out.utilisation = inner_steps * wan.step_s / (inner_steps * wan.step_s + out.sync_s);
  return out;
}

Result<WanPlan> plan_wan(const Wan& wan) {
  for (const int steps : {1, 10, 20, 50, 100, 200, k_inner_steps_max})
    if (const WanPlan plan = exchange(wan, steps); plan.utilisation >= k_utilisation_min) return plan;
  const WanPlan last = exchange(wan, k_inner_steps_max);
  const double largest = wan.bytes_per_s * k_inner_steps_max * wan.step_s * (1 - k_utilisation_min) /
                         (2 * k_utilisation_min * wan.bytes_per_param);
  const std::string text = formatted(
      "the link of %.1f Mbit/s is too slow: an exchange of %.1f GB takes %.0f s, so that even with one exchange every "
      "%d steps of %.2f s "
      "only %.0f %% of the time would be computing; the largest model that it could serve has %.2g parameters",
      wan.bytes_per_s * 8 / 1e6, last.payload / 1e9, last.sync_s, k_inner_steps_max, wan.step_s, 100 * last.utilisation,
      largest);
  return make_error(Code::no_provider_fits, text,
                    "send fewer bytes per parameter (--payload int8), or train an adapter (--method lora)");
}

}  // namespace gridctl::plan
