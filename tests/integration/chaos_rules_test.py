# SPDX-License-Identifier: Apache-2.0
"""Who judges the chaos is judged here: a clean history passes, and each kind of dirt is noticed by its rule."""
import copy
import datetime
import types
import unittest

import chaos_plan
import chaos_rules
from chaos_history import History, JobRecord, Note

BEGAN = 1_700_000_000.0  # real seconds since the epoch


def stamp(seconds):
    return datetime.datetime.fromtimestamp(BEGAN + seconds, datetime.timezone.utc).isoformat(timespec="milliseconds")


def event(kind, at, epoch, text=""):
    return {"kind": kind, "at": stamp(at), "epoch": epoch, "text": text}


def attempt(number, state, reason, host="h1", ended=0):
    return {"number": number, "epoch": number, "provider": host, "state": state, "reason": reason, "ended_at": stamp(ended)}


def history():
    """One job that loses its first host 30 s after its start, silent since it was cut off at 18 s."""
    made = History()
    made.clocks = [(BEGAN, 0)]
    made.booted = BEGAN - 100
    spec = {"name": "chain-1", "envs": {"SEED": "x", "STEPS": "3", "SAVE_EVERY": "3"}, "recovery": {"lost_after": "10s"}}
    job = JobRecord(types.SimpleNamespace(id="j1"), spec)
    job.state = job.chain()
    job.outputs = {1: "step 1\n", 2: f"resumed after step 1\nstep 2\nstep 3\nsaved step 3\nresult {job.chain()[-1].split()[1]}\n"}
    job.shown = {"state": "SUCCEEDED", "attempts": [attempt(1, "lost", "host_lost", ended=30), attempt(2, "succeeded", "exited", "h2")]}
    job.events = [event("placed", 0, 1, "attempt 1 goes to h1, from the beginning: cheap"),
                  event("checkpoint", 5, 1, "checkpoint 1 is safe"), event("host_lost", 30, 1),
                  event("placed", 30, 2, "attempt 2 goes to h2, from checkpoint 1: cheap"), event("checkpoint", 40, 2, "checkpoint 2 is safe"), event("succeeded", 41, 2)]
    made.jobs = [job]
    made.faults = [chaos_plan.Fault(1, "cut-both", 18, 20, 1, 0.5, BEGAN + 18, BEGAN + 38, "h1")]
    made.notes = [Note(host, "j1", epoch, line) for host, epoch, line in (
        (1, 1, "100.0 G begin 0"), (1, 1, "101.0 G step 1"), (2, 2, "131.0 G begin 1"), (2, 2, "133.0 G end 3"))]
    made.sights = 9
    made.left = {1: [], 2: []}
    made.listed = {"chain-1"}
    return made


