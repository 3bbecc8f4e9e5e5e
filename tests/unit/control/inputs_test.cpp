// SPDX-License-Identifier: Apache-2.0
// What a job brings along: listed by names and sizes, and stored as trees.
#include "control/follow/inputs.hpp"

#include <gmock/gmock.h>

#include <filesystem>

#include "control/copies/chunks.hpp"
#include "os/entries.hpp"
#include "registry/registry.hpp"
#include "store/scan.hpp"
#include "store/tree.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::control::inputs_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
namespace fs = std::filesystem;

TEST(LikeAKey, IsSaidByTheName) {
  for (const char* key :
       {".env", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".git-credentials", "credentials.json", "service-account.json",
        "secrets.yaml", "secrets.yml", "secrets.json", "kubeconfig", "a/b/.env", "KUBECONFIG", ".env.local", "id_rsa",
        "id_ed25519", "id_ecdsa_sk", "keys/server.pem", "server.P12", "tls.key"})
    EXPECT_TRUE(is_like_a_key(key)) << key;
  for (const char* other : {"", "env", "train.py", ".envrc", ".env.example", "sample.pem", "id_rsa.pub", "monkey",
                            ".env/train.py", "pem", "secrets.txt", "my-credentials.json"})
    EXPECT_FALSE(is_like_a_key(other)) << other;
}

class Inputs : public ::testing::Test {
 protected:
  Inputs() {
    write("work/train.py", "import torch\n");
    write("work/.gitignore", "data/\n");
    write("work/data/big", std::string(5000, 'x'));
    write("work/.env", "A=1\n");
    spec.name = "train";
    spec.run = "true";
  }
  fs::path write(const std::string& name, const std::string& text) {
    const fs::path path = dir / name;
    fs::create_directories(path.parent_path());
    EXPECT_THAT(os::write_file_durably(path, text), IsOk());
    return path;
  }
  // What lies in the store of this root, read by another process.
  store::Tree stored(const Digest& root) {
    Result<store::ChunkStore> other = open_chunks(paths);
    EXPECT_THAT(other, IsOk());
    const Result<Bytes> manifest = other->get(root);
    EXPECT_THAT(manifest, IsOk());
    const Result<store::Tree> tree = store::parse_manifest(*manifest);
    EXPECT_THAT(tree, IsOk());
    for (const store::Chunk& chunk : tree->unique_chunks()) EXPECT_THAT(other->get(chunk.digest), IsOk());
    return *tree;
  }
  Result<ImportedInputs> import() {
    if (!chunks) chunks.emplace(*open_chunks(paths));
    return import_inputs(spec, *chunks);
  }

  gridctl::testing::TempDir dir;
  Paths paths{dir / "state"};
  job::Spec spec;
  std::optional<store::ChunkStore> chunks;
};

TEST_F(Inputs, OfAJobThatBringsNothingAreNone) {
  EXPECT_THAT(*list_inputs(spec), IsEmpty());
  const auto none = import();
  ASSERT_THAT(none, IsOk());
  EXPECT_THAT(none->inputs, IsEmpty());
  EXPECT_THAT(none->keys, IsEmpty());
}

TEST_F(Inputs, AreTheWorkingDirectoryWithoutWhatItIgnores) {
  spec.workdir = dir / "work";
  const auto listed = list_inputs(spec);
  ASSERT_THAT(listed, IsOk());
  ASSERT_THAT(*listed, SizeIs(1));
  const InputListing& one = listed->front();
  EXPECT_EQ(one.role, "workdir");
  EXPECT_EQ(one.source, spec.workdir);
  EXPECT_EQ(one.target, "");
  EXPECT_EQ(one.files, 3u) << ".env, .gitignore, train.py";
  EXPECT_EQ(one.bytes, 4u + 6 + 13);
  EXPECT_THAT(one.keys, ElementsAre(".env"));

  const auto imported = import();
  ASSERT_THAT(imported, IsOk());
  ASSERT_THAT(imported->inputs, SizeIs(1));
  EXPECT_EQ(imported->inputs[0].role, "workdir");
  EXPECT_EQ(imported->inputs[0].target, "");
  EXPECT_EQ(imported->inputs[0].bytes, 23u);
  EXPECT_THAT(imported->keys, ElementsAre(".env"));
  const store::Tree tree = stored(imported->inputs[0].root);
  EXPECT_NE(tree.find("train.py"), nullptr);
  EXPECT_EQ(tree.find("data/big"), nullptr);
}

