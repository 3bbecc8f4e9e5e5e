// SPDX-License-Identifier: Apache-2.0
#include "control/follow/drilled.hpp"

#include "base/text.hpp"
#include "crypto/sha256.hpp"

namespace gridctl::control {

std::string resume_fingerprint(const job::Spec& spec) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += std::to_string(part.size()) + ":" + part; };
  for (const std::string* part : {&spec.image, &spec.setup, &spec.run, &spec.resume_run, &spec.checkpoint.path})
    add(*part);
  if (!spec.checkpoint.whole_when.empty()) add(spec.checkpoint.whole_when);
  for (const job::Variant& variant : spec.variants)
    for (const std::string* part : {&variant.image, &variant.setup, &variant.run, &variant.resume_run}) add(*part);
  return to_hex(crypto::sha256(as_bytes(text)));
}

Result<bool> passed_drill(registry::JobRecords& registry, const job::Spec& spec) {
  TRY_ASSIGN(const std::optional<registry::Drill> drill, registry.drill(spec.name));
  return drill && is_one_of(drill->verdict, {"yes"}) && drill->fingerprint == resume_fingerprint(spec);
}

}  // namespace gridctl::control
