// SPDX-License-Identifier: Apache-2.0
// The files that the controller keeps of a job beside the registry, as an interface: output and secrets.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "job/spec.hpp"

namespace gridctl::control {

// A tree in the local store of the files that the tasks of a bag have left.
struct GatheredTasks {
  Digest root;
  std::uint64_t bytes = 0;
  std::string missing{};  // tasks whose files are not here: "17,20-30"
};

class JobFolders {
 public:
  virtual ~JobFolders() = default;
  // Output of rank `rank` in an attempt; safe against concurrent callers. See log_file.hpp.
  [[nodiscard]] virtual Result<std::uint64_t> log_next_offset(const JobId& job, AttemptNumber attempt, int rank) = 0;
  [[nodiscard]] virtual Result<void> log_append(const JobId& job, AttemptNumber attempt, int rank, std::uint64_t offset,
                                                std::string_view bytes) = 0;
  [[nodiscard]] virtual Result<std::string> log_tail(const JobId& job, AttemptNumber attempt, int rank,
                                                     std::size_t lines) = 0;
  // The first and the last bytes of an output, at most `each` of both.
  [[nodiscard]] virtual Result<std::string> log_ends(const JobId&, AttemptNumber, int /*rank*/, std::size_t /*each*/) {
    return make_error(Code::unsupported, "outputs are not read here");
  }
  // A bag has its journal as it is, records added at its end (durable when this returns), and the items of its tasks.
  [[nodiscard]] virtual Result<std::string> bag_journal(const JobId&) {
    return make_error(Code::unsupported, "bags are not kept here");
  }
  [[nodiscard]] virtual Result<void> bag_append(const JobId&, std::string_view /*records*/) {
    return make_error(Code::unsupported, "bags are not kept here");
  }
  [[nodiscard]] virtual Result<void> bag_replace(const JobId&, std::string_view /*journal*/) {
    return make_error(Code::unsupported, "bags are not kept here");
  }
  [[nodiscard]] virtual Result<std::string> bag_items(const JobId&) {
    return make_error(Code::unsupported, "bags are not kept here");
  }
  // The output of all tasks on one worker is one stream: how much is kept, and more of it, durable when this returns.
  [[nodiscard]] virtual Result<std::uint64_t> bag_output_end(const JobId&, std::uint32_t /*worker*/, Epoch) {
    return make_error(Code::unsupported, "bags are not kept here");
  }
  [[nodiscard]] virtual Result<void> bag_output(const JobId&, std::uint32_t /*worker*/, Epoch, std::uint64_t /*offset*/,
                                                std::string_view /*bytes*/) {
    return make_error(Code::unsupported, "bags are not kept here");
  }
  // The files of all tasks that are done, laid over the tree `below`. usage: there are more than a tree may hold.
  [[nodiscard]] virtual Result<GatheredTasks> bag_gather(const JobId&, const job::Spec&, const std::optional<Digest>& /*below*/) {
    return make_error(Code::unsupported, "bags are not kept here");
  }
  // Without the job's secrets, as far as they are known here.
  [[nodiscard]] virtual std::string masked(const JobId&, std::string text) { return text; }
  // not_found names the secret that is missing.
  [[nodiscard]] virtual Result<std::map<std::string, std::string>> secrets(const JobId& job,
                                                                           const std::vector<std::string>& names) = 0;
  [[nodiscard]] virtual Result<void> keep_secrets(const JobId& job,
                                                  const std::map<std::string, std::string>& secrets) = 0;
  [[nodiscard]] virtual Result<void> remove_secrets(const JobId& job) = 0;
  [[nodiscard]] Result<void> share_secrets(const JobId& from, const JobId& to, const std::vector<std::string>& names) {
    if (names.empty()) return {};
    TRY_ASSIGN(const auto shared, secrets(from, names));
    return keep_secrets(to, shared);
  }
};

}  // namespace gridctl::control
