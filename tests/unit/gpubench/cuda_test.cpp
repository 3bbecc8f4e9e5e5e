// SPDX-License-Identifier: Apache-2.0
// The way through the CUDA driver, with a driver that computes on processors (tests/support/host_cuda.cpp): allocation,
// arguments of kernels, copies, order of the challenges, what happens when a call fails, and that all is given back.
// What it cannot show: PTX, tensor cores, and time.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>

#include "gpubench/device.hpp"
#include "gpubench/work.hpp"
#include "os/files.hpp"
#include "probe/bench_challenge.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::gpubench::cuda_test {
namespace {

int leftovers() {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) return -1;
  auto* const count = reinterpret_cast<int (*)()>(::dlsym(library, "host_cuda_leftovers"));
  return count == nullptr ? -1 : count();
}

class Cuda : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = k_cuda.open(0);
    ASSERT_TRUE(opened) << opened.error().one_line();
    device_ = *std::move(opened);
  }
  void TearDown() override {
    ::unsetenv("HOST_CUDA_FAIL");
    device_.reset();
    EXPECT_EQ(leftovers(), 0) << "buffers, modules or contexts were not given back";
  }
  // Runs a test of the helper as the agent does: seeds on standard input, lines on standard output.
  std::map<std::string, std::string> run(Result<void> (*test)(Device&, const Parameters&),
                                         std::vector<std::string> words) {
    const os::Path seeds = folder_.path() / "seeds";
    FILE* file = std::fopen(seeds.c_str(), "w");
    std::fputs("seed 1234567890abcdef\nseed fedcba0987654321\nseed 0\nseed 0\n", file);
    std::fclose(file);
    EXPECT_NE(std::freopen(seeds.c_str(), "r", stdin), nullptr);
    std::vector<char*> raw;
    for (std::string& word : words) raw.push_back(word.data());
    const auto parameters = Parameters::parse(raw);
    EXPECT_TRUE(parameters);
    ::testing::internal::CaptureStdout();
    outcome_ = test(*device_, *parameters);
    std::fflush(stdout);
    std::istringstream said(::testing::internal::GetCapturedStdout());
    std::map<std::string, std::string> values;
    for (std::string kind, name, value; said >> kind;) {
      if (kind == "ready") continue;
      said >> name;
      std::getline(said >> std::ws, value);
      values[name] = value;
    }
    return values;
  }
  static std::uint32_t whole(const std::map<std::string, std::string>& said, const std::string& name) {
    return static_cast<std::uint32_t>(std::stod(said.at(name)));
  }
  static probe::Words answer(const std::map<std::string, std::string>& said) {
    return *probe::words_from_hex(said.at("answer"), 2 * probe::k_bench_groups_max);
  }

  gridctl::testing::TempDir folder_;
  std::unique_ptr<Device> device_;
  Result<void> outcome_;
  probe::Draw draw_ = [n = std::uint64_t{0}]() mutable { return n += 0x9e3779b97f4a7c15u; };
};

TEST_F(Cuda, ListsWhatTheDriverSays) {
  const auto listed = k_cuda.list();
  ASSERT_TRUE(listed) << listed.error().one_line();
  ASSERT_EQ(listed->size(), 2u);
  const DeviceFacts& facts = (*listed)[1];
  EXPECT_EQ(facts.uuid, "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae01");
  EXPECT_EQ(facts.pci, "0000:02:00.0");
  EXPECT_EQ(facts.driver, "CUDA 12.4");
  EXPECT_EQ(facts.isa, "sm_75");
  EXPECT_EQ(facts.memory_bus_bits, 384u);
  EXPECT_EQ(facts.clock_mhz, 1500u);
  EXPECT_TRUE(facts.tensor);
  EXPECT_FALSE(facts.bf16);
  EXPECT_FALSE(k_cuda.open(2));
}

TEST_F(Cuda, ItsAnswersPassTheCheck) {
  auto said = run(test_gemm, {"numbers=1", "target_ms=1", "warm_up_ms=1"});
  ASSERT_TRUE(outcome_) << outcome_.error().one_line();
  const probe::GemmChallenge gemm{0x1234567890abcdef, whole(said, "groups"), whole(said, "rows_per_group"),
                                  whole(said, "columns"), whole(said, "inner")};
  EXPECT_TRUE(probe::check_gemm(gemm, answer(said), 2, draw_));

  said = run(test_fma, {"target_ms=1", "warm_up_ms=1"});
  ASSERT_TRUE(outcome_) << outcome_.error().one_line();
  const probe::FmaChallenge fma{0x1234567890abcdef, whole(said, "groups"), whole(said, "steps")};
  EXPECT_TRUE(probe::check_fma(fma, answer(said), 2, draw_));

  said = run(test_fill, {"bytes_max=8388608"});
  ASSERT_TRUE(outcome_) << outcome_.error().one_line();
  probe::FillChallenge fill{0x1234567890abcdef, 0xfedcba0987654321, whole(said, "blocks"), whole(said, "block_words")};
  EXPECT_EQ(fill.bytes(), 8 << 20);
  EXPECT_TRUE(probe::check_fill(fill, answer(said), 4, draw_));
  std::swap(fill.seed, fill.after);
  EXPECT_FALSE(probe::check_fill(fill, answer(said), 4, draw_)) << "the order of the seeds matters";
}

