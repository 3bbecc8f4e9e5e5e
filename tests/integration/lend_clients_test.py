# SPDX-License-Identifier: Apache-2.0
"""What a researcher's changed gridctl, or whoever holds his relay, asks of a lent machine: limits hold all the same."""
import binascii
import json
import os
import secrets
import struct
import subprocess
import threading
import time
import unittest

import grid
import lend_test
import lender
from grid import bound, plain, wait_until
from lender import IMAGE, LENT, RELAY

PREAMBLE = b"\nGRIDCTL-AGENT/1\n"
HEAD, TAIL = 12, 4  # bytes around a frame's payload
REPLY = 2
YEARS = 10 * 365 * 24 * 3600 * 1000  # milliseconds
STUBBORN = "trap '' TERM USR1; echo ready; while :; do sleep 0.2; done"


def frame(kind, stream, payload):
    head = b"GF" + bytes([kind, 0]) + struct.pack(">II", stream, len(payload))
    return head + struct.pack(">I", binascii.crc32(head + payload)) + payload


class Client:
    """Speaks for the researcher's controller with the agent of the lent machine, behind the sealed connection."""

    def __init__(self, case, versions=(1, 1), controller=None):
        lend = case.invitation()
        with open(case.grid.disk(LENT, f"{lend}/terms.json".lstrip("/")), encoding="utf-8") as file:
            controller = json.load(file)["controller"] if controller is None else controller
        agent = case.grid.as_worker(LENT, f"cat {lend}/agent").strip()
        words = ["setpriv", f"--reuid={grid.WORKER}", f"--regid={grid.WORKER}", "--init-groups", "env", "HOME=/home/worker", "USER=worker",
                 f"XDG_RUNTIME_DIR=/run/user/{grid.WORKER}", agent, "connect", "--guest", f"{lend}/terms.json"]
        self.process = subprocess.Popen([grid.TESTGRID, "enter", str(LENT), *words], env=case.grid.environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        case.addCleanup(self.close)
        self.buffer, self.stream = b"", 0
        while PREAMBLE not in self.buffer:
            self.more()
        self.buffer = self.buffer.partition(PREAMBLE)[2]
        self.controller = controller
        self.hello = self.ask("hello", version_min=versions[0], version_max=versions[1], features=[], controller=controller)

    def close(self):
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def more(self):
        got = os.read(self.process.stdout.fileno(), 1 << 16)
        if not got:
            raise EOFError("the agent has ended the connection")
        self.buffer += got

    def ask(self, op, **fields):
        self.stream += 1
        self.process.stdin.write(frame(1, self.stream, json.dumps({"op": op, **fields}).encode()))
        self.process.stdin.flush()
        while True:
            while len(self.buffer) < HEAD or len(self.buffer) < HEAD + TAIL + struct.unpack(">I", self.buffer[8:12])[0]:
                self.more()
            size = struct.unpack(">I", self.buffer[8:12])[0]
            kind, stream, payload = self.buffer[2], struct.unpack(">I", self.buffer[4:8])[0], self.buffer[HEAD + TAIL:HEAD + TAIL + size]
            self.buffer = self.buffer[HEAD + TAIL + size:]
            if kind == REPLY and stream == self.stream:
                return json.loads(payload)


def setUpModule():
    lender.set_up()


class Clients(lender.LenderCase):
    def client(self):
        return Client(self)

    def invitation(self):
        """The folder of the one that the machine's owner has used last."""
        return os.path.dirname(self.grid.as_worker(LENT, "ls -t $HOME/.gridctl/lend/*/token | head -1").strip())

    def running(self, name, *limits, **spec):
        """A job that ignores all signals but KILL, on the machine alone."""
        self.joined("bob", *limits)
        job = self.laptop.submit({"name": name, "image": IMAGE, "run": STUBBORN, "resources": {"cpus": 0.5}} | spec)
        job.wait_output("ready")
        return job

    def containers(self):
        return self.grid.as_worker(LENT, "podman ps -q").split()

    def test_a_stop_that_never_kills_puts_no_limit_off(self):
        """Whoever has begun to end a job has years for that, if he is believed; the owner's limits hold meanwhile."""
        job = self.running("endless", "--max-job 15s")
        epoch = job.attempts()[-1]["epoch"]
        self.assertNotIn("error", self.client().ask("stop", id=secrets.token_hex(8), job=job.id, epoch=epoch, grace_ms=YEARS))
        wait_until("the owner's limit to end it", 75, lambda: not self.containers(), job.evidence)
        self.assertIn("lets a job run for", self.owners("lend log"))

    def test_a_stop_that_never_kills_puts_no_limit_of_the_disk_off(self):
        fills = "trap '' TERM USR1; echo ready; sleep 8; i=0; while :; do i=$((i+1)); dd if=/dev/zero of=f$i bs=1M count=200 2> /dev/null; sleep 0.2; done"
        job = self.running("filler", "--disk 2GiB", run=fills)
        self.assertNotIn("error", self.client().ask("stop", id=secrets.token_hex(8), job=job.id, epoch=job.attempts()[-1]["epoch"], grace_ms=YEARS))
        wait_until("the owner's limit to end it", 90, lambda: not self.containers(), job.evidence)

    def test_promises_about_jobs_that_never_were_fill_no_disk(self):
        """Each takes a folder for ever, and the owner's own commands read them all. Those of former days give way."""
        self.joined()
        client = self.client()
        promise = lambda: client.ask("stop", id=secrets.token_hex(8), job=secrets.token_hex(5), epoch=1, grace_ms=0)
        self.assertNotIn("error", promise())
        jobs = self.grid.as_worker(LENT, "ls -d $HOME/.gridctl/jobs/" + client.controller).strip()
        self.grid.as_worker(LENT, f"cd {jobs}; for one in $(seq 9999); do mkdir old$one; echo 1 > old$one/fence; done")
        told = promise()
        self.assertIn("remembers 10000 jobs of this researcher", json.dumps(told))
        began = time.monotonic()
        self.owners("lend status")
        self.owners("lend pause --grace 1s")
        self.owners("lend resume")
        grid.figure("lend status, pause and resume beside ten thousand promises", f"{time.monotonic() - began:.1f} s")
        self.assertLess(time.monotonic() - began, grid.bound(15))
        self.grid.as_worker(LENT, f"cd {jobs}; touch -d '2 days ago' old1 old2 old3")
        client = self.client()
        self.assertEqual(["error" in promise() for _ in range(5)], [False] * 3 + [True] * 2)
        self.assertEqual(self.grid.as_worker(LENT, f"ls -d {jobs}/old[123] 2> /dev/null", check=False), "")

    def test_a_hundredth_of_nothing_is_no_processor(self):
        """podman takes --cpus 0.00 for no limit, and the price of nothing is nothing."""
        self.joined()
        client = self.client()
        told = self.start(client, secrets.token_hex(5), cpus=0.001)
        self.assertIn("bad number of CPUs", json.dumps(told))

    def start(self, client, job, epoch=1, **more):
        """As a changed gridctl asks for it: without a word to the controller, and with an id of its own choice."""
        ready = client.ask("prepare", id=secrets.token_hex(8), job=job, epoch=epoch)
        if "error" in ready:
            return ready
        spec = {"job": job, "job_name": "thief", "attempt": 1, "epoch": epoch, "engine": "podman", "image": IMAGE, "image_archive": None, "workdir": None,
                "mounts": [], "restore": None, "restore_name": "", "checkpoint_path": "", "checkpoints": False, "checkpoint_min_interval_ms": 0,
                "setup": "", "run": "sleep 600", "envs": {}, "secret_names": [], "gpu_uuids": [], "cpus": 0.5, "memory_bytes": 0,
                "stop_grace_ms": 1000, "log_ring_bytes": 1 << 20, "disk_bytes_max": 0} | more
        return client.ask("start", id=secrets.token_hex(8), echo_ns=ready["host_time_ns"], boot_id=ready["boot_id"], lease_ms=600_000, spec=spec, secrets={})

    def test_no_job_hides_from_the_owners_commands(self):
        """They list the folders of jobs; one that has the name of another folder there would never end."""
        self.joined()
        client = self.client()
        for job in ("notify", "lock", secrets.token_hex(5)):
            self.start(client, job)
        wait_until("the jobs to run", 60, self.containers)
        wait_until("the list of jobs", 20, lambda: len(self.containers()) == self.owners("lend status").count("thief"), lambda: self.owners("lend status"))
        self.owners("lend pause --grace 1s")
        wait_until("nothing to run", 30, lambda: not self.containers(), lambda: self.grid.as_worker(LENT, "podman ps"))

    def test_no_number_of_an_attempt_keeps_it_running(self):
        """The order to end it is written beside the attempt, by numbers that are read again."""
        self.joined()
        client = self.client()
        job = secrets.token_hex(5)
        self.start(client, job)
        for epoch in (1 << 63, (1 << 64) - 1):
            self.assertIn("error", self.start(client, secrets.token_hex(5), epoch))
            for op, fields in (("stop", {"grace_ms": 0}), ("clean", {})):
                self.assertIn("error", client.ask(op, id=secrets.token_hex(8), job=job, epoch=epoch, **fields), op)
        wait_until("the job to run", 60, self.containers)
        # Nor does an order that cannot be written, as on a full disk.
        self.grid.as_worker(LENT, f"chmod 500 .gridctl/jobs/*/{job}/1/ctl")
        began = time.monotonic()
        self.owners("lend pause --grace 1s")
        wait_until("nothing to run", 30, lambda: not self.containers(), lambda: self.grid.as_worker(LENT, "podman ps; ls -la .gridctl/jobs/*/*"))
        grid.figure("lend pause where no order can be written", f"{time.monotonic() - began:.1f} s")
        self.grid.as_worker(LENT, f"chmod 700 .gridctl/jobs/*/{job}/1/ctl")

    def test_a_lock_that_is_held_keeps_no_job_running(self):
        """Whoever removes the millions of files that an earlier attempt left holds it for minutes."""
        self.joined()
        client = self.client()
        job = secrets.token_hex(5)
        self.start(client, job)
        wait_until("the job to run", 60, self.containers)
        holds = "import fcntl,sys,time; f=open(sys.argv[1],'r+'); fcntl.flock(f,fcntl.LOCK_EX); print('held',flush=True); time.sleep(300)"
        self.grid.as_worker(LENT, f"(setsid python3 -c \"{holds}\" $HOME/.gridctl/jobs/{client.controller}/{job}/lock > /tmp/held 2>&1 < /dev/null &); "
                                  "until grep -q held /tmp/held; do sleep 0.1; done")
        self.addCleanup(lambda: self.grid.signal(LENT, self.grid.pids(LENT, "fcntl.flock"), 9))
        began = time.monotonic()
        self.owners("lend pause --grace 1s")
        grid.figure("lend pause where a job's lock is held", f"{time.monotonic() - began:.1f} s")
        self.assertEqual(self.containers(), [])

    def test_a_benchmark_acts_on_no_other_program(self):
        """The program that tests GPUs also takes those of others off them, by their process ids."""
        self.joined()
        client = self.client()
        for test, backend in (("pause", "1"), ("resume", "1"), ("state", "1"), ("list", "opencl"), ("--help", "cuda"), ("fill", "1")):
            told = client.ask("bench-begin", test=test, backend=backend, index=1, gpu="", peer="", parameters=[], deadline_ms=20_000)
            self.assertEqual(told.get("error", {}).get("code"), "refused" if test != "--help" else told["error"]["code"], (test, told))
        told = client.ask("bench-begin", test="fill", backend="opencl", index=0, gpu="", peer="", parameters=[], deadline_ms=20_000)
        self.assertIn("has to name the GPU", json.dumps(told), "one without a lease would hold it against everybody")

    def measures(self, client, op, **fields):
        """Asks on a thread; what it was told, and after how many seconds."""
        answer, began = {}, time.monotonic()

        def ask():
            try:
                answer["told"] = json.dumps(client.ask(op, **fields))
            except EOFError as error:
                answer["told"] = str(error)
            answer["took"] = time.monotonic() - began
        answer["thread"] = threading.Thread(target=ask, daemon=True)
        answer["thread"].start()
        return answer

    def other_hours(self):
        hour = int(self.grid.as_worker(LENT, "date +%H"))
        self.owners(f"lend limits --hours {(hour + 2) % 24}:00-{(hour + 3) % 24}:00")

    def test_a_benchmark_that_is_under_way_ends_as_jobs_do(self):
        """It takes all processors, or a GPU, for minutes; his gridctl takes a second."""
        self.joined()
        client = self.client()
        measured = self.measures(client, "bench-host", part_ms=900_000)
        time.sleep(1.5)
        began = time.monotonic()
        self.other_hours()
        measured["thread"].join(timeout=60)
        grid.figure("from the end of the hours to the end of a benchmark", f"{time.monotonic() - began:.1f} s")
        self.assertLess(time.monotonic() - began, bound(8))
        self.assertIn("lends it at other hours", measured.get("told", "nothing"))
        self.assertIn("a benchmark ends: the owner of this machine lends it at other hours", self.owners("lend log"))
        for op, fields in (("bench-list", {}), ("bench-host", {"part_ms": 1}), ("bench-seed", {"seed": 1}),
                           ("bench-begin", {"test": "x", "backend": "opencl", "index": 0, "gpu": "", "peer": "", "parameters": [], "deadline_ms": 1})):
            self.assertIn("lends it at other hours", json.dumps(client.ask(op, **fields)), op)
        self.owners("lend limits --hours always")

        # Its researcher is gone: nobody waits for the figures.
        client = self.client()
        agents = set(self.grid.pids(LENT, "gridctl-agent connect"))
        self.measures(client, "bench-host", part_ms=900_000)
        time.sleep(1.5)
        client.process.stdin.close()
        wait_until("its agent to be gone", bound(8) / grid.PATIENCE, lambda: agents - set(self.grid.pids(LENT, "gridctl-agent connect")))

        # Longer than a researcher's own would take is no longer than that.
        client = self.client()
        measured = self.measures(client, "bench-host", part_ms=900_000)
        measured["thread"].join(timeout=120)
        self.assertFalse(measured["thread"].is_alive(), "ten seconds for each part at most")
        self.assertIn("cpu_all_gflops", measured["told"])

    def test_a_benchmark_gives_the_owner_his_gpu(self):
        """It waits for a seed that never comes, and holds the GPU meanwhile."""
        lend_test.Lend.stub_gpu(self)
        self.joined("bob", "--when idle:10s")
        self.grid.enter(LENT, ": > /dev/tty7; chmod 666 /dev/tty7; touch -a -d '1 hour ago' /dev/tty7")
        self.addCleanup(self.grid.enter, LENT, "rm -f /dev/tty7")
        uuid = "GPU-11111111-2222-3333-4444-555555555555"
        helpers = lambda: self.grid.pids(LENT, "gridctl-gpubench")

        def begin():
            client = self.client()
            begun = {"op": "none"}

            def asked():
                begun.update(client.ask("bench-begin", test="fill", backend="opencl", index=0, gpu=uuid, peer="",
                                        parameters=[{"name": "bytes_max", "value": 1 << 26}], deadline_ms=900_000))
                return "error" not in begun
            wait_until("the machine to be free", 40, asked, lambda: json.dumps(begun) + self.owners("lend status"))
            self.assertFalse(begun["done"], begun)
            self.assertTrue(helpers())
            return client
        client = begin()
        self.grid.as_worker(LENT, "sleep 300 < /dev/nvidia-uvm > /dev/null 2>&1 & echo $! blender 900 > /etc/stub-gpu/processes")
        wait_until("the GPU to be free", bound(10) / grid.PATIENCE, lambda: not helpers(), lambda: self.owners("lend log"))
        self.assertIn("a program of this machine's owner uses its GPU", json.dumps(client.ask("bench-seed", seed=1)))
        self.grid.enter(LENT, ": > /etc/stub-gpu/processes; pkill -x sleep", check=False)
        wait_until("it to be forgotten", 40, lambda: "free again" in self.owners("lend log"))
        client = begin()
        self.grid.enter(LENT, "touch -a /dev/tty7")
        wait_until("the GPU to be free", bound(10) / grid.PATIENCE, lambda: not helpers(), lambda: self.owners("lend log"))
        self.assertIn("the owner of this machine uses it", json.dumps(client.ask("bench-seed", seed=1)))

    def test_an_invited_machine_is_a_strangers_until_the_user_says_his_own(self):
        self.joined()
        shown = lambda: self.laptop.run("provider", "show", "bob", "--json").json
        told = self.laptop.run("provider", "set", "bob", "--class", "datacenter")
        self.assertNotIn("warning", told.err)
        self.assertEqual(shown()["labels"].get("lent"), "true", "a class tells only how reliable it is")
        private = {"name": "private", "image": IMAGE, "run": "true", "sensitivity": "private", "resources": {"cpus": 0.5}}
        path = self.laptop.write_job(private)
        self.assertIn("it is owned by others", "".join(str(self.laptop.run("job", "submit", path, check=False))))
        told = self.laptop.run("provider", "set", "bob", "--class", "home")
        self.assertIn("warning: bob counts as a machine of your own from now on", told.err)
        self.assertNotIn("lent", shown()["labels"])
        self.assertNotIn("warning", self.laptop.run("provider", "set", "bob", "--class", "home", "--site", "attic").err, "once")
        self.laptop.submit(private).wait_success()
        self.assertIn("warning", self.laptop.run("provider", "set", "bob", "--class", "market", "--label", "lent=true").err
                      + self.laptop.run("provider", "set", "bob", "--class", "datacenter", "--label", "lent=false").err)

    def test_a_thousand_callers_leave_the_machine_to_its_owner(self):
        """They have the relay, and no key. A job runs on untouched, and the machine's memory is not theirs."""
        job = self.running("untouched")
        lend_id = os.path.basename(self.invitation())

        def resident():
            told = self.grid.enter(LENT, "ps -eo rss=,args= | grep -E '[l]end (dial|serve)|[g]ridctl-agent connect'", check=False)
            return sum(int(line.split()[0]) for line in told.splitlines()) // 1024, len(told.splitlines())

        most, over = [0, 0], threading.Event()

        def watch():
            while not over.wait(0.5):
                now = resident()
                most[0], most[1] = max(most[0], now[0]), max(most[1], now[1])
        watcher = threading.Thread(target=watch)
        watcher.start()
        self.addCleanup(over.set)
        script = ("cd ~; for round in $(seq 20); do for one in $(seq 50); do "
                  f"(head -c 4096 /dev/urandom; sleep 2) | timeout 4 .gridctl-relay/gridctl-agent relay call {lend_id} > /dev/null 2>&1 & done; wait; done")
        flood = threading.Thread(target=lambda: self.grid.as_worker(RELAY, script, timeout=400, check=False))
        flood.start()
        slowest = 0.0
        while flood.is_alive():
            began = time.monotonic()
            self.owners("lend status")
            slowest = max(slowest, time.monotonic() - began)
            time.sleep(1)
        flood.join()
        over.set()
        watcher.join()
        grid.figure("a thousand callers without a key", f"{most[0]} MB in {most[1]} processes at most; lend status took {slowest:.1f} s at most")
        self.assertLess(slowest, grid.bound(5))
        self.assertLess(most[0], 400)
        self.assertLessEqual(most[1], 40)
        self.assertEqual(len(job.attempts()), 1, job.evidence())
        self.assertEqual(len(self.containers()), 1)
        self.wait_provider("bob")
        self.assertLess(os.path.getsize(self.grid.disk(LENT, f"home/worker/.gridctl/lend/{lend_id}/log")), 4 << 20)


if __name__ == "__main__":
    unittest.main()
