// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/plan_report.hpp"
#include "cmd/template_files.hpp"
#include "cmd/training_outcome.hpp"
#include "config/fields.hpp"
#include "os/files.hpp"
#include "plan/emit.hpp"

namespace gridctl::cmd {

namespace plan_train {
namespace {
constexpr std::int64_t k_sequence_max = 8192;

template <class Value>
Result<Value> word(const Parsed& parsed, std::string_view option, std::optional<Value> (*meaning)(std::string_view),
                   Value usual) {
  if (!parsed.has(option)) return usual;
  if (const auto value = meaning(parsed.value(option))) return *value;
  return make_error(Code::usage,
                    "--" + std::string(option) + ": '" + sanitize(parsed.value(option), 60) + "' is unknown");
}

Result<plan::Training> read_training(const Parsed& parsed, std::optional<plan::Target> target) {
  plan::Training out;
  TRY_ASSIGN(out.model, read_model(parsed));
  TRY_ASSIGN(out.method, word(parsed, "method", &plan::method_of, plan::Method::full));
  TRY_ASSIGN(out.precision, word(parsed, "precision", &plan::precision_of, plan::Precision::bf16));
  TRY_ASSIGN(out.framework, word(parsed, "framework", &plan::framework_of,
                                 target ? plan::framework_for(*target) : plan::Framework::megatron));
  if (parsed.has("optimizer")) out.optimizer = parsed.value("optimizer");
  if (!plan::optimizer_bytes(out.optimizer))
    return make_error(Code::usage, "--optimizer: '" + sanitize(out.optimizer, 60) + "' is unknown");
  TRY_ASSIGN(const auto sequence, parsed.whole("seq"));
  TRY_ASSIGN(const auto batch, parsed.whole("batch"));
  for (const auto& [name, value] : {std::pair{"seq", sequence}, {"batch", batch}})
    if (value && (*value < 1 || *value > 1'000'000'000))
      return make_error(Code::usage, "--" + std::string(name) + ": expected a number from 1 to 1000000000");
  const std::int64_t longest = out.model.max_sequence > 0 ? out.model.max_sequence : k_sequence_max;
  out.sequence = sequence ? static_cast<std::int64_t>(*sequence) : std::min(longest, k_sequence_max);
  if (out.model.max_sequence > 0 && out.sequence > out.model.max_sequence)
    return make_error(Code::usage, "--seq: " + std::to_string(out.sequence) + " tokens are more than the " +
                                       std::to_string(out.model.max_sequence) + " that " + out.model.name + " knows");
  std::int64_t usual = 1;
  const std::int64_t tokens = out.method == plan::Method::full ? k_tokens_of_step : k_tokens_of_tuning;
  while (usual * 2 * out.sequence <= tokens) usual *= 2;
  out.batch = batch ? static_cast<std::int64_t>(*batch) : usual;
  if (out.model.learned_positions) out.model.positions = std::max(out.model.positions, out.sequence);
  return out;
}

// A target runs only some parallelisms; the user's choices stay, and are refused later if impossible.
void constrain(plan::Target target, plan::Wanted& wanted) {
  const auto one = [](std::optional<int>& degree) { degree = degree.value_or(1); };
  if (target != plan::Target::megatron && target != plan::Target::torchtitan)
    for (auto* degree : {&wanted.tp, &wanted.pp, &wanted.cp, &wanted.ep}) one(*degree);
  if (target == plan::Target::torchrun) wanted.zero = wanted.zero.value_or(0);
  if (target != plan::Target::deepspeed && target != plan::Target::fsdp && target != plan::Target::accelerate)
    wanted.offload = wanted.offload.value_or(plan::Offload::none);
}

Result<plan::Question> read_question(const Parsed& parsed, std::optional<plan::Target> target) {
  plan::Question out;
  TRY_ASSIGN(out.training, read_training(parsed, target));
  if (parsed.has("tokens")) {
    TRY_ASSIGN(out.tokens, read_amount("tokens", parsed.value("tokens")));
  }
  if (parsed.has("layout")) {
    Result<plan::Wanted> wanted = plan::read_wanted(parsed.value("layout"));
    if (!wanted) return make_error(Code::usage, "--layout: " + wanted.error().message);
    out.wanted = *wanted;
  }
  if (target) {
    constrain(*target, out.wanted);
    out.refuses = [target](const plan::Training& training, const plan::Parallelism& parallelism) {
      return plan::refusal(*target, training, parallelism);
    };
  }
  TRY_ASSIGN(out.rank, word(parsed, "rank", &plan::rank_of, plan::RankBy::time));
  TRY_ASSIGN(out.budget_usd, parsed.number("budget"));
  TRY_ASSIGN(const auto deadline, parsed.duration("deadline"));
  if (deadline) out.deadline_s = seconds(*deadline);
  if ((out.budget_usd || out.deadline_s) && out.tokens == 0)
    return make_error(Code::usage, "--budget and --deadline need --tokens: how much there is to train");
  return out;
}

// Adapts a default batch so that all GPUs can share it.
std::int64_t divisible(std::int64_t batch, const Machines& machines) {
  const std::int64_t gpus = static_cast<std::int64_t>(machines.nodes) * machines.cluster.gpus_per_node;
  return std::max<std::int64_t>(1, (batch + gpus / 2) / gpus) * gpus;
}

// Returns the best over all groups of equal machines. `tried`: each of them.
Result<PlanReport> best_of(plan::Question question, const std::vector<Machines>& all,
                           const std::vector<plan::FinishedRun>& finished, const Parsed& parsed,
                           std::vector<Tried>& tried) {
  TRY_ASSIGN(const auto price, parsed.number("price"));
  const std::int64_t usual = question.training.batch;
  std::optional<PlanReport> best;
  std::vector<std::string> faults;
  for (const Machines& machines : all) {
    PlanReport report;
    report.machines = machines;
    question.cluster = machines.cluster;
    if (!parsed.has("framework") && !parsed.has("emit"))
      question.training.framework = plan::usual_framework(
          question.training.method, machines.nodes * machines.cluster.gpus_per_node, question.training.framework);
    question.nodes = machines.nodes;
    question.usd_per_gpu_hour = price.value_or(machines.usd_per_gpu_hour);
    question.risk.failures_per_node_hour = machines.failures_per_node_hour;
    if (!parsed.has("batch")) question.training.batch = divisible(usual, machines);
    if (const auto found = plan::faults_of_wanted(question); !found.empty()) {
      faults = found;  // other machines may have enough GPUs
      continue;
    }
    calibrate(finished, question, report.machines.sources);
    report.question = question;
    report.answer = plan::search(question);
    tried.push_back({report.machines, report.question, report.answer});
    const bool runs = !report.answer.best.empty();
    if (!best || (runs && (best->answer.best.empty() ||
                           report.answer.best.front().expected_hours() < best->answer.best.front().expected_hours())))
      best = std::move(report);
  }
  if (!best) return make_error(Code::usage, "--layout: " + join(faults, "; "));
  return std::move(*best);
}

// Returns the error if nothing can run the training: the numbers, and the alternatives.
Error nothing_runs(const PlanReport& report) {
  const plan::Question& q = report.question;
  Error error = make_error(Code::no_provider_fits,
                           "no layout of " + q.training.model.name + " fits " + std::to_string(q.nodes) + " x " +
                               std::to_string(q.cluster.gpus_per_node) + " " + q.cluster.device.name);
  for (std::string& line : plan::explain_rejections(q, report.answer)) error.context.push_back(std::move(line));
  error.hint = q.training.method == plan::Method::full ? "more or larger GPUs, shorter sequences (--seq), or --method lora"
                                                       : "more or larger GPUs, or shorter sequences (--seq)";
  return error;
}

Result<void> add_what_ifs(const Parsed& parsed, PlanReport& report) {
  for (const std::string& text : parsed.values("what-if")) {
    plan::Question other = report.question;
    Result<plan::Wanted> wanted = plan::read_wanted(text);
    if (!wanted) return make_error(Code::usage, "--what-if: " + wanted.error().message);
    other.wanted = *wanted;
    if (const auto faults = plan::faults_of_wanted(other); !faults.empty()) {
      report.what_if.push_back("what if " + text + ": cannot be; " + join(faults, "; "));
      continue;
    }
    const plan::Answer answer = plan::search(other);
    if (answer.best.empty()) {
      const std::vector<std::string> why = plan::explain_rejections(other, answer);
      report.what_if.push_back("what if " + text + ": nothing runs; " +
                               (why.empty() ? "the GPUs cannot be divided so" : why.back()));
      continue;
    }
    const plan::Plan& plan = answer.best.front();
    report.what_if.push_back("what if " + text + ": " + plan::text_of(plan.parallelism) + ", " +
                             ui::number(plan.time.seconds, 3) + " s a step, " +
                             ui::number(plan.memory.peak() / 1e9, 3) + " GB, " + ui::money(plan.usd));
  }
  return {};
}

Result<void> write_files(Context& context, const std::string& folder, plan::Target target, const PlanReport& report) {
  plan::EmitQuestion what;
  what.target = target;
  what.job_name =
      report.question.training.model.name == "usual shape" ? "train" : to_name(report.question.training.model.name);
  what.gpu = report.machines.gpu;
  TRY_ASSIGN(const std::vector<plan::EmittedFile> files, plan::emit(what, report.question, report.answer.best.front()));
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return make_error(Code::usage, "cannot make the folder '" + sanitize(folder) + "': " + failed.message());
  const auto write = [&](const std::string& name, std::string_view text) -> Result<void> {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    TRY(os::write_file_atomically(path, std::string(text), 0644));
    context.note("wrote " + path.string());
    return {};
  };
  for (const plan::EmittedFile& file : files) TRY(write(file.name, file.text));
  if (!plan::runs_trainer(target)) return {};
  // A program of the user's own stays.
  if (const std::filesystem::path program = std::filesystem::path(folder) / "train.py"; os::exists(program)) {
    context.note("kept " + program.string());
    return {};
  }
  TRY(write("train.py", shared_file("transformers_train.py")));
  return write("gridctl_save.py", shared_file("gridctl_save.py"));
}

// Returns none if nothing was ever registered: planning needs no state.
Result<std::vector<plan::FinishedRun>> own_runs(Context& context) {
  if (!os::exists(context.state)) return std::vector<plan::FinishedRun>{};
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  return finished_runs(registry);
}

Result<std::string> over_slow_links(Context& context, const std::vector<Tried>& tried, const Parsed& parsed) {
  std::vector<registry::HostLink> links;
  if (!parsed.has("gpu")) {
    TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
    TRY_ASSIGN(links, registry.links());
  }
  const std::string payload = parsed.value("payload");
  return over_wan(tried, links, payload == "int8" ? 1 : payload == "bf16" ? 2 : 4);
}

Result<int> run(Context& context, const Parsed& parsed) {
  std::optional<plan::Target> target;
  if (parsed.has("emit")) target = plan::target_of(parsed.value("emit"));
  if (parsed.has("emit") == parsed.positionals.empty())
    return make_error(Code::usage,
                      parsed.has("emit") ? "--emit needs the folder to write into" : "a folder is for --emit TARGET");
  TRY_ASSIGN(plan::Question question, read_question(parsed, target));
  TRY_ASSIGN(const std::vector<Machines> machines, read_machines(context, parsed));
  TRY_ASSIGN(const std::vector<plan::FinishedRun> runs, own_runs(context));
  std::vector<Tried> tried;
  TRY_ASSIGN(PlanReport report, best_of(std::move(question), machines, runs, parsed, tried));
  report.together = together(tried);
  const bool alone = !report.answer.best.empty();
  if (!alone && (!report.together || target)) return nothing_runs(report);
  report.explain = parsed.has("explain");
  if (alone) TRY(add_what_ifs(parsed, report));
  if (report.together)
    report.what_if.push_back(together_text(*report.together, alone ? &report.answer.best.front() : nullptr));
  TRY_ASSIGN(const std::string wan, over_slow_links(context, tried, parsed));
  if (!wan.empty()) report.what_if.push_back(wan);
  if (target) TRY(write_files(context, parsed.positionals[0], *target, report));
  if (context.json) context.print_line(plan_json(report));
  else context.print(plan_text(context, report));
  return 0;
}
}  // namespace
}  // namespace plan_train

const Command k_plan_train{
    .name = "plan train",
    .summary = "find the layout, the time and the cost of training a model",
    .examples = {
        {"Which layout, how long, for how much?", "gridctl plan train --model llama-3-8b --tokens 20B --gpu H100:8x4"},
        {"On the registered hosts, within a budget",
         "gridctl plan train --model ./config.json --tokens 2B --budget 300 --deadline 3d"},
        {"A layout of your own, and why others cannot run",
         "gridctl plan train --model llama-3-70b --gpu H100:8x8 --layout tp=8,zero=1 --explain"},
        {"The files that run it", "gridctl plan train --model llama-3-8b --gpu H100:8x2 --emit deepspeed out/"}},
    .description =
        "Looks at every way to divide a training over the GPUs: data, tensor, pipeline, context and expert "
        "parallelism, "
        "ZeRO stages, micro-batches, recomputation, interleaving and offloading. It shows the best of those that "
        "fit into memory: memory of a GPU part by part, time of a step, tokens a second, MFU, the pipeline's bubble and the "
        "communication that computing does not hide; then the whole training's time and cost, with the failures of the "
        "hosts and the checkpoints counted in. The frontier shows what more GPUs cost and save.\n\n"
        "The rule behind it: what fits one GPU is trained data-parallel; what does not is sharded (ZeRO, FSDP), "
        "divided "
        "by tensor parallelism inside a node and by a pipeline across nodes. If the data must stay in several "
        "places, use federated training.\n\n"
        "What was measured of registered hosts comes before the catalogue; the answer says which was used. The slowest "
        "measured link between the hosts bounds what they exchange. Hosts of one site with different GPUs are also "
        "planned together: each kind gets a share of the batch, or of the layers, that matches its speed. Sites far "
        "apart, and hosts with slow links, can train by DiLoCo: the answer says how often they exchange and how much, "
        "or that the link is too slow for it. Memory is "
        "planned with 8 % free. Expect 10 % of error in memory and 15 % in time before your own runs calibrate "
        "it: finished jobs that name their model and tell step_time_s, tokens_per_s or peak_mem_gb correct the figures "
        "of their class of GPU.\n\n"
        "--emit writes the files that run the layout, and a job file to submit as it is. For torchrun, fsdp, deepspeed "
        "and accelerate the folder gets a train.py that trains a model of this shape with transformers on random "
        "tokens: replace its data, or put your own train.py there first, which stays. megatron runs your "
        "pretrain_gpt.py, on mock data until you change data.args; torchtitan runs its own trainer.",
    .positionals = {{"DIR", Completion::directory, false}},
    .options = {{"model", 0, "NAME", "a family (llama-3-8b), or a config.json of transformers", "", Completion::file},
                {"params", 0, "N", "instead of a model: a usual shape of so many parameters (7B)"},
                {"tokens", 0, "N", "number of tokens in the complete training (20B)", "one step"},
                {"seq", 0, "N", "tokens of a sequence", "the model's, at most 8192"},
                {"batch", 0, "N", "sequences of a step, all GPUs together", "about 4M tokens; of an adapter 128K"},
                {"method", 0, "METHOD", "which parameters are trained", "full", Completion::choices, "full|lora|qlora"},
                {"precision", 0, "KIND", "of the matrices", "bf16", Completion::choices, "fp32|fp16|bf16|fp8"},
                {"optimizer", 0, "NAME", "adamw, adamw-8bit, adamw-bf16, sgd, sgd-momentum, lion, adafactor, muon",
                 "adamw"},
                {"framework", 0, "NAME", "assume the habits of this framework",
                 "the one of --emit, otherwise megatron, or PEFT for adapters"},
                {"gpu", 0, "SPEC", "machines by name: H100:8x4 is four nodes of eight", "the registered hosts"},
                {"on", 0, "QUERY", "registered hosts that match: gridctl-query(7)"},
                {"link", 0, "RATE", "network between two nodes (1Gbps, 400Gbit/s)",
                 "as measured, otherwise assumed and printed"},
                {"layout", 0, "PARTS",
                 "parts that are given, as in dp=8,tp=4; the parts: dp tp pp cp ep zero vpp mb recompute offload"},
                {"what-if", 0, "PARTS", "also answer the same question with these parts, for comparison", "",
                 Completion::nothing, "", true},
                {"rank", 0, "BY", "the order of the plans", "time", Completion::choices, "time|cost|expected"},
                {"budget", 0, "USD", "the most that the training may cost"},
                {"deadline", 0, "TIME", "the time within which it must be done (3d, 12h)"},
                {"price", 0, "USD", "price of one GPU for one hour",
                 "the price of the hosts, otherwise the list price"},
                {"payload", 0, "KIND", "over a WAN: the type in which each parameter is sent", "fp32",
                 Completion::choices, "fp32|bf16|int8"},
                {"explain", 0, "", "why the other layouts cannot run it"},
                {"emit", 0, "TARGET", "write the files that run it into DIR", "", Completion::choices,
                 "torchrun|fsdp|deepspeed|accelerate|megatron|torchtitan"}},
    .exit_codes = {4, 7},
    .run = plan_train::run};

}  // namespace gridctl::cmd
