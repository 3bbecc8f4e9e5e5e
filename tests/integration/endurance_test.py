# SPDX-License-Identifier: Apache-2.0
"""kill -9 of any gridctl process, at any moment, loses nothing and doubles nothing."""
import json
import os
import random
import signal
import time
import unittest

import grid
from grid import plain

AGENT_KILLS = 100
DAEMON_KILLS = 200 if grid.LONG else 40
LOST_AFTER = 5  # seconds


def setUpModule():
    global laptop
    the_grid = grid.up(3)
    laptop = the_grid.laptop()
    for host in the_grid.hosts:
        laptop.register(host)


class Host(grid.Case):
    def test_the_agent_is_killed_a_hundred_times(self):
        job = laptop.submit(plain("agent-killed", envs={"STEPS": 600}))
        job.wait_checkpoint(1)
        host = job.host()
        killed, chance = set(), random.Random(3)
        while len(killed) < AGENT_KILLS:
            # some of them in the middle of their greeting, some after a heartbeat or two
            pause = chance.uniform(0.1, 0.5)
            out = self.grid.enter(host, "for n in 1 2 3 4 5 6 7 8; do for pid in $(pgrep -u worker -f 'gridctl-agent connect'); do "
                                        f"kill -9 $pid && echo $pid; done; sleep {pause:.2f}; done 2>/dev/null; true")
            killed.update(out.split())
            if job.state != "RUNNING":
                break
        grid.figure("agents killed during one job", len(killed))
        self.assertGreaterEqual(len(killed), AGENT_KILLS, "the job ended too early")
        laptop.run("job", "cancel", job.id, "--now", "--wait", code=0)
        attempts = job.attempts()
        self.assertEqual(len(attempts), 1, job.evidence())
        steps = grid.steps_of(job.logs())
        self.assertEqual(steps, list(range(1, len(steps) + 1)))
        self.grid.wait_clean()

    def test_the_supervisor_of_an_attempt_is_killed(self):
        job = laptop.submit(plain("supervisor-killed", envs={"STEPS": 60}))
        job.wait_checkpoint(1)
        host = job.host()
        program = self.grid.pids(host, r"sh plain\.sh")
        old = self.grid.pids(host, "gridctl-agent supervise")
        self.assertTrue(old)
        self.grid.signal(host, old, signal.SIGKILL)
        new = grid.wait_until("another supervisor", 60, lambda: self.grid.pids(host, "gridctl-agent supervise"))
        self.assertFalse(set(old) & set(new))
        self.assertTrue(set(program) & set(self.grid.pids(host, r"sh plain\.sh")))
        made = len(job.events("checkpoint"))
        job.wait_checkpoint(made + 1)
        job.wait_success()
        self.assert_steps_once(job, 60, attempts=1)
        self.assertEqual(grid.steps_of(job.logs()), list(range(1, 61)))
        self.grid.wait_clean()

    def test_program_and_supervisor_are_killed_together(self):
        job = laptop.submit(plain("all-killed", envs={"STEPS": 80}))
        job.wait_checkpoint(1)
        host = job.host()
        everything = self.grid.pids(host, r"gridctl-agent supervise|gridctl-agent init|sh plain\.sh")
        self.grid.signal(host, everything, signal.SIGKILL)
        job.wait_success()
        self.assert_steps_once(job, 80, attempts=2)
        self.assert_continues(job, 10)
        self.grid.wait_clean()


class Daemon(grid.Case):
    def test_a_long_stop_of_the_daemon_restarts_nothing(self):
        job = laptop.submit(plain("stopped", envs={"STEPS": 300}))
        job.wait_checkpoint(1)
        pid = laptop.daemon_pid()
        os.kill(pid, signal.SIGSTOP)
        time.sleep(3 * LOST_AFTER)  # the length of the stop is what is tested
        os.kill(pid, signal.SIGCONT)
        made = len(job.events("checkpoint"))
        job.wait_checkpoint(made + 2)
        self.assertEqual(len(job.attempts()), 1, job.evidence())
        self.assertFalse(job.events("host_lost"), job.evidence())
        laptop.run("job", "cancel", job.id, "--now", "--wait")

    def test_a_second_daemon_is_refused(self):
        laptop.need_daemon()
        done = laptop.run("daemon", "run", check=False, timeout=20)
        self.assertEqual(done.code, 7, str(done))
        self.assertIn("another", done.err)

    def test_killed_at_many_moments_it_loses_and_doubles_nothing(self):
        chance = random.Random(7)
        kills = 0
        round_number = 0
        while kills < DAEMON_KILLS:
            round_number += 1
            job = laptop.submit(plain(f"daemon-killed-{round_number}", envs={"STEPS": 60, "SAVE_EVERY": 5, "PACE": 0.05},
                                      checkpoint={"interval": "1s"}))
            while kills < DAEMON_KILLS:
                pid = laptop.need_daemon()
                # up to beyond the time of start, launch, pulls and the end
                time.sleep(chance.uniform(0, 1))
                try:
                    os.kill(pid, signal.SIGKILL)
                    kills += 1
                except ProcessLookupError:
                    pass
                grid.wait_until("its death", 60, lambda: not grid.is_alive(pid))
                if job.state in grid.FINAL:
                    break
            laptop.need_daemon()
            job.wait_success()
            self.assert_steps_once(job, 60, attempts=1)
            self.assertEqual(grid.steps_of(job.logs()), list(range(1, 61)), "output lost or doubled")
            self.assertEqual([len(job.events(kind)) for kind in ("submitted", "placed", "attempt_started", "succeeded")],
                             [1, 1, 1, 1], job.evidence())
            numbers = [event["text"].split()[1] for event in job.events("checkpoint")]
            self.assertEqual(len(numbers), len(set(numbers)), "a checkpoint was committed twice")
        grid.figure("daemons killed", f"{kills} over {round_number} jobs")
        self.grid.wait_clean()


class Submit(grid.Case):
    def test_submit_killed_at_many_moments_leaves_whole_jobs_or_none(self):
        chance = random.Random(11)
        path = os.path.join(laptop.folder, "killed.yaml")
        before = {job["job_id"] for job in laptop.run("job", "ls", "--json").json}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(plain("killed", run="true", envs={}), file)
        for _ in range(12):
            process = laptop.spawn("job", "submit", "-d", path)
            time.sleep(chance.uniform(0, 0.15))
            process.kill()
            process.communicate()
        laptop.need_daemon()
        listed = {job["job_id"]: job for job in laptop.run("job", "ls", "--json").json}
        for job_id in set(listed) - before:
            grid.Job(laptop, job_id).wait_success()
        self.grid.wait_clean()


if __name__ == "__main__":
    unittest.main(verbosity=2)
