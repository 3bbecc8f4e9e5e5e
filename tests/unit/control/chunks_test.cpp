// SPDX-License-Identifier: Apache-2.0
#include "control/copies/chunks.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "crypto/sha256.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::control::chunks_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

Digest put(store::ChunkStore& chunks, std::string_view text) {
  const Digest digest = crypto::sha256(as_bytes(text));
  EXPECT_THAT(chunks.put(digest, as_bytes(text)), IsOk());
  EXPECT_THAT(chunks.seal(), IsOk());
  return digest;
}

class Chunks : public ::testing::Test {
 protected:
  gridctl::testing::TempDir dir;
  Paths paths{dir / "state"};
};

TEST_F(Chunks, MakeAKeyAtFirstUseForTheirOwnerAlone) {
  EXPECT_FALSE(load_key(paths)->has_value());
  store::ChunkStore chunks = *open_chunks(paths);
  const Digest digest = put(chunks, "weights");
  struct stat status {};
  ASSERT_EQ(::stat(paths.store_key().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777u, 0600u);
  EXPECT_EQ(*store::ChunkStore::key_of(paths.chunk_store()), (*load_key(paths))->id());
  EXPECT_EQ(as_text(*open_chunks(paths)->get(digest)), "weights");
  for (const auto& entry : fs::directory_iterator(paths.root))
    EXPECT_FALSE(entry.path().filename().native().starts_with('.')) << entry.path();
}

TEST_F(Chunks, OpenedByManyAtOnceForTheFirstTimeAgreeOnOneKey) {
  std::vector<std::thread> threads;
  std::array<Result<void>, 8> done;
  for (std::size_t i = 0; i < done.size(); ++i) {
    threads.emplace_back([&, i] {
      auto chunks = open_chunks(paths);
      if (!chunks) done[i] = chunks.error();
      else put(*chunks, "weights " + std::to_string(i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Result<void>& one : done) EXPECT_THAT(one, IsOk()) << (one ? "" : one.error().one_line());
  store::ChunkStore chunks = *open_chunks(paths);
  for (std::size_t i = 0; i < done.size(); ++i)
    EXPECT_THAT(chunks.get(crypto::sha256(as_bytes("weights " + std::to_string(i)))), IsOk());
}

TEST_F(Chunks, SayWhatToDoWhenTheKeyIsGoneAndAreBackWhenItIs) {
  Digest digest;
  {
    store::ChunkStore chunks = *open_chunks(paths);
    digest = put(chunks, "weights");
  }
  const store::StoreKey key = **load_key(paths);
  fs::remove(paths.store_key());
  const auto refused = open_chunks(paths);
  EXPECT_THAT(refused, FailsWith(Code::state_unreadable));
  EXPECT_EQ(refused.error().hint, "gridctl key import FILE");
  EXPECT_THAT(refused.error().message, HasSubstr("store.key is missing"));
  EXPECT_FALSE(fs::exists(paths.store_key())) << "a new one would be of no use";
  EXPECT_THAT(install_key(paths, store::StoreKey::make()), FailsWith(Code::usage));
  ASSERT_THAT(install_key(paths, key), IsOk());
  ASSERT_THAT(install_key(paths, key), IsOk()) << "twice is once";
  EXPECT_EQ(as_text(*open_chunks(paths)->get(digest)), "weights");
}

TEST_F(Chunks, TakeTheRightKeyForAWrongOrUnreadableOneAndThrowNoneAway) {
  EXPECT_THAT(open_chunks(paths), IsOk());
  const store::StoreKey key = **load_key(paths), wrong = store::StoreKey::make();
  for (const std::string& text : {wrong.to_text(), std::string("gridctl-key 1\nrubbish\n")}) {
    ASSERT_THAT(os::write_file_durably(paths.store_key(), text), IsOk());
    const auto refused = open_chunks(paths);
    EXPECT_THAT(refused, FailsWith(Code::state_unreadable));
    EXPECT_EQ(refused.error().hint, "gridctl key import FILE");
    ASSERT_THAT(install_key(paths, key), IsOk());
    EXPECT_THAT(open_chunks(paths), IsOk());
  }
  EXPECT_EQ(*os::read_file(paths.store_key().native() + "." + to_hex(ByteView{wrong.id().bytes})), wrong.to_text());
  EXPECT_TRUE(fs::exists(paths.store_key().native() + ".unreadable"));
}

TEST_F(Chunks, DoNotReplaceAKeyThatIsInUseOrWhoseStoreIsNotMadeYet) {
  ASSERT_THAT(install_key(paths, store::StoreKey::make()), IsOk());
  EXPECT_THAT(install_key(paths, store::StoreKey::make()), FailsWith(Code::exists));
  EXPECT_THAT(open_chunks(paths), IsOk());
  EXPECT_THAT(install_key(paths, store::StoreKey::make()), FailsWith(Code::usage));
}

}  // namespace
}  // namespace gridctl::control::chunks_test
