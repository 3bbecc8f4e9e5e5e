// SPDX-License-Identifier: Apache-2.0
// Recognises Megatron: iter_NNNNNNN/ with a folder for each rank of the model (mp_rank_TT[_PPP]/model_optim_rng.pt) or
// as torch.distributed.checkpoint, then latest_checkpointed_iteration.txt, written after all ranks have met.
#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "whole/layout_tools.hpp"

namespace gridctl::whole {
namespace {

constexpr std::string_view k_tracker = "latest_checkpointed_iteration.txt", k_iteration = "iter_";
constexpr std::size_t k_tracker_max = 64;

bool is_iteration(const Folder& folder, const std::string& name) {
  if (!name.starts_with(k_iteration) || !all_digits(std::string_view(name).substr(k_iteration.size()))) return false;
  const Folder sub = folder.sub(name);
  if (is_distributed(sub) || sub.find("common.pt") != nullptr) return true;
  const auto inner = sub.folders();
  return std::ranges::any_of(inner, [](const std::string& one) { return one.starts_with("mp_rank_"); });
}

// Checks tensor and pipeline ranks, each counted from 0: 00_000, 00_001, 01_000… Every pair must exist.
std::optional<Trouble> ranks_missing(const Folder& folder) {
  std::set<std::string> first, second;
  std::set<std::string> there;
  for (const std::string& name : folder.folders()) {
    if (!name.starts_with("mp_rank_")) continue;
    const std::string ranks = name.substr(8);
    there.insert(ranks);
    const std::size_t cut = ranks.find('_');
    first.insert(ranks.substr(0, cut));
    second.insert(cut == std::string::npos ? "" : ranks.substr(cut));
    const Folder rank = folder.sub(name);
    if (rank.find("model_optim_rng.pt") == nullptr && rank.find("model_rng.pt") == nullptr)
      return missing(rank, "model_optim_rng.pt");
  }
  for (const std::string& tensor : first)
    for (const std::string& pipeline : second)
      if (!there.contains(tensor + pipeline))
        return missing(folder, "mp_rank_" + tensor + pipeline + "/model_optim_rng.pt");
  return std::nullopt;
}

std::optional<Trouble> iteration_trouble(const Folder& folder) {
  if (auto torn = torn_file(folder)) return torn;
  if (is_distributed(folder) && folder.find(".metadata") == nullptr) return missing(folder, ".metadata");
  return ranks_missing(folder);
}

std::string iteration_of(std::string_view folder_name) {
  std::string_view digits = folder_name.substr(k_iteration.size());
  while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
  return std::string(digits);
}

}  // namespace

std::vector<Unit> find_megatron(const Folder& folder) {
  std::vector<Unit> units;
  const FileFact* tracker = folder.find(k_tracker);
  const std::string newest(trim(tracker != nullptr ? folder.text(*tracker, k_tracker_max) : ""));
  bool newest_whole = newest == "release";
  std::string named;
  for (const std::string& name : folder.folders()) {
    if (!is_iteration(folder, name)) continue;
    const Folder sub = folder.sub(name);
    auto trouble = iteration_trouble(sub);
    const auto files = sub.files();
    const bool later = tracker == nullptr || std::ranges::any_of(files, [&](const FileFact& file) {
                         return file.mtime_ns > tracker->mtime_ns;
                       });
    if (!trouble && later)
      trouble = Trouble{"'" + sanitize(path_in(folder, k_tracker)) + "' does not name it yet", path_in(folder, k_tracker),
                        tracker == nullptr};
    if (!trouble && iteration_of(name) == newest) newest_whole = true;
    if (iteration_of(name) == newest) named = path_in(folder, name);
    units.push_back(folder_unit(sub, "megatron", std::move(trouble)));
  }
  if (units.empty() || tracker == nullptr) return units;
  std::optional<Trouble> trouble;
  if (!newest_whole) trouble = names_incomplete(*tracker, "iteration " + sanitize(newest));
  units.push_back(files_unit("megatron", tracker->path, {tracker}, std::move(trouble)));
  units.back().names = named;
  return units;
}

}  // namespace gridctl::whole
