// SPDX-License-Identifier: Apache-2.0
// Red team: a job file that has the agent make links where logins, shells and service managers look.
#include "agent/outside.hpp"

#include <gmock/gmock.h>

#include <filesystem>

#include "agent/job_view.hpp"
#include "agent/prepare.hpp"
#include "os/entries.hpp"
#include "os/process.hpp"
#include "store/tree.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::agent::outside_test {
namespace {

namespace fs = std::filesystem;
using namespace gridctl::testing;
using ::testing::HasSubstr;

class PlainJobsPath : public ::testing::Test {
 protected:
  PlainJobsPath() {
    ::setenv("HOME", home_.c_str(), 1);
    EXPECT_THAT(os::make_directories(attempt_.path), IsOk());
    EXPECT_THAT(os::make_directories(home_ / ".ssh"), IsOk());
    EXPECT_THAT(os::make_directories(home_ / ".config"), IsOk());
    spec_.job = {"j"};
    spec_.epoch = Epoch{3};
    spec_.engine = EngineKind::process;
  }
  ~PlainJobsPath() override { ::setenv("HOME", before_.c_str(), 1); }

  Digest tree(const std::string& name) {
    store::ChunkStore cache = *store::ChunkStore::open(agent_ / "cache");
    store::Entry file{store::EntryKind::file, 0644, name, 1, {}, {}};
    file.chunks.push_back({store::testing::put(cache, "k"), 1});
    const Bytes manifest = to_manifest(*store::make_tree({file}));
    EXPECT_THAT(cache.put(store::root_of(manifest), manifest), IsOk());
    EXPECT_THAT(cache.seal(), IsOk());
    return store::root_of(manifest);
  }
  Result<Prepared> prepare() {
    return prepare_folders(attempt_, spec_, [](const std::string&) {});
  }
  Result<Prepared> mount_at(const std::string& target) {
    spec_.mounts = {{tree(os::Path(target).filename()), target}};
    return prepare();
  }
  Result<Prepared> checkpoints_at(const std::string& path) {
    spec_.mounts.clear();
    spec_.checkpoint_path = path;
    auto prepared = prepare();
    spec_.checkpoint_path.clear();
    return prepared;
  }

  gridctl::testing::TempDir dir_;
  const std::string before_ = os::environment("HOME").value_or("");
  const os::Path home_ = fs::canonical(dir_.path()) / "home", agent_ = home_ / ".gridctl";
  const AttemptDir attempt_{agent_ / "jobs/c/j/3"};
  wire::AttemptSpec spec_;
};

TEST_F(PlainJobsPath, CannotLetSomebodyIn) {
  for (const char* name : {".ssh/authorized_keys2", ".ssh/rc", ".bash_login", ".config/systemd", "bin", ".gridctl/bin"}) {
    EXPECT_THAT(mount_at(home_ / name), FailsWith(Code::refused)) << name;
    EXPECT_THAT(checkpoints_at(home_ / name), FailsWith(Code::refused)) << name;
    EXPECT_FALSE(os::exists(home_ / name)) << name;
  }
  EXPECT_THAT(checkpoints_at(home_ / "x").error().message, HasSubstr("lies in a home directory"));
}

TEST_F(PlainJobsPath, CannotLeadThereByALink) {
  fs::create_directory_symlink(home_ / ".ssh", dir_ / "harmless");
  fs::create_directory_symlink("harmless", dir_ / "twice");
  EXPECT_THAT(mount_at(dir_ / "harmless/rc"), FailsWith(Code::refused));
  EXPECT_THAT(mount_at(dir_ / "twice/rc"), FailsWith(Code::refused));
  EXPECT_FALSE(os::exists(home_ / ".ssh/rc"));
}

TEST_F(PlainJobsPath, CannotBelongToTheSystem) {
  for (const char* path : {"/etc/cron.d/job", "/root/.ssh/rc", "/var/spool/cron/crontabs/root", "/usr/local/bin/ls", "/run/x"})
    EXPECT_THAT(check_outside(path, {}), FailsWith(Code::refused)) << path;
  for (const char* path : {"/tmp/x", "/var/tmp/x", "/data", "/scratch/me/out"}) EXPECT_THAT(check_outside(path, {}), IsOk()) << path;
}

TEST_F(PlainJobsPath, IsWhereTheOwnerOfTheHostAllowsIt) {
  ASSERT_THAT(os::make_directories(home_ / "shared"), IsOk());
  ASSERT_THAT(os::write_file_atomically(agent_ / k_allowed_links_file, "# for datasets\n" + (home_ / "shared/").string() + "\nrelative\n"),
              IsOk());
  EXPECT_THAT(mount_at(home_ / "shared/set"), IsOk());
  EXPECT_TRUE(fs::is_symlink(home_ / "shared/set"));
  remove_links(attempt_);
  EXPECT_THAT(mount_at(home_ / "sharedset"), FailsWith(Code::refused)) << "another folder";
}

// The usual way to give a program its configuration.
TEST_F(PlainJobsPath, BelowATildeIsInAHomeOfTheJobsOwn) {
  store::testing::write(home_ / "venv/bin/python", "P");
  store::testing::write(home_ / ".ssh/authorized_keys", "mine");
  store::testing::write(home_ / "project/notes", "N");
  spec_.mounts = {{tree("authorized_keys2"), "~/.ssh/authorized_keys2"}, {tree("data"), "~/project/data"}};
  ASSERT_THAT(prepare(), IsOk());
  EXPECT_FALSE(os::exists(home_ / ".ssh/authorized_keys2"));
  EXPECT_FALSE(os::exists(home_ / "project/data"));
  const os::Path own = attempt_.home();
  EXPECT_EQ(view_of(attempt_, spec_, 1).home, own);
  EXPECT_EQ(store::testing::slurp(own / ".ssh/authorized_keys2"), "k");
  EXPECT_EQ(store::testing::slurp(own / "project/data"), "k");
  EXPECT_EQ(store::testing::slurp(own / "project/notes"), "N") << "the user's own files are found, too";
  EXPECT_EQ(store::testing::slurp(own / "venv/bin/python"), "P");
  const std::string variables = job_environment(spec_, view_of(attempt_, spec_, 1), {});
  EXPECT_THAT(variables, HasSubstr("HOME=" + own.string()));
  EXPECT_EQ(variables.find("USER="), std::string::npos) << "a plain process is the host's user";
  ASSERT_THAT(prepare(), IsOk()) << "a second launch begins anew";
  EXPECT_EQ(store::testing::slurp(home_ / "venv/bin/python"), "P");
}

}  // namespace
}  // namespace gridctl::agent::outside_test
