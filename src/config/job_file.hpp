// SPDX-License-Identifier: Apache-2.0
// Parses the job file (gridctl-job(5)): text in, a checked job::Spec out, or one line that says where and what is
// wrong.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "job/notify.hpp"
#include "job/spec.hpp"
#include "os/files.hpp"

namespace gridctl::config {

// Holds options of the command line; each replaces the file's value.
struct Overrides {
  std::optional<std::string> name;        // -n
  std::optional<std::string> gpu;         // --gpu SPEC
  std::optional<std::string> cpus;        // --cpus 4+
  std::optional<std::string> memory;      // --memory 16+
  std::optional<std::string> disk;        // --disk 50+
  std::optional<std::string> image;       // --image
  std::optional<std::string> priority{};  // --priority N
  std::vector<std::string> envs;          // --env K=V, or K: taken from the environment
  std::vector<std::string> secrets;       // --secret K=V or K
  std::vector<std::string> providers;     // --provider NAME
};

enum class PathKind { missing, file, directory };

struct Context {
  std::string base_directory;    // absolute: relative paths start here,
  std::string caller_directory;  // or here, where nothing is there: SkyPilot's files are written so; empty: nowhere
  std::function<std::optional<std::string>(std::string_view)> environment;
  std::function<PathKind(const std::string&)> path_kind;
  Overrides overrides;
  std::vector<std::string> known_providers;  // registered names: `infra: ssh/NAME` pins to one of them
};
// Uses the real environment and file system of this machine; the caller makes `base_directory` absolute.
[[nodiscard]] Context local_context(std::string base_directory, Overrides overrides = {});

struct ParsedJob {
  job::Spec spec;
  std::map<std::string, std::string> secrets;  // values, one for each of spec.secrets; never log or store in SQL
  std::string items{};                         // of a bag: one for each task, each with a NUL behind it
  std::vector<job::Notify> notify{};
  std::vector<std::string> warnings;           // whole lines "FILE:LINE:COLUMN: …"
};

// Errors: bad_job_file, message "FILE:LINE:COLUMN: key 'x': expected …, got …; did you mean 'y'?"; Code::usage for a
// bad override ("--gpu: …"). Total over any bytes; bounded by the limits of yaml.hpp.
[[nodiscard]] Result<ParsedJob> parse_job_file(std::string_view text, const std::string& file_name,
                                               const Context& context);
// Reads the file and uses its directory as base.
[[nodiscard]] Result<ParsedJob> load_job_file(const os::Path& path, Overrides overrides,
                                              std::vector<std::string> known_providers = {});

// Parses "6h" after its submission, or "2026-12-01T08:00:00Z". Errors are Code::usage without a place: what was
// expected.
[[nodiscard]] Result<job::Deadline> parse_deadline(std::string_view text);

// Implements `job submit [options] -- CMD…`. The words are quoted for the shell; a single word that contains spaces is
// taken as shell text, as ssh does. `workdir`: empty = none is sent.
[[nodiscard]] Result<ParsedJob> spec_from_command(const std::vector<std::string>& argv, const Context& context,
                                                  const std::string& workdir = {});

// Checks an entry of outputs: a .gitignore pattern that stays in the working directory, without "./". Errors are
// Code::usage without a place.
[[nodiscard]] Result<std::string> output_pattern(std::string_view text);

}  // namespace gridctl::config
