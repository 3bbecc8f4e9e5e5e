# SPDX-License-Identifier: Apache-2.0
"""Copies of checkpoints in other remotes: made while jobs run, missed while a remote is away, needed when the store here is
damaged or lost."""
import glob
import os
import shutil
import unittest

import grid
from grid import plain, wait_until

KEEPER = 3             # a host that keeps copies and runs no job
KEEPER_DISK_MB = 1400  # a host with less than 1 GiB free is not accepted
BALLAST_MB = 20        # of each checkpoint, random: nothing of it is shared with the one before
SAVER = """
mkdir -p out; step=0
until [ -e enough ]; do
  step=$((step + 1))
  { echo $step; head -c ${BALLAST}000000 /dev/urandom; } > out/new && mv out/new out/state && : > out/.commit
  sleep 1.5
done
"""


def setUpModule():
    grid.up(3, small_disks={KEEPER: f"{KEEPER_DISK_MB}m"})


def copies_of(job):
    return {int(one["checkpoint_id"].rpartition("@")[2]): one["copies"] for one in job.checkpoints()}


def damage(store, remote):
    """One bit of each pack of the store that the remote has too, inside its blobs: the job's files are in others."""
    for copied in glob.glob(os.path.join(remote, "packs", "*.pack")):
        with open(os.path.join(store, "packs", os.path.basename(copied)), "r+b") as file:
            file.seek(60)
            byte = file.read(1)[0]
            file.seek(60)
            file.write(bytes([byte ^ 4]))


class Copies(grid.Case):
    """`url` is that of the remote, `remote` its folder as seen from here."""

    def setUp(self):
        """Each with a store of its own: what one damages would be what another believes to have."""
        super().setUp()
        self.laptop = self.new_laptop(self.id().rpartition(".")[2])
        self.choose_place()
        self.laptop.run("store", "add", "nas", self.url)

    def new_laptop(self, name):
        laptop = self.grid.laptop(name)
        for host in self.grid.hosts:
            if host != KEEPER:
                laptop.register(host)
        return laptop

    def trouble(self):
        return self.laptop.run("store", "ls", "--json").json[0]["trouble"]

    def wait_copies(self, job, deadline=60):
        wait_until("the copies", deadline, lambda: all(copies_of(job).values()), job.evidence)

    def check_all(self):
        self.assertEqual(self.laptop.run("store", "check", "nas", "--all", "--json").json["findings"], [])

    def lose_store_and_laptop(self):
        job = self.laptop.submit(plain("lost", envs={"STEPS": 20}, checkpoint={"copies": 2}))
        job.wait_success()
        self.wait_copies(job)
        self.laptop.run("checkpoint", "pull", job.id, "before")
        self.laptop.run("daemon", "stop")
        packs = os.path.join(self.laptop.state, "store", "packs")
        shutil.rmtree(packs)
        os.mkdir(packs)
        done = self.laptop.run("checkpoint", "pull", job.id, "after")
        self.assertIn("from nas", done.err)
        self.same("before", "after")
        # Another machine, with the key alone.
        self.laptop.run("key", "export", "the.key")
        other = self.new_laptop("other-" + self.id().rpartition(".")[2])
        other.run("key", "import", os.path.join(self.laptop.folder, "the.key"))
        refused = other.run("store", "add", "nas", self.url, check=False)
        self.assertIn("keeps its copies there", refused.err)
        other.run("store", "add", "nas", self.url, "--take-over")
        found = [one for one in other.run("store", "ls", "nas", "--json").json if one["job_id"] == job.id]
        self.assertEqual([one["job_name"] for one in found if one["whole"]], ["lost"] * len(job.checkpoints()))
        other.run("checkpoint", "pull", "lost", os.path.join(self.laptop.folder, "elsewhere"), "--from", "nas")
        self.same("before", "elsewhere")
        # Ours keeps out of it from now on.
        self.assertIn("another state directory", self.laptop.run("store", "sync", "nas", check=False).err)

    def same(self, one, other):
        one, other = os.path.join(self.laptop.folder, one), os.path.join(self.laptop.folder, other)
        names = sorted(os.listdir(one))
        self.assertEqual(names, sorted(os.listdir(other)))
        for name in names:
            with open(os.path.join(one, name), "rb") as a, open(os.path.join(other, name), "rb") as b:
                self.assertEqual(a.read(), b.read(), name)


