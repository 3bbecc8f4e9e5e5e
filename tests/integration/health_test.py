# SPDX-License-Identifier: Apache-2.0
"""What a GPU's and a host's troubles do: quarantine, no placement, return. The GPU is a stub, the troubles are injected
where a host shows them: in its tools, its kernel log and its disk."""
import os
import time
import unittest

import grid
from grid import plain

UUID = "GPU-11111111-2222-3333-4444-555555555555"
EVERY = "2s"  # instead of a minute


def setUpModule():
    global ada
    the_grid = grid.up(2)
    with open(os.path.join(grid.SOURCE, "tests", "support", "nvidia-smi"), encoding="utf-8") as file:
        stub = file.read()
    the_grid.enter(1, f"mkdir -p /etc/stub-gpu; cat > /usr/bin/nvidia-smi <<'STUB'\n{stub}\nSTUB\nchmod 755 /usr/bin/nvidia-smi")
    # The hosts have no /dev/kmsg of their own: a file stands in for it.
    for host in the_grid.hosts:
        the_grid.enter(host, ": > /dev/kmsg; chmod 644 /dev/kmsg")
    ada = the_grid.laptop("ada")
    ada.environment["GRIDCTL_HEALTH_EVERY"] = EVERY
    for host in the_grid.hosts:
        ada.register(host, engine="process")


def gpu_job(name, **options):
    return plain(name, resources={"accelerators": "1", "cpus": 0.5}, **options)


