#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills the programs beside it at random instants and restores what the agent had taken by then.

    tests/programs/kills.py [--kills N] [--python PYTHON] [--watch PROGRAM_WATCH] [--seed N] [--long] [NAME…]

Each program first runs undisturbed. Then it runs again in pieces: at a random moment of its steps all its processes get
SIGKILL, as by a host's power loss; the folder that it saves into becomes exactly the newest checkpoint that was whole by then (a
provisional one only where there is no other), and it is started anew. Every line `step N loss X` must be that of the
undisturbed run, and it must end with `done`. Programs whose packages PYTHON lacks are left out with a word.

`program_watch` is the agent's own watch of a checkpoint directory (target program_watch). Prints a line for each program,
exits 1 when any resume was wrong.
"""
import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
NEEDS = {"two_files": "json", "plain_torch": "torch", "trainer": "transformers", "accelerate_loop": "accelerate",
         "lightning_loop": "lightning", "dcp_loop": "torch", "orbax_loop": "orbax.checkpoint", "keras_loop": "keras",
         "sb3_ppo": "stable_baselines3", "xgboost_loop": "xgboost"}
SAMPLE = ["two_files"]  # needs nothing but Python
LINE = re.compile(r"^step (\d+) loss (\S+)$", re.MULTILINE)
RUN_MAX = 300  # seconds of one piece


class Run:
    """One life of a program, with the agent's watch beside it."""

    def __init__(self, python, watch, name, folder, environment):
        self.folder = folder
        os.makedirs(os.path.join(folder, "out"), exist_ok=True)
        self.watch = subprocess.Popen([watch, folder, "out"], stdout=subprocess.PIPE, text=True) if watch else None
        if self.watch:
            self.watch.stdout.readline()  # it has seen what was restored
        self.output = open(os.path.join(folder, "output"), "w+", encoding="utf-8")
        self.program = subprocess.Popen([python, os.path.join(HERE, name + ".py")], cwd=folder, stdout=self.output,
                                        stderr=subprocess.STDOUT, start_new_session=True, env=environment)

    def kill(self):
        try:
            os.killpg(self.program.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.program.wait()

    def wait_first_step(self):
        """Seconds until then: programs load their libraries for longer than they compute here. Or until it has ended."""
        began = time.monotonic()
        while not LINE.search(self.text()) and self.program.poll() is None and time.monotonic() - began < RUN_MAX:
            time.sleep(0.05)
        return time.monotonic() - began

    def text(self):
        with open(self.output.name, encoding="utf-8", errors="replace") as file:
            return file.read()

    def end(self):
        self.output.close()
        if self.watch:
            self.watch.kill()
            self.watch.wait()

    def checkpoint(self):
        """The newest that nobody doubts, else the newest: (number, how, provisional, folder) or None."""
        found = []
        snapshots = os.path.join(self.folder, "attempt", "snap")
        for number in sorted((int(one) for one in os.listdir(snapshots)) if os.path.isdir(snapshots) else []):
            try:
                with open(os.path.join(snapshots, str(number), "info"), encoding="utf-8") as file:
                    words = file.readline().split()
            except FileNotFoundError:
                continue  # half made when the power went
            found.append((number, words[5], len(words) > 6, os.path.join(snapshots, str(number), "files")))
        sure = [one for one in found if not one[2]]
        return (sure or found or [None])[-1]


def environment():
    return dict(os.environ, CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1", TF_CPP_MIN_LOG_LEVEL="3", JAX_PLATFORMS="cpu",
                HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", KERAS_BACKEND="tensorflow",
                PYTHONWARNINGS="ignore")


def undisturbed(arguments, name, base):
    run = Run(arguments.python, None, name, os.path.join(base, "whole"), environment())
    try:
        run.wait_first_step()
        began = time.monotonic()
        code = run.program.wait(RUN_MAX)
        took = time.monotonic() - began
    finally:
        run.kill()
    text = run.text()
    run.end()
    if code != 0 or not text.rstrip().endswith("done"):
        raise SystemExit(f"{name} fails undisturbed ({code}):\n{text[-2000:]}")
    return {int(step): loss for step, loss in LINE.findall(text)}, took


def in_pieces(arguments, name, base, expected, took, chance):
    """Kills so often, then lets it end. What was wrong, and figures."""
    wrong, kills, how_seen, lost, carried = [], 0, set(), 0, None
    folder = None
    for piece in range(arguments.kills + 40):
        previous, folder = folder, os.path.join(base, f"piece-{piece}")
        os.makedirs(folder)
        if carried:
            shutil.copytree(carried[3], os.path.join(folder, "out"), symlinks=True)
        run = Run(arguments.python, arguments.watch, name, folder, environment())
        last, killed = kills >= arguments.kills, False
        try:
            run.wait_first_step()
            run.program.wait(RUN_MAX if last else chance.uniform(0.1, 0.9) * took)
        except subprocess.TimeoutExpired:
            killed = True
        run.kill()
        text = run.text()
        run.end()
        done = text.rstrip().endswith("done")
        kills += killed and not done
        for step, loss in LINE.findall(text):
            if expected.get(int(step)) != loss:
                wrong.append(f"step {step} has loss {loss}, not {expected.get(int(step))}, after {carried and carried[:3]}")
                break
        if run.program.returncode not in (0, -signal.SIGKILL):
            wrong.append(f"it ended with {run.program.returncode} after {carried and carried[:3]}: {text[-600:]}")
            carried = None
        if done and kills >= arguments.kills:
            return wrong if how_seen else [*wrong, "no kill came after a checkpoint: nothing was tried"], kills, how_seen, lost
        if done:
            carried = None  # too quick for a kill: once more from the beginning
            continue
        found = run.checkpoint()
        if found:
            how_seen.add(found[1].partition(":")[0] + ("?" if found[2] else ""))
            carried = found
        else:
            lost += 1
        if previous:
            shutil.rmtree(previous, ignore_errors=True) if not (carried and carried[3].startswith(previous)) else None
    wrong.append("it never came to its end")
    return wrong, kills, how_seen, lost


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--long", action="store_true", help="50 kills of each")
    parser.add_argument("--sample", action="store_true", help="only what needs no package")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--watch", default=os.path.join(ROOT, "build", "release", "tests", "programs", "program_watch"))
    parser.add_argument("--seed", type=int, default=4711)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    if arguments.long:
        arguments.kills = 50
    failed, results = False, []
    for name in arguments.names or (SAMPLE if arguments.sample else list(NEEDS)):
        if subprocess.run([arguments.python, "-c", f"import {NEEDS[name]}"], capture_output=True, env=environment(),
                          check=False).returncode != 0:
            print(f"{name}: left out, {arguments.python} has no {NEEDS[name]}", flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix="gridctl-programs.") as base:
            expected, took = undisturbed(arguments, name, base)
            wrong, kills, how, lost = in_pieces(arguments, name, base, expected, took,
                                                random.Random(f"{arguments.seed} {name}"))
        failed = failed or bool(wrong)
        results.append({"program": name, "kills": kills, "wrong": len(wrong), "how": sorted(how), "without_checkpoint": lost})
        print(f"{name}: {kills} kills, {len(wrong)} wrong resumes, whole by {', '.join(sorted(how)) or '-'}, "
              f"{lost} times without a checkpoint yet" + "".join("\n  " + one for one in wrong), flush=True)
    if arguments.json:
        print(json.dumps(results))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
