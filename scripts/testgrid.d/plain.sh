# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The grid without root: a host is an sshd on a loopback port, run by the calling user, with a home and an agent home
# of its own. Its processes are known by what they cannot shed all at once: sshd's session, an environment variable
# that every login gets, a working directory or program in the host's folder.

plain_is_up() { [ -n "$(remembered_pid "$STATE/h$1/pid")" ] && ! is_zombie "$STATE/h$1/pid"; }

port_is_free() { ! timeout 1 bash -c "exec 3<>/dev/tcp/127.0.0.1/$1" 2> /dev/null; }

plain_make() {
  local i=$1 dir=$STATE/h$1 port
  [ ! -f "$dir/port" ] || return 0
  mkdir -p "$dir/home" "$dir/leases"
  [ -f "$dir/ssh_host_ed25519_key" ] || ssh-keygen -q -t ed25519 -N '' -C "h$i" -f "$dir/ssh_host_ed25519_key"
  cp "$STATE/id_ed25519.pub" "$dir/authorized_keys"
  chmod 600 "$dir/authorized_keys"
  until port=$((20000 + RANDOM % 10000)) && port_is_free $port; do :; done
  cat > "$dir/sshd_config" <<SSHD
ListenAddress 127.0.0.1:$port
HostKey $dir/ssh_host_ed25519_key
AuthorizedKeysFile $dir/authorized_keys
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
UsePAM no
UseDNS no
PidFile none
Subsystem sftp /usr/lib/openssh/sftp-server
SetEnv SHLVL=1 HOME=$dir/home GRIDCTL_AGENT_HOME=$dir/home/.gridctl GRIDCTL_LEASE_DIR=$dir/leases GRIDCTL_TESTGRID_HOST=$dir${GRIDCTL_TESTGRID_PATH:+ PATH=$GRIDCTL_TESTGRID_PATH}
${GRIDCTL_TESTGRID_SSHD:-}
SSHD
  echo "$port" > "$dir/port"
}

plain_start() {
  local dir=$STATE/h$1
  ! plain_is_up "$1" || return 0
  plain_make "$1"
  [ "$(id -u)" != 0 ] || mkdir -p /run/sshd
  (
    cd "$dir/home" || exit 1
    exec setsid env GRIDCTL_TESTGRID_HOST="$dir" /usr/sbin/sshd -D -e -f "$dir/sshd_config" 9>&-
  ) < /dev/null >> "$dir/log" 2>&1 &
  remember_process $! "$dir/pid"
  disown $!
}

plain_processes() {  # I
  local dir=$STATE/h$1 sshd
  sshd=$(remembered_pid "$dir/pid")
  {
    grep -lszxF "GRIDCTL_TESTGRID_HOST=$dir" /proc/[0-9]*/environ || true
    find /proc -maxdepth 2 -uid "$(id -u)" \( -name cwd -o -name exe \) \
      \( -lname "$dir/*" -o -lname "$dir" \) 2> /dev/null || true
    # the sixth field of stat is the session; behind the name, which may hold blanks, the fourth
    [ -z "$sshd" ] || cat /proc/[0-9]*/stat 2> /dev/null \
      | awk -v sid="$sshd" '{ pid = $1; sub(/.*\) /, ""); if ($4 == sid) print "/proc/" pid "/" }'
  } | cut -d/ -f3 | sort -nu | grep -vx -e $$ -e "$PPID" || true
}

plain_kill() {
  local pids
  while pids=$(plain_processes "$1") && [ -n "$pids" ]; do
    # shellcheck disable=SC2086  # one argument each
    kill -9 $pids 2> /dev/null || true
    sleep 0.01
    pids=$(all_zombies "$pids") || continue
    break
  done
  rm -f "$STATE/h$1/pid"
}

# Succeeds when none of these processes can run any more; a parent that does not look may keep zombies for ever.
all_zombies() {
  local pid
  for pid in $1; do
    [ ! -e "/proc/$pid" ] || grep -qs '^State:.Z' "/proc/$pid/status" || return 1
  done
}
