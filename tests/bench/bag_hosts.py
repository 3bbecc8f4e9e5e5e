#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Figures of bags on hosts that come and go.

    sudo tests/integration/isolated python3 tests/bench/bag_hosts.py [SCENARIO...] [--seconds 120]

Scenarios: million (a bag of 1,000,000 tasks, worked off for --seconds), lost (20,000 tasks on 6 hosts, two die and one is cut
off), kills (the daemon is killed 30 times in a bag of 100,000), poison (10 of 2,000 items kill their process), slow (one of four hosts at a
tenth of the speed), small (arrays of ten), rate (10,000 × true beside a loop in C on both hosts, and beside other runners
inside a host, with --peers VENV/lib/python3.11/site-packages), stream (20,000 items through a model of PyTorch, with
--torch VENV/lib/python3.11/site-packages). Without one, all. Each ends with an error if a task was lost or counted twice.
"""
import argparse
import concurrent.futures
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))
import bags  # noqa: E402  # pylint: disable=wrong-import-position
import grid  # noqa: E402  # pylint: disable=wrong-import-position

FAST = {"resources": {"cpus": 1}, "recovery": {"lost_after": "5s"}}


def submit(laptop, name, run, tasks, **more):
    return laptop.submit({"name": name, "run": run, "tasks": tasks, **FAST, **more})


def hosts(count):
    the_grid = grid.up(count)
    laptop = the_grid.laptop()
    for host in the_grid.hosts:
        laptop.register(host, engine="process")
    return the_grid, laptop


def runs_of(the_grid, name):
    return [int(line) for host in the_grid.hosts
            for line in the_grid.enter(host, f"cat /tmp/{name}.runs 2>/dev/null || true").split()]


def state_bytes(laptop, job):
    folder = os.path.join(laptop.state, "bags", job.id)
    if not os.path.isdir(folder):
        folder = next(path for path, _, files in os.walk(laptop.state) if job.id in path and "journal" in files)
    return sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder))


def memory_mib(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024


def must(holds, what):
    if not holds:
        raise AssertionError(what)


def done(job, deadline, state="SUCCEEDED"):
    job.wait_state(state, deadline=deadline)
    return job.show()["tasks"]


def million(seconds):
    _, laptop = hosts(2)
    began = time.monotonic()
    job = submit(laptop, "million", "true", 1_000_000)
    grid.figure("submit of 1,000,000 tasks, s", round(time.monotonic() - began, 2))
    job.wait("results", 60, lambda: job.show()["tasks"]["done"] > 0)
    first, since = job.show()["tasks"]["done"], time.monotonic()
    shows, most = [], 0.0
    while time.monotonic() - since < seconds and job.show()["state"] not in grid.FINAL:
        shows.append(laptop.run("job", "show", job.id).seconds)
        most = max(most, memory_mib(laptop.daemon_pid()))
        time.sleep(5)
    told = job.show()["tasks"]
    grid.figure("tasks/s on two hosts", round((told["done"] - first) / (time.monotonic() - since)))
    grid.figure("job show, ms, median and longest", (round(sorted(shows)[len(shows) // 2] * 1000), round(max(shows) * 1000)))
    grid.figure("daemon, MiB", round(most, 1))
    size = state_bytes(laptop, job)
    grid.figure("state of the bag, bytes, and a task done", (size, round(size / max(told["done"], 1), 1)))
    must(told["executions"] - told["done"] <= 100, told)
    laptop.run("job", "cancel", job.id, "--now")


def lost(_):
    the_grid, laptop = hosts(6)
    job = submit(laptop, "lost", "echo $GRIDCTL_TASK_INDEX >> /tmp/lost.runs; sleep 0.02", 20_000)
    began = time.monotonic()
    job.wait("a tenth", 300, lambda: job.show()["tasks"]["done"] > 2000)
    for host in (2, 3):
        held = {one["provider"]: one["held"] for one in job.show()["bag"]["providers"]}
        the_grid.kill(host)
        grid.figure(f"h{host} dies, held tasks", held.get(f"h{host}"))
    held = {one["provider"]: one["held"] for one in job.show()["bag"]["providers"]}
    the_grid.partition(4)
    grid.figure("h4 is cut off, held tasks", held.get("h4"))
    time.sleep(20)
    the_grid.heal(4)
    told = done(job, 600)
    grid.figure("20,000 tasks on 6 hosts, s", round(time.monotonic() - began))
    the_grid.heal_all()
    runs = runs_of(the_grid, "lost")
    grid.figure("lost: told", told)
    grid.figure("lost: executions - 20,000, as the hosts know them", len(runs) - 20_000)
    must(told["done"] == 20_000 and set(runs) == set(range(20_000)), "a task is missing")


def kills(_, tasks=100_000):
    the_grid, laptop = hosts(2)
    # A task says when it began by the clock of its host: in hundredths of a second since the boot.
    job = submit(laptop, "kills", "read -r up _ < /proc/uptime; echo $GRIDCTL_TASK_INDEX $up >> /tmp/kills.runs", tasks)
    count = 0
    while job.show()["state"] not in grid.FINAL and count < 30:
        time.sleep(1)
        laptop.kill_daemon()
        laptop.need_daemon()
        count += 1
    told = done(job, 300)
    runs, idle = [], []
    for host in the_grid.hosts:
        words = the_grid.enter(host, "cat /tmp/kills.runs").split()
        runs += map(int, words[::2])
        begun = sorted(map(float, words[1::2]))
        idle.append(max(later - sooner for sooner, later in zip(begun, begun[1:])))
    grid.figure("daemon killed, times", count)
    grid.figure("kills: told, runs, longest time without a new task on each host (s)", (told, len(runs), idle))
    must(sorted(runs) == list(range(tasks)) and told["executions"] == tasks, "a task is missing or was run twice")


def poison(_):
    the_grid, laptop = hosts(2)
    bad = set(range(100, 2000, 200))
    job = submit(laptop, "poison", "echo $GRIDCTL_TASK_INDEX >> /tmp/poison.runs; "
                 "[ -e /tmp/mended ] || [ $((GRIDCTL_TASK_INDEX % 200)) != 100 ] || kill -9 $$", {"count": 2000})
    done(job, 300, "FAILED")
    listed = {one["task"]: one["providers"] for one in job.show()["bag"]["failures"]}
    must(set(listed) == bad, f"listed are {sorted(listed)}")
    must(all(len(tried) >= 2 for tried in listed.values()), listed)
    for host in the_grid.hosts:
        the_grid.enter(host, "rm -f /tmp/poison.runs; touch /tmp/mended")
    laptop.run("job", "resume", job.id)
    told = done(job, 120)
    must(sorted(runs_of(the_grid, "poison")) == sorted(bad), "resume runs these alone")
    grid.figure("poison: isolated on two hosts each, run again alone", (len(listed), told["done"]))


def slow(_):
    the_grid, laptop = hosts(4)
    script = "if [ -e /tmp/slow ]; then sleep 5; else sleep 0.5; fi"
    options = {"tasks": {"count": 480, "max_parallel": 4}, "resources": {"cpus": 2}}
    seconds, told = [], {}
    for count in (3, 4):
        if count == 3:
            laptop.run("provider", "drain", "h4")
        else:
            laptop.run("provider", "undrain", "h4")
            the_grid.enter(4, "touch /tmp/slow")
        began = time.monotonic()
        job = laptop.submit({"name": f"slow{count}", "run": script, **FAST, **options})
        told = done(job, 300)
        seconds.append(time.monotonic() - began)
    grid.figure("480 tasks of 0.5 s: without the slow host, with it (s), ratio",
                (round(seconds[0], 1), round(seconds[1], 1), round(seconds[1] / seconds[0], 2)))
    grid.figure("slow: run twice", told["executions"] - told["done"])


def small(_):
    _, laptop = hosts(2)
    for command, ideal in (("true", 0), ("sleep 1", 3)):
        times = [laptop.run("job", "submit", "--array", "0-9", "--wait", "--", *command.split()).seconds for _ in range(3)]
        grid.figure(f"array of ten × {command}, s beyond the tasks on 4 CPUs", [round(one - ideal, 2) for one in times])


def on_all(the_grid, script):
    """Seconds until the script has ended on all hosts, begun at the same time."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return bags.timed(lambda: list(pool.map(lambda host: the_grid.as_worker(host, script), the_grid.hosts)))


