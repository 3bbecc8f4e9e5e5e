#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the tests notice? Draws small faults over all rooms by machine, builds once with every one of them behind a switch
(mutant.hpp), and runs the cheapest tests first until one fails: the room's own unit tests, those of rooms that use it, the
simulator, and with --wide the tests of commands, of real connections, of the agent, and a failover on real hosts.
Prints a line for each mutant and a table by room; those that nobody noticed come last, with their place.

usage: mutate.py [--seed N] [--count N] [--rooms R,...] [--minutes M] [--work DIR] [--sim-seconds S] [--jobs N] [--wide]
                 [--only N,...] [--list]

  --seed N         which mutants are drawn (default: of the clock)
  --count N        how many (default 200)
  --rooms R,...    only in these folders of src
  --minutes M      stop after so long; what was not run is said
  --work DIR       where the changed sources and the build lie (default: build/mutants); kept, so that a run goes on
  --sim-seconds S  how long the simulator looks for a seed that notices one (default 20)
  --jobs N         how many are judged at once (default: one for each core)
  --wide           what unit tests and simulator do not notice meets larger tests, too (minutes each; as root)
  --only N,...     judge these of the drawn ones
  --list           show what would be drawn

Kinds: comparison (< as <=, == as !=, …), logic (one side of && and || decides alone), off by one, condition (always,
never, inverted), statement (left out: a sync or an append among them), arguments (two names swapped).
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import threading
import time

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
HERE = pathlib.Path(__file__).resolve().parent
# Tables of data, drivers of hardware that is not here, and what only a person on a terminal sees.
LEFT_OUT = re.compile(r"src/(gpubench/|ui/|probe/data|sched/catalogue/data)|_windows|embedded_")
COMPARISONS = {"<": ("less", ("less_equal", "greater_equal")), "<=": ("less_equal", ("less", "greater")),
               ">": ("greater", ("greater_equal", "less_equal")), ">=": ("greater_equal", ("greater", "less")),
               "==": ("equal", ("not_equal",)), "!=": ("not_equal", ("equal",))}


