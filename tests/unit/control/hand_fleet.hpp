// SPDX-License-Identifier: Apache-2.0
// A fleet over lines and a clock by hand, and somebody who hears of everything.
#pragma once

#include <gmock/gmock.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/fleet/fleet.hpp"
#include "control/follow/job_files.hpp"
#include "hand_world.hpp"
#include "registry/registry.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::control::testing {

struct Ears : FleetListener {
  void polled(const FleetHost& host, const wire::PollReply&) override { heard.push_back(host.provider.name.value + " polled"); }
  void logged(const FleetHost& host, const wire::LogRequest&, std::uint64_t offset, const std::string& bytes) override {
    heard.push_back(host.provider.name.value + " said " + bytes + " at " + std::to_string(offset));
  }
  void connected(const FleetHost& host, const wire::AgentHello&) override { heard.push_back(host.provider.name.value + " connected"); }
  void login_refused(const FleetHost& host, const Error&) override { heard.push_back(host.provider.name.value + " refused"); }
  void pinged(const FleetHost& host, Duration) override { heard.push_back(host.provider.name.value + " pinged"); }
  void liveness_changed(const FleetHost& host) override {
    heard.push_back(host.provider.name.value + " is " + std::to_string(static_cast<int>(host.liveness)));
  }
  void health_changed(const FleetHost& host, const std::vector<sched::Change>& changes) override {
    heard.push_back(host.provider.name.value + " changed " + std::to_string(changes.size()));
  }
  void gpu_lost(const FleetHost& host, const std::string& gpu, const std::string& why) override {
    heard.push_back(host.provider.name.value + " lost " + gpu + ": " + why);
  }
  std::vector<std::string> heard;
  std::vector<std::string> take() { return std::exchange(heard, {}); }
};

class FleetTest : public ::testing::Test {
 protected:
  explicit FleetTest(Duration health_every = Duration::zero()) : health_every_(health_every) {}
  void add(const std::string& name) {
    registry::Provider provider;
    provider.name = {name};
    provider.address = "me@" + name;
    provider.host = name;
    EXPECT_THAT(registry.add_provider(provider), gridctl::testing::IsOk());
    net.line(name)->hello.features = {"health"};
  }
  Fleet& fleet() {
    if (!fleet_) {
      fleet_.emplace(World{clock, run, net, registry, freight, folders}, health_every_);
      fleet_->listen(ears);
      EXPECT_TRUE(fleet_->refresh());
    }
    return *fleet_;
  }
  void tick(Duration time = {}) {
    clock.pass(time);
    fleet().tick(clock.boot());
    run.settle();
  }
  HandLine& line(const std::string& name) { return *net.line(name); }
  const FleetHost& host(const std::string& name) { return *fleet().find({name}); }
  // The newest request of this kind that it has not answered yet.
  void reply(const std::string& name, const std::string& op, const std::string& payload) {
    for (const wire::Frame& frame : std::vector(line(name).sent.rbegin(), line(name).sent.rend()))
      if (wire::request_name(frame.payload) == op) return line(name).say(wire::FrameKind::reply, frame.stream, payload);
    ADD_FAILURE() << name << " was not asked for " << op;
  }
  void answer(const std::string& name, const std::optional<std::vector<wire::HeldShare>>& held = {}, const std::string& boot = "boot") {
    wire::PollReply told;
    told.host_time = clock.boot();
    told.boot_id = boot;
    told.held = held;
    reply(name, "poll", wire::encode(told));
  }
  registry::Provider row(const std::string& name) { return *registry.provider({name}); }

  gridctl::testing::TempDir dir;
  HandClock clock;
  HandExecutor run{clock};
  HandNetwork net{clock};
  registry::Registry registry = *registry::Registry::open(dir.path());
  LinkMeter meter;
  StoreFreight freight{net, clock, registry, meter};
  JobFiles folders{Paths{dir.path()}};
  Ears ears;

 private:
  Duration health_every_;
  std::optional<Fleet> fleet_;
};

}  // namespace gridctl::control::testing
