# SPDX-License-Identifier: Apache-2.0
"""Hosts put copies of their checkpoints into a bucket themselves, with a real server; what they do not or do falsely is
sent from here."""
import os
import socket
import struct
import threading
import time
import unittest

import chaos_faults
import grid
import radosgw
from grid import wait_until

SAVER = """
mkdir -p out; step=0
until [ $step = 4 ]; do
  step=$((step + 1))
  { echo $step; head -c 6000000 /dev/urandom; cat frozen; } > out/new && mv out/new out/state && : > out/.commit
  sleep 3
done
"""
WRITER = """
mkdir -p out; step=0
until [ -e enough ]; do
  step=$((step + 1))
  { echo $step; head -c 300000 /dev/urandom; } > out/new && mv out/new out/state && : > out/.commit
  sleep 1.5
done
"""
SLOW = 100_000  # bytes a second
TRAINER = """
import array, os, random, time
weights = [random.gauss(0, 0.02) for _ in range(500_000)]
os.makedirs("out", exist_ok=True)
for step in range(6):
    with open("out/new", "wb") as file:
        array.array("f", weights).tofile(file)
    os.replace("out/new", "out/state")
    open("out/.commit", "w").close()
    weights = [weight + random.gauss(0, 3e-4) for weight in weights]
    time.sleep(2)
"""
LIAR = r"""#!/bin/bash
# Sends another body of the same length than it was told to, and says that all went well.
settings=$(cat)
body=$(sed -n 's/^upload-file = "\(.*\)"$/\1/p' <<< "$settings")
cp "$body" /tmp/lie && printf 'lie' | dd of=/tmp/lie bs=1 seek=5000 conv=notrunc 2> /dev/null
printf '%s\n' "$settings" >> /tmp/orders
sed 's,^upload-file = .*,upload-file = "/tmp/lie",' <<< "$settings" | /usr/bin/curl --disable --config - >> /tmp/answers
printf '\n200'
"""


def setUpModule():
    global server
    if radosgw.missing():
        raise unittest.SkipTest(f"not installed: {', '.join(radosgw.missing())} (packages ceph-mon, ceph-osd, radosgw)")
    grid.up(1)
    # Where both the laptop and the hosts reach it.
    server = radosgw.Radosgw(grid.the_grid.facts[1]["address"].rpartition(".")[0] + ".1")
    unittest.addModuleCleanup(server.stop)


class Uploads(grid.Case):
    def run_job(self, name, endpoint, run=SAVER, **checkpoint):
        """What was told of each copy, once all are there and whole."""
        self.laptop = self.grid.laptop(name)
        self.laptop.environment.update(server.environment())
        self.laptop.register(1)
        server.make_bucket(name)
        self.laptop.run("store", "add", "cloud", f"s3://{name}/ckpt", "--endpoint", endpoint)
        work = os.path.join(self.laptop.folder, "work")
        os.mkdir(work)
        with open(os.path.join(work, "frozen"), "wb") as file:
            file.write(os.urandom(20_000_000))
        job = self.laptop.submit({"name": name, "workdir": work, "run": run, "resources": {"cpus": 0.5},
                                  "checkpoint": {"path": "out", "interval": "1s", "copies": 2, **checkpoint}})
        job.wait_success()
        wait_until("the copies", 60, lambda: all(one["copies"] for one in job.checkpoints()), job.evidence)
        self.assertEqual(self.laptop.run("store", "check", "cloud", "--all", "--json").json["findings"], [])
        self.laptop.run("checkpoint", "pull", job.id, "here")
        self.laptop.run("checkpoint", "pull", job.id, "there", "--from", "cloud")
        with open(os.path.join(self.laptop.folder, "here/state"), "rb") as one, \
                open(os.path.join(self.laptop.folder, "there/state"), "rb") as other:
            self.assertEqual(one.read(), other.read())
        return [event["text"] for event in job.events("checkpoint_copied")]

    def test_come_from_the_host(self):
        told = self.run_job("from-the-host", server.endpoint, keep=50)
        self.assertEqual(len(told), 4, told)
        for text in told[:2]:  # what changed is random, and the rest was sent with the first
            self.assertRegex(text, "MiB sent directly from its host$|MiB of it directly from its host$")

    def test_come_from_the_host_as_differences_to_what_is_long_removed_here(self):
        told = self.run_job("differences", server.endpoint, run=f"exec python3 -c '{TRAINER}'", keep=2)
        self.assertEqual(len(told), 6, told)
        for text in told:
            self.assertRegex(text, "[0-9] [KM]iB sent directly from its host$")
        sizes = [int(float(text.split()[-7]) * 100) for text in told]
        self.assertLess(max(sizes[1:]), 0.95 * sizes[0], told)

    def test_come_no_faster_than_the_job_allows(self):
        run = "mkdir -p out; head -c 12M /dev/zero | openssl enc -aes-128-ctr -pass pass:x -pbkdf2 > out/state; " \
              ": > out/.commit; date +SAVED=%s.%N; sleep 18"
        self.run_job("limit", server.endpoint, run=run, upload_limit="2MB/s")
        job = grid.Job(self.laptop, self.laptop.run("job", "ls", "--all", "--json").json[0]["job_id"])
        saved = float(job.logs().split("SAVED=")[1].split()[0])
        committed, copied = (grid.iso(job.events(kind)[0]["at"]) for kind in ("checkpoint", "checkpoint_copied"))
        self.assertGreater(committed - saved, 6)
        self.assertGreater(copied - committed, 5)
        self.assertLess(copied - saved, grid.bound(40))

    def test_come_from_here_when_the_host_cannot_reach_the_place(self):
        told = self.run_job("from-here", server.loopback)
        self.assertGreater(len(told), 0)
        self.assertFalse([text for text in told if "host" in text], told)

    def test_of_a_host_that_lies_are_refused(self):
        self.grid.enter(1, f"cat > /usr/local/bin/curl <<'END'\n{LIAR}\nEND\nchmod +x /usr/local/bin/curl")
        self.addCleanup(self.grid.enter, 1, "rm -f /usr/local/bin/curl /tmp/lie /tmp/orders /tmp/answers")
        told = self.run_job("lies", server.endpoint)
        self.assertFalse([text for text in told if "host" in text], told)
        answers = self.grid.enter(1, "cat /tmp/answers")
        self.assertIn("XAmzContentSHA256Mismatch", answers)
        self.assertNotIn(radosgw.SECRET_KEY, self.grid.enter(1, "cat /tmp/orders"))


