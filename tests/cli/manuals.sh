#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every manual page is whole, free of complaints by mandoc and groff, refers to pages that exist, and can be read by
# `gridctl help`. $1 = gridctl, $2 = folder of the built pages, $3 = sources.
set -u
failed=0
complain() { echo "$*"; failed=1; }

count=0
for page in "$2"/gridctl*.[1-8]; do
  name=$(basename "$page")
  count=$((count + 1))
  complaints=$(mandoc -T lint "$page" 2>&1)
  [ -z "$complaints" ] || complain "$complaints"
  if command -v groff > /dev/null; then
    complaints=$(groff -K utf8 -t -ww -man -Tutf8 "$page" 2>&1 > /dev/null)
    [ -z "$complaints" ] || complain "$name: $complaints"
  fi
  for section in NAME "SEE ALSO"; do
    grep -q "^\.SH $section" "$page" || complain "$name has no section $section"
  done
  # references: name(N), where the section stands in bold or not
  text=$("$1" help "$name") || complain "'gridctl help $name' fails"
  [ "$text" = "$(cat "$page.txt")" ] || complain "'gridctl help $name' prints something else than the page"
  while read -r reference; do
    target=${reference%)}
    [ -e "$2/${target/(/.}" ] || complain "$name refers to $reference, which does not exist"
  done < <(grep -oE 'gridctl(-[a-z-]+)?\([1-8]\)' <<< "$text" | sort -u)
done
[ "$count" -ge 14 ] || complain "only $count pages were built"

# The protocol's page names every field that the sources put on the wire.
while read -r field; do
  grep -qE "\b$field\b" "$3/man/gridctl-agent.7.md" || complain "gridctl-agent(7) does not explain the field '$field'"
done < <(grep -ohE '\{"[a-z_0-9]+",' "$3"/src/wire/*.cpp "$3"/src/base/inventory.cpp | tr -d '{",' | sort -u)

# What the pages name in the sources exists.
while read -r file; do
  [ -e "$3/$file" ] || complain "the documents name $file, which does not exist"
done < <(grep -ohE '\b(src|tests|scripts|man|cmd)/[A-Za-z0-9_./-]+[A-Za-z0-9]' "$3"/{man/*,README,CHANGELOG}.md | sort -u)
exit $failed
