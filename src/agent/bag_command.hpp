// SPDX-License-Identifier: Apache-2.0
// Builds the words to execute from the command of a bag's tasks. Pure except for the search for programs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agent/bag_queue.hpp"
#include "job/task_template.hpp"
#include "wire/bag_spec.hpp"

namespace gridctl::agent {

class BagCommand {
 public:
  // `path`: the job's PATH. `script`: a file with the command.
  BagCommand(const std::string& command, const wire::BagSpec& spec, std::string path, std::string script);
  // Returns the program and its arguments. Commands made of plain words need no shell.
  [[nodiscard]] std::vector<std::string> words(const BagTask& task, std::uint32_t slot);
  // Runs the command in a shell, for a file that only a shell can execute.
  [[nodiscard]] std::vector<std::string> shell_words(const BagTask& task, std::uint32_t slot) const;

 private:
  [[nodiscard]] std::string program_of(const std::string& name);

  job::TaskTemplate text_;
  std::vector<job::TaskTemplate> words_;  // empty: for a shell
  bool verbatim_ = false;           // the items are the command lines
  bool is_plain_ = false;           // the command is the same to every shell
  std::string path_, script_, shell_;
  std::map<std::string, std::string> programs_;
};

// Returns the assignments that a task gets in addition to its job's: our own, and those of its item. An error says what
// is wrong with the item.
[[nodiscard]] Result<std::vector<std::string>> bag_variables(const BagTask& task, const wire::BagSpec& spec,
                                                             std::uint32_t slot, const std::string& folder);

// Returns whether the text has nothing that bash and a plain POSIX shell interpret differently, so that /bin/sh may run
// it, which starts in half the time. In doubt, false.
[[nodiscard]] bool is_plain_shell(std::string_view text);

}  // namespace gridctl::agent
