// SPDX-License-Identifier: Apache-2.0
#include "ssh/libssh2_session.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/text.hpp"
#include "ssh/agent_client.hpp"
#include "ssh/encoding.hpp"
#include "ssh/key_file.hpp"

namespace gridctl::ssh {
namespace {

constexpr std::size_t k_offers_max = 5;

struct Signer {
  Session& session;
  AgentClient& agent;
  const AgentKey& key;
};

// Serves as libssh2's callback: no exception may leave it.
int sign_with_agent(LIBSSH2_SESSION*, unsigned char** signature, std::size_t* length, const unsigned char* data,
                    std::size_t data_length, void** abstract) {
  const Signer& signer = *static_cast<Signer*>(*abstract);
  const auto bare = signer.agent.sign(signer.key, {reinterpret_cast<const char*>(data), data_length});
  if (!bare) return -1;
  void* block = signer.session.allocate(bare->size());
  if (block == nullptr) return -1;
  std::memcpy(block, bare->data(), bare->size());
  *signature = static_cast<unsigned char*>(block);
  *length = bare->size();
  return 0;
}

class Login {
 public:
  Login(Session& session, const Target& target, BootTime deadline)
      : session_(session), target_(target), deadline_(deadline) {}

  Result<void> run() {
    ask_agent();
    for (const os::Path& path : target_.identities) {
      TRY_ASSIGN(const bool in, offer_file(path));
      if (in) return {};
    }
    for (const AgentKey& key : agent_keys_) {
      if (target_.identities_only || was_tried(key.blob)) continue;
      TRY_ASSIGN(const bool in, offer_agent_key(key));
      if (in) return {};
    }
    return refusal();
  }

 private:
  void ask_agent() {
    if (target_.agent_socket.empty()) return;
    auto agent = AgentClient::open(target_.agent_socket, deadline_, session_.clock());
    if (!agent) {
      agent_gone_ = true;
      return remark("ssh-agent does not answer at " + target_.agent_socket.native());
    }
    auto keys = agent->identities();
    if (!keys) {
      agent_gone_ = true;
      return remark(keys.error().message);
    }
    agent_.emplace(std::move(agent).value());
    agent_keys_ = std::move(keys).value();
  }

  Result<bool> offer_file(const os::Path& path) {
    const auto facts = inspect_key(path);
    if (!facts) {
      remark(facts.error().message);
      return false;
    }
    if (facts->has_certificate) leave_to_ssh(path.native() + " has a certificate");
    if (!facts->type.empty() && !libssh2_signs_with(facts->type)) {
      leave_to_ssh(path.native() + " is an " + facts->type + " key");
      return false;
    }
    if (!facts->public_blob.empty()) {
      const auto in_agent = std::ranges::find(agent_keys_, facts->public_blob, &AgentKey::blob);
      if (in_agent != agent_keys_.end()) return offer_agent_key(*in_agent);
    }
    if (facts->encrypted) {
      locked_.push_back(path.native());
      return false;
    }
    if (offered_.size() >= k_offers_max) return false;
    tried_.push_back(facts->public_blob);
    offered_.push_back(path.native() + fingerprint(facts->public_blob));
    const std::string file = path.native();
    TRY_ASSIGN(const long rc, session_.drive(
                                  [&] {
                                    return libssh2_userauth_publickey_fromfile_ex(
                                        session_.raw(), target_.user.c_str(),
                                        static_cast<unsigned>(target_.user.size()), nullptr, file.c_str(), nullptr);
                                  },
                                  deadline_));
    if (rc == LIBSSH2_ERROR_FILE) leave_to_ssh(file + " cannot be read by libssh2");
    if (rc == LIBSSH2_ERROR_FILE) return false;
    return judge(rc);
  }

  Result<bool> offer_agent_key(const AgentKey& key) {
    if (!libssh2_signs_with(key.type)) {
      leave_to_ssh("ssh-agent holds an " + sanitize(key.type, 64) + " key");
      return false;
    }
    if (offered_.size() >= k_offers_max) return false;
    tried_.push_back(key.blob);
    offered_.push_back("ssh-agent's " + sanitize(key.comment, 100) + fingerprint(key.blob));
    Signer signer{session_, *agent_, key};
    void* context = &signer;
    TRY_ASSIGN(const long rc, session_.drive(
                                  [&] {
                                    return libssh2_userauth_publickey(
                                        session_.raw(), target_.user.c_str(),
                                        reinterpret_cast<const unsigned char*>(key.blob.data()), key.blob.size(),
                                        &sign_with_agent, &context);
                                  },
                                  deadline_));
    return judge(rc);
  }

