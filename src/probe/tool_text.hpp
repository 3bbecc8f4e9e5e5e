// SPDX-License-Identifier: Apache-2.0
// Reading what tools print: pure, tolerant, bounded. Used by the vendor and engine parsers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace gridctl::probe {

inline constexpr std::size_t k_gpus_max = 256;  // as base/inventory.cpp: no machine has more

// "N/A", "[N/A]", "[Not Supported]", "Not Found", "unknown", "[Unknown Error]", "" …
[[nodiscard]] bool is_unavailable(std::string_view text);
// The text without blanks around it and at most 128 bytes, or empty when it says that there is none.
[[nodiscard]] std::string available(std::string_view text);
[[nodiscard]] std::optional<std::uint64_t> whole_number(std::string_view text);  // decimal digits only
// "81559 MiB", "81559", "196592 MB": MiB whatever the unit's spelling (the tools mean 2^20 by both); "B"/"KiB"/"GiB"
// are themselves. nullopt when it is no size.
[[nodiscard]] std::optional<std::uint64_t> memory_size(std::string_view text, std::string_view default_unit);
// The line of the output that best says what went wrong: the first with "error", "fail" or "denied", else the last one
// that is not empty; at most 200 bytes.
[[nodiscard]] std::string complaint(std::string_view out, std::string_view err);
// "0000:83:00.0" in lower case, or empty.
[[nodiscard]] std::string pci_address(std::string_view text);

// The first JSON object or array in the text that parses, whatever is printed before and after it; discarded when
// there is none. Nesting above 32 is refused.
[[nodiscard]] nlohmann::json find_json(std::string_view text);
// Member of an object by name, letters of either case; null when absent.
[[nodiscard]] const nlohmann::json& member(const nlohmann::json& object, std::string_view name);
// Text of a string or number member; empty when absent or of another type.
[[nodiscard]] std::string text_of(const nlohmann::json& value);

// Values of an earlier answer stay.
template <class T, class U>
void fill_in(std::optional<T>& into, const std::optional<U>& value) {
  if (!into && value) into = static_cast<T>(*value);
}

}  // namespace gridctl::probe
