// SPDX-License-Identifier: Apache-2.0
#include "whole/stall.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace gridctl::whole {
namespace {

constexpr int k_waits_in_patience = 4;    // times the longest wait that ended well
constexpr int k_retold_after = 2;       // each time that it changes it is an event: at so many times the wait told last
constexpr Duration k_told_in = std::chrono::minutes{1};

// Formats a name as an entry of YAML's flow style, whatever it contains.
std::string in_yaml(std::string_view name) {
  std::string text = "\"";
  for (const char c : sanitize(name.substr(0, 200))) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + "\"";
}

}  // namespace

void Stall::look(const Verdict& verdict, bool taken, BootTime now) {
  const bool empty = verdict.whole == Whole::nothing_new && verdict.why == k_no_files;
  const bool calm = taken || (verdict.whole == Whole::nothing_new && !empty);
  if (calm || (!empty && !waiting_)) {
    if (taken && waiting_) longest_ = std::max(longest_, now - since_);
    waiting_ = !calm;
    since_ = now;
    told_ = {};
    message_.clear();
  }
  if (calm) return;
  const Duration waited = now - since_;
  const Duration patience = empty ? rules_.empty : std::max(rules_.patience, k_waits_in_patience * longest_);
  if (waited < std::max(patience, k_retold_after * told_)) return;
  message_ = text(verdict, waited);
  told_ = waited;
}

std::string Stall::text(const Verdict& verdict, Duration waited) const {
  const std::string lead = "no checkpoint for " + format_duration(waited / k_told_in * k_told_in) + ": ";
  if (!waiting_)
    return lead +
           "the program has written nothing to its checkpoint directory; name the folder that it saves to in the "
           "job file: checkpoint: {path: FOLDER}";
  std::string text =
      lead + (verdict.is_whole() ? "the checkpoint changes faster than gridctl can copy it" : verdict.why);
  const std::string name = verdict.blame.substr(verdict.blame.rfind('/') + 1);
  text += ". If a save is complete whenever a certain file has changed, say so in the job file: checkpoint: {whole_when: " +
          in_yaml(name.empty() ? "FILE" : name) + "}";
  return text;
}

}  // namespace gridctl::whole
