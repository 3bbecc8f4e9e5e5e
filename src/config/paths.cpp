// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "base/text.hpp"
#include "config/job_parts.hpp"

namespace gridctl::config {

namespace {
constexpr std::size_t k_path_max = 4096;
constexpr std::size_t k_job_path_max = 1024;  // the agent takes no longer ones
constexpr std::size_t k_image_max = 512;
constexpr std::size_t k_mounts_max = 256;

bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool is_remote(std::string_view text) { return text.find("://") != std::string_view::npos; }

bool has_dot_dot(std::string_view path) {
  const auto parts = split(path, '/');
  return std::ranges::find(parts, "..") != parts.end();
}

bool is_archive_path(std::string_view text) {
  const bool path =
      text.starts_with("./") || text.starts_with("../") || text.starts_with("/") || text.starts_with("~/");
  const bool suffix =
      text.ends_with(".tar") || text.ends_with(".tar.gz") || text.ends_with(".tgz") || text.ends_with(".tar.zst");
  return path || suffix;
}

// Checks where a mount may appear in the job.
std::string target_problem(std::string_view target) {
  std::string_view plain = target;
  while (plain.size() > 1 && plain.ends_with('/')) plain.remove_suffix(1);
  for (std::string_view taken : {"/", ".", "~", "/proc", "/sys", "/dev", "/etc", "/usr", "/bin", "/lib"})
    if (plain == taken) return "'" + std::string(taken) + "' of the job cannot be replaced";
  for (std::string_view kernel : {"/proc/", "/sys/", "/dev/"})
    if (plain.starts_with(kernel)) return "jobs cannot mount anything under " + std::string(kernel);
  return "";
}
}  // namespace

Result<std::string> job_path(std::string_view text) {
  const auto is_odd = [](char c) {
    return static_cast<unsigned char>(c) < ' ' || c == 0x7F || c == ',' || c == '"' || c == '\\';
  };
  if (text.empty() || text.size() > k_job_path_max || is_remote(text) || std::ranges::any_of(text, is_odd))
    return make_error(Code::usage,
                      "expected a path in the job without quotes, commas and backslashes, got '" + excerpt(text) + "'");
  if (has_dot_dot(text))
    return make_error(Code::usage, "a path in the job may not contain '..', got '" + excerpt(text) + "'");
  std::vector<std::string> parts;
  for (const std::string& part : split(text, '/'))
    if (!part.empty() && part != ".") parts.push_back(part);
  const std::string plain = (text[0] == '/' ? "/" : "") + join(parts, "/");
  return plain.empty() ? "." : text.ends_with('/') && plain != "/" ? plain + "/" : plain;
}

std::string resolve_path(std::string_view path, const Context& context) {
  std::string text(path);
  if (text == "~" || text.starts_with("~/")) {
    const auto home = context.environment ? context.environment("HOME") : std::nullopt;
    if (home) text = *home + text.substr(1);
  }
  const auto within = [&text](const std::string& directory) {
    std::string normal = (std::filesystem::path(directory) / text).lexically_normal().string();
    while (normal.size() > 1 && normal.back() == '/') normal.pop_back();
    return normal;
  };
  const std::string beside = within(context.base_directory);
  if (context.caller_directory.empty() || context.path_kind(beside) != PathKind::missing) return beside;
  const std::string elsewhere = within(context.caller_directory);
  return context.path_kind(elsewhere) == PathKind::missing ? beside : elsewhere;
}

std::string expand_envs(std::string_view text, const std::map<std::string, std::string>& envs) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const bool braced = text.substr(i).starts_with("${");
    std::size_t end = i + (braced ? 2 : 1);
    const std::size_t first = end;
    while (text[i] == '$' && end < text.size() && is_name_char(text[end])) ++end;
    const auto found = envs.find(std::string(text.substr(first, end - first)));
    const bool closed = !braced || (end < text.size() && text[end] == '}');
    if (text[i] != '$' || end == first || !closed || found == envs.end() || out.size() > k_path_max) {
      out += text[i++];
      continue;
    }
    out += found->second;
    i = end + (braced ? 1 : 0);
  }
  return out;
}