  // Returns true after a login, false if this key is not accepted.
  Result<bool> judge(long rc) {
    // libssh2 reports a refused signature and a connection that ended before an answer in the same way.
    const bool unanswered =
        rc == LIBSSH2_ERROR_PUBLICKEY_UNVERIFIED && session_.last_error().find("Waiting for") != std::string::npos;
    switch (unanswered ? LIBSSH2_ERROR_SOCKET_DISCONNECT : rc) {
      case 0: return true;
      case LIBSSH2_ERROR_PUBLICKEY_UNVERIFIED: signature_wanted_ = true; return false;
      case LIBSSH2_ERROR_AUTHENTICATION_FAILED: return false;
      case LIBSSH2_ERROR_TIMEOUT:
        return make_error(Code::timed_out, target_.address() + " did not answer in time while we logged in");
      default:
        return make_error(Code::host_unreachable,
                          "logging in to " + target_.peer() + " failed: " + session_.last_error());
    }
  }

  // Returns the methods that the server would accept next, as "publickey,password"; empty when it does not say.
  std::string methods() {
    std::string list;
    const auto ask = [&]() -> long {
      const char* names =
          libssh2_userauth_list(session_.raw(), target_.user.c_str(), static_cast<unsigned>(target_.user.size()));
      if (names != nullptr) list = sanitize(names, 200);
      return names != nullptr ? 0 : libssh2_session_last_errno(session_.raw());
    };
    (void)session_.drive(ask, deadline_);
    return list;
  }

  // A server that no longer names keys takes none, or has accepted one.
  std::optional<Error> wants_more() {
    const std::string wanted = methods();
    if (wanted.empty() || wanted.find("publickey") != std::string::npos) return std::nullopt;
    const std::string hint = "ask its owner to let this user log in with a key alone (AuthenticationMethods publickey)";
    if (!signature_wanted_)
      return make_error(Code::auth_refused, target_.peer() + " does not accept keys, only: " + wanted, hint);
    return make_error(Code::auth_refused,
                      target_.peer() + " accepted our key but also asks for input that cannot be typed here: " + wanted,
                      hint);
  }

  Error refusal() {
    if (auto more = wants_more()) return *std::move(more);
    std::string message = target_.peer() + " accepts none of our keys: ";
    message += offered_.empty() ? "there was no key to offer" : "offered " + join(offered_, ", ");
    for (const std::string& key : locked_) message += "; " + key + " is encrypted and no ssh-agent holds it";
    for (const std::string& line : remarks_) message += "; " + line;
    std::string hint = copy_id_command(target_);
    if (!locked_.empty()) hint = "ssh-add " + shell_quote(locked_.front());
    else if (agent_gone_) hint = "eval $(ssh-agent) && ssh-add   # then the command again";
    // The ssh program may find keys that we do not look for; our own findings are reported if it fails too.
    const bool none_known = offered_.empty() && locked_.empty() && !agent_gone_;
    const bool ssh_may = ssh_may_ || (none_known && target_.transport == TransportKind::automatic);
    return make_error(ssh_may ? Code::unsupported : Code::auth_refused, message, hint);
  }

  [[nodiscard]] bool was_tried(const std::string& blob) const {
    return std::ranges::find(tried_, blob) != tried_.end();
  }
  static std::string fingerprint(const std::string& blob) {
    return blob.empty() ? std::string{} : " (" + fingerprint_of(blob) + ")";
  }
  void remark(std::string line) { remarks_.push_back(std::move(line)); }
  void leave_to_ssh(const std::string& what) {
    ssh_may_ = true;
    remark(what + std::string(k_only_ssh));
  }

  Session& session_;
  const Target& target_;
  BootTime deadline_;
  std::optional<AgentClient> agent_;
  std::vector<AgentKey> agent_keys_;
  std::vector<std::string> tried_;    // public blobs
  std::vector<std::string> offered_;  // for people
  std::vector<std::string> remarks_;
  std::vector<std::string> locked_;  // encrypted, and not in the agent
  bool signature_wanted_ = false;    // the server knew one of our keys
  bool agent_gone_ = false;          // there should be one
  bool ssh_may_ = false;             // something was left out that the ssh program can use
};

}  // namespace

Result<void> log_in(Session& session, const Target& target, BootTime deadline) {
  return Login{session, target, deadline}.run();
}

}  // namespace gridctl::ssh
