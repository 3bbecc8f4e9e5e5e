// SPDX-License-Identifier: Apache-2.0
// A state directory with one job that wants two copies, and folders that are remotes.
#pragma once

#include "control/copies/chunks.hpp"
#include "control/copies/copier.hpp"
#include "control/copies/remote_work.hpp"
#include "control/reach/ssh_network.hpp"
#include "registry/registry.hpp"
#include "unit/store/remote_fixtures.hpp"

namespace gridctl::control {

class WithRemotes : public ::testing::Test {
 protected:
  void SetUp() override {
    job::Spec spec;
    spec.name = "train";
    spec.run = "true";
    spec.checkpoint.copies = 2;
    ASSERT_THAT(registry.submit(id, spec, {1}), gridctl::testing::IsOk());
  }
  void add(const std::string& name) {
    const registry::Remote remote{name, "dir:" + (there / name).native(), "", "", "", {1}, {}, {}, "", ""};
    std::filesystem::create_directories(there / name);
    const auto backend = open_remote(*access_to(registry, remote), net, clock, false);
    ASSERT_THAT(backend, gridctl::testing::IsOk());
    ASSERT_THAT(store::write_mark(**backend, *own_mark(paths, registry)), gridctl::testing::IsOk());
    ASSERT_THAT(registry.add_remote(remote), gridctl::testing::IsOk());
  }
  registry::Checkpoint save_checkpoint(const store::testing::Files& files) {
    auto chunks = open_chunks(paths);
    EXPECT_THAT(chunks, gridctl::testing::IsOk());
    const store::CopyRecord record = store::testing::save(*chunks, files, 1);
    registry::Checkpoint checkpoint;
    checkpoint.job = id;
    checkpoint.root = record.root;
    checkpoint.created_at = {++time};
    checkpoint.bytes = record.bytes;
    checkpoint.files = record.files;
    checkpoint.how = "push";
    const auto committed = registry.commit_checkpoint(checkpoint);
    EXPECT_THAT(committed, gridctl::testing::IsOk());
    return committed->checkpoint;
  }

  store::testing::Folder here, there;
  Paths paths{here / "state"};
  os::Clock& clock = os::system_clock();
  registry::Registry registry = *registry::Registry::open(paths.root);
  SshNetwork net{clock, paths, *registry.controller_id()};
  const JobId id{"abcdefghijk23"};
  std::int64_t time = 1000;
};

}  // namespace gridctl::control
