# SPDX-License-Identifier: Apache-2.0
"""Unreachable is not dead: cuts, one-way cuts, sshd gone for a while, a host with another key."""
import re
import signal
import time
import unittest

import grid
from grid import plain

LOST_AFTER = 5  # seconds


def setUpModule():
    global laptop
    the_grid = grid.up(3)
    laptop = the_grid.laptop()
    for host in the_grid.hosts:
        laptop.register(host)


class Network(grid.Case):
    def tearDown(self):
        super().tearDown()
        self.grid.heal_all()

    def started(self, name, **options):
        job = laptop.submit(plain(name, **options))
        job.wait_checkpoint(1)
        return job, job.host()

    def sure_silence(self, host, seconds):
        """The cut lasts so long; its length is what is tested, so this is no wait for an event."""
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            time.sleep(grid.LOOK)
        self.grid.heal(host)

    def test_a_cut_of_half_lost_after_changes_nothing(self):
        job, host = self.started("short-cut", envs={"STEPS": 60})
        self.grid.partition(host)
        self.sure_silence(host, LOST_AFTER / 2)
        job.wait_success()
        self.assert_steps_once(job, 60, attempts=1)
        self.assertEqual(steps_seen(job), list(range(1, 61)))

    def test_a_longer_cut_moves_the_job_and_its_stale_attempt_is_stopped(self):
        job, host = self.started("long-cut", envs={"STEPS": 150, "SAVE_EVERY": 10})
        before = len(job.checkpoints())
        self.grid.partition(host)
        job.wait_attempt(2, deadline=LOST_AFTER + 20)
        # the stale one goes on meanwhile, and makes checkpoints that nobody has seen
        self.assertTrue(self.grid.pids(host, r"plain\.sh"), "the cut-off attempt should still be running")
        seen = len(job.events("checkpoint"))
        job.wait_checkpoint(seen + 1)
        self.grid.heal(host)
        job.wait_event("settled", deadline=60)
        self.assertFalse(self.grid.pids(host, r"plain\.sh"))
        strays = [one for one in job.checkpoints() if one["stray"]]
        self.assertTrue(strays, "what the stale attempt saved while it was cut off is gone\n" + job.evidence())
        self.assertEqual({stray["attempt"] for stray in strays}, {1})
        job.wait_success()
        self.assertEqual(job.attempts()[0]["state"], "lost")
        self.assert_steps_once(job, 150, attempts=2)
        self.assert_continues(job, 10)
        self.assertEqual(len(job.events("succeeded")), 1)
        self.assertTrue(any(one["stray"] for one in job.checkpoints()))
        self.assertGreaterEqual(len(job.checkpoints()), before)
        self.grid.wait_clean()

    def test_lost_replies_start_nothing_twice(self):
        # Requests reach the host, its answers do not: the laptop cannot know what it has done.
        job = laptop.submit(plain("one-way", envs={"STEPS": 80}))
        job.wait_event("placed")
        host = job.host()
        self.grid.partition(host, "out")
        self.sure_silence(host, LOST_AFTER / 2)
        job.wait_success(deadline=120)
        self.assert_steps_once(job, 80)
        alive = [attempt for attempt in job.attempts() if attempt["started_at"]]
        # one program at a time: each attempt that began did so after the one before had ended
        for former, latter in zip(alive, alive[1:]):
            self.assertLessEqual(grid.iso(former["ended_at"]), grid.iso(latter["started_at"]))
        self.grid.wait_clean()

    def test_lost_replies_of_a_running_job_start_nothing_twice(self):
        job, host = self.started("one-way-running", envs={"STEPS": 110})
        self.grid.partition(host, "out")
        job.wait_attempt(2, deadline=LOST_AFTER + 20)
        self.grid.heal(host)
        job.wait_event("settled")
        self.assertFalse(self.grid.pids(host, r"plain\.sh"))
        job.wait_success()
        self.assert_steps_once(job, 110, attempts=2)
        self.grid.wait_clean()

    def test_sshd_gone_for_a_while_harms_nothing(self):
        job, host = self.started("sshd", envs={"STEPS": 80})
        self.grid.command("sshd", host, "stop")
        # the listener ends and so do the sessions, as when the machine is short of memory
        self.grid.enter(host, "pkill -9 -x sshd || true")
        try:
            job.wait("the laptop noticing", 10, lambda: "h%d" % host in laptop.evidence())
            time.sleep(LOST_AFTER / 2)  # the length of the trouble, no wait for an event
        finally:
            self.grid.command("sshd", host, "start")
        job.wait_success()
        self.assert_steps_once(job, 80, attempts=1)
        self.assertEqual(steps_seen(job), list(range(1, 81)))

    def test_a_stuck_agent_is_not_a_dead_host(self):
        job, host = self.started("stuck-agent", envs={"STEPS": 130})
        stuck = self.grid.pids(host, "gridctl-agent connect")
        self.grid.signal(host, stuck, signal.SIGSTOP)
        try:
            time.sleep(2 * LOST_AFTER)  # the length of the trouble, no wait for an event
        finally:
            self.grid.signal(host, stuck, signal.SIGCONT)
        job.wait_success()
        self.assert_steps_once(job, 130, attempts=1)

    def test_silence_of_everybody_is_our_own_trouble(self):
        job, host = self.started("own-trouble", envs={"STEPS": 110})
        for each in self.grid.hosts:
            self.grid.partition(each)
        self.sure_silence(host, LOST_AFTER * 2)
        for each in self.grid.hosts:
            self.grid.heal(each)
        job.wait_success()
        self.assert_steps_once(job, 110, attempts=1)

    def test_a_slow_lossy_link_is_enough(self):
        job = laptop.submit(plain("slow", envs={"STEPS": 30}))
        job.wait_event("placed")
        host = job.host()
        self.grid.command("shape", host, "20mbit", "80ms", "2")
        try:
            job.wait_success()
        finally:
            self.grid.command("unshape", host)
        self.assert_steps_once(job, 30, attempts=1)


