// SPDX-License-Identifier: Apache-2.0
// The job file on a real file system.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "config/job_file.hpp"

namespace gridctl::config::local_context_test {
namespace {
namespace fs = std::filesystem;

class LoadJobFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "gridctl-job-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    fs::create_directory(root_ / "data");
    std::ofstream(root_ / "image.tar") << "x";
  }
  void TearDown() override { fs::remove_all(root_); }
  fs::path write(const std::string& text) {
    std::ofstream(root_ / "Train.yaml") << text;
    return root_ / "Train.yaml";
  }
  fs::path root_;
};

TEST_F(LoadJobFile, TakesItsDirectoryAsBase) {
  const auto job =
      load_job_file(write("workdir: .\nimage: ./image.tar\nfile_mounts: {/data: data, /one: image.tar}\nrun: x\n"), {});
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->spec.name, "train");
  EXPECT_EQ(job->spec.workdir, root_.string());
  EXPECT_EQ(job->spec.image, (root_ / "image.tar").string());
  EXPECT_EQ(job->spec.file_mounts.at(1).source, (root_ / "image.tar").string());
}

TEST_F(LoadJobFile, NamesTheFileAsItWasGiven) {
  const fs::path file = write("workdir: image.tar\nrun: x\n");
  EXPECT_EQ(load_job_file(file, {}).error().message,
            file.string() + ":1:10: key 'workdir': not a directory: '" + (root_ / "image.tar").string() + "'");
}

TEST_F(LoadJobFile, SaysWhenItCannotBeRead) {
  const auto job = load_job_file(root_ / "none.yaml", {});
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, Code::bad_job_file);
}
}  // namespace
}  // namespace gridctl::config::local_context_test
