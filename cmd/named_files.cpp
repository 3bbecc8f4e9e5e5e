// SPDX-License-Identifier: Apache-2.0
#include "cmd/named_files.hpp"

#include "base/text.hpp"
#include "control/follow/inputs.hpp"
#include "job/task_template.hpp"

namespace gridctl::cmd {

namespace {
constexpr std::uint64_t k_sent_unasked_max = 1u << 30, k_files_unasked_max = 20'000;
constexpr int k_items_looked_at = 1000;  // items are of one kind, as a rule

bool is_below(const os::Path& path) {
  if (path.empty() || path.is_absolute()) return false;
  const os::Path plain = path.lexically_normal();
  return plain.begin() != plain.end() && *plain.begin() != "..";
}

bool is_file_of(const os::Path& here, const os::Path& path) {
  std::error_code ignored;
  return is_below(path) && std::filesystem::is_regular_file(here / path, ignored);
}

// Returns the package or file that `python3 -m NAME` runs.
std::string module_of(const os::Path& here, std::string name) {
  for (char& c : name)
    if (c == '.') c = '/';
  std::error_code ignored;
  if (is_file_of(here, name + ".py")) return name + ".py";
  return is_below(name) && std::filesystem::is_directory(here / name, ignored) ? name : "";
}

std::string named_in(const os::Path& here, const std::vector<std::string>& command) {
  const bool is_line = command.size() == 1 && command[0].find_first_of(" \t\n") != std::string::npos;
  const std::vector<std::string> words = is_line ? split(trim(command[0]), ' ') : command;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].empty() || words[i].starts_with('-')) continue;
    if (i > 0 && words[i - 1] == "-m")
      if (std::string module = module_of(here, words[i]); !module.empty()) return module;
    // A program without a slash is searched for in $PATH.
    if ((i > 0 || words[i].find('/') != std::string::npos) && is_file_of(here, words[i])) return words[i];
  }
  return "";
}

// Returns the first item, or column of one, that is a file or a directory here.
std::string named_by_items(const os::Path& here, std::string_view items) {
  for (int looked = 0; !items.empty() && looked < k_items_looked_at; ++looked) {
    const std::size_t end = std::min(items.find('\0'), items.size());
    for (const std::string& column : split(items.substr(0, end), job::k_column_separator)) {
      std::error_code ignored;
      if (is_below(column) && column.find_first_not_of("./") != std::string::npos && std::filesystem::exists(here / column, ignored)) return column;
    }
    items.remove_prefix(std::min(end + 1, items.size()));
  }
  return "";
}
}  // namespace

Result<void> send_what_is_named(Context& context, const Parsed& parsed, std::string_view items, job::Spec& spec) {
  if (!parsed.has_command || parsed.has("workdir") || !spec.workdir.empty()) return {};
  std::error_code failed;
  const os::Path here = std::filesystem::current_path(failed);
  std::string name = failed ? "" : named_in(here, parsed.command);
  if (!failed && name.empty()) name = named_by_items(here, items);
  if (name.empty()) return {};
  const auto too_much = [&](const std::string& why) {
    return make_error(Code::usage, sanitize(name) + " is on this machine, and this directory " + why +
                                       ": -w . sends it, -w DIR another one, and -w '' none");
  };
  if (here == os::home_directory() || here == here.root_path()) return too_much("is not one to send unasked");
  spec.workdir = here.string();
  TRY_ASSIGN(const std::vector<control::InputListing> sent, control::list_inputs(spec));
  for (const control::InputListing& one : sent)
    if (one.role == "workdir" && (one.bytes > k_sent_unasked_max || one.files > k_files_unasked_max))
      return too_much("is too large to send unasked (" + std::to_string(one.files) + " files, " + format_size(one.bytes) + ")");
  context.note("sending this directory with the job, because it contains " + sanitize(name) + "; -w DIR sends another one, -w '' none");
  return {};
}

}  // namespace gridctl::cmd
