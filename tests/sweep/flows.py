# SPDX-License-Identifier: Apache-2.0
"""The flows of commands: the fault befalls the command, and the next commands look what became of it."""
import json
import os
import shutil
import sqlite3

from world import Broken, wait_for


class Flow:
    modes = ("kill", "tear", "eio", "full")

    def __init__(self, world):
        self.world = world
        self.report = {}  # of fault_at, of the newest run

    def prepare(self):
        """Makes what is there before the flow begins, and takes a picture of it."""
        self.world.register(1)
        self.world.take_picture()

    def run(self, fault):
        """From the picture through the fault; returns what fault_at reports. Raises Broken."""
        self.world.restore_picture()
        done = self.act(fault)
        self.report = self.world.read_report()
        if fault and fault[0] in ("eio", "full") and done.code > 128:
            raise Broken(f"a failed call ended it by a signal\n{done}")
        self.verify(done)
        return self.report

    def act(self, fault):
        raise NotImplementedError

    def verify(self, done):
        raise NotImplementedError

    def expect(self, condition, text, lost=False):
        if not condition:
            raise Broken(text, lost)


class Submit(Flow):
    name = "submit"

    def act(self, fault):
        self.job = self.world.write_job("swept")
        return self.world.run("job", "submit", "-d", "--json", self.job, fault=fault, watched=True)

    def verify(self, done):
        jobs = self.world.jobs()
        if done.code == 0:
            told = json.loads(done.out)["job_id"]
            self.expect(told in jobs, f"job {told} was acknowledged and is not there", lost=True)
        again = json.loads(self.world.run("job", "submit", "-d", "--json", self.job, code=0).out)["job_id"]
        self.world.settle()
        for job in [*jobs, again]:
            self.expect_one_success(job)

    def expect_one_success(self, job):
        shown = self.world.json("job", "show", job)
        attempts = shown["attempts"]
        self.expect(shown["state"] == "SUCCEEDED" and len(attempts) == 1,
                    f"{shown}\n{self.world.run('job', 'events', job).out}")


class Ended(Flow):
    """Begins with a job that has succeeded and has two checkpoints; on a busy machine it may make only one."""

    def prepare(self):
        self.world.register(1)
        path = self.world.write_job("swept")
        for _ in range(5):
            self.id = json.loads(self.world.run("job", "submit", "-d", "--json", path, code=0).out)["job_id"]
            self.world.settle()
            if len(self.world.json("checkpoint", "ls", self.id)) > 1:
                break
        self.world.take_picture()


class Resume(Ended):
    name = "resume"

    def act(self, fault):
        return self.world.run("job", "resume", self.id, "--from", "1", "--provider", "h1", "--json", fault=fault,
                              watched=True)

    def verify(self, done):
        shown = self.world.json("job", "show", self.id)
        resumed = len([line for line in self.world.run("job", "events", self.id, "--json", code=0).out.splitlines()
                       if json.loads(line)["kind"] == "resumed"])
        self.expect(done.code != 0 or resumed, f"the resume was acknowledged and is not there\n{shown}", lost=True)
        pinned = '"h1"' in self.spec_constraints()
        self.expect(pinned == bool(resumed), f"half resumed: pinned {pinned}, resumed {resumed}\n{shown}")
        if not resumed:
            self.world.run("job", "resume", self.id, "--from", "1", "--provider", "h1", code=0)
        self.world.settle()
        shown = self.world.json("job", "show", self.id)
        self.expect(shown["state"] == "SUCCEEDED" and len(shown["attempts"]) == 2,
                    f"{shown}\n{self.world.run('job', 'events', self.id).out}")

    def spec_constraints(self):
        with sqlite3.connect(f"file:{self.world.state}/state.db", uri=True, timeout=10) as db:
            spec = json.loads(db.execute("SELECT spec FROM jobs WHERE id = ?", (self.id,)).fetchone()[0])
        db.close()
        return json.dumps(spec.get("constraints", {}))


class Pull(Ended):
    name = "pull"

    def act(self, fault):
        self.target = os.path.join(self.world.folder, "pulled", "result")
        shutil.rmtree(os.path.dirname(self.target), ignore_errors=True)
        os.makedirs(os.path.dirname(self.target))
        return self.world.run("checkpoint", "pull", self.id, self.target, fault=fault, watched=True)

    def verify(self, done):
        whole = os.path.exists(os.path.join(self.target, "state"))
        self.expect(done.code != 0 or whole, "the copy was acknowledged and is not there", lost=True)
        if os.path.exists(self.target):
            self.expect(done.code in (0, 137) and self.is_right(), f"half a copy: {os.listdir(self.target)}\n{done}")
        if not os.path.exists(self.target):
            self.world.run("checkpoint", "pull", self.id, self.target, code=0)
        self.expect(self.is_right(), "the copy is not right")
        left = os.listdir(os.path.dirname(self.target))
        self.expect(left == ["result"], f"left beside the copy: {left}")
        self.world.check_whole()

    def is_right(self):
        try:
            with open(os.path.join(self.target, "state"), encoding="ascii") as file:
                return file.read().split() == ["1", "2", "3", "4"] and os.listdir(self.target) == ["state"]
        except OSError:
            return False


