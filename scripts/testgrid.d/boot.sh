# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What PID 1 of a host does before it becomes an init with sshd under it. It runs in new mount, pid, uts, ipc, net and
# cgroup namespaces, with this machine's file system still in view.

boot() {  # I
  local dir=$STATE/h$1
  # /proc is still that of this machine, so this is the PID by which others know us
  read -r BOOT_PID _ < /proc/self/stat
  remember_process "$BOOT_PID" "$dir/pid"
  hostname "h$1"
  mount --make-rprivate /
  mount -t tmpfs -o mode=755,size=1m tmpfs "$dir/mnt"
  cd "$dir/mnt" || exit 1
  boot_root "$dir"
  boot_kernel_files "$dir"
  boot_cgroups
  boot_devices
  boot_network "$1"
  pivot_root . .old
  cd /
  umount -l /.old
  rmdir /.old
  mount --make-rshared /  # rootless podman wants it
  if [ -e /etc/testgrid-dockerd ]; then
    setsid env -i PATH="$HOST_PATH" HOME=/root dockerd < /dev/null > /var/log/dockerd.log 2>&1 &
  fi
  setsid env -i PATH="$HOST_PATH" /usr/sbin/sshd -D -e &
  exec env -i PATH="$HOST_PATH" /usr/bin/catatonit -P  # only waits, and reaps what loses its parent
}

HOST_PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

boot_root() {
  local folder
  mkdir proc sys dev run tmp usr etc var root home .old
  for folder in bin sbin lib lib64; do ln -s "usr/$folder" "$folder"; done
  for folder in etc usr; do
    mount -t overlay overlay -o "lowerdir=/$folder,upperdir=$1/fs/$folder,workdir=$1/fs/$folder.work" $folder
  done
  for folder in var root home tmp; do mount --bind "$1/fs/$folder" $folder; done
  [ -z "$IMAGES" ] || mount --bind -o ro "$IMAGES" var/lib/shared-images
  mount -t tmpfs -o mode=755 tmpfs run
  mkdir -p run/sshd run/lock run/testgrid/proc "run/user/$WORKER_UID"
  chown "$WORKER_UID:$WORKER_UID" "run/user/$WORKER_UID"
  chmod 700 "run/user/$WORKER_UID" run/testgrid
}

# The kernel has one boot id for all; each boot of a host shows its own by a file mounted over it. A /proc with
# something mounted over a part of it is no longer "fully visible", and then the kernel lets no rootless container
# mount its own: hence the second, untouched one.
boot_kernel_files() {
  mount -t proc proc proc
  mount -t proc proc run/testgrid/proc
  cat /proc/sys/kernel/random/uuid > run/testgrid/boot_id
  cp run/testgrid/boot_id "$1/boot_id"
  mount --bind run/testgrid/boot_id proc/sys/kernel/random/boot_id
  mount -t sysfs sysfs sys
}

boot_cgroups() {
  local top name
  if [ "$CGROUP_VERSION" = 2 ]; then
    mount -t cgroup2 cgroup sys/fs/cgroup
    mkdir -p sys/fs/cgroup/init
    echo $$ > sys/fs/cgroup/init/cgroup.procs
    return
  fi
  mount -t tmpfs -o mode=755 cgroup sys/fs/cgroup
  for top in $(hierarchies); do
    name=${top##*/}
    mkdir "sys/fs/cgroup/$name"
    case $name in
      unified) mount -t cgroup2 cgroup "sys/fs/cgroup/$name" ;;
      systemd) mount -t cgroup -o none,name=systemd cgroup "sys/fs/cgroup/$name" ;;
      *) mount -t cgroup -o "$name" cgroup "sys/fs/cgroup/$name" ;;
    esac
  done
}

boot_devices() {
  local name major minor
  mount -t tmpfs -o mode=755 tmpfs dev
  mkdir dev/pts dev/shm dev/net dev/mqueue
  mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts dev/pts
  mount -t tmpfs -o mode=1777 tmpfs dev/shm
  mount -t mqueue mqueue dev/mqueue
  while read -r name major minor; do
    mknod -m 666 "dev/$name" c "$major" "$minor"
  done <<'NODES'
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
fuse 10 229
net/tun 10 200
NODES
  ln -s pts/ptmx dev/ptmx
  ln -s /proc/self/fd dev/fd
  ln -s fd/0 dev/stdin
  ln -s fd/1 dev/stdout
  ln -s fd/2 dev/stderr
}

# No default route: nothing can leave the grid.
boot_network() {
  ip link set lo up
  until ip link show eth0 > /dev/null 2>&1; do sleep 0.01; done
  hurry_arp eth0
  ip addr add "$(address "$1")/32" dev eth0
  ip link set eth0 up
  ip route add "$NET.$GATEWAY_PART/32" dev eth0
  ip route add "$NET.0/24" via "$NET.$GATEWAY_PART"
}
