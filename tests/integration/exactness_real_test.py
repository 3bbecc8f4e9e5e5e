# SPDX-License-Identifier: Apache-2.0
"""What gridctl says of real programs after a restart: is it the run that it would have been? Each verdict is compared with
the numbers that both attempts have printed. Needs GRIDCTL_FRAMEWORKS=VENV/lib/python3.11/site-packages."""
import os
import re
import shutil
import unittest

import grid
from grid import wait_until

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOSS = re.compile(r"^(?:iter|step) (\d+):? loss ([\d.]+)", re.MULTILINE)


def setUpModule():
    global laptop
    laptop = grid.up_with_frameworks("torch")


class RealPrograms(grid.Case):
    def verdict(self, name, run, steps, stop_at):
        """Runs it, ends its first attempt after that step, and returns the verdict beside what the numbers say."""
        workdir = os.path.join(self.grid.folder, name)
        os.makedirs(workdir, exist_ok=True)
        for program in ("workloads/nano.py", "programs/trainer.py"):
            shutil.copy(os.path.join(TESTS, program), workdir)
        job = laptop.submit({
            "name": name, "workdir": workdir, "run": run, "resources": {"cpus": 0.5},
            "envs": {"PYTHONPATH": grid.SITE, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1",
                     "STEPS": str(steps), "SAVE_EVERY": "20"},
            "checkpoint": {"path": "out", "interval": "1s"},
            "recovery": {"on_exit": {"restart": [33]}, "max_failures": 3, "lost_after": "8s"}})
        job.wait_checkpoint(1, 240)
        if "MUTE" not in run:
            wait_until("its steps", 240, lambda: max([int(s) for s, _ in LOSS.findall(job.logs())], default=0) >= stop_at,
                       job.evidence)
        host = job.host()
        self.grid.as_worker(host, "cd .gridctl/jobs/*/*/*/work && touch die")
        job.wait_attempt(2, 120)
        job.wait_success(300)
        found = wait_until("the verdict", 60, lambda: job.show().get("exactness"), job.evidence)
        first, second = (dict(LOSS.findall(job.logs("--attempt", str(n)))) for n in (1, 2))
        common = [step for step in second if step in first]
        return found, sum(first[step] == second[step] for step in common), len(common)

    def check(self, name, run, expected, steps=140, stop_at=50):
        found, same, common = self.verdict(name, run, steps, stop_at)
        grid.figure(f"verdict on {name}", f"{found['verdict']}: {found['steps']} steps; equal {same} of {common}")
        self.assertIn(found["verdict"], expected, found)
        if expected == ("cannot_tell",):
            return
        self.assertGreaterEqual(common, 8)
        self.assertEqual(found["verdict"] == "exact", same == common, f"{found}; {same} of {common} are equal")

    def test_a_script_as_it_is_repeats_its_first_batches(self):
        self.check("nano-as-is", "exec python3 nano.py AS_IS", ("repeats",))

    def test_a_seed_made_from_the_step_and_the_attempt_gives_other_data(self):
        self.check("nano-by-step", "exec python3 nano.py BY_STEP", ("other_data",))

    def test_a_generator_that_is_saved_continues_exactly(self):
        self.check("nano-saved", "exec python3 nano.py SAVED", ("exact",))

    def test_the_trainer_is_judged_in_its_first_and_in_its_second_epoch(self):
        if not os.path.isdir(os.path.join(grid.FRAMEWORKS, "transformers")):
            self.skipTest("GRIDCTL_FRAMEWORKS has no transformers")
        judged = ("exact", "other_data", "repeats")
        self.check("trainer-first-epoch", "exec python3 trainer.py", judged, steps=90, stop_at=50)
        self.check("trainer-second-epoch", "exec python3 trainer.py", judged, steps=170, stop_at=130)

    def test_of_a_script_without_numbers_nobody_can_tell(self):
        self.check("nano-mute", "exec python3 nano.py MUTE", ("cannot_tell",))


if __name__ == "__main__":
    unittest.main(verbosity=2)