def blanked(text):
    """The same text with comments, strings, characters and preprocessor lines as spaces: positions stay."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#[^\n]*(?:\\\n[^\n]*)*',
                         re.DOTALL | re.MULTILINE)
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def closing(text, at):
    """Of the bracket at `at`, or -1."""
    depth = 0
    for i in range(at, min(len(text), at + 2000)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if depth == 0:
            return i
    return -1


def sites(text, rng):
    """(kind, begin, end, what it becomes with {n} for its number, words) of every fault that could be planted."""
    code = blanked(text)
    for found in re.finditer(r"(?<=[\w)\]]) (<|<=|>|>=|==|!=) (?=[\w(*&!\"'-])", code):
        line = code[code.rfind("\n", 0, found.start()) + 1:code.find("\n", found.end())]
        if re.search(r"\btemplate\b|\boperator\b|static_assert|constexpr|requires|case ", line):
            continue
        op = found.group(1)
        name, others = COMPARISONS[op]
        other = rng.choice(others)
        yield ("comparison", found.start(), found.end(),
               f" {op} gridctl_mutants::Instead<{{n}}, gridctl_mutants::Operator::{name}, gridctl_mutants::Operator::{other}>{{{{}}}} {op} ",
               f"{op} as {other}")
    for found in re.finditer(r" (&&|\|\|) ", code):
        line = code[code.rfind("\n", 0, found.start()) + 1:code.find("\n", found.end())]
        if re.search(r"requires|static_assert|constexpr|\bauto&&|concept", line) or "template" in line:
            continue
        alone = "false" if found.group(1) == "&&" else "true"
        yield ("logic", found.start(), found.end(),
               f" {found.group(1)} {'!' if alone == 'false' else ''}gridctl_mutants::on({{n}}) {found.group(1)} ", f"{found.group(1)} {alone}")
    for found in re.finditer(r"(?<=[\w)\]]) ([+-]) 1\b(?!\.|\d|')", code):
        yield ("off by one", found.start(), found.end(), f" {found.group(1)} (gridctl_mutants::on({{n}}) ? 0 : 1)", "1 as 0")
    for found in re.finditer(r"\bif \(", code):
        end = closing(code, found.end() - 1)
        inside = text[found.end():end]
        if end < 0 or ";" in inside or re.search(r"^(const )?[\w:<>]+[&*]? \w+ = |\bauto\b", inside):
            continue
        form, words = rng.choice((("false", "never"), ("true", "always"), ("!", "inverted")))
        became = (f"gridctl_mutants::on({{n}}) != static_cast<bool>({inside.replace('{', '{{').replace('}', '}}')})" if form == "!" else
                  f"gridctl_mutants::on({{n}}) ? {form} : static_cast<bool>({inside.replace('{', '{{').replace('}', '}}')})")
        yield ("condition", found.end(), end, became, words)
    for found in re.finditer(r"^( +)((?:TRY\()?[\w.>:-]+(?:->|\.|::)?\w+\([^;{}]*\);|[\w.>-]+ (?:\+=|-=|=) [^;{}]*;|\+\+[\w.>-]+;)$", code, re.MULTILINE):
        statement = text[found.start(2):found.end(2)]
        if re.match(r"(return|delete|throw|co_|using|goto|static|const|auto)\b|TRY_ASSIGN", statement):
            continue
        if re.match(r"[A-Z]\w*\(|\w+(::\w+)*<", statement) and not statement.startswith("TRY("):
            continue
        yield ("statement", found.start(2), found.end(2),
               "if (!gridctl_mutants::on({n})) {{ " + statement.replace("{", "{{").replace("}", "}}") + " }}", "left out")
    for found in re.finditer(r"\b\w+\((\w+), (\w+)\)", code):
        a, b = found.group(1), found.group(2)
        line = code[code.rfind("\n", 0, found.start()) + 1:code.find("\n", found.end())]
        if a == b or a[0].isdigit() or b[0].isdigit() or not re.match(r" ", line) or "(" + a + ", " + b + ") {" in line:
            continue
        name = text[found.start():found.start(1)]
        yield ("arguments", found.start(1), found.end(2), f"gridctl_mutants::on({{n}}) ? {b} : {a}, gridctl_mutants::on({{n}}) ? {a} : {b}", f"swapped in {name})")


Mutant = collections.namedtuple("Mutant", "number path kind line words begin end became")


def draw(options):
    """Controls in turn, files and places at random: small rooms get as many as large ones."""
    rng = random.Random(options.seed)
    rooms = collections.defaultdict(list)
    for path in sorted((TOP / "src").rglob("*.cpp")):
        name = str(path.relative_to(TOP))
        if LEFT_OUT.search(name):
            continue
        room = str(path.parent.relative_to(TOP / "src"))
        if options.rooms and room.split("/")[0] not in options.rooms and room not in options.rooms:
            continue
        text = path.read_text()
        for kind, begin, end, became, words in sites(text, rng):
            rooms[room].append((name, kind, begin, end, became, text.count("\n", 0, begin) + 1, words))
    chosen, taken = [], collections.defaultdict(list)
    names = sorted(rooms)
    while len(chosen) < options.count and names:
        for room in list(names):
            if not rooms[room]:
                names.remove(room)
                continue
            name, kind, begin, end, became, line, words = rooms[room].pop(rng.randrange(len(rooms[room])))
            if any(begin < e + 40 and b - 40 < end for b, e in taken[name]):
                continue  # faults of one place would change each other
            taken[name].append((begin, end))
            chosen.append(Mutant(len(chosen) + 1, name, kind, line, words, begin, end, became))
            if len(chosen) == options.count:
                break
    return chosen


def write_if_other(target, data, mode):
    if not target.exists() or target.read_bytes() != data:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(mode)


def write_tree(work, mutants, dropped):
    """Copies what has changed of the sources, with the mutants in; unchanged files keep their age, so that ninja sees."""
    tree = work / "tree"
    by_file = collections.defaultdict(list)
    for mutant in mutants:
        if mutant.number not in dropped:
            by_file[mutant.path].append(mutant)
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=TOP, check=True, capture_output=True, text=True)
    for name in listed.stdout.splitlines():
        path = TOP / name
        if not path.is_file() or path.is_symlink():
            continue
        data = path.read_bytes()
        if name in by_file:
            text = data.decode()
            for mutant in sorted(by_file[name], key=lambda one: -one.begin):
                text = text[:mutant.begin] + mutant.became.format(n=mutant.number) + text[mutant.end:]
            # What it includes as a system's header is compiled without warnings.
            write_if_other(tree / f"{name}.inc", f"#pragma GCC system_header\n#line 1\n{text}".encode(), 0o644)
            data = f'#include "{HERE}/mutant.hpp"\n#include "{path.name}.inc"\n'.encode()
        write_if_other(tree / name, data, path.stat().st_mode)
    return tree


def build(work, mutants, wider):
    """Builds, and drops what does not compile: swapped arguments of two types, a comparison in a constant."""
    # A run that goes on knows those, as long as the same ones are drawn.
    drawn = " ".join(f"{one.path}:{one.begin}:{one.became}" for one in mutants)
    note = work / "left_out"
    before = note.read_text().split("\n", 1) if note.exists() else ["", ""]
    dropped = {int(word) for word in before[0].split()} if before[1] == drawn else set()
    for _ in range(20):
        tree = write_tree(work, mutants, dropped)
        # As the release build, so that ccache knows what has not changed.
        folder = tree / "build" / "release"
        if not (folder / "build.ninja").exists():
            subprocess.run(["cmake", "--preset", "release"], cwd=tree, check=True, stdout=subprocess.DEVNULL)
        rooms = {one.path.split("/")[1] for one in mutants}
        programs = sorted({program for room in rooms for program in programs_of(room, tree)})
        done = subprocess.run(["cmake", "--build", folder, "--target", *programs, "gridctl_sim", "concerns_test", "trust_test", *wider, "--", "-k", "0"],
                              capture_output=True, text=True)
        if done.returncode == 0:
            return dropped
        said = done.stdout + done.stderr
        bad = set()
        for path, line in re.findall(r"(src/[\w/]+\.cpp)(?:\.inc)?:(\d+):\d+: (?:error|  +required from)", said):
            bad |= {one.number for one in mutants if one.path == path and abs(one.line - int(line)) <= 2 and one.number not in dropped}
        if not bad:
            for block in re.findall(r"FAILED: \S*?(src_\S+|\S+\.cpp)\.o", said):
                bad |= {one.number for one in mutants if one.path.endswith(block.split("/")[-1]) and one.number not in dropped}
        if not bad:
            sys.exit("the build failed for another reason than a mutant:\n" + said[-3000:])
        dropped |= bad
        note.write_text(" ".join(map(str, sorted(dropped))) + "\n" + drawn)
        print(f"{len(bad)} do not compile and are left out", flush=True)
    sys.exit("the build does not come to an end")


# Controls whose tests notice what is wrong with one that they stand on.
ABOVE = {"base": ["wire", "job", "config"], "os": ["store", "agent"], "wire": ["agent", "control"], "crypto": ["store", "transfer"],
         "db": ["registry"], "http": ["transfer"], "ssh": ["control"], "job": ["config", "registry", "control"],
         "sched": ["forecast", "config", "control"], "plan": ["config"], "probe": ["agent"], "store": ["transfer", "agent"],
         "whole": ["agent"], "registry": ["control"], "transfer": ["agent", "control"], "config": ["control"]}


def programs_of(room, tree):
    """Names of test programs, the cheapest first: the room's own, then those of rooms that stand on it."""
    names = []
    for name in [room] + ABOVE.get(room, []):
        listed = tree / "tests" / "unit" / name / "CMakeLists.txt"
        if listed.exists():
            names += re.findall(r"^ *gridctl_test\((\w+)", listed.read_text(), re.MULTILINE)
    return names


