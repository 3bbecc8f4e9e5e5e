// SPDX-License-Identifier: Apache-2.0
#include "cmd/manuals.hpp"

#include "cmd/command.hpp"
#include "cmd/context.hpp"
#include "os/files.hpp"
#include "os/process.hpp"

namespace gridctl::cmd {

namespace {
constexpr std::string_view k_page_prefix = "gridctl-";

constexpr Manual k_manuals[] = {
#include "manuals.inc"
};

// Returns "job" for "gridctl-job"; the page of the program itself keeps its name.
std::string_view short_name(std::string_view name) {
  return name.starts_with(k_page_prefix) ? name.substr(k_page_prefix.size()) : name;
}

bool has_name(const Manual& manual, std::string_view topic) {
  return topic == manual.name || topic == short_name(manual.name);
}

std::string with_section(const Manual& manual) {
  return std::string(short_name(manual.name)) + "." + std::to_string(manual.section);
}

// The topic matches one page only, and no command that `gridctl help` would explain instead.
bool is_unique(std::string_view topic) {
  const auto pages = std::count_if(std::begin(k_manuals), std::end(k_manuals),
                                   [&](const Manual& manual) { return has_name(manual, topic); });
  const auto commands = nouns();
  return pages == 1 && std::ranges::none_of(commands, [&](const NounText& noun) { return noun.noun == topic; });
}

// Chooses like git: $PAGER, otherwise less; nullopt if the reader wants none.
std::optional<std::vector<std::string>> pager() {
  const std::optional<std::string> chosen = os::environment("PAGER");
  if (chosen && (chosen->empty() || *chosen == "cat")) return std::nullopt;
  if (chosen) return std::vector<std::string>{"/bin/sh", "-c", *chosen};
  if (!os::find_program("less")) return std::nullopt;
  return std::vector<std::string>{"less", "-FRX"};  // one that ends by itself when a screen holds the text
}

Result<void> page_through(const std::vector<std::string>& command, std::string_view text) {
  TRY_ASSIGN(auto ends, os::make_pipe());
  os::SpawnOptions options;
  options.stdin_fd = ends.first.get();
  options.stdout_fd = 1;
  options.stderr_fd = 2;
  TRY_ASSIGN(const int pid, os::spawn(command, options));
  ends.first.reset();
  (void)os::write_all(ends.second.get(), as_bytes(text));  // a reader who has seen enough closes it early
  ends.second.reset();
  TRY(os::wait(pid));
  return {};
}
}  // namespace

std::span<const Manual> manuals() { return k_manuals; }

const Manual* find_manual(std::string_view topic) {
  std::string plain(topic);
  if (plain.ends_with(')')) {
    plain.pop_back();
    std::ranges::replace(plain, '(', '.');
  }
  const bool only = is_unique(plain);
  for (const Manual& manual : k_manuals) {
    const std::string section = "." + std::to_string(manual.section);
    if (only && has_name(manual, plain)) return &manual;
    if (plain == std::string(manual.name) + section || plain == with_section(manual)) return &manual;
  }
  return nullptr;
}

std::vector<std::string> manual_topics() {
  std::vector<std::string> topics;
  for (const Manual& manual : k_manuals) {
    const std::string_view name = short_name(manual.name);
    topics.push_back(is_unique(name) ? std::string(name) : with_section(manual));
  }
  return topics;
}

Result<int> show_manual(Context& context, const Manual& manual) {
  if (const auto command = context.terminal_out ? pager() : std::nullopt)
    if (page_through(*command, manual.text)) return 0;
  return context.print(manual.text);
}

}  // namespace gridctl::cmd
