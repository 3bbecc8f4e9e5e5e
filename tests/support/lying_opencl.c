// SPDX-License-Identifier: Apache-2.0
// A libOpenCL.so.1 that lies, for tests: it hands everything to the real one, but says that the first device is a big
// GPU, and what the environment asks for besides, or where that is silent, lines NAME=VALUE in /etc/stub-gpu/opencl:
//   GRIDCTL_LIE=gpu     nothing more
//   GRIDCTL_LIE=vram    memory beyond the second large buffer is the second buffer again
//   GRIDCTL_LIE=tamper  a bit of everything that is read is another
//   GRIDCTL_LIE=replay  large reads give what they gave the first time, from the file GRIDCTL_LIE_FILE
//   GRIDCTL_LIE_MEMORY, GRIDCTL_LIE_UNITS  what it is said to have; else what an MI300X has
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int32_t Int;
typedef uint32_t Uint;
typedef void* Handle;

static void* real(const char* name) {
  static void* library = NULL;
  if (library == NULL) library = dlopen(GRIDCTL_REAL_OPENCL, RTLD_NOW | RTLD_LOCAL);
  void* entry = library == NULL ? NULL : dlsym(library, name);
  if (entry == NULL) abort();
  return entry;
}
static const char* setting(const char* name) {
  static char line[512];
  const char* value = getenv(name);
  FILE* file = value == NULL ? fopen("/etc/stub-gpu/opencl", "r") : NULL;
  while (value == NULL && file != NULL && fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    const size_t length = strlen(name);
    if (strncmp(line, name, length) == 0 && line[length] == '=') value = line + length + 1;
  }
  if (file != NULL) fclose(file);
  return value;
}
static int lies(const char* what) {
  const char* lie = setting("GRIDCTL_LIE");
  return lie != NULL && strcmp(lie, what) == 0;
}
static uint64_t number(const char* name, uint64_t otherwise) {
  const char* said = setting(name);
  return said == NULL ? otherwise : strtoull(said, NULL, 10);
}

