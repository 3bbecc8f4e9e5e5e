// SPDX-License-Identifier: Apache-2.0
// The container engine against a program of its name that notes what it is asked and answers as the test says.
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <unistd.h>

#include "agent/engine.hpp"
#include "agent/guest_images.hpp"
#include "base/text.hpp"
#include "os/process.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent::engine_container_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
const std::string k_archive_tag = "gridctl-archive:" + std::string(32, 'a');

wire::AttemptSpec container_spec() {
  wire::AttemptSpec spec;
  spec.job = {"j"};
  spec.epoch = Epoch{3};
  spec.engine = EngineKind::podman;
  spec.image = "img:1";
  spec.run = "true";
  return spec;
}

LaunchPlan container_plan() {
  LaunchPlan plan;
  plan.name = "gridctl-unit-" + std::to_string(os::process_id()) + "-e3";
  plan.image = "img:1";
  plan.init = {"/gridctl/run", "/gridctl/ctl", "/work", {}, std::chrono::seconds{1}, {}};
  plan.binds = {{"/host/work", "/work", false}, {"/host/data", "/data", true}};
  return plan;
}

class Containers : public ::testing::Test {
 protected:
  Containers() : path_(std::getenv("PATH")) {
    for (const char* name : {"docker", "podman"}) {
      // What it does with a verb stands in a file of the verb's name; a missing one means success without a word.
      const std::string script = "#!/bin/sh\ncd " + dir_.path().string() +
                                 "\necho \"$*\" >> calls\nverb=$1\n"
                                 "case $1 in image|container) verb=$1-$2 ;; esac\n"
                                 "[ ! -e on-$verb ] || . ./on-$verb\n";
      EXPECT_THAT(os::write_file_atomically(dir_ / name, script, 0700), IsOk());
    }
    ::setenv("PATH", (dir_.path().string() + ":" + path_).c_str(), 1);
  }
  ~Containers() override { ::setenv("PATH", path_.c_str(), 1); }

  void on(const std::string& verb, const std::string& script) {
    ASSERT_THAT(os::write_file_atomically(dir_ / ("on-" + verb), script + "\n", 0600), IsOk());
  }
  [[nodiscard]] std::vector<std::string> calls() {
    const std::vector<std::string> lines = split_lines(os::read_file(dir_ / "calls").value_or(""));
    ::unlink((dir_ / "calls").c_str());
    return lines;
  }

  std::string path_;
  gridctl::testing::TempDir dir_;
  std::unique_ptr<Engine> podman_ = make_engine(EngineKind::podman), docker_ = make_engine(EngineKind::docker);
};

TEST_F(Containers, AnImageThatIsHereIsNotPulled) {
  EXPECT_EQ(podman_->ensure_image(container_spec(), {}).value_or(""), "img:1");
  EXPECT_THAT(calls(), ElementsAre("image inspect --format {{.Id}} img:1"));
}

TEST_F(Containers, AGuestsImageComesFromItsRegistryWithoutTheOwnersLogin) {
  const GuestImages images(dir_.path());
  const std::string name = "ghcr.io/a/b:1", login = (dir_ / "no-login").string();
  on("image-inspect", "echo 4711");
  EXPECT_EQ(podman_->ensure_guest_image(name, images).value_or(""), "4711");
  EXPECT_THAT(calls(), ElementsAre("image inspect --format {{.Id}} " + name, "pull --quiet --authfile " + login + "/config.json " + name,
                                   "image inspect --format {{.Id}} " + name)) << "the owner may have one of that name";
  EXPECT_EQ(podman_->ensure_guest_image(name, images).value_or(""), "4711");
  EXPECT_EQ(calls().size(), 1u) << "guests have got it before";
  on("image-inspect", "echo 4712");
  on("pull", "echo 'denied' >&2; exit 125");
  const auto denied = podman_->ensure_guest_image(name, images);
  ASSERT_THAT(denied, FailsWith(Code::engine));
  EXPECT_THAT(denied.error().message, HasSubstr("this machine's owner has an image ghcr.io/a/b:1")) << "that is another one";
  (void)calls();
  on("image-inspect", "echo 'no such image' >&2; exit 1");
  EXPECT_THAT(docker_->ensure_guest_image(name, images), FailsWith(Code::engine));
  EXPECT_THAT(calls(), ::testing::Contains("--config " + login + " pull --quiet " + name));
  EXPECT_THAT(podman_->ensure_guest_image("localhost/mine:1", images), FailsWith(Code::engine)) << "which nobody pulls";
  EXPECT_THAT(calls(), ElementsAre("image inspect --format {{.Id}} localhost/mine:1"));
}

