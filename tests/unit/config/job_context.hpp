// SPDX-License-Identifier: Apache-2.0
// A laptop for tests of the job file: its environment and files, without touching real ones.
#pragma once

#include <map>
#include <set>

#include "config/job_file.hpp"

namespace gridctl::config {

inline Context ada_s_laptop(Overrides overrides = {}) {
  Context context;
  context.base_directory = "/home/ada/job";
  context.environment = [](std::string_view name) -> std::optional<std::string> {
    static const std::map<std::string, std::string, std::less<>> k_variables{
        {"HOME", "/home/ada"}, {"HF_TOKEN", "hf_canary"}, {"LR", "0.5"}};
    const auto found = k_variables.find(name);
    return found == k_variables.end() ? std::nullopt : std::optional(found->second);
  };
  context.path_kind = [](const std::string& path) {
    static const std::set<std::string> k_directories{"/home/ada", "/home/ada/code", "/home/ada/job",
                                                     "/home/ada/job/data"};
    static const std::set<std::string> k_files{"/home/ada/job/image.tar", "/home/ada/job/train.py"};
    if (k_directories.count(path) != 0) return PathKind::directory;
    return k_files.count(path) != 0 ? PathKind::file : PathKind::missing;
  };
  context.overrides = std::move(overrides);
  context.known_providers = {"ada", "bob"};
  return context;
}

}  // namespace gridctl::config
