// SPDX-License-Identifier: Apache-2.0
// Contains the entry point: reads the command line, runs one command, and is the only place that prints errors.
#include <CLI/CLI.hpp>
#include <exception>

#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/complete.hpp"
#include "cmd/habits.hpp"
#include "cmd/help.hpp"
#include "cmd/manuals.hpp"
#include "os/log.hpp"
#include "os/priority.hpp"
#include "os/process.hpp"
#include "os/terminal.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {
namespace {

using Arguments = std::vector<std::string>;

// Holds the parts of the command line: the words that name the command, the rest of it, and what follows "--".
struct Line {
  Arguments words;  // noun and verb, as far as there are any
  Arguments rest;
  Arguments command;
  bool has_command = false;
  bool help = false;
};

bool takes_value_everywhere(const std::string& argument) { return argument == "--state" || argument == "--color"; }

Line divide(const Arguments& arguments) {
  Line line;
  std::size_t words_max = 2;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      line.has_command = true;
      line.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, arguments.end());
      break;
    }
    if (argument == "-h" || argument == "--help") line.help = true;
    if (argument.starts_with('-') || line.words.size() >= words_max) {
      line.rest.push_back(argument);
      if (takes_value_everywhere(argument) && line.words.size() < words_max && i + 1 < arguments.size())
        line.rest.push_back(arguments[++i]);
      continue;
    }
    line.words.push_back(argument);
    if (line.words.size() == 1 && argument == "help") words_max = 3;
    else if (line.words.size() == 1 && find_command(argument, "") != nullptr) words_max = 1;
  }
  return line;
}

// Lists options that may appear without a command.
const std::vector<std::string> k_alone{"--version", "--help"};

std::vector<std::string> known_nouns() {
  std::vector<std::string> known{"help"};
  for (const NounText& noun : nouns()) known.emplace_back(noun.noun);
  return known;
}

std::vector<std::string> known_verbs(std::string_view noun) {
  std::vector<std::string> known;
  for (const Command* command : all_commands())
    if (command->noun() == noun && !command->hidden) known.emplace_back(command->verb());
  return known;
}

Error unknown_noun(const std::string& word, const Arguments& arguments) {
  const std::string shown = "'" + sanitize(word) + "'";
  const auto at = std::ranges::find(arguments, word);
  if (const auto meant = foreign_command(Arguments(at, arguments.end()))) return *meant;
  const std::string near = nearest(word, known_nouns());
  if (!near.empty())
    return make_error(Code::usage, "no command " + shown + "; did you mean '" + near + "'?", "gridctl --help");
  // The word may be the value of an unknown option.
  const auto option = std::find_if(arguments.begin(), at, [](const std::string& one) {
    return one.size() > 1 && one.starts_with('-') && one != "--json" && !takes_value_everywhere(one);
  });
  if (option == at) return make_error(Code::usage, "no command " + shown, "gridctl --help");
  static const std::vector<std::string> k_everywhere{"--state", "--color", "--json", "--version", "--help"};
  const std::string meant = nearest(*option, k_everywhere);
  return make_error(Code::usage,
                    "there is no option " + sanitize(*option) + (meant.empty() ? "" : "; did you mean " + meant + "?"),
                    "gridctl --help");
}

Error unknown_topic(const std::string& word) {
  std::vector<std::string> known = known_nouns();
  for (std::string& topic : manual_topics()) known.push_back(std::move(topic));
  const std::string near = nearest(word, known);
  return make_error(
      Code::usage,
      "no command or manual '" + sanitize(word) + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"),
      near.empty() ? "gridctl --help" : "gridctl help " + near);
}

Error unknown_verb(const std::string& noun, const std::string& word) {
  const std::string near = nearest(word, known_verbs(noun));
  const std::string message = "no command '" + noun + " " + sanitize(word) + "'";
  if (!near.empty())
    return make_error(Code::usage, message + "; did you mean '" + noun + " " + near + "'?",
                      "gridctl " + noun + " --help");
  return make_error(Code::usage, message, "gridctl " + noun + " --help");
}

Error unknown_option(const Command& command, const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  std::vector<std::string> known;
  for (const Option* option : options_of(&command)) known.push_back("--" + std::string(option->name));
  const std::string near = name.starts_with("--") ? nearest(name, known) : std::string{};
  std::string message = "'gridctl " + std::string(command.name) + "' has no option " + sanitize(name);
  if (const std::string ours = foreign_option(command, name); !ours.empty())
    return make_error(Code::usage, message + "; here: " + ours, "gridctl " + std::string(command.name) + " --help");
  if (!near.empty()) message += "; did you mean " + near + "?";
  return make_error(Code::usage, std::move(message), "gridctl " + std::string(command.name) + " --help");
}

