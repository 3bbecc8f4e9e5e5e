// SPDX-License-Identifier: Apache-2.0
// Preloaded by tests: clocks that run ten times too slow, so that a program believes it were fast.
// Five times would be within what a busy host is forgiven in a challenge of 200 ms: twice the time, and half a second.
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec* now) {
  static struct timespec first[16];
  const int result = (int)syscall(SYS_clock_gettime, clock, now);
  if (result != 0 || clock < 0 || clock >= 16) return result;
  if (first[clock].tv_sec == 0 && first[clock].tv_nsec == 0) first[clock] = *now;
  const long long passed = (now->tv_sec - first[clock].tv_sec) * 1000000000ll + (now->tv_nsec - first[clock].tv_nsec);
  const long long told = first[clock].tv_nsec + passed / 10;
  now->tv_sec = first[clock].tv_sec + told / 1000000000;
  now->tv_nsec = told % 1000000000;
  return 0;
}
