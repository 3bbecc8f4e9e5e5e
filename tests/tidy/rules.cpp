// SPDX-License-Identifier: Apache-2.0
#include "rules.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <regex>
#include <set>

#include "base/text.hpp"

namespace gridctl::tidy {

namespace {
using Rooms = std::set<std::string>;

// A row of the map in src/README.md: | tier | `room` `room` | purpose | what it may include |
struct Row {
  int tier = 0;
  std::vector<std::string> rooms;
  std::string may_include;
};

std::vector<Row> rows_of_the_map() {
  std::ifstream in(std::string(GRIDCTL_SOURCE_DIR) + "/src/README.md");
  std::vector<Row> rows;
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> cells = split(line, '|');
    if (cells.size() != 6 || cells[1].find_first_of("0123456789") == std::string::npos) continue;
    Row row{std::stoi(cells[1]), {}, std::string(trim(cells[4]))};
    const std::vector<std::string> words = split(cells[2], '`');
    for (std::size_t i = 1; i < words.size(); i += 2)
      row.rooms.push_back(words[i].starts_with("../") ? words[i].substr(3) : words[i]);
    rows.push_back(std::move(row));
  }
  return rows;
}

// A room and the rooms it may include besides itself, as the map says.
const std::map<std::string, Rooms>& layers() {
  static const std::map<std::string, Rooms> table = [] {
    std::map<std::string, Rooms> all;
    Rooms below, family;  // tiers 0 to 3; what the next room of the same family may include
    for (const Row& row : rows_of_the_map()) {
      Rooms allowed;
      if (row.may_include.starts_with("tiers 0")) allowed = below;
      else if (row.may_include.empty()) allowed = family;
      else if (row.may_include == "everything")
        for (const auto& [room, may] : all) allowed.insert(room);
      else if (row.may_include != "–")
        for (const std::string& name : split(row.may_include, ',')) {
          const std::string named(trim(name));
          allowed.insert(named);
          for (const auto& [room, may] : all)
            if (room.starts_with(named + "/")) allowed.insert(room);
        }
      family = allowed;
      for (const std::string& room : row.rooms) {
        all[room] = allowed;
        family.insert(room);
        if (row.tier <= 3) below.insert(room);
      }
    }
    return all;
  }();
  return table;
}

std::optional<Rooms> allowed_in(const std::string& room) {
  const auto row = layers().find(room);
  return row == layers().end() ? std::nullopt : std::optional{row->second};
}

// Headers of a library (by the beginning of their name) and where they may be included (a room or a file).
const std::map<std::string, std::string>& third_parties() {
  static const std::map<std::string, std::string> table{
      {"libssh2", "ssh"}, {"sqlite3", "db"}, {"openssl/", "crypto"}, {"curl/", "http"},       {"yaml-cpp/", "config"},
      {"uv.h", "os"},     {"uv/", "os"},     {"expat", "xml"},       {"CLI/", "cmd/cli.cpp"},
      {"sodium", "peer"},
  };
  return table;
}

// Prefixes of the system's own headers: clocks, files, processes, sockets.
const std::vector<std::string>& system_headers() {
  static const std::vector<std::string> names{"sys/",     "linux/",  "netinet/", "arpa/",    "fcntl.h", "unistd.h",
                                              "poll.h",   "pwd.h",   "netdb.h",  "dirent.h", "sched.h", "termios.h",
                                              "signal.h", "csignal", "time.h",   "ctime"};
  return names;
}

struct Banned {
  std::string word;  // looked for first: regular expressions are slow
  std::regex pattern;
  const char* instead;
};
const std::vector<Banned>& banned_words() {
  // Not after '.', '>' or a letter: members and longer names are somebody else's.
  static const std::vector<Banned> words = [] {
    std::vector<Banned> list;
    const auto call = [&](const std::string& name, const char* instead) {
      list.push_back({name, std::regex("(^|[^\\w.>:]|std::|(^|[^\\w:])::)" + name + "\\s*\\("), instead});
    };
    list.push_back({"_clock::now", std::regex("(steady|system|high_resolution)_clock::now"), "os::Clock"});
    list.push_back({"random_device", std::regex("\\brandom_device\\b"), "os/random.hpp"});
    list.push_back({"sleep_", std::regex("\\bsleep_(for|until)\\b"), "a timer, or os::pause_for"});
    for (const char* name : {"time", "gettimeofday", "clock_gettime"}) call(name, "os::Clock");
    for (const char* name : {"rand", "srand", "random", "getrandom"}) call(name, "os/random.hpp");
    for (const char* name : {"sleep", "usleep", "nanosleep"}) call(name, "a timer, or os::pause_for");
    for (const char* name : {"getenv", "secure_getenv"}) call(name, "os::environment");
    for (const char* name : {"system", "popen"}) call(name, "os::run");
    return list;
  }();
  return words;
}

std::string at(const Source& source, int line, const std::string& what) {
  return source.path + ":" + std::to_string(line) + ": " + what;
}

bool starts_with_any(const std::string& name, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](const std::string& prefix) {
    return prefix.back() == '/' ? name.starts_with(prefix) : name == prefix;
  });
}
}  // namespace

