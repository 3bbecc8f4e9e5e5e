# SPDX-License-Identifier: Apache-2.0
"""The flows of the daemon, and of the agent on the host: the fault befalls a process that nobody waits for."""
import contextlib
import fcntl
import json
import os
import subprocess
import time

from flows import Ended, Flow
from world import FINAL, PATIENCE, Broken, wait_for

TOLD_LOSS = "bytes of output lost: the host's disk was full]"  # what has no room is dropped, but not in silence
AFTER_A_FAULT = 2  # seconds that a process goes on after a failed call, before the disk is well again


@contextlib.contextmanager
def no_daemon(world):
    """What commands record meanwhile is left to a daemon of later: they believe that one runs."""
    with open(os.path.join(world.state, "daemon.lock"), "a", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        info = os.path.join(world.state, "daemon.json")
        with open(info, "w", encoding="ascii") as file:
            json.dump({"pid": os.getpid()}, file)
        yield
        os.unlink(info)


class Background(Flow):
    """`self.id` is the job of the picture, `self.before` what its checkpoints were when the fault had been."""
    attempts = 1
    steps = ["1", "2", "3", "4"]

    def submit(self, **options):
        path = self.world.write_job("swept", **options)
        self.id = json.loads(self.world.run("job", "submit", "-d", "--json", path, code=0).out)["job_id"]

    def state(self):
        return self.world.jobs()[self.id]["state"]

    def run(self, fault):
        self.world.restore_picture()
        self.act(fault)
        self.verify(None)
        return self.report

    def act(self, fault):
        """The daemon meets the fault, from its first call on."""
        daemon = self.world.spawn("daemon", "run", fault=fault)
        self.go_on(fault, lambda: daemon.poll() is None)
        if daemon.poll() is None:
            self.world.stop_daemon()
        try:
            daemon.wait(timeout=20)
        except subprocess.TimeoutExpired:
            daemon.kill()
            raise Broken("the daemon did not end when it was told to") from None
        self.report = self.world.read_report()

    def go_on(self, fault, lives=lambda: True):
        """Until all is over, or what does not end in a failure has had its time."""
        end = time.monotonic() + PATIENCE
        is_error = fault is not None and fault[0] in ("eio", "full")
        while lives() and time.monotonic() < end and not self.is_over():
            time.sleep(0.05)
            if is_error and self.world.was_hit():
                is_error, end = False, time.monotonic() + AFTER_A_FAULT

    def is_over(self):
        return self.world.state_of(self.id) in FINAL and not self.world.left_on(1)

    def verify(self, done):
        kept = {one["checkpoint_id"]: one["root"] for one in self.world.json("checkpoint", "ls", self.id)}
        was = self.state()
        self.world.settle()
        now = {one["checkpoint_id"]: one["root"] for one in self.world.json("checkpoint", "ls", self.id)}
        for name, root in kept.items():
            self.expect(now.get(name) == root, f"checkpoint {name} was committed and is gone", lost=True)
        self.expect(was not in FINAL or self.state() == was, f"the job was {was} and is {self.state()}", lost=True)
        self.verify_end()

    def verify_end(self):
        shown = self.world.json("job", "show", self.id)
        evidence = f"{shown}\n{self.world.run('job', 'events', self.id).out}"
        ran = [attempt for attempt in shown["attempts"] if attempt["started_at"]]
        self.expect(shown["state"] == "SUCCEEDED" and len(ran) <= self.attempts, evidence)
        target = os.path.join(self.world.folder, "copy")
        self.world.run("checkpoint", "pull", self.id, target, code=0)
        with open(os.path.join(target, "state"), encoding="ascii") as file:
            steps = file.read().split()
        os.unlink(os.path.join(target, "state"))
        os.rmdir(target)
        self.expect(steps == self.steps, f"the newest checkpoint has the steps {steps}\n{evidence}")
        output = self.world.run("job", "logs", self.id, "--attempt", str(len(shown["attempts"])), code=0).out
        lines = [line for line in output.splitlines() if line.startswith("step ")]
        self.expect(len(lines) == len(set(lines)), f"output twice\n{output}\n{evidence}")
        if len(shown["attempts"]) == 1 and TOLD_LOSS not in output:
            self.expect(len(lines) == len(self.steps), f"output is missing\n{output}\n{evidence}")


class Start(Background):
    """A daemon finds a job that nobody has begun."""
    name = "start"

    def prepare(self):
        self.world.register(1)
        with no_daemon(self.world):
            self.submit()
        self.world.take_picture()


class Commit(Background):
    """A daemon finds a job that has saved its work and ended while nobody looked."""
    name = "commit"

    def prepare(self):
        self.world.register(1)
        self.submit(run="sleep 0.5; sh plain.sh")
        wait_for("the job to run", lambda: self.world.state_of(self.id) == "RUNNING")
        self.world.stop_daemon()
        wait_for("the end on the host", lambda: not self.world.host_processes(1))
        self.expect(self.state() == "RUNNING", "it ended too early")
        self.world.take_picture()


class ResumeInDaemon(Ended):
    """A daemon finds a job that was resumed."""
    name = "resume-daemon"
    attempts = 2

    def prepare(self):
        super().prepare()
        with no_daemon(self.world):
            self.world.run("job", "resume", self.id, "--from", "1", code=0)
        self.world.take_picture()

    run, act, go_on = Background.run, Background.act, Background.go_on
    state, is_over = Background.state, Background.is_over
    verify, verify_end, steps = Background.verify, Background.verify_end, Background.steps


class CancelInDaemon(Background):
    """A daemon finds a running job that was cancelled."""
    name = "cancel-daemon"

    def prepare(self):
        self.world.register(1)
        self.world.take_picture()

    def act(self, fault):
        self.run_for_long()
        self.world.stop_daemon()
        with no_daemon(self.world):
            self.world.run("job", "cancel", self.id, "--grace", "1s", code=0)
        super().act(fault)

    def run_for_long(self):
        self.submit(envs={"STEPS": "100000", "PACE": "1", "SAVE_EVERY": "1", "COMMIT": "1"})
        wait_for("the job to run", lambda: self.world.state_of(self.id) == "RUNNING")

    def verify_end(self):
        self.expect(self.state() == "CANCELLED",
                    f"the job is {self.state()}\n{self.world.run('job', 'events', self.id).out}")


class OnHost(Background):
    """The daemon is well; processes of the host meet the fault."""
    watch = ""

    def prepare(self):
        Start.prepare(self)

    def act(self, fault):
        self.world.start_watched(1, fault, self.watch)
        try:
            self.begin()
            self.go_on(fault)
        finally:
            self.report = self.world.end_watched(1)
        self.world.stop_daemon()

    def begin(self):
        self.world.start_daemon()


class StartAtAgent(OnHost):
    """From the login to the end of the job: prepare, start, polls, the checkpoints' bytes, clean."""
    name = "start-agent"
    watch = "gridctl-agent connect"


class StartAtSupervisor(OnHost):
    """Restore, launch, snapshots of checkpoints, the end."""
    name = "commit-host"
    watch = "gridctl-agent supervise"


class StartAtInit(OnHost):
    """Process 1 of the job: killed from outside, it is the host's fault, and another attempt is made."""
    name = "start-init"
    watch = "init"
    attempts = 2


class CancelAtHost(CancelInDaemon):
    """The host's supervisor of a running job meets the fault, from the beginning to its last word."""
    name = "cancel-host"
    watch = "gridctl-agent supervise"
    begun = False

    def act(self, fault):
        self.begun = False
        OnHost.act(self, fault)

    def begin(self):
        self.submit(envs={"STEPS": "100000", "PACE": "1", "SAVE_EVERY": "1", "COMMIT": "1"})

    def is_over(self):
        """Cancels it when it runs; a fault may end it before."""
        if not self.begun and self.world.state_of(self.id) == "RUNNING":
            self.begun = True
            self.world.run("job", "cancel", self.id, "--grace", "1s", code=0)
        return self.begun and super().is_over()

    def verify(self, done):
        if not self.begun:
            self.world.run("job", "cancel", self.id, "--grace", "1s", code=0)
        super().verify(done)


FLOWS = (Start, Commit, ResumeInDaemon, CancelInDaemon, StartAtAgent, StartAtSupervisor, StartAtInit, CancelAtHost)
