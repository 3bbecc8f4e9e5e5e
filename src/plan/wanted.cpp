// SPDX-License-Identifier: Apache-2.0
// Handles the parts of a parallelism that the user gives.
#include <algorithm>
#include <cstdlib>

#include "base/text.hpp"
#include "plan/search.hpp"

namespace gridctl::plan {

Result<Wanted> read_wanted(std::string_view text) {
  static const std::vector<std::string> names{"dp",   "tp",  "pp", "cp",        "ep",
                                              "zero", "vpp", "mb", "recompute", "offload"};
  Wanted out;
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string name(trim(part.substr(0, equals))),
        value(equals == std::string::npos ? "" : trim(part.substr(equals + 1)));
    if (name == "recompute" || name == "offload") {
      if (name == "recompute" && !(out.recompute = recompute_of(value)))
        return make_error(Code::usage, "recompute must be none, selective or full, not '" + value + "'");
      if (name == "offload" && !(out.offload = offload_of(value)))
        return make_error(Code::usage, "offload must be none, optimizer, all or activations, not '" + value + "'");
      continue;
    }
    std::optional<int>* const slots[] = {
        &out.dp, &out.tp, &out.pp, &out.cp, &out.ep, &out.zero, &out.virtual_stages, &out.micro_batch};
    const auto known = std::ranges::find(names, name);
    if (known == names.end()) {
      const std::string near = nearest(name, names);
      return make_error(Code::usage, "'" + name + "' is not a part of a layout" +
                                         (near.empty() ? ": " + join(names, ", ") : "; did you mean '" + near + "'?"));
    }
    char* end = nullptr;
    const long degree = std::strtol(value.c_str(), &end, 10);
    const bool zero = name == "zero";
    if (value.empty() || *end != '\0' || degree < (zero ? 0 : 1) || degree > (zero ? 3 : 1'000'000))
      return make_error(Code::usage,
                        name + " is " + (zero ? "0, 1, 2 or 3" : "a number of at least 1") + ", not '" + value + "'");
    *slots[known - names.begin()] = static_cast<int>(degree);
  }
  return out;
}

namespace {
// Returns the parallelism of the given parts alone: the others are 1, which divides everything.
Parallelism given(const Wanted& wanted) {
  Parallelism out;
  out.dp = wanted.dp.value_or(1);
  out.tp = wanted.tp.value_or(1);
  out.pp = wanted.pp.value_or(1);
  out.cp = wanted.cp.value_or(1);
  out.ep = wanted.ep.value_or(1);
  out.micro_batch = wanted.micro_batch.value_or(1);
  if (wanted.pp) {
    out.zero = wanted.zero.value_or(0);
    out.virtual_stages = wanted.virtual_stages.value_or(1);
  }
  // Experts lie on the replicas. Without a given number, there are as many replicas as the experts need.
  if (!wanted.dp) out.dp = 1;
  return out;
}
}  // namespace

std::vector<std::string> faults_of_wanted(const Question& question) {
  const Wanted& wanted = question.wanted;
  const Parallelism parallelism = given(wanted);
  Parallelism asked = parallelism;
  if (!wanted.dp && asked.ep > 1) asked.dp = asked.ep;
  Training training = question.training;
  if (!wanted.dp) training.batch = std::max<std::int64_t>(training.batch, asked.dp);
  std::vector<std::string> out = faults_of(training, asked);
  const int most = question.nodes * question.cluster.gpus_per_node;
  if (parallelism.gpus() > most)
    out.push_back("dp*tp*pp*cp = " + std::to_string(parallelism.gpus()) + " is more than the " + std::to_string(most) +
                  " GPUs");
  if (parallelism.tp > question.cluster.fast_domain)
    out.push_back("tp=" + std::to_string(parallelism.tp) + " is more than the " +
                  std::to_string(question.cluster.fast_domain) + " GPUs joined by a fast link");
  if (wanted.offload == Offload::all && wanted.zero && *wanted.zero != 3)
    out.push_back("offload=all needs zero=3: only sharded parameters can be kept in the host's memory");
  return out;
}

}  // namespace gridctl::plan
