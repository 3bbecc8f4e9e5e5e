# SPDX-License-Identifier: Apache-2.0
"""Pausing in place: a job without a GPU by freezing alone, and one with a GPU through the driver's process checkpoint. The
GPU does not exist: its tool is tests/support/nvidia-smi, and its driver tests/support/checkpoint_cuda.c, which can be slow,
fail, hang or kill its target in each of its four calls. Everything else is real."""
import os
import re
import shutil
import signal
import time
import unittest

import grid
from grid import plain

CPU, GPU, OTHER = 1, 2, 3
UUID = "GPU-11111111-2222-3333-4444-555555555555"
DRIVER = os.path.join(os.path.dirname(os.path.dirname(grid.GRIDCTL)), "tests", "integration", "checkpoint", "libcuda.so.1")
STATE = "/etc/stub-gpu"
MIB = 700  # that the job "holds" on the GPU

# plain.sh as a program that holds GPU memory, by one process; its line goes with it.
# Two jobs change the file at once: one ends while the next begins.
ON_GPU = f"""sh plain.sh &
flock {STATE}/lock sh -c 'echo "$0 train {MIB}" >> {STATE}/processes' $!
wait $!
code=$?
flock {STATE}/lock sh -c 'grep -v "^$0 " {STATE}/processes > {STATE}/left; cat {STATE}/left > {STATE}/processes' $!
exit $code"""


def setUpModule():
    global laptop
    the_grid = grid.up(3)
    with open(os.path.join(grid.SOURCE, "tests", "support", "nvidia-smi"), encoding="utf-8") as file:
        smi = file.read()
    shutil.copy(DRIVER, the_grid.disk(GPU, "tmp/libcuda.so.1"))
    the_grid.enter(GPU, f"cat > /usr/bin/nvidia-smi <<'EOF'\n{smi}\nEOF\nchmod 755 /usr/bin/nvidia-smi; mkdir -p {STATE} /usr/local/stub "
                        f"&& chmod 777 {STATE} && mv /tmp/libcuda.so.1 /usr/local/stub/ && : > {STATE}/processes && "
                        f"chmod 666 {STATE}/processes && echo /usr/local/stub > /etc/ld.so.conf.d/000-stub.conf && ldconfig")
    laptop = the_grid.laptop()
    for host in the_grid.hosts:
        laptop.register(host, engine="process")


class Paused(grid.Case):
    def tearDown(self):
        super().tearDown()
        self.fault(None)
        for shown in laptop.run("job", "ls", "--json").json:
            if shown["state"] not in grid.FINAL:
                laptop.run("job", "cancel", shown["job_id"], "--now", "--wait")
        for host in self.grid.hosts:
            laptop.run("provider", "unpause", f"h{host}", check=False)
        self.grid.enter(GPU, f"rm -f {STATE}/state.* {STATE}/saved.* {STATE}/calls {STATE}/used; : > {STATE}/processes")

    def fault(self, what):
        self.grid.enter(GPU, f"echo '{what}' > {STATE}/fault" if what else f"rm -f {STATE}/fault")

    def start(self, name, steps=60, pinned=None, **options):
        spec = plain(name, envs={"STEPS": steps}, **options)
        if pinned:
            spec["constraints"] = {"query": f"name=h{pinned}"}
        job = laptop.submit(spec)
        job.wait_checkpoint(1)
        return job

    def start_on_gpu(self, name, steps=60):
        return self.start(name, steps, run=ON_GPU, resources={"cpus": 0.5, "accelerators": "1"})

    def steps(self, job):
        return max(grid.steps_of(job.logs()) or [0])

    def ticks(self, host, job):
        """CPU time of each process that the job runs and of its children, in hundredths of a second."""
        script = (f"for p in $(grep -l 'GRIDCTL_JOB_ID={job.id}' /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3); do "
                  "echo $p $(cut -d' ' -f14-17 /proc/$p/stat 2>/dev/null); done")
        return sorted(self.grid.enter(host, script).splitlines())

    def assert_still(self, host, job, seconds=2.5):
        before, step = self.ticks(host, job), self.steps(job)
        self.assertTrue(before, job.evidence())
        time.sleep(seconds)  # what is claimed is that nothing happens meanwhile
        self.assertEqual((self.ticks(host, job), self.steps(job)), (before, step), job.evidence())

    def assert_once(self, job, steps, attempts=1, hurry=True):
        job.wait_success(hurry=hurry)
        self.assert_steps_once(job, steps, attempts=attempts)

    def gpu_leases(self):
        return [lease for lease in self.grid.leases_on(GPU) if lease["gpu"]]

    def shows(self, job):
        return job.show()["reason"]


