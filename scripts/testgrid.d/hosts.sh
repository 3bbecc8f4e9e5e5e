# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The life of a host: PID 1 of its pid namespace. When that dies, the kernel ends everything in the namespace.

host_is_up() { [ -n "$(remembered_pid "$STATE/h$1/pid")" ] && ! is_zombie "$STATE/h$1/pid"; }

host_start() {  # I
  local i=$1 dir=$STATE/h$1 helper
  ! host_is_up "$i" || return 0
  disk_make "$i"
  cgroup_remove "h$i"
  cgroup_make "h$i"
  rm -f "$dir/pid"
  (
    cgroup_join "h$i"
    export GRIDCTL_TESTGRID=$STATE
    exec setsid unshare --mount --pid --uts --ipc --net --cgroup --fork --kill-child "$SELF" __boot "$i" 8>&- 9>&-
  ) < /dev/null >> "$dir/log" 2>&1 &
  helper=$!
  until host_is_up "$i"; do
    kill -0 "$helper" 2> /dev/null || { tail -n 20 "$dir/log" >&2; fail "host $i did not start; its log is $dir/log"; }
    sleep 0.005
  done
  cgroup_delegate "$i" "$helper"
  network_attach "$i" "$(remembered_pid "$dir/pid")"
  disown "$helper"
}

# Power loss: first the link goes, or the dying kernel would still close its connections politely.
host_kill() {
  network_silence "$1"
  host_crash "$1"
}

host_crash() {
  end_remembered "$STATE/h$1/pid"
  network_detach "$1"
  cgroup_remove "h$1"
}

host_enter() {  # I CMD...
  local i=$1
  shift
  [ $# -gt 0 ] || set -- bash
  cgroup_enter "$i"
  exec nsenter -t "$(remembered_pid "$STATE/h$i/pid")" -a --wdns=/ \
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM="${TERM:-dumb}" "$@"
}

# shellcheck disable=SC2016  # expanded by the shell in the host
# Stopping ends the listener; sessions go on, as they do on a real host.
host_sshd() {  # I start|stop
  case $2 in
    stop) (host_enter "$1" sh -c 'kill -9 "$(cat /run/sshd.pid)"; rm /run/sshd.pid') ;;
    start)
      (host_enter "$1" sh -c 'test -e /run/sshd.pid || setsid /usr/sbin/sshd -D -e < /dev/null > /var/log/sshd.log 2>&1 &')
      wait_ssh "$1"
      ;;
    *) wrong_usage ;;
  esac
}

host_dockerd() {
  command -v dockerd > /dev/null || fail "no dockerd on this machine; scripts/install-deps test installs it"
  # shellcheck disable=SC2016  # for the shell in the host
  (host_enter "$1" sh -c '
    touch /etc/testgrid-dockerd
    docker version > /dev/null 2>&1 || setsid dockerd < /dev/null > /var/log/dockerd.log 2>&1 &
    for try in $(seq 300); do
      docker version > /dev/null 2>&1 && exit 0
      sleep 0.05
    done
    tail -n 20 /var/log/dockerd.log >&2
    exit 1') || fail "dockerd does not come up in host $1"
}