class Remove(Ended):
    name = "rm"

    def act(self, fault):
        return self.world.run("checkpoint", "rm", f"{self.id}@1", fault=fault, watched=True)

    def verify(self, done):
        names = [one["checkpoint_id"] for one in self.world.json("checkpoint", "ls", self.id)]
        there = f"{self.id}@1" in names
        self.expect(done.code != 0 or not there, "the removal was acknowledged and has not happened", lost=True)
        if there:
            self.world.run("checkpoint", "rm", f"{self.id}@1", code=0)
        self.expect(f"{self.id}@2" in names, "another checkpoint is gone", lost=True)
        self.world.settle()


class RemoveProvider(Flow):
    """A host that holds a job and is dead is forgotten: the job goes on elsewhere."""
    name = "rm-provider"

    def prepare(self):
        self.world.register(1)
        path = self.world.write_job("swept", secrets={}, envs={"STEPS": "100000", "PACE": "1"},
                                    run="[ $GRIDCTL_ATTEMPT != 1 ] || sh plain.sh", recovery={"lost_after": "10m"})
        self.id = json.loads(self.world.run("job", "submit", "-d", "--json", path, code=0).out)["job_id"]
        wait_for("the job to run", lambda: self.world.state_of(self.id) == "RUNNING")
        self.world.stop_daemon()
        self.world.testgrid("kill", "1")
        self.world.register(2)
        self.world.take_picture()

    def act(self, fault):
        return self.world.run("provider", "rm", "h1", "--force", fault=fault, watched=True)

    def verify(self, done):
        names = [one["name"] for one in self.world.json("provider", "ls")]
        there = "h1" in names
        self.expect(done.code != 0 or not there, "the removal was acknowledged and has not happened", lost=True)
        if there:
            self.world.run("provider", "rm", "h1", "--force", code=0)
        self.world.settle(hosts=(2,))
        self.expect(self.world.jobs()[self.id]["state"] == "SUCCEEDED", "the job did not go on elsewhere")


class Register(Flow):
    name = "register"

    def prepare(self):
        self.world.take_picture()

    def act(self, fault):
        return self.world.register(1, fault=fault, watched=True, code=None)

    def verify(self, done):
        names = [one["name"] for one in self.world.json("provider", "ls")]
        there = "h1" in names
        self.expect(done.code != 0 or there, "the host was acknowledged and is not there", lost=True)
        if not there:
            self.world.register(1)
        self.world.run("provider", "check", "h1", code=0)
        self.world.settle()


class Cancel(Flow):
    name = "cancel"

    def act(self, fault):
        path = self.world.write_job("swept", envs={"STEPS": "100000", "PACE": "1", "SAVE_EVERY": "2", "COMMIT": "1"})
        self.id = json.loads(self.world.run("job", "submit", "-d", "--json", path, code=0).out)["job_id"]
        wait_for("the job to run", lambda: self.world.state_of(self.id) == "RUNNING")
        self.world.stop_daemon()
        return self.world.run("job", "cancel", self.id, "--grace", "1s", fault=fault, watched=True)

    def verify(self, done):
        acknowledged = done.code == 0
        if not acknowledged:
            self.world.run("job", "cancel", self.id, "--grace", "1s", code=0)
        self.world.settle()
        state = self.world.jobs()[self.id]["state"]
        self.expect(state == "CANCELLED", f"the job is {state} instead of cancelled", lost=acknowledged)


class Sync(Ended):
    """Copies to a place: whatever befalls it, what is visible there is whole, and what is called a copy is one."""
    name = "sync"
    words = ("store", "sync", "nas")

    def prepare(self):
        super().prepare()
        self.place = os.path.join(self.world.folder, "nas")
        self.place_before = os.path.join(self.world.folder, "nas-before")
        for left in (self.place, self.place_before):  # by another flow in this world
            shutil.rmtree(left, ignore_errors=True)
        self.world.run("store", "add", "nas", f"dir:{self.place}", code=0)
        self.prepare_remote()
        shutil.copytree(self.place, self.place_before)
        self.world.take_picture()

    def prepare_remote(self):
        pass

    def act(self, fault):
        shutil.rmtree(self.place)
        shutil.copytree(self.place_before, self.place)
        return self.world.run(*self.words, fault=fault, watched=True)

    def copies(self):
        return {one["checkpoint_id"]: one["copies"] for one in self.world.json("checkpoint", "ls", self.id)}

    def verify(self, done):
        copies = self.copies()
        self.expect(done.code != 0 or all(copies.values()), f"acknowledged, and not all are copied: {copies}", lost=True)
        self.expect_sound("after the fault")
        self.world.run(*self.words, code=0)
        self.expect(all(self.copies().values()), f"the next one has not copied all: {self.copies()}")
        self.expect_sound("after the next one")
        for one in self.copies():
            target = os.path.join(self.world.folder, "pulled", one)
            shutil.rmtree(target, ignore_errors=True)
            self.world.run("checkpoint", "pull", one, target, "--from", "nas", code=0)
        self.world.check_whole()

    def expect_sound(self, when):
        checked = self.world.run("store", "check", "nas", "--all")
        self.expect(checked.code == 0, f"{when}\n{checked}", lost=True)


class SyncPrune(Sync):
    """The same, with something to be removed there."""
    name = "sync-prune"
    words = ("store", "sync", "nas", "--prune")

    def prepare_remote(self):
        self.world.run("store", "sync", "nas", code=0)
        self.world.run("checkpoint", "rm", f"{self.id}@1", code=0)


COMMANDS = (Submit, Resume, Pull, Remove, RemoveProvider, Register, Cancel, Sync, SyncPrune)