Findings check_layers(const Source& source) {
  Findings findings;
  const std::string room = room_of(source.path);
  const std::optional<Rooms> allowed = allowed_in(room);
  if (!allowed) return {at(source, 1, "stands in no room of the house")};
  for (const Include& include : includes_of(source)) {
    const std::string target = include.quoted ? room_of("src/" + include.name) : "";
    if (target.empty() || !allowed_in(target)) continue;
    if (target != room && !allowed->contains(target))
      findings.push_back(at(source, include.line, room + " must not include " + target));
  }
  return findings;
}

Findings check_third_party(const Source& source) {
  Findings findings;
  for (const Include& include : includes_of(source)) {
    for (const auto& [prefix, place] : third_parties())
      if (include.name.starts_with(prefix) && place != room_of(source.path) && place != source.path)
        findings.push_back(at(source, include.line, "<" + include.name + "> belongs into " + place + " alone"));
    if (include.name == "nlohmann/json.hpp" && !source.path.ends_with(".cpp"))
      findings.push_back(at(source, include.line, "json.hpp belongs into .cpp files"));
  }
  return findings;
}

Findings check_system_calls(const Source& source) {
  const std::string room = room_of(source.path);
  Findings findings;
  if (room == "os" || room == "agent") return findings;
  for (const Include& include : includes_of(source))
    // <fcntl.h> names the flags of os::open_file, <csignal> the numbers of os::send_signal.
    if (starts_with_any(include.name, system_headers()) && include.name != "fcntl.h" && include.name != "csignal")
      findings.push_back(
          at(source, include.line, "<" + include.name + "> is for os and agent: system calls stand there"));
  return findings;
}

// How a host is reached is known to control/reach, and to lend of its relays: everybody else has AgentNetwork.
Findings check_ways(const Source& source) {
  static const std::set<std::string> rooms{"control/reach", "lend", "ssh"};
  static const std::set<std::string> headers{
      "ssh/channel.hpp",         "ssh/connect.hpp",        "ssh/known_hosts.hpp", "ssh/libssh2_session.hpp",
      "ssh/process_channel.hpp", "ssh/sealed_channel.hpp", "ssh/system_ssh.hpp",
      "control/reach/agent_link.hpp", "control/reach/connect_agent.hpp", "control/reach/deploy.hpp"};
  static const std::regex word(
      R"(\b(ssh::(connect|resolve|pin|pinned|scan_host_keys|ProcessChannel|Channel)|lend::(call|relay_here|close_relay)|)"
      R"(open_(agent|session|streams|bulk|link)\s*\(|relay_of\s*\())");
  Findings findings;
  if (rooms.contains(room_of(source.path))) return findings;
  for (const Include& include : includes_of(source))
    if (headers.contains(include.name))
      findings.push_back(at(source, include.line, include.name + " is a way to hosts: they are reached by AgentNetwork"));
  int number = 0;
  for (const std::string& line : split_lines(without_comments_and_literals(source.text))) {
    ++number;
    std::smatch found;
    if (std::regex_search(line, found, word))
      findings.push_back(at(source, number, found.str() + " goes round AgentNetwork"));
  }
  return findings;
}

Findings check_words(const Source& source) {
  Findings findings;
  int number = 0;
  static const std::regex unfinished("\\b(TODO|FIXME|XXX)\\b");
  for (const std::string& line : split_lines(source.text)) {
    ++number;
    if (line.find_first_of("TFX") != std::string::npos && std::regex_search(line, unfinished))
      findings.push_back(at(source, number, "unfinished work"));
  }
  if (room_of(source.path) == "os") return findings;
  number = 0;
  for (const std::string& line : split_lines(without_comments_and_literals(source.text))) {
    ++number;
    for (const Banned& banned : banned_words())
      if (std::smatch match;
          line.find(banned.word) != std::string::npos && std::regex_search(line, match, banned.pattern))
        findings.push_back(at(source, number, "'" + banned.word + "' stands in os alone; use " + banned.instead));
  }
  return findings;
}

