#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What is guarded by a mutex is touched with it held: clang's analysis of every source file that includes os/mutex.hpp,
# or a header of its folder that does. src/base/thread_annotations.hpp says how to annotate. $1 = the sources,
# $2 = clang++.
set -u
cd "$1" || exit 1
command -v "$2" >/dev/null || { echo "SKIPPED there is no $2"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
compiler=("$2" -std=c++20 -Isrc -I. -fsyntax-only -DGRIDCTL_VERSION=\"\" -Wno-everything -Wthread-safety
          -Wthread-safety-beta -Werror)

# Parsed once for all.
cat >"$work/common.hpp" <<'HEADERS'
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>
HEADERS
"$2" -std=c++20 -x c++-header "$work/common.hpp" -o "$work/common.hpp.pch" || exit 1

mapfile -t headers < <(grep -rl --include='*.hpp' '"os/mutex.hpp"' src)
mapfile -t files < <(
  {
    grep -rl --include='*.cpp' '"os/mutex.hpp"' src cmd
    for header in "${headers[@]}"; do
      grep -lF "\"${header#src/}\"" "$(dirname "$header")"/*.cpp
    done
  } | sort -u)
[ "${#files[@]}" -ge 25 ] || { echo "only ${#files[@]} files were found"; exit 1; }

failed=0
if grep -rnE 'std::(mutex|shared_mutex|recursive_mutex|condition_variable|lock_guard|unique_lock|scoped_lock)\b' \
  src cmd --include='*.cpp' --include='*.hpp' | grep -v '^src/os/mutex.hpp:'; then
  echo "these carry no attributes: use those of os/mutex.hpp"
  failed=1
fi
for file in "${files[@]}"; do
  "${compiler[@]}" -include-pch "$work/common.hpp.pch" "$file" || failed=1
done
# It would notice.
cat >"$work/careless.cpp" <<'CODE'
#include "os/mutex.hpp"
struct Shared {
  gridctl::os::Mutex mutex;
  int value GRIDCTL_GUARDED_BY(mutex) = 0;
};
int peek(Shared& shared) { return shared.value; }
CODE
"${compiler[@]}" "$work/careless.cpp" 2>/dev/null && { echo "an unguarded access was not noticed"; failed=1; }
[ "$failed" = 0 ] && echo "${#files[@]} files"
exit "$failed"