Result<void> check_choice(std::string_view what, std::string_view choices, const std::string& value) {
  if (choices.empty()) return {};
  std::vector<std::string> known = split(choices, '|');
  for (const std::string& choice : known)
    if (choice == value) return {};
  const std::string near = nearest(value, known);
  return make_error(Code::usage, std::string(what) + " is one of " + join(known, ", ") + ", not '" + sanitize(value) +
                                     "'" + (near.empty() ? "" : "; did you mean " + near + "?"));
}

Result<void> check_positionals(const Command& command, const Parsed& parsed) {
  const std::string help = "gridctl " + std::string(command.name) + " --help";
  const std::span<const Positional> known = command.positionals;
  std::size_t required = 0;
  for (const Positional& positional : known) required += positional.required ? 1 : 0;
  if (parsed.positionals.size() < required)
    return make_error(Code::usage,
                      "'gridctl " + std::string(command.name) + "' needs " +
                          std::string(known[parsed.positionals.size()].name),
                      help);
  if (parsed.positionals.size() > known.size() && (known.empty() || !known.back().many))
    return make_error(Code::usage,
                      "unexpected argument '" + sanitize(parsed.positionals[known.size()]) + "'", help);
  if (parsed.has_command && command.tail.empty())
    return make_error(Code::usage, "'gridctl " + std::string(command.name) + "' takes no command after --", help);
  for (std::size_t i = 0; i < parsed.positionals.size(); ++i) {
    const Positional& positional = known[std::min(i, known.size() - 1)];
    TRY(check_choice(positional.name, positional.choices, parsed.positionals[i]));
  }
  return {};
}

// Translates the library's message about a wrong option.
Error option_error(const Command& command, const CLI::ParseError& error) {
  const std::string what = error.what();
  const std::string help = "gridctl " + std::string(command.name) + " --help";
  if (error.get_name() == "ArgumentMismatch")
    return make_error(Code::usage, "option " + what.substr(0, what.find(':')) + " needs a value", help);
  return make_error(Code::usage, "cannot read the command line: " + sanitize(what), help);
}

Result<Parsed> parse(const Command& command, const Line& line) {
  Parsed parsed;
  parsed.command = line.command;
  parsed.has_command = line.has_command;
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::map<const Option*, std::vector<std::string>> values;
  std::map<const Option*, bool> flags;
  for (const Option* option : options_of(&command)) {
    std::string names = "--" + std::string(option->name);
    if (option->letter != 0) names = std::string("-") + option->letter + "," + names;
    if (option->value.empty()) app.add_flag(names, flags[option]);
    else app.add_option(names, values[option])->allow_extra_args(false);
  }
  try {
    app.parse(Arguments(line.rest.rbegin(), line.rest.rend()));  // it takes them from the back
  } catch (const CLI::ParseError& error) {
    return option_error(command, error);
  }
  for (const std::string& extra : app.remaining()) {
    if (extra.size() > 1 && extra.starts_with('-')) return unknown_option(command, extra);
    parsed.positionals.push_back(extra);
  }
  for (auto& [option, given] : values) {
    if (given.empty()) continue;
    for (const std::string& value : given) TRY(check_choice("--" + std::string(option->name), option->choices, value));
    parsed.options[std::string(option->name)] = std::move(given);
  }
  for (const auto& [option, given] : flags)
    if (given) parsed.options[std::string(option->name)] = {};
  return parsed;
}

ui::Style style_for(const std::string& when, bool terminal) {
  if (when == "always") return {true};
  if (when == "never") return {false};
  const auto refused = os::environment("NO_COLOR");
  const auto kind = os::environment("TERM");
  return {terminal && !(refused && !refused->empty()) && !(kind && *kind == "dumb")};
}

Result<void> configure_command(Context& context, const Command& command, const Parsed& parsed) {
  const std::string when = parsed.given("color").value_or("auto");
  context.json = parsed.has("json");
  context.verbose = parsed.has("verbose");
  context.out_style = style_for(when, context.terminal_out);
  context.err_style = style_for(when, context.terminal_err);
  if (context.verbose) os::log_to_stderr(os::LogLevel::debug);
  if (command.waits) {
    TRY_ASSIGN(context.timeout, parsed.duration("timeout"));
  }
  context.state_named = parsed.has("state");
  context.state = state_directory(parsed.given("state"));
  return {};
}

void report(Context& context, const Error& error, int code) {
  if (context.json) {
    context.write_err(ui::error_json(error, code) + "\n");
    return;
  }
  // Parts of it may come from a host: further lines are set apart, and never look like our hint.
  std::vector<std::string> lines = split_lines(sanitize_lines(error.message));
  if (lines.empty()) lines.emplace_back();
  std::string text = context.err_style(ui::Paint::red, "gridctl:") + " " + lines.front() + "\n";
  for (std::size_t i = 1; i < lines.size(); ++i) text += "  " + lines[i] + "\n";
  for (const std::string& line : error.context)
    for (const std::string& part : split_lines(sanitize_lines(line))) text += "  " + part + "\n";
  if (!error.hint.empty()) text += context.err_style(ui::Paint::bold, "hint:") + " " + sanitize(error.hint) + "\n";
  context.write_err(text);
}

