// SPDX-License-Identifier: Apache-2.0
// A folder on a host as a remote: by the rules of every remote, over links that break, and with hosts that lie.
#include "transfer/host_remote.hpp"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <limits>
#include <list>
#include <thread>

#include "contract/backend_suite.hpp"
#include "store/dir_remote.hpp"
#include "store/remote.hpp"
#include "support/temp_dir.hpp"
#include "transfer/fd_link.hpp"
#include "transfer/serve_remote.hpp"

namespace gridctl::transfer::host_remote_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using gridctl::testing::TempDir;
using store::Backend;
using store::Object;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using wire::FrameKind;

constexpr std::size_t k_for_ever = std::numeric_limits<std::size_t>::max();

// Serves one connection until it ends.
using Serve = std::function<void(wire::Link&)>;

// One end of a connection whose other end a thread serves; it breaks when so many frames have gone either way.
class ServedLink final : public wire::Link {
 public:
  ServedLink(Serve serve, std::size_t frames) : left_(frames) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    ours_ = os::Fd(ends[0]);
    theirs_ = os::Fd(ends[1]);
    link_ = std::make_unique<FdLink>(ours_.get(), ours_.get(), false);
    thread_ = std::thread([this, serve = std::move(serve)] {
      FdLink link(theirs_.get(), theirs_.get(), false);
      serve(link);
      ::shutdown(theirs_.get(), SHUT_RDWR);
    });
  }
  ~ServedLink() override {
    ::shutdown(ours_.get(), SHUT_RDWR);
    thread_.join();
  }
  ServedLink(const ServedLink&) = delete;
  ServedLink& operator=(const ServedLink&) = delete;

  Result<void> send(const wire::Frame& frame, BootTime deadline) override {
    TRY(spend());
    return link_->send(frame, deadline);
  }
  Result<wire::Frame> receive(BootTime deadline) override {
    TRY_ASSIGN(wire::Frame frame, link_->receive(deadline));
    TRY(spend());  // it came, and is lost
    return frame;
  }

 private:
  Result<void> spend() {
    if (left_ > 0) return --left_, Result<void>();
    ::shutdown(ours_.get(), SHUT_RDWR);
    return make_error(Code::host_unreachable, "the link broke");
  }

  std::size_t left_;
  os::Fd ours_, theirs_;
  std::unique_ptr<FdLink> link_;
  std::thread thread_;
};

// A user's home on a host that has an agent. `frames`: of the next connections; beyond those listed they do not break.
struct AHost {
  TempDir home;
  std::list<std::size_t> frames;
  std::atomic<int> connections = 0;

  Result<BulkLink> connect() {
    ++connections;
    std::size_t lasts = k_for_ever;
    if (!frames.empty()) lasts = frames.front(), frames.pop_front();
    const auto serve = [this](wire::Link& link) {
      RemoteServer server(link, os::system_clock(), home.path(), home.path() / ".gridctl");
      for (;;) {
        const auto request = link.receive(os::system_clock().boot() + std::chrono::minutes{1});
        if (!request || !server.handle(*request)) return;
      }
    };
    return BulkLink{std::make_unique<ServedLink>(serve, lasts)};
  }
  std::unique_ptr<Backend> open(std::string path = "copies", bool marked = false) {
    return open_host_remote(
        {"ada", std::move(path), marked}, [this] { return connect(); }, os::system_clock());
  }
  [[nodiscard]] os::Path folder() const { return home.path() / "copies"; }
  // What lies there, without a link.
  std::unique_ptr<Backend> inside() { return store::open_dir_remote(folder(), ""); }
};

store::testing::OpenBackend make_host() {
  const auto host = std::make_shared<AHost>();
  return [host] {
    return open_host_remote(
        {"ada", "copies", false}, [host] { return host->connect(); }, os::system_clock());
  };
}

