// SPDX-License-Identifier: Apache-2.0
#include "lend/presence.hpp"

#include <algorithm>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "os/entries.hpp"
#include "os/process.hpp"

namespace gridctl::lend {

namespace {

constexpr Duration k_logind_every = std::chrono::seconds{5}, k_logind_wait = std::chrono::seconds{3};
constexpr std::size_t k_sessions_most = 50, k_word_most = 60, k_interrupts_bytes = 1u << 20;
constexpr std::string_view k_controller = "i8042";

const Presence& newer(const Presence& one, const Presence& other) { return other.last.ms > one.last.ms ? other : one; }

bool has_screen(const Session& session) { return is_one_of(session.type, {"x11", "wayland", "mir"}); }

std::optional<std::string> ask_program(const std::vector<std::string>& argv) {
  os::RunOptions options;
  options.timeout = k_logind_wait;
  const auto outcome = os::run(argv, options);
  return outcome && outcome->status.success() ? std::optional(outcome->out) : std::nullopt;
}

}  // namespace

std::vector<Session> parse_sessions(std::string_view text) {
  std::vector<Session> all;
  Session session;
  bool user = false;
  const auto take = [&] {
    if (!session.id.empty() && user) all.push_back(session);
    session = {};
    user = false;
  };
  for (const std::string& line : split_lines(text)) {
    const std::size_t cut = line.find('=');
    if (cut == std::string::npos) {
      take();
      continue;
    }
    const std::string key = line.substr(0, cut), value = sanitize(trim(std::string_view(line).substr(cut + 1)), k_word_most);
    if (is_one_of(key, {"Id"})) session.id = value;
    else if (is_one_of(key, {"Name"})) session.user = value;
    else if (is_one_of(key, {"Type"})) session.type = value;
    else if (is_one_of(key, {"Class"})) user = is_one_of(value, {"user"});
    else if (is_one_of(key, {"State"})) session.leaves = is_one_of(value, {"closing"});
    else if (is_one_of(key, {"IdleHint"})) session.idle = is_one_of(value, {"yes"});
    else if (is_one_of(key, {"IdleSinceHint"})) session.idle_since = {parse_number<std::int64_t>(value).value_or(0) / 1000};
  }
  take();
  return all;
}

Presence presence_of(const std::vector<Session>& sessions, WallTime now) {
  Presence newest;
  for (const Session& one : sessions) {
    if (!has_screen(one) || one.leaves) continue;
    const Presence its{one.idle ? one.idle_since : now, one.user + "'s session " + one.id + " (" + one.type + ")"};
    newest = newer(newest, its);
  }
  return newest;
}

std::uint64_t parse_input_interrupts(std::string_view text) {
  std::uint64_t sum = 0;
  for (const std::string& line : split_lines(text)) {
    if (!trim(line).ends_with(k_controller)) continue;
    const std::vector<std::string> words = split(line.substr(std::min(line.find(':'), line.size() - 1) + 1), ' ');
    for (const std::string& word : words) {
      if (word.empty()) continue;
      if (!all_digits(word)) break;
      sum += parse_number<std::uint64_t>(word).value_or(0);
    }
  }
  return sum;
}

// A terminal is read when somebody types: its time of access says when (to eight seconds), as `w` shows it.
Presence PresenceLook::at_terminals() const {
  Presence newest;
  const auto look = [&](const os::Path& folder, std::string_view prefix, const std::string& words) {
    for (const std::string& name : os::list_directory(folder).value_or(std::vector<std::string>{})) {
      if (!name.starts_with(prefix) || !all_digits(std::string_view(name).substr(prefix.size()))) continue;
      if (const auto at = os::accessed_at(folder / name)) newest = newer(newest, {*at, "input at " + words + name});
    }
  };
  look(root_ / "dev/pts", "", "pts/");
  look(root_ / "dev", "tty", "");
  return newest;
}

void PresenceLook::ask_logind() {
  if (asked_.ns != 0 && clock_.boot() - asked_ < k_logind_every) return;
  asked_ = clock_.boot();
  sessions_.reset();
  const auto list = ask_program({"loginctl", "list-sessions", "--no-legend", "--no-pager"});
  if (!list) return;
  std::vector<std::string> argv{"loginctl", "show-session", "--no-pager"};
  for (const char* property : {"Id", "Name", "Type", "Class", "State", "IdleHint", "IdleSinceHint"}) argv.push_back(std::string("--property=") + property);
  const std::size_t without = argv.size();
  for (const std::string& line : split_lines(*list)) {
    const std::string_view rest = trim(line);
    if (!rest.empty() && argv.size() < without + k_sessions_most) argv.emplace_back(rest.substr(0, rest.find(' ')));
  }
  if (argv.size() == without) {
    sessions_.emplace();
    return;
  }
  if (const auto shown = ask_program(argv)) sessions_ = parse_sessions(*shown);
}

Presence PresenceLook::look() {
  ask_logind();
  const WallTime now = clock_.wall();
  Presence newest = at_terminals();
  if (sessions_) newest = newer(newest, presence_of(*sessions_, now));
  const std::uint64_t count = parse_input_interrupts(os::read_file(root_ / "proc/interrupts", k_interrupts_bytes).value_or(""));
  if (interrupts_ && *interrupts_ != count) keyboard_ = {now, "keyboard or mouse"};
  interrupts_ = count;
  newest = newer(newest, keyboard_);
  newest.last.ms = std::min(newest.last.ms, now.ms);  // a clock that was set back
  return newest;
}

std::string PresenceLook::unseen() {
  ask_logind();
  if (sessions_) return {};
  return "logind does not answer (loginctl), so a desktop's mouse and keyboard are not seen: only terminals, programs on a GPU, and "
         "a keyboard at a PS/2 port are";
}

}  // namespace gridctl::lend
