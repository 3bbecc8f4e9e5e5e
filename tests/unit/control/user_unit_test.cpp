// SPDX-License-Identifier: Apache-2.0
// The supervisor as a service: what is written, and what systemd is told, by programs that only note how they were called.
#include "control/daemon/user_unit.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "base/text.hpp"
#include "os/entries.hpp"
#include "os/process.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::control::user_unit_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// A variable of the environment, as it was before at the end.
class Variable {
 public:
  Variable(const char* name, const std::optional<std::string>& value) : name_(name), before_(os::environment(name)) {
    put(value);
  }
  ~Variable() { put(before_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  void put(const std::optional<std::string>& value) const {
    if (value) ::setenv(name_, value->c_str(), 1);
    else ::unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

class UserUnitTest : public ::testing::Test {
 protected:
  UserUnitTest() {
    EXPECT_THAT(os::make_directories(dir / "bin"), IsOk());
    program("systemctl", "");
    program("loginctl", "echo Linger=yes");
  }
  void program(const std::string& name, const std::string& body) {
    const std::string text = "#!/bin/sh\necho \"" + name + " $*\" >> '" + (dir / "calls").native() + "'\n" + body + "\n";
    EXPECT_THAT(os::write_file_atomically(dir / "bin" / name, text, 0755), IsOk());
  }
  std::vector<std::string> calls() {
    auto text = os::read_file(dir / "calls");
    (void)os::remove_file(dir / "calls");
    return split_lines(std::move(text).value_or(""));
  }
  [[nodiscard]] os::Path state() const { return dir / "state"; }

  gridctl::testing::TempDir dir;
  Variable path{"PATH", (dir / "bin").native() + ":" + os::environment("PATH").value_or("/bin")};
  Variable home{"HOME", (dir / "home").native()};
  Variable config{"XDG_CONFIG_HOME", std::nullopt};
  Variable states{"XDG_STATE_HOME", std::nullopt};
  Variable user{"USER", "ada"};
};

TEST_F(UserUnitTest, HasTheShortNameForTheUsualStateDirectory) {
  const auto usual = unit_of(dir / "home/.local/state/gridctl");
  ASSERT_THAT(usual, IsOk());
  EXPECT_EQ(usual->name, "gridctl.service");
  EXPECT_EQ(usual->file, dir / "home/.config/systemd/user/gridctl.service");
  EXPECT_EQ(unit_of(dir / "home/.local/state/x/../gridctl")->name, "gridctl.service") << "by whatever way";
  states.put((dir / "states").native());
  EXPECT_EQ(unit_of(dir / "states/gridctl")->name, "gridctl.service");
  EXPECT_NE(unit_of(dir / "home/.local/state/gridctl")->name, "gridctl.service");
  states.put("relative");
  EXPECT_EQ(unit_of(dir / "home/.local/state/gridctl")->name, "gridctl.service") << "a relative one counts for nothing";
}

TEST_F(UserUnitTest, HasAMarkOfItsOwnForEachOtherStateDirectory) {
  const auto one = unit_of(state()), two = unit_of(dir / "other");
  ASSERT_THAT(one, IsOk());
  EXPECT_THAT(one->name, ::testing::MatchesRegex("gridctl-[0-9a-f]+[.]service"));
  EXPECT_EQ(one->name.size(), std::string("gridctl-12345678.service").size());
  EXPECT_NE(one->name, two->name);
  EXPECT_EQ(one->name, unit_of(state())->name);
  EXPECT_THAT(unit_of(dir / "a\nb"), FailsWith(Code::usage));
}

TEST_F(UserUnitTest, LiesInTheUsersConfiguration) {
  config.put((dir / "config").native());
  EXPECT_EQ(unit_of(state())->file.parent_path(), dir / "config/systemd/user");
  config.put("relative");
  EXPECT_EQ(unit_of(state())->file.parent_path(), dir / "home/.config/systemd/user");
}

TEST_F(UserUnitTest, QuotesWhatSystemdWouldReadOtherwise) {
  const std::string text = unit_text("/opt/my \"tools\"/50%/a\\b$c", "/var/of jobs");
  EXPECT_THAT(text, HasSubstr("ExecStart=\"/opt/my \\\"tools\\\"/50%%/a\\\\b$$c\" daemon run --state \"/var/of jobs\"\n"));
  EXPECT_THAT(text, HasSubstr("follows the jobs of /var/of jobs\n"));
  EXPECT_THAT(text, HasSubstr("Restart=on-failure\n"));
  EXPECT_THAT(text, HasSubstr("WantedBy=default.target\n"));
}

TEST_F(UserUnitTest, IsWrittenAndStarted) {
  EXPECT_FALSE(is_installed(state()));
  const auto installed = install_unit(state());
  ASSERT_THAT(installed, IsOk());
  EXPECT_EQ(installed->not_started, "");
  EXPECT_TRUE(installed->lingers);
  EXPECT_TRUE(is_installed(state()));
  EXPECT_TRUE(os::exists(state())) << "the service finds its folder";
  EXPECT_EQ(*os::read_file(installed->unit.file), unit_text(*os::executable_path(), state()));
  EXPECT_EQ(std::filesystem::status(installed->unit.file).permissions(), std::filesystem::perms{0644});
  const std::string name = installed->unit.name;
  EXPECT_THAT(calls(), ElementsAre("systemctl --user daemon-reload", "systemctl --user enable " + name,
                                   "systemctl --user restart " + name,
                                   "loginctl show-user --property=Linger ada"));
}

TEST_F(UserUnitTest, IsWrittenAlsoWhereSystemdDoesNotAnswer) {
  program("systemctl", "echo ' Failed to connect to bus ' >&2; exit 1");
  const auto installed = install_unit(state());
  ASSERT_THAT(installed, IsOk());
  EXPECT_EQ(installed->not_started, "systemctl --user daemon-reload: Failed to connect to bus");
  EXPECT_TRUE(is_installed(state()));
  program("systemctl", "echo said here; exit 1");
  EXPECT_THAT(install_unit(state())->not_started, EndsWith("daemon-reload: said here"));
  program("systemctl", "exit 1");
  EXPECT_THAT(install_unit(state())->not_started, EndsWith("daemon-reload: failed"));
  program("systemctl", "[ \"$2\" = restart ] && exit 1; exit 0");
  EXPECT_THAT(install_unit(state())->not_started, HasSubstr("--user restart"));
}

TEST_F(UserUnitTest, LingersOnlyWhenLogindSaysSo) {
  program("loginctl", "echo Linger=no");
  EXPECT_FALSE(install_unit(state())->lingers);
  program("loginctl", "echo Linger=yes; exit 1");
  EXPECT_FALSE(install_unit(state())->lingers);
  program("loginctl", "echo Linger=yes");
  user.put(std::nullopt);
  EXPECT_FALSE(install_unit(state())->lingers);
}

TEST_F(UserUnitTest, IsStoppedAndRemoved) {
  EXPECT_EQ(*remove_unit(state()), false);
  EXPECT_THAT(calls(), IsEmpty()) << "there was none";
  const auto installed = install_unit(state());
  ASSERT_THAT(installed, IsOk());
  (void)calls();
  EXPECT_EQ(*remove_unit(state()), true);
  EXPECT_FALSE(os::exists(installed->unit.file));
  EXPECT_FALSE(is_installed(state()));
  EXPECT_THAT(calls(), ElementsAre("systemctl --user disable --now " + installed->unit.name,
                                   "systemctl --user daemon-reload"));
}

TEST_F(UserUnitTest, IsRemovedAlsoWhereSystemdDoesNotAnswer) {
  const auto installed = install_unit(state());
  ASSERT_THAT(installed, IsOk());
  program("systemctl", "exit 1");
  (void)calls();
  EXPECT_EQ(*remove_unit(state()), true);
  EXPECT_FALSE(os::exists(installed->unit.file));
  EXPECT_THAT(calls(), ElementsAre(StartsWith("systemctl --user disable"))) << "nobody is there to be told more";
}

}  // namespace
}  // namespace gridctl::control::user_unit_test
