// SPDX-License-Identifier: Apache-2.0
#include "cmd/commands.hpp"
#include "cmd/complete.hpp"
#include "cmd/help.hpp"

namespace gridctl::cmd {

namespace completions {
namespace {
Result<int> run(Context& context, const Parsed& parsed) {
  return context.print(completion_script(parsed.positionals[0]));
}

Result<int> run_docs(Context&, const Parsed& parsed) {
  const os::Path directory = parsed.positionals[1];
  TRY(os::make_directories(directory, 0755));
  if (parsed.positionals[0] == "man") {
    for (const auto& [name, text] : manual_pages()) TRY(os::write_file_atomically(directory / name, text, 0644));
    return 0;
  }
  TRY(os::write_file_atomically(directory / "gridctl.bash", completion_script("bash"), 0644));
  TRY(os::write_file_atomically(directory / "_gridctl", completion_script("zsh"), 0644));
  TRY(os::write_file_atomically(directory / "gridctl.fish", completion_script("fish"), 0644));
  return 0;
}

Result<int> run_complete(Context& context, const Parsed& parsed) { return complete(context, parsed.positionals); }
}  // namespace
}  // namespace completions

const Command k_completions{
    .name = "completions",
    .summary = "print a completion script for your shell",
    .examples =
        {
            {"Enable completion in this bash", "source <(gridctl completions bash)"},
            {"Enable it for zsh", "gridctl completions zsh > ~/.zfunc/_gridctl"},
            {"Enable it for fish", "gridctl completions fish > ~/.config/fish/completions/gridctl.fish"},
        },
    .description =
        "Prints a script that completes commands, options, jobs, checkpoints and providers. "
        "Packages and 'cmake --install' already put it in place.",
    .positionals = {{"SHELL", Completion::choices, true, "bash|zsh|fish"}},
    .run = completions::run};

const Command k_docs{
    .name = "__docs",
    .summary = "write the generated files",
    .examples = {{"Write the manual pages again", "gridctl __docs man man"},
                 {"Write the completions again", "gridctl __docs completions completions"}},
    .description = "Writes manual pages or completions from the texts of the commands.",
    .positionals = {{"KIND", Completion::choices, true, "man|completions"}, {"DIR", Completion::directory}},
    .hidden = true,
    .run = completions::run_docs};

const Command k_complete{.name = "__complete",
                         .summary = "candidates for a command line",
                         .examples = {},
                         .description = "Called by the completion scripts.",
                         .hidden = true,
                         .run = completions::run_complete};

}  // namespace gridctl::cmd