TEST_F(Containers, AGuestsArchiveTakesNoNameAway) {
  const GuestImages images(dir_.path());
  wire::AttemptSpec spec = container_spec();
  spec.image_archive.emplace();
  const std::string names = "image ls --no-trunc --format {{.ID}} {{.Repository}}:{{.Tag}}";
  on("load", "echo 'Loaded image: localhost/owners:1'; touch loaded");
  on("image-ls", "id=good; [ ! -e loaded ] || id=bad; echo sha256:$id localhost/owners:1; [ $id = good ] || echo sha256:bad localhost/brought:1");
  on("image-inspect", "echo sha256:bad");
  EXPECT_EQ(podman_->ensure_guest_archive(spec, "/store/a.tar", images).value_or(""), "sha256:bad");
  EXPECT_THAT(calls(), ElementsAre(names, "load --input /store/a.tar", "image inspect --format {{.Id}} localhost/owners:1",
                                   "tag sha256:bad gridctl-guest:bad", names, "tag sha256:good localhost/owners:1", "untag localhost/brought:1"));
  EXPECT_EQ(podman_->ensure_guest_archive(spec, "/store/a.tar", images).value_or(""), "sha256:bad");
  EXPECT_THAT(calls(), ElementsAre("image inspect --format {{.Id}} sha256:bad")) << "it is loaded already";
  // Killed between the load and the end: the next one puts the names back first.
  ASSERT_THAT(os::write_file_atomically(images.names_file(), "sha256:good localhost/owners:1\n"), IsOk());
  EXPECT_EQ(podman_->ensure_guest_archive(spec, "/store/a.tar", images).value_or(""), "sha256:bad");
  EXPECT_THAT(calls(), ::testing::Contains("tag sha256:good localhost/owners:1"));
  EXPECT_FALSE(os::exists(images.names_file()));
}

TEST_F(Containers, AMissingImageIsPulledHoweverTheEngineSaysThatItIsMissing) {
  for (const char* words : {"Error: No such image: img:1", "Error: img:1: image not known", "img:1: Not Found"}) {
    on("image-inspect", "echo '" + std::string(words) + "' >&2; exit 1");
    EXPECT_EQ(docker_->ensure_image(container_spec(), {}).value_or(""), "img:1") << words;
    EXPECT_THAT(calls(), ElementsAre("image inspect --format {{.Id}} img:1", "pull --quiet img:1"));
  }
}

TEST_F(Containers, AShortNameThatPodmanFindsNowhereIsDockersAsWithDocker) {
  on("image-inspect", "echo 'Error: no such image' >&2; exit 1");
  on("pull", "case $3 in docker.io/*) ;; *) echo 'Error: short-name \"img:1\" did not resolve to an alias' >&2; exit 125 ;; esac");
  EXPECT_EQ(podman_->ensure_image(container_spec(), {}).value_or(""), "docker.io/library/img:1");
  EXPECT_THAT(calls(), ElementsAre("image inspect --format {{.Id}} img:1", "pull --quiet img:1", "pull --quiet docker.io/library/img:1"));
  on("pull", "echo 'Error: no route to host' >&2; exit 125");
  EXPECT_THAT(podman_->ensure_image(container_spec(), {}), FailsWith(Code::engine));
  EXPECT_EQ(calls().size(), 2u) << "another error is told, not tried again";
}