std::string noise(std::size_t size) {
  std::string text(size, '\0');
  std::uint32_t seed = 7;
  for (char& c : text) c = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
  return text;
}
store::ReadAt content_of(const std::string& text) {
  return [&text](std::uint64_t offset, std::size_t size) -> Result<Bytes> {
    const ByteView part = as_bytes(std::string_view(text).substr(offset, size));
    return Bytes(part.begin(), part.end());
  };
}
std::optional<std::string> text_of(Backend& remote, const std::string& name) {
  const Result<Bytes> content = store::read_object(remote, name, 64u << 20);
  if (!content) return std::nullopt;
  return std::string(as_text(*content));
}

// --- Links that break
// -------------------------------------------------------------------------------------------------

const std::string& a_pack() {
  static const std::string text = noise(5 * k_data_frame + 17);
  return text;
}
constexpr std::size_t k_frames_of_a_pack = 1 + 1 + 1 + 6 + 1 + 1;  // making the folder, request, data, end, reply

TEST(HostRemoteLinks, WhatIsCutAtAnyFrameIsWholeOrNotThereAndIsPutAgain) {
  for (std::size_t frames = 0; frames < k_frames_of_a_pack; ++frames) {
    AHost host;
    host.frames = {frames, std::min(frames, k_frames_of_a_pack - 3)};  // the second try breaks, too; the folder is made
    const auto remote = host.open();
    EXPECT_THAT(remote->put("packs/a", a_pack().size(), content_of(a_pack())), FailsWith(Code::host_unreachable))
        << frames;
    EXPECT_EQ(host.connections, 2) << frames;
    os::make_directories(host.folder()).value();
    const auto left = text_of(*host.inside(), "packs/a");
    EXPECT_TRUE(!left || *left == a_pack()) << frames;
    EXPECT_THAT(remote->put("packs/a", a_pack().size(), content_of(a_pack())), IsOk()) << frames;
    EXPECT_EQ(text_of(*host.inside(), "packs/a"), a_pack()) << frames;
  }
}

TEST(HostRemoteLinks, AConnectionThatBreaksIsReplacedInTheMidstOfAnything) {
  for (std::size_t frames = 0; frames < k_frames_of_a_pack; ++frames) {
    AHost host;
    host.frames = {frames};
    EXPECT_THAT(host.open()->put("packs/a", a_pack().size(), content_of(a_pack())), IsOk()) << frames;
    EXPECT_EQ(host.connections, 2) << frames;
    host.frames = {frames};
    EXPECT_EQ(text_of(*host.open(), "packs/a"), a_pack()) << frames;
    host.frames = {frames};
    EXPECT_THAT(host.open()->list(""), IsOk()) << frames;
    host.frames = {frames};
    EXPECT_THAT(host.open()->remove("packs/a"), IsOk()) << frames;
    EXPECT_EQ(text_of(*host.inside(), "packs/a"), std::nullopt) << frames;
  }
}

TEST(HostRemoteLinks, WhatIsWrittenOnceIsKnownAgainAfterItsAnswerWasLost) {
  const std::string mine = "mine", other = "another's";
  for (std::size_t frames = 0; frames < 7; ++frames) {
    AHost host;
    host.frames = {frames};
    const Result<bool> written = host.open()->put_new("fence", as_bytes(mine));
    ASSERT_THAT(written, IsOk()) << frames;
    EXPECT_TRUE(*written) << frames;
    host.frames = {frames};
    const Result<bool> again = host.open()->put_new("fence", as_bytes(other));
    ASSERT_THAT(again, IsOk()) << frames;
    EXPECT_FALSE(*again) << frames;
    EXPECT_EQ(text_of(*host.inside(), "fence"), mine);
  }
}

