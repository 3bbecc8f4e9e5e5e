// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/receipt_keeper.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "control/reach/agent_network.hpp"
#include "control/reach/request.hpp"
#include "control/reach/ways.hpp"
#include "lend/call.hpp"
#include "os/log.hpp"
#include "registry/change_provider.hpp"

namespace gridctl::control {

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
