# SPDX-License-Identifier: Apache-2.0
"""What a job may cost and where it may go, held also by a failover: the limits and wishes of its file, broken on purpose."""
import glob
import json
import os
import pathlib
import tempfile
import unittest

import grid
from grid import plain

USD_A_SECOND = 3600  # an hour
STUB_UUID = "GPU-11111111-2222-3333-4444-555555555555"


def setUpModule():
    global laptop
    the_grid = grid.up(3)
    laptop = the_grid.laptop()
    for host in (1, 2):
        laptop.register(host, None, "auto", "--price", str(USD_A_SECOND))


class Limits(grid.Case):
    def tearDown(self):
        super().tearDown()
        self.grid.heal_all()

    def test_a_budget_holds_over_a_failover_and_saves_first(self):
        budget = 24
        job = laptop.submit(plain("spender", envs={"STEPS": 300, "SAVE_EVERY": 10}, budget={"total": budget}))
        job.wait_checkpoint(2)
        first = job.host()
        self.grid.kill(first)
        job.wait_attempt(2)
        shown = laptop.run("job", "show", job.id).out
        self.assertRegex(shown, r"cost +\$?[0-9.]+.* of \$?24\.00")
        stopped = laptop.run("job", "watch", job.id, code=9, timeout=90)
        self.assertIn("its budget of 24.00 USD is used up", stopped.err)
        self.assertIn("--budget", stopped.err)  # the command that goes on
        done = job.show()
        self.assertEqual((done["state"], done["reason"]), ("CANCELLED", "budget"))
        self.assertGreater(done["cost"], budget * 0.6)
        self.assertLessEqual(done["cost"], budget)
        self.grid.start(first)
        self.grid.wait_clean()
        again = laptop.run("job", "resume", job.id, code=9)
        self.assertIn("its budget of 24.00 USD is used up", again.err)
        self.assertEqual(job.state, "CANCELLED")
        laptop.run("job", "resume", job.id, "--budget", "100000")
        job.wait_success()
        self.assert_steps_once(job, 300, attempts=3)

    def test_a_job_is_stopped_when_it_has_run_for_so_long(self):
        job = laptop.submit(plain("long", envs={"STEPS": 3000}, max_duration="6s"))
        stopped = laptop.run("job", "watch", job.id, code=9, timeout=60)
        self.assertIn("it has run for 6s, its max_duration", stopped.err)
        done = job.show()
        self.assertEqual((done["state"], done["reason"]), ("CANCELLED", "max_duration"))
        ran = grid.iso(done["ended_at"]) - grid.iso(done["attempts"][0]["started_at"])
        self.assertGreaterEqual(ran, 6)
        self.assertLess(ran, 20)
        self.assertGreaterEqual(len(job.checkpoints()), 1)
        self.grid.wait_clean()


class Months(grid.Case):
    def test_a_month_that_is_used_up_stops_what_costs_and_lets_the_rest_run_for_nothing(self):
        owner = self.grid.laptop("monthly")
        owner.register(1, "paid", "auto", "--price", str(USD_A_SECOND))
        owner.run("budget", "set", "30", "--owner", "vision")
        job = owner.submit(plain("spends", envs={"STEPS": 400}, owner="vision"))
        free = owner.submit(plain("unlimited", envs={"STEPS": 60}))
        stopped = owner.run("job", "watch", job.id, code=9, timeout=90)
        self.assertRegex(stopped.err, r"the budget of vision for 20[0-9-]+, 30\.00 USD, is used up: [0-9.]+ USD spent")
        self.assertIn("gridctl budget set USD", stopped.err)
        done = job.show()
        self.assertEqual((done["state"], done["reason"], done["owner"]), ("CANCELLED", "month_budget", "vision"))
        self.assertGreater(done["cost"], 20)
        self.assertLessEqual(done["cost"], 30)
        self.assertGreaterEqual(len(job.checkpoints()), 1)
        told = owner.run("budget", "ls", "--json").json[0]
        self.assertEqual((told["owner"], told["used_up"]), ("vision", True))
        self.assertAlmostEqual(told["spent"], done["cost"], delta=0.01)
        self.assertIn("is used up", owner.run("job", "resume", job.id, code=9).err)
        free.wait_success(60)
        waits = owner.submit(plain("waits", envs={"STEPS": 5}, owner="vision"))
        waits.wait_event("waiting_for_provider", deadline=60)
        self.assertIn("only free hosts are used", owner.run("job", "explain", waits.id).out)
        owner.register(2, "own", "auto")
        waits.wait_success(60)
        self.assertEqual([a["provider"] for a in waits.attempts()], ["own"])
        owner.run("provider", "drain", "own")
        owner.run("budget", "set", "1000", "--owner", "vision")
        owner.run("job", "resume", job.id)
        job.wait_success(60)
        self.assertEqual([a["provider"] for a in job.attempts()], ["paid", "paid"])
        self.assert_steps_once(job, 400)
        owner.run("budget", "rm", "--owner", "vision")
        self.assertEqual(owner.run("budget", "ls", "--json").json, [])
        self.grid.wait_clean()