def tests_for(path, folder):
    room = path.split("/")[1]
    found = [next(iter(folder.glob(f"tests/unit/*/{name}")), None) for name in programs_of(room, folder.parent.parent)]
    if room in ("agent", "control", "job", "sched", "registry"):
        found += [folder / "tests" / "sim" / name for name in ("trust_test", "concerns_test")]
    return [program for program in found if program is not None and program.exists()]


# A mutant may send a signal to other processes than were meant: as root, it gets a pid namespace of its own to do that in.
APART = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", '"$@"; exit $?', "sh", "timeout", "100000"]


def run(command, limit, number, folder):
    """Whether it fails, and by what. A mutant that never ends is noticed, too."""
    if os.geteuid() == 0 and not str(command[0]).endswith("/isolated"):
        command = [*APART, *command]
    environment = dict(os.environ, MUTANT_OF_GRIDCTL=str(number), GRIDCTL=str(folder / "cmd" / "gridctl"), GTEST_BREAK_ON_FAILURE="0", GTEST_FAIL_FAST="1", GTEST_BRIEF="1")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder, env=environment, text=True,
                               errors="replace", start_new_session=True)
    try:
        said, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return "never ends"
    if process.returncode == 0:
        return ""
    failed = re.search(r"\[  FAILED  \] (\S+)|broke (\S+)|seed (\d+)", said)
    return failed.group(0).replace("[  FAILED  ] ", "") if failed else f"status {process.returncode}"


def name_of(command):
    return " ".join(pathlib.Path(word).name for word in command if not str(word).endswith(("isolated", "python3", "-B", "agent_suite")))


class Baseline:
    """How long each command takes without a fault, and which of its tests fail already: those notice nothing."""

    def __init__(self, folder):
        self.folder, self.known, self.lock = folder, {}, threading.Lock()

    def of(self, command):
        with self.lock:
            return self.measured(command)

    def measured(self, command):
        name = name_of(command)
        if name not in self.known:
            started = time.monotonic()
            failed = run(command, 600, 0, self.folder)
            self.known[name] = (time.monotonic() - started, failed)
            if failed:
                print(f"{name} fails without a mutant ({failed}): not used", flush=True)
        return self.known[name]