int fail(Context& context, const Error& error) {
  const int code = context.exit_code_of_error.value_or(exit_code(error.code));
  report(context, error, code);
  return code;
}

// Runs `gridctl help WORDS`: prints a manual page, or the output of `gridctl WORDS --help`.
Result<int> help(Context& context, const Arguments& words);
Result<int> help_or_manual(Context& context, const Arguments& words) {
  if (words.size() != 1) return help(context, words);
  const bool command = words[0] == "help" || !known_verbs(words[0]).empty();
  if (const Manual* manual = command ? nullptr : find_manual(words[0])) return show_manual(context, *manual);
  return command ? help(context, words) : unknown_topic(words[0]);
}

Result<int> help(Context& context, const Arguments& words) {
  const std::size_t columns = context.columns_out();
  if (words.empty()) return context.print(help_of_all(columns));
  const std::string verb = words.size() > 1 ? words[1] : "";
  if (const Command* command = command_by_habit(words[0], verb)) return context.print(help_of(*command, columns));
  if (const auto topic = verb.empty() ? help_of_topic(words[0], columns) : std::nullopt) return context.print(*topic);
  if (known_verbs(words[0]).empty()) return unknown_noun(words[0], words);
  if (!verb.empty()) return unknown_verb(words[0], verb);
  return context.print(help_of_noun(words[0], columns));
}

Result<int> dispatch(Context& context, const Arguments& arguments) {
  Line line = divide(arguments);
  if (line.words.empty()) {
    for (const std::string& argument : line.rest)
      if (argument == "--version") line.words = {"version"};
  }
  if (!line.words.empty() && line.words[0] == "help")
    return help_or_manual(context, {line.words.begin() + 1, line.words.end()});
  if (line.help) return help(context, line.words);
  if (line.words.empty()) {
    for (const std::string& argument : line.rest)
      if (argument != "--json" && argument.starts_with('-') && !takes_value_everywhere(argument))
        return make_error(Code::usage, "no command given, only " + sanitize(argument),
                          argument == "-v" || argument == "-V" || nearest(argument, k_alone) == k_alone[0]
                              ? "gridctl --version"
                              : "gridctl --help");
    return context.print(help_in_short(context.columns_out()));
  }
  const std::string& noun = line.words[0];
  const Command* command = command_by_habit(noun, line.words.size() > 1 ? line.words[1] : "");
  if (command == nullptr) {
    if (known_verbs(noun).empty()) return unknown_noun(noun, arguments);
    if (line.words.size() == 1)
      return make_error(Code::usage, "'gridctl " + noun + "' needs one of: " + join(known_verbs(noun), ", "),
                        "gridctl " + noun + " --help");
    return unknown_verb(noun, line.words[1]);
  }
  std::erase(line.rest, "--version");
  TRY_ASSIGN(const Parsed parsed, parse(*command, line));
  TRY(configure_command(context, *command, parsed));
  if (const auto meant = missing_dashes(*command, parsed, arguments)) return *meant;
  TRY(check_positionals(*command, parsed));
  return command->run(context, parsed);
}

// Before the command line is parsed, an error must already be in the wanted form.
bool wants_json(const Arguments& arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") return false;
    if (argument == "--json") return true;
  }
  return false;
}

int run(const Arguments& arguments) {
  Context context;
  context.terminal_in = os::is_terminal(0);
  context.terminal_out = os::is_terminal(1);
  context.terminal_err = os::is_terminal(2);
  const auto kind = os::environment("TERM");
  context.redraws = context.terminal_err && kind && !kind->empty() && *kind != "dumb";
  context.out_style = style_for("auto", context.terminal_out);
  context.err_style = style_for("auto", context.terminal_err);
  context.json = wants_json(arguments);
  if (!arguments.empty() && arguments[0] == "__complete")  // its words are no options of ours
    return complete(context, {arguments.begin() + 1, arguments.end()});
  Result<int> outcome = dispatch(context, arguments);
  if (!outcome) return fail(context, outcome.error());
  if (Result<void> written = context.finish(); !written) return fail(context, written.error());
  return *outcome;
}

}  // namespace
}  // namespace gridctl::cmd

int main(int argc, char** argv) {
  gridctl::os::open_standard_streams();
  gridctl::os::ignore_broken_pipes();
  gridctl::os::keep_freed_memory();
  try {
    return gridctl::cmd::run({argv + 1, argv + argc});
  } catch (const std::exception& problem) {  // a library threw where it promised not to, or memory ran out
    (void)gridctl::os::write_stream(2, "gridctl: internal error: " + gridctl::sanitize(problem.what()) + "\n");
    return gridctl::exit_code(gridctl::Code::internal);
  }
}
