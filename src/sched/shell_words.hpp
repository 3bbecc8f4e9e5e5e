// SPDX-License-Identifier: Apache-2.0
// Extracts the simple commands of a piece of shell text, as far as their words are written out: for guessing what a job
// is, never for running it. Pure, total over any text.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gridctl::sched {

// "OMP_NUM_THREADS=8 nohup python3 -u -m torch.distributed.run train.py" has
//   variables {OMP_NUM_THREADS, 8}, program "torch.distributed.run", arguments {train.py}.
struct ShellCommand {
  std::vector<std::pair<std::string, std::string>> variables;  // set for it, or by an `export`
  std::string program;  // its name without folders; of an interpreter, what it runs: a module or a script; may be empty
  std::vector<std::string> arguments;
};

// Returns them in order; leaves out words in comments; words in quotes are one word. Also parses what `sh -c` runs,
// once.
[[nodiscard]] std::vector<ShellCommand> shell_commands(std::string_view text);

// Splits names into lower-case parts: "finetune_lora.py", "--use-lora=8" -> {finetune, lora, py}, {use, lora}.
[[nodiscard]] std::vector<std::string> name_parts(std::string_view word);

}  // namespace gridctl::sched
