// SPDX-License-Identifier: Apache-2.0
#include "network.hpp"

#include <algorithm>
#include <deque>
#include <utility>

#include "control/reach/pace.hpp"
#include "control/reach/peer.hpp"
#include "truth.hpp"
#include "user.hpp"

namespace gridctl::sim {

namespace {

constexpr Nanos k_held_up = 6 * k_s;

Error broken() { return make_error(Code::host_unreachable, "the connection broke"); }

wire::AgentHello hello_of(const Host::Hello& told) {
  wire::AgentHello hello;
  hello.boot_id = told.boot_id;
  hello.features = {std::string(wire::k_bags_feature)};
  hello.host_time = told.host_time;
  hello.peer_key = told.peer_key;
  return hello;
}

// Of a heartbeat.
class SimChannel : public control::AgentChannel {
 public:
  SimChannel(std::shared_ptr<Connection> connection, wire::AgentHello hello)
      : connection_(std::move(connection)), hello_(std::move(hello)) {}
  ~SimChannel() override { connection_->arrived = nullptr, connection_->broke = nullptr; }
  [[nodiscard]] const wire::AgentHello& hello() const override { return hello_; }
  [[nodiscard]] std::string way() const override { return connection_->way(); }
  // Truth counts a login as an answer from here on: the daemon's loop learns of the login in this call.
  void listen(std::function<void(const wire::Frame&)> on_frame, std::function<void(const Error&)> on_closed) override {
    connection_->greeted();
    connection_->arrived = std::move(on_frame);
    connection_->broke = std::move(on_closed);
  }
  void send(const wire::Frame& frame) override { connection_->ask(frame); }

 private:
  std::shared_ptr<Connection> connection_;
  const wire::AgentHello hello_;
};

// Of one piece of work.
class SimLink : public wire::Link {
 public:
  SimLink(SimExecutor& run, std::shared_ptr<Connection> connection, std::shared_ptr<control::LifeSign> life)
      : run_(run), connection_(std::move(connection)), life_(std::move(life)) {
    const auto wake = [this] {
      if (const auto fiber = reader_.lock()) fiber->wake(wait_);
    };
    connection_->arrived = [this, wake](const wire::Frame& frame) {
      inbox_.push_back(frame);
      wake();
    };
    connection_->broke = [wake](const Error&) { wake(); };
    if (life_ != nullptr) life_->heard(run_.clock().boot());
  }
  ~SimLink() override { connection_->arrived = nullptr, connection_->broke = nullptr; }

  Result<void> send(const wire::Frame& frame, BootTime) override {
    if (connection_->is_broken()) return broken();
    connection_->ask(frame);
    return {};
  }
  Result<wire::Frame> receive(BootTime deadline) override {
    for (;;) {
      if (!inbox_.empty()) {
        wire::Frame frame = std::move(inbox_.front());
        inbox_.pop_front();
        if (life_ != nullptr) life_->heard(run_.clock().boot());
        return frame;
      }
      if (connection_->is_broken()) return broken();
      if (run_.clock().boot() >= deadline) return make_error(Code::timed_out, "no answer in time");
      reader_ = run_.fiber();
      wait_ = run_.fiber()->next_wait();
      (void)run_.wait_until(deadline);
    }
  }

