// SPDX-License-Identifier: Apache-2.0
#include "config/job_file.hpp"

#include <algorithm>
#include <cctype>

#include "base/text.hpp"
#include "config/job_parts.hpp"
#include "sched/catalogue/gpu_spec.hpp"

namespace gridctl::config {

namespace {
using namespace std::chrono_literals;
constexpr std::size_t k_variables_max = 900;          // envs and secrets, each; the agent takes 1024 with our own
constexpr std::size_t k_value_bytes_max = 64 * 1024;  // execve takes 128 KiB per variable

// Lists keys of SkyPilot for things that this version does not support.
constexpr Remark k_unsupported[] = {
    {"pool", "hosts are not a pool of workers: omit it, and give the job 'num_jobs'"},
    {"volumes", "volumes are not supported yet; use file_mounts"},
    {"storage_mounts", "bucket mounts are not supported yet"},
    {"inputs", "inputs are not supported; use file_mounts"},
};

std::string stem_of(const std::string& file) {
  std::string name = file.substr(file.find_last_of('/') + 1);
  if (name == "-" || name == "standard input") return "job";
  for (std::string_view suffix : {".yaml", ".yml", ".sky", ".json", ".sub", ".submit", ".sh", ".sbatch", ".slurm", ".job"})
    if (name.size() > suffix.size() && name.ends_with(suffix)) name.resize(name.size() - suffix.size());
  return name;
}

Result<void> read_name(const Fields& root, job::Spec& spec) {
  TRY(root.text("name", spec.name));
  if (spec.name.empty()) {
    if (root.find("name") != nullptr) return root.expected("name", "a name");
    spec.name = to_name(stem_of(root.source().file));
    return {};
  }
  const auto checked = check_name("job", spec.name);
  if (checked) return {};
  const bool harmless = spec.name.size() <= 63 && std::ranges::all_of(spec.name, [](char c) {
                          return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
                        });
  const std::string name = to_name(spec.name);
  if (!harmless)
    return root.expected("name", "at most 63 lower-case letters, digits and inner '-', e.g. '" + name + "'");
  root.source().warn(root.at("name"), "key 'name': '" + spec.name + "' is written '" + name + "'");
  spec.name = name;
  return {};
}

Result<const Node*> mapping(const Fields& root, std::string_view key) {
  const Node* value = root.find(key);
  if (value != nullptr && value->kind != Node::Kind::map) return root.expected(key, "a mapping of names to values");
  if (value != nullptr && value->keys.size() > k_variables_max)
    return root.error(key, "more than " + std::to_string(k_variables_max) + " variables");
  return value;
}

// Parses --env and --secret: "K=V", or "K" for the value in this environment.
Result<std::pair<std::string, std::string>> assignment(std::string_view option, std::string_view text,
                                                       const Context& context) {
  const std::size_t equals = text.find('=');
  std::string name(text.substr(0, equals));
  if (const auto checked = check_env_name(name); !checked)
    return make_error(Code::usage, std::string(option) + ": " + checked.error().message);
  if (equals != std::string_view::npos) return std::pair{std::move(name), std::string(text.substr(equals + 1))};
  const auto value = context.environment ? context.environment(name) : std::nullopt;
  if (!value)
    return make_error(Code::usage, std::string(option) + ": " + name + " is not set in this environment; " +
                                       (option == "--secret" ? "set it there, where it stays hidden"
                                                             : "write " + std::string(option) + " " + name + "=VALUE"));
  return std::pair{std::move(name), *value};
}

// Returns the value of a key of `envs` or `secrets`: text, or nothing for null.
Result<std::optional<std::string>> variable(SourceFile& source, std::string_view key, const Key& name, const Node& value) {
  const std::string head = "key '" + std::string(key) + "." + excerpt(name.text) + "': ";
  if (const auto checked = check_env_name(name.text); !checked)
    return error_at(source.file, name.at, head + checked.error().message);
  if (value.kind == Node::Kind::null) return std::optional<std::string>{};
  if (value.kind != Node::Kind::scalar)
    return error_at(source.file, value.at, head + "expected text, got " + shown(value));
  if (value.text.size() > k_value_bytes_max)
    return error_at(source.file, value.at, head + "longer than 64 KiB; use file_mounts");
  return std::optional<std::string>{value.text};
}

Result<void> read_envs(const Fields& root, const Context& context, job::Spec& spec) {
  std::map<std::string, std::string> given;
  for (const std::string& text : context.overrides.envs) {
    TRY_ASSIGN(auto pair, assignment("--env", text, context));
    given.insert_or_assign(std::move(pair.first), std::move(pair.second));
  }
  TRY_ASSIGN(const Node* envs, mapping(root, "envs"));
  for (std::size_t i = 0; envs != nullptr && i < envs->keys.size(); ++i) {
    const Key& name = envs->keys[i];
    TRY_ASSIGN(const auto value, variable(root.source(), "envs", name, envs->items[i]));
    if (!value && given.count(name.text) == 0)
      return error_at(root.source().file, name.at,
                      "key 'envs." + name.text + "': has no value; give --env " + name.text + "=VALUE");
    spec.envs[name.text] = value.value_or("");
  }
  for (auto& [name, value] : given) spec.envs[name] = value;
  return {};
}

Result<void> read_secrets(const Fields& root, const Context& context, ParsedJob& job) {
  for (const std::string& text : context.overrides.secrets) {
    TRY_ASSIGN(auto pair, assignment("--secret", text, context));
    if (text.find('=') != std::string::npos)
      root.source().warnings.push_back("--secret " + pair.first + "=… shows its value to everyone on this machine who "
                                       "may list processes; set " + pair.first + " in the environment and write "
                                       "--secret " + pair.first);
    job.secrets.insert_or_assign(std::move(pair.first), std::move(pair.second));
  }
  TRY_ASSIGN(const Node* secrets, mapping(root, "secrets"));
  for (std::size_t i = 0; secrets != nullptr && i < secrets->keys.size(); ++i) {
    const Key& name = secrets->keys[i];
    TRY_ASSIGN(const auto literal, variable(root.source(), "secrets", name, secrets->items[i]));
    if (job.secrets.count(name.text) != 0) continue;
    if (literal) {
      root.source().warn(name.at, "key 'secrets." + name.text + "': a secret in a file may leak; write null and set " +
                                      name.text + " in the environment");
      job.secrets[name.text] = *literal;
      continue;
    }
    const auto value = context.environment ? context.environment(name.text) : std::nullopt;
    if (!value)
      return error_at(
          root.source().file, name.at,
          "key 'secrets." + name.text + "': " + name.text + " is not set in this environment; set it and submit again");
    job.secrets[name.text] = *value;
  }
  for (const auto& [name, value] : job.secrets) {
    if (job.spec.envs.count(name) != 0)
      return error_at(root.source().file, root.at("secrets"), "key 'secrets." + name + "': is also in 'envs'");
    job.spec.secrets.push_back(name);
  }
  return {};
}

Result<void> read_image(const Fields& root, const Context& context, const std::string& image_id, job::Spec& spec) {
  if (context.overrides.image) return {};
  std::string image;
  TRY(root.text("image", image));
  if (!image.empty() && !image_id.empty())
    return root.error("image", "means the same as 'resources.image_id'; give one of them");
  const std::string text = expand_envs(image.empty() ? image_id : image, spec.envs);
  if (text.empty() || text == "none") return {};
  const auto set = set_image(text, context, spec);
  if (set) return {};
  const bool ours = !image.empty();
  const Node* resources = root.find("resources");
  const Node* at = ours ? root.find("image") : resources->find("image_id");
  return error_at(root.source().file, at->at,
                  std::string("key '") + (ours ? "image" : "resources.image_id") + "': " + set.error().message);
}

// Reads SkyPilot's workdir: {url, ref}. The host clones it, before `setup`.
Result<void> read_git_workdir(const Fields& root, const Node& node, job::Spec& spec) {
  TRY_ASSIGN(const Fields fields, Fields::open(root.source(), node, "workdir", {"url", "ref"}));
  std::string url, ref;
  TRY(fields.text("url", url));
  TRY(fields.text("ref", ref));
  url = expand_envs(url, spec.envs);
  ref = expand_envs(ref, spec.envs);
  if (url.empty() || url.starts_with('-')) return fields.expected("url", "the address of a git repository");
  if (ref.starts_with('-')) return fields.expected("ref", "a branch, tag or commit");
  std::string clone = "if [ ! -e .git ]; then\n  git clone --quiet " + shell_quote(url) + " .gridctl-clone || exit\n";
  if (!ref.empty()) clone += "  git -C .gridctl-clone checkout --quiet " + shell_quote(ref) + " -- || exit\n";
  clone += "  cp -a .gridctl-clone/. . && rm -rf .gridctl-clone\nfi\n";
  spec.setup = clone + spec.setup;
  fields.source().warn(root.at("workdir"), "key 'workdir': the host clones " + excerpt(url) +
                                               " itself; it needs git and a way there");
  return {};
}

Result<void> read_scripts(const Fields& root, const Context& context, job::Spec& spec) {
  TRY(root.text("setup", spec.setup));
  TRY(root.text("run", spec.run));
  TRY(root.text("resume_run", spec.resume_run));
  if (trim(spec.run).empty() && root.find("variants") == nullptr)
    return root.error("run", "missing: the command to run");
  const Node* workdir = root.find("workdir");
  if (workdir == nullptr) return {};
  if (workdir->kind == Node::Kind::map) return read_git_workdir(root, *workdir, spec);
  std::string text;
  TRY(root.text("workdir", text));
  const auto path = checked_workdir(expand_envs(text, spec.envs), context);
  if (!path) return root.error("workdir", path.error().message);
  spec.workdir = *path;
  return {};
}

Result<void> read_optimize(const Fields& root, job::Optimize& into) {
  std::string word;
  TRY(root.text("optimize", word));
  if (word.empty()) return {};
  const std::optional<job::Optimize> parsed = job::optimize_name.find(word);
  if (!parsed) return root.expected("optimize", "cost, time or reliability");
  into = *parsed;
  return {};
}

Result<void> read_owner(const Fields& root, std::string& into) {
  TRY(root.text("owner", into));
  if (into.empty() || check_name("owner", into)) return {};
  return root.expected("owner", "at most 63 lower-case letters, digits and inner '-'");
}

// `read` gets the result of each of them.
void read_policies(const Fields& root, job::Spec& spec, const std::function<void(Result<void>)>& read) {
  SourceFile& source = root.source();
  if (const Node* value = root.find("checkpoint")) read(read_checkpoint(source, *value, spec.envs, spec.checkpoint));
  if (const Node* value = root.find("recovery")) read(read_recovery(source, *value, spec.recovery));
  read(check_recovery(root, spec.recovery));
  if (const Node* value = root.find("constraints")) read(read_constraints(source, *value, spec.constraints));
  if (const Node* value = root.find("budget")) read(read_budget(source, *value, spec.budget_total));
  if (const Node* value = root.find("replication")) read(read_replication(source, *value, spec));
  read(read_optimize(root, spec.optimize));
  read(root.integer("priority", job::k_priority_min, job::k_priority_max, spec.priority));
  read(read_owner(root, spec.owner));
  read(root.choice("sensitivity", "normal", "private", spec.constraints.is_private));
  read(root.duration("max_duration", 1s, 24h * 3650, spec.max_duration));
  read(read_deadline(root, spec.deadline));
}

Result<Fields> open_root(SourceFile& source, const Node& root, std::vector<Error>& errors) {
  if (root.kind == Node::Kind::null) return error_at(source.file, {}, "the file is empty; it needs at least 'run'");
  if (root.kind == Node::Kind::map)
    for (const Key& key : root.keys)
      for (const Remark& no : k_unsupported)
        if (key.text == no.key)
          errors.push_back(error_at(source.file, key.at, "key '" + key.text + "': " + std::string(no.why)));
  return Fields::open(
      source, root, "",
      {"name",        "resources",   "num_nodes",  "image",        "workdir",    "envs",         "secrets",
       "file_mounts", "setup",       "run",        "resume_run",   "checkpoint", "recovery",     "constraints",
       "optimize",    "sensitivity", "budget",     "max_duration", "config",     "experimental", "event_callback",  //
       "class",       "backend",     "launcher",   "tasks",        "workload",   "variants",     "deadline",
       "priority",    "owner",       "replication", "spares",     "ranks_per_node", "service",  "pool",         "volumes",
       "storage_mounts", "inputs",   "outputs",  "container",   "ports",   "finally",        "notify",    "num_jobs"},
      &errors);
}
}  // namespace

Result<void> check_env_name(std::string_view name) {
  const auto allowed = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  const bool plain = !name.empty() && name.size() <= 255 && std::ranges::all_of(name, allowed) &&
                     !is_digit(name[0]);
  if (!plain) return make_error(Code::usage, "expected a name of letters, digits and '_', got '" + excerpt(name) + "'");
  if (name.starts_with("GRIDCTL_"))
    return make_error(Code::usage, "names beginning with GRIDCTL_ are reserved for gridctl; got '" + excerpt(name) + "'");
  return {};
}

Result<void> read_variables(const Fields& root, const Context& context, ParsedJob& job) {
  TRY(read_envs(root, context, job.spec));
  return read_secrets(root, context, job);
}

Result<void> apply_overrides(const Context& context, ParsedJob& job) {
  const Overrides& options = context.overrides;
  const auto bad = [](std::string_view option, const Error& error, std::string_view value = {}) {
    const std::string got = value.data() == nullptr ? "" : ", got '" + excerpt(value) + "'";
    return make_error(Code::usage, std::string(option) + ": " + (got.empty() ? "" : "expected ") + error.message + got);
  };
  if (options.name) {
    if (const auto ok = check_name("job", *options.name); !ok) return bad("--name", ok.error());
    job.spec.name = *options.name;
  }
  if (options.gpu) {
    job.spec.resources.gpus.clear();
    const bool none = lower(*options.gpu) == "none" || *options.gpu == "0";
    if (none)
      std::erase_if(job.spec.variants, [](const job::Variant& one) { return job::vendor_of_variant(one.kind); });
    if (!none) {
      const auto gpu = sched::parse_gpu_spec(*options.gpu);
      if (!gpu) return bad("--gpu", gpu.error());
      job.spec.resources.gpus = {*gpu};
    }
  }
  const auto set = [&](std::string_view option, const auto& text, auto& into, auto parse) -> Result<void> {
    if (!text) return {};
    const auto value = parse(*text);
    if (!value) return bad(option, value.error(), *text);
    into = *value;
    return {};
  };
  TRY(set("--cpus", options.cpus, job.spec.resources.cpus, parse_cpus));
  TRY(set("--memory", options.memory, job.spec.resources.memory_bytes, parse_gib));
  TRY(set("--disk", options.disk, job.spec.resources.disk_bytes, parse_gib));
  TRY(set("--priority", options.priority, job.spec.priority,
          [](std::string_view text) { return parse_integer(text, job::k_priority_min, job::k_priority_max); }));
  if (options.image) {
    if (!job.spec.variants.empty())
      return make_error(Code::usage, "--image: the job file's variants already name the images");
    if (const auto ok = set_image(*options.image, context, job.spec); !ok) return bad("--image", ok.error());
  }
  if (!options.providers.empty()) job.spec.constraints.providers = options.providers;
  for (const std::string& name : options.providers)
    if (const auto ok = check_name("provider", name); !ok) return bad("--provider", ok.error());
  return {};
}

Result<ParsedJob> parse_job_file(std::string_view text, const std::string& file_name, const Context& context) {
  SourceFile source{file_name, {}};
  const bool condor = is_condor(text), sbatch = is_sbatch(text);
  TRY_ASSIGN(Node tree, condor ? job_of_condor(source, text) : sbatch ? job_of_sbatch(source, text) : parse_yaml(text, file_name));
  if (!condor && !sbatch && is_compose(tree)) {
    TRY_ASSIGN(tree, job_of_compose(source, context, Node(tree)));
  }
  ParsedJob job;
  std::vector<Error> errors;
  TRY_ASSIGN(const Fields root, open_root(source, tree, errors));
  const auto read = [&errors](Result<void> part) {
    if (!part) errors.push_back(std::move(part).error());
  };
  for (std::string_view key : {"config", "experimental", "event_callback"})
    root.ignore(key, "it is specific to SkyPilot");
  read(read_name(root, job.spec));
  read(read_variables(root, context, job));
  std::string image_id;
  if (const Node* node = root.find("resources")) read(read_resources(source, *node, context, job.spec, image_id));
  read(read_gang(root, job.spec));
  read(read_image(root, context, image_id, job.spec));
  read(read_scripts(root, context, job.spec));
  if (errors.empty()) read(read_variants(root, context, job.spec));  // they inherit what was read
  if (const Node* node = root.find("file_mounts")) read(read_file_mounts(source, *node, context, job.spec));
  read(read_outputs(root, job.spec.outputs));
  read(read_ports(root, job.spec));
  read(read_notify(root, job.notify));
  if (const Node* node = root.find("container")) read(read_container(source, *node, job.spec.root_writable));
  read_policies(root, job.spec, read);
  read(read_workload(root, job.spec.workload));
  read(read_launcher(root, job.spec.launcher));
  read(read_tasks(root, context, job));
  read(read_service(root, context, job.spec));
  if (!errors.empty()) return all_errors(file_name, std::move(errors));
  TRY(apply_overrides(context, job));
  job.warnings = std::move(source.warnings);
  return job;
}

}  // namespace gridctl::config
