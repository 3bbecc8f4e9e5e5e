#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Training whose every step shows: the "model" is a chain of hashes, each step made of the one before, so that a step
# left out, done twice or taken from a torn or foreign checkpoint changes all that follow. out/state holds "STEP HASH"
# of each step; the last line of the output is "result HASH".
# Environment: SEED (where the chain begins), STEPS, PACE (seconds a step takes at least), SAVE_EVERY (steps), COMMIT=1
# (say "whole now" after each save), and LEDGER, a folder of the host: there each attempt notes when it held which GPU.
set -u

gpu=-
[ "${GRIDCTL_GPUS_PER_NODE:-0}" = 0 ] || gpu=${CUDA_VISIBLE_DEVICES:-none}
book=$LEDGER/$GRIDCTL_JOB_ID.$GRIDCTL_EPOCH

# The machine's uptime is one clock for all hosts of a testgrid, which share a kernel.
note() {  # WORD
  read -r now _ < /proc/uptime
  echo "$now $gpu $1 $step" >> "$book"
}

# A full disk may be emptied: what cannot be saved is tried again.
save() {
  rm -f out/.commit
  until printf '%s' "$history" > out/new && mv out/new out/state && { [ "$COMMIT" = 0 ] || : > out/.commit; }; do
    echo "cannot save step $step"
    note cannot-save
    sleep 1
  done 2> /dev/null
  echo "saved step $step"
}

mkdir -p out
step=0 hash=$SEED history=
if [ -f out/state ]; then
  while read -r next link; do
    step=$((step + 1)) hash=$link
    if [ "$next" != "$step" ] || [ ${#hash} != 64 ]; then echo "torn checkpoint: line $step is '$next $hash'"; exit 3; fi
    history="$history$next $hash
"
  done < out/state
  echo "resumed after step $step"
fi
note begin
while [ "$step" -lt "$STEPS" ]; do
  step=$((step + 1))
  hash=$(echo "$hash $step" | sha256sum)
  hash=${hash%% *}
  history="$history$step $hash
"
  note step
  echo "step $step"
  if [ $((step % SAVE_EVERY)) = 0 ] || [ "$step" = "$STEPS" ]; then save; fi
  sleep "$PACE"
done
note end
echo "result $hash"
