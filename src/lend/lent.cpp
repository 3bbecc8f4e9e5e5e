// SPDX-License-Identifier: Apache-2.0
#include "lend/lent.hpp"

#include <fcntl.h>

#include <algorithm>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "lend/keys.hpp"
#include "os/random.hpp"

namespace gridctl::lend {

namespace {

constexpr std::uint64_t k_log_max = 1u << 20;  // bytes; then its older half goes
constexpr std::size_t k_claim_bytes = 32, k_returns_max = 100;

}  // namespace

os::Path agent_home() {
  if (const auto told = os::environment("GRIDCTL_AGENT_HOME"); told && !told->empty()) return *told;
  return os::home_directory() / ".gridctl";
}

os::Path lend_home() { return agent_home() / "lend"; }

Result<void> Lent::make(const std::string& token_text, const Token& token, const os::Path& agent) const {
  TRY(os::make_directories(folder_));
  if (!os::exists(folder_ / "claim"))
    TRY(os::write_file_durably(folder_ / "claim", to_hex(ByteView{os::random_bytes(k_claim_bytes)})));
  TRY(os::write_file_durably(key_file(), login_key(token.secret).private_file));
  TRY(set_agent(agent));
  wire::GuestTerms fresh;
  if (Result<wire::GuestTerms> before = terms()) fresh = *before;
  fresh.controller = token.controller;
  fresh.who = token.who;
  TRY(set_terms(fresh));
  return os::write_file_durably(folder_ / "token", token_text);  // last: with it the folder counts
}

Result<Token> Lent::token() const {
  TRY_ASSIGN(const std::string text, os::read_file(folder_ / "token"));
  return parse_token(text);
}

Result<std::string> Lent::claim() const { return os::read_file(folder_ / "claim"); }

os::Path guest_file(const ControllerId& controller) { return agent_home() / wire::k_guests_folder / controller.value; }

Result<void> Lent::take_jobs_of(const ControllerId& controller) const {
  const os::Path file = guest_file(controller);
  TRY(os::make_directories(file.parent_path()));
  return os::write_file_durably(file, id_ + "\n");
}

bool Lent::has_jobs() const {
  const Result<wire::GuestTerms> its = terms();
  return its && trim(os::read_file(guest_file(its->controller), k_log_max).value_or("")) == id_;
}

Result<os::Path> Lent::agent() const {
  TRY_ASSIGN(const std::string path, os::read_file(folder_ / "agent"));
  return os::Path(path);
}

Result<void> Lent::set_agent(const os::Path& agent) const { return os::write_file_durably(folder_ / "agent", agent.string()); }

Result<wire::GuestTerms> Lent::terms() const {
  TRY_ASSIGN(const std::string text, os::read_file(terms_file()));
  return wire::parse_guest_terms(text);
}

Result<void> Lent::set_terms(const wire::GuestTerms& terms) const {
  return os::write_file_durably(terms_file(), wire::encode(terms));
}

std::optional<Digest> Lent::session() const {
  const std::vector<std::string> parts = split(std::string(trim(os::read_file(folder_ / wire::k_session_file, k_log_max).value_or(""))), ' ');
  if (parts.size() != 2) return std::nullopt;
  const auto researchers = parse_digest(parts[0]), machines = parse_digest(parts[1]);
  if (!researchers || !machines) return std::nullopt;
  return session_secret(*researchers, *machines);
}

bool Lent::session_proven() const { return os::exists(folder_ / wire::k_session_proven_file); }

void Lent::prove_session() const { (void)os::write_file_durably(folder_ / wire::k_session_proven_file, ""); }

void Lent::log(std::string_view line, os::Clock& clock) const {
  std::string text = os::read_file(log_file(), 4 * k_log_max).value_or("");
  text += format_rfc3339(clock.wall()) + " " + sanitize(line, 1000) + "\n";
  if (text.size() > k_log_max) text.erase(0, text.find('\n', text.size() - k_log_max / 2) + 1);
  (void)os::write_file_atomically(log_file(), text);
}

void Lent::set_state(std::string_view state) const { (void)os::write_file_atomically(state_file(), state); }

std::vector<std::chrono::milliseconds> Lent::returns() const {
  std::vector<std::chrono::milliseconds> all;
  for (const std::string& line : split_lines(os::read_file(returns_file(), k_log_max).value_or("")))
    if (const auto ms = parse_number<std::int64_t>(line)) all.emplace_back(*ms);
  return all;
}

void Lent::returned(std::chrono::milliseconds took) const {
  std::vector<std::chrono::milliseconds> all = returns();
  all.push_back(took);
  std::string text;
  for (std::size_t i = all.size() - std::min(all.size(), k_returns_max); i < all.size(); ++i)
    text += std::to_string(all[i].count()) + "\n";
  (void)os::write_file_atomically(returns_file(), text);
}

std::vector<Lent> all_lent() {
  std::vector<std::pair<std::filesystem::file_time_type, Lent>> found;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(lend_home(), failed)) {
    const os::Path token = entry.path() / "token";
    if (!os::exists(token)) continue;
    found.emplace_back(std::filesystem::last_write_time(token, failed), Lent(entry.path().filename().string()));
  }
  std::ranges::sort(found, {}, [](const auto& one) { return std::pair(one.first, one.second.id()); });
  std::vector<Lent> all;
  for (auto& one : found) all.push_back(std::move(one.second));
  return all;
}

}  // namespace gridctl::lend
