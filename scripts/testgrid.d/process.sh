# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# A process written down in a file is "PID STARTTIME": a PID alone may have been reused since.

start_time() {  # of PID; the 22nd field of its stat, counted from behind the name, which may hold blanks
  local stat=
  read -r -d '' stat 2> /dev/null < "/proc/$1/stat" || [ -n "$stat" ] || return 0
  # shellcheck disable=SC2086  # split on purpose
  set -- ${stat##*) }
  echo "${20}"
}

remember_process() { echo "$1 $(start_time "$1")" > "$2"; }  # PID FILE

# remembered_pid FILE: the process written down there if it still lives, else nothing
remembered_pid() {
  local pid start
  [ -f "$1" ] && read -r pid start < "$1" || return 0
  if [ -n "$start" ] && [ "$(start_time "$pid")" = "$start" ]; then echo "$pid"; fi
}

end_remembered() {  # FILE
  local pid
  pid=$(remembered_pid "$1")
  if [ -n "$pid" ]; then
    kill -9 "$pid" 2> /dev/null || true
    wait_gone "$1"
  fi
  rm -f "$1"
}

wait_gone() { while [ -n "$(remembered_pid "$1")" ] && ! is_zombie "$1"; do sleep 0.005; done; }

# A zombie waits for its parent, which may be slow to look; it can do nothing more.
is_zombie() {
  local pid
  read -r pid _ < "$1"
  grep -qs '^State:.Z' "/proc/$pid/status"
}
