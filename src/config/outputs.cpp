// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "config/job_file.hpp"
#include "config/job_parts.hpp"

namespace gridctl::config {

namespace {
using namespace std::chrono_literals;
constexpr Duration k_sync_min = 10s, k_sync_max = 24h * 30;
constexpr std::size_t k_outputs_max = 256;  // the agent takes no more

Result<job::Output> read_output(SourceFile& source, const Node& node, const std::string& path) {
  job::Output output;
  std::string text = node.text;
  if (node.kind == Node::Kind::map) {
    TRY_ASSIGN(const Fields fields, Fields::open(source, node, path, {"from", "when", "sync"}));
    text.clear();
    TRY(fields.text("from", text));
    if (text.empty()) return fields.error("from", "missing: the path or pattern");
    std::string when = "always";
    TRY(fields.text("when", when));
    if (when != "always" && when != "success" && when != "failure")
      return fields.expected("when", "always, success or failure" + suggestion(when, {"always", "success", "failure"}));
    output.when = when == "success"   ? job::OutputWhen::success
                  : when == "failure" ? job::OutputWhen::failure
                                      : job::OutputWhen::always;
    TRY(fields.duration("sync", k_sync_min, k_sync_max, output.sync));
  } else if (node.kind != Node::Kind::scalar) {
    return error_at(source.file, node.at, "key '" + path + "': expected a path, got " + shown(node));
  }
  const Result<std::string> pattern = output_pattern(text);
  if (!pattern) return error_at(source.file, node.at, "key '" + path + "': " + pattern.error().message);
  output.from = *pattern;
  return output;
}
}  // namespace

Result<std::string> output_pattern(std::string_view text) {
  if (text.starts_with("./")) text.remove_prefix(2);
  if (text.empty() || text.size() > 1024) return make_error(Code::usage, "expected a path or pattern");
  if (text.starts_with('~') || text.starts_with('$'))
    return make_error(Code::usage, "'" + excerpt(std::string(text)) +
                                       "' is not expanded here; outputs are relative to the working directory");
  if (text.starts_with('/'))
    return make_error(Code::usage, "'" + excerpt(std::string(text)) + "' must be relative to the working directory");
  for (const std::string& part : split(text, '/'))
    if (part == "..")
      return make_error(Code::usage, "'" + excerpt(std::string(text)) + "' is outside the working directory");
  return std::string(text);
}

Result<void> read_outputs(const Fields& root, std::vector<job::Output>& into) {
  const Node* const value = root.find("outputs");
  if (value == nullptr) return {};
  if (value->kind == Node::Kind::map)
    return root.expected("outputs", "a list such as [result.txt, logs/*.csv] (SkyPilot's mapping names a bucket)");
  if (value->kind == Node::Kind::scalar) {
    TRY_ASSIGN(job::Output one, read_output(root.source(), *value, "outputs"));
    into = {std::move(one)};
    return {};
  }
  if (value->items.size() > k_outputs_max) return root.error("outputs", "more than 256 patterns");
  for (std::size_t i = 0; i < value->items.size(); ++i) {
    TRY_ASSIGN(job::Output one,
               read_output(root.source(), value->items[i], "outputs[" + std::to_string(i) + "]"));
    into.push_back(std::move(one));
  }
  return {};
}

}  // namespace gridctl::config