def over_ssh(the_grid, folder, count):
    """GNU parallel from here, with shared connections and keepalives."""
    words = ["parallel", "-N1", "-j1"]
    for host in the_grid.hosts:
        facts = the_grid.facts[host]
        words += ["-S", f"ssh -i {the_grid.key} -p {facts['port']} -oStrictHostKeyChecking=no -oUserKnownHostsFile=/dev/null "
                  f"-oLogLevel=ERROR -oControlMaster=auto -oControlPath={folder}/%h-%p -oControlPersist=60 "
                  f"-oServerAliveInterval=5 worker@{facts['address']}"]
    lines = "".join(f"{i}\n" for i in range(count))
    return bags.timed(lambda: subprocess.run([*words, "true #"], input=lines, text=True, check=True, stdout=subprocess.DEVNULL))


def rate(_, packages=None, tasks=10_000):
    the_grid, laptop = hosts(2)
    ratios, folder = {}, tempfile.mkdtemp()
    for host in the_grid.hosts:
        shutil.copy(bags.loop_program(folder), the_grid.disk(host, "tmp/loop"))
    if packages:
        subprocess.run(["cp", "-a", packages, the_grid.disk(1, grid.SITE[1:])], check=True)
    for name, script in bags.PEERS.items():
        with open(the_grid.disk(1, f"tmp/{name}.py"), "w", encoding="utf-8") as file:
            file.write(bags.PEER_HEAD + "".join(f"    {line}\n" for line in script.splitlines()) +
                       "    print(time.monotonic() - began, flush=True)\n")
    for run in range(3):
        limit = on_all(the_grid, f"/tmp/loop {tasks // 2} 1 true")
        began = time.time()
        job = laptop.submit({"name": f"rate{run}", "run": "true", "tasks": {"count": tasks, "max_parallel": 2}, "resources": {"cpus": 2}})
        job.wait_state("SUCCEEDED", deadline=300)
        ours = grid.iso(job.show()["ended_at"]) - began
        found = {"loop": tasks / limit, "parallel -S": 100 / over_ssh(the_grid, folder, 100)}
        for name in bags.PEERS if packages else ():
            count = tasks // 10
            script = f"PYTHONPATH={grid.SITE} python3 /tmp/{name}.py {count} 2 true"
            found[name] = count / float(the_grid.as_worker(1, script, timeout=300).split()[-1])
        for name, per_s in found.items():
            ratios.setdefault(name, []).append(tasks / ours / per_s)
        with open("/proc/loadavg", encoding="utf-8") as file:
            load = file.read().split()[0]
        grid.figure(f"run {run + 1} at load {load}, tasks/s", {"gridctl": round(tasks / ours), **{k: round(v, 1) for k, v in found.items()}})
    shutil.rmtree(folder)
    grid.figure("times as fast as, median of three", {name: round(statistics.median(all_of), 2) for name, all_of in ratios.items()})


