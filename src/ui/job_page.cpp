// SPDX-License-Identifier: Apache-2.0
#include "ui/job_page.hpp"

#include <algorithm>
#include <cmath>

#include "base/bytes.hpp"
#include "base/formatted.hpp"
#include "base/text.hpp"
#include "ui/human.hpp"

namespace gridctl::ui {

namespace {

constexpr std::size_t k_text_max = 300;  // of one cell
constexpr int k_hues = 6;                // classes c0 to c5 of the style
constexpr double k_width = 960, k_row = 26, k_left = 10, k_chart = 260, k_axis = 72;
constexpr double k_tick_apart = 3;

constexpr std::string_view k_style = R"(<style>
:root{color-scheme:light dark;--bg:#fff;--ink:#1b1f24;--dim:#6a737d;--line:#d8dee4;--card:#f6f8fa;
--good:#1a7f37;--bad:#cf222e;--warn:#9a6700;--c0:#0969da;--c1:#bc4c00;--c2:#1a7f37;--c3:#8250df;--c4:#bf3989;--c5:#57606a}
@media(prefers-color-scheme:dark){:root{--bg:#0d1117;--ink:#e6edf3;--dim:#8b949e;--line:#30363d;--card:#161b22;
--good:#3fb950;--bad:#f85149;--warn:#d29922;--c0:#58a6ff;--c1:#f0883e;--c2:#3fb950;--c3:#bc8cff;--c4:#f778ba;--c5:#8b949e}}
body{background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,sans-serif;max-width:980px;margin:2em auto;padding:0 1em}
h1{font-size:1.6em;margin:0}h2{font-size:1.1em;margin:2em 0 .5em}
.dim{color:var(--dim)}.good{color:var(--good)}.bad{color:var(--bad)}.warn{color:var(--warn)}
.tiles{display:flex;flex-wrap:wrap;gap:.6em;margin:1.2em 0}
.tiles div{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.5em .9em;min-width:7em}
.tiles b{display:block;font-size:1.15em}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.9em}
th{text-align:left;color:var(--dim);font-weight:500}td,th{padding:.25em .6em .25em 0;border-bottom:1px solid var(--line);vertical-align:top}
.n{text-align:right;width:1%;white-space:nowrap;padding-right:1em;font-variant-numeric:tabular-nums}svg{width:100%;height:auto;display:block}
text{fill:var(--ink);font:12px system-ui,sans-serif}text.dim{fill:var(--dim)}
.axis{stroke:var(--line)}.tick{stroke:var(--ink);stroke-width:1.5}
.b0{fill:var(--c0)}.b1{fill:var(--c1)}.b2{fill:var(--c2)}.b3{fill:var(--c3)}.b4{fill:var(--c4)}.b5{fill:var(--c5)}
path{fill:none;stroke-width:1.8}.l0{stroke:var(--c0)}.l1{stroke:var(--c1)}.l2{stroke:var(--c2)}.l3{stroke:var(--c3)}.l4{stroke:var(--c4)}.l5{stroke:var(--c5)}
</style>
)";

// Escapes text of the job or a host, for any place in the page.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : sanitize(text, k_text_max)) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

std::string px(double value) { return formatted("%.1f", value); }
std::string hue(AttemptNumber attempt) { return std::to_string((std::max<std::uint64_t>(attempt.value, 1) - 1) % k_hues); }

std::string tile(std::string_view name, const std::string& value) {
  return value.empty() ? "" : "<div><span class=dim>" + plain(name) + "</span><b>" + plain(value) + "</b></div>\n";
}

std::string label(double x, double y, std::string_view more, const std::string& text) {
  return "<text x=" + px(x) + " y=" + px(y) + std::string(more) + ">" + plain(text) + "</text>\n";
}

std::string svg(double height, const std::string& content) {
  return "<svg viewBox=\"0 0 " + px(k_width) + " " + px(height) + "\" role=img>\n" + content + "</svg>\n";
}

WallTime end_of(const registry::Job& job, WallTime now) { return job.ended_at.value_or(now); }

std::string head(const JobPage& page, WallTime now) {
  const registry::Job& job = page.job;
  const char* kind = job.state == job::JobState::succeeded ? "good"
                     : job.state == job::JobState::failed  ? "bad"
                     : job::is_final(job.state)            ? "dim"
                                                           : "warn";
  std::string out = "<h1>" + plain(job.name) + " <span class=" + kind + ">" + std::string(job::state_name(job.state)) +
                    "</span></h1>\n<p class=dim>" + plain(job.id.value) + ", submitted " + moment(job.submitted_at, now);
  if (!job.machine.reason_text.empty()) out += "<br>" + plain(job.machine.reason_text);
  out += "</p>\n<div class=tiles>\n" + tile("took", span(job.submitted_at, job.ended_at, now)) +
         tile("attempts", std::to_string(page.attempts.size())) + tile("moves", std::to_string(job.recoveries));
  if (job.recoveries > 0) out += tile("work lost", format_duration(job.machine.lost));
  out += tile("checkpoints", std::to_string(page.checkpoints.size())) + tile("cost", money(job.cost, false)) +
         tile("at the list price", page.list_price);
  if (!job.resources.empty()) out += tile("asked for", job.resources);
  return out + "</div>\n";
}

// Draws a bar for each attempt from its start to its end, with a mark for each of its checkpoints.
std::string timeline(const JobPage& page, WallTime now) {
  if (page.attempts.empty()) return "<p class=dim>No attempt has started.</p>\n";
  const double from = static_cast<double>(page.job.submitted_at.ms);
  const double length = std::max(1.0, static_cast<double>(end_of(page.job, now).ms) - from);
  const auto x_of = [&](WallTime at) {
    return k_left + std::clamp((static_cast<double>(at.ms) - from) / length, 0.0, 1.0) * (k_width - 2 * k_left);
  };
  std::string out;
  double y = 4;
  for (const registry::AttemptRecord& attempt : page.attempts) {
    const double begin = x_of(attempt.started_at.value_or(page.job.submitted_at));
    const double end = std::max(begin + 2, x_of(attempt.ended_at.value_or(end_of(page.job, now))));
    out += "<rect class=b" + hue(attempt.number) + " rx=3 x=" + px(begin) + " y=" + px(y + 13) + " width=" +
           px(end - begin) + " height=9><title>" + plain(attempt.placement_reason) + "</title></rect>\n";
    double last = -k_tick_apart;
    for (const registry::Checkpoint& one : page.checkpoints) {
      const double x = x_of(one.created_at);
      if (one.attempt != attempt.number || x < last + k_tick_apart) continue;
      last = x;
      out += "<line class=tick x1=" + px(x) + " x2=" + px(x) + " y1=" + px(y + 11) + " y2=" + px(y + 24) +
             "><title>checkpoint " + std::to_string(one.seq.value) + ", " + format_size(one.bytes) + "</title></line>\n";
    }
    const std::string words = std::to_string(attempt.number.value) + "  " + attempt.provider.value + "  " +
                              attempt.state + (attempt.reason.empty() ? "" : ": " + attempt.reason);
    const bool right = begin > k_width / 2;
    out += label(right ? end : begin, y + 10, right ? " text-anchor=end" : "", words);
    y += k_row + 6;
  }
  out += label(k_left, y + 14, " class=dim", moment(page.job.submitted_at, now));
  out += label(k_width - k_left, y + 14, " class=dim text-anchor=end", moment(end_of(page.job, now), now));
  return svg(y + 20, out) + "<p class=dim>Bars are attempts, marks are checkpoints.</p>\n";
}

std::string attempts_table(const JobPage& page, WallTime now) {
  std::string out = "<div class=wide><table><tr><th class=n>#<th>host<th>state<th>started<th class=n>ran<th>from<th class=n>exit"
                    "<th>ended by<th>chosen because</tr>\n";
  for (const registry::AttemptRecord& one : page.attempts)
    out += "<tr><td class=n>" + std::to_string(one.number.value) + "<td>" + plain(one.provider.value) + "<td>" +
           plain(one.state) + "<td>" + moment(one.started_at, now) + "<td class=n>" +
           span(one.started_at, one.ended_at, now) + "<td>" +
           (one.resumed_from.value == 0 ? "the beginning" : "checkpoint " + std::to_string(one.resumed_from.value)) +
           "<td class=n>" + (one.exit_code ? std::to_string(*one.exit_code) : "") + "<td>" + plain(one.reason) + "<td>" +
           plain(one.placement_reason) + "</tr>\n";
  return out + "</table></div>\n";
}

// Keeps as many points as a screen can show; the first and the last of each stretch.
std::vector<std::pair<double, double>> thinned(const std::vector<std::pair<double, double>>& points) {
  std::vector<std::pair<double, double>> kept;
  const std::size_t stride = points.size() / k_page_points + 1;
  for (std::size_t i = 0; i < points.size(); i += stride) kept.push_back(points[i]);
  if (!points.empty() && kept.back() != points.back()) kept.push_back(points.back());
  return kept;
}

std::string curves(const JobPage& page) {
  double x_least = INFINITY, x_most = -INFINITY, y_least = INFINITY, y_most = -INFINITY;
  for (const Curve& curve : page.curves)
    for (const auto& [x, y] : curve.points) {
      x_least = std::min(x_least, x), x_most = std::max(x_most, x);
      y_least = std::min(y_least, y), y_most = std::max(y_most, y);
    }
  if (!(x_most > x_least)) return "";
  const double tall = std::max(y_most - y_least, 1e-12);
  std::string out = "<line class=axis x1=" + px(k_axis) + " x2=" + px(k_width - k_left) + " y1=" + px(k_chart) +
                    " y2=" + px(k_chart) + " /><line class=axis x1=" + px(k_axis) + " x2=" + px(k_axis) +
                    " y1=10 y2=" + px(k_chart) + " />\n";
  for (const Curve& curve : page.curves) {
    std::string path;
    for (const auto& [x, y] : thinned(curve.points))
      path += (path.empty() ? "M" : "L") + px(k_axis + (x - x_least) / (x_most - x_least) * (k_width - k_axis - k_left)) + " " +
              px(k_chart - (y - y_least) / tall * (k_chart - 14));
    out += "<path class=l" + hue(curve.attempt) + " d=\"" + path + "\"><title>attempt " +
           std::to_string(curve.attempt.value) + "</title></path>\n";
  }
  out += label(k_axis - 6, 18, " class=dim text-anchor=end", number(y_most, 3));
  out += label(k_axis - 6, k_chart, " class=dim text-anchor=end", number(y_least, 3));
  out += label(k_axis, k_chart + 18, " class=dim", "step " + number(x_least, 6));
  out += label(k_width - k_left, k_chart + 18, " class=dim text-anchor=end", "step " + number(x_most, 6));
  return "<h2>" + plain(page.number) + "</h2>\n" + svg(k_chart + 24, out) +
         "<p class=dim>A line for each attempt, in the colour of its bar. Where two lines overlap, steps ran "
         "again.</p>\n";
}

std::string checkpoints_table(const JobPage& page, WallTime now) {
  if (page.checkpoints.empty()) return "";
  const std::size_t from = page.checkpoints.size() - std::min(page.checkpoints.size(), k_page_checkpoints);
  std::string out = "<h2>Checkpoints</h2>\n";
  if (from > 0) out += "<p class=dim>The newest " + std::to_string(k_page_checkpoints) + " of " + std::to_string(page.checkpoints.size()) + ".</p>\n";
  out += "<div class=wide><table><tr><th class=n>#<th class=n>attempt<th>saved<th class=n>size<th class=n>stored<th>recognised by<th>marks</tr>\n";
  for (std::size_t i = from; i < page.checkpoints.size(); ++i) {
    const registry::Checkpoint& one = page.checkpoints[i];
    const char* marks = one.suspect ? "suspect" : one.torn ? "torn" : one.as_left ? "as left" : one.provisional ? "provisional" : one.stray ? "stray" : "";
    out += "<tr><td class=n>" + std::to_string(one.seq.value) + "<td class=n>" + std::to_string(one.attempt.value) + "<td>" +
           moment(one.created_at, now) + "<td class=n>" + format_size(one.bytes) + "<td class=n>" + format_size(one.stored_bytes) +
           "<td>" + plain(one.how) + "<td>" + marks + "</tr>\n";
  }
  return out + "</table></div>\n";
}

std::string events_table(const JobPage& page, WallTime now) {
  const std::size_t from = page.events.size() - std::min(page.events.size(), k_page_events);
  std::string out = "<h2>Events</h2>\n";
  if (from > 0) out += "<p class=dim>The newest " + std::to_string(k_page_events) + " of " + std::to_string(page.events.size()) + ".</p>\n";
  out += "<div class=wide><table>\n";
  for (std::size_t i = from; i < page.events.size(); ++i)
    out += "<tr><td class=dim>" + moment(page.events[i].at, now) + "<td>" + plain(page.events[i].text) + "</tr>\n";
  return out + "</table></div>\n";
}

}  // namespace

std::string job_page(const JobPage& page, WallTime now) {
  std::string out(k_page_mark);
  out += "<html lang=en><head><meta charset=utf-8><meta name=viewport content=\"width=device-width\"><title>" +
         plain(page.job.name) + "</title>\n" + std::string(k_style) + "</head><body>\n";
  out += head(page, now) + "<h2>Attempts</h2>\n" + timeline(page, now) + attempts_table(page, now) + curves(page) +
         checkpoints_table(page, now) + events_table(page, now);
  return out + "<p class=dim>gridctl " + plain(page.version) + ", " + format_rfc3339(now) + "</p>\n</body></html>\n";
}

}  // namespace gridctl::ui
