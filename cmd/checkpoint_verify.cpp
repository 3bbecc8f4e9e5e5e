// SPDX-License-Identifier: Apache-2.0

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "cmd/checkpoint_lookup.hpp"
#include "cmd/commands.hpp"
#include "control/copies/chunks.hpp"

namespace gridctl::cmd {

namespace checkpoint_verify {
namespace {
constexpr std::size_t k_damages_named = 20;  // of one checkpoint; the rest is counted

class Verifier {
 public:
  explicit Verifier(store::ChunkStore& chunks) : chunks_(&chunks) {}

  // Returns the faults, one line each; an error if the store itself cannot be read.
  Result<std::vector<std::string>> check(const registry::Checkpoint& checkpoint) {
    std::vector<std::string> damages;
    Result<store::Tree> tree = tree_of(*chunks_, checkpoint);
    if (!tree) {
      if (tree.error().code != Code::checkpoint_damaged) return std::move(tree).error();
      damages.push_back("manifest: " + tree.error().message);
      return damages;
    }
    for (const store::Entry& entry : tree->entries) {
      std::uint64_t offset = 0;
      for (const store::Chunk& chunk : entry.chunks) {
        TRY_ASSIGN(const std::string problem, check(chunk));
        if (!problem.empty())
          damages.push_back(entry.path + " at byte " + std::to_string(offset) + ", chunk " + to_hex(chunk.digest) +
                            ": " + problem);
        offset += chunk.size;
      }
    }
    return damages;
  }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  // Returns empty if the chunk is there and complete. Each is read once, however many checkpoints share it.
  Result<std::string> check(const store::Chunk& chunk) {
    const auto known = seen_.find(chunk.digest);
    if (known != seen_.end()) return known->second;
    std::string problem;
    Result<Bytes> content = chunks_->get(chunk.digest);
    if (content && content->size() != chunk.size) problem = "has a different size than the manifest says";
    else if (content) bytes_ += content->size();
    else if (content.error().code == Code::not_found) problem = "is missing";
    else if (content.error().code == Code::checkpoint_damaged) problem = content.error().message;
    else return std::move(content).error();
    seen_.emplace(chunk.digest, problem);
    return problem;
  }
  store::ChunkStore* chunks_;
  std::map<Digest, std::string> seen_;
  std::uint64_t bytes_ = 0;
};

Result<std::vector<registry::Checkpoint>> wanted(registry::JobRecords& registry, const std::string& text) {
  TRY_ASSIGN(const registry::CheckpointName name, registry::parse_checkpoint_name(text));
  if (name.seq) {
    TRY_ASSIGN(registry::Checkpoint one, find_checkpoint(registry, text));
    return std::vector<registry::Checkpoint>{std::move(one)};
  }
  TRY_ASSIGN(const JobId id, registry.resolve(name.job));
  return registry.checkpoints(id);
}

struct Findings {
  std::vector<std::string> damaged, details;
};

void take_down(Findings& findings, const std::string& name, const std::vector<std::string>& damages) {
  if (damages.empty()) return;
  findings.damaged.push_back(name);
  for (std::size_t i = 0; i < damages.size() && i < k_damages_named; ++i)
    findings.details.push_back(name + ": " + damages[i]);
  if (damages.size() > k_damages_named)
    findings.details.push_back(name + ": and " + std::to_string(damages.size() - k_damages_named) + " more");
}

Error damage_error(Findings findings) {
  Error error = make_error(
      Code::checkpoint_damaged,
      "damaged: checkpoint" + std::string(findings.damaged.size() == 1 ? " " : "s ") + join(findings.damaged, ", "));
  error.context = std::move(findings.details);
  return error;
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(const std::vector<registry::Checkpoint> checkpoints, wanted(registry, parsed.positionals[0]));
  TRY_ASSIGN(store::ChunkStore chunks, control::open_chunks(context.paths()));
  Verifier verifier(chunks);
  Findings findings;
  for (const registry::Checkpoint& checkpoint : checkpoints) {
    const std::string name = checkpoint_name(checkpoint.job, checkpoint.seq);
    TRY_ASSIGN(const std::vector<std::string> damages, verifier.check(checkpoint));
    if (damages.empty() != checkpoint.verified)
      TRY(registry.set_verified(checkpoint.job, checkpoint.seq, damages.empty()));
    take_down(findings, name, damages);
    if (!context.json) context.print_line(name + ": " + (damages.empty() ? "whole" : "DAMAGED"));
  }
  if (context.json)
    context.print_line(
        JsonObject()("checkpoints", checkpoints.size())("damaged", findings.damaged.size())("bytes", verifier.bytes())
            .text());
  else context.note(format_size(verifier.bytes()) + " hashed");
  if (!findings.damaged.empty()) return damage_error(std::move(findings));
  return 0;
}
}  // namespace
}  // namespace checkpoint_verify

const Command k_checkpoint_verify{
    .name = "checkpoint verify",
    .summary = "verify every chunk of checkpoints",
    .examples = {{"Verify every checkpoint of a job", "gridctl checkpoint verify train-gpt"},
                 {"Verify one", "gridctl checkpoint verify train-gpt@3"}},
    .description =
        "Reads every chunk and compares it with its hash. gridctl marks a damaged checkpoint, names the file and "
        "position, and does not restore it. ID is a job (all its checkpoints) or JOB@NUMBER.",
    .positionals = {{"ID", Completion::checkpoint}},
    .exit_codes = k_exits_checkpoint,
    .run = checkpoint_verify::run};

}  // namespace gridctl::cmd
