// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "wire/fields.hpp"

namespace gridctl::wire {

using nlohmann::json;

namespace {
constexpr std::size_t k_mounts_max = 1000;  // trees of one attempt
constexpr std::size_t k_gpus_max = 256;     // as many as an inventory may list

json optional_hex(const std::optional<Digest>& digest) { return digest ? json(to_hex(*digest)) : json(nullptr); }

EngineKind read_engine_kind(const Fields& fields) {
  const Result<EngineKind> kind = parse_engine(fields.text("engine"));
  if (!kind) fields.fail("names an unknown engine");
  return *kind;
}

TreeRef read_mount(const Fields& fields) { return {fields.digest("root"), fields.text("target")}; }
}  // namespace

json spec_json(const AttemptSpec& spec) {
  json mounts = json::array();
  for (const TreeRef& mount : spec.mounts) mounts.push_back({{"root", to_hex(mount.root)}, {"target", mount.target}});
  json out{{"job", spec.job.value},
           {"job_name", spec.job_name},
           {"attempt", spec.attempt.value},
           {"epoch", spec.epoch.value},
           {"engine", engine_name(spec.engine)},
           {"image", spec.image},
           {"image_archive", optional_hex(spec.image_archive)},
           {"workdir", optional_hex(spec.workdir)},
           {"mounts", std::move(mounts)},
           {"restore", optional_hex(spec.restore)},
           {"restore_name", spec.restore_name},
           {"checkpoint_path", spec.checkpoint_path},
           {"checkpoints", spec.checkpoints},
           {"checkpoint_min_interval_ms", to_ms(spec.checkpoint_min_interval)},
           {"setup", spec.setup},
           {"run", spec.run},
           {"envs", spec.envs},
           {"secret_names", spec.secret_names},
           {"gpu_uuids", spec.gpu_uuids},
           {"cpus", spec.cpus},
           {"memory_bytes", spec.memory_bytes},
           {"stop_grace_ms", to_ms(spec.stop_grace)},
           {"log_ring_bytes", spec.log_ring_bytes},
           {"disk_bytes_max", spec.disk_bytes_max}};
  if (spec.upload_limit > 0) out["upload_limit"] = spec.upload_limit;
  if (!spec.whole_when.empty()) out["whole_when"] = spec.whole_when;
  if (spec.checkpoint_by_marker) out["checkpoint_by_marker"] = true;  // newer than the others: absent means no
  if (spec.interval_signal > 0) out["interval_signal"] = spec.interval_signal;
  if (spec.gang) out["gang"] = gang_json(*spec.gang);
  return out;
}

AttemptSpec read_spec(const Fields& fields) {
  AttemptSpec spec;
  spec.job = fields.job();
  spec.job_name = fields.text("job_name");
  spec.attempt = {fields.number("attempt")};
  spec.epoch = fields.epoch();
  spec.engine = read_engine_kind(fields);
  spec.image = fields.text("image");
  spec.image_archive = fields.optional_digest("image_archive");
  spec.workdir = fields.optional_digest("workdir");
  spec.mounts = fields.list("mounts", k_mounts_max, &read_mount);
  spec.restore = fields.optional_digest("restore");
  spec.restore_name = fields.text("restore_name");
  spec.checkpoint_path = fields.text("checkpoint_path");
  if (fields.has("upload_limit")) spec.upload_limit = fields.number("upload_limit");
  spec.checkpoint_by_marker = fields.has("checkpoint_by_marker") && fields.flag("checkpoint_by_marker");
  if (fields.has("whole_when")) spec.whole_when = fields.text("whole_when", k_glob_max);
  spec.checkpoints = fields.flag("checkpoints");
  if (fields.has("interval_signal")) spec.interval_signal = static_cast<int>(fields.number("interval_signal", 31));
  spec.checkpoint_min_interval = fields.duration("checkpoint_min_interval_ms");
  spec.setup = fields.text("setup", k_script_max);
  spec.run = fields.text("run", k_script_max);
  spec.envs = fields.text_map("envs");
  spec.secret_names = fields.texts("secret_names");
  spec.gpu_uuids = fields.texts("gpu_uuids", k_gpus_max);
  spec.cpus = fields.real("cpus");
  spec.memory_bytes = fields.number("memory_bytes");
  spec.stop_grace = fields.duration("stop_grace_ms");
  spec.log_ring_bytes = fields.number("log_ring_bytes");
  spec.disk_bytes_max = fields.number("disk_bytes_max");
  if (fields.has("gang")) spec.gang = read_gang(fields.object("gang"));
  return spec;
}

std::string encode(const AttemptSpec& spec) { return dump(spec_json(spec)); }

Result<AttemptSpec> parse_attempt_spec(std::string_view text) { return parse_message(text, "attempt", &read_spec); }

}  // namespace gridctl::wire
