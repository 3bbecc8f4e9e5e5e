// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "cmd/commands.hpp"
#include "cmd/plan_question.hpp"
#include "plan/serve.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace plan_serve {
namespace {
Result<plan::ServeQuestion> read_question(const Parsed& parsed) {
  plan::ServeQuestion out;
  TRY_ASSIGN(out.model, read_model(parsed));
  TRY_ASSIGN(const auto context, parsed.whole("context"));
  if (context && (*context < 1 || *context > 100'000'000))
    return make_error(Code::usage, "--context: expected a number from 1 to 100000000");
  if (context) out.context = static_cast<double>(*context);
  if (out.model.max_sequence > 0 && context && out.context > static_cast<double>(out.model.max_sequence))
    return make_error(Code::usage, "--context: " + std::to_string(*context) + " tokens are more than the " +
                                       std::to_string(out.model.max_sequence) + " that " + out.model.name + " knows");
  const std::string weights = parsed.value("weights");
  out.weight_bytes = weights == "fp8" ? 1 : weights == "int4" ? 0.55 : 2;
  out.cache_bytes = parsed.value("cache") == "fp8" ? 1 : 2;
  return out;
}

std::string json_of(const plan::ServeQuestion& question, const plan::ServePlan& plan) {
  JsonObject json;
  json("model", question.model.name)("gpu", question.cluster.device.name)("tp", question.tp);
  json("weight_bytes", plan.weights)("cache_bytes_per_token", plan.cache_per_token)("cache_bytes", plan.cache);
  json("sequences", plan.sequences)("context", question.context)("tokens_per_s_one", plan.tokens_per_s_one);
  return json("tokens_per_s_all", plan.tokens_per_s_all)("prompt_tokens_per_s", plan.prefill_per_s).text();
}

std::string text_of(const Context& context, const plan::ServeQuestion& question, const plan::ServePlan& plan,
                    const Machines& machines) {
  ui::Facts facts;
  facts.add("model", question.model.name + ", " + ui::number(plan::count_params(question.model).total / 1e9, 4) +
                         "B parameters");
  facts.add("GPUs of one replica", std::to_string(question.tp) + " x " + question.cluster.device.name);
  facts.add("weights", ui::number(plan.weights / 1e9, 3) + " GB on each");
  facts.add("KV cache", ui::number(plan.cache / 1e9, 3) + " GB on each, " + ui::number(plan.cache_per_token / 1e3, 3) +
                            " kB a token");
  facts.add("conversations",
            ui::number(plan.sequences, 6) + " of " + ui::number(question.context, 8) + " tokens at once");
  facts.add("tokens/s, bound", ui::number(std::round(plan.tokens_per_s_one), 5) + " for one, " +
                                   ui::number(std::round(plan.tokens_per_s_all), 6) + " for all together");
  if (const int least = plan::least_tp(question); least > 0 && least != question.tp)
    facts.add("fewest GPUs", std::to_string(least));
  facts.add("prompts, bound", ui::number(std::round(plan.prefill_per_s), 6) + " tokens/s");
  std::string out = facts.render(context.out_style);
  for (const std::string& source : machines.sources) out += source + "\n";
  return out;
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(plan::ServeQuestion question, read_question(parsed));
  TRY_ASSIGN(const std::vector<Machines> all, read_machines(context, parsed));
  TRY_ASSIGN(const auto wanted, parsed.whole("tp"));
  std::string tried;
  for (const Machines& machines : all) {
    question.cluster = machines.cluster;
    if (wanted &&
        (*wanted < 1 || question.model.heads % static_cast<int>(std::min<std::uint64_t>(*wanted, 1'000'000)) != 0))
      return make_error(Code::usage, "--tp: " + std::to_string(question.model.heads) + " heads cannot be divided by " +
                                         std::to_string(*wanted));
    question.tp = wanted ? static_cast<int>(*wanted) : plan::best_tp(question);
    const plan::ServePlan plan =
        question.tp > 0 && question.tp <= machines.cluster.fast_domain ? plan::plan_serve(question) : plan::ServePlan{};
    if (plan.fits) {
      if (context.json) context.print_line(json_of(question, plan));
      else context.print(text_of(context, question, plan, machines));
      return 0;
    }
    tried += (tried.empty() ? "" : ", ") + std::to_string(machines.cluster.gpus_per_node) + " x " +
             machines.cluster.device.name;
  }
  const double weights = plan::weights_of(question);
  return make_error(Code::no_provider_fits,
                    "weights of " + ui::number(weights / 1e9, 3) + " GB and one conversation of " +
                        ui::number(question.context, 8) + " tokens do not fit " + tried,
                    "smaller weights: --weights int4, a shorter --context, or more GPUs of one node");
}
}  // namespace
}  // namespace plan_serve

const Command k_plan_serve{
    .name = "plan serve",
    .summary = "what serving a model needs: weights, KV cache, conversations, tokens a second",
    .examples = {
        {"How many conversations at once?", "gridctl plan serve --model llama-3-70b --gpu H100:8 --context 8192"},
        {"With weights of 4 bits on one card", "gridctl plan serve --model llama-3-8b --gpu RTX_4090 --weights int4"}},
    .description =
        "Shows how many GPUs one replica of the model needs, how much of their memory is left for the KV cache, how "
        "many conversations of a length fit into it, and bounds on the tokens a second: decoding is bound by reading "
        "weights and cache, prompts by arithmetic. Servers reach the bounds only in part; 90 % of the memory is taken, "
        "as vLLM does, and 1.5 GB of it are left for context, graphs and workspace: a server with a large token budget "
        "takes more. Without --tp, as many GPUs share the model as give the most tokens a second for each GPU.",
    .options = {{"model", 0, "NAME", "a family (llama-3-8b), or a config.json of transformers", "", Completion::file},
                {"params", 0, "N", "instead of a model: a usual shape of so many parameters (7B)"},
                {"gpu", 0, "SPEC", "machines by name: H100:8 is one node of eight", "the registered hosts"},
                {"on", 0, "QUERY", "registered hosts that match: gridctl-query(7)"},
                {"context", 0, "N", "tokens of a conversation", "8192"},
                {"weights", 0, "KIND", "of the layers' weights; embeddings and head stay bf16", "bf16",
                 Completion::choices, "bf16|fp8|int4"},
                {"cache", 0, "KIND", "of the KV cache", "bf16", Completion::choices, "bf16|fp8"},
                {"tp", 0, "N", "GPUs that share one model", "the most tokens a second for each GPU"}},
    .exit_codes = {4, 7},
    .run = plan_serve::run};

}  // namespace gridctl::cmd