class Deadlines(grid.Case):
    """A job of a minute; what it needs to be almost surely done is that, the start (30 s until one was seen), and a tenth."""

    def tearDown(self):
        super().tearDown()
        self.grid.heal_all()

    def a_minute(self, name, **options):
        return plain(name, envs={"STEPS": 540, **options.pop("envs", {})}, workload={"work": "1m"}, **options)

    def owner(self, name, hosts):
        """Hosts of a market and one of a datacenter, which is dearer."""
        owner = self.grid.laptop(name)
        for host, (called, host_class, price) in enumerate(hosts, 1):
            owner.register(host, called, "auto", "--class", host_class, "--price", str(price))
        return owner

    def assert_met(self, job):
        shown = job.show()
        self.assertLess(grid.iso(shown["ended_at"]), grid.iso(shown["deadline"]["at"]), job.evidence())
        told = job.laptop.run("job", "show", job.id).out
        self.assertRegex(told, r"deadline +[-0-9 :]+: met, [0-9ms]+ before")
        self.assertRegex(told, r"expected +done in .*; it took [0-9.]+ times as long and cost [0-9.]+ times as much")
        self.assertGreater(shown["expected"]["seconds"], 60)

    def test_a_job_leaves_a_flaky_host_while_a_failure_could_still_be_made_good(self):
        owner = self.owner("cautious", [("cheap", "market", 1), ("steady", "datacenter", 10)])
        job = owner.submit(self.a_minute("cautious", deadline="118s", envs={"SAVE_EVERY": 180}))
        job.wait_attempt(1)
        shown = owner.run("job", "show", job.id).out
        self.assertRegex(shown, r"deadline +[-0-9 :]+: deadline in 1m[0-9]+s, met: [0-9ms]+ expected, [0-9ms]+ to be safe")
        asked = job.wait_event("move_requested", deadline=40)
        self.assertIn("cheap is too risky for the deadline", asked["text"])
        self.assertIn("steady could hardly be in time any more", asked["text"])
        job.wait("an explanation", 10, lambda: "the job moves to steady when its next checkpoint is safe"
                 in owner.run("job", "explain", job.id).out)
        job.wait_attempt(2, deadline=60)
        job.wait_success(90)
        self.assertEqual([(a["provider"], a["reason"]) for a in job.attempts()][0], ("cheap", "deadline"), job.evidence())
        self.assertEqual([a["provider"] for a in job.attempts()], ["cheap", "steady"], job.evidence())
        self.assert_continues(job, 180)
        self.assert_steps_once(job, 540)
        self.assert_met(job)
        self.grid.wait_clean()

    def test_a_failover_obeys_the_deadline(self):
        hosts = [("cheap", "market", 1), ("alike", "market", 1.1), ("steady", "datacenter", 10)]
        owner = self.owner("hurried", hosts)
        job = owner.submit(self.a_minute("hurried", deadline="112s", envs={"SAVE_EVERY": 1000}))
        job.wait_attempt(1)
        self.assertEqual(job.attempts()[0]["provider"], "cheap")
        job.wait_output("step 100 ")
        self.grid.kill(1)
        job.wait_attempt(2)
        self.assertEqual(job.attempts()[1]["provider"], "steady", job.evidence())
        at_risk = job.wait_event("deadline_at_risk")
        self.assertRegex(at_risk["text"], "no host that can run the job now is (sure|expected) to finish in time")
        self.grid.start(1)
        job.wait_success(90)
        self.assert_met(job)
        self.grid.wait_clean()

    def test_a_deadline_that_nobody_can_meet_is_told_at_once_and_when_it_is_over(self):
        owner = self.owner("late", [("cheap", "market", 1), ("steady", "datacenter", 10)])
        spec = plain("late", envs={"STEPS": 100}, workload={"work": "10m"}, deadline="9s")
        dry = owner.run("job", "submit", "--dry-run", owner.write_job(spec))
        self.assertIn("warning: no host that can run the job now is expected to finish in time", dry.err)
        self.assertIn("steady", dry.out)
        self.assertIn("missed: ", dry.out)
        job = owner.submit(spec)
        over = job.wait_event("deadline_passed", deadline=30)
        self.assertIn("the job is late, and continues", over["text"])
        job.wait_success(60)
        self.assertEqual([a["provider"] for a in job.attempts()], ["steady"])
        self.assertEqual(len(job.events("deadline_passed")), 1)
        self.assertEqual(len(job.events("deadline_at_risk")), 1)
        self.assertRegex(owner.run("job", "show", job.id).out, r"deadline +[-0-9 :]+: missed by ")
        self.grid.wait_clean()

    def test_a_hard_deadline_stops_the_job_after_it_has_saved(self):
        job = laptop.submit(plain("firm", envs={"STEPS": 3000}, deadline={"at": "8s", "hard": True}))
        stopped = laptop.run("job", "watch", job.id, code=9, timeout=60)
        self.assertIn("its deadline, 20", stopped.err)
        self.assertIn("--deadline TIME", stopped.err)
        done = job.show()
        self.assertEqual((done["state"], done["reason"]), ("CANCELLED", "deadline"))
        self.assertGreaterEqual(grid.iso(done["ended_at"]), grid.iso(done["deadline"]["at"]))
        self.assertLess(grid.iso(done["ended_at"]) - grid.iso(done["deadline"]["at"]), grid.bound(15))
        self.assertGreaterEqual(len(job.checkpoints()), 1)
        self.grid.wait_clean()
        laptop.run("job", "resume", job.id, code=9)
        laptop.run("job", "resume", job.id, "--deadline", "5s ago", code=2)
        laptop.run("job", "resume", job.id, "--deadline", "1h")
        job.wait_attempt(2)
        self.assertTrue(job.attempts()[1]["resumed_from"], job.evidence())
        laptop.run("job", "cancel", job.id, "--now", "--wait")
        self.grid.wait_clean()


