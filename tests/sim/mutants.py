#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the simulator notice? Applies each one-line fault of mutants.txt to a copy of its file, links the simulator with
that, and runs seeds until one breaks a rule; or, where the line names a unit test, links and runs that one. Prints a
table: mutant, seed that caught it, rule. Status 1 when one survives, changes nothing, or does not compile.

usage: mutants.py [--only NAME]... [--seeds N] [--jobs N] [--keep DIR] [--table FILE]
"""
import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
NEVER = 1 << 62  # not caught; in an order of seeds
SIMULATOR = "gridctl_sim"
TEST_PATIENCE = 600  # seconds
ONLY = {"bag-": ["--bags"], "service-": ["--services"]}  # by the beginning of a name: which seeds
ONLY |= {f"{theme}-": ["--about", theme]
         for theme in ("spending", "refusals", "standbys", "deadlines", "ends", "commits", "hangs", "images")}


def read_mutants():
    for line in (HERE / "mutants.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, file, expression, *test = (part.strip() for part in line.split(" | "))
            yield name, file, expression, "".join(test)


def state_of_sources():
    """What a row of a kept table is worth: it holds for the very sources that the simulator is made of."""
    digest = hashlib.sha256()
    for folder in (TOP / "src", HERE):
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".cpp", ".hpp", ".csv"):
                digest.update(str(path.relative_to(TOP)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


class Table:
    """Verdicts, kept in a file as they come, so that a run that was broken off goes on where it was."""

    def __init__(self, path, state):
        self.path, self.state, self.rows = path, state, {}
        if path and path.exists():
            for line in path.read_text().splitlines():
                name, key, verdict = line.split("\t", 2)
                self.rows[name] = (key, verdict)

    @staticmethod
    def key(state, expression, seeds):
        return f"{state}-{hashlib.sha256(expression.encode()).hexdigest()[:6]}-{seeds}"

    def find(self, name, key):
        known, verdict = self.rows.get(name, ("", ""))
        return verdict if known == key else None

    def seed_before(self, name):
        """By an older state, too: whatever was caught early comes first."""
        return seed_of(self.rows.get(name, ("", ""))[1])

    def put(self, name, key, verdict):
        self.rows[name] = (key, verdict)
        if self.path:
            text = "".join(f"{name}\t{key}\t{verdict}\n" for name, (key, verdict) in self.rows.items())
            part = self.path.with_name(self.path.name + ".part")
            part.write_text(text)
            part.replace(self.path)


def seed_of(verdict):
    first = verdict.split()[:1]
    return int(first[0]) if first and first[0].isdigit() else NEVER


def is_caught(verdict):
    return seed_of(verdict) < NEVER or verdict.startswith(("crashes", "by "))


class Build:
    """The programs as they are, and beside them one file compiled anew for each mutant. The sources are left alone."""

    def __init__(self, folder, jobs, programs):
        self.folder = folder
        if not (folder / "build.ninja").exists():
            options = ["-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1",
                       "-DGRIDCTL_WERROR=OFF", "-DGRIDCTL_UNITY=OFF"]
            subprocess.run(["cmake", "-S", TOP, "-B", folder, "-G", "Ninja", *options], check=True,
                           stdout=subprocess.DEVNULL)
        done = subprocess.run(["cmake", "--build", folder, "--target", *programs, "-j", str(jobs)],
                              capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit("they do not build without a fault:\n" + done.stdout[-2000:])
        self.commands = {program: self.commands_of(program) for program in programs}

    def commands_of(self, program):
        return subprocess.run(["ninja", "-C", self.folder, "--quiet", "-t", "commands", program],
                              capture_output=True, text=True, check=True).stdout.splitlines()

    def run(self, command):
        return subprocess.run(command, shell=True, cwd=self.folder, capture_output=True).returncode == 0

    def sound(self, program):
        """Where it lies without a fault."""
        return self.folder / re.search(r" -o (\S+)", self.commands[program][-1])[1]

    def unit_of(self, source, program):
        """The file by which it is compiled: itself, or one that includes it."""
        units = [pathlib.Path(line.rpartition(" -c ")[2]) for line in self.commands[program] if " -c " in line]
        if source in units:
            return source
        return next(unit for unit in units if unit.suffix == ".cxx" and f'"{source}"' in unit.read_text())

    def plant(self, name, file, expression, program):
        """The program with this fault, or the word for what went wrong."""
        original = (TOP / file).read_text()
        mutated = subprocess.run(["sed", expression], input=original, capture_output=True, text=True,
                                 check=True).stdout
        if mutated == original:
            return None, "changes nothing"
        place = self.folder / "planted" / name
        (place / file).parent.mkdir(parents=True, exist_ok=True)
        (place / file).write_text(mutated)
        # A header's fault is looked for in the file of its own name.
        source = TOP / re.sub(r"\.hpp$", ".cpp", file)
        compiled = source if file.endswith(".hpp") else place / file
        unit = self.unit_of(source, program)
        if unit != source:  # a room that is compiled as one
            compiled = place / unit.name
            compiled.write_text(unit.read_text().replace(f'"{source}"', f'"{place / file}"'))
        command = next(line for line in self.commands[program] if line.endswith(f" -c {unit}"))
        command = re.sub(r" -M[DTF]( \S+\.[do])?(?= )", "", command.removesuffix(f" -c {unit}"))
        command = re.sub(r" -o \S+$", f" -o {place}/mutant.o -c {compiled}", command)
        command = command.replace(" -I", f" -I{place}/src -I", 1)
        # Before the libraries: their own copy of the file is not asked for any more.
        link = re.sub(r" -o \S+", f" {place}/mutant.o -o {place}/{program}", self.commands[program][-1], count=1)
        if not self.run(command) or not self.run(link):
            return None, "does not compile"
        return place / program, ""


def run_seeds(simulator, seeds, name):
    only = [option for word, options in ONLY.items() if name.startswith(word) for option in options]
    words = [simulator, "--count", str(seeds), "--quiet", *only]
    done = subprocess.run(words, capture_output=True, text=True)
    simulator.unlink()
    found = re.search(r"^seed (\d+) breaks (\w+): (?:\2: )?(.*)$", done.stdout, re.M)
    if found:
        return f"{found[1]:>6}  {found[2]}  {found[3]}"
    if -done.returncode in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        return "was stopped from outside"
    return "SURVIVES" if done.returncode == 0 else f"crashes with status {done.returncode}"


def failure_of(program, chosen):
    """The first of the chosen tests that fails; empty: all pass."""
    try:
        done = subprocess.run([program, "--gtest_brief=1", f"--gtest_filter={chosen or '*'}"], capture_output=True,
                              text=True, errors="replace", timeout=TEST_PATIENCE)
    except subprocess.TimeoutExpired:
        return "it never ends"
    failed = re.search(r"\[  FAILED  \] ([\w./]+)", done.stdout)
    return "" if done.returncode == 0 else failed[1] if failed else f"status {done.returncode}"


def run_test(program, sound, chosen):
    if failure := failure_of(sound, chosen):
        return f"the test fails also without it: {failure}"
    failure = failure_of(program, chosen)
    program.unlink()
    return f"by {program.name}: {failure}" if failure else "SURVIVES"


def main():
    options = argparse.ArgumentParser(usage=__doc__)
    options.add_argument("--only", action="append")
    options.add_argument("--seeds", type=int, default=10_000)
    options.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many are looked at at once")
    options.add_argument("--keep", help="build folder, used again by the next call")
    options.add_argument("--table", type=pathlib.Path,
                         help="file for the verdicts; what it has for these very sources is not run again")
    chosen = options.parse_args()
    folder = pathlib.Path(chosen.keep or tempfile.mkdtemp(prefix="gridctl-mutants-")).resolve()
    table = Table(chosen.table, state_of_sources())
    wanted = [(*mutant, Table.key(table.state, mutant[2], chosen.seeds)) for mutant in read_mutants()
              if not chosen.only or mutant[0] in chosen.only]
    # A unit test takes seconds, and is no part of what a row holds for.
    missing = [mutant for mutant in wanted if mutant[3] or table.find(mutant[0], mutant[4]) is None]
    missing.sort(key=lambda mutant: table.seed_before(mutant[0]))
    programs = sorted({mutant[3].partition(":")[0] or SIMULATOR for mutant in missing})
    build = Build(folder, chosen.jobs, programs) if programs else None

    def judge(mutant):
        name, file, expression, test, key = mutant
        binary, _, tests = test.partition(":")
        program, problem = build.plant(name, file, expression, binary or SIMULATOR)
        if problem:
            return name, key, problem
        return name, key, run_test(program, build.sound(binary), tests) if test else run_seeds(program, chosen.seeds, name)

    with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(judge, mutant) for mutant in missing]):
            name, key, verdict = done.result()
            table.put(name, key, verdict)
            print(f"{name:34} {verdict}", flush=True)
    if not chosen.keep:
        shutil.rmtree(folder)
    verdicts = {mutant[0]: table.find(mutant[0], mutant[4]) for mutant in wanted}
    print(f"\nsources {table.state}, {chosen.seeds} seeds each")
    for name, verdict in sorted(verdicts.items(), key=lambda row: (not is_caught(row[1]), seed_of(row[1]), row[0])):
        print(f"{name:34} {verdict}")
    caught = sum(is_caught(verdict) for verdict in verdicts.values())
    print(f"{caught} of {len(verdicts)} mutants caught")
    return 0 if caught == len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
