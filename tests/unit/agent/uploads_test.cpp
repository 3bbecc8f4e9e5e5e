// SPDX-License-Identifier: Apache-2.0
// A controller that has a host put a pack of the host's checkpoint somewhere; what sends it there is a program `curl`
// that keeps what it is told and given, and answers as the test says.
#include "agent/uploads.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "agent/checkpoints.hpp"
#include "agent/requests.hpp"
#include "base/text.hpp"
#include "os/log.hpp"
#include "transfer/fd_link.hpp"
#include "transfer/host_upload.hpp"
#include "unit/store/remote_fixtures.hpp"

namespace gridctl::agent::uploads_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using store::testing::Files, store::testing::slurp, store::testing::write;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class UploadsTest : public ::testing::Test {
 protected:
  UploadsTest() : path_(std::getenv("PATH")) {
    const Files files{{"model", store::testing::noise(90'000, 1)}, {"log", std::string(60'000, 'x')}};
    const std::string manifest = lay(3, files);
    pack({manifest, files.at("model"), files.at("log")});
    answer("printf '\\n200'");
    ::setenv("PATH", (dir_.path().string() + "/bin:" + path_).c_str(), 1);
    request_.checkpoint = {{"job1"}, Epoch{7}, 3};
    request_.url = "https://place.example/a\\b\"c";
    request_.headers = {{"x-first", "one \"two\""}, {"x-second", "2"}};
  }
  ~UploadsTest() override { ::setenv("PATH", path_.c_str(), 1); }

  // Makes a checkpoint of the host, each file one chunk; its manifest.
  std::string lay(std::uint64_t number, const Files& files) {
    std::vector<store::Entry> entries;
    for (const auto& [name, text] : files) {
      write(snapshot_files(attempt_, number) / name, text);
      store::Entry entry;
      entry.mode = 0644;
      entry.path = name;
      entry.size = text.size();
      entry.chunks = {{store::testing::digest_of(text), static_cast<std::uint32_t>(text.size())}};
      entries.push_back(std::move(entry));
    }
    const std::string manifest(as_text(store::to_manifest(store::make_tree(std::move(entries)).value())));
    write(snapshot_manifest(attempt_, number), manifest);
    write(attempt_.snapshots() / std::to_string(number) / "info",
          os::boot_id() + " 1 " + std::string(64, '0') + " 1 1 format\n");
    return manifest;
  }
  // What is asked for from now on: the pack of these contents.
  void pack(const std::vector<std::string>& contents) {
    store::KnownBlobs known;
    std::vector<Digest> all;
    for (const std::string& text : contents) {
      all.push_back(store::testing::put(store_, text));
      known[key_->storage_id(all.back())] = all.back();
    }
    EXPECT_THAT(store_.seal(), IsOk());
    const auto packs = store_.packs_of(all);
    ASSERT_THAT(packs, IsOk());
    ASSERT_THAT(*packs, SizeIs(1));
    pack_ = packs->front().path;
    const auto no_base = [](const store::BaseId&) -> Result<Digest> {
      return make_error(Code::not_found, "no differences here");
    };
    recipe_ = store::recipe_of(packs->front(), *key_, known, no_base).value();
    ASSERT_TRUE(recipe_);
  }
  // What the place, by curl, does once it has everything.
  void answer(const std::string& script) {
    const std::string base = dir_.path().string();
    const std::string head = "#!/bin/sh\ncat > " + base + "/settings\necho \"$*\" > " + base + "/arguments\n" +
                             "cat \"$(sed -n 's/^upload-file = \"\\(.*\\)\"$/\\1/p' " + base + "/settings)\" > " +
                             base + "/body\n";
    std::filesystem::create_directories(dir_ / "bin");
    EXPECT_THAT(os::write_file_atomically(dir_ / "bin/curl", head + script + "\n", 0700), IsOk());
  }
  Result<void> upload() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const os::Fd ours{ends[0]}, theirs{ends[1]};
    transfer::FdLink controller(ours.get(), ours.get(), false), host(theirs.get(), theirs.get(), false);
    std::thread serving([&] {
      HostSnapshots snapshots(requests_, own_);
      const auto frame = host.receive(os::system_clock().boot() + std::chrono::seconds{30});
      if (!frame) return;
      Uploads uploads(host, snapshots, os::system_clock());
      EXPECT_THAT(uploads.handle(*frame), IsOk());
    });
    const Result<void> outcome =
        transfer::upload_from_host(controller, os::system_clock(), request_, *recipe_, std::chrono::seconds{30});
    serving.join();
    return outcome;
  }
  [[nodiscard]] std::vector<std::string> settings() { return split_lines(slurp(dir_ / "settings")); }

  std::string path_;
  store::testing::Folder dir_;
  const AttemptDir attempt_{dir_ / "home/jobs/controller/job1/7"};
  Requests requests_{dir_ / "home", {"controller"}, os::system_clock()};
  OwnSnapshots own_{dir_ / "home", {"controller"}};
  std::shared_ptr<const store::StoreKey> key_ = store::testing::key_named("key");
  store::ChunkStore store_ = store::testing::open_store(dir_ / "store", key_);
  os::Path pack_;
  std::optional<store::PackRecipe> recipe_;
  wire::UploadRequest request_;
};

