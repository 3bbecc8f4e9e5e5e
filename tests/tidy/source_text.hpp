// SPDX-License-Identifier: Apache-2.0
// Source files as the rules see them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gridctl::tidy {

struct Source {
  std::string path;  // from the top of the repository: "src/os/loop.cpp"
  std::string text;
};

// The text with comments and the content of string and character literals replaced by spaces; line ends stay, so that
// offsets and line numbers are those of the text.
[[nodiscard]] std::string without_comments_and_literals(std::string_view text);

[[nodiscard]] int line_of(std::string_view text, std::size_t offset);  // from 1

// "os" of "src/os/loop.cpp", "cmd" of "cmd/cli.cpp", "" elsewhere.
[[nodiscard]] std::string room_of(std::string_view path);

struct Include {
  std::string name;
  bool quoted = false;
  int line = 0;
};
[[nodiscard]] std::vector<Include> includes_of(const Source& source);

struct Function {
  std::string name;  // as it stands before its parameters: "Loop::watch"
  int line = 0;
  int lines = 0;
};
// Every function with a body, members included; lambdas count to the function they stand in.
[[nodiscard]] std::vector<Function> functions_of(const Source& source);

}  // namespace gridctl::tidy