class Cheaper(grid.Case):
    def test_a_job_moves_to_a_cheap_host_that_appears_and_stays_there(self):
        owner = self.grid.laptop("thrifty")
        owner.register(1, "dear", "auto", "--price", "90")
        job = owner.submit(plain("thrifty", envs={"STEPS": 540, "SAVE_EVERY": 40}, workload={"work": "1m"}))
        kept = owner.submit(plain("kept", envs={"STEPS": 100}, workload={"work": "1m"}, optimize="time"))
        job.wait_checkpoint(1)
        owner.register(2, "cheap", "auto", "--price", "1")
        asked = job.wait_event("move_requested", deadline=40)
        self.assertRegex(asked["text"], r"dear is more expensive than another host: the job moves when its next checkpoint is safe: "
                                        r"dear needs [0-9ms]+ and [0-9.]+ USD to continue, cheap needs [0-9ms]+ and 0.0[0-9] USD")
        job.wait_attempt(2, deadline=60)
        job.wait_success(90)
        self.assertEqual([(a["provider"], a["reason"]) for a in job.attempts()][0], ("dear", "cheaper"), job.evidence())
        self.assertEqual([a["provider"] for a in job.attempts()], ["dear", "cheap"], job.evidence())
        self.assert_continues(job, 40)
        self.assert_steps_once(job, 540)
        kept.wait_success(60)
        self.assertEqual([a["provider"] for a in kept.attempts()], ["dear"], kept.evidence())
        self.grid.wait_clean()

    def test_a_job_leaves_a_host_that_has_become_dear(self):
        owner = self.grid.laptop("watchful")
        owner.register(1, "left", "auto", "--price", "1")
        owner.register(2, "right", "auto", "--price", "2")
        job = owner.submit(plain("watchful", envs={"STEPS": 300, "SAVE_EVERY": 30}, workload={"work": "1m"}))
        job.wait_checkpoint(1)
        self.assertEqual(job.show()["provider"], "left")
        told = owner.run("provider", "price", "left", "90").out
        self.assertEqual(told, "left costs $90.00 an hour now, $1.00 before\n")
        self.assertEqual(job.wait_event("price_changed", deadline=60)["text"],
                         "left now costs 90.00 USD an hour, before 1.00")
        job.wait_event("move_requested", deadline=30)
        job.wait_success(90)
        self.assertEqual([(a["provider"], a["reason"]) for a in job.attempts()][0], ("left", "cheaper"), job.evidence())
        self.assertEqual(len(job.attempts()), 2, job.evidence())
        ran = [grid.iso(a["ended_at"]) - grid.iso(a["started_at"]) for a in job.attempts()]
        self.assertGreater(job.show()["cost"], sum(ran) / 3600 * 2 + 0.05)  # some seconds at 90 USD an hour
        self.assert_steps_once(job, 300)
        self.grid.wait_clean()


