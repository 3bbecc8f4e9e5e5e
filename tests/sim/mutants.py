#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the simulator notice? Applies each one-line fault of mutants.txt to a copy of the sources, builds the simulator
with it, and runs seeds until one breaks a rule. Prints a table: mutant, seed that caught it, rule. Status 1 when one
survives, changes nothing, or does not compile.

usage: mutants.py [--only NAME] [--seeds N] [--jobs N] [--keep DIR]
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent


def read_mutants():
    for line in (HERE / "mutants.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, file, expression = (part.strip() for part in line.split(" | ", 2))
            yield name, file, expression


def copy_sources(into):
    """What is the same there already keeps its time, so that little is compiled anew."""
    files = [path for path in TOP.iterdir() if path.is_file()]
    for folder in ("src", "cmd", "tests", "completions", "man", "scripts"):
        files += [path for path in (TOP / folder).rglob("*") if path.is_file()]
    for path in files:
        target = into / path.relative_to(TOP)
        if not target.exists() or target.read_bytes() != path.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


def build(tree, jobs):
    done = subprocess.run(["cmake", "--build", tree / "build", "--target", "gridctl_sim", "-j", str(jobs)],
                          capture_output=True, text=True)
    return done.returncode == 0, done.stdout[-2000:]


def main():
    options = argparse.ArgumentParser(usage=__doc__)
    options.add_argument("--only", action="append")
    options.add_argument("--seeds", type=int, default=10_000)
    options.add_argument("--jobs", type=int, default=os.cpu_count())
    options.add_argument("--keep", help="folder for the copy and its build, used again by the next call")
    chosen = options.parse_args()
    tree = pathlib.Path(chosen.keep or tempfile.mkdtemp(prefix="gridctl-mutants-"))
    copy_sources(tree)
    if not (tree / "build" / "build.ninja").exists():
        subprocess.run(["cmake", "-S", tree, "-B", tree / "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                        "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1", "-DGRIDCTL_WERROR=OFF"], check=True,
                       stdout=subprocess.DEVNULL)
    good, text = build(tree, chosen.jobs)
    if not good:
        sys.exit("the simulator itself does not build:\n" + text)
    survivors = 0
    total = 0
    for name, file, expression in read_mutants():
        if chosen.only and name not in chosen.only:
            continue
        total += 1
        path = tree / file
        original = path.read_text()
        mutated = subprocess.run(["sed", expression], input=original, capture_output=True, text=True, check=True).stdout
        verdict = "changes nothing"
        if mutated != original:
            path.write_text(mutated)
            good, text = build(tree, chosen.jobs)
            verdict = "does not compile"
            if good:
                done = subprocess.run([tree / "build/tests/sim/gridctl_sim", "--count", str(chosen.seeds), "--quiet"],
                                      capture_output=True, text=True)
                found = re.search(r"^seed (\d+) breaks (\w+): (.*)$", done.stdout, re.M)
                if found:
                    verdict = f"{found[1]:>6}  {found[2]}  {found[3]}"
                elif done.returncode != 0:
                    verdict = f"crashes with status {done.returncode}"
                else:
                    verdict = "SURVIVES"
            path.write_text(original)
        survivors += not (verdict[:6].strip().isdigit() or verdict.startswith("crashes"))
        print(f"{name:34} {verdict}", flush=True)
    if not chosen.keep:
        shutil.rmtree(tree)
    print(f"{total - survivors} of {total} mutants caught")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
