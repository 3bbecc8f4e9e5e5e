# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What tests and people need to know of the grid: the files env, ssh_config and known_hosts, and `ls`.

login_user() { if [ "$KIND" = plain ]; then id -un; else echo worker; fi; }
key_folder() { if [ "$KIND" = plain ]; then echo "$STATE/h$1"; else echo "$STATE/h$1/fs/etc/ssh"; fi; }
fingerprint() { ssh-keygen -l -f "$(key_folder "$1")/ssh_host_ed25519_key.pub" | cut -d' ' -f2; }

write_facts() {
  local i file
  for file in env ssh_config known_hosts; do "write_$file" > "$STATE/$file.new"; done
  for file in env ssh_config known_hosts; do mv "$STATE/$file.new" "$STATE/$file"; done
}

write_env() {
  local i
  printf '%s=%q\n' GRIDCTL_TESTGRID "$STATE" TESTGRID_KIND "$KIND" TESTGRID_HOSTS "$(ids | xargs)" \
    TESTGRID_USER "$(login_user)" TESTGRID_KEY "$STATE/id_ed25519" TESTGRID_KNOWN_HOSTS "$STATE/known_hosts" \
    TESTGRID_SSH_CONFIG "$STATE/ssh_config" TESTGRID_IMAGES "$IMAGES"
  for i in $(ids); do
    printf '%s=%q\n' "TESTGRID_ADDRESS_$i" "$(address "$i")" "TESTGRID_PORT_$i" "$(port "$i")" \
      "TESTGRID_HOST_KEY_$i" "$(fingerprint "$i")"
  done
}

write_ssh_config() {
  local i
  for i in $(ids); do printf 'Host h%s\n  HostName %s\n  Port %s\n' "$i" "$(address "$i")" "$(port "$i")"; done
  cat <<CONFIG
Host *
  User $(login_user)
  IdentityFile "$STATE/id_ed25519"
  IdentitiesOnly yes
  UserKnownHostsFile "$STATE/known_hosts"
  GlobalKnownHostsFile none
  StrictHostKeyChecking yes
  BatchMode yes
  ConnectTimeout 5
  LogLevel ERROR
CONFIG
}

write_known_hosts() {
  local i file name
  for i in $(ids); do
    name=$(address "$i")
    [ "$KIND" = hosts ] || name="[$name]:$(port "$i")"
    for file in "$(key_folder "$i")"/ssh_host_*_key.pub; do echo "$name $(cut -d' ' -f1,2 "$file")"; done
  done
}

cmd_ls() {
  local i power cut shape first=1
  case ${1:-} in
    --json)
      printf '['
      for i in $(ids); do
        if is_up "$i"; then power=up; else power=down; fi
        [ -n "$first" ] || printf ','
        first=
        printf '\n  {"host":%s,"name":"h%s","address":"%s","port":%s,"user":"%s","state":"%s","host_key":"%s","kind":"%s",' \
          "$i" "$i" "$(address "$i")" "$(port "$i")" "$(login_user)" "$power" "$(fingerprint "$i")" "$KIND"
        printf '"machine_id":"%s","boot_id":"%s","cut":%s,"shape":%s}' "$(machine_id "$i")" "$(boot_id "$i")" \
          "$(json_or_null "h$i/cut")" "$(json_or_null "h$i/shape")"
      done
      [ -n "$first" ] || { echo ']'; return; }
      printf '\n]\n'
      ;;
    '')
      [ -n "$(ids)" ] || { echo "testgrid: no grid in $STATE; scripts/testgrid up 3 makes one" >&2; return; }
      printf '%-6s %-16s %-6s %-5s %-36s %-5s %s\n' HOST ADDRESS PORT STATE BOOT-ID CUT SHAPE
      for i in $(ids); do
        if is_up "$i"; then power=up; else power=down; fi
        cut=$(cat "$STATE/h$i/cut" 2> /dev/null || echo -)
        shape=$(cat "$STATE/h$i/shape" 2> /dev/null || echo -)
        printf '%-6s %-16s %-6s %-5s %-36s %-5s %s\n' "h$i" "$(address "$i")" "$(port "$i")" "$power" "$(boot_id "$i")" \
          "$cut" "$shape"
      done
      ;;
    *) wrong_usage ;;
  esac
}

boot_id() {
  if [ "$KIND" = plain ]; then cat /proc/sys/kernel/random/boot_id; else cat "$STATE/h$1/boot_id" 2> /dev/null || echo -; fi
}
machine_id() {
  if [ "$KIND" = plain ]; then cat /etc/machine-id 2> /dev/null || echo -; else cat "$STATE/h$1/fs/etc/machine-id"; fi
}
json_or_null() { if [ -f "$STATE/$1" ]; then printf '"%s"' "$(cat "$STATE/$1")"; else printf null; fi; }
