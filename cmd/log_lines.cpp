// SPDX-License-Identifier: Apache-2.0
#include "cmd/log_lines.hpp"

#include <regex.h>

#include "base/text.hpp"
#include "cmd/json_text.hpp"
#include "cmd/log_printer.hpp"

namespace gridctl::cmd {

namespace {
constexpr std::size_t k_line_max = 1u << 20;  // bytes; a longer one is given in parts
}

struct LogLines::Pattern {
  regex_t compiled{};
  Pattern() = default;
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  ~Pattern() { ::regfree(&compiled); }
};

bool wants_lines(const Context& context, const Parsed& parsed) {
  return context.json || parsed.has("since") || parsed.has("timestamps") || parsed.has("grep");
}

LogLines::LogLines(Context& context, JobId job) : context_(&context), job_(std::move(job)) {}
LogLines::LogLines(LogLines&&) noexcept = default;
LogLines::~LogLines() = default;

Result<LogLines> LogLines::make(Context& context, const Parsed& parsed, JobId job, std::optional<std::uint64_t> rank) {
  LogLines lines(context, std::move(job));
  lines.rank_ = rank;
  lines.timestamps_ = parsed.has("timestamps");
  if (parsed.has("since")) {
    const std::string text = parsed.value("since");
    const Result<Duration> ago = parse_duration(text);
    const Result<WallTime> moment = parse_rfc3339(text);
    if (!ago && !moment)
      return make_error(Code::usage, "--since: expected how long ago (10m), or a time such as 2026-12-01T08:00:00Z, got '" +
                                         sanitize(text) + "'");
    lines.since_ = moment ? *moment : WallTime{context.now().ms - *ago / std::chrono::milliseconds{1}};
  }
  if (parsed.has("grep")) {
    lines.pattern_ = std::make_unique<Pattern>();
    const int wrong = ::regcomp(&lines.pattern_->compiled, parsed.value("grep").c_str(), REG_EXTENDED | REG_NOSUB);
    if (wrong != 0) {
      char why[128];
      ::regerror(wrong, &lines.pattern_->compiled, why, sizeof why);
      return make_error(Code::usage, "--grep: '" + sanitize(parsed.value("grep")) +
                                         "' is not an extended regular expression: " + why);
    }
  }
  return lines;
}

void LogLines::take(const LogReader::File& file, std::uint64_t position, std::string_view line) {
  std::string text(line);
  if (rank_) {
    RankLines of_rank(*rank_);
    text = of_rank.of(text + "\n");
    if (text.empty()) return;
    text.pop_back();
  }
  const std::optional<WallTime> at = times_[file].at(position);
  if (since_ && (!at || *at < *since_)) return;
  if (pattern_ && ::regexec(&pattern_->compiled, text.c_str(), 0, nullptr, 0) != 0) return;
  if (context_->json) {
    context_->print_line(JsonObject()("at", at)("attempt", file.first.value)("node", file.second)("text", text).text());
    return;
  }
  const std::string time = !timestamps_ ? "" : (at ? format_rfc3339(*at) : std::string(24, '-')) + " ";
  context_->print_line(time + (context_->terminal_out ? sanitize_lines(text) : text));
}

Result<void> LogLines::print_new(LogReader& reader, bool all) {
  times_.clear();
  TRY(reader.read_new(
      [&](AttemptNumber, std::string_view bytes) {
        const LogReader::Place place = reader.place();
        if (!times_.contains(place.file))
          times_[place.file] = control::LogTimes::read(context_->paths().log_of(job_, place.file.first, place.file.second));
        Begun& begun = begun_[place.file];
        std::uint64_t position = place.position;
        while (!bytes.empty()) {
          if (begun.text.empty()) begun.position = position;
          const std::size_t end = bytes.find('\n');
          const std::size_t size = std::min(end == std::string_view::npos ? bytes.size() : end, k_line_max);
          begun.text += bytes.substr(0, size);
          const bool ended = end != std::string_view::npos && size == end;
          bytes.remove_prefix(size + (ended ? 1 : 0));
          position += size + (ended ? 1 : 0);
          if (!ended && begun.text.size() < k_line_max) continue;
          take(place.file, begun.position, begun.text);
          begun.text.clear();
        }
      },
      all));
  if (!all) return {};
  for (auto& [file, begun] : begun_) {
    if (begun.text.empty()) continue;
    if (!times_.contains(file))
      times_[file] = control::LogTimes::read(context_->paths().log_of(job_, file.first, file.second));
    take(file, begun.position, begun.text);
    begun.text.clear();
  }
  return {};
}

}  // namespace gridctl::cmd
