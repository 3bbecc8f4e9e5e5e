// SPDX-License-Identifier: Apache-2.0
#include "cmd/ssh_names.hpp"

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "os/entries.hpp"
#include "store/ignore.hpp"

namespace gridctl::cmd {

namespace {
constexpr std::size_t k_config_max = 4u << 20;
constexpr int k_depth_max = 8;  // of includes, as ssh has it at 16
constexpr std::string_view k_forges[] = {"github", "gitlab", "bitbucket", "codeberg", "sr.ht", "gitea", "aur."};

bool is_forge(std::string_view name) {
  return std::any_of(std::begin(k_forges), std::end(k_forges),
                     [&](std::string_view forge) { return name.find(forge) != std::string_view::npos; });
}

// Splits "Host a b" and "Host=a", with or without quotes around words.
std::vector<std::string> words_in(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false, any = false;
  for (const char c : line) {
    const bool gap = !quoted && (c == ' ' || c == '\t' || (c == '=' && words.size() <= 1 && (any || words.size() == 1)));
    if (c == '"') quoted = !quoted, any = true;
    else if (!gap) word += c, any = true;
    else if (any) words.push_back(std::move(word)), word.clear(), any = false;
  }
  if (any) words.push_back(std::move(word));
  return words;
}

// Returns the files that an Include names; a pattern may stand in the last component only.
std::vector<os::Path> included(const std::string& pattern, const os::Path& folder) {
  os::Path path = pattern.starts_with("~/") ? os::home_directory() / pattern.substr(2) : os::Path(pattern);
  if (path.is_relative()) path = folder / path;
  if (path.string().find_first_of("*?[") == std::string::npos) return {path};
  std::vector<os::Path> found;
  store::IgnorePattern glob;
  const auto names = os::list_directory(path.parent_path());
  if (!names || !store::IgnorePattern::parse("/" + path.filename().string(), glob)) return found;
  for (const std::string& name : *names)
    if (!name.starts_with('.') && glob.matches(name, false)) found.push_back(path.parent_path() / name);
  std::ranges::sort(found);
  return found;
}

void collect(const os::Path& file, const os::Path& folder, int depth, std::vector<std::string>& into) {
  const Result<std::string> text = os::read_file(file, k_config_max);
  if (!text || depth > k_depth_max) return;
  const SshNames found = names_in(*text);
  into.insert(into.end(), found.hosts.begin(), found.hosts.end());
  for (const std::string& pattern : found.includes)
    for (const os::Path& more : included(pattern, folder)) collect(more, folder, depth + 1, into);
}
}  // namespace

SshNames names_in(std::string_view text) {
  SshNames names;
  for (const std::string& line : split_lines(std::string(text))) {
    const std::string_view trimmed = trim(line);
    if (trimmed.empty() || trimmed.starts_with('#')) continue;
    const std::vector<std::string> words = words_in(trimmed);
    if (words.empty()) continue;
    const std::string key = lower(words[0]);
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (key == "include") names.includes.push_back(words[i]);
      if (key == "host" && words[i].find_first_of("*?!") == std::string::npos && !is_forge(lower(words[i])))
        names.hosts.push_back(words[i]);
    }
  }
  return names;
}

Result<std::vector<std::string>> ssh_names(const os::Path& config) {
  std::vector<std::string> all;
  collect(config, config.parent_path(), 0, all);
  std::set<std::string> seen;
  std::erase_if(all, [&](const std::string& name) { return !seen.insert(name).second; });
  return all;
}

}  // namespace gridctl::cmd