TEST_F(Containers, OnlyNamesWithoutARegistryAreMadeLonger) {
  EXPECT_EQ(full_image_name("debian:12"), "docker.io/library/debian:12");
  EXPECT_EQ(full_image_name("pytorch/pytorch:2.4.0"), "docker.io/pytorch/pytorch:2.4.0");
  for (const char* name : {"ghcr.io/a/b:1", "localhost/mine:1", "registry:5000/mine", "docker.io/library/debian@sha256:00"})
    EXPECT_EQ(full_image_name(name), name);
}

TEST_F(Containers, NothingIsPulledWhereTheEngineDoesNotAnswerForItsImages) {
  on("image-inspect", "echo 'Cannot connect to the daemon' >&2; exit 1");
  const auto image = docker_->ensure_image(container_spec(), {});
  ASSERT_THAT(image, FailsWith(Code::engine));
  EXPECT_EQ(image.error().message, "docker could not look for the image img:1: Cannot connect to the daemon");
  EXPECT_EQ(calls().size(), 1u);
}

TEST_F(Containers, APullThatFailsIsToldInTheEnginesWordsMadeSafe) {
  on("image-inspect", "echo 'no such image' >&2; exit 125");
  on("pull", "printf 'bad \\033[31m name\\n' >&2; exit 1");
  const auto image = podman_->ensure_image(container_spec(), {});
  ASSERT_THAT(image, FailsWith(Code::engine));
  EXPECT_EQ(image.error().message, "podman could not pull the image img:1: bad ^[[31m name");
}

TEST_F(Containers, OfALongErrorTextTheEndIsKept) {
  on("image-inspect", "printf '%05000d' 7 >&2; exit 1");
  const auto image = podman_->ensure_image(container_spec(), {});
  ASSERT_THAT(image, FailsWith(Code::engine));
  const std::string lead = "podman could not look for the image img:1: ";
  EXPECT_EQ(image.error().message, lead + std::string(3999, '0') + "7");
}

TEST_F(Containers, WithoutAnImageNothingIsAsked) {
  wire::AttemptSpec spec = container_spec();
  spec.image.clear();
  EXPECT_THAT(podman_->ensure_image(spec, {}), FailsWith(Code::refused));
  EXPECT_THAT(calls(), IsEmpty());
}

TEST_F(Containers, AnEngineThatIsNotInstalledIsSaidSo) {
  ::setenv("PATH", "/no/such/folder", 1);
  const auto image = podman_->ensure_image(container_spec(), {});
  ASSERT_THAT(image, FailsWith(Code::not_found));
  EXPECT_THAT(image.error().one_line(), HasSubstr("while trying to look for the image img:1"));
  EXPECT_FALSE(podman_->is_gone("x"));
}

TEST_F(Containers, AnArchiveIsLoadedOnceAndNamedByItsContent) {
  wire::AttemptSpec spec = container_spec();
  spec.image_archive.emplace();
  spec.image_archive->bytes.fill(std::byte{0xaa});
  on("image-inspect", "echo 'no such image' >&2; exit 1");
  on("load", "echo 'Loaded image: localhost/a:1'");
  EXPECT_EQ(podman_->ensure_image(spec, "/store/a.tar").value_or(""), k_archive_tag);
  EXPECT_THAT(calls(), ElementsAre("image inspect --format {{.Id}} " + k_archive_tag, "load --input /store/a.tar",
                                   "tag localhost/a:1 " + k_archive_tag));
  on("image-inspect", "");
  EXPECT_EQ(podman_->ensure_image(spec, "/store/a.tar").value_or(""), k_archive_tag);
  EXPECT_EQ(calls().size(), 1u) << "an archive that is loaded is loaded again";
}

