// SPDX-License-Identifier: Apache-2.0
// The relay as the real agent runs it: what it leaves in its user's home.
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "os/entries.hpp"
#include "os/files.hpp"
#include "os/process.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::testing::relay_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Relay : public ::testing::Test {
 protected:
  std::string run(std::vector<std::string> words) {
    std::vector<std::string> argv{std::string(GRIDCTL_BINARY_DIR) + "/bin/gridctl-agent.stripped", "relay"};
    argv.insert(argv.end(), words.begin(), words.end());
    os::RunOptions options;
    options.environment_extra = {{"HOME", home_.string()}, {"GRIDCTL_RELAY_HOME", (home_ / "relay").string()}};
    const auto outcome = os::run(argv, options);
    EXPECT_THAT(outcome, IsOk());
    return outcome ? outcome->out : std::string{};
  }
  [[nodiscard]] std::string keys() const { return os::read_file(home_ / ".ssh/authorized_keys").value_or(""); }

  TempDir folder_;
  const os::Path home_ = folder_ / "home";
  const os::Path meeting_ = home_ / "relay" / "bob";
};

TEST_F(Relay, RevokesAHostThatIsJustLoggingIn) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(run({"add", "bob", "4102444800000", "AAAA"}), HasSubstr("done"));
    EXPECT_THAT(keys(), HasSubstr("gridctl-lend-bob"));
    // A host that logs in writes its claim and its socket there.
    std::atomic<bool> revoked = false;
    std::thread host([&] {
      for (int n = 0; !revoked; ++n) std::ofstream(meeting_ / ("s." + std::to_string(n))) << "x";
    });
    EXPECT_THAT(run({"rm", "bob"}), HasSubstr("done"));
    revoked = true;
    host.join();
    EXPECT_FALSE(os::exists(meeting_));
    EXPECT_THAT(keys(), Not(HasSubstr("gridctl-lend-bob")));
  }
}

TEST_F(Relay, RevokesWhatItNeverKnew) { EXPECT_THAT(run({"rm", "nobody"}), HasSubstr("done")); }

}  // namespace
}  // namespace gridctl::testing::relay_test