class Gate:
    """Stands before the server: passes everything on, or as slowly as told, or says that it is busy."""

    BUSY = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

    def __init__(self, address, port):
        self.port, self.mode = port, "open"
        self.listener = socket.create_server((address, 0))
        self.endpoint = f"http://{address}:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.carry, args=(client,), daemon=True).start()

    def carry(self, client):
        with client:
            try:
                if self.mode == "busy":
                    client.recv(65536)
                    client.sendall(self.BUSY)
                    return
                with socket.create_connection(("127.0.0.1", self.port)) as server:
                    back = threading.Thread(target=self.pump, args=(server, client), daemon=True)
                    back.start()
                    self.pump(client, server)
                    back.join()
            except OSError:
                pass

    def pump(self, source, target):
        try:
            while piece := source.recv(16384):
                if self.mode == "slow":
                    time.sleep(len(piece) / SLOW)
                target.sendall(piece)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Troubled(grid.Case):
    """What befalls the server, the way to it, or our right to use it while a job runs."""

    def setUp(self):
        super().setUp()
        self.gate = Gate("127.0.0.1", server.port)
        self.addCleanup(self.gate.listener.close)
        self.laptop = self.grid.laptop("troubled")
        self.credentials = os.path.join(self.laptop.folder, "credentials")
        self.allow(radosgw.SECRET_KEY)
        environment = {name: value for name, value in server.environment().items() if not name.startswith("AWS_")}
        self.laptop.environment.update(environment, AWS_SHARED_CREDENTIALS_FILE=self.credentials)
        chaos_faults.preload(self.laptop)
        self.laptop.register(1)
        server.make_bucket("troubled")
        self.laptop.run("store", "add", "cloud", "s3://troubled", "--endpoint", self.gate.endpoint)
        self.job = self.laptop.submit({"name": "troubled", "run": WRITER, "resources": {"cpus": 0.5},
                                       "checkpoint": {"path": "out", "interval": "1s", "copies": 2, "keep": 4}})
        self.job.wait_event("checkpoint_copied")

    def allow(self, secret):
        with open(self.credentials + ".new", "w", encoding="ascii") as file:
            file.write(f"[default]\naws_access_key_id = {radosgw.ACCESS_KEY}\naws_secret_access_key = {secret}\n")
        os.replace(self.credentials + ".new", self.credentials)

    def saves_on(self):
        self.job.wait_event("checkpoint", len(self.job.events("checkpoint")) + 2)

    def copies_catch_up(self):
        """What is newest now is copied, or what has replaced it; and nothing that is called a copy is none."""
        newest = max(int(one["checkpoint_id"].rpartition("@")[2]) for one in self.job.checkpoints())
        wait_until("the copies", 90, lambda: any(int(event["text"].split()[1]) >= newest
                                                 for event in self.job.events("checkpoint_copied")), self.job.evidence)
        self.assertEqual(self.laptop.run("store", "check", "cloud", "--all", "--json").json["findings"], [])

    def step_clock(self, seconds):
        with open(self.laptop.environment["STEPPED_CLOCK"], "r+b") as file:
            file.write(struct.pack("q", seconds))

    def trouble(self, begin, end, told=False):
        before = len(self.job.events("copy_waits"))
        begin()
        self.saves_on()
        if told:
            self.assertIn("cloud accepts no copies", self.job.wait_event("copy_waits", before + 1, deadline=90)["text"])
        end()
        self.copies_catch_up()

    def test_the_job_goes_on_and_the_copies_catch_up(self):
        self.trouble(server.kill_gateway, server.start_gateway)
        for mode in ("busy", "slow"):
            self.trouble(lambda mode=mode: setattr(self.gate, "mode", mode), lambda: setattr(self.gate, "mode", "open"))
        self.trouble(lambda: self.allow("expired"), lambda: self.allow(radosgw.SECRET_KEY), told=True)
        # Requests that are signed an hour ahead are refused; then the server's time is taken.
        self.trouble(lambda: self.step_clock(3600), lambda: None)
        self.step_clock(0)
        self.assertEqual((self.job.show()["recoveries"], len(self.job.attempts())), (0, 1), self.job.evidence())
        self.grid.as_worker(1, "for work in .gridctl/jobs/*/*/*/work; do touch $work/enough; done")
        self.job.wait_success()
        wait_until("the last copies", 90, lambda: all(one["copies"] for one in self.job.checkpoints()), self.job.evidence)
        self.assertEqual(self.laptop.run("store", "check", "cloud", "--all", "--json").json["findings"], [])
        self.assertIsNone(self.laptop.run("store", "ls", "--json").json[0]["trouble"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