# A model that answers an item in a millisecond or two.
MODEL = """
import sys, torch
torch.set_num_threads(1)
torch.manual_seed(4711)
layers = [layer for _ in range(10) for layer in (torch.nn.Linear(768, 768), torch.nn.ReLU())]
model = torch.nn.Sequential(*layers, torch.nn.Linear(768, 10)).eval()
with torch.inference_mode():
    for line in sys.stdin:
        item = int(line)
        print(item, int(model(torch.full((1, 768), item % 97 / 97)).argmax()), flush=True)
"""


def stream(_, packages=None, items=20_000):
    if not packages:
        return print("stream: needs --torch VENV/lib/python3.11/site-packages")
    the_grid, laptop = hosts(2)
    for host in the_grid.hosts:
        subprocess.run(["cp", "-a", "--link", packages, the_grid.disk(host, grid.SITE[1:])], check=True)
        with open(the_grid.disk(host, "tmp/model.py"), "w", encoding="utf-8") as file:
            file.write(MODEL)
    program = f"PYTHONPATH={grid.SITE} CUDA_VISIBLE_DEVICES= python3 /tmp/model.py"
    the_grid.as_worker(1, f"seq 3 | {program}", timeout=120)  # its files are read
    text = "".join(f"{i}\n" for i in range(items))
    ratios, expected = [], ""
    for run in range(3):
        began = time.monotonic()
        expected = the_grid.as_worker(1, f"seq 0 {items - 1} | {program}", timeout=400)
        alone = time.monotonic() - began
        began = time.time()
        told = laptop.run("job", "submit", "-d", "--json", "-n", f"stream{run}", "--each", "--stream", "-j", "1", "--cpus", "1", "--", program,
                          stdin=text)
        job = grid.Job(laptop, told.json["job_id"])
        job.wait_state("SUCCEEDED", deadline=400)
        ratios.append(alone / (grid.iso(job.show()["ended_at"]) - began))
    grid.figure(f"stream of {items} items through torch: rate in that of the program alone", [round(one, 3) for one in ratios])
    told = laptop.run("job", "submit", "-d", "--json", "-n", "cut", "--each", "--stream", "--cpus", "1", "--", program, stdin=text)
    job = grid.Job(laptop, told.json["job_id"])
    job.wait("a quarter", 200, lambda: job.show()["tasks"]["done"] > items // 4)
    the_grid.kill(2)
    told = done(job, 400)
    printed = laptop.run("job", "logs", job.id, "--task", f"0-{items - 1}", timeout=120).out
    grid.figure("stream: a host is lost", told)
    must(printed == expected, "an answer is missing or there twice")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*")
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--peers", metavar="PACKAGES", help="a folder with ray, dask.distributed and hyperqueue, for rate")
    parser.add_argument("--torch", metavar="PACKAGES", help="a folder with torch, for stream")
    options = parser.parse_args()
    table = {one.__name__: one for one in (small, million, lost, kills, poison, slow)}
    table["rate"] = lambda seconds: rate(seconds, options.peers)
    table["stream"] = lambda seconds: stream(seconds, options.torch)
    for name in options.scenarios or table:
        try:
            table[name](options.seconds)
        finally:
            if grid.the_grid is not None:
                grid.the_grid.down()
                grid.the_grid = None


if __name__ == "__main__":
    main()
