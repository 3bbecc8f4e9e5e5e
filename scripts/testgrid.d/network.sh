# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The internet of the grid: a router in a network namespace of its own, with one link to each host (wI) and one to
# this machine. It says nothing by itself: towards a host that is gone there is silence, no ICMP error. Being a
# router it can lose packets each way by plain forwarding rules, on every kernel.

GATEWAY_PART=254

address() { if [ "$KIND" = plain ]; then echo 127.0.0.1; else echo "$NET.$((10 + $1))"; fi; }
port() { if [ "$KIND" = plain ]; then cat "$STATE/h$1/port"; else echo 22; fi; }

router() { nsenter -t "$(remembered_pid "$STATE/router.pid")" -n "$@"; }

# Prints the subnet to use. Several grids may be started at once, so this is called under a lock of the machine
# that is held until the address is taken.
free_subnet() {
  local part routes
  routes=$(ip -4 route show)
  if [ -n "${GRIDCTL_TESTGRID_NET:-}" ]; then
    echo "$GRIDCTL_TESTGRID_NET"
    return
  fi
  for ((part = 0; part <= 250; part++)); do
    [[ $'\n'$routes == *$'\n'"10.77.$part."* ]] || { echo "10.77.$part"; return; }
  done
  fail "all of 10.77.0 to 10.77.250 is in use; set GRIDCTL_TESTGRID_NET"
}

network_up() {
  local gateway
  [ -z "$(remembered_pid "$STATE/router.pid")" ] || return 0
  network_down
  mkdir -p /run/lock
  exec 8> /run/lock/gridctl-testgrid
  flock 8
  [ -n "$NET" ] || NET=$(free_subnet)
  gateway=$NET.$GATEWAY_PART
  cgroup_make wan
  (
    cgroup_join wan
    exec setsid unshare --net sleep infinity 8>&- 9>&-
  ) < /dev/null > /dev/null 2>&1 &
  remember_process $! "$STATE/router.pid"
  until [ "$(readlink "/proc/$!/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.005; done
  router sysctl -qw net.ipv4.ip_forward=1
  router iptables -w -A OUTPUT -p icmp -j DROP
  ip link add "$PREFIX" type veth peer name laptop netns "$(remembered_pid "$STATE/router.pid")"
  router ip link set lo up
  hurry_arp router laptop
  router ip addr add "$gateway/32" dev laptop
  router ip link set laptop up
  router ip route add "$NET.1/32" dev laptop
  hurry_arp "$PREFIX"
  ip link set "$PREFIX" up
  ip addr add "$NET.1/32" dev "$PREFIX"
  ip route add "$gateway/32" dev "$PREFIX"
  ip route add "$NET.0/24" via "$gateway" src "$NET.1"
  exec 8>&-
}

# A first ARP request that comes before the other end is ready would otherwise cost a second at each boot.
hurry_arp() {  # [router] DEVICE
  if [ "$1" = router ]; then router sysctl -qw "net.ipv4.neigh.$2.retrans_time_ms=50"; else
    sysctl -qw "net.ipv4.neigh.$1.retrans_time_ms=50"; fi
}

network_down() {
  local file
  for file in "$STATE"/h*/delay.pid "$STATE/router.pid"; do [ ! -f "$file" ] || end_remembered "$file"; done
  ip link del "$PREFIX" 2> /dev/null || true
}

# network_attach I PID: the router's end of the link of a booting host; the host does the other end itself
network_attach() {
  router ip link del "w$1" 2> /dev/null || true
  router ip link add "w$1" type veth peer name eth0 netns "$2"
  router ip addr add "$NET.$GATEWAY_PART/32" dev "w$1"
  hurry_arp router "w$1"
  router ip link set "w$1" up
  router ip route replace "$(address "$1")/32" dev "w$1"
  if [ -f "$STATE/h$1/shape" ]; then
    limit_rate "$1" "$2" "$(cut -d' ' -f1 "$STATE/h$1/shape")"
  fi
}

network_detach() { router ip link del "w$1" 2> /dev/null || true; }
network_silence() { router ip link set "w$1" down 2> /dev/null || true; }

network_cut() {  # I in|out|both
  network_heal "$1"
  case $2 in in | out | both) ;; *) wrong_usage ;; esac
  [ "$2" = out ] || router iptables -w -I FORWARD -o "w$1" -j DROP
  [ "$2" = in ] || router iptables -w -I FORWARD -i "w$1" -j DROP
  echo "$2" > "$STATE/h$1/cut"
}