TEST_F(Inputs, NeverHoldAStateDirectoryAndItsKey) {
  paths = Paths{dir / "work/sub/state"};
  ASSERT_THAT(registry::Registry::open(paths.root), IsOk());
  spec.workdir = dir / "work";
  spec.file_mounts = {{"/data/", dir / "work"}};
  const auto imported = import();
  ASSERT_THAT(imported, IsOk());
  ASSERT_THAT(imported->inputs, SizeIs(2));
  for (const registry::Input& input : imported->inputs) {
    const store::Tree tree = stored(input.root);
    EXPECT_NE(tree.find("sub"), nullptr);
    EXPECT_EQ(tree.find("sub/state"), nullptr);
    EXPECT_EQ(tree.find("sub/state/store.key"), nullptr);
  }
  EXPECT_THAT(imported->notes, ElementsAre(HasSubstr("sub/state: holds state.db and store.key"), HasSubstr("sub/state: holds")));
  const auto listed = list_inputs(spec);
  ASSERT_THAT(listed, IsOk());
  EXPECT_THAT(listed->front().notes, ElementsAre("sub/state: holds state.db and store.key, which are never sent"));
  spec.workdir = paths.root;
  EXPECT_THAT(import(), FailsWith(Code::bad_job_file));
  EXPECT_THAT(list_inputs(spec), FailsWith(Code::bad_job_file));
}

TEST_F(Inputs, NeverComeFromInsideAStateDirectory) {
  paths = Paths{dir / "work/sub/state"};
  ASSERT_THAT(registry::Registry::open(paths.root), IsOk());
  fs::create_directory(paths.root / "lent");
  ASSERT_THAT(os::write_file_durably(paths.root / "lent/x.json", "a key"), IsOk());
  fs::create_directory_symlink(paths.root, dir / "away");
  fs::create_symlink(paths.root / "store.key", dir / "work/harmless");
  for (const fs::path& source : {paths.root / "lent", dir / "away/lent", dir / "away"}) {
    spec.file_mounts.clear();
    spec.workdir = source;
    EXPECT_THAT(import(), FailsWith(Code::bad_job_file)) << source;
    EXPECT_THAT(list_inputs(spec), FailsWith(Code::bad_job_file)) << source;
  }
  spec.workdir.clear();
  for (const fs::path& source : {paths.root / "store.key", paths.root / "lent/x.json", dir / "away/store.key", dir / "work/harmless", dir / "away/lent"}) {
    spec.file_mounts = {{"/data/x", source}};
    EXPECT_THAT(import(), FailsWith(Code::bad_job_file)) << source;
    EXPECT_THAT(list_inputs(spec), FailsWith(Code::bad_job_file)) << source;
  }
}

TEST_F(Inputs, DoNotHoldWhatWasPulledUnlessItIsMounted) {
  fs::create_directory(dir / "work/train-outputs");
  ASSERT_THAT(os::write_file_durably(dir / "work/train-outputs/model", "weights"), IsOk());
  spec.workdir = dir / "work";
  spec.file_mounts = {{"/model/", dir / "work/train-outputs"}, {"/all/", dir / "work"}};
  if (!os::set_attribute(dir / "work/train-outputs", store::k_pulled_attribute)) GTEST_SKIP() << "no extended attributes here";
  const auto imported = import();
  ASSERT_THAT(imported, IsOk());
  ASSERT_THAT(imported->inputs, SizeIs(3));
  EXPECT_EQ(stored(imported->inputs[0].root).find("train-outputs/model"), nullptr);
  EXPECT_NE(stored(imported->inputs[1].root).find("model"), nullptr);
  EXPECT_NE(stored(imported->inputs[2].root).find("train-outputs/model"), nullptr);
  EXPECT_THAT(imported->notes, ElementsAre(HasSubstr("train-outputs: fetched by 'gridctl job pull'")));
}

TEST_F(Inputs, OfAMountedDirectoryAreAllItsFiles) {
  fs::create_symlink("train.py", dir / "work/link");
  spec.file_mounts = {{"/data/", dir / "work"}};
  const auto listed = list_inputs(spec);
  ASSERT_THAT(listed, IsOk());
  ASSERT_THAT(*listed, SizeIs(1));
  EXPECT_EQ(listed->front().role, "mount");
  EXPECT_EQ(listed->front().target, "/data/");
  EXPECT_EQ(listed->front().files, 4u) << "whatever .gitignore says; a link is no file";
  const auto imported = import();
  ASSERT_THAT(imported, IsOk());
  ASSERT_THAT(imported->inputs, SizeIs(1));
  EXPECT_EQ(imported->inputs[0].role, "mount");
  EXPECT_EQ(imported->inputs[0].target, "/data/");
  EXPECT_NE(stored(imported->inputs[0].root).find("data/big"), nullptr);
  EXPECT_THAT(imported->keys, IsEmpty()) << "who mounts a file by name means it";
}