class CopiesInADirectory(Copies):
    def choose_place(self):
        self.remote = os.path.join(self.laptop.folder, "nas")
        self.url = f"dir:{self.remote}"

    def test_a_place_that_goes_away_neither_stops_nor_delays_a_job_and_gets_what_it_missed(self):
        job = self.laptop.submit(plain("away", envs={"STEPS": 300, "SAVE_EVERY": 5}, checkpoint={"copies": 2, "keep": 50}))
        job.wait_event("checkpoint_copied")
        away = self.remote + "-away"
        os.rename(self.remote, away)  # as a disk that is unmounted
        job.wait_event("copy_waits")
        seen = len(job.checkpoints())
        job.wait_checkpoint(seen + 3)  # it saves on
        told = [event["text"] for event in job.events("copy_waits")]
        self.assertIn("nas accepts no copies", told[0])
        self.assertEqual(len(told), len(set(told)), told)  # once for each reason: a copy under way fails in its own words
        self.assertFalse(os.path.exists(self.remote))  # nothing was written below the mount point
        self.assertIn("is its disk mounted?", self.trouble())
        behind = [number for number, remotes in copies_of(job).items() if not remotes]
        self.assertGreaterEqual(len(behind), 3)
        os.rename(away, self.remote)
        wait_until("the copies that were missed", 60, lambda: all(remotes == ["nas"] for remotes in copies_of(job).values()),
                   job.evidence)
        job.wait_success(hurry=True)
        self.assertEqual(job.show()["recoveries"], 0)
        wait_until("the last copy", 60, lambda: all(copies_of(job).values()), job.evidence)
        self.assertIsNone(self.trouble())
        self.assertEqual(self.laptop.run("store", "check", "nas", "--all", "--json").json["findings"], [])

    def test_a_checkpoint_that_is_damaged_here_is_brought_back_from_its_copy_when_a_host_dies(self):
        job = self.laptop.submit(plain("damaged", envs={"STEPS": 120, "PACE": 0.2}, checkpoint={"copies": 2, "keep": 50},
                                  recovery={"lost_after": "25s"}))
        job.wait_checkpoint(2)
        host = job.host()
        self.addCleanup(self.grid.start, host)
        self.grid.kill(host)
        wait_until("all copies", 24, lambda: all(copies_of(job).values()), job.evidence)
        self.assertEqual(job.events("host_lost"), [])
        damage(os.path.join(self.laptop.state, "store"), self.remote)  # before anybody has read it
        job.wait_event("checkpoint_healed", deadline=90)
        job.wait_attempt(2)
        job.wait_success(hurry=True)
        self.assertIn("from nas", job.events("checkpoint_healed")[0]["text"])
        self.assertIsNotNone(job.attempts()[-1]["resumed_from"])

    def test_a_store_that_is_lost_and_a_laptop_that_is_lost_are_made_good_from_it(self):
        self.lose_store_and_laptop()