# Of files whose path has these words; all others have the first two.
SCENARIOS = (("", "first_job"), ("", "failover"), ("copies|remote|host_remote", "copies"), ("gang|member|rank|peer", "gang"),
             ("elastic", "elastic"), ("input|upload", "uploads"), ("whole/|foreign", "whole"), ("engine", "engines"),
             ("network|link", "links"), ("health", "health"), ("bench", "bench"), ("standby", "standby"), ("result|freight", "outputs"))


def wider_tests(path, folder):
    """Commands of larger tests, the cheapest first."""
    room, tests, integration = path.split("/")[1], folder / "tests", TOP / "tests" / "integration"
    scenario = [integration / "isolated", sys.executable, "-B"]
    if room in ("ssh", "control", "crypto", "os"):
        yield from ([tests / "contract" / name] for name in ("transport_test", "agent_deploy_test", "dir_backend_test"))
    if room not in ("agent", "wire"):
        yield [tests / "cli" / "cli_test"]
    if room in ("agent", "probe", "store", "whole", "transfer", "wire", "os", "job", "crypto", "xml"):
        for engine in ("process", "podman") if room == "agent" else ("process",):
            yield [integration / "isolated", integration / "agent_suite", tests / "integration" / "agent_integration_test", engine]
    if room not in ("probe", "plan", "forecast", "ui"):
        yield from ([*scenario, integration / f"{name}_test.py"] for words, name in SCENARIOS if re.search(words, path))


WIDER = ["transport_test", "agent_deploy_test", "dir_backend_test", "cli_test", "agent_integration_test", "gridctl"]


def judge(mutant, folder, baseline, options):
    if found := noticed_by([[program] for program in tests_for(mutant.path, folder)], mutant, folder, baseline):
        return found
    simulator = folder / "tests" / "sim" / "gridctl_sim"
    if simulator.exists() and re.match(r"src/(agent|control|job|sched|store|wire|registry|whole|transfer)/", mutant.path):
        if found := run([simulator, "--seconds", str(options.sim_seconds)], options.sim_seconds * 10 + 60, mutant.number, folder):
            return f"simulator: {found}"
    return noticed_by(wider_tests(mutant.path, folder), mutant, folder, baseline) if options.wide else ""


def noticed_by(commands, mutant, folder, baseline):
    for command in commands:
        took, broken = baseline.of(command)
        if not broken and (found := run(command, 30 + 5 * took, mutant.number, folder)):
            return f"{name_of(command)}: {found}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--rooms", type=lambda text: text.split(","), default=[])
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--work", type=pathlib.Path, default=TOP / "build" / "mutants")
    parser.add_argument("--sim-seconds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--wide", action="store_true")
    parser.add_argument("--only", type=lambda text: [int(word) for word in text.split(",")], default=[])
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    mutants = draw(options)
    print(f"seed {options.seed}: {len(mutants)} mutants in {len({one.path for one in mutants})} files", flush=True)
    if options.list:
        for one in mutants:
            print(f"{one.number:4} {one.path}:{one.line}  {one.kind}: {one.words}")
        return 0
    options.work.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    dropped = build(options.work, mutants, WIDER if options.wide else [])
    print(f"built in {time.monotonic() - started:.0f} s", flush=True)
    folder = options.work / "tree" / "build" / "release"
    baseline = Baseline(folder)
    noticed, survived, left = collections.Counter(), collections.defaultdict(list), 0
    order = [one for one in mutants if one.number not in dropped and (not options.only or one.number in options.only)]
    random.Random(options.seed).shuffle(order)

    def judged(one):
        in_time = not options.minutes or time.monotonic() - started <= options.minutes * 60
        return judge(one, folder, baseline, options) if in_time else None

    pool = concurrent.futures.ThreadPoolExecutor(options.jobs)
    for one, by in zip(order, pool.map(judged, order)):
        room = "/".join(one.path.split("/")[1:-1])
        if by is None:
            left += 1
            continue
        if by:
            noticed[room] += 1
        else:
            survived[room].append(one)
        print(f"{one.number:4} {one.path}:{one.line} {one.kind} ({one.words}): {by or 'NOBODY'}", flush=True)
    print("\nroom                 noticed  of")
    for room in sorted(set(noticed) | set(survived)):
        print(f"{room:20} {noticed[room]:7}  {noticed[room] + len(survived[room]):2}")
    all_of = sum(noticed.values()) + sum(map(len, survived.values()))
    print(f"in all {sum(noticed.values())} of {all_of} ({100 * sum(noticed.values()) / max(all_of, 1):.0f} %)" + (f"; {left} not run for lack of time" if left else ""))
    for room in sorted(survived):
        for one in survived[room]:
            print(f"nobody: {one.path}:{one.line} {one.kind} ({one.words})")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
