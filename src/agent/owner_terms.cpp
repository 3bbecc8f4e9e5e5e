// SPDX-License-Identifier: Apache-2.0
#include "agent/owner_terms.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.hpp"

namespace gridctl::agent {

namespace {

constexpr std::uint64_t k_owner_file_max = 64 * 1024;
constexpr off_t k_owner_log_max = 2 << 20;  // bytes; whoever serves the machine shortens it

Result<wire::GuestTerms> read_terms(const os::Path& folder, const ControllerId& controller) {
  TRY_ASSIGN(const std::string text, os::read_file(folder / "terms.json", k_owner_file_max));
  TRY_ASSIGN(wire::GuestTerms terms, wire::parse_guest_terms(text));
  if (terms.controller == controller) return terms;
  return make_error(Code::refused, "the terms belong to another controller");
}

}  // namespace

Result<std::optional<OwnerTerms>> owner_terms(const os::Path& agent_home, const ControllerId& controller) {
  const os::Path guest = agent_home / wire::k_guests_folder / controller.value;
  if (!os::exists(guest)) return std::optional<OwnerTerms>{};
  TRY_ASSIGN(const std::string id, os::read_file(guest, k_owner_file_max));
  const os::Path folder = agent_home / "lend" / os::Path(trim(id)).filename();
  Result<wire::GuestTerms> terms = read_terms(folder, controller);
  if (terms) return std::optional{OwnerTerms{*std::move(terms), folder}};
  return make_error(Code::refused, "the owner of this machine no longer lends it: " + terms.error().message);
}

Capacity capacity_for(const os::Path& agent_home, const ControllerId& controller) {
  Capacity all = machine_capacity();
  const auto owner = owner_terms(agent_home, controller);
  if (!owner || !*owner) return all;
  const wire::GuestTerms& terms = (*owner)->terms;
  if (terms.cpus) all.cpus = all.cpus > 0 ? std::min(all.cpus, *terms.cpus) : *terms.cpus;
  if (terms.memory_bytes) all.memory_bytes = all.memory_bytes > 0 ? std::min(all.memory_bytes, *terms.memory_bytes) : *terms.memory_bytes;
  return all;
}

void tell_owner(const os::Path& folder, const std::string& line, WallTime now) {
  const os::Fd file(::open((folder / "log").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
  if (!file.valid() || ::lseek(file.get(), 0, SEEK_END) > k_owner_log_max) return;
  const std::string text = format_rfc3339(now) + " " + sanitize(line, 500) + "\n";
  [[maybe_unused]] const auto wrote = ::write(file.get(), text.data(), text.size());
}

}  // namespace gridctl::agent
