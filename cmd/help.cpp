// SPDX-License-Identifier: Apache-2.0
#include "cmd/help.hpp"

#include "base/text.hpp"
#include "cmd/manuals.hpp"
#include "ui/width.hpp"

namespace gridctl::cmd {

namespace {
constexpr std::size_t k_short_term_max = 46;  // of whole command lines
constexpr std::size_t k_term_max = 26;      // a longer term has its text on the next line

std::string paragraph(std::string_view text, std::size_t columns, std::size_t indent) {
  std::string out;
  for (const std::string& line : ui::wrap(text, columns - indent))
    out += (line.empty() ? "" : std::string(indent, ' ') + line) + "\n";
  return out;
}

// Formats terms with their texts beside them.
std::string list(const std::vector<std::pair<std::string, std::string>>& entries, std::size_t columns,
                 std::size_t term_max = k_term_max) {
  std::size_t width = 0;
  for (const auto& [term, text] : entries)
    if (term.size() <= term_max) width = std::max(width, term.size());
  std::string out;
  for (const auto& [term, text] : entries) {
    const std::vector<std::string> lines = ui::wrap(text, columns - width - 4);
    out += "  " + ui::pad_right(term, width);
    bool first = term.size() <= width;
    if (!first) out += '\n';
    for (const std::string& line : lines) {
      out += first ? "  " + line + "\n" : std::string(width + 4, ' ') + line + "\n";
      first = false;
    }
  }
  return out;
}

std::string option_help(const Option& option) {
  std::string text(option.help);
  if (!option.choices.empty()) text += " (" + std::string(option.choices) + ")";
  if (option.many) text += "; may be repeated";
  if (!option.fallback.empty()) text += " [" + std::string(option.fallback) + "]";
  return text;
}

std::string options_list(std::span<const Option> options, std::size_t columns, const Option* more = nullptr) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const Option& option : options) entries.emplace_back(option_text(option), option_help(option));
  if (more != nullptr) entries.emplace_back(option_text(*more), option_help(*more));
  return list(entries, columns);
}

std::string exit_list(const Command& command, std::size_t columns) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const int code : exit_codes_of(command))
    entries.emplace_back(std::to_string(code), std::string(exit_meaning(code)));
  return list(entries, columns);
}
}  // namespace

std::size_t help_width(std::size_t columns) { return std::clamp<std::size_t>(columns == 0 ? 80 : columns, 40, 100); }

std::string option_text(const Option& option) {
  std::string text = option.letter != 0 ? std::string("-") + option.letter + ", " : "    ";
  text += "--" + std::string(option.name);
  if (!option.value.empty()) text += " " + std::string(option.value);
  return text;
}

std::string synopsis(const Command& command) {
  std::string line = "gridctl " + std::string(command.name);
  for (const Positional& positional : command.positionals)
    line += (positional.required ? " " + std::string(positional.name) : " [" + std::string(positional.name) + "]") +
            (positional.many ? "..." : "");
  line += " [options]";
  if (!command.tail.empty()) line += " [-- " + std::string(command.tail) + "]";
  return line;
}

std::string help_of(const Command& command, std::size_t columns) {
  columns = help_width(columns);
  std::string text = "Examples:\n";
  for (const Example& example : command.examples)
    text += paragraph("# " + std::string(example.what), columns, 2) + "  " + std::string(example.line) + "\n";
  text += "\nUsage: " + synopsis(command) + "\n\n" + paragraph(command.description, columns, 0);
  if (command.options.size() > 0 || command.waits)
    text += "\nOptions:\n" + options_list(command.options, columns, command.waits ? &timeout_option() : nullptr);
  text += "\nOptions of every command:\n" + options_list(global_options(), columns);
  text += "\nExit codes:\n" + exit_list(command, columns);
  return text;
}

std::string help_of_noun(std::string_view noun, std::size_t columns) {
  columns = help_width(columns);
  std::string text = "Examples:\n";
  std::vector<std::pair<std::string, std::string>> entries;
  for (const Command* command : all_commands()) {
    if (command->noun() != noun || command->hidden) continue;
    entries.emplace_back(std::string(command->verb()), std::string(command->summary));
    if (command->examples.size() > 0) text += "  " + std::string(command->examples.begin()->line) + "\n";
  }
  text += "\nUsage: gridctl " + std::string(noun) + " COMMAND [options]\n\nCommands:\n" + list(entries, columns);
  text += "\n'gridctl " + std::string(noun) + " COMMAND --help' explains a command.";
  std::string manuals;
  for (const std::string& topic : manual_topics())
    if (topic == noun || topic.starts_with(std::string(noun) + "."))
      manuals += (manuals.empty() ? " Manuals: 'gridctl help " : ", 'gridctl help ") + topic + "'";
  text += manuals + (manuals.empty() ? "\n" : ".\n");
  text +=
      "\nExit codes:\n  0 done, 2 usage; each command's help lists the others. All of them: gridctl-exit-codes(7).\n";
  return text;
}

std::string help_in_short(std::size_t columns) {
  std::string text = "gridctl runs jobs on your machines, and continues them elsewhere when a machine dies.\n\n";
  text += list({{"gridctl provider register NAME ssh://user@host", "add a machine"},
                {"gridctl job submit train.yaml", "run a job file"},
                {"gridctl job submit -- python3 train.py", "run a command"},
                {"gridctl job ls", "see your jobs"},
                {"gridctl job logs @last -f", "follow its output"},
                {"gridctl job pull @last", "get the files it wrote"}},
               help_width(columns), k_short_term_max);
  return text + "\nAll commands: gridctl --help\n";
}

std::string help_of_all(std::size_t columns) {
  columns = help_width(columns);
  std::string text =
      "Examples:\n"
      "  gridctl provider register ada ssh://me@ada.example.org\n"
      "  gridctl job submit train.yaml\n"
      "  gridctl job submit -n hello --gpu 1 -- nvidia-smi\n"
      "  gridctl job watch @last\n"
      "\nUsage: gridctl NOUN VERB [options]\n\n";
  text += paragraph(
      "Runs jobs on your own hosts over SSH and finishes them on another host when one dies, from the last "
      "verified checkpoint. No server anywhere.",
      columns, 0);
  for (const NounText& noun : nouns()) {
    std::vector<std::pair<std::string, std::string>> entries;
    for (const Command* command : all_commands())
      if (command->noun() == noun.noun && !command->hidden)
        entries.emplace_back(std::string(command->name), std::string(command->summary));
    const bool single = find_command(noun.noun, "") != nullptr;
    if (!single) text += "\n" + std::string(noun.noun) + " - " + std::string(noun.summary) + ":\n";
    else if (noun.noun == "doctor") text += "\nelse:\n";
    text += list(entries, columns);
  }
  text += "\nOptions of every command:\n" + options_list(global_options(), columns);
  text += "\nExit codes:\n";
  std::vector<std::pair<std::string, std::string>> codes;
  for (const ExitText& code : exit_texts()) codes.emplace_back(std::to_string(code.code), std::string(code.meaning));
  text += list(codes, columns) + "\nManuals, also without a network ('gridctl help TOPIC'):\n";
  return text + paragraph(join(manual_topics(), "  "), columns, 2);
}

}  // namespace gridctl::cmd
