# SPDX-License-Identifier: Apache-2.0
"""After a restore gridctl says whether the job is the run that it would have been: programs that save their generator,
seed it from the step, seed it anew, or print nothing; and a drill that requires exactness."""
import unittest

import grid
from grid import wait_until

PROGRAM = r"""
import json, math, os, pickle, random, sys, time
kind, told = sys.argv[1], sys.argv[2] == "metrics"
random.seed(1)
begin = 0
if os.path.exists("out/state.pkl"):
    with open("out/state.pkl", "rb") as file:
        begin, generator = pickle.load(file)
    if kind == "saved":
        random.setstate(generator)
    if kind == "seeded":
        random.seed(begin)
os.makedirs("out", exist_ok=True)
step = begin
while step < 400 or not os.path.exists("enough"):
    loss = 4 * math.exp(-step / 90) + random.gauss(0, 0.05)
    if kind == "mute":
        pass
    elif told:
        with open(os.environ["GRIDCTL_METRICS"], "a") as file:
            file.write(json.dumps({"step": step, "loss": round(loss, 5)}) + "\n")
    else:
        print(f"iter {step}: loss {loss:.5f}, time {random.random():.2f}ms" if kind != "saved" else
              f"iter {step}: loss {loss:.5f}", flush=True)
    step += 1
    if step % 100 == 50:
        with open("out/new", "wb") as file:
            pickle.dump((step, random.getstate()), file)
        os.replace("out/new", "out/state.pkl")
        open("out/.commit", "w").close()
    if begin == 0 and step == 90 and "GRIDCTL_DRILL" not in os.environ:
        time.sleep(14 if told else 0)
        sys.exit(33)
    time.sleep(0.05 if "GRIDCTL_DRILL" in os.environ else 0.02)
    if begin and "GRIDCTL_DRILL" not in os.environ and step >= begin + 90:
        time.sleep(12 if told else 0)
        break
"""


def setUpModule():
    global laptop
    the_grid = grid.up(2)
    laptop = the_grid.laptop()
    for host in the_grid.hosts:
        laptop.register(host, None, "process", "--price", f"0.{host}")


def spec(name, kind, told="printed", **recovery):
    program = PROGRAM.replace("'", "'\"'\"'")
    return {"name": name, "run": f"exec python3 -c '{program}' {kind} {told}", "resources": {"cpus": 0.5},
            "checkpoint": {"path": "out", "interval": "1s"},
            "recovery": {"on_exit": {"restart": [33]}, "lost_after": "5s", **recovery}}


class Exactness(grid.Case):
    def verdict(self, kind, told="printed"):
        job = laptop.submit(spec(f"{kind}-{told}", kind, told))
        job.wait_success(120)
        found = job.show()["exactness"]
        event = wait_until("the event", 20, lambda: job.events("exactness"), job.evidence)[0]
        self.assertEqual(event["text"], found["text"], job.evidence())
        self.assertIn(found["text"].split(":")[0], laptop.run("job", "show", job.id).out)
        return found

    def test_a_program_that_saves_its_generator_continues_exactly(self):
        found = self.verdict("saved")
        self.assertEqual((found["verdict"], found["steps"], found["largest_difference"]), ("exact", 40, 0), found)

    def test_one_that_makes_its_seed_from_the_step_gets_other_data(self):
        found = self.verdict("seeded")
        self.assertEqual((found["verdict"], found["steps"]), ("other_data", 40), found)
        self.assertIn("to continue exactly, save the random generators", found["text"])

    def test_one_that_seeds_anew_repeats_its_first_batches(self):
        found = self.verdict("anew")
        self.assertEqual((found["verdict"], found["steps"]), ("repeats", 40), found)

    def test_of_one_that_prints_no_numbers_nobody_can_tell(self):
        self.assertEqual(self.verdict("mute")["verdict"], "cannot_tell")

    def test_metrics_are_compared_where_a_program_tells_them(self):
        found = self.verdict("saved", "metrics")
        self.assertEqual((found["verdict"], found["steps"]), ("exact", 40), found)
        self.assertEqual(self.verdict("anew", "metrics")["verdict"], "repeats")


class Drills(grid.Case):
    def drill(self, kind, code):
        path = laptop.write_job(spec(f"drill-{kind}", kind, exact="required"))
        return laptop.run("job", "drill", path, "--json", code=code, timeout=300).json

    def test_what_is_exact_passes_where_that_is_required(self):
        told = self.drill("saved", 0)
        self.assertEqual((told["recoverable"], told["exactness"]["verdict"]), ("yes", "exact"), told)
        self.assertGreaterEqual(told["exactness"]["steps"], 8, told)

    def test_what_is_not_exact_fails_before_the_money_is_spent(self):
        told = self.drill("seeded", 1)
        self.assertEqual((told["recoverable"], told["exactness"]["verdict"]), ("no", "other_data"), told)
        self.assertIn("recovery.exact is required", told["summary"])


if __name__ == "__main__":
    unittest.main()
