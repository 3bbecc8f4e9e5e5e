// SPDX-License-Identifier: Apache-2.0
#include "control/serve/gateway_files.hpp"

#include <nlohmann/json.hpp>

namespace gridctl::control {

namespace {
constexpr std::uint64_t k_info_max = 64 * 1024;  // bytes
}

GatewayFiles gateway_files(const Paths& paths, const JobId& service) { return {paths.root / "services" / service.value}; }

std::string gateway_url(const GatewayInfo& info) { return "http://127.0.0.1:" + std::to_string(info.port); }

Result<void> save_gateway(const GatewayFiles& files, const GatewayInfo& info) {
  const nlohmann::json json{{"pid", info.pid}, {"port", info.port}, {"trouble", info.trouble}};
  return os::write_file_atomically(files.info(), json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::optional<GatewayInfo> read_gateway(const GatewayFiles& files) {
  const Result<std::string> text = os::read_file(files.info(), k_info_max);
  if (!text) return std::nullopt;
  const nlohmann::json json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  GatewayInfo info;
  if (json.contains("pid") && json["pid"].is_number_integer()) info.pid = json["pid"].get<int>();
  if (json.contains("port") && json["port"].is_number_unsigned()) info.port = json["port"].get<std::uint16_t>();
  if (json.contains("trouble") && json["trouble"].is_string()) info.trouble = json["trouble"].get<std::string>();
  return info;
}

bool gateway_lives(const GatewayFiles& files) {
  if (!os::exists(files.lock())) return false;
  const auto lock = os::FileLock::try_acquire(files.lock());
  return lock && !*lock;
}

}  // namespace gridctl::control
