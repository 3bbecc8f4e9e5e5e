// SPDX-License-Identifier: Apache-2.0
#include "job/last_words.hpp"

#include <gtest/gtest.h>

#include <string>

namespace gridctl::job::last_words_test {
namespace {

Advice advice_of(const std::string& output, int exit_code = 1) { return judge_last_words(output, exit_code).advice; }

std::string traceback(const std::string& exception, const std::string& label = "") {
  return label + "Traceback (most recent call last):\n" + label + "  File \"train.py\", line 12, in <module>\n" +
         label + "    main()\n" + label + exception + "\n";
}

TEST(LastWords, StopWhatWouldEndInTheSameWay) {
  for (const char* exception :
       {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 "
        "GiB",
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB",
        "RuntimeError: CUDA error: out of memory", "MemoryError",
        "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 1.00 TiB for an array",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:114] . DefaultCPUAllocator: can't allocate memory: you tried",
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184",
        "ModuleNotFoundError: No module named 'flash_attn'", "ImportError: cannot import name 'x' from 'y'",
        "ValueError: The loss returned in `training_step` is nan or inf.", "FloatingPointError: Loss is NaN at step 12",
        "RuntimeError: Function 'PowBackward0' returned nan values in its 0th output."})
    EXPECT_EQ(advice_of("step 1\n" + traceback(exception)), Advice::stop) << exception;
  EXPECT_EQ(advice_of("Loss is nan, stopping training\n"), Advice::stop);
  EXPECT_EQ(
      advice_of("terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\nAborted"),
      Advice::stop);
  EXPECT_EQ(advice_of("./sim: error while loading shared libraries: libfftw3.so.3: cannot open shared object file"),
            Advice::stop);
}

TEST(LastWords, BlameTheHostForWhatIsItsOwn) {
  for (const char* exception : {"OSError: [Errno 28] No space left on device: 'out/ckpt.pt'",
                                "RuntimeError: CUDA error: uncorrectable ECC error encountered\nCUDA kernel errors "
                                "might be asynchronously reported "
                                "at some other API call\nFor debugging consider passing "
                                "CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` "
                                "to enable device-side assertions.\n",
                                "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
                                "RuntimeError: CUDA error: no kernel image is available for execution on the device",
                                "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory",
                                "OSError: [Errno 12] Cannot allocate memory"})
    EXPECT_EQ(advice_of(traceback(exception)), Advice::blame_host) << exception;
  EXPECT_EQ(advice_of("cp: error writing 'out/big': No space left on device"), Advice::blame_host);
  EXPECT_EQ(advice_of("NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus."), Advice::blame_host);
}

TEST(LastWords, CallForARestartAfterWhatPasses) {
  EXPECT_EQ(advice_of(traceback("OSError: [Errno 98] Address already in use")), Advice::restart);
  EXPECT_EQ(
      advice_of("[rank0]:[E1126 10:00:00.1 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught collective operation "
                "timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE) ran for 600029 milliseconds before timing out."),
      Advice::restart);
  EXPECT_EQ(advice_of(traceback("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2251, remote "
                                "process exited or there was a network error",
                                "[rank1]: ")),
            Advice::restart);
}

TEST(LastWords, BelieveTheKernelsKillWithItsExitCodeOnly) {
  const std::string bash = "step 3\nbash: line 1:  4711 Killed                  python train.py\n";
  EXPECT_EQ(advice_of(bash, 137), Advice::blame_host);
  EXPECT_EQ(advice_of("Killed", 137), Advice::blame_host);
  EXPECT_EQ(advice_of("Killed", 1), Advice::none);
}

TEST(LastWords, AreNoLinesBeforeTheLast) {
  for (const char* line : {"torch.OutOfMemoryError: CUDA out of memory.", "OSError: [Errno 28] No space left on device",
                           "ModuleNotFoundError: No module named 'x'", "cp: error writing 'x': No space left on device",
                           "NVRM: Xid 79", "Killed"})
    EXPECT_EQ(advice_of(std::string(line) + "\nretrying with a smaller batch\nassertion failed\n", 137), Advice::none)
        << line;
}

TEST(LastWords, OfAnUnknownKindChangeNothing) {
  for (const char* words :
       {"", "\n\n", "all is well", "error: 3 tests failed", "KeyError: 'nan'", "ValueError: banana",
        "see https://pytorch.org/docs: CUDA out of memory explained", "no space left on device is handled",
        "RuntimeError: shape mismatch", "I was Killed in the game"})
    EXPECT_EQ(advice_of(words), Advice::none) << words;
}

TEST(LastWords, PutACauseBeforeWhatFollowsFromIt) {
  const std::string peers =
      traceback("torch.distributed.DistBackendError: NCCL communicator was aborted", "[rank 0] ") +
      traceback("torch.OutOfMemoryError: CUDA out of memory.", "[rank 1] ") +
      traceback("torch.distributed.DistBackendError: NCCL communicator was aborted", "[rank 2] ");
  const LastWords words = judge_last_words(peers, 1);
  EXPECT_EQ(words.advice, Advice::stop);
  EXPECT_EQ(words.line, "torch.OutOfMemoryError: CUDA out of memory.");
}

TEST(LastWords, StandBeforeTheSummaryOfALauncher) {
  const std::string summary =
      "E1126 10:00:00.000 812 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: "
      "0\n" +
      traceback("torch.distributed.elastic.multiprocessing.errors.ChildFailedError:") +
      "============================================================\ntrain.py FAILED\n";
  EXPECT_EQ(advice_of(traceback("torch.OutOfMemoryError: CUDA out of memory.", "[rank0]: ") + summary), Advice::stop);
}

TEST(LastWords, TellThatTheProgramMakesItsDirectoryItself) {
  EXPECT_TRUE(makes_directory("mkdir: cannot create directory \u2018out\u2019: File exists\n", "out"));
  EXPECT_TRUE(makes_directory("step\nmkdir: can't create directory 'out': File exists", "./out/"));
  EXPECT_TRUE(makes_directory(traceback("FileExistsError: [Errno 17] File exists: 'out'"), "out"));
  EXPECT_TRUE(makes_directory(traceback("FileExistsError: [Errno 17] File exists: '/work/runs/out'"), "runs/out"));
  EXPECT_FALSE(makes_directory("mkdir: cannot create directory 'output': File exists", "out"));
  EXPECT_FALSE(makes_directory("mkdir: cannot create directory 'out/logs': File exists", "out"));
  EXPECT_FALSE(makes_directory("mkdir: cannot create directory 'out': File exists\nfailed", "out"));
  EXPECT_FALSE(makes_directory("mkdir: cannot create directory 'out': Permission denied", "out"));
  EXPECT_FALSE(makes_directory("File exists", ""));
}

TEST(LastWords, AreShownOnOneLineOfBoundedLength) {
  const LastWords words = judge_last_words("ValueError: nan \x1b[31m" + std::string(5000, 'x'), 1);
  EXPECT_EQ(words.advice, Advice::stop);
  EXPECT_LE(words.line.size(), 2 * k_last_line_max);
  EXPECT_EQ(words.line.find('\x1b'), std::string::npos);
  EXPECT_NE(in_words(words).find(words.line), std::string::npos);
  EXPECT_EQ(in_words(LastWords{}), "");
}

}  // namespace
}  // namespace gridctl::job::last_words_test