class Priorities(grid.Case):
    """One host with room for one job."""

    def test_a_job_of_low_priority_makes_room_after_a_checkpoint_and_goes_on_afterwards(self):
        owner = self.grid.laptop("urgent")
        owner.register(3, "only", "auto")
        cpus = owner.run("provider", "show", "only", "--json").json["cpus"]
        whole = {"cpus": cpus}
        low = owner.submit(plain("low", envs={"STEPS": 200, "SAVE_EVERY": 30}, resources=whole))
        low.wait_output("step 5 ")
        also = owner.submit(plain("also", envs={"STEPS": 10}, resources=whole))
        also.wait_event("waiting_for_provider")
        high = owner.submit(plain("high", envs={"STEPS": 20}, resources=whole, priority=10))
        told = high.wait_event("preempting", deadline=60)
        self.assertEqual(told["text"], "the job will run on only after the next checkpoints of the jobs there with less "
                                       f"priority: {low.id}")
        asked = low.wait_event("move_requested", deadline=60)
        self.assertEqual(asked["text"], "only is needed more urgently: the job moves when its next checkpoint is safe: "
                                        f"job {high.id} of priority 10 waits")
        high.wait_success(60)
        self.assertEqual(len(high.attempts()), 1)
        low.wait_success(120)
        also.wait_success(60)
        self.assertEqual([a["reason"] for a in low.attempts()][0], "preempted", low.evidence())
        self.assertEqual(len(low.attempts()), 2, low.evidence())
        self.assert_continues(low, 30)
        self.assert_steps_once(low, 200)
        self.assertLess(grid.iso(high.attempts()[0]["ended_at"]), grid.iso(low.attempts()[1]["ended_at"]))
        self.assertEqual(len(also.attempts()), 1)
        self.assertEqual((high.show()["priority"], low.show()["priority"]), (10, 0))
        self.grid.wait_clean()

    def test_who_has_not_left_yet_stays_when_the_urgent_one_is_cancelled(self):
        owner = self.grid.laptop("urgent2")
        owner.register(3, "only", "auto")
        whole = {"cpus": owner.run("provider", "show", "only", "--json").json["cpus"]}
        low = owner.submit(plain("low", envs={"STEPS": 100, "SAVE_EVERY": 1000}, resources=whole))
        low.wait_output("step 5 ")
        high = owner.submit(plain("high", resources=whole, priority=1))
        low.wait_event("move_requested", deadline=60)
        owner.run("job", "cancel", high.id, "--now", "--wait")
        stays = low.wait_event("move_withdrawn", deadline=60)
        self.assertEqual(stays["text"], "only keeps the job: it is no longer needed more urgently")
        low.wait_success(60)
        self.assertEqual(len(low.attempts()), 1)
        self.grid.wait_clean()