network_readdress() {  # I PART: the host has the address NET.PART until it boots again
  local pid old new=$NET.$2/32
  pid=$(remembered_pid "$STATE/h$1/pid")
  old=$(nsenter -t "$pid" -n ip -4 -o addr show dev eth0 | awk '{ print $4; exit }')
  router ip route replace "$new" dev "w$1"
  nsenter -t "$pid" -n ip addr add "$new" dev eth0
  nsenter -t "$pid" -n ip addr del "$old" dev eth0
  router ip route del "$old" dev "w$1"
}

network_take_address() {  # I PART
  nsenter -t "$(remembered_pid "$STATE/h$1/pid")" -n ip addr add "$NET.$2/32" dev eth0
  router ip route replace "$NET.$2/32" dev "w$1"
}

network_lose_address() {  # I PART
  nsenter -t "$(remembered_pid "$STATE/h$1/pid")" -n ip addr del "$NET.$2/32" dev eth0
  router ip route del "$NET.$2/32" dev "w$1"
  router ip route add blackhole "$NET.$2/32"
}

network_heal() {
  while router iptables -w -D FORWARD -o "w$1" -j DROP 2> /dev/null; do :; done
  while router iptables -w -D FORWARD -i "w$1" -j DROP 2> /dev/null; do :; done
  rm -f "$STATE/h$1/cut"
}

# limit_rate I PID RATE: both directions, at the ends that send
limit_rate() {
  router tc qdisc replace dev "w$1" root tbf rate "$3" burst 64k latency 100ms
  nsenter -t "$2" -n tc qdisc replace dev eth0 root tbf rate "$3" burst 64k latency 100ms
}

# Loss and delay are put on the way to the host, in the router. Not every kernel has netem: packets wait in a
# netfilter queue instead, where nfdelay lets them go after their time.
network_shape() {  # I RATE DELAY LOSS
  local i=$1 rate=$2 delay=${3%ms} loss=${4%\%} pid
  [[ $delay =~ ^[0-9.]+$ && $loss =~ ^[0-9.]+$ ]] || wrong_usage
  pid=$(remembered_pid "$STATE/h$i/pid")
  network_unshape "$i"
  [ -z "$pid" ] || limit_rate "$i" "$pid" "$rate"
  if [ "$loss" != 0 ]; then
    router iptables -w -t mangle -A FORWARD -o "w$i" -m statistic --mode random \
      --probability "$(awk "BEGIN { print $loss / 100 }")" -j DROP
  fi
  if [ "$delay" != 0 ]; then
    if [ ! -x "$STATE/nfdelay" ]; then
      cc -O2 -Wall -o "$STATE/nfdelay.$i" "$PARTS/nfdelay.c"
      mv "$STATE/nfdelay.$i" "$STATE/nfdelay"
    fi
    (
      cgroup_join wan
      exec setsid nsenter -t "$(remembered_pid "$STATE/router.pid")" -n "$STATE/nfdelay" "$i" "$delay" 9>&-
    ) < /dev/null > /dev/null 2>> "$STATE/h$i/log" &
    remember_process $! "$STATE/h$i/delay.pid"
    router iptables -w -t mangle -A FORWARD -o "w$i" -j NFQUEUE --queue-num "$i" --queue-bypass
  fi
  echo "$rate ${delay}ms $loss%" > "$STATE/h$i/shape"
}

network_unshape() {
  local i=$1 pid rule
  router tc qdisc del dev "w$i" root 2> /dev/null || true
  pid=$(remembered_pid "$STATE/h$i/pid")
  [ -z "$pid" ] || nsenter -t "$pid" -n tc qdisc del dev eth0 root 2> /dev/null || true
  router iptables -w -t mangle -S FORWARD | sed -n "/-o w$i /s/^-A/-D/p" | while read -r rule; do
    # shellcheck disable=SC2086  # the rule is a list of arguments
    router iptables -w -t mangle $rule
  done
  end_remembered "$STATE/h$i/delay.pid"
  rm -f "$STATE/h$i/shape"
}
