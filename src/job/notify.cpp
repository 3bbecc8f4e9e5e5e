// SPDX-License-Identifier: Apache-2.0
#include "job/notify.hpp"

#include <algorithm>

#include "base/record.hpp"

namespace gridctl::job {

namespace {
struct NoticeRow {
  std::string_view kind;  // of an event
  std::vector<Notice> notices;
};
}  // namespace

struct NotifyRules {
  std::vector<Notify> rules;
};

template <class R>
void fields(R& r, Of<R, Notify>& m) {
  std::vector<std::string> on;
  for (const Notice notice : m.on) on.emplace_back(notice_name(notice));
  r("on", on)("command", m.command)("webhook", m.webhook)("mail", m.mail);
  if constexpr (R::reads) {
    m.on.clear();
    for (const std::string& word : on)
      if (const auto notice = notice_name.find(word)) m.on.push_back(*notice);
  }
}

template <class R>
void fields(R& r, Of<R, NotifyRules>& m) {
  r("notify", m.rules);
}

std::string to_json(const std::vector<Notify>& rules) { return write_record(NotifyRules{rules}); }

Result<std::vector<Notify>> parse_notify(std::string_view json) {
  TRY_ASSIGN(NotifyRules read, read_record<NotifyRules>(json, "the job's notify rules", k_lenient_rules, Code::state_unreadable));
  return std::move(read.rules);
}

std::vector<Notice> notices_of(std::string_view event_kind, std::uint64_t attempt) {
  static const NoticeRow k_rows[] = {{"succeeded", {Notice::end}},
                                     {"failed", {Notice::failure, Notice::end}},
                                     {"cancelled", {Notice::end}},
                                     {"attempt_started", {Notice::move}},
                                     {"limit_reached", {Notice::budget}},
                                     {"lost", {Notice::silence}}};
  for (const NoticeRow& row : k_rows)
    if (row.kind == event_kind && (row.notices.front() != Notice::move || attempt > 1)) return row.notices;
  return {};
}

std::optional<Notice> wanted(const Notify& rule, const std::vector<Notice>& notices) {
  for (const Notice notice : notices)
    if (rule.on.empty() || std::ranges::find(rule.on, notice) != rule.on.end()) return notice;
  return std::nullopt;
}

}  // namespace gridctl::job