TEST_F(UploadsTest, TheVeryPackIsSentWithWhatWasSigned) {
  ASSERT_THAT(upload(), IsOk());
  EXPECT_EQ(slurp(dir_ / "body"), slurp(pack_));
  EXPECT_EQ(slurp(dir_ / "arguments"), "--disable --config -\n") << "others of the host see arguments";
  const std::vector<std::string> told = settings();
  ASSERT_GE(told.size(), 4u);
  EXPECT_EQ(told[0], "url = \"https://place.example/a\\\\b\\\"c\"");
  EXPECT_EQ(told[1], "header = \"x-first: one \\\"two\\\"\"");
  EXPECT_EQ(told[2], "header = \"x-second: 2\"");
  EXPECT_THAT(told[3], HasSubstr("upload-file = \"/proc/self/fd/"));
  for (const char* line : {"silent", "show-error", "proto = \"=http,https\"", "speed-limit = 1024", "speed-time = 60",
                           "connect-timeout = 10", "max-time = 60", "write-out = \"\\n%{http_code}\""})
    EXPECT_THAT(told, ::testing::Contains(line));
}

TEST_F(UploadsTest, GoesNoFasterThanItsAttemptMay) {
  wire::AttemptSpec spec;
  spec.job = {"job1"};
  spec.epoch = Epoch{7};
  spec.upload_limit = 2000;
  write(attempt_.spec_file(), wire::encode(spec));
  ASSERT_THAT(upload(), IsOk());
  EXPECT_THAT(settings(), ::testing::Contains("limit-rate = 2000"));
  const auto longest = std::chrono::ceil<std::chrono::seconds>(wire::upload_time_max(recipe_->size, 2000)).count();
  EXPECT_GT(longest, 60);
  EXPECT_THAT(settings(), ::testing::Contains("max-time = " + std::to_string(longest)));
}

TEST_F(UploadsTest, WhatThePlaceAnswersIsToldUnlessItIsTwoHundred) {
  answer("printf '<Error>Access \\033[1m Denied</Error>\\n\\n403'");
  const auto refused = upload();
  ASSERT_THAT(refused, FailsWith(Code::refused));
  EXPECT_EQ(refused.error().message, "the remote answered 403 <Error>Access ^[[1m Denied</Error>");
  answer("printf '\\n201'");
  EXPECT_THAT(upload(), FailsWith(Code::refused));
  answer("printf 200");
  EXPECT_THAT(upload(), FailsWith(Code::refused)) << "that is of the body, and there is no status";
}

TEST_F(UploadsTest, ACurlThatFailsIsAPlaceThatIsNotReached) {
  answer("echo 'curl: (6) no such host' >&2; printf '\\n200'; exit 6");
  const auto failed = upload();
  ASSERT_THAT(failed, FailsWith(Code::host_unreachable));
  EXPECT_EQ(failed.error().message, "curl exited with 6: curl: (6) no such host");
}

TEST_F(UploadsTest, OfALongAnswerOnlyTheBeginningIsKept) {
  answer("head -c 100000 /dev/zero | tr '\\0' y; printf '\\n200'");
  const auto failed = upload();
  ASSERT_THAT(failed, FailsWith(Code::refused)) << "its status lies behind what is kept";
  EXPECT_LT(failed.error().message.size(), 500u);
}