class Twins(grid.Case):
    """Two hosts, and a job that runs on both at once."""

    def tearDown(self):
        super().tearDown()
        self.grid.heal_all()

    def begin(self, owner, env=None, **wishes):
        owner.register(1, "left", "auto", "--price", "1")
        owner.register(2, "right", "auto", "--price", "2")
        job = owner.submit(plain("twin", replication={"replicas": 2, "mode": "active"}, **wishes), env=env)
        job.wait("both twins to run", 60,
                 lambda: [one["state"] for one in job.show()["replicas"]] == ["RUNNING"] and job.state == "RUNNING")
        twin = job.show()["replicas"][0]
        self.assertEqual((twin["job_id"], twin["name"]), (job.id + "r2", "twin-r2"))
        self.assertEqual({job.show()["provider"], twin["provider"]}, {"left", "right"})
        return job, twin["job_id"]

    def files_of(self, owner, checkpoint):
        with tempfile.TemporaryDirectory() as outer:
            folder = os.path.join(outer, "out")
            owner.run("checkpoint", "pull", checkpoint, folder)
            return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}

    def test_the_twin_finishes_when_the_other_host_is_gone(self):
        owner = self.grid.laptop("twins")
        job, twin = self.begin(owner, envs={"STEPS": 80, "SAVE_EVERY": 10})
        lost = 1 if job.show()["provider"] == "left" else 2
        self.grid.kill(lost)
        owner.run("job", "watch", job.id, timeout=90)
        shown = job.show()
        self.assertEqual((shown["state"], shown["reason"], shown["exit_code"]), ("SUCCEEDED", "replica_succeeded", 0))
        self.assertEqual(len(shown["attempts"]), 1, job.evidence())
        self.assertEqual(shown["replicas"][0]["state"], "SUCCEEDED")
        self.assertEqual(self.files_of(owner, job.id), self.files_of(owner, twin))
        self.assertGreater(shown["cost"], owner.run("job", "show", twin, "--json").json["cost"])
        self.grid.start(lost)
        self.grid.wait_clean()

    def test_they_are_cancelled_and_resumed_together_and_leave_one_result(self):
        owner = self.grid.laptop("twins2")
        secret = {"TOKEN": "of both"}
        job, twin = self.begin(owner, env=secret, envs={"STEPS": 100, "SAVE_EVERY": 10}, secrets={"TOKEN": None},
                                  run='test "$TOKEN" = "of both" && sh plain.sh')
        job.wait_checkpoint(1)
        owner.run("job", "cancel", job.id, "--wait")
        ended = owner.run("job", "watch", twin, code=9, timeout=30)
        self.assertIn("was stopped: twin (" + job.id + ") was cancelled", ended.err)
        self.grid.wait_clean()
        owner.run("job", "resume", job.id, env=secret)
        job.wait("the twin to go on", 30,
                 lambda: [a["number"] for a in owner.run("job", "show", twin, "--json").json["attempts"]] == [1, 2])
        job.wait_success(90)
        owner.run("job", "watch", twin, timeout=30, check=False)
        states = {job.state, owner.run("job", "show", twin, "--json").json["state"]}
        self.assertIn(states, [{"SUCCEEDED"}, {"SUCCEEDED", "CANCELLED"}])
        self.assertEqual(owner.run("job", "show", job.id, "--json").json["state"], "SUCCEEDED")
        self.grid.wait_clean()


