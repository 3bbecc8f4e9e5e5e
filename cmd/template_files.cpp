// SPDX-License-Identifier: Apache-2.0
#include "cmd/template_files.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace gridctl::cmd {

namespace {
struct EmbeddedFile {
  std::string_view folder, name, text;
};
constexpr EmbeddedFile k_rows[] = {
#include "template_rows.inc"
};

// Returns whether a template uses a module. A module that several templates share lies beside their folders.
bool uses(const Template& one, std::string_view module_file) {
  const std::string import = "import " + std::string(module_file.substr(0, module_file.rfind('.')));
  return std::ranges::any_of(
      one.files, [&](const TemplateFile& file) { return file.text.find(import) != std::string_view::npos; });
}

std::string summary_of(std::string_view job_file) {
  const std::string first = split_lines(job_file).at(0);
  return first.starts_with("# ") ? first.substr(2) : first;
}

std::vector<Template> collect() {
  std::vector<Template> list;
  for (const EmbeddedFile& row : k_rows) {
    if (row.folder.empty()) continue;
    if (list.empty() || list.back().name != row.folder) list.push_back({std::string(row.folder), "", {}});
    list.back().files.push_back({row.name, row.text});
    if (row.name == "job.yaml") list.back().summary = summary_of(row.text);
  }
  for (Template& one : list)
    for (const EmbeddedFile& row : k_rows)
      if (row.folder.empty() && uses(one, row.name)) one.files.push_back({row.name, row.text});
  std::ranges::sort(list, {}, &Template::name);
  return list;
}
}  // namespace

const std::vector<Template>& templates() {
  static const std::vector<Template> list = collect();
  return list;
}

std::string_view shared_file(std::string_view name) {
  for (const EmbeddedFile& row : k_rows)
    if (row.folder.empty() && row.name == name) return row.text;
  return {};
}

Result<const Template*> template_named(std::string_view name) {
  std::vector<std::string> names;
  for (const Template& one : templates()) {
    if (one.name == name) return &one;
    names.push_back(one.name);
  }
  return make_error(Code::not_found, "no template is called '" + sanitize(name.substr(0, 64)) + "': there are " +
                                         join(names, ", "), "gridctl template ls");
}

}  // namespace gridctl::cmd