Result<void> set_image(std::string_view text, const Context& context, job::Spec& spec) {
  if (text.starts_with("docker:")) text.remove_prefix(7);
  if (text.empty() || text.size() > k_image_max)
    return make_error(Code::usage,
                      "expected an image reference or the path of an archive, got '" + excerpt(text) + "'");
  spec.image_is_archive = is_archive_path(text);
  if (spec.image_is_archive) {
    spec.image = resolve_path(text, context);
    if (context.path_kind(spec.image) == PathKind::file) return {};
    return make_error(Code::usage, "no such image archive: '" + excerpt(spec.image) + "'");
  }
  const auto allowed = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::string_view("._-/:@").find(c) != std::string_view::npos;
  };
  if (!std::isalnum(static_cast<unsigned char>(text[0])) || !std::ranges::all_of(text, allowed) || is_remote(text))
    return make_error(Code::usage,
                      "expected an image reference such as pytorch/pytorch:2.4.0 or the path of an "
                      "archive such as ./image.tar, got '" +
                          excerpt(text) + "'");
  spec.image = std::string(text);
  return {};
}

Result<std::string> checked_workdir(std::string_view text, const Context& context) {
  if (is_remote(text) || text.starts_with("git@"))
    return make_error(Code::usage, "a working directory from git is not supported yet; clone it first");
  if (text.empty() || text.size() > k_path_max) return make_error(Code::usage, "expected a local directory");
  std::string path = resolve_path(text, context);
  const PathKind kind = context.path_kind(path);
  if (kind == PathKind::directory) return path;
  return make_error(Code::usage, (kind == PathKind::missing ? "no such directory: '" : "not a directory: '") +
                                     excerpt(path) + "'");
}

Result<void> read_file_mounts(SourceFile& source, const Node& node, const Context& context, job::Spec& spec) {
  if (node.kind == Node::Kind::null) return {};
  const std::string head = "key 'file_mounts': ";
  if (node.kind != Node::Kind::map)
    return error_at(source.file, node.at, head + "expected paths in the job with local paths, got " + shown(node));
  if (node.keys.size() > k_mounts_max)
    return error_at(source.file, node.at, head + "more than " + std::to_string(k_mounts_max) + " mounts");
  std::set<std::string> targets;
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const Node& value = node.items[i];
    const std::string key = "key 'file_mounts." + excerpt(node.keys[i].text) + "': ";
    const auto target_path = job_path(expand_envs(node.keys[i].text, spec.envs));
    if (!target_path) return error_at(source.file, node.keys[i].at, key + target_path.error().message);
    const std::string& target = *target_path;
    if (!targets.insert(target.ends_with('/') ? target.substr(0, target.size() - 1) : target).second)
      return error_at(source.file, node.keys[i].at, key + "is mounted twice");
    if (const std::string problem = target_problem(target); !problem.empty())
      return error_at(source.file, node.keys[i].at, key + problem);
    if (value.kind == Node::Kind::map)
      return error_at(source.file, value.at, key + "bucket mounts are not supported yet; give a local path");
    if (value.kind != Node::Kind::scalar || value.text.empty() || value.text.size() > k_path_max)
      return error_at(source.file, value.at, key + "expected a local path, got " + shown(value));
    const std::string local = expand_envs(value.text, spec.envs);
    if (is_remote(local))
      return error_at(source.file, value.at,
                      key + "buckets and URLs are not supported yet; give a local path, got " + shown(value));
    const std::string path = resolve_path(local, context);
    if (context.path_kind(path) == PathKind::missing)
      return error_at(source.file, value.at, key + "no such file or directory: '" + excerpt(path) + "'");
    spec.file_mounts.push_back({target, path});
  }
  return {};
}

}  // namespace gridctl::config