TEST_F(Containers, AnArchiveThatCannotBeLoadedOrNamedIsAnError) {
  wire::AttemptSpec spec = container_spec();
  spec.image_archive.emplace();
  on("image-inspect", "echo 'no such image' >&2; exit 1");
  on("load", "echo 'something else'");
  EXPECT_THAT(podman_->ensure_image(spec, "/store/a.tar"), FailsWith(Code::engine));
  EXPECT_EQ(calls().size(), 2u) << "nothing is there to be named";
  on("load", "echo 'Loaded image: x'; echo 'no space left' >&2; exit 1");
  const auto full = podman_->ensure_image(spec, "/store/a.tar");
  ASSERT_THAT(full, FailsWith(Code::engine));
  EXPECT_EQ(full.error().message, "podman could not load the image archive: no space left");
  on("load", "echo 'Loaded image: x'");
  on("tag", "exit 1");
  EXPECT_THAT(podman_->ensure_image(spec, "/store/a.tar"), FailsWith(Code::engine));
  (void)calls();
  on("image-inspect", "echo 'broken' >&2; exit 1");
  EXPECT_THAT(podman_->ensure_image(spec, "/store/a.tar"), FailsWith(Code::engine));
  EXPECT_EQ(calls().size(), 1u);
}

TEST_F(Containers, AContainerIsStartedOnce) {
  const LaunchPlan plan = container_plan();
  ASSERT_THAT(podman_->launch(container_spec(), plan), IsOk());
  const std::vector<std::string> made = calls();
  ASSERT_EQ(made.size(), 1u);
  EXPECT_THAT(made[0], StartsWith("run --detach --name " + plan.name + " "));
  EXPECT_THAT(made[0], HasSubstr(" --user 0:0 ")) << "a user of its own namespace";
  EXPECT_THAT(made[0], HasSubstr(" --mount type=bind,source=/host/work,target=/work "));
  EXPECT_THAT(made[0], HasSubstr(" --mount type=bind,source=/host/data,target=/data,readonly "));
  EXPECT_THAT(made[0], HasSubstr(" --entrypoint /gridctl/agent img:1 init "));
}

TEST_F(Containers, AWritableRootThatCannotBeIsReadOnlyInstead) {
  wire::AttemptSpec spec = container_spec();
  spec.root_writable = true;
  on("run",
     "case \"$*\" in *--read-only*) exit 0 ;; esac\n"
     "echo 'crun: mkdir: value too large for defined data type' >&2; exit 126");
  const LaunchPlan plan = container_plan();
  ASSERT_THAT(podman_->launch(spec, plan), IsOk());
  const std::vector<std::string> made = calls();
  ASSERT_EQ(made.size(), 3u);
  EXPECT_THAT(made[0], Not(HasSubstr("--read-only")));
  EXPECT_EQ(made[1], "rm --force --volumes --time 0 --ignore " + plan.name) << "its name would still be taken";
  EXPECT_THAT(made[2], StartsWith("run --detach --name " + plan.name + " "));
  EXPECT_THAT(made[2], HasSubstr("--read-only"));
}

TEST_F(Containers, AnyOtherFailureToStartIsReportedAtOnce) {
  wire::AttemptSpec spec = container_spec();
  on("run", "echo 'value too large for defined data type' >&2; exit 126");
  EXPECT_THAT(podman_->launch(spec, container_plan()), FailsWith(Code::engine)) << "its root was read-only already";
  EXPECT_EQ(calls().size(), 1u);
  spec.root_writable = true;
  on("run", "echo 'no space left on device' >&2; exit 126");
  const auto launched = podman_->launch(spec, container_plan());
  ASSERT_THAT(launched, FailsWith(Code::engine));
  EXPECT_EQ(launched.error().message,
            "podman could not start the container " + container_plan().name + ": no space left on device");
  EXPECT_EQ(calls().size(), 1u);
}

