// SPDX-License-Identifier: Apache-2.0
// The law of the end: whatever lies in the checkpoint directory when an attempt ends is kept, whatever it looks like.
#include <gmock/gmock.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/checkpoints.hpp"
#include "os/entries.hpp"
#include "support/permissions.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::agent::checkpoints_left_test {
namespace {

using gridctl::testing::IsOk;
using store::testing::noise, store::testing::slurp, store::testing::torch_zip, store::testing::write;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using whole::Writer;

class WhatIsLeft : public ::testing::Test {
 protected:
  WhatIsLeft() {
    spec_.job = {"j"};
    (void)os::make_directories(files());
  }
  ~WhatIsLeft() override {
    for (const char* name : {"closed", "closed.bin"}) ::chmod((files() / name).c_str(), 0700);
  }
  os::Path files() const { return attempt_.checkpoints(); }
  static std::string archive(std::uint64_t seed) {
    return torch_zip({{"c/data.pkl", "optimizer" + noise(200, seed)}, {"c/data/0", noise(900, seed + 1)}});
  }
  // Returns what the host keeps when the attempt has ended so.
  std::vector<wire::HostCheckpoint> end(Writer writer) {
    CheckpointWatch watch(attempt_, spec_, view_of(attempt_, spec_, 1), os::system_clock(), changed_.get());
    watch.finish(writer);
    problem_ = watch.problem();
    return watch.list();
  }
  os::Path kept(std::uint64_t number) const { return snapshot_files(attempt_, number); }

  store::testing::Folder dir_;
  const AttemptDir attempt_{dir_ / "jobs/c/j/1"};
  wire::AttemptSpec spec_;
  std::string problem_;
  const os::Fd changed_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
};

TEST_F(WhatIsLeft, IsKeptOfAKilledWriterInAFormatThatNobodyKnows) {
  write(files() / "final.raw", noise(500, 1));
  const auto held = end(Writer::killed);
  ASSERT_THAT(held, SizeIs(1));
  EXPECT_TRUE(held[0].as_left);
  EXPECT_TRUE(held[0].provisional);
  EXPECT_FALSE(held[0].torn);
  EXPECT_EQ(slurp(kept(1) / "final.raw"), noise(500, 1));
}

TEST_F(WhatIsLeft, IsKeptBesideWhatIsSure) {
  write(files() / "ckpt.pt", archive(1));
  write(files() / "next.pt", archive(2).substr(0, 700));
  const auto held = end(Writer::killed);
  ASSERT_FALSE(held.empty());
  EXPECT_TRUE(held.back().as_left);
  EXPECT_TRUE(held.back().torn);
  EXPECT_EQ(slurp(kept(held.back().number) / "next.pt").size(), 700u);
  EXPECT_EQ(slurp(kept(held.back().number) / "ckpt.pt"), archive(1));
}

TEST_F(WhatIsLeft, IsKeptOnceWhenAllOfItIsWhole) {
  write(files() / "ckpt.pt", archive(1));
  const auto held = end(Writer::exited);
  ASSERT_THAT(held, SizeIs(1));
  EXPECT_FALSE(held[0].provisional);
}

TEST_F(WhatIsLeft, IsKeptWhenItIsOnlyLogs) {
  write(files() / "results.jsonl", "{}\n");
  for (const Writer writer : {Writer::exited, Writer::killed}) {
    write(files() / "results.jsonl", writer == Writer::exited ? "{}\n" : "{}\n{}\n");
    const auto held = end(writer);
    ASSERT_FALSE(held.empty());
    EXPECT_FALSE(held.back().provisional);
    EXPECT_EQ(slurp(kept(held.back().number) / "results.jsonl"), slurp(files() / "results.jsonl"));
  }
}

TEST_F(WhatIsLeft, IsKeptAroundWhatCannotBeReadWhichIsNamed) {
  const gridctl::testing::ObeysModes obeys;
  write(files() / "ckpt.pt", archive(1));
  write(files() / "closed.bin", "x");
  write(files() / "closed/y", "x");
  ::chmod((files() / "closed.bin").c_str(), 0);
  ::chmod((files() / "closed").c_str(), 0);
  const auto held = end(Writer::killed);
  ASSERT_FALSE(held.empty());
  EXPECT_EQ(slurp(kept(held.back().number) / "ckpt.pt"), archive(1));
  EXPECT_THAT(held.back().notes, Contains(HasSubstr("closed.bin")));
  EXPECT_THAT(held.back().notes, Contains(HasSubstr("closed: ")));
}

TEST_F(WhatIsLeft, IsKeptAroundPipesSocketsAndDeepFolders) {
  write(files() / "state.raw", "x");
  ASSERT_EQ(::mkfifo((files() / "pipe").c_str(), 0600), 0);
  std::string deep = "d";
  for (int i = 0; i < 150; ++i) deep += "/d";
  write(files() / deep / "x", "x");
  const auto held = end(Writer::exited);
  ASSERT_FALSE(held.empty());
  EXPECT_EQ(slurp(kept(held.back().number) / "state.raw"), "x");
  EXPECT_THAT(held.back().notes, Contains(HasSubstr("pipe: not a file")));
  EXPECT_THAT(held.back().notes, Contains(HasSubstr("too deep")));
}

TEST_F(WhatIsLeft, HasLinksThatWorkElsewhere) {
  write(files() / "epoch_2.pth", archive(1));
  std::filesystem::create_symlink(files() / "epoch_2.pth", files() / "last.pth");
  std::filesystem::create_directory(files() / "best");
  std::filesystem::create_symlink(files() / "epoch_2.pth", files() / "best/model.pth");
  std::filesystem::create_symlink("/etc/hostname", files() / "outside");
  const auto held = end(Writer::exited);
  ASSERT_FALSE(held.empty());
  EXPECT_EQ(std::filesystem::read_symlink(kept(held.back().number) / "last.pth"), "epoch_2.pth");
  EXPECT_EQ(std::filesystem::read_symlink(kept(held.back().number) / "best/model.pth"), "../epoch_2.pth");
  EXPECT_THAT(held.back().notes, Contains(HasSubstr("outside: link")));
}

TEST_F(WhatIsLeft, IsKeptWhereTheJobHasPutALink) {
  store::testing::Folder scratch;
  write(scratch / "run/state.raw", "x");
  std::filesystem::remove(files());
  std::filesystem::create_directory_symlink(scratch / "run", files());
  const auto held = end(Writer::exited);
  ASSERT_FALSE(held.empty());
  EXPECT_EQ(slurp(kept(held.back().number) / "state.raw"), "x");
}

TEST_F(WhatIsLeft, IsNotReadWhereTheJobMayNot) {
  spec_.job = {"j"};
  JobView view = view_of(attempt_, spec_, 1);
  store::testing::Folder home;
  write(home / ".ssh/id", "key");
  view.confinement = Confinement{{home / ".ssh"}, {}, {}, {}, {}};
  std::filesystem::remove(files());
  std::filesystem::create_directory_symlink(home / ".ssh", files());
  CheckpointWatch watch(attempt_, spec_, view, os::system_clock(), changed_.get());
  watch.finish(Writer::exited);
  EXPECT_THAT(watch.list(), IsEmpty());
  EXPECT_THAT(watch.problem(), HasSubstr("may not read"));
}

}  // namespace
}  // namespace gridctl::agent::checkpoints_left_test
