// SPDX-License-Identifier: Apache-2.0
// Holds the job files for new users, which the program carries: the folder cmd/templates/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace gridctl::cmd {

struct TemplateFile {
  std::string_view name;  // "train.py"
  std::string_view text;
};
struct Template {
  std::string name;
  std::string summary;  // the first comment of its job file
  std::vector<TemplateFile> files;
};
[[nodiscard]] const std::vector<Template>& templates();  // by name
// Returns a file that templates share. REQUIRES: the file exists.
[[nodiscard]] std::string_view shared_file(std::string_view name);
// Finds a template by name. The not_found error lists the available ones.
[[nodiscard]] Result<const Template*> template_named(std::string_view name);

}  // namespace gridctl::cmd
