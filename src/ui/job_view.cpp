// SPDX-License-Identifier: Apache-2.0
#include "ui/job_view.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "ui/human.hpp"
#include "ui/use_view.hpp"
#include "ui/width.hpp"

namespace gridctl::ui {

namespace {
std::string flat(std::string_view text) {
  std::string line = sanitize(text);
  std::ranges::replace(line, '\t', ' ');
  return line;
}

// Shows only the last attempts; earlier ones are counted, not listed.
constexpr std::size_t k_attempts_shown = 4;
constexpr std::size_t k_members_shown = 8;  // with what they use

std::string attempt_line(const JobId& job, const registry::AttemptRecord& attempt, WallTime now) {
  std::string line = "attempt " + std::to_string(attempt.number.value) + "  " + pad_right(attempt.provider.value, 12) +
                     "  " + pad_right(attempt.state, 9) + "  " + span(attempt.started_at, attempt.ended_at, now);
  if (attempt.resumed_from.value != 0) line += "  from " + checkpoint_name(job, attempt.resumed_from);
  if (!attempt.reason.empty()) line += "  " + flat(attempt.reason);
  return line;
}
}  // namespace

std::vector<std::string> job_block(const JobView& view, WallTime now, std::size_t columns, Style style) {
  const registry::Job& job = view.job;
  std::vector<std::string> lines;
  const std::string state(job::state_name(job.state));
  std::string rest = "  " + flat(job.name) + " (" + job.id.value + ")  " + span(job.submitted_at, job.ended_at, now);
  const bool in_words = !job::is_final(job.state) && !job.machine.reason_text.empty();
  if (!job.reason.empty()) rest += "  " + flat(in_words ? job.machine.reason_text : job.reason);
  rest = truncate(rest, columns > state.size() ? columns - state.size() : 0);
  lines.push_back(style(paint_of(job.state), state) + rest);
  const std::size_t skipped = view.attempts.size() > k_attempts_shown ? view.attempts.size() - k_attempts_shown : 0;
  for (std::size_t i = skipped; i < view.attempts.size(); ++i)
    lines.push_back(style(Paint::dim, truncate("  " + attempt_line(job.id, view.attempts[i], now), columns)));
  if (view.head)
    lines.push_back(style(
        Paint::dim,
        truncate("  checkpoint " + checkpoint_name(job.id, view.head->seq) + "  " + format_size(view.head->bytes) +
                     "  " + age(view.head->created_at, now) + "  " + std::to_string(view.checkpoints) + " kept",
                 columns)));
  if (view.use)
    for (const std::string& line : use_lines(*view.use, columns, k_members_shown)) lines.push_back(style(Paint::dim, line));
  return lines;
}

std::string event_line(const registry::EventRecord& event, WallTime now, Style style) {
  const std::string time = moment(event.at, now);
  if (event.kind == "last_output") {  // a traceback is read line by line
    std::string text = style(Paint::dim, time) + "  last output:";
    for (const std::string& part : split_lines(sanitize_lines(event.text))) text += "\n" + std::string(4, ' ') + part;
    return text;
  }
  std::string line = style(Paint::dim, time) + "  " + flat(event.text.empty() ? event.kind : event.text);
  return line;
}

}  // namespace gridctl::ui