class CopiesOnAHost(Copies):
    def choose_place(self):
        self.remote = self.grid.disk(KEEPER, "home/worker/copies")
        self.addCleanup(shutil.rmtree, self.remote, ignore_errors=True)
        self.addCleanup(self.grid.heal_all)
        self.url = f"ssh://h{KEEPER}/copies"

    def new_laptop(self, name):
        laptop = super().new_laptop(name)
        laptop.register(KEEPER)
        laptop.run("provider", "drain", f"h{KEEPER}")
        return laptop

    def saver(self, name):
        return {"name": name, "run": SAVER, "envs": {"BALLAST": str(BALLAST_MB)}, "resources": {"cpus": 0.5},
                "checkpoint": {"path": "out", "interval": "1s", "copies": 2}, "recovery": {"lost_after": "5s"}}

    def finish(self, job):
        """All that was missed comes, and all that came is whole."""
        self.grid.as_worker(job.host(), "for work in .gridctl/jobs/*/*/*/work; do touch $work/enough; done")
        job.wait_success()
        self.wait_copies(job, deadline=120)
        self.assertIsNone(self.trouble())
        self.check_all()
        self.assertEqual(job.show()["recoveries"], 0)
        self.assertEqual(len(job.attempts()), 1, job.evidence())

    def unfinished(self):
        return glob.glob(os.path.join(self.remote, ".tmp", "*.part"))

    def saves_on(self, job):
        job.wait_checkpoint(len(job.events("checkpoint")) + 2)

    def test_a_lost_store_and_a_lost_laptop_are_made_good_from_it(self):
        self.lose_store_and_laptop()
        self.assertEqual(self.grid.processes(KEEPER) and self.grid.leases_on(KEEPER), [])  # no job was there

    def test_it_dies_in_the_midst_of_a_copy_and_gets_what_it_missed(self):
        self.grid.command("shape", KEEPER, "100mbit", "20ms")  # so that a copy takes a second or two
        self.addCleanup(self.grid.command, "unshape", KEEPER)
        job = self.laptop.submit(self.saver("dies"))
        job.wait_event("checkpoint_copied")
        wait_until("a copy that is under way", 60, self.unfinished, job.evidence)
        self.grid.kill(KEEPER)
        self.assertTrue(self.unfinished())
        self.saves_on(job)
        told = {number for number, remotes in copies_of(job).items() if remotes}
        there = {int(name) for name in os.listdir(os.path.join(self.remote, "checkpoints", job.id))}
        self.assertLessEqual(told, there)
        job.wait_event("copy_waits", deadline=120)
        self.saves_on(job)
        self.grid.start(KEEPER)
        self.finish(job)

    def test_its_disk_is_full_for_a_while(self):
        job = self.laptop.submit(self.saver("full"))
        job.wait_event("checkpoint_copied")
        ballast = self.grid.disk(KEEPER, "home/worker/ballast")
        self.addCleanup(lambda: os.path.exists(ballast) and os.unlink(ballast))
        grid.fill_disk(ballast)
        told = job.wait_event("copy_waits")["text"]
        self.assertIn("space", told)
        wait_until("what was begun to be gone", 60, lambda: not self.unfinished(), job.evidence)
        self.saves_on(job)
        os.unlink(ballast)
        self.finish(job)

    def test_a_host_with_another_key_gets_nothing(self):
        job = self.laptop.submit(self.saver("key"))
        job.wait_event("checkpoint_copied")
        self.grid.enter(KEEPER, "cd /etc/ssh && mkdir /root/keys && cp -a ssh_host_* /root/keys && rm ssh_host_* && "
                                "ssh-keygen -q -t ed25519 -N '' -f ssh_host_ed25519_key")
        self.grid.reboot(KEEPER)
        try:
            wait_until("word of the other key", 60, lambda: "key" in (self.trouble() or ""), job.evidence)
            self.assertEqual(self.laptop.run("store", "check", "nas", check=False).code, 6)
            before = os.listdir(os.path.join(self.remote, "packs"))
            self.saves_on(job)
            self.assertEqual(os.listdir(os.path.join(self.remote, "packs")), before)
        finally:
            self.grid.enter(KEEPER, "cd /etc/ssh && rm ssh_host_* && cp -a /root/keys/* . && rm -r /root/keys")
            self.grid.reboot(KEEPER)
        self.finish(job)


if __name__ == "__main__":
    unittest.main()
