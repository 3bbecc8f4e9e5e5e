// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/receipt_keeper.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "base/text.hpp"
#include "control/reach/agent_network.hpp"
#include "control/reach/request.hpp"
#include "control/reach/ways.hpp"
#include "job/spec.hpp"
#include "lend/call.hpp"
#include "lend/receipt.hpp"
#include "os/log.hpp"
#include "os/random.hpp"
#include "registry/change_provider.hpp"

namespace gridctl::control {

namespace {

constexpr std::uint64_t k_key_file_max = 4096;
constexpr int k_rounds_most = 1000;  // of one exchange: a host that says that it has ever more is not listened to for ever
constexpr std::int64_t k_day_ms = 24LL * 3600 * 1000;
// A host says one of these of an attempt that it did not start. If it could take money for it, it would earn by refusing.
constexpr std::array<std::string_view, 5> k_never_began{"start_failed", "image_failed", "disk_full", "absent", "not_started"};
constexpr std::array<std::string_view, 3> k_ends_unheard{"host_lost", "absent", "host_rebooted"};

std::vector<Rates> accepted_before(const std::vector<registry::AcceptedRates>& all, std::int64_t began_ms) {
  std::vector<Rates> some;
  for (std::size_t at = 0; at < all.size(); ++at) {
    // An attempt starts on its host when its image is ready, long after START was sent.
    if (at + 1 < all.size() && all[at + 1].at.ms < began_ms - k_day_ms) continue;
    if (const Result<Rates> rates = wire::parse_stored_rates(all[at].rates)) some.push_back(*rates);
  }
  return some;
}

// Returns what is known here of the attempt that a receipt is for.
// `fresh`: receipts that are not stored yet.
Result<std::optional<lend::SeenAttempt>> seen_attempt(const ReceiptTalk& talk, const lend::Receipt& receipt, const std::vector<registry::ReceiptRecord>& fresh) {
  TRY_ASSIGN(const auto attempt, talk.store.attempt(receipt.job, receipt.epoch));
  if (!attempt || attempt->provider != talk.provider) return std::optional<lend::SeenAttempt>{};
  TRY_ASSIGN(const job::Spec spec, job::parse_spec(attempt->spec));
  TRY_ASSIGN(const auto accepted, talk.store.accepted(talk.chain));
  lend::SeenAttempt seen;
  TRY_ASSIGN(const auto stored, talk.store.number_of(talk.chain, receipt.job, receipt.epoch));
  const auto twin = std::ranges::find_if(fresh, [&](const registry::ReceiptRecord& one) { return one.job == receipt.job && one.epoch == receipt.epoch; });
  seen.billed = stored ? *stored : twin != fresh.end() ? twin->number : 0;
  // An attempt that was ended while it started may have run for a moment that was never reported here.
  const WallTime ended = attempt->ended_at.value_or(talk.now);
  WallTime began = attempt->started_at.value_or(ended);
  // The machine is the job's from its setup on.
  const bool has_setup = !spec.setup.empty() || std::ranges::any_of(spec.variants, [](const job::Variant& one) { return !one.setup.empty(); });
  if (has_setup) began = std::min(began, attempt->accepted_at.value_or(began));
  seen.ran_ms = ended.ms - began.ms;
  const bool began_setup = has_setup && attempt->accepted_at;
  if (!attempt->started_at && !began_setup && std::ranges::find(k_never_began, attempt->reason) != k_never_began.end())
    seen.never_began = attempt->reason;
  // A host that is cut off continues until the job's lease expires; the job file sets the length of the lease.
  if (std::ranges::find(k_ends_unheard, attempt->reason) != k_ends_unheard.end())
    seen.ran_ms += std::chrono::duration_cast<std::chrono::milliseconds>(spec.recovery.lease).count();
  for (const job::GpuRequest& gpus : spec.resources.gpus) seen.gpus = std::max(seen.gpus, gpus.count_max);
  seen.cpus_milli = static_cast<std::int64_t>((spec.resources.cpus > 0 ? spec.resources.cpus : 1) * 1000);
  seen.accepted = accepted_before(accepted, began.ms);
  return std::optional(seen);
}

Result<registry::ReceiptRecord> record_of(const ReceiptTalk& talk, lend::SignedReceipt receipt, const std::vector<registry::ReceiptRecord>& fresh) {
  TRY_ASSIGN(const auto seen, seen_attempt(talk, receipt.receipt, fresh));
  const lend::Answer answer = lend::judge(receipt.receipt, seen);
  const std::string line = lend::answer_line(answer, talk.seed);
  TRY(lend::add_answer(receipt, line));
  const lend::Receipt& r = receipt.receipt;
  return registry::ReceiptRecord{talk.chain, r.number, r.job, r.epoch, r.ended, r.amount, answer.amount, answer.agreed, lend::to_line(receipt), line};
}

// Holds the last receipt taken, and what follows it.
struct Taken {
  lend::ReceiptPair pair;
  std::uint64_t number = 0;
  Digest hash;
};

// Takes the receipts that continue the chain; the first line may repeat the last receipt here. Returns what is wrong;
// empty: nothing.
Result<std::string> take(const ReceiptTalk& talk, const std::vector<std::string>& lines, Taken& last, std::vector<registry::ReceiptRecord>& records) {
  for (const std::string& line : lines) {
    Result<lend::SignedReceipt> receipt = lend::parse_receipt(line);
    if (!receipt)
      return "damaged: the host's receipt after number " + std::to_string(last.number) + ": " + receipt.error().message;
    const lend::Receipt& r = receipt->receipt;
    if (r.pair != last.pair) return "the host's receipt " + std::to_string(r.number) + " is for other keys than this chain's";
    const bool again = r.number == last.number && last.number > 0;
    if (again && lend::hash_of(r) == last.hash) continue;
    if (again || (r.number == last.number + 1 && r.previous != last.hash))
      return "fork: the host has another receipt " + std::to_string(again ? r.number : r.number - 1) +
             " than the one answered here";
    if (r.number != last.number + 1) return "the host omits receipt " + std::to_string(last.number + 1);
    TRY_ASSIGN(registry::ReceiptRecord record, record_of(talk, *receipt, records));
    last.number = r.number;
    last.hash = lend::hash_of(r);
    records.push_back(std::move(record));
  }
  return std::string();
}

Result<Taken> last_taken(const ReceiptTalk& talk, const registry::ReceiptChain& chain) {
  Taken last{{talk.chain, talk.controller, {}, crypto::ed25519_public(talk.seed)}, chain.head, {}};
  TRY_ASSIGN(last.pair.host_key, parse_digest(chain.host_key));
  last.hash = lend::hash_of(last.pair);
  if (chain.head == 0) return last;
  TRY_ASSIGN(const auto newest, talk.store.receipts_after(talk.chain, chain.head - 1, 1));
  if (newest.empty())
    return make_error(Code::state_unreadable, "receipt " + std::to_string(chain.head) + " of " + talk.provider.value + " is missing here",
                      "gridctl receipts verify");
  TRY_ASSIGN(const lend::SignedReceipt receipt, lend::parse_receipt(newest.front().line));
  last.hash = lend::hash_of(receipt.receipt);
  return last;
}

Result<void> bring_answers(const ReceiptTalk& talk, wire::ReceiptsRequest request, std::uint64_t answered) {
  for (int round = 0; round < k_rounds_most; ++round) {
    TRY_ASSIGN(const auto missing, talk.store.receipts_after(talk.chain, answered, wire::k_receipts_most));
    if (missing.empty()) return {};
    request.answers.clear();
    for (const registry::ReceiptRecord& one : missing) request.answers.push_back({one.number, one.answer});
    request.after = missing.back().number;
    TRY_ASSIGN(const wire::ReceiptsReply reply, talk.ask(request));
    if (reply.answered <= answered) return {};
    answered = reply.answered;
  }
  return {};
}

Result<registry::ReceiptChain> chain_of(const ReceiptTalk& talk) {
  TRY_ASSIGN(auto known, talk.store.chain(talk.chain));
  if (known) return *std::move(known);
  registry::ReceiptChain fresh;
  fresh.chain = talk.chain;
  fresh.provider = talk.provider;
  fresh.agreed.hour_micro = talk.agreed_micro;
  return fresh;
}

// Takes all receipts that the host has. Returns its last reply.
Result<wire::ReceiptsReply> take_all(const ReceiptTalk& talk, wire::ReceiptsRequest request, registry::ReceiptChain& chain, std::size_t& added) {
  for (int round = 0;; ++round) {
    request.after = chain.head > 0 ? chain.head - 1 : 0;
    TRY_ASSIGN(wire::ReceiptsReply reply, talk.ask(request));
    const std::string key = reply.host_key ? to_hex(*reply.host_key) : "";
    chain.host_head = reply.head;
    chain.rates = wire::encode(reply.rates);
    chain.trouble.clear();
    if (chain.host_key.empty()) chain.host_key = key;
    if (key != chain.host_key) chain.trouble = "the host signs with another key than before";
    else if (reply.head < chain.head)
      chain.trouble = "cut off: the host's last receipt is number " + std::to_string(reply.head) + ", and number " +
                      std::to_string(chain.head) + " was already answered here";
    std::vector<registry::ReceiptRecord> records;
    if (chain.trouble.empty() && !reply.receipts.empty()) {
      TRY_ASSIGN(Taken last, last_taken(talk, chain));
      TRY_ASSIGN(chain.trouble, take(talk, reply.receipts, last, records));
      chain.head = last.number;
    }
    TRY(talk.store.save_chain(chain));
    TRY(talk.store.keep(talk.chain, records));
    added += records.size();
    if (chain.trouble.empty() && chain.head == reply.head) {  // else what it does not name may still get a receipt
      chain.told_at = talk.now;
      chain.pending = reply.pending;
      TRY(talk.store.save_chain(chain));
    }
    if (records.empty() || chain.head >= reply.head || !chain.trouble.empty() || round > k_rounds_most) return reply;
  }
}

}  // namespace

bool is_agreed(const registry::AgreedPrice& most, const Rates& rates, std::int64_t hour) {
  return hour <= most.hour_micro && rates.gigabyte <= most.gigabyte_micro && rates.minimum <= most.minimum_micro;
}

Result<Digest> receipt_seed(const os::Path& state_directory) {
  const os::Path file = state_directory / "receipt.key";
  if (!os::exists(file)) {
    TRY(os::write_file_durably(file, to_hex(os::random_digest()) + "\n"));
  }
  TRY_ASSIGN(const std::string text, os::read_file(file, k_key_file_max));
  return parse_digest(trim(text)).context("while reading " + file.string());
}

Result<ReceiptNews> exchange_receipts(const ReceiptTalk& talk, const std::optional<Rates>& accepts) {
  ReceiptNews news;
  TRY_ASSIGN(news.chain, chain_of(talk));
  news.chain.provider = talk.provider;
  wire::ReceiptsRequest request{crypto::ed25519_public(talk.seed), 0, {}, {}};
  TRY_ASSIGN(auto accepted, talk.store.accepted(talk.chain));
  if (accepts) {  // here first: else a host could have our word, and we would not know of it
    const std::string text = wire::encode(*accepts);
    if (accepted.empty() || accepted.back().rates != text) {
      TRY(talk.store.accept(talk.chain, talk.now, text));
      accepted.push_back({talk.now, text});
    }
  }
  if (!accepted.empty()) {
    TRY_ASSIGN(request.accepts, wire::parse_stored_rates(accepted.back().rates));
  }
  TRY_ASSIGN(const wire::ReceiptsReply reply, take_all(talk, request, news.chain, news.added));
  news.rates = reply.rates;
  news.accepted = news.rates == Rates{} || request.accepts == news.rates;
  if (news.chain.trouble.empty()) TRY(bring_answers(talk, request, reply.answered));
  return news;
}

namespace {

constexpr Duration k_receipts_every = std::chrono::minutes{1};    // without news
constexpr Duration k_after_end = std::chrono::milliseconds{1500};  // until the host has made the receipt
constexpr Duration k_accept_again = std::chrono::seconds{1};
constexpr Duration k_receipts_within = std::chrono::seconds{30};
constexpr std::uint32_t k_receipts_stream = 1;  // of a connection that nobody else uses
constexpr std::size_t k_ends_known_most = 10'000;

std::int64_t micro_of(double usd) { return std::llround(usd * static_cast<double>(k_micro)); }

std::string chain_of_provider(const registry::Provider& provider) { return provider.address.substr(lend::k_scheme.size()); }

// Returns the command by which the user accepts what the owner asks.
std::string acceptance(const HostName& name, const Rates& rates, std::int64_t hour) {
  return "gridctl provider price " + name.value + " " + usd_text(hour) + (rates.gigabyte > 0 ? " --traffic " + usd_text(rates.gigabyte) : "") +
         (rates.minimum > 0 ? " --minimum " + usd_text(rates.minimum) : "");
}

std::string agreed_text(const registry::AgreedPrice& agreed) {
  return usd_text(agreed.hour_micro) + " an hour, " + usd_text(agreed.gigabyte_micro) + " for a gigabyte and " + usd_text(agreed.minimum_micro) +
         " as the least price of an attempt";
}

// Writes the price of the complete host into its row, where placement finds it. Returns false if its owner asks more
// than was agreed.
Result<bool> follow_price(const Paths& paths, const HostName& name, const ReceiptNews& news, const Rates& before, WallTime now) {
  TRY_ASSIGN(registry::Registry registry, registry::Registry::open(paths.root));
  TRY_ASSIGN(const registry::Provider provider, registry.provider(name));
  const std::int64_t hour = hourly(news.rates, provider.inventory->gpus.size(), static_cast<std::uint64_t>(std::max(provider.inventory->cpus, 0.0)));
  const registry::AgreedPrice& most = news.chain.agreed;
  const bool agreed = is_agreed(most, news.rates, hour);
  const double usd = static_cast<double>(hour) / static_cast<double>(k_micro);
  if (news.rates != before) {
    const std::string text = "its owner asks " + rates_text(news.rates) + " (USD): " + usd_text(hour) + " an hour for the whole host";
    TRY(registry.add_host_event({0, name, now, "price", agreed ? text : text + "; agreed: at most " + agreed_text(most) +
                                                                       "; accept it with: " + acceptance(name, news.rates, hour)}));
  }
  if (agreed && micro_of(provider.price_per_hour) != hour) {
    TRY(registry::change_provider(registry, name, [&](registry::Provider& row) -> Result<void> {
      row.price_per_hour = usd;
      return {};
    }));
  }
  return agreed;
}

Result<ReceiptNews> talk_to(const registry::Provider& provider, const Paths& paths, AgentNetwork& net, const ControllerId& controller,
                            const std::optional<Rates>& accepts, os::Clock& clock) {
  const BootTime deadline = clock.boot() + k_receipts_within;
  TRY_ASSIGN(registry::ReceiptStore store, registry::ReceiptStore::open(paths.root));
  TRY_ASSIGN(const Digest seed, receipt_seed(paths.root));
  TRY_ASSIGN(const transfer::BulkLink bulk, net.open(provider, deadline));
  const auto ask_host = [&](const wire::ReceiptsRequest& request) -> Result<wire::ReceiptsReply> {
    TRY_ASSIGN(const std::string told, ask(*bulk.link, k_receipts_stream, wire::encode(request), deadline));
    return wire::parse_receipts_reply(told);
  };
  const std::string chain = chain_of_provider(provider);
  TRY_ASSIGN(const auto known, store.chain(chain));
  const Rates before = known && !known->rates.empty() ? wire::parse_stored_rates(known->rates).value_or(Rates{}) : Rates{};
  const ReceiptTalk talk{store, chain, provider.name, controller, seed, clock.wall(), micro_of(provider.price_per_hour), ask_host};
  TRY_ASSIGN(ReceiptNews news, exchange_receipts(talk, accepts));
  const bool nothing_asked = news.rates == Rates{} && before == Rates{};
  if (nothing_asked || (news.accepted && news.rates == before)) return news;
  TRY_ASSIGN(const bool agreed, follow_price(paths, provider.name, news, before, clock.wall()));
  if (!agreed) news.accepted = true;  // nothing is to be done before the user says so
  return news;
}

}  // namespace

void ReceiptKeeper::connected(const FleetHost& host, const wire::AgentHello& hello) {
  const bool knows = std::ranges::find(hello.features, wire::k_receipts_feature) != hello.features.end();
  if (!is_lent(host.provider) || !knows) return;
  talks_[host.provider.name.value].next = clock_.boot();
}

void ReceiptKeeper::polled(const FleetHost& host, const wire::PollReply& reply) {
  const auto talk = talks_.find(host.provider.name.value);
  if (talk == talks_.end()) return;
  auto& ended = talk->second.ended;
  if (ended.size() > k_ends_known_most) ended.clear();
  for (const wire::AttemptStatus& status : reply.attempts)
    if (status.phase == wire::AttemptPhase::ended && ended.emplace(status.job.value, status.epoch.value).second)
      talk->second.next = std::min(talk->second.next, clock_.boot() + k_after_end);
}

bool ReceiptKeeper::may_accept(const FleetHost& host, const Rates& rates) const {
  const Inventory& has = host.provider.inventory;
  const std::int64_t hour = hourly(rates, has.gpus.size(), static_cast<std::uint64_t>(std::max(has.cpus, 0.0)));
  if (has.cpus <= 0 || micro_of(host.provider.price_per_hour) != hour) return false;
  return std::ranges::none_of(book_.placed(), [&](const auto& one) {
    const job::Attempt* attempt = one.second->state().attempt();
    const job::Member* member = attempt == nullptr ? nullptr : attempt->on(host.provider.name);
    return one.second->template in<job::Launching>() != nullptr && member != nullptr && micro_of(member->price_per_hour) != hour;
  });
}

void ReceiptKeeper::tick(BootTime now) {
  for (auto& [name, talk] : talks_) {
    if (talk.under_way || now < talk.next) continue;
    const FleetHost* host = fleet_.find({name});
    // The price of an hour depends on the processors, which an invited host tells with its first inventory.
    if (host != nullptr && host->is_up() && is_lent(host->provider) && host->provider.inventory->cpus > 0) begin(*host, talk);
  }
}

void ReceiptKeeper::begin(const FleetHost& host, Talk& talk) {
  talk.under_way = true;
  const std::optional<Rates> accepts = talk.asked && may_accept(host, *talk.asked) ? talk.asked : std::nullopt;
  const os::Lane lane{os::Lane::Kind::bulk, host.provider.name.value};
  run_.run(lane, [this, provider = host.provider, accepts] {
    auto news = std::make_shared<Result<ReceiptNews>>(talk_to(provider, paths_, net_, controller_, accepts, clock_));
    run_.post([this, name = provider.name, news] { told(name, *news); });
  });
}

void ReceiptKeeper::told(const HostName& name, const Result<ReceiptNews>& news) {
  Talk& talk = talks_[name.value];
  talk.under_way = false;
  talk.next = clock_.boot() + k_receipts_every;
  if (!news) return report(news.error(), "while fetching receipts of " + name.value);
  if (news->added > 0) os::log(os::LogLevel::info, name.value + ": " + std::to_string(news->added) + " receipts");
  if (!news->chain.trouble.empty())
    os::log(os::LogLevel::warn, name.value + ": its receipts are inconsistent: " + news->chain.trouble);
  talk.asked = news->accepted ? std::nullopt : std::optional(news->rates);
  if (talk.asked) talk.next = clock_.boot() + k_accept_again;
}

}  // namespace gridctl::control
