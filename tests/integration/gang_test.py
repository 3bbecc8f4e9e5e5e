# SPDX-License-Identifier: Apache-2.0
"""One job on several hosts: PyTorch's DistributedDataParallel over Gloo, whose hosts lose power."""
import random
import re
import shutil
import subprocess
import time
import unittest

import grid

LOST_AFTER = 4  # seconds
STEPS = 40


def setUpModule():
    global laptop
    the_grid = grid.up(3)
    laptop = the_grid.laptop()
    for host in the_grid.hosts:
        laptop.register(host)
    tried = laptop.run("job", "submit", laptop.write_job(ddp("try", STEPS=1)), check=False)
    if "not built yet" in tried.err:
        raise unittest.SkipTest("this gridctl plans gangs and does not run them")


def ddp(name, nodes=2, ranks=2, **envs):
    envs = {"STEPS": STEPS, "PACE": 0.15, "SAVE_EVERY": 10, **envs}
    return {"name": name, "image": "localhost/torch:cpu", "workdir": grid.WORKLOADS, "run": "python3 ddp.py",
            "num_nodes": nodes, "ranks_per_node": ranks, "launcher": "torchrun", "class": "federated",
            "envs": {key: str(value) for key, value in envs.items()}, "resources": {"cpus": 0.25},
            "checkpoint": {"path": "out", "interval": "1s"}, "recovery": {"lost_after": f"{LOST_AFTER}s"}}


def losses(output):
    """Of each step the loss that was told last; the label is there or not."""
    return {int(step): loss for step, loss in re.findall(r"step (\d+) loss ([\d.]+)$", output, re.MULTILINE)}