class Cpu(Paused):
    def test_a_paused_job_uses_no_processor_and_goes_on_where_it_stopped(self):
        job = self.start("still", pinned=CPU)
        began = time.monotonic()
        done = laptop.run("job", "pause", job.id)
        grid.figure("job pause without a GPU", f"{time.monotonic() - began:.2f} s")
        self.assertIn("is paused on h1", done.out)
        self.assert_still(CPU, job, 7)  # longer than lost_after
        self.assertEqual((job.state, self.shows(job)), ("RUNNING", "paused"))
        self.assertIn("paused in place", laptop.run("job", "show", job.id).out)
        laptop.run("job", "pause", job.id)  # once more is nothing new
        self.assertIn("runs on h1", laptop.run("job", "resume", job.id).out)
        self.assert_once(job, 60, hurry=False)  # what the daemon would see of it meanwhile
        self.assertFalse(job.events("host_lost") + job.events("hangs") + job.events("moving"), job.evidence())
        for kind in ("paused", "resumed_in_place"):  # the command and the daemon see it, one of them notes it
            self.assertEqual(len(job.events(kind)), 1, job.evidence())

    def test_its_time_limit_stands_still(self):
        job = self.start("limited", steps=100, pinned=CPU, max_duration="18s")
        laptop.run("job", "pause", job.id)
        time.sleep(12)
        laptop.run("job", "resume", job.id)
        self.assert_once(job, 100, hurry=False)

    def test_a_paused_job_can_be_cancelled(self):
        job = self.start("cancelled", steps=600, pinned=CPU)
        laptop.run("job", "pause", job.id)
        laptop.run("job", "cancel", job.id, "--wait")
        self.assertEqual(job.state, "CANCELLED")
        self.grid.wait_clean(hosts=[CPU])

    def test_one_that_stays_paused_for_too_long_moves(self):
        job = self.start("moved", steps=80)
        host = job.host()
        laptop.run("job", "pause", job.id, "--max", "2s")
        job.wait_attempt(2, deadline=60)
        self.assertNotEqual(job.host(), host)
        self.assert_once(job, 80, attempts=2)
        self.assertEqual(job.attempts()[0]["reason"], "paused")

    def test_a_pause_outlives_the_agent_the_supervisor_and_the_daemon(self):
        job = self.start("survivor", pinned=CPU)
        laptop.run("job", "pause", job.id)
        laptop.kill_daemon()
        self.grid.signal(CPU, self.grid.pids(CPU, r"gridctl-agent (supervise|connect)"), signal.SIGKILL)
        laptop.need_daemon()
        grid.wait_until("another supervisor", 30, lambda: self.grid.pids(CPU, "gridctl-agent supervise"), job.evidence)
        self.assert_still(CPU, job)
        laptop.run("job", "resume", job.id)
        self.assert_once(job, 60)

    def test_a_host_is_paused_with_all_its_jobs_and_gets_no_others(self):
        jobs = [self.start(f"guest{n}", steps=150, pinned=CPU) for n in (1, 2)]
        self.assertIn("is paused", laptop.run("provider", "pause", f"h{CPU}").out)
        for job in jobs:
            self.assertEqual(self.shows(job), "paused", job.evidence())
        late = laptop.submit(plain("late", envs={"STEPS": 5}, constraints={"query": f"name=h{CPU}"}))
        grid.wait_until("the reason why it waits", 30, lambda: "it is paused" in laptop.run("job", "explain", late.id).out)
        laptop.run("provider", "unpause", f"h{CPU}")
        for job in jobs:
            self.assert_once(job, 150)
        late.wait_success(hurry=True)

    def test_what_does_not_run_cannot_be_paused(self):
        job = laptop.submit(plain("done", envs={"STEPS": 3}))
        job.wait_success()
        self.assertIn("only a running job", laptop.run("job", "pause", job.id, code=2).err)
        self.assertIn("job does not hold a GPU", laptop.run("job", "pause", self.start("nogpu", pinned=CPU).id, "--gpu-only", check=False).err)


