// SPDX-License-Identifier: Apache-2.0
#include "user.hpp"

#include "bag_truth.hpp"
#include "control/serve/roll.hpp"
#include "sched/catalogue/catalogue.hpp"
#include "service_truth.hpp"
#include "truth.hpp"

namespace gridctl::sim {

namespace {
constexpr Duration k_submit_again = std::chrono::milliseconds{500};
constexpr Duration k_start_again = std::chrono::seconds{1};
constexpr Duration k_look = std::chrono::seconds{2};
}  // namespace

Laptop::Laptop(World& world, int index)
    : world_(world),
      index_(index),
      random_(world.rng.fork()),
      backend_(world.options.registry == RegistryKind::sqlite ? make_sqlite_records(random_)
                                                              : make_memory_records(random_)),
      records_(world, index, *backend_, random_, disk_full, registry_trouble),
      run_(world, index,
           [this] {
             world_.say("daemon of laptop", index_, " is killed inside the registry");
             die(doomed_.value_or(false));
             world_.after(k_s, -1, [this] { begin(); });
           }),
      clock_(run_.clock()),
      net_(world, run_, index),
      freight_(world, run_, net_, index, disk_full),
      folders_(world, index),
      images_(world, run_, index),
      gateways_(world, index, [this] { return backend_->records(); }, disk_full) {
  if (!backend_->open()) throw Violation("R", "the registry cannot be made");
  for (std::size_t i = 0; i < world.hosts.size(); ++i) {
    registry::Provider provider;
    provider.name = world.hosts[i]->name();
    provider.inventory = world.hosts[i]->inventory();
    provider.peer_key = to_hex(world.hosts[i]->peer_key());
    sched::name_models(provider.inventory.edit());  // as `provider register` does
    if (world.options.ganged > 0) provider.site = "lab";
    provider.price_per_hour = i < world.options.prices.size() ? world.options.prices[i] : 0;
    provider.host_class = static_cast<int>(i) < world.options.lent ? "market" : world.options.own_class;
    if (!backend_->add_provider(provider)) throw Violation("R", "a provider cannot be added");
    if (static_cast<int>(i) < world.options.lent && world.options.measured &&
        !backend_->records()->save_figures(provider.name, {{"verified", 1.0}}))
      throw Violation("R", "a host's figures cannot be kept");
  }
}

Laptop::~Laptop() {
  records_.close();
  run_.kill();
}

void Laptop::begin() {
  if (!world_.node(index_).up) world_.node(index_).up = true;
  if (running_) return;
  running_ = true;
  clear_since_ = world_.now;
  world_.say("daemon of laptop", index_, " starts");
  run_.post([this] { start(); });
  run_.post([this] { submit_jobs(); });
  run_.post([this] { look(); });
}

void Laptop::start() {
  backend_->set_trouble(disk_full, registry_trouble);
  if (!backend_->open()) return run_.event(k_start_again, [this] { start(); });
  records_.open();
  control::Settings settings;
  settings.health_every = {};
  settings.tick = Duration{world_.options.tick};
  controller_ = std::make_unique<control::Controller>(
      control::World{clock_, run_, net_, records_, freight_, folders_, &images_}, settings,
      world_.concerns.empty() ? std::span<const control::ConcernMaker>(control::k_concerns) : world_.concerns);
  if (controller_->start()) {
    if (world_.options.services > 0)
      gateway_watch_ = std::make_unique<control::Gateways>(run_, clock_, controller_->book(), gateways_);
    return;
  }
  records_.close();  // what is saved at the end is not: a kill in the midst of that would come out of a destructor
  controller_.reset();
  run_.event(k_start_again, [this] { start(); });
}

void Laptop::die(bool power_lost) {
  if (!running_) return;
  world_.wake(index_);
  Node& node = world_.node(index_);
  if (node.stalled) return void(doomed_ = power_lost);
  doomed_.reset();
  running_ = false;
  ++deaths_;
  ++node.life;
  if (power_lost) node.booted_at = world_.now, node.boot_base = 20 * k_s, ++node.boots;
  records_.close();
  run_.kill();
  applies_.clear();
  if (power_lost) gateways_.die();
  gateway_watch_.reset();
  controller_.reset();
  backend_->close(power_lost);
}

void Laptop::wait_for_disk() {
  if (run_.fiber()) run_.pause(Duration{world_.points.delay()});
  else world_.stall(index_);
}

// As `job submit` does: tried until it is acknowledged.
void Laptop::submit_jobs() {
  bool all = true;
  for (std::size_t i = 0; i < world_.jobs.size(); ++i) {
    SimJob& job = world_.jobs[i];
    if (job.laptop != index_ || job.submitted || !job.spec.twin_of.value.empty()) continue;
    all = false;
    if (!can_command()) continue;
    const Result<registry::Job> before = records_.by_user([&](auto& records) { return records.job(job.id); });
    if (!before && before.error().code != Code::not_found) continue;
    std::map<std::string, std::string> secrets;
    for (const std::string& name : job.spec.secrets) secrets[name] = world_.truth->secret_of(static_cast<int>(i));
    folders_.put_secrets(job.id, secrets);
    if (!before && !records_.by_user([&](auto& records) { return records.submit(job.id, job.spec, wall(), {}); }))
      continue;
    job.submitted = true;
    world_.truth->submitted(static_cast<int>(i));
    world_.say(job.id.value, " is submitted on laptop", index_);
  }
  if (!all) run_.event(k_submit_again, [this] { submit_jobs(); });
}

void Laptop::look() {
  const Node& node = world_.node(index_);
  if (disk_full || registry_trouble || controller_ == nullptr) clear_since_ = world_.now;
  clear_since_ = std::max(clear_since_, node.woke_at);
  if (controller_ != nullptr) world_.truth->audit(*this), world_.bags->audit(*this), world_.services->audit(*this);
  run_.event(k_look, [this] { look(); });
}

bool Laptop::can_command() const {
  const Node& node = world_.node(index_);
  return running_ && node.up && !node.asleep && !node.stalled && backend_->records() != nullptr;
}

void Laptop::user_cancels(const JobId& id, bool at_once) {
  if (!can_command() || !world_.truth->knows(id)) return;
  const Result<registry::Job> before = records_.by_user([&](auto& records) { return records.job(id); });
  if (!before) return;
  const job::Event what = job::CancelRequested{at_once ? Duration{0} : std::chrono::seconds{30}};
  const Result<job::Step> step = records_.by_user([&](auto& records) { return records.apply(id, {wall(), what}); });
  if (!step) return;
  world_.truth->stepped(index_, before->machine, what, step->state);
  world_.truth->cancelled(world_.truth->index(id));
  if (job::is_final(step->state.visible())) folders_.drop_secrets(id);  // no daemon may ever see it, as `job cancel` knows
}

void Laptop::user_resumes(const JobId& id) {
  if (!can_command() || !world_.truth->knows(id)) return;
  const Result<registry::Job> before = records_.by_user([&](auto& records) { return records.job(id); });
  if (!before || (before->state != job::JobState::cancelled && before->state != job::JobState::failed)) return;
  std::map<std::string, std::string> secrets;
  for (const std::string& name : before->spec.secrets) secrets[name] = world_.truth->secret_of(world_.index_of(id));
  folders_.put_secrets(id, secrets);
  if (before->spec.tasks && !folders_.resume_bag(id)) return;
  world_.truth->may_resume(world_.truth->index(id));  // also when it is told that this failed
  const Result<job::Step> step = records_.by_user([&](auto& records) {
    return records.apply(id, {wall(), job::ResumeRequested{}});
  });
  // It may have been resumed all the same, so `job resume` leaves the secrets to housekeeping.
  if (!step || job::is_final(step->state.visible())) return folders_.leave_secrets(id);
  world_.say(id.value, " is resumed on laptop", index_);
  world_.truth->resumed(world_.truth->index(id), step->state);
}

// `gridctl service apply` on this laptop.
class SimRollDesk : public control::RollDesk {
 public:
  SimRollDesk(Laptop& laptop, JobId service) : laptop_(laptop), service_(std::move(service)) {}

