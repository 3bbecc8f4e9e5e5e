// SPDX-License-Identifier: Apache-2.0
#include "cmd/host_words.hpp"

#include <filesystem>

#include "base/text.hpp"
#include "sched/catalogue/gpu_spec.hpp"

namespace gridctl::cmd {

Result<registry::Provider> provider_to_reach(const Parsed& parsed, WallTime now) {
  TRY(check_name("provider", parsed.positionals[0]));
  registry::Provider provider;
  provider.name = HostName{parsed.positionals[0]};
  for (const std::string& key : parsed.values("identity"))
    provider.identities.push_back(std::filesystem::absolute(key).string());
  provider.jump = parsed.value("jump");
  provider.registered_at = now;
  return provider;
}

Result<void> describe(const Parsed& parsed, registry::Provider& provider) {
  TRY_ASSIGN(const std::optional<double> price, parsed.number("price"));
  if (price) provider.price_per_hour = *price;
  if (parsed.has("gpu")) {
    if (!parsed.value("gpu").empty()) TRY(sched::parse_gpu_spec(parsed.value("gpu")));
    provider.declared_gpus = parsed.value("gpu");
  }
  if (parsed.has("region")) provider.region = parsed.value("region");
  if (parsed.has("site")) provider.site = parsed.value("site");
  if (parsed.has("class")) provider.host_class = parsed.value("class");
  for (const std::string& label : parsed.values("label")) {
    const std::size_t equals = label.find('=');
    if (equals == std::string::npos || equals == 0)
      return make_error(Code::usage, "--label " + sanitize(label) + " is not of the form KEY=VALUE");
    const std::string key = label.substr(0, equals), value = label.substr(equals + 1);
    if (value.empty()) provider.labels.erase(key);
    else provider.labels[key] = value;
  }
  return {};
}

}  // namespace gridctl::cmd
