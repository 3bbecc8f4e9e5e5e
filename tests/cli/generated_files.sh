#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The manual pages and completions in the repository are those that the program makes. $1 = gridctl, $2 = sources.
set -u
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
"$1" __docs man "$made/man" && "$1" __docs completions "$made/completions" || exit 1
failed=0
for file in "$made"/man/* "$made"/completions/*; do
  committed="$2/$(basename "$(dirname "$file")")/$(basename "$file")"
  if ! diff -u "$committed" "$file"; then
    echo "$committed is out of date: run 'gridctl __docs man man && gridctl __docs completions completions'"
    failed=1
  fi
done
exit $failed
