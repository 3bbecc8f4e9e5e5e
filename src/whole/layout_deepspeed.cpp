// SPDX-License-Identifier: Apache-2.0
// Recognises DeepSpeed: a folder for each tag, into which every rank writes its own files, and `latest`, which names
// the newest tag. Rank 0 writes `latest` without waiting for the others, so the files of all ranks are counted.
#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "whole/layout_tools.hpp"

namespace gridctl::whole {
namespace {

constexpr std::string_view k_model = "_model_states.pt", k_optimizer = "_optim_states.pt", k_zero = "zero_pp_rank_";
constexpr std::size_t k_tag_max = 256;
constexpr std::uint64_t k_ranks_max = 100'000;

bool is_model(std::string_view name) { return name.starts_with("mp_rank_") && name.ends_with(k_model); }
bool is_optimizer(std::string_view name) { return name.find(k_zero) != std::string_view::npos && name.ends_with(k_optimizer); }
bool is_zero_model(std::string_view name) { return name.starts_with(k_zero) && name.ends_with(k_model); }

struct Ranks {
  std::uint64_t data = 0, model = 0;  // as the model's state tells; 0 = it does not
};
Ranks ranks_told(const Folder& folder) {
  Ranks ranks;
  for (const FileFact* file : folder.direct()) {
    if (!is_model(folder.name(*file)) && !is_zero_model(folder.name(*file))) continue;
    const std::string pickle = folder.entry(*file, "/data.pkl", k_pickle_max);
    if (const auto number = pickled_number(pickle, "dp_world_size"); number && *number <= k_ranks_max) ranks.data = *number;
    if (const auto number = pickled_number(pickle, "mp_world_size"); number && *number <= k_ranks_max) ranks.model = *number;
    if (ranks.data > 0) break;
  }
  return ranks;
}

bool has_rank_0(const Folder& folder) {
  const auto files = folder.direct();
  return std::ranges::any_of(files, [&](const FileFact* file) {
    const std::string_view name = folder.name(*file);
    return name == "mp_rank_00_model_states.pt" || name.find("zero_pp_rank_0_mp_rank_00_") != std::string_view::npos;
  });
}

std::string trimmed_tag(const Folder& folder, const FileFact& latest) {
  return std::string(trim(folder.text(latest, k_tag_max)));
}

Unit latest_unit(const Folder& folder, const FileFact& latest, const std::set<std::string>& whole_tags) {
  const std::string tag = trimmed_tag(folder, latest);
  std::optional<Trouble> trouble;
  if (!whole_tags.contains(tag)) trouble = names_incomplete(latest, quoted_path(tag));
  Unit unit = files_unit("deepspeed", latest.path, {&latest}, std::move(trouble));
  unit.names = path_in(folder, tag);
  return unit;
}

}  // namespace

bool is_deepspeed_tag(const Folder& folder) {
  const auto files = folder.direct();
  return std::ranges::any_of(files, [&](const FileFact* file) {
    const std::string_view name = folder.name(*file);
    return is_model(name) || is_optimizer(name) || is_zero_model(name);
  });
}

std::optional<Trouble> deepspeed_trouble(const Folder& folder) {
  if (auto torn = torn_file(folder)) return torn;
  std::set<std::string> models, optimizers;
  for (const FileFact* file : folder.direct()) {
    const std::string name(folder.name(*file));
    if (is_model(name) || is_zero_model(name)) models.insert(name);
    if (is_optimizer(name)) optimizers.insert(name);
  }
  if (models.empty()) return missing(folder, "mp_rank_00_model_states.pt");
  const Ranks ranks = ranks_told(folder);
  const std::uint64_t model = std::max<std::uint64_t>(ranks.model, 1);
  if (!optimizers.empty() && ranks.data > 0 && optimizers.size() < ranks.data * model)
    return Trouble{"only " + std::to_string(optimizers.size()) + " of " + std::to_string(ranks.data * model) +
                       " ranks' optimizer states are there",
                   path_in(folder, *optimizers.begin()), true};
  // With ZeRO, the ranks' parts come after the model's.
  const FileFact* first = folder.find(*models.begin());
  if (optimizers.empty() && first != nullptr &&
      folder.entry(*first, "/data.pkl", k_pickle_max).find("ZeRO") != std::string::npos)
    return missing(folder, "zero_pp_rank_0_mp_rank_00_optim_states.pt");
  return std::nullopt;
}

std::vector<Unit> find_deepspeed(const Folder& folder) {
  std::vector<Unit> units;
  std::set<std::string> whole_tags;
  const FileFact* latest = folder.find("latest");
  const std::string newest = latest != nullptr ? trimmed_tag(folder, *latest) : "";
  for (const std::string& name : folder.folders()) {
    const Folder tag = folder.sub(name);
    if (!is_deepspeed_tag(tag)) continue;
    auto trouble = deepspeed_trouble(tag);
    // Rank 0 names the tag when it has finished; until then, its files may still increase in number.
    const bool later = latest != nullptr && std::ranges::any_of(tag.files(), [&](const FileFact& file) {
                         return file.mtime_ns > latest->mtime_ns;
                       });
    // Where rank 0 runs, `latest` follows; other hosts of a gang have none.
    const bool unnamed = latest == nullptr && (!trouble || has_rank_0(tag));
    if (unnamed || (!trouble && name != newest && later))
      trouble = Trouble{"'" + sanitize(path_in(folder, "latest")) + "' does not name it yet", path_in(folder, "latest")};
    if (!trouble) whole_tags.insert(name);
    units.push_back(folder_unit(tag, "deepspeed", std::move(trouble)));
  }
  if (!units.empty() && latest != nullptr) units.push_back(latest_unit(folder, *latest, whole_tags));
  return units;
}

}  // namespace gridctl::whole
