// SPDX-License-Identifier: Apache-2.0
// Defines strong identifiers: distinct types, never bare strings or integers.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace gridctl {

template <class Tag>
struct StringId {
  std::string value;
  [[nodiscard]] bool empty() const { return value.empty(); }
  auto operator<=>(const StringId&) const = default;
};

template <class Tag>
struct NumberId {
  std::uint64_t value = 0;
  auto operator<=>(const NumberId&) const = default;
};

// Holds 13 lower-case base32 characters (65 bits), drawn at submit.
using JobId = StringId<struct JobIdTag>;
// Holds the provider's registered name, [a-z0-9][a-z0-9-]{0,62}.
using HostName = StringId<struct HostNameTag>;
// Identifies one state directory ("controller") to hosts; 26 base32 characters.
using ControllerId = StringId<struct ControllerIdTag>;
// Identifies one mutating request; a repeat with the same id has no second effect.
using OpId = StringId<struct OpIdTag>;
// Holds the fencing number of a job: each (re)start has a higher one. 0 = never started.
using Epoch = NumberId<struct EpochTag>;
// Users see attempts as 1, 2, 3…
using AttemptNumber = NumberId<struct AttemptTag>;
// Holds the position of a checkpoint within its job, which grows by one with each commit. 0 = none.
using CheckpointSeq = NumberId<struct CheckpointSeqTag>;

// Returns "JOB@SEQ" as users type and see it.
[[nodiscard]] std::string checkpoint_name(const JobId& job, CheckpointSeq seq);

// Checks names of providers and jobs: [a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?; the error names the first bad character.
[[nodiscard]] Result<void> check_name(std::string_view what, std::string_view name);

// Turns any text into a valid name ("Train GPT_2" -> "train-gpt-2"); empty gives "job".
[[nodiscard]] std::string to_name(std::string_view text);

}  // namespace gridctl

template <class Tag>
struct std::hash<gridctl::StringId<Tag>> {
  std::size_t operator()(const gridctl::StringId<Tag>& id) const noexcept { return std::hash<std::string>{}(id.value); }
};
