// SPDX-License-Identifier: Apache-2.0
// A shell script as the ssh program, first in PATH for as long as it lives.
#pragma once

#include <sys/stat.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "os/files.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::ssh {

class Variable {  // of the environment; as before at the end
 public:
  Variable(std::string name, const std::string& value) : name_(std::move(name)), before_(os::environment(name_)) {
    ::setenv(name_.c_str(), value.c_str(), 1);
  }
  Variable(const Variable&) = delete;
  ~Variable() {
    if (before_) ::setenv(name_.c_str(), before_->c_str(), 1);
    else ::unsetenv(name_.c_str());
  }

 private:
  std::string name_;
  std::optional<std::string> before_;
};

class FakeSsh {
 public:
  // `script` sees its arguments; each call but -V adds them to words(), one a line.
  explicit FakeSsh(const std::string& script)
      : path_("PATH", dir_.path().native() + ":" + os::environment("PATH").value_or("/usr/bin:/bin")) {
    const std::string text =
        "#!/bin/sh\nif [ \"$1\" = -V ]; then echo OpenSSH_9.2p1 >&2; exit; fi\nprintf '%s\\n' \"$@\" >> " +
        (dir_ / "words").native() + "\n" + script + "\n";
    EXPECT_TRUE(os::write_file_atomically(dir_ / "ssh", text, 0755).has_value());
  }
  [[nodiscard]] std::vector<std::string> words() const {
    return split_lines(os::read_file(dir_ / "words").value_or(""));
  }
  [[nodiscard]] bool was_told(const std::string& word) const {
    for (const std::string& one : words())
      if (one == word) return true;
    return false;
  }
  [[nodiscard]] const gridctl::testing::TempDir& dir() const { return dir_; }

 private:
  gridctl::testing::TempDir dir_;
  Variable path_;
};

}  // namespace gridctl::ssh