class Health(grid.Case):
    def tearDown(self):
        self.grid.enter(1, "rm -f /etc/stub-gpu/*; : > /dev/kmsg")
        super().tearDown()

    def events(self, host=1):
        return [(event["kind"], event["text"]) for event in ada.run("provider", "show", f"h{host}", "--json").json["history"]]

    def wait_event(self, kind, text, deadline=40, host=1):
        ada.need_daemon()
        return grid.wait_until(f"'{kind}: {text}' of h{host}", deadline,
                               lambda: any(kind == k and text in t for k, t in self.events(host)),
                               lambda: f"{self.events(host)}\n{ada.evidence()}")

    def check(self, host=1, code=None):
        return ada.run("provider", "check", f"h{host}", code=code, check=True)

    def mend_driver(self):
        """A look that is under way notes what hung when it ends: it is waited for."""
        self.grid.enter(1, "rm /etc/stub-gpu/hang")
        self.grid.as_worker(1, "flock .gridctl/health/lock rm -f .gridctl/health/hung")

    def xid(self, code, text):
        """As the driver says it, now, by the kernel log's clock."""
        stamp = int(time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6)
        self.grid.enter(1, f"echo '4,{stamp % 100000},{stamp},-;NVRM: Xid (PCI:0000:01:00): {code}, pid=1, name=x, {text}' >> /dev/kmsg")

    def test_an_xid_quarantines_its_gpu_and_a_check_returns_it(self):
        self.check()
        with_daemon = gpu_job("before", envs={"STEPS": 3})
        job = ada.submit(with_daemon)
        job.wait_success()
        began = time.monotonic()
        self.xid(95, "Uncontained: LTC TAG (0x2,0x0)")
        waiting = None
        ada.need_daemon()
        keep_alive = ada.submit(plain("cpu", resources={"cpus": 0.1}, envs={"STEPS": 100000}))
        self.wait_event("quarantined", "Xid 95")
        grid.figure("Xid to quarantine, seconds at a sweep every 2 s", f"{time.monotonic() - began:.1f}")
        waiting = ada.submit(gpu_job("waits", envs={"STEPS": 3}))
        waiting.wait("its rejection", 20, lambda: "unhealthy" in ada.run("job", "explain", waiting.id).out)
        explained = ada.run("job", "explain", waiting.id).out
        self.assertIn("Xid 95", explained)
        self.assertEqual(waiting.state, "PENDING")
        text = ada.run("provider", "show", "h1").out
        self.assertIn("quarantined", text)
        self.assertRegex(text, r"gpu 0 .*, fails in .*, \d+ failures?")
        shown = ada.run("provider", "show", "h1", "--json").json
        self.assertEqual([(gpu["uuid"], gpu["state"], gpu["code"]) for gpu in shown["standing"]["gpus"]],
                         [(UUID, "quarantined", "xid-95")])
        self.assertGreaterEqual(shown["gpu_reliability"][0]["failures"], 1)
        # A person has looked at it.
        self.check()
        self.assertTrue(any(kind == "cleared" for kind, _ in self.events()))
        waiting.wait_success()
        ada.run("job", "cancel", keep_alive.id, "--now")

    def test_a_programs_own_xid_changes_nothing(self):
        self.check()
        keep_alive = ada.submit(plain("cpu", resources={"cpus": 0.1}, envs={"STEPS": 100000}))
        keep_alive.wait_state("RUNNING")
        self.xid(31, "MMU Fault: ENGINE GRAPHICS")
        self.wait_event("noted", "Xid 31")
        self.assertIn("standing", ada.run("provider", "show", "h1").out)
        job = ada.submit(gpu_job("unharmed", envs={"STEPS": 3}))
        job.wait_success()
        ada.run("job", "cancel", keep_alive.id, "--now")

    def test_a_stranger_on_the_gpu_makes_it_busy_not_bad(self):
        self.check()
        self.grid.enter(1, "echo '1 miner 9000' > /etc/stub-gpu/processes; echo 9000 > /etc/stub-gpu/used")
        job = ada.submit(gpu_job("behind", envs={"STEPS": 3}))
        job.wait("to be told who is there", 40, lambda: "busy" in ada.run("job", "explain", job.id).out)
        self.assertIn("miner", self.check().err)
        self.assertFalse(any(kind == "quarantined" and "miner" in text for kind, text in self.events()))
        self.grid.enter(1, "rm /etc/stub-gpu/*")
        job.wait_success(120)

    def test_the_look_before_a_start_needs_no_sweep_and_hangs_with_no_driver(self):
        bob = self.grid.laptop("bob")
        bob.environment["GRIDCTL_HEALTH_EVERY"] = "off"
        for host in self.grid.hosts:
            bob.register(host, engine="process")

        def seconds_to_start(job):
            """From its place to its first process (whose report may overtake the acceptance)."""
            placed, started = job.wait_event("placed"), job.wait_event("attempt_started")
            return grid.iso(started["at"]) - grid.iso(placed["at"])

        # A host without GPUs: the first look, of which nothing is kept yet, and later ones.
        self.grid.as_worker(2, "rm -f .gridctl/health/report")
        took = []
        for number in range(4):
            job = bob.submit(plain(f"cpu-{number}", resources={"cpus": 0.1}, envs={"STEPS": 2}), "--provider", "h2")
            took.append(seconds_to_start(job))
            job.wait_success()
        grid.figure("placed to started without a GPU, seconds, the first look and later ones", [round(t, 2) for t in took])
        self.assertLess(min(took[1:]), grid.bound(2))
        job = bob.submit(gpu_job("with-a-gpu", envs={"STEPS": 2}))
        grid.figure("placed to started with a (stub) GPU", f"{seconds_to_start(job):.2f} s")
        job.wait_success()
        # A stranger of this very moment.
        self.grid.enter(1, "echo '1 miner 9000' > /etc/stub-gpu/processes; echo 9000 > /etc/stub-gpu/used")
        job = bob.submit(gpu_job("behind-a-stranger", envs={"STEPS": 2}))
        job.wait("the refusal", 30, lambda: any("miner" in event["text"] for event in job.events()))
        self.grid.enter(1, "rm /etc/stub-gpu/*")
        job.wait_success()
        # A driver that hangs: the start is given up after the tool's deadline, not with it.
        self.grid.enter(1, "touch /etc/stub-gpu/hang")
        began = time.monotonic()
        job = bob.submit(gpu_job("behind-a-hung-driver", envs={"STEPS": 2}))
        job.wait("the refusal", 40, lambda: any("hung driver" in event["text"] for event in job.events()))
        grid.figure("a start on a hung driver is given up after", f"{time.monotonic() - began:.1f} s")
        bob.run("job", "cancel", job.id, "--now")
        self.mend_driver()
        bob.close()
        self.check()

    def test_a_hung_driver_is_not_asked_again_and_again(self):
        self.check()
        self.grid.enter(1, "touch /etc/stub-gpu/hang")
        keep_alive = ada.submit(plain("cpu", resources={"cpus": 0.1}, envs={"STEPS": 100000}))
        self.wait_event("quarantined", "hung driver", deadline=60)
        hung = self.grid.pids(1, "^sleep 600")
        self.assertEqual(hung, [], "what hung was left behind")
        note = self.grid.as_worker(1, "cat .gridctl/health/hung").splitlines()
        self.assertLessEqual(int(note[1].split()[1]), 2, "tried at each sweep")
        ada.run("job", "cancel", keep_alive.id, "--now")
        self.mend_driver()
        self.check()

    def test_a_job_on_a_gpu_that_is_gone_is_moved_and_others_run_on(self):
        self.check()
        bystander = ada.submit(plain("bystander", resources={"cpus": 0.1}, envs={"STEPS": 100000}, constraints={}))
        job = ada.submit(gpu_job("loses-its-gpu", envs={"STEPS": 100000}))
        job.wait_state("RUNNING")
        bystander.wait_state("RUNNING")
        self.xid(79, "GPU has fallen off the bus.")
        self.grid.enter(1, "touch /etc/stub-gpu/gone")
        job.wait("the move", 60, lambda: job.state in ("RECOVERING", "PENDING"))
        self.assertEqual(len(bystander.attempts()), 1)
        self.assertEqual(bystander.state, "RUNNING")
        self.grid.enter(1, "rm /etc/stub-gpu/gone; : > /dev/kmsg")
        self.check()
        job.wait_attempt(2, deadline=90)
        for one in (job, bystander):
            ada.run("job", "cancel", one.id, "--now")

    def test_what_a_job_left_on_its_gpu_is_found(self):
        self.check()
        job = ada.submit(gpu_job("leaves", envs={"STEPS": 20}))
        job.wait_state("RUNNING")
        # A process that wears the job's mark and outlives it: as one that escaped its container would.
        self.grid.as_worker(1, "GRIDCTL_JOB_ID=gone setsid sleep 300 > /dev/null 2>&1 < /dev/null &")
        pid = grid.wait_until("the leftover", 60, lambda: self.grid.pids(1, "^sleep 300"))[0]
        inside = self.grid.enter(1, "pgrep -f '^sleep 300'").split()[0]
        self.grid.enter(1, f"echo '{inside} sleep 700' > /etc/stub-gpu/processes")
        job.wait_success()
        keep_alive = ada.submit(plain("cpu", resources={"cpus": 0.1}, envs={"STEPS": 100000}))
        self.wait_event("quarantined", "a job's process is still running")
        self.grid.signal(1, [pid], 9)
        self.grid.enter(1, "rm /etc/stub-gpu/processes")
        ada.run("job", "cancel", keep_alive.id, "--now")
        self.check()

    def test_the_doctor_looks_at_every_host_and_bears_a_dead_one(self):
        self.grid.kill(2)
        try:
            began = time.monotonic()
            done = ada.run("doctor", "--json", "--timeout", "20s", check=False)
            took = time.monotonic() - began
        finally:
            self.grid.start(2)
        grid.figure("doctor with a dead host", f"{took:.1f} s")
        self.assertEqual(done.code, 5, str(done))
        self.assertLess(took, 30)
        found = done.json["findings"]
        reach = {finding["provider"]: finding["severity"] for finding in found if finding["point"] == "reach"}
        self.assertEqual(reach, {"h1": "ok", "h2": "error"})
        self.assertTrue(all(finding["fix"] for finding in found if finding["severity"] == "error"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
