#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each command's help begins with examples, names its options and lists its exit codes. $1 = gridctl.
set -u
failed=0
complain() { echo "$*"; failed=1; }
count=0
check() {  # check NOUN [VERB]
  local text
  text=$("$1" "${@:2}" --help) || complain "${*:2} --help fails"
  [ "$(head -1 <<<"$text")" = "Examples:" ] || complain "${*:2}: help does not begin with examples"
  grep -q "gridctl ${*:2}" <<<"$text" || complain "${*:2}: no example of itself"
  grep -q '^Exit codes:' <<<"$text" || complain "${*:2}: no exit codes"
  grep -q '^  0 ' <<<"$text" || complain "${*:2}: exit code 0 is not explained"
  awk 'length > 110 && !/^  gridctl/ { exit 1 }' <<<"$text" || complain "${*:2}: a very long line"
  count=$((count + 1))
}
for noun in $("$1" __complete "" | cut -f1); do
  case $noun in
    help) ;;
    init | doctor | completions | sim | version) check "$1" "$noun" ;;
    *) for verb in $("$1" __complete "$noun" "" | cut -f1); do check "$1" "$noun" "$verb"; done ;;
  esac
done
[ "$count" -ge 30 ] || complain "only $count commands were found"
exit $failed
