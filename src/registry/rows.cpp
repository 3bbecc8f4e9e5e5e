// SPDX-License-Identifier: Apache-2.0
// Listing many providers fast: three narrow scans in one order instead of an inventory's JSON per provider.
#include <algorithm>

#include "registry/impl.hpp"
#include "registry/listing.hpp"

namespace gridctl::registry {

Result<void> Registry::Impl::save_listing(const Provider& p) {
  return db.prepare("INSERT OR REPLACE INTO listings(provider, format, line) VALUES(?,?,?)")
      .bind(p.name.value, k_listing_format, listing_of(p))
      .run();
}

Result<void> Registry::Impl::load_figures(Provider& p) {
  db::Statement query = db.prepare("SELECT numbers FROM figures WHERE provider = ?");
  TRY_ASSIGN(const bool row, query.bind(p.name.value).next());
  if (row) read_figures(query.text(0), p.figures);
  return {};
}

namespace {
// Rows of a table by provider, ahead of which the main scan never runs.
class MergeCursor {
 public:
  explicit MergeCursor(db::Statement query) : query_(std::move(query)) {}
  // Is there a row of this provider? REQUIRES: names come in rising order.
  Result<bool> find(const std::string& name) {
    while (!at_end_ && (!has_row_ || query_.view(0) < name)) {
      TRY_ASSIGN(has_row_, query_.next());
      at_end_ = !has_row_;
    }
    return has_row_ && query_.view(0) == name;
  }
  [[nodiscard]] const db::Statement& row() const { return query_; }

 private:
  db::Statement query_;
  bool has_row_ = false, at_end_ = false;
};
}  // namespace

Result<std::vector<Provider>> Registry::rows(const std::function<bool(Provider&)>& wanted) {
  std::vector<Provider> found;
  std::vector<HostName> stale;  // lines of another version, or of none
  {
    // The index holds what changes often; the facts, long as they are, stay on their own pages.
    db::Statement scan = impl_->db.prepare(
        "SELECT name, drained, liveness, last_seen_ms FROM providers INDEXED BY providers_by_state ORDER BY name");
    MergeCursor lines(impl_->db.prepare("SELECT provider, format, line FROM listings ORDER BY provider"));
    MergeCursor numbers(impl_->db.prepare("SELECT provider, numbers FROM figures ORDER BY provider"));
    for (Provider p;;) {
      TRY_ASSIGN(const bool row, scan.next());
      if (!row) break;
      p.name.value = scan.view(0);
      p.drained = scan.integer(1) != 0;
      p.liveness = scan.view(2);
      p.last_seen_at.reset();
      if (!scan.is_null(3)) p.last_seen_at = WallTime{scan.integer(3)};
      TRY_ASSIGN(const bool has_line, lines.find(p.name.value));
      if (!has_line || lines.row().integer(1) != k_listing_format || !read_listing(lines.row().view(2), p)) {
        stale.push_back(p.name);
        p = {};
        continue;
      }
      TRY_ASSIGN(const bool has_numbers, numbers.find(p.name.value));
      read_figures(has_numbers ? numbers.row().view(1) : std::string_view{}, p.figures);
      if (wanted(p)) found.push_back(p);
    }
  }
  if (stale.empty()) return found;
  TRY_ASSIGN(db::Transaction transaction, db::Transaction::begin(impl_->db));
  for (const HostName& name : stale) {
    Result<Provider> full = provider(name);
    if (!full && full.error().code == Code::not_found) continue;  // removed meanwhile
    TRY(full);
    TRY(impl_->save_listing(*full));
    if (wanted(*full)) found.push_back(*std::move(full));
  }
  TRY(transaction.commit());
  std::ranges::sort(found, {}, &Provider::name);
  return found;
}

Result<void> Registry::save_figures(const HostName& name, const std::map<std::string, std::optional<double>>& figures) {
  TRY_ASSIGN(db::Transaction transaction, db::Transaction::begin(impl_->db));
  Provider p;
  p.name = name;
  TRY(impl_->load_figures(p));
  for (const auto& [key, value] : figures)
    if (value) p.figures.insert_or_assign(key, *value);
    else p.figures.erase(key);
  TRY(impl_->db.prepare("INSERT OR REPLACE INTO figures(provider, numbers) VALUES(?,?)")
          .bind(name.value, figures_text(p.figures))
          .run());
  return transaction.commit();
}

}  // namespace gridctl::registry