class Tiers(grid.Case):
    """The only host that is free after a loss is one where the job must not go."""

    def tearDown(self):
        super().tearDown()
        self.grid.heal_all()

    def stays_away(self, name, marks, wish, code):
        marked = self.grid.laptop(name)
        marked.register(1, "good", "auto", "--region", "DE")
        marked.register(2, "bad", "auto", *marks)
        job = marked.submit(plain(name, envs={"STEPS": 80}, **wish))
        job.wait_checkpoint(2)
        self.assertEqual([one["provider"] for one in job.attempts()], ["good"])
        self.grid.kill(1)
        job.wait("the loss", 30, lambda: job.state == "RECOVERING")
        job.wait("an explanation", 30, lambda: f"bad cannot ({code})" in marked.run("job", "explain", job.id).out)
        self.grid.start(1)
        job.wait_success()
        self.assertEqual({one["provider"] for one in job.attempts()}, {"good"})
        self.grid.wait_clean()

    def test_a_private_job_waits_rather_than_go_to_a_lent_host(self):
        self.stays_away("private", ["--class", "market"], {"sensitivity": "private"}, "sensitivity")

    def test_what_a_lent_host_saved_waits_for_a_word_before_it_runs_at_home(self):
        """`interval: off` does not hold on the lent host, and its checkpoint is no plain process's on a machine of one's own."""
        owner = self.grid.laptop("careful")
        owner.register(1, "lent", "auto", "--class", "market")
        owner.register(2, "home", "auto", "--price", "5")
        spec = plain("careful", envs={"STEPS": 120}, checkpoint={"interval": "off"})
        told = owner.run("job", "submit", "-d", "-y", owner.write_job(spec)).err
        self.assertIn("checkpoint.interval: off does not hold on borrowed hosts: if the job runs on lent,", told)
        job = grid.Job(owner, owner.run("job", "show", "careful", "--json").json["job_id"])
        job.wait_checkpoint(2)
        self.assertEqual([event["provider"] for event in job.events("checkpoints_compulsory")], ["lent"])
        self.grid.kill(1)
        job.wait("the loss", 30, lambda: job.state == "RECOVERING")
        way_out = f"gridctl job cancel {job.id} && gridctl job resume {job.id} --restore-from any"
        job.wait("an explanation", 30, lambda: way_out in owner.run("job", "explain", job.id).out)
        owner.run("job", "cancel", job.id)
        job.wait_state("CANCELLED")
        owner.run("job", "resume", job.id, "--restore-from", "any")
        job.wait_success(60)
        self.assertEqual([one["provider"] for one in job.attempts()], ["lent", "home"], job.evidence())
        self.assertIsNotNone(job.attempts()[-1]["resumed_from"])
        self.grid.start(1)
        self.grid.wait_clean()

    def test_a_failover_obeys_the_region(self):
        self.stays_away("resident", ["--region", "US"], {"constraints": {"region": {"not": ["US"]}}}, "region")


class Variants(grid.Case):
    """A job for GPUs of any vendor. What stands here for GPUs are NVIDIA's stub, with a CDI file for podman, and none."""

    def test_a_failover_goes_on_in_another_image(self):
        stub = os.path.join(grid.SOURCE, "tests", "support", "nvidia-smi")
        with open(stub, encoding="utf-8") as file:
            self.grid.enter(1, f"cat > /usr/bin/nvidia-smi <<'STUB'\n{file.read()}\nSTUB\nchmod 755 /usr/bin/nvidia-smi")
        self.grid.enter(1, "mkdir -p /etc/cdi; cat > /etc/cdi/nvidia.json <<'CDI'\n" + json.dumps({
            "cdiVersion": "0.3.0", "kind": "nvidia.com/gpu",
            "devices": [{"name": STUB_UUID, "containerEdits": {"env": ["FROM_CDI=yes"]}}]}) + "\nCDI")
        self.grid.as_worker(2, "podman create --name base localhost/busybox:1 true && podman commit -q base localhost/bare:1"
                               " && podman rm base")
        any_vendor = self.grid.laptop("anyvendor")
        for host in (1, 2):
            any_vendor.register(host)
        job = any_vendor.submit(plain("anyvendor", envs={"STEPS": 120}, variants={
            "cpu": {"image": "localhost/bare:1", "run": "echo on cores; sh plain.sh"},
            "cuda": {"image": "localhost/busybox:1", "run": "echo on $GRIDCTL_GPU_VENDOR $FROM_CDI; sh plain.sh"}}))
        job.wait_checkpoint(2)
        self.assertEqual(job.host(), 1)
        self.assertIn("variant cuda", any_vendor.run("job", "explain", job.id).out)
        self.grid.kill(1)
        job.wait_attempt(2)
        job.wait_success()
        self.assertEqual(job.host(2), 2)
        output = job.logs()
        self.assertLess(output.index("on nvidia yes"), output.index("on cores"))
        self.assert_steps_once(job, 120, attempts=2)
        self.grid.start(1)


