// SPDX-License-Identifier: Apache-2.0
#include "lend/boot.hpp"

#include <vector>

#include "base/text.hpp"
#include "os/entries.hpp"
#include "os/files.hpp"
#include "os/process.hpp"
#include "os/systemd.hpp"

namespace gridctl::lend {

namespace {

constexpr Duration k_patience = std::chrono::seconds{10};
constexpr std::string_view k_unit = "gridctl-lend.service", k_cron_mark = " # gridctl-lend";

os::Path unit_file() { return os::xdg_directory("XDG_CONFIG_HOME", ".config") / "systemd" / "user" / k_unit; }

Result<std::string> ask(const std::vector<std::string>& argv, std::string input = {}) {
  os::RunOptions options;
  options.timeout = k_patience;
  options.input = std::move(input);
  TRY_ASSIGN(const os::RunOutcome outcome, os::run(argv, options));
  if (outcome.status.success()) return outcome.out;
  return make_error(Code::unsupported, join(argv, " ") + ": " + sanitize(trim(outcome.err), 200));
}

Result<std::string> by_systemd(const os::Path& program) {
  if (!os::exists("/run/systemd/system")) return make_error(Code::unsupported, "this machine does not run systemd");
  const std::string home = os::environment("GRIDCTL_AGENT_HOME").value_or("");
  const std::string text =
      "[Unit]\nDescription=gridctl lends this machine\nDocumentation=man:gridctl-lend(7)\n\n[Service]\nExecStart=" +
      os::systemd_word(program.string()) + " lend serve\n" +
      (home.empty() ? "" : "Environment=" + os::systemd_word("GRIDCTL_AGENT_HOME=" + home) + "\n") +
      "Restart=on-failure\nRestartSec=5\nKillMode=process\n\n[Install]\nWantedBy=default.target\n";
  TRY(os::make_directories(unit_file().parent_path(), 0755));
  TRY(os::write_file_atomically(unit_file(), text, 0644));
  TRY(ask({"systemctl", "--user", "daemon-reload"}));
  TRY(ask({"systemctl", "--user", "enable", std::string(k_unit)}));
  const std::string user = os::environment("USER").value_or("");
  const bool lingers = ask({"loginctl", "enable-linger"}) || ask({"loginctl", "show-user", "--property=Linger", user})
                                                                     .value_or("")
                                                                     .find("Linger=yes") != std::string::npos;
  return std::string(lingers ? "with the machine (systemd)" : "when you log in (systemd; 'sudo loginctl enable-linger' "
                                                              "makes it start with the machine)");
}

// Lines of the user's crontab that are not ours.
std::string other_lines(const std::string& crontab) {
  std::string text;
  for (const std::string& line : split(crontab, '\n'))
    if (!line.empty() && !line.ends_with(k_cron_mark)) text += line + "\n";
  return text;
}

Result<std::string> by_cron(const os::Path& program) {
  if (!os::find_program("crontab")) return make_error(Code::unsupported, "there is no cron");
  const std::string before = ask({"crontab", "-l"}).value_or("");
  const std::string home = os::environment("GRIDCTL_AGENT_HOME").value_or("");
  std::string line = "@reboot ";
  for (const char c : (home.empty() ? "" : "GRIDCTL_AGENT_HOME=" + shell_quote(home) + " ") + shell_quote(program.string()))
    line += c == '%' ? "\\%" : std::string(1, c);  // a plain one ends a command of cron's
  line += " lend serve" + std::string(k_cron_mark) + "\n";
  TRY(ask({"crontab", "-"}, other_lines(before) + line));
  return std::string("with the machine (cron)");
}

}  // namespace

Result<std::string> start_at_boot() {
  TRY_ASSIGN(const os::Path program, os::executable_path());
  if (Result<std::string> words = by_systemd(program)) return words;
  (void)os::remove_file(unit_file());
  if (Result<std::string> words = by_cron(program)) return words;
  return make_error(Code::unsupported,
                    "neither systemd nor cron starts programs of yours here; after a reboot, connect it with: gridctl lend resume");
}

bool forget_boot() {
  bool found = false;
  if (os::exists(unit_file())) {
    found = true;
    (void)ask({"systemctl", "--user", "disable", std::string(k_unit)});
    (void)os::remove_file(unit_file());
    (void)ask({"systemctl", "--user", "daemon-reload"});
  }
  if (!os::find_program("crontab")) return found;
  const std::string before = ask({"crontab", "-l"}).value_or("");
  const std::string after = other_lines(before);
  if (before.find(k_cron_mark) == std::string::npos) return found;
  (void)(after.empty() ? ask({"crontab", "-r"}) : ask({"crontab", "-"}, after));
  return true;
}

}  // namespace gridctl::lend
