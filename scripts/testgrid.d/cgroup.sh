# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Every host lives in a cgroup PREFIX/hI of its own, and is root of it: in each hierarchy of version 1, or in the one
# of version 2. The grid's network lives in PREFIX/wan. So the processes of a grid can always be found again.

CGROUP_ROOT=/sys/fs/cgroup
if [ -f $CGROUP_ROOT/cgroup.controllers ]; then CGROUP_VERSION=2; else CGROUP_VERSION=1; fi

hierarchies() {  # the folders in which a cgroup has to be made
  local dir
  if [ $CGROUP_VERSION = 2 ]; then
    echo $CGROUP_ROOT
    return
  fi
  for dir in "$CGROUP_ROOT"/*; do
    [ -L "$dir" ] || [ ! -e "$dir/cgroup.procs" ] || echo "$dir"
  done
}

cgroup_allowed() {
  local top try
  for top in $(hierarchies); do
    try=$(mktemp -d "$top/$PREFIX.XXXXXX" 2> /dev/null) || return 1
    rmdir "$try"
  done
}

cgroup_make() {  # NAME
  local top group
  for top in $(hierarchies); do
    mkdir -p "$top/$PREFIX/$1"
    if [ "${top##*/}" = cpuset ]; then  # a new cpuset is empty and takes no process
      for group in "$top/$PREFIX" "$top/$PREFIX/$1"; do
        cat "$top/cpuset.cpus" > "$group/cpuset.cpus"
        cat "$top/cpuset.mems" > "$group/cpuset.mems"
      done
    fi
  done
}

cgroup_join() {  # NAME: moves the calling shell
  local top
  for top in $(hierarchies); do echo "$BASHPID" > "$top/$PREFIX/$1/cgroup.procs"; done
}

# Version 2 allows processes in leaves only: PID 1 of the host has moved itself to hI/init by now, the helper that
# waits for it goes to `sup`, and then the controllers can be handed down.
cgroup_delegate() {  # I, PID of the helper
  local controller controllers dir=$CGROUP_ROOT/$PREFIX
  [ $CGROUP_VERSION = 2 ] || return 0
  mkdir -p "$dir/sup"
  echo "$2" > "$dir/sup/cgroup.procs"
  while [ -n "$(cat "$dir/h$1/cgroup.procs")" ]; do sleep 0.01; done
  read -r -a controllers < $CGROUP_ROOT/cgroup.controllers
  for controller in "${controllers[@]}"; do
    echo "+$controller" | tee $CGROUP_ROOT/cgroup.subtree_control "$dir/cgroup.subtree_control" \
      "$dir/h$1/cgroup.subtree_control" > /dev/null 2>&1 || true
  done
}

# cgroup_enter I: moves the calling shell to where the host's PID 1 is
cgroup_enter() {
  if [ $CGROUP_VERSION = 2 ]; then echo "$BASHPID" > "$CGROUP_ROOT/$PREFIX/h$1/init/cgroup.procs"; else cgroup_join "h$1"; fi
}

cgroup_remove() {  # NAME, or nothing for the whole grid
  local top
  for top in $(hierarchies); do
    [ ! -d "$top/$PREFIX/${1:-}" ] || find "$top/$PREFIX/${1:-}" -depth -type d -exec rmdir {} + 2> /dev/null || true
  done
}

cgroup_processes() {
  local top
  for top in $(hierarchies); do
    [ ! -d "$top/$PREFIX" ] || find "$top/$PREFIX" -name cgroup.procs -exec cat {} + 2> /dev/null || true
  done | sort -nu | sed '/^0$/d'  # 0 stands for one that is not to be seen from here
}

cgroup_kill_all() {
  local pids tries
  for ((tries = 0; tries < 500; tries++)); do
    pids=$(cgroup_processes)
    [ -n "$pids" ] || return 0
    # shellcheck disable=SC2086  # one argument each
    kill -9 $pids 2> /dev/null || true
    sleep 0.01
  done
  fail "these processes of an earlier grid do not end: $pids"
}

cgroup_remove_all() { cgroup_remove ''; }
