#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Red team: another local user prepares the state folder of scripts/testgrid, which root runs.
set -uo pipefail
testgrid=$1/scripts/testgrid
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

# NAME: whoever runs testgrid must neither run what the folder holds, nor go on.
refuses() {
  if GRIDCTL_TESTGRID="$folder/grid" "$testgrid" ls > "$folder/out" 2>&1; then
    echo "$1: testgrid went on: $(cat "$folder/out")"; failed=1
  fi
  if [ -e "$folder/pwned" ]; then echo "$1: testgrid ran it"; failed=1; fi
  rm -rf "$folder/grid" "$folder/pwned" "$folder/elsewhere"
}

mkdir "$folder/grid"
echo "KIND=\$(touch $folder/pwned)" > "$folder/grid/grid.conf"
refuses "a command in grid.conf"

mkdir "$folder/grid"
printf 'KIND=plain\nNET=\ntouch %s\n' "$folder/pwned" > "$folder/grid/grid.conf"
refuses "a line of its own in grid.conf"

mkdir "$folder/grid"
chmod 777 "$folder/grid"
printf 'KIND=plain\nNET=\nIMAGES=\n' > "$folder/grid/grid.conf"
refuses "a folder that others can write"

mkdir "$folder/elsewhere"
printf 'KIND=plain\nNET=\nIMAGES=\n' > "$folder/elsewhere/grid.conf"
ln -s "$folder/elsewhere" "$folder/grid"
refuses "a link in its place"

if [ "$(id -u)" = 0 ]; then
  mkdir "$folder/grid"
  printf 'KIND=plain\nNET=\nIMAGES=\n' > "$folder/grid/grid.conf"
  chown 61234 "$folder/grid"
  refuses "a folder of another user"
fi
exit $failed