class Gpu(Paused):
    def calls(self):
        return [line.split()[0] for line in self.grid.enter(GPU, f"cat {STATE}/calls 2>/dev/null || true").splitlines()]

    def test_the_gpu_is_free_for_another_job_and_comes_back(self):
        job = self.start_on_gpu("first")
        self.assertEqual(len(self.gpu_leases()), 1)
        memory = int(self.gpu_leases()[0]["memory"])
        done = laptop.run("job", "pause", job.id)
        self.assertIn(f"{MIB} MiB left its GPU", done.out)
        self.assertEqual(self.calls(), ["lock", "checkpoint"])
        self.assertEqual(self.gpu_leases(), [])
        held = [lease for lease in self.grid.leases_on(GPU) if lease["job"] == job.id]
        self.assertEqual(int(held[0]["memory"]), memory + (MIB << 20), "its memory is not free")
        self.assert_still(GPU, job)
        second = self.start_on_gpu("second", steps=100)
        refused = laptop.run("job", "resume", job.id, check=False)
        self.assertIn("is leased", refused.err)
        self.assertEqual(self.shows(job), "paused")
        second.wait_success(hurry=True)
        laptop.run("job", "resume", job.id)
        self.assertEqual(self.calls()[-2:], ["restore", "unlock"])
        self.assert_once(job, 60)

    def test_it_stands_aside_for_a_short_urgent_job(self):
        job = self.start_on_gpu("patient", steps=200)
        urgent = laptop.submit(plain("urgent", envs={"STEPS": 40}, run=ON_GPU, priority=10, max_duration="10m",
                                     resources={"cpus": 0.5, "accelerators": "1"}))
        urgent.wait_success(deadline=60)
        job.wait_event("resumed_in_place")
        self.assert_once(job, 200)
        self.assertEqual(self.calls().count("checkpoint"), 1, job.evidence())
        for kind in ("stands_aside", "paused", "resumed_in_place"):
            self.assertEqual(len(job.events(kind)), 1, job.evidence())
        self.assertFalse(job.events("moving") + job.events("preempted"), job.evidence())

    def test_it_leaves_when_its_driver_refuses_to_let_it_stand_aside(self):
        job = self.start_on_gpu("stubborn", steps=100)
        self.fault("lock fail")
        urgent = laptop.submit(plain("urgent-2", envs={"STEPS": 20}, run=ON_GPU, priority=10, max_duration="10m",
                                     resources={"cpus": 0.5, "accelerators": "1"}))
        grid.wait_until("the job to leave", 60, lambda: job.attempts()[0]["reason"] == "preempted", job.evidence)
        self.fault(None)
        urgent.wait_success(deadline=90)
        self.assert_once(job, 100, attempts=2)

    def test_it_stays_paused_while_another_program_uses_the_gpu(self):
        job = self.start_on_gpu("waiting")
        laptop.run("job", "pause", job.id)
        self.grid.enter(GPU, f"echo 24000 > {STATE}/used")
        self.assertIn("other programs use", laptop.run("job", "resume", job.id, check=False).err)
        self.assertNotIn("restore", self.calls(), "never by trial")
        self.assertEqual(self.gpu_leases(), [])
        self.grid.enter(GPU, f"rm {STATE}/used")
        laptop.run("job", "resume", job.id)
        self.assert_once(job, 60)

    def test_only_the_gpu(self):
        job = self.start_on_gpu("half", steps=150)
        laptop.run("job", "pause", job.id, "--gpu-only")
        self.assertEqual(self.gpu_leases(), [])
        step = self.steps(job)
        grid.wait_until("its processes to run on", 20, lambda: self.steps(job) > step, job.evidence)
        laptop.run("job", "resume", job.id)
        self.assert_once(job, 150)

    def test_without_enough_memory_it_is_refused_with_the_other_way(self):
        job = self.start_on_gpu("large", steps=80)
        self.grid.enter(GPU, f"sed -i 's/ {MIB}$/ 200000/' {STATE}/processes")
        done = laptop.run("job", "pause", job.id, check=False)
        self.assertIn("would have to fit into", done.err)
        self.assertIn(f"gridctl job cancel {job.id}", done.err)
        self.assertEqual(self.calls(), [])
        self.assert_once(job, 80)

    def test_a_driver_that_fails_leaves_the_job_running(self):
        for call in ("lock", "checkpoint"):
            with self.subTest(call):
                job = self.start_on_gpu(f"{call}-fails", steps=80)
                self.fault(f"{call} fail")
                self.assertNotEqual(laptop.run("job", "pause", job.id, check=False).code, 0)
                self.assertEqual(len(self.gpu_leases()), 1)
                self.fault(None)
                self.assert_once(job, 80)

    def test_a_driver_that_is_slow_is_waited_for(self):
        job = self.start_on_gpu("patient", steps=150)
        self.fault("checkpoint slow")
        laptop.run("job", "pause", job.id)
        self.fault("restore slow")
        laptop.run("job", "resume", job.id)
        self.fault(None)
        self.assert_once(job, 150)

    def test_a_driver_that_kills_the_job_is_the_hosts_fault(self):
        for call in ("lock", "checkpoint", "restore", "unlock"):
            with self.subTest(call):
                job = self.start_on_gpu(f"{call}-kills", steps=80)
                if call in ("restore", "unlock"):
                    laptop.run("job", "pause", job.id)
                self.fault(f"{call} kill")
                laptop.run("job", "resume" if call in ("restore", "unlock") else "pause", job.id, check=False)
                self.fault(None)
                job.wait_attempt(2, deadline=60)
                self.assert_once(job, 80, attempts=2)
                self.assertFalse(job.events("program_failed"), job.evidence())
                self.grid.enter(GPU, f"rm -f {STATE}/state.* {STATE}/saved.*; : > {STATE}/processes")

    def test_a_driver_that_hangs_is_given_up(self):
        job = self.start_on_gpu("hanging", steps=900)
        self.fault("lock hang")
        began = time.monotonic()
        done = laptop.run("job", "pause", job.id, check=False, timeout=150)
        self.assertNotEqual(done.code, 0)
        self.assertLess(time.monotonic() - began, grid.bound(120))
        self.fault(None)
        self.assertEqual(len(self.gpu_leases()), 1)
        step = self.steps(job)
        grid.wait_until("its next step", 20, lambda: self.steps(job) > step, job.evidence)

    def test_killed_at_each_step_the_pause_is_completed(self):
        for call, way in (("lock", "pause"), ("checkpoint", "pause"), ("restore", "resume"), ("unlock", "resume")):
            with self.subTest(call):
                job = self.start_on_gpu(f"{call}-killed", steps=120)
                if way == "resume":
                    laptop.run("job", "pause", job.id)
                self.fault(f"{call} slow")
                command = laptop.spawn("job", way, job.id)
                grid.wait_until(f"the driver's {call}", 30, lambda: call in self.calls(), job.evidence)
                self.grid.signal(GPU, self.grid.pids(GPU, r"gridctl-agent (supervise|connect)|gridctl-gpubench"), signal.SIGKILL)
                self.fault(None)
                command.communicate(timeout=60)
                wanted = [] if way == "pause" else [UUID]
                # A supervisor that comes after it finishes what was ordered.
                grid.wait_until(f"the {way} to be completed", 60,
                                lambda: [gpu for lease in self.gpu_leases() for gpu in lease["gpu"]] == wanted
                                and (self.shows(job) == "paused") == (way == "pause"), job.evidence)
                if way == "pause":
                    laptop.run("job", "resume", job.id)
                self.assert_once(job, 120)
                self.grid.enter(GPU, f"rm -f {STATE}/calls")


if __name__ == "__main__":
    unittest.main(verbosity=2)
