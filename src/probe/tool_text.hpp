// SPDX-License-Identifier: Apache-2.0
// Reads the output of tools: pure, tolerant, bounded. The vendor and engine parsers use it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace gridctl::probe {

inline constexpr std::size_t k_gpus_max = 256;  // as base/inventory.cpp: no machine has more

// Recognises "N/A", "[N/A]", "[Not Supported]", "Not Found", "unknown", "[Unknown Error]", "" …
[[nodiscard]] bool is_unavailable(std::string_view text);
// Returns the text without blanks around it and at most 128 bytes, or empty if it means that there is no value.
[[nodiscard]] std::string available(std::string_view text);
[[nodiscard]] std::optional<std::uint64_t> whole_number(std::string_view text);  // decimal digits only
// Parses "81559 MiB", "81559", "196592 MB" as MiB in any spelling (the tools mean 2^20 by both); "B"/"KiB"/"GiB" are
// themselves. nullopt if it is not a size.
[[nodiscard]] std::optional<std::uint64_t> memory_size(std::string_view text, std::string_view default_unit);
// Returns the line of the output that best describes the failure: the first with "error", "fail" or "denied", otherwise
// the last one that is not empty; at most 200 bytes.
[[nodiscard]] std::string complaint(std::string_view out, std::string_view err);
// Returns "0000:83:00.0" in lower case, or an empty text.
[[nodiscard]] std::string pci_address(std::string_view text);

// Returns the first JSON object or array in the text that parses, regardless of the text before and after it; discarded
// if there is none. Nesting above 32 is refused.
[[nodiscard]] nlohmann::json find_json(std::string_view text);
// Returns a member of an object by name, in any case of letters; null if absent.
[[nodiscard]] const nlohmann::json& member(const nlohmann::json& object, std::string_view name);
// Returns the text of a string or number member; empty if absent or of another type.
[[nodiscard]] std::string text_of(const nlohmann::json& value);

// Keeps the values of an earlier answer.
template <class T, class U>
void fill_in(std::optional<T>& into, const std::optional<U>& value) {
  if (!into && value) into = static_cast<T>(*value);
}

}  // namespace gridctl::probe
