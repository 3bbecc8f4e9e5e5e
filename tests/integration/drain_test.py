# SPDX-License-Identifier: Apache-2.0
"""A host is taken out of service: its jobs move when a checkpoint is safe, and only when another host can take them."""
import re
import signal
import time
import unittest

import grid
from grid import plain


def setUpModule():
    global laptop
    the_grid = grid.up(2)
    laptop = the_grid.laptop()
    for host in the_grid.hosts:
        laptop.register(host)


class Draining(grid.Case):
    def tearDown(self):
        super().tearDown()
        for host in self.grid.hosts:
            laptop.run("provider", "undrain", f"h{host}")
        for shown in laptop.run("job", "ls", "--json").json:
            if shown["state"] not in grid.FINAL:
                laptop.run("job", "cancel", shown["job_id"], "--now", "--wait")
        self.grid.heal_all()

    def assert_moved_once(self, job, source, steps, every):
        job.wait_attempt(2)
        shown = job.wait_success(hurry=True)
        first, second = shown["attempts"]
        self.assertEqual((first["state"], first["reason"]), ("stopped", "drained"), job.evidence())
        self.assertEqual(first["provider"], f"h{source}")
        self.assertNotEqual(second["provider"], first["provider"])
        saved = [event for event in job.events("checkpoint") if event["epoch"] == first["epoch"]]
        self.assertEqual(second["resumed_from"], f"{job.id}@{len(saved)}", "not the newest checkpoint\n" + job.evidence())
        self.assertFalse(job.events("host_lost") + job.events("program_failed"), job.evidence())
        self.assert_continues(job, every)
        self.assert_steps_once(job, steps, attempts=2)

    def test_a_job_goes_on_elsewhere_from_its_newest_checkpoint_and_the_host_is_empty(self):
        job = laptop.submit(plain("mover", envs={"STEPS": 120}))
        job.wait_checkpoint(2)
        source = job.host()
        began = time.monotonic()
        done = laptop.run("provider", "drain", f"h{source}", "--wait", "--timeout", "60s")
        grid.figure("drain --wait", f"{time.monotonic() - began:.1f} s")
        self.assertIn(f"h{source} is empty", done.out)
        self.assertIn("when its next checkpoint is safe", done.err)
        self.assertEqual(self.grid.leftovers_on(source), [])
        due, moving = job.wait_event("move_requested"), job.wait_event("moving")
        self.assertIn("is safe", moving["text"])
        self.assertLess(due["id"], moving["id"])
        job.wait_attempt(2, deadline=60)
        grid.figure("stopped until it runs elsewhere",
                    f"{grid.iso(job.events('attempt_started')[1]['at']) - grid.iso(moving['at']):.2f} s")
        self.assert_moved_once(job, source, 120, 10)

    def test_a_job_that_follows_its_interval_is_told_to_save_soon(self):
        job = laptop.submit(plain("follower", envs={"STEPS": 400, "SAVE_EVERY": "told"}, checkpoint={"interval": "auto"}))
        grid.wait_until("its first step", 60, lambda: "step 1 " in job.logs(), job.evidence)
        source = job.host()
        told = re.search(r"suggested checkpoint interval: (\d+)m", laptop.run("job", "explain", job.id).out)
        self.assertTrue(told, "it is to save every few minutes\n" + job.evidence())
        began = time.monotonic()
        laptop.run("provider", "drain", f"h{source}", "--wait", "--timeout", "60s")
        grid.figure(f"drain --wait of a job that saves every {told[1]} minutes", f"{time.monotonic() - began:.1f} s")
        self.assert_moved_once(job, source, 400, 1)

    def test_a_job_saves_and_leaves_before_its_host_ends(self):
        job = laptop.submit(plain("ending", envs={"STEPS": 300}))
        job.wait_checkpoint(2)
        source = job.host()
        ends = time.time() + 90
        told = laptop.run("provider", "set", f"h{source}", "--until", "+90s").out
        self.addCleanup(lambda: laptop.run("provider", "set", f"h{source}", "--until", "none"))
        self.assertRegex(told, rf"h{source}: until 20\d\d-.*Z \(was none\)")
        self.assertIn("there until", laptop.run("provider", "show", f"h{source}").out)
        asked = job.wait_event("move_requested", deadline=60)
        self.assertIn(f"h{source} ends soon", asked["text"])
        self.assertIn("is safe", job.wait_event("moving")["text"])
        job.wait_attempt(2, deadline=60)
        left = ends - grid.iso(job.events("moving")[0]["at"])
        self.assertGreater(left, 30, "it left too late\n" + job.evidence())
        grid.figure("a job left before its host's end", f"{left:.0f} s")
        self.assertNotEqual(job.host(), source)
        beside = laptop.submit(plain("beside", envs={"STEPS": 5}), "--provider", f"h{source}")
        reason = grid.wait_until("why it waits", 30, lambda: re.search(r"h%d.*ends.*" % source, laptop.run(
            "job", "explain", beside.id).out), beside.evidence)
        self.assertRegex(reason[0], "it ends at|its time ended at")
        laptop.run("provider", "set", f"h{source}", "--until", "none")
        beside.wait_success(deadline=60)
        laptop.run("job", "cancel", job.id, "--now", "--wait")

    def test_without_another_host_the_job_stays_and_says_why(self):
        job = laptop.submit(plain("stayer", envs={"STEPS": 200}))
        job.wait_checkpoint(1)
        source = job.host()
        other = 3 - source
        laptop.run("provider", "drain", f"h{other}")
        laptop.run("provider", "drain", f"h{source}", "--within", "0s")
        blocked = job.wait_event("move_blocked", deadline=60)
        self.assertIn("no other host can run the job now", blocked["text"])
        job.wait_checkpoint(len(job.events("checkpoint")) + 2)
        self.assertEqual([a["state"] for a in job.attempts()], ["running"], job.evidence())
        self.assertEqual(len(job.events("move_blocked")), 1, job.evidence())
        self.assertIn("stays until another host can run it", laptop.run("job", "explain", job.id).out)
        laptop.run("provider", "undrain", f"h{other}")
        job.wait_attempt(2, deadline=60)
        self.assert_moved_once(job, source, 200, 10)

    def test_undrain_takes_back_what_has_not_begun(self):
        job = laptop.submit(plain("waverer", envs={"STEPS": 60, "SAVE_EVERY": 1000}))
        job.wait_attempt(1)
        source = job.host()
        waiting = laptop.spawn("provider", "drain", f"h{source}", "--wait")
        job.wait_event("move_requested", deadline=60)
        laptop.run("provider", "undrain", f"h{source}")
        _, err = waiting.communicate(timeout=20)
        self.assertEqual(waiting.returncode, 9, err)
        self.assertIn("takes jobs again", err)
        job.wait_event("move_withdrawn", deadline=60)
        job.wait_success(hurry=True)
        self.assertEqual(len(job.attempts()), 1, job.evidence())

    def test_ctrl_c_ends_the_waiting_and_not_the_move(self):
        job = laptop.submit(plain("patient", envs={"STEPS": 100}))
        job.wait_checkpoint(1)
        source = job.host()
        waiting = laptop.spawn("provider", "drain", f"h{source}", "--wait")
        job.wait_event("move_requested", deadline=60)
        waiting.send_signal(signal.SIGINT)
        _, err = waiting.communicate(timeout=20)
        self.assertEqual(waiting.returncode, 130, err)
        self.assertIn("stays drained", err)
        job.wait_attempt(2, deadline=60)
        self.assert_moved_once(job, source, 100, 10)

    def test_a_killed_daemon_goes_on_with_the_move_wherever_it_was(self):
        job = laptop.submit(plain("killed", envs={"STEPS": 150}))
        job.wait_checkpoint(1)
        source = job.host()
        laptop.run("provider", "drain", f"h{source}")
        for kind in ("move_requested", "moving", "moved_away"):
            job.wait_event(kind, deadline=60)
            laptop.kill_daemon()
            laptop.need_daemon()
        job.wait_attempt(2, deadline=30)
        self.assert_moved_once(job, source, 150, 10)

    def test_the_host_dies_while_the_job_leaves_it(self):
        job = laptop.submit(plain("unlucky", envs={"STEPS": 100}))
        job.wait_checkpoint(1)
        source = job.host()
        laptop.run("provider", "drain", f"h{source}", "--within", "0s")
        job.wait_event("moving", deadline=60)
        self.grid.kill(source)
        job.wait_attempt(2, deadline=40)
        job.wait_success()
        self.assertNotEqual(job.host(2), source)
        self.assert_continues(job, 10)
        self.assert_steps_once(job, 100, attempts=2)