TEST_F(Inputs, OfAMountedFileHaveTheNameItShallHaveThere) {
  const fs::path file = write("conf/a.yaml", "x: 1\n");
  spec.file_mounts = {{"/etc/b.yaml", file}, {"/etc/", file}};
  const auto listed = list_inputs(spec);
  ASSERT_THAT(listed, IsOk());
  ASSERT_THAT(*listed, SizeIs(2));
  EXPECT_EQ((*listed)[0].files, 1u);
  EXPECT_EQ((*listed)[0].bytes, 5u);
  EXPECT_EQ((*listed)[0].largest[0].path, "a.yaml");
  const auto imported = import();
  ASSERT_THAT(imported, IsOk());
  ASSERT_THAT(imported->inputs, SizeIs(2));
  EXPECT_NE(stored(imported->inputs[0].root).find("b.yaml"), nullptr);
  EXPECT_NE(stored(imported->inputs[1].root).find("a.yaml"), nullptr);
  EXPECT_EQ(imported->inputs[1].bytes, 5u);
}

TEST_F(Inputs, TellTheLargestFilesFirstAndNoMoreThanFive) {
  for (int i = 1; i <= 7; ++i) write("many/f" + std::to_string(i), std::string(static_cast<std::size_t>(i % 4), 'x'));
  spec.file_mounts = {{"/m", dir / "many"}};
  const auto listed = list_inputs(spec);
  ASSERT_THAT(listed, IsOk());
  EXPECT_EQ(listed->front().files, 7u);
  EXPECT_EQ(listed->front().bytes, 1u + 2 + 3 + 0 + 1 + 2 + 3);
  std::vector<std::string> names;
  for (const InputListing::File& one : listed->front().largest) names.push_back(one.path);
  EXPECT_THAT(names, ElementsAre("f3", "f7", "f2", "f6", "f1"));
  EXPECT_EQ(listed->front().largest[0].bytes, 3u);
}

TEST_F(Inputs, AreTheArchiveOfAnImageOrThoseOfItsVariants) {
  spec.image = write("image.tar.gz", "image");
  EXPECT_THAT(*list_inputs(spec), IsEmpty()) << "it is a name in a registry";
  EXPECT_THAT(import()->inputs, IsEmpty());
  spec.image_is_archive = true;
  ASSERT_THAT(*list_inputs(spec), SizeIs(1));
  EXPECT_EQ(list_inputs(spec)->front().role, "image");
  EXPECT_EQ(list_inputs(spec)->front().source, spec.image);
  auto imported = import();
  ASSERT_THAT(imported, IsOk());
  ASSERT_THAT(imported->inputs, SizeIs(1));
  EXPECT_EQ(imported->inputs[0].role, "image");
  EXPECT_EQ(imported->inputs[0].target, "");
  EXPECT_NE(stored(imported->inputs[0].root).find(k_image_file), nullptr);

  spec.variants = {{"cuda", write("cuda.tar", "cuda!"), true, "", "true", ""}, {"rocm", "rocm/torch", false, "", "true", ""}};
  ASSERT_THAT(*list_inputs(spec), SizeIs(1)) << "each variant has its own";
  EXPECT_EQ(list_inputs(spec)->front().target, "cuda");
  EXPECT_EQ(list_inputs(spec)->front().role, "image");
  EXPECT_EQ(list_inputs(spec)->front().bytes, 5u);
  imported = import();
  ASSERT_THAT(imported, IsOk());
  ASSERT_THAT(imported->inputs, SizeIs(1));
  EXPECT_EQ(imported->inputs[0].role, "image");
  EXPECT_EQ(imported->inputs[0].target, "cuda");
  EXPECT_NE(stored(imported->inputs[0].root).find(k_image_file), nullptr);
}

TEST_F(Inputs, TellWhatIsLeftOut) {
  ASSERT_EQ(::mkfifo((dir / "work/pipe").c_str(), 0600), 0);
  spec.workdir = dir / "work";
  const auto listed = list_inputs(spec);
  ASSERT_THAT(listed, IsOk());
  EXPECT_THAT(listed->front().notes, ElementsAre(HasSubstr("pipe")));
  const auto imported = import();
  ASSERT_THAT(imported, IsOk());
  EXPECT_THAT(imported->notes, ElementsAre(HasSubstr("pipe")));
}

TEST_F(Inputs, ThatAreNotThereAreNamed) {
  spec.workdir = dir / "gone";
  for (const Error& error : {list_inputs(spec).error(), import().error()}) EXPECT_THAT(error.one_line(), HasSubstr("gone"));
  spec.workdir.clear();
  spec.file_mounts = {{"/m", dir / "lost"}};
  for (const Error& error : {list_inputs(spec).error(), import().error()}) EXPECT_THAT(error.one_line(), HasSubstr("lost"));
  spec.file_mounts.clear();
  spec.image = dir / "missing.tar";
  spec.image_is_archive = true;
  for (const Error& error : {list_inputs(spec).error(), import().error()}) EXPECT_THAT(error.one_line(), HasSubstr("missing.tar"));
  spec.image.clear();
  spec.image_is_archive = false;
  spec.variants = {{"cuda", dir / "absent.tar", true, "", "true", ""}};
  for (const Error& error : {list_inputs(spec).error(), import().error()}) EXPECT_THAT(error.one_line(), HasSubstr("absent.tar"));
}

}  // namespace
}  // namespace gridctl::control::inputs_test
