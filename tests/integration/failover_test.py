# SPDX-License-Identifier: Apache-2.0
"""A job outlives its host: power loss, reboot, and scripts that know nothing of gridctl."""
import re
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


def torch(name, script, **envs):
    return {"name": name, "image": "localhost/torch:cpu", "workdir": grid.WORKLOADS, "run": f"python3 {script}",
            "envs": {key: str(value) for key, value in envs.items()}, "resources": {"cpus": 0.5},
            "checkpoint": {"path": "out", "interval": "1s"}, "recovery": {"lost_after": f"{LOST_AFTER}s"}}


def losses(output):
    return {int(step): loss for step, loss in re.findall(r"^step (\d+) loss ([\d.]+)$", output, re.MULTILINE)}


class Failover(grid.Case):
    def tearDown(self):
        super().tearDown()
        self.grid.heal_all()

    def kill_after_checkpoints(self, job, count):
        job.wait_checkpoint(count, deadline=90)
        host = job.host()
        killed = time.time()
        self.grid.kill(host)
        return host, killed

    def assert_second_attempt(self, job, host, killed, every):
        job.wait_attempt(2, deadline=LOST_AFTER + 60)
        moved = next(event for event in job.events("attempt_started") if event["attempt"] == 2 or event["epoch"] == 2)
        lost = job.wait_event("host_lost")
        grid.figure("silence until given up, beyond lost_after", f"{grid.iso(lost['at']) - killed - LOST_AFTER:.2f} s")
        grid.figure("given up until the program runs again", f"{grid.iso(moved['at']) - grid.iso(lost['at']):.2f} s")
        self.assertLess(grid.iso(lost["at"]) - killed, grid.bound(LOST_AFTER + 3))
        self.assertLess(grid.iso(moved["at"]) - grid.iso(lost["at"]), grid.bound(10))
        job.wait_success(hurry=True)
        attempts = job.attempts()
        self.assertEqual(len(attempts), 2, job.evidence())
        self.assertNotEqual(attempts[0]["provider"], attempts[1]["provider"])
        self.assertEqual(attempts[0]["state"], "lost")
        self.assertEqual(attempts[0]["reason"], "host_lost")
        self.assertTrue(attempts[1]["resumed_from"])
        self.assert_continues(job, every)

    def test_a_training_job_outlives_the_power_loss_of_its_host(self):
        job = laptop.submit(torch("train", "overwrite.py", STEPS=120, PACE=0.1, SAVE_EVERY=20))
        host, killed = self.kill_after_checkpoints(job, 2)
        self.assert_second_attempt(job, host, killed, 20)
        first, second = losses(job.logs("--attempt", "1")), losses(job.logs("--attempt", "2"))
        self.assertEqual(max(second), 120)
        self.assertEqual(set(first) | set(second), set(range(1, 121)))
        for step in set(first) & set(second):
            self.assertEqual(first[step], second[step], f"the loss of step {step} differs: the state was not restored")
        self.grid.start(host)
        self.grid.wait_clean()
        laptop.run("checkpoint", "verify", job.id)

    def test_a_script_that_adds_folders_is_resumed_from_a_whole_one(self):
        job = laptop.submit(torch("stepdirs", "stepdirs.py", STEPS=75, PACE=0.4, SAVE_EVERY=15))
        host, killed = self.kill_after_checkpoints(job, 1)
        self.assert_second_attempt(job, host, killed, 15)
        self.grid.start(host)
        self.grid.wait_clean()

    def test_a_torn_file_is_never_restored(self):
        job = laptop.submit(torch("torn", "torn.py", STEPS=60, PACE=0.15, SAVE_EVERY=15, WIDTH=256, WRITE_SECONDS=1,
                                  DIE_AT=45))
        job.wait_success(deadline=120)
        self.assertEqual(len(job.attempts()), 2, job.evidence())
        self.assertIn("dying in the checkpoint of step 45", job.logs("--attempt", "1"))
        self.assertNotIn("torn checkpoint", job.logs())
        self.assert_continues(job, 15)

    def test_power_lost_while_it_writes(self):
        job = laptop.submit(plain("torn-power", envs={"MODE": "torn", "STEPS": 24, "SAVE_EVERY": 8, "PACE": 0.1,
                                                      "WRITE_PACE": 0.15}))
        job.wait_checkpoint(1)
        job.wait_output("writing step 16")
        host = job.host()
        self.grid.kill(host)
        job.wait_success()
        self.assertNotIn("torn checkpoint", job.logs())
        self.assert_continues(job, 8)
        self.assert_steps_once(job, 24, attempts=2)
        self.grid.start(host)
        self.grid.wait_clean()

    def test_a_reboot_is_proof_of_death(self):
        job = laptop.submit(plain("reboot", envs={"STEPS": 60}, recovery={"lost_after": "60s"}))
        job.wait_checkpoint(2)
        host = job.host()
        began = time.time()
        self.grid.reboot(host)
        proof = job.wait_event("attempt_ended", deadline=15)
        self.assertIn("rebooted", proof["text"])
        job.wait_attempt(2, deadline=10)
        again = job.events("attempt_started")[1]
        grid.figure("reboot until its proof", f"{grid.iso(proof['at']) - began:.2f} s")
        grid.figure("proof of death until the program runs again (process)",
                    f"{grid.iso(again['at']) - grid.iso(proof['at']):.2f} s")
        self.assertLess(grid.iso(proof["at"]) - began, 30, "lost_after is 60 s")
        job.wait_success(hurry=True)
        self.assertEqual(job.attempts()[0]["reason"], "host_rebooted")
        self.assert_continues(job, 10)
        self.assert_steps_once(job, 60, attempts=2)
        self.grid.wait_clean()

    def test_both_hosts_that_had_it_die_one_after_the_other(self):
        job = laptop.submit(plain("twice", envs={"STEPS": 70}))
        job.wait_checkpoint(1)
        first = job.host()
        self.grid.kill(first)
        job.wait_attempt(2)
        made = len(job.events("checkpoint"))
        job.wait_checkpoint(made + 1)
        second = job.host()
        self.grid.kill(second)
        job.wait_attempt(3)
        job.wait_success(hurry=True)
        self.assertEqual(len({attempt["provider"] for attempt in job.attempts()}), 3, job.evidence())
        self.assert_continues(job, 10)
        self.assert_steps_once(job, 70, attempts=3)
        self.grid.heal_all()
        self.grid.wait_clean()

    def test_a_killed_container_is_started_again_at_once(self):
        job = laptop.submit(torch("container", "overwrite.py", STEPS=100, PACE=0.1, SAVE_EVERY=20))
        for number, how in enumerate(("podman kill", "podman rm -f -t 0"), 1):
            saved = len(job.events("checkpoint"))
            job.wait_checkpoint(saved + 1, deadline=90)
            host = job.host()
            began = time.time()
            self.grid.as_worker(host, f"{how} $(podman ps -q --filter label=gridctl.job={job.id})")
            job.wait_attempt(number + 1, deadline=20)
            again = job.events("attempt_started")[number]
            grid.figure(f"{how} until the program runs again", f"{grid.iso(again['at']) - began:.2f} s")
            self.assertLess(grid.iso(again["at"]) - began, grid.bound(12))
        job.wait_success(hurry=True)
        self.assertEqual(len(job.attempts()), 3, job.evidence())
        self.assert_continues(job, 20)
        self.grid.wait_clean()


if __name__ == "__main__":
    unittest.main(verbosity=2)
