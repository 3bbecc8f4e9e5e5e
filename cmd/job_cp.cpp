// SPDX-License-Identifier: Apache-2.0
#include "cmd/commands.hpp"
#include "cmd/context.hpp"
#include "cmd/file_streams.hpp"
#include "cmd/json_text.hpp"
#include "cmd/running_member.hpp"
#include "os/loop.hpp"

namespace gridctl::cmd {

namespace job_cp {
namespace {
constexpr Example k_examples[] = {
    {"Copy a file out of a running job", "gridctl job cp train-gpt:out/loss.csv ."},
    {"Put a file into its working directory", "gridctl job cp config.yaml train-gpt:"},
    {"Copy a folder from the host of rank 3", "gridctl job cp --rank 3 train-gpt:/tmp/traces traces"}};
constexpr Positional k_positionals[] = {{"SOURCE", Completion::file}, {"DESTINATION", Completion::file}};
constexpr Option k_options[] = {k_rank_option, k_attempt_option};
constexpr int k_exits[] = {3, 5, 6, 7, 130};

struct Side {
  std::string job;   // empty: a path on this machine
  std::string path;
};
// A colon after a slash belongs to a local path, as with scp.
Side side_of(const std::string& text) {
  const std::size_t colon = text.find(':'), slash = text.find('/');
  if (colon == std::string::npos || colon == 0 || slash < colon) return {"", text};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

Result<int> run(Context& context, const Parsed& parsed) {
  const Side from = side_of(parsed.positionals[0]), to = side_of(parsed.positionals[1]);
  if (from.job.empty() == to.job.empty())
    return make_error(Code::usage, "either the source or the destination must be in a job: ID:PATH",
                      "gridctl job cp @last:out/loss.csv .");
  TRY_ASSIGN(const std::optional<std::uint64_t> rank, parsed.whole("rank"));
  TRY_ASSIGN(const std::optional<std::uint64_t> attempt, parsed.whole("attempt"));
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const JobId id, registry.resolve(from.job.empty() ? to.job : from.job));
  TRY_ASSIGN(const RunningMember member, running_member(registry, id, rank, attempt));
  os::Loop loop;
  TRY_ASSIGN(auto channel, enter(context, loop, member.provider, whom(member)));
  FileStreams streams(context, loop, std::move(channel));
  TRY_ASSIGN(const CopyTotal total, to.job.empty() ? streams.fetch(from.path.empty() ? "." : from.path, to.path)
                                                   : streams.send(from.path, to.path));
  if (context.json)
    return context.print_line(JsonObject()("job_id", id.value)("files", total.files)("bytes", total.bytes).text());
  return context.note(std::to_string(total.files) + (total.files == 1 ? " file, " : " files, ") +
                      format_size(total.bytes));
}
}  // namespace
}  // namespace job_cp

const Command k_job_cp{
    .noun = "job",
    .verb = "cp",
    .summary = "copy files into or out of a running job",
    .examples = job_cp::k_examples,
    .description =
        "Copies a file or a folder between this machine and a running job. ID:PATH is a path as the job sees it; a "
        "relative one starts in its working directory. If the destination is a directory, the source keeps its own "
        "name in it. A file appears only when it is complete, and repeating the command continues a large file where "
        "an earlier one stopped.\n\n'gridctl job pull' gets the outputs of a job, also after its end.",
    .positionals = job_cp::k_positionals,
    .options = job_cp::k_options,
    .exit_codes = job_cp::k_exits,
    .run = job_cp::run};

}  // namespace gridctl::cmd
