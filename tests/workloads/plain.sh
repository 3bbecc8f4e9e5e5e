#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Training without PyTorch, for busybox: the "model" is the list of the steps taken, so at the end it shows whether
# each was done exactly once: out/state must hold 1 to STEPS, each on a line of its own.
# Environment: STEPS, PACE (seconds a step takes at least), SAVE_EVERY (steps, or `told`: when gridctl's interval is over), and
#   MODE=overwrite  out/state is overwritten in place (default)
#   MODE=stepdirs   out/step-N/state and out/step-N/meta are added, all but the newest KEEP removed
#   MODE=torn       like overwrite, but each line is written by itself during WRITE_PACE seconds
#   COMMIT=1        say "whole now" by out/.commit after each save
# SIGALRM: the steps take no time any more.
# shellcheck disable=SC2012  # the names are ours
set -eu
STEPS=${STEPS:-200} PACE=${PACE:-0.05} SAVE_EVERY=${SAVE_EVERY:-20} MODE=${MODE:-overwrite} KEEP=${KEEP:-3}
COMMIT=${COMMIT:-0} WRITE_PACE=${WRITE_PACE:-0.05}

newest() { ls out | sed -n 's/^step-//p' | sort -n | tail -n 1; }

save() {  # STEP
  [ "$COMMIT" = 0 ] || rm -f out/.commit
  case $MODE in
    overwrite) cat steps > out/state ;;
    torn)
      echo "writing step $1"
      : > out/state
      while read -r line; do
        echo "$line" >> out/state
        sleep "$WRITE_PACE"
      done < steps
      echo end >> out/state
      ;;
    stepdirs)
      mkdir -p "out/step-$1"
      cp steps "out/step-$1/state"
      echo "step=$1" > "out/step-$1/meta"
      ls out | sed -n 's/^step-//p' | sort -rn | tail -n "+$((KEEP + 1))" | while read -r old; do rm -r "out/step-$old"; done
      ;;
  esac
  [ "$COMMIT" = 0 ] || : > out/.commit
  echo "saved step $1"
}

is_due() {
  case $SAVE_EVERY in
    told) [ $(($(date +%s) - saved_at)) -ge "$(cut -d. -f1 "$GRIDCTL_CKPT_INTERVAL_FILE")" ] ;;
    *) [ $((step % SAVE_EVERY)) = 0 ] ;;
  esac
}

trap 'PACE=0' ALRM
mkdir -p out
: > steps
saved_at=$(date +%s)
case $MODE in
  overwrite) [ ! -f out/state ] || cp out/state steps ;;
  torn)
    if [ -f out/state ]; then
      [ "$(tail -n 1 out/state)" = end ] || { echo "torn checkpoint"; exit 3; }
      sed '$d' out/state > steps
    fi
    ;;
  stepdirs)
    last=$(newest)
    if [ -n "$last" ]; then
      [ "$(cat "out/step-$last/meta")" = "step=$last" ] || { echo "torn checkpoint"; exit 3; }
      cp "out/step-$last/state" steps
    fi
    ;;
  *) echo "unknown MODE $MODE" >&2; exit 2 ;;
esac

step=$(($(wc -l < steps)))
[ "$step" = 0 ] || echo "resumed after step $step"
while [ "$step" -lt "$STEPS" ]; do
  step=$((step + 1))
  echo "$step" >> steps
  echo "step $step loss $((1000000 / step))"
  if is_due || [ "$step" = "$STEPS" ]; then
    save "$step"
    saved_at=$(date +%s)
  fi
  sleep "$PACE"
done
echo "done"
