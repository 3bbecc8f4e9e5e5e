// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 that can only take processes off a GPU that does not exist (tests/support/nvidia-smi), for tests. What
// a process holds there is its line in /etc/stub-gpu/processes; while it is checkpointed, that line is gone. States are
// in /etc/stub-gpu/state.PID, every call is a line of /etc/stub-gpu/calls. The file `fault` holds "CALL HOW" for one of
// lock, checkpoint, restore and unlock: slow (3 s), fail, hang, kill (the process dies of it).
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATE "/etc/stub-gpu/"
enum { RUNNING, LOCKED, CHECKPOINTED };
enum { INVALID = 1, ILLEGAL_STATE = 401, NOT_PERMITTED = 800, OPERATING_SYSTEM = 304 };

static char path[128];
static const char* file_of(const char* name, int pid) {
  snprintf(path, sizeof path, pid > 0 ? STATE "%s.%d" : STATE "%s", name, pid);
  return path;
}
static void note(const char* call, int pid) {
  FILE* file = fopen(file_of("calls", 0), "a");
  if (file == NULL) return;
  fprintf(file, "%s %d\n", call, pid);
  fclose(file);
}

// Copies the processes but for `pid`, whose line goes into `line`.
static int take_line(int pid, char* line, size_t size) {
  FILE* from = fopen(file_of("processes", 0), "r");
  if (from == NULL) return 0;
  FILE* to = fopen(STATE "processes.new", "w");
  char text[256];
  int found = 0;
  while (fgets(text, sizeof text, from) != NULL) {
    if (atoi(text) == pid) found = 1, snprintf(line, size, "%s", text);
    else if (to != NULL) fputs(text, to);
  }
  fclose(from);
  if (to == NULL) return 0;
  fclose(to);
  rename(STATE "processes.new", STATE "processes");
  return found;
}
static int is_listed(int pid) {
  FILE* file = fopen(file_of("processes", 0), "r");
  if (file == NULL) return 0;
  char text[256];
  int found = 0;
  while (fgets(text, sizeof text, file) != NULL) found |= atoi(text) == pid;
  fclose(file);
  return found;
}

static int state_of(int pid) {
  FILE* file = fopen(file_of("state", pid), "r");
  int state = RUNNING;
  if (file == NULL) return is_listed(pid) ? RUNNING : -1;
  if (fscanf(file, "%d", &state) != 1) state = RUNNING;
  fclose(file);
  return state;
}
static void set_state(int pid, int state) {
  FILE* file = fopen(file_of("state", pid), "w");
  if (file == NULL) return;
  fprintf(file, "%d\n", state);
  fclose(file);
}

static int fault_of(const char* call, int pid) {
  char which[32] = "", how[32] = "";
  FILE* file = fopen(file_of("fault", 0), "r");
  if (file == NULL) return 0;
  const int read = fscanf(file, "%31s %31s", which, how);
  fclose(file);
  if (read != 2 || strcmp(which, call) != 0) return 0;
  if (strcmp(how, "slow") == 0) sleep(3);
  if (strcmp(how, "hang") == 0) sleep(3600);
  if (strcmp(how, "kill") == 0) kill(pid, SIGKILL);
  return strcmp(how, "fail") == 0 || strcmp(how, "kill") == 0 ? OPERATING_SYSTEM : 0;
}
#define BEGIN(CALL, FROM)                             \
  note(CALL, pid);                                    \
  if (kill(pid, 0) != 0) return NOT_PERMITTED;        \
  if (state_of(pid) != FROM) return ILLEGAL_STATE;    \
  do {                                                \
    const int fault = fault_of(CALL, pid);            \
    if (fault != 0) return fault;                     \
  } while (0)

int cuInit(unsigned flags) { return flags == 0 ? 0 : INVALID; }
int cuGetErrorString(int code, const char** text) {
  *text = code == OPERATING_SYSTEM ? "OS call failed" : code == ILLEGAL_STATE ? "illegal state" : "not permitted";
  return 0;
}
int cuCheckpointProcessGetState(int pid, int* state) {
  *state = state_of(pid);
  return *state < 0 ? INVALID : 0;
}
int cuCheckpointProcessLock(int pid, void* arguments) {
  if (arguments == NULL) return INVALID;
  BEGIN("lock", RUNNING);
  set_state(pid, LOCKED);
  return 0;
}
int cuCheckpointProcessCheckpoint(int pid, void* arguments) {
  (void)arguments;
  BEGIN("checkpoint", LOCKED);
  char line[256];
  if (!take_line(pid, line, sizeof line)) return INVALID;
  FILE* saved = fopen(file_of("saved", pid), "w");
  if (saved == NULL) return OPERATING_SYSTEM;
  fputs(line, saved);
  fclose(saved);
  set_state(pid, CHECKPOINTED);
  return 0;
}
int cuCheckpointProcessRestore(int pid, void* arguments) {
  (void)arguments;
  BEGIN("restore", CHECKPOINTED);
  char line[256] = "";
  FILE* saved = fopen(file_of("saved", pid), "r");
  if (saved == NULL || fgets(line, sizeof line, saved) == NULL) return OPERATING_SYSTEM;
  fclose(saved);
  FILE* processes = fopen(file_of("processes", 0), "a");
  if (processes == NULL) return OPERATING_SYSTEM;
  fputs(line, processes);
  fclose(processes);
  unlink(file_of("saved", pid));
  set_state(pid, LOCKED);
  return 0;
}
int cuCheckpointProcessUnlock(int pid, void* arguments) {
  (void)arguments;
  BEGIN("unlock", LOCKED);
  unlink(file_of("state", pid));
  return 0;
}
