# SPDX-License-Identifier: Apache-2.0
"""Drills: does a job survive the loss of its host? The hosts are well all the time; only the drill takes one for lost."""
import signal
import unittest

import grid
from grid import figure, plain, wait_until


def setUpModule():
    global laptop
    the_grid = grid.up(2)
    laptop = the_grid.laptop()
    for host in the_grid.hosts:
        laptop.register(host, None, "process", "--price", "0.1")


class Drill(grid.Case):
    def drill(self, spec, *more, code=0):
        done = laptop.run("job", "drill", laptop.write_job(spec), "--json", *more, code=code, timeout=150)
        self.assertEqual(laptop.run("job", "show", done.json["job_id"], "--json").json["state"], "CANCELLED", str(done))
        self.grid.wait_clean()
        return done.json

    def test_a_job_that_loads_its_checkpoint_is_recoverable_and_all_is_cleaned_up(self):
        spec = plain("careful", envs={"STEPS": 5000, "SAVE_EVERY": 20})
        before = laptop.submit(dict(spec, max_duration="2h"), "-n", "careful")
        self.assertIn("was never drilled", laptop.run("job", "submit", "-d", laptop.write_job(spec)).err)
        for job in laptop.run("job", "ls", "--json").json:
            laptop.run("job", "cancel", job["job_id"], "--now", "--wait")
        shown = self.drill(spec)
        self.assertEqual(shown["recoverable"], "yes", shown)
        self.assertEqual({shown["from"], shown["to"]}, {"h1", "h2"})
        self.assertLess(shown["seconds"], grid.bound(20))
        figure("a drill: from the kill until it went on", f"{shown['seconds']:.2f} s, {shown['steps_lost']} steps lost")
        self.assertGreaterEqual(shown["steps_lost"], 1)  # it was not killed at the moment when it saved
        self.assertLess(shown["steps_lost"], 200)
        self.assertEqual(laptop.run("checkpoint", "ls", shown["job_id"], "--json").json, [])
        self.assertIn(shown["summary"], laptop.run("job", "show", before.id).out)
        # Nothing is held against a host that only played dead.
        for host in self.grid.hosts:
            self.assertEqual(laptop.run("provider", "show", f"h{host}", "--json").json["state"], "answering")
        # Known to be recoverable: no warning, until the command changes.
        quiet = laptop.run("job", "submit", "-d", laptop.write_job(spec))
        self.assertNotIn("drilled", quiet.err)
        changed = laptop.run("job", "submit", "-d", laptop.write_job(dict(spec, run="sh plain.sh # anew")))
        self.assertIn("has changed since its last drill", changed.err)
        for job in laptop.run("job", "ls", "--json").json:
            laptop.run("job", "cancel", job["job_id"], "--now", "--wait")

    def test_a_job_that_begins_anew_is_not(self):
        spec = plain("careless", run="rm -rf out/*; sh plain.sh", envs={"STEPS": 5000})
        shown = self.drill(spec, code=1)
        self.assertEqual(shown["recoverable"], "no", shown)
        self.assertIn("it restarted at step 1", shown["summary"])
        self.assertIn("the last drill of careless said: recoverable: no",
                      laptop.run("job", "submit", "--dry-run", laptop.write_job(spec), check=False).err
                      + laptop.run("job", "submit", "-d", laptop.write_job(spec)).err)
        laptop.run("job", "cancel", "careless", "--now", "--wait")

    def test_a_job_that_cannot_start_again_is_not(self):
        spec = plain("broken", resume_run="echo no such file; exit 7", envs={"STEPS": 5000},
                     recovery={"max_failures": 1})
        done = laptop.run("job", "drill", laptop.write_job(spec), "--json", code=1, timeout=150)
        self.assertEqual(done.json["recoverable"], "no", str(done))
        self.assertIn("it failed: exit code 7", done.json["summary"])

    def test_a_job_without_a_checkpoint_is_not(self):
        done = laptop.run("job", "drill", laptop.write_job(plain("hasty", run="echo step 1; echo step 2")), code=1, timeout=60)
        self.assertRegex(done.out, "^recoverable: no: the job ended before it had a checkpoint: succeeded")

    def test_an_earlier_job_is_drilled_by_its_name_and_an_interrupt_leaves_nothing(self):
        job = laptop.submit(plain("former", envs={"STEPS": 5000}))
        job.wait_attempt(1)
        laptop.run("job", "cancel", job.id, "--now", "--wait")
        drill = laptop.spawn("job", "drill", "former")
        started = wait_until("the drill's job", 30, lambda: [one for one in laptop.run("job", "ls", "--json").json
                                                             if one["name"] == "former-drill" and one["state"] == "RUNNING"])
        drill.send_signal(signal.SIGINT)
        _, said = drill.communicate(timeout=30)
        self.assertEqual(drill.returncode, 130, said)
        self.assertIn("cancelling its job", said)
        grid.Job(laptop, started[0]["job_id"]).wait_state("CANCELLED")
        self.grid.wait_clean()


if __name__ == "__main__":
    unittest.main(verbosity=2)
