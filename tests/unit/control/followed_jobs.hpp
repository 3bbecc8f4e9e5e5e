// SPDX-License-Identifier: Apache-2.0
// Jobs in a real registry, followed by a book, over a clock by hand.
#pragma once

#include <functional>

#include "control/follow/job_book.hpp"
#include "hand_fleet.hpp"

namespace gridctl::control::testing {

class FollowedJobs : public FleetTest {
 protected:
  const TrackedJob& submit(const std::string& id, const std::function<void(job::Spec&)>& shape = [](job::Spec&) {},
                           const std::vector<registry::Input>& inputs = {}) {
    job::Spec spec;
    spec.name = id;
    spec.run = "true";
    shape(spec);
    EXPECT_THAT(registry.submit({id}, spec, clock.wall(), inputs), gridctl::testing::IsOk());
    book.refresh();
    return job(id);
  }
  // It is launched on this host, and its program runs there unless `begins` says no.
  const TrackedJob& place(const std::string& id, const std::string& host, double usd_per_hour, bool begins = true) {
    book.apply({id}, job::Placed{{job::Member{0, {host}, EngineKind::process, {}, 1, 0, usd_per_hour}}, "the only one"});
    if (begins) start(id);
    return job(id);
  }
  void start(const std::string& id) { book.apply({id}, job::PayloadStarted{job(id).state().epoch}); }
  void end(const std::string& id, job::End how) { book.apply({id}, job::AttemptEnded{job(id).state().epoch, std::move(how)}); }
  const TrackedJob& job(const std::string& id) { return *book.find({id}); }

  JobBook book{World{clock, run, net, registry, freight, folders}};
};

}  // namespace gridctl::control::testing