TEST_F(Cuda, FillsAllMemoryThatIsFreeInPieces) {
  auto taken = device_->allocate(100u << 20);
  ASSERT_TRUE(taken);
  const auto said = run(test_fill, {"bytes_max=134217728"});
  ASSERT_TRUE(outcome_) << outcome_.error().one_line();
  // 412 MiB are free; 256 MiB and a fiftieth stay with the driver.
  EXPECT_EQ(whole(said, "free_bytes"),
            (412u << 20) - whole(said, "blocks") * 4096u * 256u - whole(said, "blocks") * 4u);
  EXPECT_GE(whole(said, "blocks"), 128u);
}

TEST_F(Cuda, CopiesBothWaysFromBothKindsOfMemory) {
  const auto said = run(test_copies, {});
  ASSERT_TRUE(outcome_) << outcome_.error().one_line();
  for (const char* name : {"h2d_gbs", "d2h_gbs", "h2d_pageable_gbs", "d2h_pageable_gbs"})
    EXPECT_GT(std::stod(said.at(name)), 0) << name;
  const auto buffer = device_->allocate(1 << 16);
  ASSERT_TRUE(buffer);
  std::vector<unsigned char> there(1 << 16), back(1 << 16);
  for (std::size_t i = 0; i < there.size(); ++i) there[i] = static_cast<unsigned char>(i * 7);
  EXPECT_TRUE(device_->copy(**buffer, there.data(), there.size(), Direction::to_device));
  EXPECT_TRUE(read(*device_, **buffer, back.data(), back.size()));
  EXPECT_EQ(back, there);
  EXPECT_TRUE(device_->clear(**buffer, 1 << 16));
  EXPECT_TRUE(read(*device_, **buffer, back.data(), back.size()));
  EXPECT_EQ(back, std::vector<unsigned char>(1 << 16, 0));
  EXPECT_FALSE(read(*device_, **buffer, std::vector<unsigned char>(1 << 17).data(), 1 << 17)) << "beyond its end";
}

TEST_F(Cuda, CopiesToItsPeerAndNotToItself) {
  const auto time = device_->peer_copy(1, 1 << 20, 2);
  ASSERT_TRUE(time) << time.error().one_line();
  EXPECT_GT(*time, 0);
  EXPECT_TRUE(device_->peer_copy(1, 1 << 20, 2)) << "access that is enabled already is no error";
  EXPECT_EQ(device_->peer_copy(0, 1 << 20, 2).error().code, Code::unsupported);
  EXPECT_FALSE(device_->peer_copy(2, 1 << 20, 2));
  EXPECT_FALSE(device_->peer_copy(1, 2ull << 30, 2)) << "more than there is";
  EXPECT_TRUE(device_->allocate(4096)) << "its own context is in use again";
}

TEST_F(Cuda, ACallThatFailsIsAnErrorThatNamesIt) {
  EXPECT_FALSE(device_->launch("no_such_kernel", 1, 1, {}));
  ::setenv("HOST_CUDA_FAIL", "cuCtxSynchronize:1:719", 1);
  const auto broken = device_->finish();
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().message, "running a kernel failed in the CUDA driver: an error (719)");
  EXPECT_EQ(device_->allocate(1ull << 40).error().code, Code::no_space);
  const auto refused = device_->launch("fma_f32", 0, 1, {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("starting a kernel"), std::string::npos);
}

TEST_F(Cuda, WhateverFailsAllIsGivenBack) {
  device_.reset();
  for (const char* call :
       {"cuDevicePrimaryCtxRetain", "cuModuleLoadData", "cuMemAlloc_v2", "cuLaunchKernel", "cuCtxSynchronize",
        "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2", "cuMemAllocHost_v2", "cuMemcpyPeerAsync"}) {
    // Its first call, its second, until there is no such call.
    int number = 0;
    for (bool well = false; !well && number < 50; device_.reset()) {
      ::setenv("HOST_CUDA_FAIL", (std::string(call) + ":" + std::to_string(++number) + ":719").c_str(), 1);
      auto opened = k_cuda.open(0);
      if (!opened) continue;
      device_ = *std::move(opened);
      (void)run(test_fill, {"bytes_max=1048576"});
      const auto locked = device_->lock_memory(4096);
      const auto buffer = device_->allocate(4096);
      well = outcome_ && locked && buffer && device_->copy(**buffer, (*locked)->bytes(), 4096, Direction::to_device) &&
             device_->peer_copy(1, 4096, 1);
    }
    EXPECT_GE(number, 2) << call;
    EXPECT_LT(number, 50) << call;
    EXPECT_EQ(leftovers(), 0) << call;
  }
}

}  // namespace
}  // namespace gridctl::gpubench::cuda_test
