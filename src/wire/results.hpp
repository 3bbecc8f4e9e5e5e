// SPDX-License-Identifier: Apache-2.0
// Describes the files that an attempt has made in its working directory, outside its checkpoints: gridctl-agent(7),
// RESULTS.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/time.hpp"
#include "wire/message.hpp"

namespace gridctl::wire {

inline constexpr std::string_view k_results_feature = "results";
inline constexpr std::string_view k_results_operation = "results";
// `manifest` and `get` read the tree of the last `results` request under this number.
inline constexpr std::uint64_t k_results_number = 1ull << 62;
// While the host reads, it sends an event on the request's stream this often.
inline constexpr Duration k_results_progress_every = std::chrono::seconds{5};
inline constexpr std::size_t k_result_patterns_max = 256;
inline constexpr std::size_t k_result_names_max = 8;  // in a reply
inline constexpr std::size_t k_result_notes_max = 16;

struct ResultsRequest {
  JobId job;
  Epoch epoch;
  std::vector<std::string> patterns;  // as in .gitignore, relative to the working directory; empty: what has changed
  bool tree = false;                  // make one, to be fetched; else they are only counted
};
struct ResultsReply {
  std::uint64_t files = 0, bytes = 0;
  std::vector<std::string> names;  // the first of them, foreign text
  std::optional<Digest> root;      // of the tree; none when there are no files or none was asked for
  std::vector<std::string> notes;  // what was left out and why, foreign text
};

GRIDCTL_MESSAGE(ResultsRequest, parse_results)
GRIDCTL_MESSAGE(ResultsReply, parse_results_reply)

}  // namespace gridctl::wire
