// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.hpp"
#include "config/job_parts.hpp"

namespace gridctl::config {

namespace {
std::string stem_of(std::string_view word) {
  word = word.substr(word.find_last_of('/') + 1);
  return std::string(word.substr(0, word.find_last_of('.')));
}

// "python -u train.py" gets the name train: an interpreter's script says more than the interpreter.
std::string name_of(const std::vector<std::string>& argv) {
  static constexpr std::string_view k_runners[] = {"python", "python3", "bash", "sh", "torchrun", "env", "nohup"};
  std::string name = stem_of(argv[0]);
  if (std::find(std::begin(k_runners), std::end(k_runners), name) == std::end(k_runners)) return to_name(name);
  for (std::size_t i = 1; i < argv.size(); ++i)
    if (argv[i].ends_with(".py") || argv[i].ends_with(".sh")) return to_name(stem_of(argv[i]));
  return to_name(name);
}
}  // namespace

Result<ParsedJob> spec_from_command(const std::vector<std::string>& argv, const Context& context,
                                    const std::string& workdir) {
  if (argv.empty() || trim(argv[0]).empty())
    return make_error(Code::usage, "no command was given after '--'", "gridctl job submit -- python train.py");
  for (const std::string& word : argv)
    if (word.find('\0') != std::string::npos) return make_error(Code::usage, "the command contains a NUL character");
  SourceFile source{"command line", {}};
  const Node empty{Node::Kind::map, "", {}, {}, {}};
  ParsedJob job;
  std::vector<std::string> words;
  for (const std::string& word : argv) words.push_back(shell_quote(word));
  const bool shell_text = argv.size() == 1 && argv[0].find_first_of(" \t\n") != std::string::npos;
  job.spec.run = shell_text ? argv[0] : join(words, " ");
  job.spec.name = name_of(shell_text ? split(trim(argv[0]), ' ') : argv);
  if (!workdir.empty()) {
    TRY_ASSIGN(job.spec.workdir, checked_workdir(workdir, context));
  }
  TRY_ASSIGN(const Fields root, Fields::open(source, empty, "", {}));
  TRY(read_variables(root, context, job));
  TRY(apply_overrides(context, job));
  return job;
}

}  // namespace gridctl::config