class OneMachine(grid.Case):
    def test_a_machine_is_registered_under_one_name(self):
        refused = laptop.register(1, "again", check=False)
        self.assertEqual(refused.code, 2, refused)
        self.assertIn("already registered, as h1", refused.err)
        self.assertIn("same SSH host key", refused.err)
        self.assertNotIn("again", [p["name"] for p in laptop.run("provider", "ls", "--json").json])

    def test_a_second_name_adds_no_room(self):
        other = self.grid.laptop("second-name")
        other.register(1)
        other.register(1, "again", "auto", "--force")
        cpus = other.run("provider", "show", "h1", "--json").json["cpus"]
        first = other.submit(plain("first", resources={"cpus": cpus}, envs={"STEPS": 1000}))
        first.wait_attempt(1)
        second = other.submit(plain("second", resources={"cpus": cpus}))
        second.wait_event("waiting_for_provider", deadline=60)
        self.assertEqual(second.attempts(), [], second.evidence())
        other.run("job", "cancel", first.id, "--now", "--wait")
        other.run("job", "cancel", second.id, "--now", "--wait")


class Waiting(grid.Case):
    def test_who_waits_for_another_users_job_tries_nothing_in_vain_and_starts_when_it_ends(self):
        holder, waiter = self.grid.laptop("holder"), self.grid.laptop("waiter")
        holder.register(2)
        waiter.register(2)
        cpus = holder.run("provider", "show", "h2", "--json").json["cpus"]
        first = holder.submit(plain("holder", resources={"cpus": cpus}, envs={"STEPS": 2000}))
        first.wait_attempt(1)
        second = waiter.submit(plain("waiter", resources={"cpus": cpus}, envs={"STEPS": 5}))
        second.wait_event("waiting_for_provider", deadline=60)
        tried = len(second.attempts())
        self.assertLessEqual(tried, 1, second.evidence())
        # As long as it is held, nothing is tried: the ledger tells.
        until = time.monotonic() + 12
        second.wait("twelve seconds of patience", 20, lambda: time.monotonic() > until)
        self.assertEqual(len(second.attempts()), tried, second.evidence())
        holder.run("job", "cancel", first.id, "--now", "--wait")
        ended = grid.iso(first.show()["ended_at"])
        second.wait_success()
        started = grid.iso(second.events("attempt_started")[-1]["at"])
        grid.figure("given back by one user until the other's job runs", f"{started - ended:.1f} s")
        self.assertLess(started - ended, grid.bound(8))


if __name__ == "__main__":
    unittest.main(verbosity=2)