class Gang(grid.Case):
    def tearDown(self):
        super().tearDown()
        self.grid.heal_all()

    @classmethod
    def undisturbed(cls):
        """What the losses are when nothing happens: computed once."""
        if not hasattr(cls, "truth"):
            job = laptop.submit(ddp("undisturbed", PACE=0))
            job.wait_success(deadline=120)
            cls.truth = losses(job.logs())
        return cls.truth

    def assert_same_losses(self, job):
        """To the last digit but one: Gloo adds the ranks' losses in the order in which they come."""
        told, truth = losses(job.logs()), self.undisturbed()
        self.assertEqual(sorted(told), sorted(truth), job.evidence())
        for step, loss in truth.items():
            self.assertAlmostEqual(float(told[step]), float(loss), delta=2e-6, msg=f"step {step}\n{job.evidence()}")

    def test_four_ranks_on_two_hosts_train_together(self):
        truth = self.undisturbed()
        self.assertEqual(sorted(truth), list(range(1, STEPS + 1)))
        self.grid.wait_clean()

    def test_a_rank_has_its_own_lines(self):
        job = laptop.submit(ddp("lines", STEPS=3))
        job.wait_success(deadline=90)
        for rank in range(4):
            self.assertIn("done", job.logs("--rank", str(rank)))
        self.assertNotIn("step 1 loss", job.logs("--rank", "3"))
        self.grid.wait_clean()

    def test_a_member_that_saves_often_in_a_format_of_its_own_gives_the_gang_a_checkpoint(self):
        run = """
          [ "$GRIDCTL_NODE_RANK" = 0 ] || exec sleep 60
          n=0; while :; do n=$((n + 1)); head -c 50000 /dev/zero | tr '\\0' $((n % 10)) > out/new; mv out/new out/state.raw; sleep 1.5; done
        """
        job = laptop.submit({"name": "often", "run": run, "num_nodes": 2, "class": "federated", "resources": {"cpus": 0.1},
                             "checkpoint": {"path": "out", "interval": "1s"}})
        job.wait_checkpoint(1, deadline=60)
        laptop.run("job", "cancel", job.id)
        job.wait_state("CANCELLED", deadline=60)
        self.grid.wait_clean()

    def lose_a_host(self, job, which, after):
        job.wait_checkpoint(1, deadline=90)
        time.sleep(after)  # somewhere between two saves
        attempt = job.attempts()[-1]
        members = attempt.get("members") or [{"provider": attempt["provider"]}]
        host = members[which % len(members)]["provider"]
        self.grid.kill(int(host[1:]))
        killed = time.time()
        job.wait_attempt(2, deadline=LOST_AFTER + 60)
        started = [event for event in job.events("attempt_started")][-1]
        grid.figure("power loss until the gang runs again, beyond lost_after",
                    f"{grid.iso(started['at']) - killed - LOST_AFTER:.2f} s")
        job.wait_success(deadline=150, hurry=True)
        self.assert_same_losses(job)
        self.grid.start(int(host[1:]))
        self.grid.wait_clean()

    def test_the_host_of_rank_zero_loses_power(self):
        self.lose_a_host(laptop.submit(ddp("first")), 0, 0.4)

    def test_the_other_host_loses_power(self):
        self.lose_a_host(laptop.submit(ddp("second")), 1, 0.7)

    def test_files_of_each_rank_go_to_permuted_hosts(self):
        self.lose_a_host(laptop.submit(ddp("shards", SHARDS=1)), 0, 0.5)

    @unittest.skipUnless(grid.LONG, "GRIDCTL_LONG=1 runs it: fifteen power losses")
    def test_power_is_lost_at_random_moments(self):
        moments = random.Random(4711)
        for number in range(15):
            with self.subTest(number=number):
                job = laptop.submit(ddp(f"random-{number}", SHARDS=number % 2))
                time.sleep(moments.uniform(0.2, 12))
                host = self.grid.hosts[moments.randrange(3)]
                self.grid.kill(host)
                time.sleep(LOST_AFTER + 1)
                self.grid.start(host)
                job.wait_success(deadline=200)
                self.assert_same_losses(job)
                self.grid.wait_clean()

    def test_a_rank_that_stands_still_is_found_and_all_begin_anew(self):
        job = laptop.submit(ddp("still", PACE=0.2, STEPS=150, SAVE_EVERY=20))
        job.wait_checkpoint(3, deadline=90)
        host = job.attempts()[-1]["members"][-1]["provider"]
        stopped = time.time()
        self.grid.as_worker(int(host[1:]), "kill -STOP $(pgrep -f '[p]ython3 ddp.py' | head -1)")
        job.wait_attempt(2, deadline=120)
        hung = job.events("hung")[-1]
        grid.figure("a rank stopped until that is found", f"{grid.iso(hung['at']) - stopped:.1f} s")
        self.assertLess(grid.iso(hung["at"]) - stopped, grid.bound(75))
        stacks = {event["provider"]: event["text"] for event in job.events("stacks")}
        self.assertEqual(len(stacks), 2, stacks)
        self.assertIn("stopped", stacks[host], job.evidence())
        job.wait_success(deadline=150, hurry=True)
        self.grid.wait_clean()

    @unittest.skipUnless(grid.LONG, "GRIDCTL_LONG=1 runs it: needs a quiet machine")
    def test_a_host_that_slows_the_others_down_is_replaced_at_the_next_checkpoint(self):
        spec = ddp("slow", PACE=0, STEPS=150, SAVE_EVERY=15, BUSY=20)
        spec["recovery"]["stragglers"] = "replace"
        job = laptop.submit(spec)
        job.wait_checkpoint(1, deadline=90)
        host = job.attempts()[-1]["members"][-1]["provider"]
        number = int(host[1:])
        pid = self.grid.as_worker(number, "pgrep -f '[p]ython3 ddp.py'").split()[-1]
        slowed = time.time()
        throttle = subprocess.Popen([grid.TESTGRID, "enter", str(number), "sh", "-c",
                                     f"while kill -STOP {pid}; do sleep 0.18; kill -CONT {pid}; sleep 0.04; done"],
                                    env=self.grid.environment, stderr=subprocess.DEVNULL)
        try:
            job.wait_event("straggler", deadline=120)
            told = job.events("straggler")[-1]
            grid.figure("a rank slowed down to a fifth until it is named", f"{grid.iso(told['at']) - slowed:.1f} s")
            self.assertEqual(told["provider"], host, job.evidence())
            job.wait_attempt(2, deadline=120)
        finally:
            throttle.wait(timeout=120)  # its process is gone then
        self.assertNotIn(host, [member["provider"] for member in job.attempts()[-1]["members"]], job.evidence())
        self.assertIsNotNone(job.attempts()[-1]["resumed_from"], job.evidence())
        job.wait_success(deadline=200)
        self.grid.wait_clean()

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun here; scripts/install-deps test installs it")
    def test_mpi_starts_ranks_on_the_other_host_without_ssh(self):
        job = laptop.submit({"name": "mpi", "run": "echo rank $OMPI_COMM_WORLD_RANK on $(hostname)", "num_nodes": 2,
                             "ranks_per_node": 2, "launcher": "mpi", "class": "federated", "resources": {"cpus": 0.25}})
        job.wait_success(deadline=60)
        hosts = [member["provider"] for member in job.attempts()[-1]["members"]]
        said = sorted(re.findall(r"rank (\d) on (\S+)", job.logs()))
        self.assertEqual([rank for rank, _ in said], ["0", "1", "2", "3"], job.evidence())
        self.assertEqual(sorted({host for _, host in said}), sorted(hosts), job.evidence())
        self.grid.wait_clean()

    def test_a_worker_that_a_host_leaves_in_the_background_serves_the_first_one(self):
        """As published job files start Ray: `ray start --address ...`, and `run` ends there."""
        run = """port=$((GRIDCTL_MASTER_PORT + 5))
if [ "$SKYPILOT_NODE_RANK" = 0 ]; then
  sleep 4
  python3 -c "import sys, urllib.request as u; print('read', len(u.urlopen(sys.argv[1], timeout=20).read()))" \
    http://$(echo "$SKYPILOT_NODE_IPS" | tail -n 1):$port/
else
  setsid python3 -m http.server $port > server.log 2>&1 &
fi"""
        for engine, image in (("process", None), ("container", "localhost/torch:cpu")):
            with self.subTest(engine):
                job = laptop.submit({"name": f"worker-{engine}", "run": run, "num_nodes": 2, "class": "federated",
                                     "resources": {"cpus": 0.25}, **({"image": image} if image else {})})
                job.wait_success(deadline=90)
                self.assertEqual(len(job.attempts()), 1, job.evidence())
                self.assertRegex(job.logs("--rank", "0"), r"read \d+", job.evidence())
                self.assertIn("the processes it left running (1 process) keep running until the first host's command ends",
                              job.logs("--rank", "1"), job.evidence())
        self.grid.wait_clean()

    def test_a_rank_of_an_old_epoch_finds_nobody(self):
        job = laptop.submit(ddp("cut", PACE=0.3))
        job.wait_checkpoint(1, deadline=90)
        attempt = job.attempts()[-1]
        members = attempt.get("members") or [{"provider": attempt["provider"]}]
        host = members[-1]["provider"]
        self.grid.partition(int(host[1:]))
        job.wait_attempt(2, deadline=LOST_AFTER + 60)
        self.grid.heal(int(host[1:]))
        job.wait_success(deadline=150, hurry=True)
        self.assert_same_losses(job)
        self.grid.wait_clean()


if __name__ == "__main__":
    unittest.main(verbosity=2)