TEST_F(UploadsTest, AChunkMayBeInAnotherCheckpointWhichIsThenNeeded) {
  std::filesystem::create_directories(attempt_.bases_file().parent_path());
  const std::string old = store::testing::noise(70'000, 5), fresh = store::testing::noise(80'000, 6);
  lay(4, {{"model", store::testing::noise(50'000, 7)}});
  lay(5, {{"model", old}});
  const std::string manifest = lay(6, {{"model", fresh}});
  pack({manifest, fresh, old});
  request_.checkpoint.number = 6;
  ASSERT_THAT(upload(), IsOk());
  EXPECT_EQ(slurp(dir_ / "body"), slurp(pack_));
  EXPECT_EQ(slurp(attempt_.bases_file()), "6 5\n");
}

TEST_F(UploadsTest, WhatTheHostDoesNotHaveAnyMoreIsAnErrorAndNothingIsSent) {
  ASSERT_THAT(os::remove_tree(snapshot_files(attempt_, 3)), IsOk());
  EXPECT_THAT(upload(), Not(IsOk()));
  ASSERT_THAT(os::remove_tree(attempt_.snapshots()), IsOk());
  const auto gone = upload();
  ASSERT_THAT(gone, FailsWith(Code::not_found));
  EXPECT_THAT(gone.error().message, HasSubstr("any more"));
  EXPECT_FALSE(os::exists(dir_ / "body"));
}

TEST_F(UploadsTest, APackThatBecomesAnotherOneIsNotSent) {
  recipe_->content = Digest{};
  EXPECT_THAT(upload(), FailsWith(Code::unsupported));
  EXPECT_FALSE(os::exists(dir_ / "body"));
}

TEST_F(UploadsTest, WhatCannotBeNotedIsLoggedAndSentAllTheSame) {
  os::log_to_file(dir_ / "log", os::LogLevel::warn);
  ASSERT_FALSE(os::exists(attempt_.control()));
  EXPECT_THAT(upload(), IsOk());
  EXPECT_THAT(slurp(dir_ / "log"), HasSubstr("cannot note which snapshots are needed: "));
}

TEST_F(UploadsTest, TheSnapshotsThatWereReadLastStayReadable) {
  const auto content = [](std::uint64_t number) { return store::testing::noise(1000, number); };
  for (std::uint64_t number = 4; number <= 8; ++number) lay(number, {{"model", content(number)}});
  HostSnapshots snapshots(requests_, own_);
  const auto read = [&](std::uint64_t number) {
    const auto chunk = snapshots.chunk({{"job1"}, Epoch{7}, number}, store::testing::digest_of(content(number)));
    return chunk && as_text(*chunk) == content(number);
  };
  for (const std::uint64_t number : {4u, 5u, 6u, 7u}) EXPECT_TRUE(read(number));
  EXPECT_TRUE(read(4)) << "used again";
  EXPECT_TRUE(read(8));
  std::filesystem::rename(attempt_.snapshots(), dir_ / "elsewhere");
  for (const std::uint64_t number : {4u, 6u, 7u, 8u}) EXPECT_TRUE(read(number)) << number;
  EXPECT_FALSE(read(5)) << "it was the one that nobody had asked for longest";
  EXPECT_THAT(snapshots.manifest({{"job1"}, Epoch{7}, 8}), FailsWith(Code::not_found));
  EXPECT_THAT(snapshots.manifest({{"../x"}, Epoch{7}, 8}), FailsWith(Code::refused));
}

TEST_F(UploadsTest, OthersOfTheAttemptAreAskedFromTheNewest) {
  for (std::uint64_t number = 4; number <= 6; ++number) lay(number, {{"model", "x"}});
  const HostSnapshots snapshots(requests_, own_);
  std::vector<std::uint64_t> numbers;
  for (const wire::CheckpointRef& one : snapshots.all_like({{"job1"}, Epoch{7}, 4})) {
    EXPECT_EQ(one.job.value, "job1");
    EXPECT_EQ(one.epoch, Epoch{7});
    numbers.push_back(one.number);
  }
  EXPECT_THAT(numbers, ElementsAre(4, 6, 5, 3));
  EXPECT_EQ(snapshots.all_like({{"../x"}, Epoch{7}, 4}).size(), 1u);
}

TEST_F(UploadsTest, WithoutALimitNobodyWaits) {
  HostSnapshots snapshots(requests_, own_);
  const wire::CheckpointRef checkpoint{{"job1"}, Epoch{7}, 3};
  EXPECT_EQ(snapshots.upload_limit(checkpoint), 0u);
  const BootTime began = os::system_clock().boot();
  snapshots.sent(checkpoint, 1u << 30);
  EXPECT_LT(os::system_clock().boot() - began, std::chrono::seconds{5});
  EXPECT_FALSE(os::exists(attempt_.path / "uploads"));
}

TEST_F(UploadsTest, WithoutCurlTheHostSaysWhatItLacks) {
  ::setenv("PATH", "/no/such/folder", 1);
  const auto outcome = upload();
  ASSERT_THAT(outcome, FailsWith(Code::unsupported));
  EXPECT_EQ(outcome.error().message, "this host has no curl");
}

}  // namespace
}  // namespace gridctl::agent::uploads_test