 private:
  SimExecutor& run_;
  std::shared_ptr<Connection> connection_;
  std::shared_ptr<control::LifeSign> life_;
  std::deque<wire::Frame> inbox_;
  std::weak_ptr<Fiber> reader_;
  std::uint64_t wait_ = 0;
};

}  // namespace

void Connection::greeted() { world_.heard(laptop_, host_); }

// A START may be held up on its way, and its user may think better of it just then.
void Connection::ask(const wire::Frame& frame) {
  if (world_.ways.contains(way_)) return;
  Nanos held = 0;
  const Options& o = world_.options;
  if (operation_of(frame.payload) == "start") {
    if (const Result<wire::StartRequest> start = wire::parse_start(frame.payload)) {
      world_.truth->start_sent(*world_.laptops[static_cast<std::size_t>(laptop_)], start->spec.job, start->spec.epoch);
      if (!world_.healed && world_.rng.chance(o.cancel_start))
        world_.user_cancels(start->spec.job, world_.rng.between(0, k_s));
    }
    if (!world_.healed && world_.rng.chance(o.late_start)) held = world_.rng.between(0, k_held_up);
  }
  const std::string_view operation = operation_of(frame.payload);
  const std::optional<Point> point = world_.points.is_active() ? point_of(operation) : std::nullopt;
  // A heartbeat is about its host.
  const std::string subject = !point || operation == "poll" ? "" : job_named_in(frame.payload);
  const Fate fate = point ? world_.pass(laptop_, subject.empty() ? "host" + std::to_string(host_) : subject, *point) : Fate::well;
  if (fate == Fate::late) held += world_.points.delay();
  const std::uint64_t number = ++asked_;
  if (fate == Fate::fails)
    return run_.event(Duration{k_ms}, [self = shared_from_this(), number, stream = frame.stream] {
      self->answered(number, stream, broken());
    });
  auto deliver = [self = shared_from_this(), life = world_.node(laptop_).life, number, frame, fate] {
    World& world = self->world_;
    Host& there = *world.hosts[static_cast<std::size_t>(self->host_)];
    Result<Served> reply = broken();
    if (there.serves(self->there_)) {
      try {
        reply = serve(world, there, self->laptop_, frame, self->last_poll_);
      } catch (const Killed&) {
        there.kill_agents();
      }
    }
    if (fate == Fate::lost) reply = broken();
    const auto back = [self, life, number, stream = frame.stream, reply = std::move(reply)] {
      self->world_.answer(self->laptop_, self->host_, life, [self, number, stream, reply] {
        self->run_.guard([&] { self->answered(number, stream, reply); });
      });
    };
    if (const Nanos wait = there.take_answer_delay(); wait > 0) world.after(wait, world.host_node(self->host_), back);
    else back();
  };
  if (held == 0) return world_.send(laptop_, host_, std::move(deliver));
  run_.event(Duration{held}, [self = shared_from_this(), deliver = std::move(deliver)] {
    self->world_.send(self->laptop_, self->host_, deliver);
  });
}

void Connection::answered(std::uint64_t number, std::uint32_t stream, const Result<Served>& reply) {
  if (broken_ || number <= told_) return;
  const auto self = shared_from_this();  // who listens may let go of us
  if (!reply) {
    broken_ = true;
    const auto told = broke;
    if (told) told(reply.error());
    return;
  }
  std::vector<wire::Frame> frames{{wire::FrameKind::reply, stream, reply->payload}};
  if (reply->data) {
    if (!reply->data->empty()) frames.push_back({wire::FrameKind::data, stream, *reply->data});
    frames.push_back({wire::FrameKind::end, stream, wire::encode(wire::EndRecord{reply->data->size(), {}})});
  }
  early_.emplace(number, std::move(frames));
  while (!early_.empty() && early_.begin()->first == told_ + 1) {
    const std::vector<wire::Frame> next = std::move(early_.extract(early_.begin()).mapped());
    ++told_;
    for (const wire::Frame& frame : next) {
      const auto told = arrived;
      if (!told) return;
      world_.heard(laptop_, host_);
      told(frame);
    }
  }
}

// A host with one way has the link between it and the laptop. Of several, each may be cut, or lead to another machine.
Result<SimNetwork::Greeted> SimNetwork::greet(const registry::Provider& provider, BootTime deadline) {
  const int host = host_of(provider.name);
  const auto open = [&](const registry::Way& way, Duration login) -> Result<Greeted> {
    const auto fault = world_.ways.find(way.address);
    if (fault == world_.ways.end()) {
      TRY_ASSIGN(const Host::Hello hello, ask<Host::Hello>(
                                              host, deadline, [this](Host& there) { return there.greet(laptop_); }, 0));
      TRY(control::check_peer(provider, way, hello_of(hello)));
      return Greeted{hello, way.address};
    }
    if (fault->second == WayFault::another_machine)
      return make_error(Code::host_key_mismatch, "another machine answers at " + way.address);
    run_.pause(std::min(login, deadline - run_.clock().boot()));
    return make_error(Code::timed_out, way.address + " does not answer");
  };
  return control::try_ways(provider, ways_, run_.clock(), control::k_connect_timeout, open);
}

Result<std::unique_ptr<control::AgentChannel>> SimNetwork::connect(const registry::Provider& provider,
                                                                   BootTime deadline) {
  const int host = host_of(provider.name);
  // No agent has to be sent: only that may take until the deadline.
  if (provider.more_ways.empty()) deadline = std::min(deadline, run_.clock().boot() + control::k_connect_timeout);
  TRY_ASSIGN(const Greeted greeted, greet(provider, deadline));
  auto connection =
      std::make_shared<Connection>(world_, run_, laptop_, host, greeted.hello.connection, greeted.way);
  return std::unique_ptr<control::AgentChannel>(std::make_unique<SimChannel>(std::move(connection), hello_of(greeted.hello)));
}

Result<transfer::BulkLink> SimNetwork::open(const registry::Provider& provider, BootTime deadline) {
  return open(provider, deadline, nullptr);
}

Result<transfer::BulkLink> SimNetwork::open(const registry::Provider& provider, BootTime deadline,
                                            std::shared_ptr<control::LifeSign> life) {
  const int host = host_of(provider.name);
  TRY_ASSIGN(const Greeted greeted, greet(provider, deadline));
  if (life != nullptr) world_.heard(laptop_, host);
  auto connection =
      std::make_shared<Connection>(world_, run_, laptop_, host, greeted.hello.connection, greeted.way);
  transfer::BulkLink bulk;
  bulk.link = std::make_unique<SimLink>(run_, std::move(connection), std::move(life));
  bulk.way = greeted.way;
  return bulk;
}

}  // namespace gridctl::sim
