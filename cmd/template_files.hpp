// SPDX-License-Identifier: Apache-2.0
// Job files to begin with, carried in the program: the folder cmd/templates/.
#pragma once

#include <span>
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
// A file that templates share. REQUIRES: there is one.
[[nodiscard]] std::string_view shared_file(std::string_view name);
// not_found names those that there are.
[[nodiscard]] Result<const Template*> template_named(std::string_view name);

}  // namespace gridctl::cmd