  Result<registry::Job> job(const JobId& id) override {
    if (!laptop_.can_command()) return cannot();
    return laptop_.records_.by_user([&](auto& records) { return records.job(id); });
  }
  Result<std::vector<registry::Input>> inputs(const JobId& id) override {
    if (!laptop_.can_command()) return cannot();
    return laptop_.records_.by_user([&](auto& records) { return records.inputs(id); });
  }
  Result<void> submit(const JobId& id, const job::Spec& spec, const std::vector<registry::Input>& inputs) override {
    if (!laptop_.can_command()) return cannot();
    laptop_.world_.add_job({id, laptop_.index_, spec});
    TRY(laptop_.records_.by_user([&](auto& records) { return records.submit(id, spec, laptop_.wall(), inputs); }));
    laptop_.world_.truth->submitted(laptop_.world_.truth->index(id));
    return {};
  }
  Result<void> replace(const JobId& id, const job::Spec& spec, const std::vector<registry::Input>& inputs,
                       const job::Event& what) override {
    return change(id, what, [&](auto& records) { return records.replace(id, spec, inputs, {laptop_.wall(), what}); });
  }
  Result<void> apply(const JobId& id, const job::Event& what) override {
    return change(id, what, [&](auto& records) { return records.apply(id, {laptop_.wall(), what}); });
  }
  Result<void> keep_secrets(const JobId& id) override {
    std::map<std::string, std::string> secrets;
    for (const std::string& name : laptop_.world_.jobs[static_cast<std::size_t>(laptop_.world_.index_of(service_))].spec.secrets)
      secrets[name] = laptop_.world_.truth->secret_of(laptop_.world_.index_of(service_));
    if (laptop_.disk_full) return make_error(Code::no_space, "the disk is full");
    laptop_.folders_.put_secrets(id, secrets);
    return {};
  }
  Result<void> committed() override { return {}; }
  bool are_same(const job::Spec&, const std::vector<registry::Input>&, const std::vector<registry::Input>&) override {
    return true;
  }
  bool gateway_lives() override { return laptop_.gateways_.lives(service_); }
  std::optional<control::GatewayInfo> told() override { return laptop_.gateways_.told(service_); }
  std::optional<control::ServerLine> line(int replica) override {
    if (!laptop_.gateways_.lives(service_)) return std::nullopt;
    control::ServerLine line;
    line.status = laptop_.gateways_.answers(service_, replica) ? "UP" : "DRAIN";
    line.under_way = laptop_.gateways_.is_drained(service_, replica) ? 0 : 1;
    return line;
  }
  Result<void> let_leave(int replica) override { return laptop_.gateways_.let_leave(service_, replica, laptop_.wall()); }
  void let_stay(int replica) override { laptop_.gateways_.stay(service_, replica); }
  BootTime now() override { return laptop_.boot(); }
  void pause(Duration time) override { laptop_.run_.pause(time); }
  void note(const std::string& text) override { laptop_.world_.say("service apply: ", text); }

