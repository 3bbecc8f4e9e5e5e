# SPDX-License-Identifier: Apache-2.0
"""The limits of a job hold with nobody watching: its host ends it, saves, and what it cost is counted exactly."""
import datetime
import time
import unittest

import grid
from grid import plain

USD_A_SECOND = 3600  # an hour
GRACE = 2  # that the program takes, and a little
IMAGE = "localhost/busybox:1"
PROGRAM = ("trap 'echo saving; sleep 0.5; echo $n > out/new; mv out/new out/last; echo goodbye; exit 0' TERM; mkdir -p out; "
           "n=$(cat out/last 2>/dev/null || echo 0); while true; do n=$((n+1)); sleep 0.1; done")


def setUpModule():
    global laptop
    the_grid = grid.up(2)
    laptop = the_grid.laptop()
    laptop.register(1, "process", "process", "--price", str(USD_A_SECOND))
    laptop.register(2, "podman", "podman", "--price", str(USD_A_SECOND))


class HostLimits(grid.Case):
    engine = "process"

    def submit(self, name, **limits):
        if self.engine != "process":
            limits["image"] = IMAGE
        return laptop.submit(plain(name, run=PROGRAM, checkpoint={"whole_when": "last"}, **limits), "--provider", self.engine)

    def end_alone(self, job, seconds, kind, reason):
        """Waits until its host has ended it with the daemon away, then has a new daemon hear of it."""
        job.wait_state("RUNNING")
        started = grid.iso(job.attempts()[-1]["started_at"])
        laptop.kill_daemon()
        host = 1 if self.engine == "process" else 2
        boot = self.grid.boot_id(host)
        self.assertNotEqual(self.grid.leases_on(host, boot), [])
        grid.wait_until("its end on the host", seconds + 25, lambda: not self.grid.leases_on(host, boot))
        ended = time.time()
        late = ended - started - seconds
        grid.figure(f"{kind} on {self.engine}: its end after its limit, s", f"{late:.2f}")
        self.assertGreater(late, -1.5)
        self.assertLess(late, 2 + GRACE)
        time.sleep(6)  # what nobody sees must not be counted
        laptop.need_daemon()
        job.wait_state("CANCELLED")
        done = job.show()
        self.assertEqual(done["reason"], reason, job.evidence())
        self.assertEqual(len(done["attempts"]), 1)
        ran = grid.iso(done["attempts"][0]["ended_at"]) - grid.iso(done["attempts"][0]["started_at"])
        grid.figure(f"{kind} on {self.engine}: counted, s", f"{ran:.2f}")
        self.assertAlmostEqual(ran, ended - started, delta=1.5)
        self.assertAlmostEqual(done["cost"], ran, delta=0.1)
        self.assertIn("goodbye", job.logs())
        self.assertGreater(len(job.checkpoints()), 0, "it saved when it was ended, and that is here")
        return done

    def test_running_time(self):
        self.end_alone(self.submit("long", max_duration="10s"), 10, "max_duration", "max_duration")

    def test_a_hard_deadline(self):
        at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=20)
        job = self.submit("late", deadline={"at": at.strftime("%Y-%m-%dT%H:%M:%SZ"), "hard": True})
        job.wait_state("RUNNING")
        started = grid.iso(job.attempts()[-1]["started_at"])
        self.end_alone(job, int(at.timestamp()) - started, "deadline", "deadline")

    def test_a_budget(self):
        done = self.end_alone(self.submit("spender", budget={"total": 30}), 30 * 0.9, "budget", "budget")
        self.assertLessEqual(done["cost"], 30)

    def test_the_budget_of_a_month(self):
        owner = f"vision-{self.engine}"
        laptop.run("budget", "set", "30", "--owner", owner)
        done = self.end_alone(self.submit("monthly", owner=owner), 30 * 0.9, "month's budget", "month_budget")
        self.assertLessEqual(done["cost"], 30)


class HostLimitsOfContainers(HostLimits):
    engine = "podman"


if __name__ == "__main__":
    unittest.main()