class HostKey(grid.Case):
    def test_another_key_stops_everything_and_both_are_shown(self):
        old = self.grid.facts[3]["host_key"]
        folder = self.grid.disk(3, "etc/ssh")
        keep = self.grid.enter(3, "cd /etc/ssh && mkdir /root/keys && cp -a ssh_host_* /root/keys && "
                                  "rm ssh_host_* && ssh-keygen -q -t ed25519 -N '' -f ssh_host_ed25519_key && "
                                  "ssh-keygen -q -t ecdsa -N '' -f ssh_host_ecdsa_key && "
                                  "ssh-keygen -l -f ssh_host_ed25519_key.pub; ssh-keygen -l -f ssh_host_ecdsa_key.pub")
        self.assertTrue(folder)
        new = re.findall(r"SHA256:\S+", keep)
        self.grid.reboot(3)
        try:
            told = laptop.run("provider", "check", "h3", code=6)
            self.assertIn(old, told.err)
            self.assertTrue(any(key in told.err for key in new), str(told))
            unknown = laptop.register(3, "again", check=False)
            self.assertEqual(unknown.code, 6, str(unknown))
            # A stranger gets no job either.
            job = laptop.submit(plain("stranger", envs={"STEPS": 5}), "--provider", "h3")
            job.wait("a reason", 30, lambda: job.show()["state"] == "PENDING" and "h3" in laptop.evidence())
            self.assertFalse(self.grid.pids(3, "gridctl-agent"))
            laptop.run("job", "cancel", job.id, "--now", "--wait", timeout=40)
        finally:
            self.grid.enter(3, "cd /etc/ssh && rm ssh_host_* && cp -a /root/keys/* . && rm -r /root/keys")
            self.grid.reboot(3)
        laptop.run("provider", "check", "h3")

    def test_an_unknown_key_is_trusted_by_no_script(self):
        facts = self.grid.facts[1]
        new = self.grid.laptop("stranger")
        done = new.run("provider", "register", "new", f"worker@{facts['address']}", "-i", self.grid.key, check=False)
        self.assertEqual(done.code, 6, str(done))
        self.assertIn(facts["host_key"], done.err)
        self.assertIn("--host-key", done.err)

    def test_a_refused_login_is_told_as_such(self):
        facts = self.grid.facts[1]
        done = laptop.run("provider", "register", "new", f"nobody@{facts['address']}", "--host-key", facts["host_key"],
                          "-i", self.grid.key, check=False)
        self.assertEqual(done.code, 6, str(done))


def steps_seen(job):
    return grid.steps_of(job.logs())


if __name__ == "__main__":
    unittest.main(verbosity=2)