class Residency(grid.Case):
    """Copies of checkpoints obey the rules of the job too, also when the place that may have them is away."""

    def tearDown(self):
        super().tearDown()
        self.grid.heal_all()

    def owner(self, name, places):
        owner = self.grid.laptop(name)
        owner.register(1, "here", "auto", "--region", "DE")
        for place, marks in places.items():
            owner.run("store", "add", place, f"dir:{owner.folder}/{place}", *marks)
        return owner

    def packs(self, owner, place):
        return glob.glob(os.path.join(owner.folder, place, "packs", "*")) + \
            glob.glob(os.path.join(owner.folder, place, "checkpoints", "*"))

    def test_copies_stay_in_the_region_also_when_the_only_place_there_is_away(self):
        owner = self.owner("resident-copies", {"somewhere": [], "abroad": ["--location", "US"], "bavaria": ["--location", "DE-BY"]})
        spec = plain("resident-copies", envs={"STEPS": 200}, constraints={"region": {"in": ["DE"]}}, checkpoint={"copies": 3, "keep": 50})
        path = owner.write_job(spec)
        warned = owner.run("job", "submit", "-d", path)
        self.assertIn("only 1 independent remote keeps copies yet that may keep these", warned.err)
        self.assertIn("not abroad: it is in US, wanted DE", warned.err)
        job = grid.Job(owner, warned.out.split()[1])
        job.wait_event("checkpoint_copied")
        job.wait_event("copy_not_allowed", count=2)
        away = os.path.join(owner.folder, "bavaria-away")
        os.rename(os.path.join(owner.folder, "bavaria"), away)
        job.wait_event("copy_waits")
        job.wait_checkpoint(len(job.checkpoints()) + 3)
        os.rename(away, os.path.join(owner.folder, "bavaria"))
        job.wait_success()
        grid.wait_until("the last copy", 60, lambda: all(one["copies"] for one in job.checkpoints()), job.evidence)
        refused = sorted(event["text"] for event in job.events("copy_not_allowed"))
        self.assertEqual(refused, ["copies of its checkpoints are not sent to abroad: it is in US, wanted DE",
                                   "copies of its checkpoints are not sent to somewhere: its region is unknown, wanted DE"])
        self.assertIn("are not sent to abroad: it is in US", owner.run("job", "explain", job.id).out)
        listed = {one["name"]: one for one in owner.run("store", "ls", "--json").json}
        self.assertEqual([one["job_id"] for one in listed["abroad"]["refused"]], [job.id])
        self.assertEqual((listed["abroad"]["due"], listed["abroad"]["missing"]), (0, 0))
        self.assertIn("are not sent to somewhere: its region is unknown", owner.run("store", "ls").err)
        synced = owner.run("store", "sync")
        self.assertIn("are not sent to abroad: it is in US", synced.err)
        self.assertEqual({place for one in job.checkpoints() for place in one["copies"]}, {"bavaria"})
        self.assertEqual(self.packs(owner, "abroad") + self.packs(owner, "somewhere"), [])
        self.assertTrue(self.packs(owner, "bavaria"))
        self.grid.wait_clean()

    def test_a_private_job_has_no_copies_at_places_of_others(self):
        owner = self.owner("private-copies", {"theirs": ["--lent"], "ours": []})
        job = owner.submit(plain("private-copies", sensitivity="private", checkpoint={"copies": 3}))
        job.wait_event("checkpoint_copied")
        job.wait_success()
        grid.wait_until("the last copy", 60, lambda: all(one["copies"] for one in job.checkpoints()), job.evidence)
        self.assertIn("theirs: it is owned by others, and the job is private", job.wait_event("copy_not_allowed")["text"])
        self.assertEqual(self.packs(owner, "theirs"), [])
        self.grid.wait_clean()


if __name__ == "__main__":
    unittest.main()
