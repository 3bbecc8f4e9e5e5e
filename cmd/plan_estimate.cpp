// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <iostream>

#include "cmd/commands.hpp"
#include "plan/estimate.hpp"

namespace gridctl::cmd {

namespace plan_estimate {
namespace {
// Reads a line of at most `k_row_bytes_max` bytes and one more, which shows that it was longer; the rest is skipped.
bool next_line(std::istream& in, std::string& line) {
  line.clear();
  int byte = 0;
  while ((byte = in.get()) != std::istream::traits_type::eof() && byte != '\n')
    if (line.size() <= plan::k_row_bytes_max) line += static_cast<char>(byte);
  return byte == '\n' || !line.empty();
}

Result<int> run(Context& context, const Parsed& parsed) {
  const std::string& name = parsed.positionals[0];
  std::ifstream file;
  if (name != "-") {
    file.open(name);
    if (!file) return make_error(Code::usage, "cannot open '" + name + "'");
  }
  std::istream& in = name == "-" ? std::cin : file;
  plan::Estimator estimator;
  std::size_t answered = 0;
  for (std::string line; !context.reader_gone() && next_line(in, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    context.print_line(estimator.answer(line));
    ++answered;
  }
  if (in.bad()) return make_error(Code::io, "cannot read '" + name + "'");
  return answered > 0 && answered == estimator.refused() ? exit_code(Code::usage) : 0;
}
}  // namespace
}  // namespace plan_estimate

const Command k_plan_estimate{
    .name = "plan estimate",
    .summary = "memory and time of runs that are described a line each",
    .examples =
        {{"Will it fit, and how long is a step?",
          "echo '{\"model\":\"llama-3-8b\",\"gpu\":\"H100\",\"dp\":8,\"sharding\":\"zero3\"}' | gridctl plan estimate "
          "-"},
         {"A table of runs, a line each", "gridctl plan estimate runs.jsonl > answers.jsonl"},
         {"Memory of the states alone",
          "echo '{\"params\":7.5e9,\"dp\":64,\"sharding\":\"zero2\"}' | gridctl plan estimate - | jq .state_gb"}},
    .description =
        "Reads one JSON object a line and answers each with one, in their order; '-' reads standard input. Meant for "
        "scripts and tables of runs.\n\n"
        "Fields of a run: params, or arch (gpt, llama, moe) or model with layers hidden ffn heads kv_heads "
        "vocab seq_len gated_mlp tied_embeddings learned_positions experts experts_per_token; dp tp pp cp ep vpp "
        "micro_batch global_batch; sharding (none, zero1, zero2, zero3); precision (fp32, fp16, bf16, fp8); "
        "act_recompute (none, selective, full); sequence_parallel; flash_attention; optimizer; framework (megatron, "
        "megatron-deepspeed, deepspeed, fsdp, fsdp2, torchtune, litgpt, ddp, transformers); method (full, lora, qlora); "
        "weight_bytes grad_bytes optimizer_bytes extra_bytes_per_param; autocast (fp32 weights) and fused_mlp (GELU in one "
        "kernel) of ddp, deepspeed and transformers; gpu, or gpu_memory_gb and gpu_tflops; gpus_per_node; "
        "interconnect. Omitted fields take their usual values; act_recompute is then the least that fits. params, dp and "
        "sharding are enough for the states.\n\n"
        "The answer is of the most loaded GPU: params state_gb activations_gb peak_mem_gb fits step_time_s "
        "tokens_per_s_per_gpu model_flops mfu_pct bubble; or error. GB are 1e9 bytes.\n\n"
        "Rows that were measured together have the same group. A row with calibrate: true and its step_time_s or "
        "peak_mem_gb trains the coefficients of its group for the rows after it.\n\n"
        "Exits with 2 when no line could be answered.",
    .positionals = {{"FILE.jsonl", Completion::file}},
    .run = plan_estimate::run};

}  // namespace gridctl::cmd
