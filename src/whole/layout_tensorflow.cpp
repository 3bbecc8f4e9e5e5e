// SPDX-License-Identifier: Apache-2.0
// Recognises TensorFlow: PREFIX.data-NNNNN-of-NNNNN, then PREFIX.index, then `checkpoint`, which names the newest
// prefix.
#include <map>
#include <set>

#include "base/text.hpp"
#include "whole/layout_tools.hpp"

namespace gridctl::whole {
namespace {

constexpr std::string_view k_index = ".index", k_data = ".data-", k_newest = "model_checkpoint_path: \"";
constexpr std::size_t k_pointer_max = 64u << 10;
constexpr Duration k_pointer_settle = std::chrono::milliseconds{500};  // CheckpointManager writes it twice

struct Prefix {
  const FileFact* index = nullptr;
  std::map<std::string, const FileFact*, std::less<>> data;  // by "00000-of-00001"
};

std::map<std::string, Prefix> prefixes_in(const Folder& folder) {
  std::map<std::string, Prefix> found;
  for (const FileFact* file : folder.direct()) {
    const std::string_view name = folder.name(*file);
    const std::size_t data = name.rfind(k_data);
    if (name.ends_with(k_index) && name.size() > k_index.size())
      found[std::string(name.substr(0, name.size() - k_index.size()))].index = file;
    else if (data != std::string_view::npos && name.find("-of-", data) != std::string_view::npos)
      found[std::string(name.substr(0, data))].data.emplace(name.substr(data + k_data.size()), file);
  }
  std::erase_if(found, [](const auto& one) { return one.second.data.empty(); });  // other things have an index, too
  return found;
}

std::optional<Trouble> prefix_trouble(const Folder& folder, const std::string& name, const Prefix& prefix) {
  if (prefix.index == nullptr) return missing(folder, name + std::string(k_index));
  if (prefix.index->size == 0) return Trouble{"'" + sanitize(prefix.index->path) + "' is still empty", prefix.index->path};
  const std::string last = prefix.data.rbegin()->first;
  const std::size_t of = last.find("-of-");
  for (std::size_t i = 0; std::to_string(i).size() <= of; ++i) {
    std::string number = std::to_string(i);
    number.insert(0, of - number.size(), '0');
    if (number == last.substr(of + 4)) return std::nullopt;
    if (!prefix.data.contains(number + last.substr(of)))
      return missing(folder, name + std::string(k_data) + number + last.substr(of));
  }
  return std::nullopt;
}

std::string newest_named(std::string_view text) {
  if (!text.starts_with(k_newest)) return {};
  text.remove_prefix(k_newest.size());
  const std::string_view path = text.substr(0, text.find('"'));
  return std::string(path.substr(path.rfind('/') + 1));
}

}  // namespace

std::vector<Unit> find_tensorflow(const Folder& folder) {
  std::vector<Unit> units;
  std::set<std::string> whole;
  for (const auto& [name, prefix] : prefixes_in(folder)) {
    auto trouble = prefix_trouble(folder, name, prefix);
    if (!trouble) whole.insert(name);
    std::vector<const FileFact*> files;
    if (prefix.index != nullptr) files.push_back(prefix.index);
    for (const auto& [number, file] : prefix.data) files.push_back(file);
    units.push_back(files_unit("tensorflow", path_in(folder, name), std::move(files), std::move(trouble)));
  }
  const FileFact* pointer = folder.find("checkpoint");
  if (units.empty() || pointer == nullptr) return units;
  const std::string newest = newest_named(folder.text(*pointer, k_pointer_max));
  std::optional<Trouble> trouble;
  if (!whole.contains(newest)) trouble = names_incomplete(*pointer, quoted_path(newest));
  units.push_back(files_unit("tensorflow", pointer->path, {pointer}, std::move(trouble)));
  units.back().settle = k_pointer_settle;
  return units;
}

}  // namespace gridctl::whole
