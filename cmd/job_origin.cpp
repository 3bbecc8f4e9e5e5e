// SPDX-License-Identifier: Apache-2.0
#include "cmd/job_origin.hpp"

#include "base/text.hpp"
#include "control/follow/masks.hpp"
#include "os/files.hpp"

namespace gridctl::cmd {

namespace {
constexpr const char* k_file = "submitted.yaml";
constexpr const char* k_command = "submitted.command";

// A value too short to be searched for everywhere is masked where it follows the secret's name in a line.
void mask_after_name(std::string& text, const std::string& name, const std::string& value) {
  if (value.empty()) return;
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    for (std::size_t found = text.find(value, at + name.size()); found < end; found = text.find(value, found + value.size()))
      text.replace(found, value.size(), value.size(), '*');
  }
}

std::string read_if_there(const os::Path& path) {
  if (!os::exists(path)) return "";
  const Result<std::string> text = os::read_file(path, 1u << 20);
  return text ? *text : "";
}
}  // namespace

JobOrigin origin_of(const Command& command, const Parsed& parsed, std::string typed,
                    const std::map<std::string, std::string>& secrets) {
  JobOrigin origin{std::move(typed), "gridctl " + std::string(command.name)};
  if (origin.file.empty() && !parsed.positionals.empty()) origin.file = read_if_there(parsed.positionals[0]);
  for (const auto& [name, values] : parsed.options)
    for (const std::string& value : values) {
      origin.command += " --" + name;
      for (const Option* option : options_of(&command))
        if (option->name == name && !option->value.empty()) origin.command += " " + shell_quote(value);
    }
  for (const std::string& word : parsed.positionals) origin.command += " " + shell_quote(word);
  if (parsed.has_command) origin.command += " --";
  for (const std::string& word : parsed.command) origin.command += " " + shell_quote(word);
  const control::Masks masks(secrets);
  for (std::string* text : {&origin.file, &origin.command}) {
    masks.mask(*text);
    for (const auto& [name, value] : secrets) mask_after_name(*text, name, value);
  }
  return origin;
}

Result<void> write_origin(const control::Paths& paths, const JobId& id, const JobOrigin& origin) {
  if (origin.command.empty()) return {};
  const os::Path folder = paths.logs_of(id);
  TRY(os::make_directories(folder));
  TRY(os::write_file_atomically(folder / k_file, origin.file));
  return os::write_file_atomically(folder / k_command, origin.command);
}

JobOrigin read_origin(const control::Paths& paths, const JobId& id) {
  const os::Path folder = paths.logs_of(id);
  return {read_if_there(folder / k_file), read_if_there(folder / k_command)};
}

}  // namespace gridctl::cmd
