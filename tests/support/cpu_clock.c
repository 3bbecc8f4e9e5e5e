// SPDX-License-Identifier: Apache-2.0
// LD_PRELOAD: every clock tells the processor time that this process has used. Two programs that compute on processors
// can then be compared on a machine that others use too; tests/bench/gpu.py does.
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec* out) {
  (void)clock;
  return (int)syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, out);
}
