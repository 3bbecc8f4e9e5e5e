// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>

#include "base/rates.hpp"
#include "cmd/commands.hpp"
#include "cmd/host_words.hpp"
#include "config/fields.hpp"
#include "control/reach/ways.hpp"
#include "lend/call.hpp"
#include "registry/change_provider.hpp"
#include "registry/receipts.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

namespace provider_price {
namespace {
std::int64_t to_micro(double usd) { return std::llround(usd * static_cast<double>(k_micro)); }

Result<int> run(Context& context, const Parsed& parsed) {
  const auto usd = config::parse_decimal(parsed.positionals[1], config::k_budget_limits);
  if (!usd) return make_error(Code::usage, "USD: " + usd.error().message, "gridctl provider price --help");
  TRY_ASSIGN(const AgreedOptions agreed, parse_agreed(parsed));
  TRY_ASSIGN(registry::Registry registry, context.open());
  std::string text;
  const auto edit = [&](registry::Provider& row) -> Result<void> {
    if (!control::is_lent(row) && (parsed.has("traffic") || parsed.has("minimum")))
      return make_error(Code::usage, "--traffic and --minimum are for hosts that somebody lends you, and " + row.name.value + " is none");
    const double before = std::exchange(row.price_per_hour, *usd);
    text = "costs " + ui::money(*usd, false) + " an hour now, " + ui::money(before, false) + " before";
    if (before == *usd) return {};
    return registry.add_host_event({0, row.name, context.now(), "price", text});
  };
  TRY_ASSIGN(const registry::Provider provider,
             registry::change_provider(registry, HostName{parsed.positionals[0]}, edit));
  if (control::is_lent(provider)) TRY(agree_on_price(context, provider, *usd, agreed));
  return context.print_line(context.json ? ui::provider_json(provider) : provider.name.value + " " + text);
}
}  // namespace
}  // namespace provider_price

Result<AgreedOptions> parse_agreed(const Parsed& parsed) {
  const auto micro_of = [&](std::string_view option) -> Result<std::optional<std::int64_t>> {
    if (!parsed.has(option)) return std::optional<std::int64_t>{};
    const auto its = config::parse_decimal(parsed.value(option), config::k_budget_limits);
    if (!its) return make_error(Code::usage, "--" + std::string(option) + ": " + its.error().message);
    return std::optional(provider_price::to_micro(*its));
  };
  AgreedOptions agreed;
  TRY_ASSIGN(agreed.traffic_micro, micro_of("traffic"));
  TRY_ASSIGN(agreed.minimum_micro, micro_of("minimum"));
  return agreed;
}

Result<void> agree_on_price(const Context& context, const registry::Provider& provider, double usd, const AgreedOptions& agreed) {
  TRY_ASSIGN(registry::ReceiptStore store, registry::ReceiptStore::open(context.state));
  return store.agree(provider.address.substr(lend::k_scheme.size()), provider.name, provider_price::to_micro(usd), agreed.traffic_micro,
                     agreed.minimum_micro);
}

const Command k_provider_price{
    .name = "provider price",
    .summary = "set a host's price from now on",
    .examples = {{"Set the hourly price from now on", "gridctl provider price ada 0.35"},
                 {"Accept what the owner of a lent host asks, traffic too",
                  "gridctl provider price bob 0.25 --traffic 0.05 --minimum 0.02"},
                 {"Cheaper at night: run this from cron at 22:00, and the other at 06:00",
                  "gridctl provider price ada 0.20"}},
    .description =
        "Sets the hourly price of the whole host. Running jobs pay the new price from now "
        "on, within their own and the monthly budget, and move to another host if that has "
        "become worthwhile (gridctl-job(5), PLACEMENT). Past cost does not change.\n\nOf a lent host it "
        "is the most that you accept: what its owner asks below that counts from the next "
        "attempt on, and attempts that run cost what was accepted when they began. A price for traffic, or a "
        "least price for an attempt, is accepted only up to --traffic and --minimum.",
    .positionals = {{"NAME", Completion::provider}, {"USD"}},
    .options = {{"traffic", 0, "USD", "of a lent host: the most that you accept for a gigabyte of traffic"},
                {"minimum", 0, "USD", "of a lent host: the most that you accept as the least price of an attempt"}},
    .exit_codes = k_exits_job,
    .run = provider_price::run};

}  // namespace gridctl::cmd