TEST_F(Containers, WhatCannotBeRemovedIsNotStartedAgain) {
  wire::AttemptSpec spec = container_spec();
  spec.root_writable = true;
  on("run", "echo 'value too large for defined data type' >&2; exit 126");
  on("rm", "echo 'device or resource busy' >&2; exit 1");
  const auto launched = podman_->launch(spec, container_plan());
  ASSERT_THAT(launched, FailsWith(Code::engine));
  EXPECT_THAT(launched.error().message, HasSubstr("remove the container"));
  EXPECT_EQ(calls().size(), 2u);
}

TEST_F(Containers, IsGoneOnlyWhereTheEngineSaysThatItDoesNotRun) {
  on("container-inspect", "echo true");
  EXPECT_FALSE(podman_->is_gone("c"));
  EXPECT_THAT(calls(), ElementsAre("container inspect --format {{.State.Running}} c"));
  on("container-inspect", "echo false");
  EXPECT_TRUE(podman_->is_gone("c"));
  on("container-inspect", "echo false; exit 1");
  EXPECT_FALSE(podman_->is_gone("c")) << "an engine that fails knows nothing";
}

TEST_F(Containers, RemovingWhatIsMissingSucceedsAndOtherFailuresAreErrors) {
  EXPECT_THAT(docker_->remove("c"), IsOk());
  EXPECT_THAT(calls(), ElementsAre("rm --force --volumes c"));
  EXPECT_THAT(podman_->remove("c"), IsOk());
  EXPECT_THAT(calls(), ElementsAre("rm --force --volumes --time 0 --ignore c"));
  on("rm", "echo 'Error: No such container: c' >&2; exit 1");
  EXPECT_THAT(docker_->remove("c"), IsOk());
  on("rm", "echo 'device or resource busy' >&2; exit 1");
  EXPECT_THAT(docker_->remove("c"), FailsWith(Code::engine));
  EXPECT_THAT(podman_->remove("c"), FailsWith(Code::engine));
}

TEST_F(Containers, AMonitorThatIsLeftIsEndedWithItsChildrenAndItsContainerRemovedAgain) {
  const std::string name = container_plan().name;
  ASSERT_THAT(os::write_file_atomically(dir_ / "monitor", "#!/bin/sh\nsleep 600 &\necho $!\nwait\n", 0700), IsOk());
  auto pipe = os::make_pipe();
  ASSERT_THAT(pipe, IsOk());
  os::SpawnOptions options;
  options.detach = true;
  options.new_session = true;
  options.stdout_fd = pipe->second.get();
  const auto monitor = os::spawn({(dir_ / "monitor").string(), "-n", name}, options);
  ASSERT_THAT(monitor, IsOk());
  const auto monitor_id = os::identify(*monitor);
  ASSERT_TRUE(monitor_id);
  std::array<char, 32> text{};
  ASSERT_GT(::read(pipe->first.get(), text.data(), text.size() - 1), 0);
  const auto child = os::identify(std::atoi(text.data()));
  ASSERT_TRUE(child);
  EXPECT_THAT(docker_->remove(name), IsOk());
  EXPECT_EQ(calls().size(), 1u);
  EXPECT_TRUE(os::is_alive(*monitor_id)) << "docker has no such monitors";
  EXPECT_THAT(podman_->remove(name), IsOk());
  EXPECT_EQ(calls().size(), 2u) << "a container that the monitor has made stays";
  pipe->second.reset();
  std::array<char, 8> rest{};
  ASSERT_THAT(os::wait_ready(pipe->first.get(), true, false, std::chrono::seconds{10}), IsOk());
  EXPECT_EQ(::read(pipe->first.get(), rest.data(), rest.size()), 0) << "one of the two still lives";
  EXPECT_FALSE(os::is_alive(*monitor_id));
  EXPECT_FALSE(os::is_alive(*child));
}