TEST(HostRemoteLinks, WhoStopsAtTheLastByteHasPutNothing) {
  AHost host;
  const auto remote = host.open();
  const auto stop_at_end = [](std::uint64_t done) { return done < a_pack().size(); };
  EXPECT_THAT(remote->put("packs/a", a_pack().size(), content_of(a_pack()), stop_at_end), FailsWith(Code::cancelled));
  EXPECT_EQ(text_of(*host.inside(), "packs/a"), std::nullopt);
  EXPECT_EQ(host.connections, 1);  // and the connection is good for more
  EXPECT_THAT(remote->put("packs/a", a_pack().size(), content_of(a_pack())), IsOk());
  EXPECT_EQ(host.connections, 1);
}

// --- The host's side
// --------------------------------------------------------------------------------------------------

TEST(HostRemoteFolder, WithoutItsMarkIsNotThere) {
  AHost host;
  ASSERT_THAT(host.open()->put_new("other", as_bytes("x")), IsOk());
  const auto remote = host.open("copies", true);
  EXPECT_THAT(remote->list(""), FailsWith(Code::host_unreachable));
  EXPECT_THAT(remote->put("packs/a", 1, content_of("x")), FailsWith(Code::host_unreachable));
  EXPECT_EQ(host.connections, 2);  // the host has answered: nothing is tried again
  ASSERT_THAT(host.open()->put_new(store::k_mark_name, as_bytes("mark")), IsOk());
  EXPECT_THAT(remote->list(""), IsOk());
}

TEST(HostRemoteFolder, IsMadeOnlyWhereItsParentIs) {
  AHost host;
  const auto remote = host.open("mnt/copies");
  EXPECT_THAT(remote->list(""), FailsWith(Code::not_found));
  EXPECT_THAT(remote->list("").error().one_line(), HasSubstr("is its disk mounted?"));
  ASSERT_THAT(os::make_directories(host.home.path() / "mnt"), IsOk());
  EXPECT_THAT(remote->list(""), IsOk());
  EXPECT_TRUE(os::exists(host.home.path() / "mnt/copies"));
}

TEST(HostRemoteFolder, IsNeitherEverythingNorTheAgentsOwn) {
  AHost host;
  for (const std::string& path : {std::string("/"), std::string("."), std::string("../up"), std::string("a/../../b"),
                                  std::string(".gridctl"), std::string(".gridctl/cache"), host.home.path().native()}) {
    EXPECT_THAT(host.open(path)->list(""), FailsWith(Code::refused)) << path;
    EXPECT_THAT(host.open(path, true)->remove("packs/a"), FailsWith(Code::refused)) << path;
    EXPECT_THAT(host.open(path, true)->put("packs/a", 1, content_of("x")), FailsWith(Code::refused)) << path;
  }
  EXPECT_THAT(host.open((host.home.path() / "absolute").native())->put_new("a", as_bytes("x")), IsOk());
  EXPECT_TRUE(os::exists(host.home.path() / "absolute/a"));
}

// --- Hosts that lie
// ---------------------------------------------------------------------------------------------------

// Answers each request with frames of this host's choice, once what belongs to the request has come.
using Answer = std::function<std::vector<wire::Frame>(std::uint32_t stream)>;

std::unique_ptr<Backend> lying(const Answer& answer) {
  const auto serve = [answer](wire::Link& link) {
    const auto soon = [] { return os::system_clock().boot() + std::chrono::minutes{1}; };
    for (;;) {
      const auto request = link.receive(soon());
      if (!request) return;
      const std::string operation = wire::request_name(request->payload);
      if (operation.starts_with("place_put"))
        for (auto frame = link.receive(soon()); frame && frame->kind != FrameKind::end;) frame = link.receive(soon());
      for (const wire::Frame& frame : answer(request->stream))
        if (!link.send(frame, soon())) return;
    }
  };
  return open_host_remote(
      {"eve", "copies", true},
      [serve] { return Result<BulkLink>(BulkLink{std::make_unique<ServedLink>(serve, k_for_ever)}); },
      os::system_clock());
}
Answer data(const std::string& bytes) {
  return [bytes](std::uint32_t stream) -> std::vector<wire::Frame> {
    return {{FrameKind::reply, stream, "{}"},
            {FrameKind::data, stream, bytes},
            {FrameKind::end, stream, wire::encode(wire::EndRecord{bytes.size(), {}})}};
  };
}
Answer error(Code code) {
  return [code](std::uint32_t stream) -> std::vector<wire::Frame> {
    return {{FrameKind::reply, stream, wire::error_payload(make_error(code, "so it says", "gridctl key export x"))}};
  };
}