 private:
  static Error cannot() { return make_error(Code::io, "the registry is not open"); }
  template <class Write>
  Result<void> change(const JobId& id, const job::Event& what, Write write) {
    TRY_ASSIGN(const registry::Job before, job(id));
    Truth& truth = *laptop_.world_.truth;
    if (std::holds_alternative<job::ResumeRequested>(what)) truth.may_resume(truth.index(id));
    TRY_ASSIGN(const job::Step step, laptop_.records_.by_user(write));
    if (std::holds_alternative<job::ResumeRequested>(what)) truth.resumed(truth.index(id), step.state);
    else truth.stepped(laptop_.index_, before.machine, what, step.state);
    if (std::holds_alternative<job::CancelRequested>(what)) truth.cancelled(truth.index(id));
    return {};
  }

  Laptop& laptop_;
  const JobId service_;
};

void Laptop::user_applies(const JobId& id) {
  if (!can_command() || !world_.truth->knows(id) || applies_.contains(id.value)) return;
  const Result<registry::Job> leader = records_.by_user([&](auto& records) { return records.job(id); });
  if (!leader || !leader->spec.service || !leader->spec.twin_of.value.empty() || job::is_final(leader->state) ||
      leader->machine.cancel)
    return;
  applies_.insert(id.value);
  auto version = std::make_shared<control::NewVersion>(control::NewVersion{id, *leader, leader->spec, {}});
  version->spec.service->version = world_.services->next_version(id, leader->spec.service->version);
  world_.say(id.value, " gets version ", version->spec.service->version);
  run_.run({os::Lane::Kind::urgent, ""}, [this, id, version] {
    SimRollDesk desk(*this, id);
    const Result<bool> done = control::is_rolled(desk, *version);
    const Result<void> rolled = !done ? Result<void>(done.error()) : *done ? Result<void>{} : control::roll(desk, *version);
    world_.say(id.value, rolled ? " has its version" : " does not get its version: " + rolled.error().one_line());
    if (rolled) world_.services->applied(id, version->spec.service->version);
    applies_.erase(id.value);
  });
}

template <class Change>
bool Laptop::change_provider(int host, Change change) {
  if (!can_command()) return false;
  const auto providers = records_.by_user([](auto& records) { return records.providers(); });
  if (!providers) return false;
  for (registry::Provider provider : *providers) {
    if (provider.name != world_.hosts[static_cast<std::size_t>(host)]->name()) continue;
    change(provider);
    return records_.by_user([&](auto& records) { return records.update_provider(provider); }).has_value();
  }
  return false;
}

void Laptop::user_drains(int host, bool drained, Duration within) {
  if (!drained) world_.truth->wants_empty(index_, host, false);
  const bool written = change_provider(host, [&](registry::Provider& provider) {
    provider.drained = drained;
    provider.drain_within = within;
  });
  if (drained && written) world_.truth->wants_empty(index_, host, true);
}

void Laptop::user_prices(int host, double usd_per_hour) {
  (void)change_provider(host, [&](registry::Provider& provider) { provider.price_per_hour = usd_per_hour; });
}

void Laptop::user_ends(int host, std::optional<WallTime> until) {
  (void)change_provider(host, [&](registry::Provider& provider) { provider.until = until; });
}

void Laptop::user_reaches(int host, const std::vector<std::string>& addresses) {
  (void)change_provider(host, [&](registry::Provider& provider) {
    std::vector<registry::Way> ways;
    for (const std::string& address : addresses) ways.emplace_back().address = address;
    provider.set_ways(std::move(ways));
  });
}

void Laptop::user_accepts(int host) {
  (void)change_provider(host, [&](registry::Provider& provider) {
    provider.peer_key = to_hex(world_.hosts[static_cast<std::size_t>(host)]->peer_key());
  });
}

void Laptop::user_budgets(const std::string& owner, double usd_month) {
  if (!can_command()) return;
  world_.truth->has_monthly_budgets = true;
  if (backend_->save_budget({owner, usd_month})) records_.others_wrote();
}

}  // namespace gridctl::sim
