# SPDX-License-Identifier: Apache-2.0
"""Full disks: of the host while a job saves, of the laptop while checkpoints come in."""
import os
import subprocess
import time
import unittest

import grid
from grid import plain

HOST_DISK_MB = 1400  # a host with less than 1 GiB free is not accepted
LAPTOP_DISK_MB = 40
LOST_AFTER = 5  # seconds, as grid.plain says
BALLAST_MB = 30  # of each checkpoint


def setUpModule():
    global laptop
    the_grid = grid.up(2, small_disks={1: f"{HOST_DISK_MB}m"})
    laptop = the_grid.laptop()
    for host in the_grid.hosts:
        laptop.register(host)


# Each checkpoint is a file of random bytes, so that nothing of it is shared with the one before.
SAVER = """
mkdir -p out; step=0
[ ! -f out/state ] || { step=$(head -n 1 out/state); echo "resumed after step $step"; }
while [ $step -lt $STEPS ]; do
  step=$((step + 1)); echo "step $step loss 1"
  { echo $step; head -c ${BALLAST}000000 /dev/urandom; } > out/new || { echo "cannot save"; sleep 1; continue; }
  mv out/new out/state; : > out/.commit
  sleep $PACE
done
echo done
"""


def saver(name, **envs):
    envs = dict({"STEPS": 6, "PACE": 1.5, "BALLAST": BALLAST_MB}, **envs)
    return plain(name, workdir=None, run=SAVER, envs=envs)


class Disks(grid.Case):
    def setUp(self):
        super().setUp()
        self.fill = os.path.join(self.grid.disk(1, "home/worker"), "ballast")

    def tearDown(self):
        super().tearDown()
        if os.path.exists(self.fill):
            os.unlink(self.fill)

    def without_workdir(self, spec):
        return {key: value for key, value in spec.items() if value is not None}

    def test_a_host_whose_disk_fills_while_it_saves_neither_loses_nor_fails_the_job(self):
        spec = self.without_workdir(saver("host-full", STEPS=10, PACE=0.5, BALLAST=10))
        spec["constraints"] = {"providers": ["h1"]}
        job = laptop.submit(spec)
        job.wait_checkpoint(1)
        good = len(job.checkpoints())
        grid.fill_disk(self.fill)
        job.wait("a sign of the full disk", 60,
                 lambda: "space" in "".join(event["text"] for event in job.events()) + job.logs() + laptop.evidence()
                 or "cannot save" in job.logs())
        laptop.run("checkpoint", "verify", job.id)  # what was safe is safe
        began = time.monotonic()
        while time.monotonic() - began < 2 * LOST_AFTER:  # a full host is not a dead host, however long it is full
            self.assertFalse(job.events("host_lost"), job.evidence())
            time.sleep(grid.LOOK)
        self.assertGreaterEqual(len(job.events("checkpoint")), good)
        os.unlink(self.fill)
        job.wait_success(deadline=90)
        self.assertEqual(len(job.attempts()), 1, job.evidence())

    def test_a_full_laptop_keeps_the_job_and_the_last_good_checkpoint(self):
        small = os.path.join(self.grid.folder, "small")
        os.makedirs(small)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={LAPTOP_DISK_MB}m", "tmpfs", small], check=True)
        poor = self.grid.laptop("poor", state=os.path.join(small, "state"))
        try:
            for host in self.grid.hosts:
                poor.register(host)
            spec = self.without_workdir(saver("laptop-full", STEPS=5, PACE=2, BALLAST=25))
            spec["constraints"] = {"providers": ["h2"]}
            job = poor.submit(spec)
            job.wait_checkpoint(1)
            job.wait("word of the full disk", 40, lambda: "no room for" in "".join(e["text"] for e in job.events()) + poor.evidence())
            self.assertEqual(len(job.attempts()), 1, job.evidence())
            self.assertIn(job.state, ("RUNNING", "SUCCEEDED"))
            poor.run("checkpoint", "verify", job.id)
            subprocess.run(["mount", "-o", "remount,size=400m", small], check=True)
            job.wait_success(deadline=60)
            self.assertEqual(len(job.attempts()), 1, job.evidence())
            poor.run("checkpoint", "verify", job.id)
            self.grid.wait_clean()
        finally:
            poor.close()
            self.grid.laptops.remove(poor)
            subprocess.run(["umount", "-l", small], check=False)

    def test_submit_on_a_full_disk_submits_nothing(self):
        small = os.path.join(self.grid.folder, "tiny")
        os.makedirs(small)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", small], check=True)
        poor = self.grid.laptop("tiny-laptop", state=os.path.join(small, "state"))
        try:
            poor.register(2)
            source = os.path.join(self.grid.folder, "source")
            os.makedirs(source)
            with open(os.path.join(source, "data"), "wb") as file:
                file.write(os.urandom(8 << 20))
            with self.assertRaises(AssertionError) as refused:
                poor.submit(plain("too-much", workdir=source, run="true"))
            self.assertIn("expected exit code 0", str(refused.exception))
            self.assertIn("space", str(refused.exception))
            self.assertEqual(poor.run("job", "ls", "--json").json, [])
        finally:
            poor.close()
            self.grid.laptops.remove(poor)
            subprocess.run(["umount", "-l", small], check=False)


if __name__ == "__main__":
    unittest.main(verbosity=2)
