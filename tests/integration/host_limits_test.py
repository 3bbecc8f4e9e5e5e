# SPDX-License-Identifier: Apache-2.0
"""The limits of a job hold with nobody watching: its host ends it, saves, and what it cost is counted exactly. On each
engine; with the daemon killed, and with the laptop's network cut."""
import datetime
import time
import unittest

import grid
from grid import plain

USD_A_SECOND = 3600  # an hour
GRACE = 2  # that the program takes, and a little
IMAGE = "localhost/busybox:1"
ENGINES = ("process", "podman", "docker")  # of host 1, 2, 3
PROGRAM = ("trap 'echo saving; sleep 0.5; echo $n > out/new; mv out/new out/last; echo goodbye; exit 0' TERM; mkdir -p out; "
           "n=$(cat out/last 2>/dev/null || echo 0); while true; do n=$((n+1)); sleep 0.1; done")
BUDGET = 30  # USD; a tenth is kept for saving and stopping


def setUpModule():
    global laptop
    the_grid = grid.up(len(ENGINES))
    the_grid.start_docker(1 + ENGINES.index("docker"))
    laptop = the_grid.laptop()
    for host, engine in enumerate(ENGINES, 1):
        laptop.register(host, engine, engine, "--price", str(USD_A_SECOND))


class Limited:
    """A job that runs on one engine until one of its limits."""

    def __init__(self, engine, limit, reason, **spec):
        self.engine, self.limit, self.reason = engine, limit, reason
        self.host = 1 + ENGINES.index(engine)
        if engine != "process":
            spec["image"] = IMAGE
        self.job = laptop.submit(plain(f"{limit}-{engine}", run=PROGRAM, checkpoint={"whole_when": "last"}, **spec),
                                 "--provider", engine)
        self.seconds = self.started = self.ended = None

    def begun(self, seconds):
        self.job.wait_state("RUNNING")
        self.started = grid.iso(self.job.attempts()[-1]["started_at"])
        self.seconds = seconds(self.started) if callable(seconds) else seconds

    def look(self, leases):
        if self.ended is None and not any(lease.get("job") == self.job.id for lease in leases):
            self.ended = time.time()


class HostLimits(grid.Case):
    def submit(self):
        """Every limit on every engine: what was submitted, and when it ends."""
        at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=45)
        at = at.replace(microsecond=0)
        limits = []
        for engine in ENGINES:
            owner = f"vision-{engine}"
            laptop.run("budget", "set", str(BUDGET), "--owner", owner)
            limits += [
                (Limited(engine, "month", "month_budget", owner=owner), BUDGET * 0.9),
                (Limited(engine, "budget", "budget", budget={"total": BUDGET}), BUDGET * 0.9),
                (Limited(engine, "deadline", "deadline", deadline={"at": at.strftime("%Y-%m-%dT%H:%M:%SZ"), "hard": True}),
                 lambda started: at.timestamp() - started),
                (Limited(engine, "duration", "max_duration", max_duration="25s"), 25)]
        for job, seconds in limits:
            job.begun(seconds)
        return [job for job, _ in limits]

    def await_ends(self, jobs):
        boots = {host: self.grid.boot_id(host) for host in self.grid.hosts}
        for job in jobs:
            job.look(self.grid.leases_on(job.host, boots[job.host]))
            self.assertIsNone(job.ended, f"{job.job.id} has no lease")
        latest = max(job.started + job.seconds for job in jobs)

        def look():
            for host in self.grid.hosts:
                leases = self.grid.leases_on(host, boots[host])
                for job in jobs:
                    if job.host == host:
                        job.look(leases)
            return all(job.ended for job in jobs)
        grid.wait_until("their ends on the hosts", latest - time.time() + 25, look)

    def check(self, job):
        late = job.ended - job.started - job.seconds
        grid.figure(f"{job.limit} on {job.engine}: its end after its limit, s", f"{late:.2f}")
        self.assertGreater(late, -1.5, job.job.evidence())
        self.assertLess(late, grid.bound(2 + GRACE), job.job.evidence())
        job.job.wait_state("CANCELLED")
        done = job.job.show()
        self.assertEqual(done["reason"], job.reason, job.job.evidence())
        self.assertEqual(len(done["attempts"]), 1)
        ran = grid.iso(done["attempts"][0]["ended_at"]) - grid.iso(done["attempts"][0]["started_at"])
        self.assertAlmostEqual(ran, job.ended - job.started, delta=1.5, msg=job.job.evidence())
        self.assertAlmostEqual(done["cost"], ran, delta=0.1)
        if "budget" in job.reason:
            self.assertLessEqual(done["cost"], BUDGET)
        self.assertIn("goodbye", job.job.logs())
        self.assertGreater(len(job.job.checkpoints()), 0, "it saved when it was ended, and that is here")

    def test_each_limit_holds_with_the_daemon_killed(self):
        jobs = self.submit()
        laptop.kill_daemon()
        self.await_ends(jobs)
        time.sleep(6)  # what nobody sees must not be counted
        laptop.need_daemon()
        for job in jobs:
            self.check(job)

    def test_a_limit_holds_with_the_network_cut(self):
        jobs = [Limited(engine, "cut", "max_duration", max_duration="15s", recovery={"lost_after": "2m"}) for engine in ENGINES]
        for job in jobs:
            job.begun(15)
        for host in self.grid.hosts:
            self.grid.partition(host)
        self.await_ends(jobs)
        self.grid.heal_all()
        for job in jobs:
            self.check(job)


if __name__ == "__main__":
    unittest.main()
