// SPDX-License-Identifier: Apache-2.0
// Reads `notify`: whom to notify about the job. One rule, or a list of them.
#include "config/job_parts.hpp"
#include "job/notify.hpp"

namespace gridctl::config {

namespace {
constexpr std::size_t k_rules_max = 16;

Result<job::Notify> read_rule(SourceFile& source, const Node& node, const std::string& path) {
  TRY_ASSIGN(const Fields fields, Fields::open(source, node, path, {"on", "command", "webhook", "mail"}));
  job::Notify rule;
  std::vector<std::string> words;
  TRY(fields.words("on", words));
  for (const std::string& word : words) {
    const std::optional<job::Notice> notice = job::notice_name.find(word);
    if (!notice) return fields.expected("on", "one or more of " + job::notice_name.choices());
    rule.on.push_back(*notice);
  }
  TRY(fields.text("command", rule.command));
  TRY(fields.text("webhook", rule.webhook));
  TRY(fields.text("mail", rule.mail));
  if (!rule.webhook.empty() && !rule.webhook.starts_with("http://") && !rule.webhook.starts_with("https://"))
    return fields.expected("webhook", "a URL that begins with http:// or https://");
  if (!rule.mail.empty() && (rule.mail.find('@') == std::string::npos || rule.mail.find_first_of(" \r\n,<>") != std::string::npos))
    return fields.expected("mail", "one address such as ada@example.org");
  if (rule.command.empty() && rule.webhook.empty() && rule.mail.empty())
    return error_at(source.file, node.at, "key '" + path + "': expected command, webhook or mail");
  return rule;
}
}  // namespace

Result<void> read_notify(const Fields& root, std::vector<job::Notify>& into) {
  const Node* const value = root.find("notify");
  if (value == nullptr) return {};
  if (value->kind == Node::Kind::scalar) return root.expected("notify", "a mapping such as {webhook: https://..., on: [failure]}");
  std::vector<job::Notify> rules;
  for (const Node& node : items_of(*value)) {
    TRY_ASSIGN(job::Notify rule, read_rule(root.source(), node, "notify"));
    rules.push_back(std::move(rule));
  }
  if (rules.size() > k_rules_max) return root.error("notify", "at most " + std::to_string(k_rules_max) + " rules");
  into = std::move(rules);
  return {};
}

}  // namespace gridctl::config
