// SPDX-License-Identifier: Apache-2.0
// What a machine that its owner lends keeps of each invitation: a folder below ~/.gridctl/lend.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "lend/token.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"
#include "wire/guest.hpp"

namespace gridctl::lend {

[[nodiscard]] os::Path agent_home();  // $GRIDCTL_AGENT_HOME, default ~/.gridctl
[[nodiscard]] os::Path lend_home();   // "lend" in it

// One researcher who may use this machine.
class Lent {
 public:
  explicit Lent(const std::string& id) : id_(id), folder_(lend_home() / id) {}
  Lent(std::string id, os::Path folder) : id_(std::move(id)), folder_(std::move(folder)) {}

  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] const os::Path& folder() const { return folder_; }
  [[nodiscard]] os::Path terms_file() const { return folder_ / "terms.json"; }
  [[nodiscard]] os::Path key_file() const { return folder_ / "key"; }
  [[nodiscard]] os::Path known_hosts() const { return folder_ / "known_hosts"; }
  [[nodiscard]] os::Path log_file() const { return folder_ / "log"; }
  [[nodiscard]] os::Path returns_file() const { return folder_ / "returns"; }
  [[nodiscard]] os::Path state_file() const { return folder_ / "state"; }  // "ready", "away REASON"

  // Writes all files. `agent`: the program that serves.
  [[nodiscard]] Result<void> make(const std::string& token_text, const Token& token, const os::Path& agent) const;
  [[nodiscard]] Result<Token> token() const;
  [[nodiscard]] Result<std::string> claim() const;  // this machine's number for the relay
  [[nodiscard]] Result<os::Path> agent() const;
  [[nodiscard]] Result<void> set_agent(const os::Path& agent) const;  // connections in use end, and come back with it
  [[nodiscard]] Result<wire::GuestTerms> terms() const;
  [[nodiscard]] Result<void> set_terms(const wire::GuestTerms& terms) const;
  // The secret that this machine and the researcher have agreed on in the place of the token's; nullopt: not yet. Proven:
  // the researcher has used it, and the token's opens nothing any more.
  [[nodiscard]] std::optional<Digest> session() const;
  [[nodiscard]] bool session_proven() const;
  void prove_session() const;
  // Adds a line with the time; errors are none of the caller's.
  void log(std::string_view line, os::Clock& clock) const;
  void set_state(std::string_view state) const;
  // From now on the controller's jobs on this machine are those of this invitation.
  [[nodiscard]] Result<void> take_jobs_of(const ControllerId& controller) const;
  [[nodiscard]] bool has_jobs() const;  // its controller's jobs on this machine are still those of this invitation
  // Keeps how long jobs took to leave a GPU to its owner's program; the newest hundred are kept.
  void returned(std::chrono::milliseconds took) const;
  [[nodiscard]] std::vector<std::chrono::milliseconds> returns() const;

 private:
  std::string id_;
  os::Path folder_;
};

// By age.
[[nodiscard]] std::vector<Lent> all_lent();
// The invitation under which a controller's jobs run: wire/guest.hpp.
[[nodiscard]] os::Path guest_file(const ControllerId& controller);

}  // namespace gridctl::lend
