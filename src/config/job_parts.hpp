// SPDX-License-Identifier: Apache-2.0
// Declares the parts of the job file's reader. Inside config only.
#pragma once

#include <map>
#include <string>

#include "config/fields.hpp"
#include "config/job_file.hpp"

namespace gridctl::config {

// Names a key that another tool, or an earlier version, would read, and says why it is not read here.
struct Remark {
  std::string_view key, why;
};

// policies.cpp
[[nodiscard]] Result<void> read_checkpoint(SourceFile& source, const Node& node,
                                           const std::map<std::string, std::string>& envs,
                                           job::CheckpointPolicy& into);
[[nodiscard]] Result<void> read_recovery(SourceFile& source, const Node& node, job::RecoveryPolicy& into);
[[nodiscard]] Result<void> read_constraints(SourceFile& source, const Node& node, job::Constraints& into);
[[nodiscard]] Result<void> read_replication(SourceFile& source, const Node& node, job::Spec& spec);
[[nodiscard]] Result<void> read_container(SourceFile& source, const Node& node, std::optional<bool>& root_writable);
[[nodiscard]] Result<void> read_budget(SourceFile& source, const Node& node, std::optional<double>& total);
[[nodiscard]] Result<void> read_deadline(const Fields& root, std::optional<job::Deadline>& into);
[[nodiscard]] Result<void> check_recovery(const Fields& root, const job::RecoveryPolicy& policy);

// In gang.cpp. Reads `num_nodes`, `spares`, `ranks_per_node`.
[[nodiscard]] Result<void> read_gang(const Fields& root, job::Spec& spec);

// In variants.cpp. Call it after image, commands and resources, which a variant inherits.
[[nodiscard]] Result<void> read_variants(const Fields& root, const Context& context, job::Spec& spec);

// In workload.cpp. Reads `class`, `backend` and `workload` of the file itself.
[[nodiscard]] Result<void> read_workload(const Fields& root, job::Workload& into);
[[nodiscard]] Result<void> read_launcher(const Fields& root, job::Launcher& into);

// In tasks.cpp. Reads `tasks` and `finally`.
[[nodiscard]] Result<void> read_tasks(const Fields& root, const Context& context, ParsedJob& job);

// In service.cpp. Call it after ports, policies and gang.
[[nodiscard]] Result<void> read_service(const Fields& root, const Context& context, job::Spec& spec);

// In compose.cpp. Reads a docker-compose file with one service as the equivalent job file.
[[nodiscard]] bool is_compose(const Node& root);
[[nodiscard]] Result<Node> job_of_compose(SourceFile& source, const Context& context, const Node& root);

// In condor.cpp. Reads an HTCondor submit file as the equivalent job file.
[[nodiscard]] bool is_condor(std::string_view text);
[[nodiscard]] Result<Node> job_of_condor(SourceFile& source, std::string_view text);

// In sbatch.cpp. Reads a Slurm batch script as the equivalent job file.
[[nodiscard]] bool is_sbatch(std::string_view text);
[[nodiscard]] Result<Node> job_of_sbatch(SourceFile& source, std::string_view text);

// In ports.cpp. Reads those of the file itself, or of `resources`.
[[nodiscard]] Result<void> read_ports(const Fields& fields, job::Spec& spec);

// notify.cpp
[[nodiscard]] Result<void> read_notify(const Fields& root, std::vector<job::Notify>& into);

// outputs.cpp
[[nodiscard]] Result<void> read_outputs(const Fields& root, std::vector<job::Output>& into);

// In resources.cpp. `image` receives resources.image_id.
[[nodiscard]] Result<void> read_resources(SourceFile& source, const Node& node, const Context& context, job::Spec& spec,
                                          std::string& image);
// In instance_types.cpp. Returns "A100:8" for "p4d.24xlarge", "A100" if the number is not known, "" for a type with
// GPUs of unknown model; nullopt: a type without GPUs, or an unknown one. gridctl runs on registered hosts, where a
// type has no meaning; but a file that requests GPUs only by a type must not land on a host without any.
[[nodiscard]] std::optional<std::string> gpus_of_instance(std::string_view type);
[[nodiscard]] Result<double> parse_cpus(std::string_view text);        // "4", "4+"
[[nodiscard]] Result<std::uint64_t> parse_gib(std::string_view text);  // "16", "16+" GiB, or "16GB"

// In paths.cpp. Makes a local path absolute and normal: "~/" and paths relative to the job file's directory.
[[nodiscard]] std::string resolve_path(std::string_view path, const Context& context);
// Normalises a path inside the job for the agent: "./out//a" becomes "out/a"; a final '/' stays and means a directory.
// Errors are Code::usage without a place.
[[nodiscard]] Result<std::string> job_path(std::string_view text);
// Expands $NAME and ${NAME} of the job's own envs, as SkyPilot does; others stay.
[[nodiscard]] std::string expand_envs(std::string_view text, const std::map<std::string, std::string>& envs);
// Errors are Code::usage without a place.
[[nodiscard]] Result<void> set_image(std::string_view text, const Context& context, job::Spec& spec);
[[nodiscard]] Result<std::string> checked_workdir(std::string_view text, const Context& context);
[[nodiscard]] Result<void> read_file_mounts(SourceFile& source, const Node& node, const Context& context, job::Spec& spec);

// In job_file.cpp. Reads envs and secrets of the file and of the command line.
[[nodiscard]] Result<void> read_variables(const Fields& root, const Context& context, ParsedJob& job);
[[nodiscard]] Result<void> apply_overrides(const Context& context, ParsedJob& job);
[[nodiscard]] Result<void> check_env_name(std::string_view name);

}  // namespace gridctl::config