Findings check_shape(const Source& source) {
  Findings findings;
  const std::vector<std::string> lines = split_lines(source.text);
  if (lines.empty() || lines[0] != "// SPDX-License-Identifier: Apache-2.0")
    findings.push_back(at(source, 1, "the first line is no licence identifier"));
  const int most = source.path.starts_with("tests/") ? k_file_lines_max * 6 / 5 : k_file_lines_max;
  if (static_cast<int>(lines.size()) > most)
    findings.push_back(
        at(source, static_cast<int>(lines.size()), "is longer than " + std::to_string(most) + " lines"));
  const std::string file = split(source.path, '/').back();
  const std::string stem = file.substr(0, file.find('.'));
  if (stem.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos)
    findings.push_back(at(source, 1, "file names are snake_case"));
  for (const char* banned : {"util", "utils", "common", "misc", "helper", "helpers"})
    if (stem == banned) findings.push_back(at(source, 1, "a name that says nothing"));
  if (file.ends_with(".hpp") && source.text.find("#pragma once") == std::string::npos)
    findings.push_back(at(source, 1, "a header without #pragma once"));
  for (const Include& include : includes_of(source))
    if (include.quoted && include.name.find("..") != std::string::npos)
      findings.push_back(at(source, include.line, "includes are written from src"));
  return findings;
}

Findings check_functions(const Source& source, const std::map<std::string, int>& allowed) {
  Findings findings;
  for (const Function& function : functions_of(source)) {
    const auto entry = allowed.find(source.path + ":" + function.name);
    const int limit = entry == allowed.end() ? k_function_lines_max : entry->second;
    if (function.lines > limit)
      findings.push_back(at(source, function.line,
                            function.name + " has " + std::to_string(function.lines) + " lines; " +
                                std::to_string(limit) + " is the limit"));
  }
  return findings;
}

Findings check_compared_words(const Source& source) {
  static const std::regex compared(R"re([!=]=\s*"[A-Za-z_]{2,}")re");
  Findings findings;
  int number = 0;
  for (const std::string& line : split_lines(source.text)) {
    ++number;
    if (!trim(line).starts_with("//") && line.find("= \"") != std::string::npos && std::regex_search(line, compared))
      findings.push_back(at(source, number, "a word is compared; an enum with one table of words cannot be misspelt"));
  }
  return findings;
}

Findings check_whole_registry(const Source& source) {
  static const std::regex whole(R"(registry::(Registry|AllRecords)[&*])");
  Findings findings;
  int number = 0;
  for (const std::string& line : split_lines(source.text)) {
    ++number;
    if (line.find("registry::") != std::string::npos && std::regex_search(line, whole))
      findings.push_back(at(source, number, "takes the whole registry; HostRecords, JobRecords, RunRecords and CopyRecords are its parts"));
  }
  return findings;
}

Findings check_whole_rows(const Source& source) {
  Findings findings;
  int number = 0;
  for (const std::string& line : split_lines(source.text)) {
    ++number;
    if (line.find("update_provider(") != std::string::npos)
      findings.push_back(at(source, number, "writes a row that others may have changed meanwhile; registry::change_provider reads it anew"));
  }
  return findings;
}

Findings check_openings(const Source& source) {
  static const std::regex opening(R"(^\s*// (What|Of|Who|Those|The same|As above|Also)\b)");
  Findings findings;
  int number = 0;
  bool in_comment = false;
  for (const std::string& line : split_lines(source.text)) {
    ++number;
    const bool is_comment = trim(line).starts_with("//");
    if (is_comment && !in_comment && std::regex_search(line, opening))
      findings.push_back(at(source, number, "a comment begins with a subject and a verb, and can be read alone"));
    in_comment = is_comment;
  }
  return findings;
}

Findings check_origin(const std::string& path, const std::string& text) {
  static const std::regex foreign(
      R"(copyright (\(c\)|©|[12][0-9]{3})|all rights reserved|licensed under|SPDX-License-Identifier: (?!Apache-2\.0))",
      std::regex::icase);
  Findings findings;
  int number = 0;
  for (const std::string& line : split_lines(text)) {
    ++number;
    const bool maybe = line.find("opyright ") != std::string::npos || line.find("ights reserved") != std::string::npos ||
                       line.find("icensed under") != std::string::npos || line.find("SPDX-") != std::string::npos;
    if (maybe && line.size() < 4096 && std::regex_search(line, foreign))
      findings.push_back(path + ":" + std::to_string(number) + ": the repository holds what we wrote");
  }
  return findings;
}

const std::map<std::string, int>& long_functions() {
  static const std::map<std::string, int> list{};
  return list;
}

const std::vector<std::string>& known_findings() {
  static const std::vector<std::string> list{
      "src/agent/init.cpp: 'nanosleep' stands in os alone; use a timer, or os::pause_for",
  };
  return list;
}

}  // namespace gridctl::tidy
