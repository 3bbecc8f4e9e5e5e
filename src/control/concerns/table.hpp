// SPDX-License-Identifier: Apache-2.0
// Lists the concerns: a new one needs a file and a row here.
#pragma once

#include <memory>

#include "control/concerns/controls.hpp"

namespace gridctl::control {

[[nodiscard]] std::unique_ptr<Concern> make_limits(const Controls& controls);
[[nodiscard]] std::unique_ptr<Concern> make_budgets(const Controls& controls);
[[nodiscard]] std::unique_ptr<Concern> make_twins(const Controls& controls);
[[nodiscard]] std::unique_ptr<Concern> make_deadlines(const Controls& controls);
[[nodiscard]] std::unique_ptr<Concern> make_ends(const Controls& controls);
[[nodiscard]] std::unique_ptr<Concern> make_prices(const Controls& controls);
[[nodiscard]] std::unique_ptr<Concern> make_preemption(const Controls& controls);
[[nodiscard]] std::unique_ptr<Concern> make_standby_concern(const Controls& controls);
[[nodiscard]] std::unique_ptr<Concern> make_gpus(const Controls& controls);
[[nodiscard]] std::unique_ptr<Concern> make_progress(const Controls& controls);
[[nodiscard]] std::unique_ptr<Concern> make_hangs(const Controls& controls);
[[nodiscard]] std::unique_ptr<Concern> make_elastic(const Controls& controls);
[[nodiscard]] std::unique_ptr<Concern> make_turns(const Controls& controls);
[[nodiscard]] std::unique_ptr<Concern> make_trust(const Controls& controls);
[[nodiscard]] std::unique_ptr<Concern> make_proven(const Controls& controls);
[[nodiscard]] std::unique_ptr<Concern> make_measured(const Controls& controls);
[[nodiscard]] std::unique_ptr<Concern> make_paused(const Controls& controls);
[[nodiscard]] std::unique_ptr<Concern> make_exactness(const Controls& controls);
[[nodiscard]] std::unique_ptr<Concern> make_images(const Controls& controls);
[[nodiscard]] std::unique_ptr<Concern> make_bags(const Controls& controls);

using ConcernMaker = std::unique_ptr<Concern> (*)(const Controls&);
// Concerns are asked in this order. Limits come first, because a job that has to stop need not move.
// Measuring comes last: it wants the hosts that all others leave to a job.
inline constexpr ConcernMaker k_concerns[] = {make_limits, make_budgets,    make_twins,        make_deadlines, make_ends,
                                              make_prices, make_preemption, make_standby_concern, make_gpus,
                                              make_progress, make_hangs,      make_elastic, make_turns,           make_trust,
                                              make_paused, make_exactness,  make_images,        make_bags,      make_proven,
                                              make_measured};

}  // namespace gridctl::control
