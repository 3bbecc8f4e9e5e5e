// SPDX-License-Identifier: Apache-2.0
#include "control/follow/results.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "control/reach/request.hpp"
#include "control/reach/work_budget.hpp"

namespace gridctl::control {

namespace {
constexpr Duration k_select = std::chrono::minutes{10};  // until the host has read and hashed what is wanted
constexpr Duration k_quiet_work = std::chrono::minutes{5};  // of all connections together, without a byte
constexpr std::size_t k_note_shown_max = 300;  // bytes
constexpr std::size_t k_names_shown = 3, k_name_shown_max = 80;
constexpr std::uint32_t k_results_stream = 500;  // no other question of a collection has it
}  // namespace

Result<GatheredResults> gather_results(Freight& freight, const HostReach& host, wire::Link& link,
                                       const os::Clock& clock, const JobId& job, Epoch epoch,
                                       const ResultsWanted& wanted) {
  GatheredResults gathered;
  if (wanted.nothing) return gathered;
  TRY_ASSIGN(const std::string text,
             ask(link, k_results_stream,
                 wire::encode(wire::ResultsRequest{job, epoch, wanted.patterns, wanted.tree}),
                 clock.boot() + k_select, [&] {
                   if (host.budget != nullptr) host.budget->allow(2 * wire::k_results_progress_every);
                   return clock.boot() + k_select;
                 }));
  TRY_ASSIGN(gathered.reply, wire::parse_results_reply(text));
  if (!wanted.tree || !gathered.reply.root) return gathered;
  TRY_ASSIGN(const Brought brought, freight.bring(host, job, epoch, *gathered.reply.root, wanted.before));
  gathered.root = brought.root;
  gathered.files = brought.files;
  gathered.bytes = brought.bytes;
  return gathered;
}

void mask_names(JobFolders& folders, const JobId& job, wire::ResultsReply& reply) {
  for (std::vector<std::string>* words : {&reply.names, &reply.notes})
    for (std::string& one : *words) one = folders.masked(job, std::move(one));
}

HostReach with_budget(HostReach host, const os::Clock& clock) {
  WorkBudget::Limits limits;
  limits.free = k_quiet_work;
  host.budget = std::make_shared<WorkBudget>(clock, limits);
  return host;
}

Result<void> note_left_there(registry::RunRecords& records, const JobId& job, Epoch epoch, const HostName& host,
                             WallTime now) {
  TRY_ASSIGN(const std::optional<registry::Results> before, records.results(job));
  registry::Results results = before.value_or(registry::Results{});
  results.job = job;
  results.left = registry::Results::Left{host, epoch, 0, 0, now + k_keep_work};
  return records.save_results(results);
}

ResultsWanted wanted_at_end(const std::vector<job::Output>& outputs, bool success,
                            const std::optional<registry::Results>& before) {
  ResultsWanted wanted{job::outputs_at_end(outputs, success), !outputs.empty(), {}, false};
  wanted.nothing = wanted.tree && wanted.patterns.empty();
  if (before) wanted.before = before->root;
  return wanted;
}

std::string files_in_words(std::uint64_t files, std::uint64_t bytes, const std::vector<std::string>& names) {
  std::string text = std::to_string(files) + (files == 1 ? " file, " : " files, ") + format_size(bytes);
  if (names.empty()) return text;
  text += " (";
  for (std::size_t i = 0; i < std::min(names.size(), k_names_shown); ++i)
    text += (i > 0 ? ", " : "") + sanitize(names[i].substr(0, k_name_shown_max));
  return text + (files > std::min(names.size(), k_names_shown) ? ", …)" : ")");
}

Result<void> keep_results(registry::JobRecords& records, const JobId& job, Epoch epoch, const HostName& host,
                          const ResultsWanted& wanted, const GatheredResults& gathered, bool at_end, WallTime now) {
  const wire::ResultsReply& reply = gathered.reply;
  TRY_ASSIGN(const std::optional<registry::Results> before, records.results(job));
  if (at_end && !reply.notes.empty()) {
    std::vector<std::string> left_out;
    for (const std::string& note : reply.notes) left_out.push_back(sanitize(note.substr(0, k_note_shown_max)));
    TRY(records.note(job, now, {"outputs_left_out", "left out: " + join(left_out, "; "), epoch, host}));
  }
  if (reply.files == 0) {
    if (before || wanted.nothing || !at_end) return {};
    return records.save_results({job, {}, 0, 0, now, {}});  // looked for, and not there
  }
  registry::Results results = before.value_or(registry::Results{});
  results.job = job;
  const std::string pull = "gridctl job pull " + job.value;
  job::Record record{"outputs", "", epoch, host};
  if (gathered.root) {
    results.root = gathered.root;
    results.files = gathered.files;
    results.bytes = gathered.bytes;
    results.at = now;
    record.text = "outputs: " + files_in_words(gathered.files, gathered.bytes, reply.names) + ": " + pull;
  } else if (!wanted.tree) {
    results.left = registry::Results::Left{host, epoch, reply.files, reply.bytes, now + k_keep_work};
    record.kind = "files_left";
    record.text = files_in_words(reply.files, reply.bytes, reply.names) + " outside the checkpoint, kept on " +
                  host.value + " for " + format_duration(k_keep_work) + ": " + pull;
  }
  TRY(records.save_results(results));
  return at_end ? records.note(job, now, record) : Result<void>();
}

}  // namespace gridctl::control
