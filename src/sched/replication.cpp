// SPDX-License-Identifier: Apache-2.0
#include "sched/replication.hpp"

#include "base/formatted.hpp"
#include "sched/interval.hpp"

namespace gridctl::sched {

double failures_to_interruption(int pairs) {
  // 4^x / binom(2x, x) = product of 2i / (2i - 1)
  double product = 1;
  for (int i = 1; i <= pairs; ++i) product *= 2.0 * i / (2.0 * i - 1);
  return 1 + product;
}

double replicated_mtti(int pairs, double host_mtbf) {
  return failures_to_interruption(pairs) * host_mtbf / (2.0 * pairs);
}

ReplicationAnswer compare_replication(const ReplicationQuestion& question) {
  const double alone = question.host_mtbf / question.hosts;
  ReplicationAnswer answer;
  answer.plain = best_efficiency(question.checkpoint, alone, question.restart);
  answer.plain_doubled = best_efficiency(question.checkpoint, alone / 2, question.restart);
  answer.replicated =
      best_efficiency(question.checkpoint, replicated_mtti(question.hosts, question.host_mtbf), question.restart);
  return answer;
}

std::optional<std::string> replication_advice(const ReplicationQuestion& question) {
  const ReplicationAnswer answer = compare_replication(question);
  if (answer.plain >= 0.5) return std::nullopt;
  const char* verdict = answer.gain() > 1 ? "pays" : "does not pay";
  return formatted(
      "checkpointing alone keeps %.0f %% of the time for work: a checkpoint stalls it for %.0f s, and a failure "
      "comes every %.0f s; two copies of each host would keep %.0f %%, which %s against the same %d hosts used "
      "for speed (%.0f %%)",
      answer.plain * 100, question.checkpoint, question.host_mtbf / question.hosts, answer.replicated * 100, verdict,
      2 * question.hosts, answer.plain_doubled * 100);
}

}  // namespace gridctl::sched
