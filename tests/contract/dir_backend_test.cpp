// SPDX-License-Identifier: Apache-2.0
// A directory as a remote, by the rules of every remote.
#include "contract/backend_suite.hpp"
#include "store/dir_remote.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::store::testing {
namespace {

OpenBackend make_directory() {
  auto directory = std::make_shared<gridctl::testing::TempDir>();
  return [directory] { return open_dir_remote(directory->path(), ""); };
}

INSTANTIATE_TEST_SUITE_P(Directory, BackendSuite, ::testing::Values(RemoteUnderTest{"dir", make_directory}));

}  // namespace
}  // namespace gridctl::store::testing