TEST_F(Containers, AMonitorThatIsAboutToEndIsLeftToTidyUp) {
  const std::string name = container_plan().name;
  ASSERT_THAT(os::write_file_atomically(dir_ / "monitor", "#!/bin/sh\nsleep 0.3\necho > tidied\n", 0700), IsOk());
  os::SpawnOptions options;
  options.detach = true;
  options.directory = dir_.path();
  ASSERT_THAT(os::spawn({(dir_ / "monitor").string(), "-n", name}, options), IsOk());
  EXPECT_THAT(podman_->remove(name), IsOk());
  EXPECT_TRUE(os::exists(dir_ / "tidied"));
  EXPECT_EQ(calls().size(), 1u);
}

TEST_F(Containers, OnlyTheHolderOfTheLockOfInitIsAMember) {
  EXPECT_THAT(podman_->members("c", dir_.path()), IsEmpty());
  const auto held = os::FileLock::try_acquire(dir_ / "lock").value();
  ASSERT_TRUE(held);
  EXPECT_THAT(podman_->members("c", dir_.path()), ElementsAre(os::identify(::getpid()).value()));
}

// Where containers count users from the one who runs them, that one is 0 in them.
TEST_F(Containers, RunAsTheUserWhoOwnsTheFilesOfTheJob) {
  constexpr unsigned k_user = 61'237;
  const unsigned uid = ::geteuid() == 0 ? k_user : ::geteuid(), gid = ::geteuid() == 0 ? k_user : ::getegid();
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(dir_.path().c_str(), uid, gid), 0);
    for (const char* name : {"docker", "podman"}) ASSERT_EQ(::chown((dir_ / name).c_str(), uid, gid), 0);
  }
  const auto launched_by = [&](Engine& engine) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (::geteuid() == 0 && (::setgid(gid) != 0 || ::setuid(uid) != 0)) ::_exit(98);
      ::_exit(engine.launch(container_spec(), container_plan()) ? 0 : 1);
    }
    EXPECT_EQ(os::wait(child)->code, 0);
    return calls();
  };
  const std::string own = " --user " + std::to_string(uid) + ":" + std::to_string(gid) + " ";
  EXPECT_THAT(launched_by(*podman_), ElementsAre(HasSubstr(" --user 0:0 ")));
  EXPECT_THAT(launched_by(*docker_), ElementsAre("info --format {{.SecurityOptions}}", HasSubstr(own)));
  std::ofstream(dir_ / "on-info") << "echo '[name=seccomp,profile=builtin name=rootless]'\n";
  EXPECT_THAT(launched_by(*docker_), ElementsAre(::testing::_, HasSubstr(" --user 0:0 ")));
  std::ofstream(dir_ / "on-info") << "echo 'name=rootless'; exit 1\n";
  EXPECT_THAT(launched_by(*docker_), ElementsAre(::testing::_, HasSubstr(own))) << "an engine that fails knows nothing";
}

TEST(ContainerArguments, SayOnlyTheLimitsThatAreGiven) {
  const auto line = [](const wire::AttemptSpec& spec) {
    return join(container_arguments(EngineKind::podman, spec, container_plan(), {0, 0}), " ");
  };
  wire::AttemptSpec spec = container_spec();
  EXPECT_THAT(line(spec), Not(HasSubstr("--cpus")));
  EXPECT_THAT(line(spec), Not(HasSubstr("--memory")));
  EXPECT_THAT(line(spec), HasSubstr("--shm-size 1073741824"));
  EXPECT_THAT(line(spec), HasSubstr("--hostname job"));
  spec.memory_bytes = 4u << 20;
  EXPECT_THAT(line(spec), HasSubstr("--memory 4194304 --memory-swap 4194304 --shm-size 2097152"));
  spec.memory_bytes = 1;
  EXPECT_THAT(line(spec), HasSubstr("--memory 1 --memory-swap 1 --shm-size 1048576"));
}

}  // namespace
}  // namespace gridctl::agent::engine_container_test
