#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The bash completion completes nouns, verbs, options, values, jobs and providers. $1 = gridctl, $2 = sources.
set -u
PATH="$(dirname "$1"):$PATH"
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT
export GRIDCTL_STATE="$state/state"
source "$2/completions/gridctl.bash"
failed=0

# complete_line LINE: what bash would offer.
complete_line() {
  COMP_LINE="$1" COMP_POINT=${#1} COMP_WORDBREAKS=$' \t\n"\'><=;|&(:' COMPREPLY=()
  _gridctl
  printf '%s\n' "${COMPREPLY[@]}"
}
expect() {  # expect LINE CANDIDATE
  complete_line "$1" | grep -qxF -- "$2" || { echo "'$1' does not offer '$2', but: $(complete_line "$1" | tr '\n' ' ')"; failed=1; }
}
refuse() {
  ! complete_line "$1" | grep -qxF -- "$2" || { echo "'$1' offers '$2'"; failed=1; }
}

expect "gridctl " "job"
expect "gridctl pro" "provider"
expect "gridctl job " "submit"
expect "gridctl job su" "submit"
refuse "gridctl job su" "show"
refuse "gridctl " "__docs"
expect "gridctl job submit --dry" "--dry-run"
expect "gridctl job watch --time" "--timeout"
expect "gridctl provider register ada h --engine " "podman"
expect "gridctl provider register ada h --engine=po" "podman"
expect "gridctl --color " "never"
expect "gridctl completions z" "zsh"
expect "gridctl job show " "@last"
cd "$state" && touch train.yaml
expect "gridctl job submit tr" "train.yaml"
exit $failed