class Rules(unittest.TestCase):
    def setUp(self):
        self.history = history()
        self.job = self.history.jobs[0]

    def assert_violates(self, rule):
        self.assertEqual([name for name, _ in chaos_rules.violations(self.history)], [rule])

    def test_a_clean_history_is_clean(self):
        self.assertEqual(chaos_rules.violations(self.history), [])

    def test_a_job_that_did_not_finish(self):
        self.job.shown["state"] = "FAILED"
        self.assert_violates("finishes")

    def test_a_step_that_was_done_twice(self):
        self.job.state = self.job.state[:2] + self.job.state[1:]
        self.assert_violates("right result")

    def test_a_result_that_is_printed_twice(self):
        self.job.outputs[2] += self.job.outputs[2].splitlines()[-1] + "\n"
        self.assert_violates("right output")

    def test_a_line_of_output_that_is_lost_or_doubled(self):
        whole = self.job.outputs[2]
        for line in whole.splitlines(keepends=True):
            for instead in ("", 2 * line):
                self.job.outputs[2] = whole.replace(line, instead, 1)
                self.assert_violates("right output")

    def test_output_that_found_no_space_is_told_as_lost(self):
        whole, line = self.job.outputs[2], "step 3\nsaved step 3\n"
        notice = "\n[gridctl: {} bytes of output lost: the host's disk was full]\n"
        for lost, clean in ((len(line), True), (len(line) + 9, True), (len(line) - 1, False)):
            self.job.outputs[2] = whole.replace(line, notice.format(lost))
            self.assertEqual(not chaos_rules.violations(self.history), clean)
        self.job.outputs[2] = whole[:-70] + notice.format(69)
        self.assert_violates("right output")
        self.job.outputs[2] = whole[:-70] + notice.format(70)
        self.assertEqual(chaos_rules.violations(self.history), [])
        self.job.outputs[2] = whole.replace("step 3\n", "cannot save step 3\ncannot save step 3\nstep 3\n", 1)
        self.assertEqual(chaos_rules.violations(self.history), [])

    def lose_the_first_attempt_at(self, second, kind, attempt=None):
        """It had noted its third step at 5 s and printed nothing of it."""
        self.history.notes[1:2] = [Note(1, "j1", 1, f"{100 + at}.0 G step {step}") for step, at in ((1, 1), (2, 3), (3, 5))]
        self.history.faults.append(chaos_plan.Fault(2, kind, second, 0, 1, 0.5, BEGAN + second, BEGAN + second, "h1", attempt))

    def test_output_of_a_lost_attempt_that_was_stored_and_is_gone(self):
        self.lose_the_first_attempt_at(20, "power")
        self.assert_violates("keeps output")
        self.job.outputs[1] += "step 2\n"
        self.assertEqual(chaos_rules.violations(self.history), [])  # step 3 may have been noted and not printed
        self.job.outputs[1] = "step 2\n"
        self.assert_violates("right output")

    def test_output_that_was_in_the_pipe_when_the_power_went(self):
        self.lose_the_first_attempt_at(5, "power")
        self.assertEqual(chaos_rules.violations(self.history), [])

    def test_output_that_no_supervisor_had_read(self):
        self.lose_the_first_attempt_at(3, "stop-supervisor", ("j1", 1))
        self.assertEqual(chaos_rules.violations(self.history), [])
        self.history.faults[-1].attempt = ("j1", 2)
        self.assert_violates("keeps output")

    def test_a_job_that_does_not_begin_from_the_newest_checkpoint(self):
        self.job.events.insert(2, event("checkpoint", 6, 1, "checkpoint 2 is safe"))
        self.job.events[-2]["text"] = "checkpoint 3 is safe"
        self.assert_violates("never backwards")

    def test_a_watch_of_gpus_that_sees_none(self):
        self.history.sights = 0
        self.assert_violates("gpu held once")

    def test_a_run_without_jobs(self):
        self.history.jobs.clear()
        self.assert_violates("finishes")

    def test_a_checkpoint_that_is_committed_twice(self):
        self.job.events.insert(2, copy.copy(self.job.events[1]))
        self.assert_violates("ends once")

    def test_an_attempt_that_begins_too_early(self):
        self.history.notes[2].step, self.history.notes[0].step = 0, 1
        self.job.outputs = {1: "", 2: self.job.text(0)}
        self.assert_violates("never backwards")

    def test_a_gpu_that_two_hold(self):
        self.history.notes += [Note(1, "j2", 7, "100.5 G begin 0"), Note(1, "j2", 7, "109.0 G end 3")]
        self.assert_violates("gpu held once")

    def test_a_host_given_up_after_too_short_a_silence(self):
        self.history.faults[0].ended = BEGAN + 20
        self.assert_violates("no needless restart")

    def test_a_host_given_up_for_a_cut_of_another(self):
        self.history.faults[0].host = 2
        self.assert_violates("no needless restart")

    def test_a_container_that_vanished_though_another_was_killed(self):
        self.job.shown["attempts"][0].update(state="failed", reason="vanished")
        self.history.faults = [chaos_plan.Fault(1, "kill-init", 29, 0, 1, 0.5, BEGAN + 29, BEGAN + 29, "pid 7", ("j1", 1))]
        self.assertEqual(chaos_rules.violations(self.history), [])
        self.history.faults[0].attempt = ("j2", 1)
        self.assert_violates("no needless restart")
        self.history.faults[0].kind = "disk-full"
        self.assertEqual(chaos_rules.violations(self.history), [])

    def test_a_launch_that_failed_with_nothing_in_its_way(self):
        self.job.shown["attempts"][0].update(state="failed", reason="not_started")
        self.assertEqual(chaos_rules.violations(self.history), [])
        self.history.faults[0].host = 2
        self.assert_violates("no needless restart")
        self.history.faults[0].kind = "offline"
        self.assertEqual(chaos_rules.violations(self.history), [])

    def test_times_of_a_clock_that_was_wrong_are_understood(self):
        self.history.clocks.append((BEGAN + 25, 3600))
        for one in self.job.events[2:]:
            one["at"] = one["at"].replace("T22:", "T23:")
        self.assertEqual(chaos_rules.violations(self.history), [])

    def test_a_lease_that_is_left(self):
        self.history.left[2].append("lease of j1 epoch 2")
        self.assert_violates("nothing left")

    def test_a_refused_submit_that_took_effect(self):
        self.history.refused["chain-1"] = "the state directory is in use"
        self.assert_violates("nothing refused happened")


class Plan(unittest.TestCase):
    def test_a_seed_draws_the_same_faults_and_another_does_not(self):
        first, again, other = (chaos_plan.draw(seed, 4, 600, 10, 4) for seed in (1, 1, 2))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_half_of_the_hosts_can_always_be_reached(self):
        for seed in range(20):
            silent = [fault for fault in chaos_plan.draw(seed, 4, 600, 10, 2) if fault.kind in chaos_plan.SILENCING]
            for fault in silent:
                others = [one for one in silent if one.at <= fault.at < one.at + one.lasts]
                self.assertLessEqual(len(others), 2)

    def test_every_kind_of_fault_is_drawn(self):
        kinds = {fault.kind for fault in chaos_plan.draw(3, 4, 1800, 10, 4)}
        self.assertEqual(kinds, set(chaos_plan.WEIGHTS))


if __name__ == "__main__":
    unittest.main(verbosity=2)
