// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "store/chunk_store.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::store::chunk_store_crash_test {
namespace {

using namespace testing;

constexpr int k_kills = 25;

// Puts and seals for ever, and tells each sealed number through the pipe after the seal returned.
[[noreturn]] void write_until_killed(const os::Path& path, int tell, std::uint64_t first) {
  auto store = ChunkStore::open(path, {nullptr, 20'000});
  if (!store) _exit(1);
  for (std::uint64_t i = first;; ++i) {
    const std::string text = noise(700 + i % 5000, i);
    if (!store->put(digest_of(text), as_bytes(text)) || !store->seal()) _exit(1);
    if (::write(tell, &i, sizeof i) != sizeof i) _exit(1);
  }
}

TEST(Crash, LosesNothingSealedWhenAWriterIsKilledAtAnyMoment) {
  Folder dir;
  std::vector<std::uint64_t> sealed;
  for (int round = 0; round < k_kills; ++round) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) write_until_killed(dir / "s", ends[1], 1 + static_cast<std::uint64_t>(round) * 100'000);
    ::close(ends[1]);
    std::uint64_t number = 0;
    // The moment is drawn: after a few seals, plus some spinning within the next one.
    for (std::uint64_t wanted = os::random_u64() % 6; wanted-- > 0 && ::read(ends[0], &number, sizeof number) > 0;)
      sealed.push_back(number);
    for (std::uint64_t spin = os::random_u64() % 2'000'000; spin-- > 0;) asm volatile("");
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    while (::read(ends[0], &number, sizeof number) > 0) sealed.push_back(number);
    ::close(ends[0]);
  }
  auto store = ChunkStore::open(dir / "s");
  ASSERT_TRUE(store);
  for (const std::uint64_t i : sealed) {
    const std::string text = noise(700 + i % 5000, i);
    const auto got = store->get(digest_of(text));
    ASSERT_TRUE(got) << got.error().one_line();
    EXPECT_EQ(as_text(*got), text);
  }
  EXPECT_EQ(verified(*store).damages_total, 0u);
  FakeClock later;
  later.ahead = std::chrono::hours{48};
  std::unordered_set<Digest> all;
  for (const std::uint64_t i : sealed) all.insert(digest_of(noise(700 + i % 5000, i)));
  auto collector = ChunkStore::open(dir / "s", {&later, k_pack_bytes_max});
  ASSERT_TRUE(collector->collect(all));
  EXPECT_TRUE(std::filesystem::is_empty(dir / "s/tmp"));
}

TEST(Crash, WritersOfSeveralProcessesAndACollectorDoNotDisturbEachOther) {
  Folder dir;
  constexpr int k_writers = 3, k_rounds = 40;
  std::vector<pid_t> children;
  for (int writer = 0; writer < k_writers; ++writer) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto store = ChunkStore::open(dir / "s", {nullptr, 5'000});
      for (std::uint64_t i = 0; store && i < k_rounds; ++i) {
        const std::string text = noise(600, i % 10 + 1),
                          own = noise(600, 1000 + i + static_cast<std::uint64_t>(writer) * 1000);
        if (!store->put(digest_of(text), as_bytes(text)) || !store->put(digest_of(own), as_bytes(own)) ||
            !store->seal())
          _exit(1);
        // Claimed: no collection may take it from under us, though nothing refers to it yet.
        if (!store->get(digest_of(text)) || !store->get(digest_of(own))) _exit(2);
      }
      _exit(store ? 0 : 3);
    }
    children.push_back(child);
  }
  auto store = ChunkStore::open(dir / "s");
  ASSERT_TRUE(store);
  for (int i = 0; i < k_rounds; ++i) ASSERT_TRUE(store->collect({}));
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(verified(*store).damages_total, 0u);
}

}  // namespace
}  // namespace gridctl::store::chunk_store_crash_test
