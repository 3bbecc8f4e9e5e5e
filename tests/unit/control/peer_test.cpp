// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "control/reach/peer.hpp"
#include "crypto/ed25519.hpp"
#include "hand_clock.hpp"
#include "os/process.hpp"
#include "support/results.hpp"
#include "wire/peer.hpp"

namespace gridctl::control::peer_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::HasSubstr;

Digest filled(unsigned char with) {
  Digest digest;
  digest.bytes.fill(std::byte{with});
  return digest;
}

wire::AgentHello proving(const Digest& seed, const Digest& nonce) {
  wire::AgentHello hello;
  hello.machine_id = "m1";
  hello.peer_key = crypto::ed25519_public(seed);
  hello.peer_proof = to_hex(crypto::ed25519_sign(seed, as_bytes(wire::peer_statement(nonce, "m1"))));
  return hello;
}

TEST(PeerProof, IsForThisConnectionKeyAndMachineAlone) {
  const Digest seed = filled(1), nonce = filled(2);
  const wire::AgentHello good = proving(seed, nonce);
  EXPECT_EQ(*proved_key(good, nonce), to_hex(crypto::ed25519_public(seed)));
  EXPECT_EQ(*proved_key({}, nonce), "") << "an agent of before says nothing";
  EXPECT_THAT(proved_key(good, filled(3)), FailsWith(Code::protocol_violation)) << "heard in another connection";
  wire::AgentHello bad = good;
  bad.machine_id = "m2";
  EXPECT_THAT(proved_key(bad, nonce), FailsWith(Code::protocol_violation));
  bad = good;
  bad.peer_key = crypto::ed25519_public(filled(4));
  EXPECT_THAT(proved_key(bad, nonce), FailsWith(Code::protocol_violation)) << "another's key";
  for (const std::string& proof : {std::string(), good.peer_proof.substr(2), good.peer_proof + "00", std::string(128, 'x')}) {
    bad = good;
    bad.peer_proof = proof;
    EXPECT_THAT(proved_key(bad, nonce), FailsWith(Code::protocol_violation)) << proof;
  }
}

TEST(PeerProof, HoldsAHostToTheIdentityThatIsPinned) {
  registry::Provider ada;
  ada.name = {"ada"};
  ada.address = "me@ada";
  const wire::AgentHello hello = proving(filled(1), filled(2));
  EXPECT_THAT(check_peer(ada, ada, hello), IsOk()) << "nothing is pinned yet";
  EXPECT_THAT(check_peer(ada, ada, {}), IsOk());
  ada.peer_key = to_hex(*hello.peer_key);
  EXPECT_THAT(check_peer(ada, ada, hello), IsOk());
  const wire::AgentHello other = proving(filled(5), filled(2));
  const auto refused = check_peer(ada, ada, other);
  ASSERT_THAT(refused, FailsWith(Code::host_key_mismatch));
  EXPECT_THAT(refused.error().message, HasSubstr("another host answers at me@ada"));
  EXPECT_EQ(refused.error().hint, "if it was reinstalled: gridctl provider check ada --accept-identity " + to_hex(*other.peer_key));
  EXPECT_THAT(check_peer(ada, ada, {}).error().hint, HasSubstr("--accept-identity none"));
}

}  // namespace
}  // namespace gridctl::control::peer_test
