#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rate of a worker of a bag beside a loop in C with the same duties, and beside other runners of many tasks.

    tests/bench/bags.py [--agent build/release/bin/gridctl-agent] [--tasks 10000] [--slots 1] [--runs 3] [--command true]
                        [--hq HQ] [--parallel] [--peers PYTHON]

Each run pairs the loop and the worker, so that what else goes on here meets both. --hq names HyperQueue's program, which is
measured with a server and a worker of its own; --parallel measures GNU parallel.
"""
import argparse
import json
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "..", "..")

# One task after the other (one child process for each slot): a session of its own, its output taken to the end.
LOOP = r"""
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
  int tasks = atoi(argv[1]), slots = atoi(argv[2]);
  for (int slot = 0; slot < slots; ++slot) {
    if (slots > 1 && fork() != 0) continue;
    for (int i = slot; i < tasks; i += slots) {
      int ends[2], status;
      char buffer[65536];
      if (pipe(ends) != 0) return 1;
      pid_t pid = fork();
      if (pid == 0) {
        setsid();
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        execl("/bin/sh", "sh", "-c", argv[3], (char *)0);
        _exit(127);
      }
      close(ends[1]);
      while (read(ends[0], buffer, sizeof buffer) > 0) {}
      close(ends[0]);
      if (waitpid(pid, &status, 0) < 0 || status != 0) return 1;
    }
    return 0;
  }
  int status, bad = 0;
  while (wait(&status) > 0) bad |= status;
  return bad != 0;
}
"""


def timed(work):
    began = time.monotonic()
    work()
    return time.monotonic() - began


def loop_program(folder):
    source = os.path.join(folder, "loop.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write(LOOP)
    subprocess.run(["cc", "-O2", "-o", os.path.join(folder, "loop"), source], check=True)
    return os.path.join(folder, "loop")


def orders(tasks):
    """The file in which an agent leaves orders for the worker: one grant, and the finish."""
    payload = json.dumps({"from": 0, "orders": [{"count": tasks, "first": 0, "kind": "grant"},
                                                {"count": 0, "first": 0, "kind": "finish"}]}).encode()
    head = lambda crc: struct.pack("<IIIIQ", 0x31424247, len(payload), crc, 2, 0)  # noqa: E731
    return head(zlib.crc32(payload, zlib.crc32(head(0)))) + payload + struct.pack("<I", len(payload))


def worker(agent, folder, tasks, slots, command):
    work = tempfile.mkdtemp(dir=folder)
    for name in ("run", "ctl", "work"):
        os.mkdir(os.path.join(work, name))
    for name, content in (("ctl/orders", orders(tasks)), ("run/run.sh", command.encode() + b"\n"),
                          ("run/bag", json.dumps({"items": "text", "mode": "tasks", "output_bytes_max": 1 << 20, "slots": slots,
                                                  "output_total_max": 1 << 30, "window": 1}).encode())):
        with open(os.path.join(work, name), "wb") as file:
            file.write(content)
    places = [os.path.join(work, name) for name in ("run", "ctl", "work")]
    seconds = timed(lambda: subprocess.run([agent, "tasks", *places, "-", "1000000000"], check=True))
    done = os.path.getsize(os.path.join(work, "run/tasks")) // 72
    if done != tasks:
        sys.exit(f"the worker recorded {done} of {tasks} tasks")
    shutil.rmtree(work)
    return seconds


def hyperqueue(program, folder, tasks, slots, command):
    state = tempfile.mkdtemp(dir=folder)
    hq = [program, "--server-dir", state]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen([*hq, "server", "start"], **quiet)
    time.sleep(1)
    helper = subprocess.Popen([*hq, "worker", "start", f"--cpus={slots}"], cwd=state, **quiet)
    time.sleep(1)
    try:
        return timed(lambda: subprocess.run([*hq, "submit", "--wait", "--array", f"1-{tasks}", "--", "sh", "-c", command],
                                            cwd=state, check=True, **quiet))
    finally:
        subprocess.run([*hq, "server", "stop"], check=False, **quiet)
        helper.wait(20)
        server.wait(20)
        shutil.rmtree(state, ignore_errors=True)


def parallel(tasks, slots, command):
    lines = "".join(f"{i}\n" for i in range(tasks))
    return timed(lambda: subprocess.run(["parallel", f"-j{slots}", "-N1", f"{command} #"], input=lines, text=True, check=True,
                                        stdout=subprocess.DEVNULL))


# Each starts its runner, warms it up, and prints how long so many tasks take it.
PEERS = {"Ray": """
import ray
ray.init(num_cpus=slots, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
one = ray.remote(num_cpus=1)(run)
ray.get([one.remote(0) for _ in range(slots)])
began = time.monotonic()
ray.get([one.remote(i) for i in range(tasks)])
""", "Dask": """
import dask.distributed
client = dask.distributed.Client(n_workers=slots, threads_per_worker=1, dashboard_address=None)
client.gather(client.map(run, range(-slots, 0), pure=False))
began = time.monotonic()
client.gather(client.map(run, range(tasks), pure=False))
""", "HyperQueue": """
import hyperqueue, hyperqueue.cluster
cluster = hyperqueue.cluster.LocalCluster()
cluster.start_worker(hyperqueue.cluster.WorkerConfig(slots))
client = cluster.client()
def work(count):
    job = hyperqueue.Job()
    for _ in range(count):
        job.program(["sh", "-c", command])
    client.wait_for_jobs([client.submit(job)])
work(slots)
began = time.monotonic()
work(tasks)
"""}
PEER_HEAD = """
import subprocess, sys, time
tasks, slots, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
def run(_):
    return subprocess.run(["sh", "-c", command], start_new_session=True, capture_output=True, check=True).returncode
if __name__ == "__main__":
"""


def peer(python, name, folder, tasks, slots, command):
    script = os.path.join(folder, "peer.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(PEER_HEAD + "".join(f"    {line}\n" for line in PEERS[name].splitlines()) +
                   "    print(time.monotonic() - began, flush=True)\n")
    done = subprocess.run([python, script, str(tasks), str(slots), command], cwd=folder, check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True)
    return float(done.stdout.split()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", default=os.path.join(SOURCE, "build/release/bin/gridctl-agent"))
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--slots", type=int, default=1)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--command", default="true")
    parser.add_argument("--hq")
    parser.add_argument("--parallel", action="store_true")
    parser.add_argument("--peers", metavar="PYTHON", help="a Python with ray, dask.distributed and hyperqueue")
    options = parser.parse_args()
    few = max(1, options.tasks // 10)  # the others take so much longer
    with tempfile.TemporaryDirectory() as folder:
        loop = loop_program(folder)
        ratios = []
        for run in range(options.runs):
            limit = timed(lambda: subprocess.run([loop, str(options.tasks), str(options.slots), options.command], check=True))
            ours = worker(options.agent, folder, options.tasks, options.slots, options.command)
            ratios.append(limit / ours)
            line = f"run {run + 1}: loop {options.tasks / limit:,.0f}/s, worker {options.tasks / ours:,.0f}/s, ratio {limit / ours:.2f}"
            rate = options.tasks / ours
            if options.hq:
                seconds = hyperqueue(options.hq, folder, options.tasks, options.slots, options.command)
                line += f"; HyperQueue {options.tasks / seconds:,.0f}/s, we are {rate * seconds / options.tasks:.1f} times as fast"
            if options.parallel:
                seconds = parallel(few, options.slots, options.command)
                line += f"; parallel {few / seconds:,.0f}/s, we are {rate * seconds / few:.0f} times as fast"
            for name in PEERS if options.peers else ():
                count = options.tasks if name == "HyperQueue" else few  # its client looks once a second whether all is done
                seconds = peer(options.peers, name, folder, count, options.slots, options.command)
                line += f"; {name} {count / seconds:,.0f}/s, we are {rate * seconds / count:.1f} times as fast"
            print(line, flush=True)
        print(f"median ratio to the loop {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