TEST(HostRemoteLies, AListOfWhatIsNoneIsRefused) {
  EXPECT_THAT(*lying(data("1 packs/a\n22 packs/b\n"))->list("packs/"),
              ElementsAre(Object{"packs/a", 1}, Object{"packs/b", 22}));
  for (const char* lines :
       {"1 packs/b\n1 packs/a\n", "1 packs/a\n1 packs/a\n", "1 checkpoints/a\n", "1 packs/../a\n", "1 /packs/a\n",
        "packs/a\n", "-1 packs/a\n", "1\n", " packs/a\n", "1 packs/a", "99999999999999999999999 packs/a\n", "\n"})
    EXPECT_THAT(lying(data(lines))->list("packs/"), FailsWith(Code::protocol_violation)) << lines;
  EXPECT_THAT(lying(data(std::string(700'000, '1')))->list(""), FailsWith(Code::protocol_violation));
}

TEST(HostRemoteLies, MoreThanWasAskedForIsRefused) {
  EXPECT_THAT(lying(data("12345"))->read("packs/a", 0, 5), IsOk());
  EXPECT_THAT(lying(data("123456"))->read("packs/a", 0, 5), FailsWith(Code::protocol_violation));
  EXPECT_THAT(lying(data("x"))->remove("packs/a"), IsOk());  // what follows it fails whoever asks next
  const auto remote = lying(data("x"));
  EXPECT_THAT(remote->remove("packs/a"), IsOk());
  EXPECT_THAT(remote->remove("packs/b"), FailsWith(Code::protocol_violation));
  EXPECT_THAT(lying(data("x"))->put("packs/a", 1, content_of("x")), FailsWith(Code::protocol_violation));
}

TEST(HostRemoteLies, AHostKnowsNothingOfWhatIsWrongHere) {
  for (const Code code : {Code::checkpoint_damaged, Code::cancelled, Code::internal, Code::usage, Code::auth_refused,
                          Code::host_key_mismatch, Code::state_unreadable, Code::busy, Code::exists, Code::io}) {
    const auto remote = lying(error(code));
    EXPECT_THAT(remote->put("packs/a", 1, content_of("x")), FailsWith(Code::io));
    EXPECT_THAT(remote->put_new("a", as_bytes("x")), FailsWith(Code::io));
    EXPECT_THAT(remote->read("packs/a", 0, 1), FailsWith(Code::io));
    EXPECT_THAT(remote->list(""), FailsWith(Code::io));
    EXPECT_THAT(remote->remove("packs/a"), FailsWith(Code::io));
    EXPECT_EQ(remote->list("").error().hint, "");
    EXPECT_THAT(remote->list("").error().one_line(), HasSubstr("eve"));
  }
  const auto remote = lying(error(Code::not_found));
  EXPECT_THAT(remote->read("packs/a", 0, 1), FailsWith(Code::not_found));
  EXPECT_THAT(remote->put("packs/a", 1, content_of("x")), FailsWith(Code::io));
  EXPECT_THAT(lying(error(Code::no_space))->put("packs/a", 1, content_of("x")), FailsWith(Code::no_space));
}

}  // namespace
}  // namespace gridctl::transfer::host_remote_test

namespace gridctl::store::testing {
namespace {
INSTANTIATE_TEST_SUITE_P(Host, BackendSuite, ::testing::Values(RemoteUnderTest{"host", transfer::host_remote_test::make_host}));
}  // namespace
}  // namespace gridctl::store::testing
