# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The disk of a host is the folder hI/fs: upper layers over this machine's /etc and /usr, and /var, /root, /home, /tmp
# of its own. It is made once and outlives every kill.

check_disk() {
  [ "$(stat -f -c %T "$STATE")" != overlayfs ] \
    || fail "$STATE lies on an overlay file system, which cannot carry another; set GRIDCTL_TESTGRID to a folder on a real disk"
}

# small_disks I=SIZE...: remembers the sizes; a disk that exists keeps its size
small_disks() {
  local spec i
  for spec in "$@"; do
    i=${spec%%=*}
    [ ! -d "$STATE/h$i/fs" ] || [ "$(cat "$STATE/h$i/disk.size" 2> /dev/null)" = "${spec#*=}" ] \
      || fail "host $i has a disk already; scripts/testgrid down removes it"
    mkdir -p "$STATE/h$i"
    echo "${spec#*=}" > "$STATE/h$i/disk.size"
  done
}

# A small disk is a file of that size with ext4 in it, or where loop devices are missing a tmpfs; the latter too
# outlives a kill, being mounted out here.
disk_attach() {  # I
  local dir=$STATE/h$1 size
  mkdir -p "$dir/fs/home"
  [ -f "$dir/disk.size" ] && ! mountpoint -q "$dir/fs/home" || return 0
  size=$(cat "$dir/disk.size")
  if [ ! -f "$dir/disk.img" ]; then
    truncate -s "$size" "$dir/disk.img"
    mkfs.ext4 -q -m 0 "$dir/disk.img"
  fi
  mount -o loop "$dir/disk.img" "$dir/fs/home" 2> /dev/null || mount -t tmpfs -o "size=$size,mode=755" tmpfs "$dir/fs/home"
}

disk_detach() {
  while mountpoint -q "$STATE/h$1/fs/home" 2> /dev/null; do umount -l "$STATE/h$1/fs/home"; done
}

disk_make() {  # I
  local i=$1 dir=$STATE/h$1 etc=$STATE/h$1/fs/etc type folder
  disk_attach "$i"
  [ ! -f "$dir/made" ] || return 0
  mkdir -p "$dir/mnt" "$dir"/fs/{etc,etc.work,usr,usr.work,root,tmp,var/{tmp,log,cache,lib/shared-images}}
  mkdir -p "$etc"/{ssh,containers} "$dir/fs/home/worker"
  chmod 1777 "$dir/fs/tmp" "$dir/fs/var/tmp"
  ln -sfn /run "$dir/fs/var/run"
  for type in ed25519 ecdsa; do
    [ -f "$etc/ssh/ssh_host_${type}_key" ] || ssh-keygen -q -t $type -N '' -C "h$i" -f "$etc/ssh/ssh_host_${type}_key"
  done
  tr -d - < /proc/sys/kernel/random/uuid > "$etc/machine-id"
  echo "h$i" > "$etc/hostname"
  : > "$etc/resolv.conf"
  {
    echo '127.0.0.1 localhost'
    for ((folder = 1; folder <= 32; folder++)); do echo "$(address "$folder") h$folder"; done
  } > "$etc/hosts"
  users_make "$etc"
  sshd_config > "$etc/ssh/sshd_config"
  containers_conf > "$etc/containers/containers.conf"
  storage_conf /run/containers/storage /var/lib/containers/storage > "$etc/containers/storage.conf"
  # rootless podman takes no image stores from the machine's file
  mkdir -p "$dir/fs/home/worker/.config/containers"
  storage_conf "/run/user/$WORKER_UID/containers" /home/worker/.local/share/containers/storage \
    > "$dir/fs/home/worker/.config/containers/storage.conf"
  for folder in "$dir/fs/root" "$dir/fs/home/worker"; do
    mkdir -p "$folder/.ssh"
    cp "$STATE/id_ed25519.pub" "$folder/.ssh/authorized_keys"
    chmod 700 "$folder" "$folder/.ssh"
  done
  chown -R "$WORKER_UID:$WORKER_UID" "$dir/fs/home/worker"
  touch "$dir/made"
}

users_make() {  # ETC
  local docker_gid
  docker_gid=$({ getent group docker || true; } | cut -d: -f3)  # there is none before docker.io is installed
  {
    grep -v '^worker:' /etc/passwd
    echo "worker:x:$WORKER_UID:$WORKER_UID::/home/worker:/bin/bash"
  } > "$1/passwd"
  {
    grep -v '^worker:' /etc/shadow
    echo 'worker:*:19000:0:99999:7:::'  # with `!` sshd would refuse the key as well
  } > "$1/shadow"
  chmod 600 "$1/shadow"
  {
    grep -v -e '^worker:' -e '^docker:' /etc/group
    echo "worker:x:$WORKER_UID:"
    echo "docker:x:${docker_gid:-1501}:worker"
  } > "$1/group"
  echo 'worker:200000:65536' | tee "$1/subuid" > "$1/subgid"
}

sshd_config() {
  cat <<SSHD
HostKey /etc/ssh/ssh_host_ed25519_key
HostKey /etc/ssh/ssh_host_ecdsa_key
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM no
UseDNS no
PidFile /run/sshd.pid
Subsystem sftp /usr/lib/openssh/sftp-server
${GRIDCTL_TESTGRID_SSHD:-}
Match User worker
  SetEnv XDG_RUNTIME_DIR=/run/user/$WORKER_UID
SSHD
}

# Ulimits: podman would raise them to its own wishes, which needs a right that containers in containers lack.
# Without the kernel's tun device rootless containers can have no network but their host's.
# Network: configuration left by other tools on this machine must not make podman choose CNI.
containers_conf() {
  cat <<CONF
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=90000:90000"]
$([ -e /sys/class/misc/tun ] || echo 'netns = "host"')
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
CONF
}

storage_conf() {  # RUNROOT GRAPHROOT
  cat <<CONF
[storage]
driver = "overlay"
runroot = "$1"
graphroot = "$2"
[storage.options]
additionalimagestores = [${IMAGES:+\"/var/lib/shared-images\"}]
CONF
}
