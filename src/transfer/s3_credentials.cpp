// SPDX-License-Identifier: Apache-2.0
#include "transfer/s3_credentials.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace gridctl::transfer {
namespace {

constexpr std::uint64_t k_file_max = 1u << 20;  // bytes
constexpr std::size_t k_field_max = 8u << 10;   // bytes; session tokens have 1 to 2 KiB
constexpr std::string_view k_default_region = "us-east-1";

std::optional<std::string> variable(const S3Surroundings& around, std::string_view name) {
  auto value = around.environment(name);
  return value && !value->empty() ? value : std::nullopt;
}

// Returns the settings of one profile in both files; the credentials file wins.
Result<std::map<std::string, std::string>> settings_of(const std::string& profile, const S3Surroundings& around) {
  std::map<std::string, std::string> settings;
  const auto home_file = [&](const char* name) { return (around.home / ".aws" / name).native(); };
  for (const os::Path& path :
       {os::Path(variable(around, "AWS_CONFIG_FILE").value_or(home_file("config"))),
        os::Path(variable(around, "AWS_SHARED_CREDENTIALS_FILE").value_or(home_file("credentials")))}) {
    auto text = os::read_file(path, k_file_max);
    if (!text && text.error().code == Code::not_found) continue;
    if (!text) return std::move(text).error();
    const S3Profiles profiles = parse_s3_profiles(*text);
    if (const auto found = profiles.find(profile); found != profiles.end())
      for (const auto& [name, value] : found->second) settings[name] = value;
  }
  return settings;
}

// Returns the kind of credentials that AWS's own tools would fetch from elsewhere.
std::string_view foreign_kind(const std::map<std::string, std::string>& settings) {
  for (const std::string_view kind :
       {"credential_process", "sso_session", "sso_start_url", "role_arn", "web_identity_token_file"})
    if (settings.contains(std::string(kind))) return kind;
  return {};
}

bool is_field(std::string_view text) {
  return !text.empty() && text.size() <= k_field_max &&
         std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7F; });
}

Result<S3Credentials> from_profile(const std::string& profile, const std::map<std::string, std::string>& settings) {
  const auto value = [&](const char* name) {
    const auto found = settings.find(name);
    return found == settings.end() ? std::string{} : found->second;
  };
  S3Credentials found{value("aws_access_key_id"), value("aws_secret_access_key"), value("aws_session_token")};
  if (!found.access_key.empty() && !found.secret_key.empty()) return found;
  const std::string named = "the profile '" + sanitize(profile, 100) + "'";
  if (const std::string_view kind = foreign_kind(settings); !kind.empty())
    return make_error(
        Code::auth_refused,
        named + " gets its credentials by " + std::string(kind) + ", which gridctl does not support",
        "eval \"$(aws configure export-credentials --profile " + shell_quote(profile) + " --format env)\"");
  return make_error(Code::auth_refused,
                    "no credentials for S3: neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, nor " + named +
                        " of ~/.aws/credentials",
                    "aws configure" + (profile == "default" ? std::string{} : " --profile " + shell_quote(profile)));
}

}  // namespace

S3Surroundings s3_surroundings() { return {os::environment, os::home_directory()}; }

Result<S3Login> find_s3_login(const S3Remote& remote, const S3Surroundings& around) {
  const std::string profile =
      !remote.profile.empty()
          ? remote.profile
          : variable(around, "AWS_PROFILE").value_or(variable(around, "AWS_DEFAULT_PROFILE").value_or("default"));
  S3Login login;
  const auto key = variable(around, "AWS_ACCESS_KEY_ID"), secret = variable(around, "AWS_SECRET_ACCESS_KEY");
  const bool by_environment = remote.profile.empty() && key && secret;
  std::map<std::string, std::string> settings;
  if (!by_environment || remote.region.empty()) {
    TRY_ASSIGN(settings, settings_of(profile, around));
  }
  if (by_environment) {
    login.credentials = {*key, *secret, variable(around, "AWS_SESSION_TOKEN").value_or("")};
  } else {
    TRY_ASSIGN(login.credentials, from_profile(profile, settings));
  }
  const S3Credentials& found = login.credentials;
  if (!is_field(found.access_key) || !is_field(found.secret_key) ||
      !(found.session_token.empty() || is_field(found.session_token)))
    return make_error(Code::auth_refused,
                      "the credentials for S3 are invalid: they contain blanks or other invalid bytes");
  const auto configured = settings.find("region");
  login.region = !remote.region.empty()
                     ? remote.region
                     : variable(around, "AWS_REGION")
                           .value_or(variable(around, "AWS_DEFAULT_REGION")
                                         .value_or(configured != settings.end() ? configured->second
                                                                                : std::string(k_default_region)));
  if (!is_s3_region(login.region))
    return make_error(Code::usage, "'" + sanitize(login.region, 60) + "' is not a valid S3 region");
  return login;
}

S3Profiles parse_s3_profiles(std::string_view text) {
  S3Profiles profiles;
  std::map<std::string, std::string>* section = nullptr;
  for (const std::string& raw : split_lines(text)) {
    const std::string_view line = trim(raw);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (raw.front() == '[') {
      const std::size_t end = line.find(']');
      std::string_view name = trim(line.substr(1, end == std::string_view::npos ? line.size() - 1 : end - 1));
      if (name.starts_with("profile ")) name = trim(name.substr(8));
      section = &profiles[std::string(name)];
      continue;
    }
    const std::size_t equals = line.find('=');
    if (raw.front() == ' ' || raw.front() == '\t' || equals == std::string_view::npos || section == nullptr) continue;
    (*section)[lower(trim(line.substr(0, equals)))] = std::string(trim(line.substr(equals + 1)));
  }
  return profiles;
}

}  // namespace gridctl::transfer
