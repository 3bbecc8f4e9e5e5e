// SPDX-License-Identifier: Apache-2.0
// A directory as a place, by the rules of every place.
#include "contract/backend_suite.hpp"
#include "store/dir_place.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::store::testing {
namespace {

OpenBackend make_directory() {
  auto directory = std::make_shared<gridctl::testing::TempDir>();
  return [directory] { return open_dir_place(directory->path(), ""); };
}

INSTANTIATE_TEST_SUITE_P(Directory, BackendSuite, ::testing::Values(PlaceUnderTest{"dir", make_directory}));

}  // namespace
}  // namespace gridctl::store::testing
