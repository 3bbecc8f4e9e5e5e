// SPDX-License-Identifier: Apache-2.0
// A provider on one line: what listings and queries need, without the JSON of its inventory: to unpack that of
// ten thousand takes seconds. Made from the facts whenever those are stored; a line of another format is made anew when
// it is read. Not for other rooms.
#pragma once

#include <string>
#include <string_view>

#include "registry/records.hpp"

namespace gridctl::registry {

inline constexpr int k_listing_format = 1;  // raised with every change of what a line holds

[[nodiscard]] std::string listing_of(const Provider& provider);
// Replaces everything in `into` but name, drained, liveness, last_seen_at and figures. False when the line is not ours;
// `into` is then undefined. What a line leaves out is empty: serial numbers, disks, network cards, gaps, notes…
[[nodiscard]] bool read_listing(std::string_view line, Provider& into);

// "mtbf=91.5 rtt=12": names are words. Unreadable parts are left out.
using Figures = std::map<std::string, double, std::less<>>;
[[nodiscard]] std::string figures_text(const Figures& figures);
void read_figures(std::string_view text, Figures& into);

}  // namespace gridctl::registry
