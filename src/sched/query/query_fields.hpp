// SPDX-License-Identifier: Apache-2.0
// Lists the fields that a query may use: one table for parser, evaluation and manual. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/inventory.hpp"
#include "base/time.hpp"

namespace gridctl::sched {

// Maps names of fields ("inet_up", "mtbf") to a host's measured numbers, in the field's unit.
using Figures = std::map<std::string, double, std::less<>>;

// Represents one host as a query sees it: a view, nothing is copied.
struct Subject {
  std::string_view name, address;
  std::string_view state;  // drained, or the liveness
  std::string_view region, site, host_class, engine;
  double price_per_hour = 0;
  const std::map<std::string, std::string>* labels = nullptr;
  const Inventory* inventory = nullptr;  // REQUIRES: set
  const Figures* figures = nullptr;
};

// Names the unit of a field's number, which decides the suffixes that may follow it.
enum class Unit : std::uint8_t {
  text,
  part,      // text of which a part is enough
  gpu_name,  // as in job files: vendor, brand and form factor may be left out
  region,    // DE is DE-BY too
  flag,
  gpu_spec,  // dstack's notation
  count,     // no unit
  gib,       // GiB; sizes with a unit are taken at their word
  gpu_gib,   // the same, nominal: drivers report up to 5 % less or 8 % more
  mbit,      // Mbit/s
  gbyte_s,   // 1e9 bytes a second
  hours,     // or 7d, 90m
  seconds,   // or 2m
  ms,        // or 0.05s
  share,     // 0..1, or %
  usd,       // US dollars
  watts,
  celsius,
  ghz,
  tflops,
  version,     // 12.1 is below 12.10
  capability,  // 8.9, or Vast.ai's 890
};
[[nodiscard]] std::string_view unit_name(Unit unit);  // "GiB"; empty for those without

// States where a field's value comes from, for callers that would have to load it.
enum class FieldSource : std::uint8_t { host, links };

struct Field {
  std::string_view name;
  std::string_view aliases;  // divided by blanks; Vast.ai's names among them
  Unit unit = Unit::text;
  std::string_view meaning;
  bool passing = false;  // changes by itself while a job waits
  FieldSource source = FieldSource::host;
  std::optional<double> (*number)(const Subject&) = nullptr;
  void (*texts)(const Subject&, std::vector<std::string_view>&) = nullptr;  // adds what is known
};

inline constexpr std::string_view k_label_field = "label.KEY";  // any label; the word itself is never one
// Returns the fields in the order of the manual. k_label_field is one of them.
[[nodiscard]] std::span<const Field> query_fields();
// Finds a field by name or alias, ignoring case; nullptr if there is none.
[[nodiscard]] const Field* find_field(std::string_view name);
// Returns why a field of Vast.ai's has no meaning here; empty for all other words.
[[nodiscard]] std::string_view why_not_here(std::string_view name);
// Lists Vast.ai's fields without meaning here, with the reason.
struct Foreign {
  std::string_view name, why;
};
[[nodiscard]] std::span<const Foreign> foreign_fields();

// Returns "12.10.3" as a number that orders like the version; nullopt if it has no digits. Up to 4 parts count.
[[nodiscard]] std::optional<double> version_number(std::string_view text);
[[nodiscard]] std::string version_text(double number);  // back again: "12.10.3"

// Interpret a host's figures. Times and rates of a host that was never observed are those of its class.
[[nodiscard]] double reliability_of(const Subject& host);  // share of the time that it is up, 0..1
[[nodiscard]] double mtbf_hours_of(const Subject& host);

}  // namespace gridctl::sched
