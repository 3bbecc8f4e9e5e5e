// SPDX-License-Identifier: Apache-2.0
// The rules of the house, as functions over source files. What they allow is data, in rules.cpp.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "source_text.hpp"

namespace gridctl::tidy {

// "src/x/y.cpp:12: what is wrong", one per finding.
using Findings = std::vector<std::string>;

[[nodiscard]] Findings check_layers(const Source& source);        // which room may include which
[[nodiscard]] Findings check_third_party(const Source& source);   // each library in one room
[[nodiscard]] Findings check_system_calls(const Source& source);  // headers of the system in os and agent
[[nodiscard]] Findings check_ways(const Source& source);          // hosts are reached by AgentNetwork alone
[[nodiscard]] Findings check_words(const Source& source);         // clocks, randomness, shells; unfinished work
[[nodiscard]] Findings check_shape(const Source& source);         // licence line, length, name, include style
[[nodiscard]] Findings check_functions(const Source& source, const std::map<std::string, int>& allowed);

inline constexpr int k_file_lines_max = 500;  // of the product; tests may have a fifth more
inline constexpr int k_function_lines_max = 85;

[[nodiscard]] Findings check_compared_words(
    const Source& source);  // == "word" in the rooms that decide: an enum is checked
[[nodiscard]] Findings check_openings(
    const Source& source);  // comments that begin with a word that needs the line before
[[nodiscard]] Findings check_whole_registry(const Source& source);  // a part of it is enough for most
[[nodiscard]] Findings check_whole_rows(const Source& source);      // written, though one part of the row has changed
[[nodiscard]] Findings check_unnamed(
    const std::vector<Source>& sources);  // constants and types of unnamed namespaces: one of a name in each room
[[nodiscard]] Findings check_test_namespace(const Source& source);  // each file of tests has its own
// Each unit test is named for a source of its room, or for the room: SUBJECT_test.cpp or SUBJECT_WORD_test.cpp,
// with a WORD that tells something.
[[nodiscard]] Findings check_test_subjects(const std::vector<std::string>& tests, const std::vector<std::string>& product);
[[nodiscard]] Findings check_origin(const std::string& path, const std::string& text);  // licences and names of others

// How many findings of a rule each room may still have; numbers only shrink, and a room without one may have none.
using Budget = std::map<std::string, int>;

// Functions that are longer today, "path:name" -> lines. They may shrink, and then the entry must too.
[[nodiscard]] const std::map<std::string, int>& long_functions();

// Findings that are known and not mended yet, without their line numbers. This list only shrinks.
[[nodiscard]] const std::vector<std::string>& known_findings();

}  // namespace gridctl::tidy
