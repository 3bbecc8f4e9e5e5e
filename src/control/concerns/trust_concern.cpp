// SPDX-License-Identifier: Apache-2.0
// Enforces `recovery.restore_from`. A checkpoint may run code where it is loaded. Checkpoints that a lent host took part
// in are loaded in containers or on lent hosts, never by a plain process on a machine of the user's own: of class home,
// or, with `trusted`, of any class. The job keeps its checkpoints and waits; the reason names the commands that let it go.
#include <algorithm>

#include "base/host_words.hpp"
#include "control/concerns/table.hpp"
#include "sched/geo/residency.hpp"

namespace gridctl::control {

namespace {

class TrustConcern : public Concern {
 public:
  explicit TrustConcern(const Controls& controls) : controls_(controls) {}

  void shape(const TrackedJob& asking, Question& question) const override {
    using job::RestoreFrom;
    const RestoreFrom from = asking.spec().recovery.restore_from;
    const bool may_be_kept = std::ranges::any_of(question.hosts, [&](const sched::HostFacts& host) { return is_kept_from(host, from); });
    if (!may_be_kept || asking.state().start().value == 0) return;
    const std::string stranger = stranger_in(asking);
    if (stranger.empty()) return;
    const std::string& id = asking.id().value;
    const std::string why = "its checkpoint comes from " + stranger +
                            (from == RestoreFrom::trusted ? ", and recovery.restore_from is trusted"
                                                          : ", and loading it may run that host's code on this machine of your own") +
                            ": only a container, or a lent host, may load it; to allow it anyway: gridctl job cancel " + id +
                            " && gridctl job resume " + id + " --restore-from any";
    for (sched::HostFacts& host : question.hosts)
      if (is_kept_from(host, from)) host.not_plain = why;
  }

 private:
  [[nodiscard]] static bool is_kept_from(const sched::HostFacts& host, job::RestoreFrom from) {
    if (from == job::RestoreFrom::any || sched::is_lent(host.host_class, host.labels)) return false;
    return from == job::RestoreFrom::trusted || host.host_class == k_class_home;
  }

  // Returns an untrusted host that saved the checkpoint or an earlier one; each checkpoint builds on those before it.
  [[nodiscard]] std::string stranger_in(const TrackedJob& job) const {
    const auto saved = controls_.world.records.checkpoints(job.id());
    const auto attempts = controls_.world.records.attempts(job.id());
    if (!saved || !attempts) {
      report(!saved ? saved.error() : attempts.error(), "while asking where a checkpoint comes from");
      return "a host that is not known";
    }
    for (const registry::AttemptRecord& attempt : *attempts) {
      const bool has_saved = std::any_of(saved->begin(), saved->end(), [&](const registry::Checkpoint& one) {
        return one.epoch == attempt.epoch && one.seq <= job.state().start();
      });
      if (!has_saved) continue;
      if (std::string name = stranger_among(attempt.hosts()); !name.empty()) return name;
    }
    return "";
  }

  [[nodiscard]] std::string stranger_among(const std::vector<HostName>& names) const {
    for (const HostName& name : names) {
      if (name.empty()) continue;
      const FleetHost* host = controls_.fleet.find(name);
      if (host == nullptr) return name.value + ", which is no longer registered";
      if (sched::is_lent(host->provider.host_class, host->provider.labels)) return name.value + ", a lent host";
    }
    return "";
  }

  const Controls controls_;
};

}  // namespace

std::unique_ptr<Concern> make_trust(const Controls& controls) { return std::make_unique<TrustConcern>(controls); }

}  // namespace gridctl::control