#define FORWARD(TYPE, NAME, PARAMETERS, ARGUMENTS) \
  TYPE NAME PARAMETERS {                           \
    TYPE(*entry) PARAMETERS = real(#NAME);         \
    return entry ARGUMENTS;                        \
  }
FORWARD(Int, clGetPlatformIDs, (Uint n, Handle* p, Uint* c), (n, p, c))
FORWARD(Int, clGetDeviceIDs, (Handle p, uint64_t t, Uint n, Handle* d, Uint* c), (p, t, n, d, c))
FORWARD(Handle, clCreateContext, (const intptr_t* p, Uint n, const Handle* d, void* f, void* u, Int* e),
        (p, n, d, f, u, e))
FORWARD(Int, clReleaseContext, (Handle h), (h))
FORWARD(Handle, clCreateCommandQueue, (Handle c, Handle d, uint64_t f, Int* e), (c, d, f, e))
FORWARD(Int, clReleaseCommandQueue, (Handle h), (h))
FORWARD(Int, clRetainMemObject, (Handle h), (h))
FORWARD(Int, clReleaseMemObject, (Handle h), (h))
FORWARD(Handle, clCreateProgramWithSource, (Handle c, Uint n, const char** s, const size_t* l, Int* e), (c, n, s, l, e))
FORWARD(Int, clBuildProgram, (Handle p, Uint n, const Handle* d, const char* o, void* f, void* u), (p, n, d, o, f, u))
FORWARD(Int, clGetProgramBuildInfo, (Handle p, Handle d, Uint w, size_t n, void* v, size_t* s), (p, d, w, n, v, s))
FORWARD(Int, clReleaseProgram, (Handle h), (h))
FORWARD(Handle, clCreateKernel, (Handle p, const char* n, Int* e), (p, n, e))
FORWARD(Int, clReleaseKernel, (Handle h), (h))
FORWARD(Int, clSetKernelArg, (Handle k, Uint i, size_t n, const void* v), (k, i, n, v))
FORWARD(Int, clEnqueueNDRangeKernel,
        (Handle q, Handle k, Uint d, const size_t* o, const size_t* g, const size_t* l, Uint n, const Handle* w,
         Handle* e),
        (q, k, d, o, g, l, n, w, e))
FORWARD(Int, clEnqueueFillBuffer,
        (Handle q, Handle m, const void* p, size_t ps, size_t o, size_t s, Uint n, const Handle* w, Handle* e),
        (q, m, p, ps, o, s, n, w, e))
FORWARD(Int, clEnqueueWriteBuffer,
        (Handle q, Handle m, Uint b, size_t o, size_t s, const void* p, Uint n, const Handle* w, Handle* e),
        (q, m, b, o, s, p, n, w, e))
FORWARD(void*, clEnqueueMapBuffer,
        (Handle q, Handle m, Uint b, uint64_t f, size_t o, size_t s, Uint n, const Handle* w, Handle* e, Int* r),
        (q, m, b, f, o, s, n, w, e, r))
FORWARD(Int, clEnqueueUnmapMemObject, (Handle q, Handle m, void* p, Uint n, const Handle* w, Handle* e),
        (q, m, p, n, w, e))
FORWARD(Int, clFinish, (Handle q), (q))

static Int tell(const void* what, size_t bytes, size_t size, void* value, size_t* told) {
  if (told != NULL) *told = bytes;
  if (value == NULL) return 0;
  if (size < bytes) return -30;
  memcpy(value, what, bytes);
  return 0;
}
Int clGetDeviceInfo(Handle device, Uint what, size_t size, void* value, size_t* told) {
  static const char vendor[] = "Advanced Micro Devices, Inc.", name[] = "AMD Instinct MI300X";
  static const unsigned char topology[24] = {1, [21] = 0x83};
  const uint64_t gpu = 4, piece = 64ull << 20;
  const uint64_t memory = number("GRIDCTL_LIE_MEMORY", lies("vram") ? 1ull << 30 : 206141652992ull);
  const Uint units = (Uint)number("GRIDCTL_LIE_UNITS", 304);
  switch (what) {
    case 0x1000: return tell(&gpu, sizeof gpu, size, value, told);
    case 0x1002: return tell(&units, sizeof units, size, value, told);
    case 0x1010: return tell(&piece, sizeof piece, size, value, told);
    case 0x101f: return tell(&memory, sizeof memory, size, value, told);
    case 0x102c: return tell(vendor, sizeof vendor, size, value, told);
    case 0x4037: return tell(topology, sizeof topology, size, value, told);
    case 0x4038: return tell(name, sizeof name, size, value, told);
    default: break;
  }
  Int (*entry)(Handle, Uint, size_t, void*, size_t*) = real("clGetDeviceInfo");
  return entry(device, what, size, value, told);
}

Handle clCreateBuffer(Handle context, uint64_t flags, size_t bytes, void* host, Int* error) {
  static Handle last = NULL;
  static int large = 0;
  Handle (*entry)(Handle, uint64_t, size_t, void*, Int*) = real("clCreateBuffer");
  if (!lies("vram") || bytes != 64u << 20) return entry(context, flags, bytes, host, error);
  if (++large > 2) {
    clRetainMemObject(last);
    if (error != NULL) *error = 0;
    return last;
  }
  return last = entry(context, flags, bytes, host, error);
}

Int clEnqueueReadBuffer(Handle queue, Handle memory, Uint blocking, size_t offset, size_t bytes, void* into, Uint count,
                        const Handle* wait, Handle* event) {
  Int (*entry)(Handle, Handle, Uint, size_t, size_t, void*, Uint, const Handle*, Handle*) = real("clEnqueueReadBuffer");
  const Uint wait_for_it = lies("tamper") || lies("replay") ? 1 : blocking;  // what is not there cannot be changed
  const Int code = entry(queue, memory, wait_for_it, offset, bytes, into, count, wait, event);
  if (code == 0 && lies("tamper") && bytes > 16) ((unsigned char*)into)[bytes / 2] ^= 1;
  if (code == 0 && lies("replay")) {
    char path[512];
    snprintf(path, sizeof path, "%s.%zu", setting("GRIDCTL_LIE_FILE"), bytes);
    FILE* file = fopen(path, "rb");
    if (file != NULL) {
      if (fread(into, 1, bytes, file) != bytes) abort();
    } else if ((file = fopen(path, "wb")) != NULL) {
      if (fwrite(into, 1, bytes, file) != bytes) abort();
    }
    if (file != NULL) fclose(file);
  }
  return code;
}
