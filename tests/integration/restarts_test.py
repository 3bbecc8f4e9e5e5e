# SPDX-License-Identifier: Apache-2.0
"""Starts that come to nothing, and programs that end themselves: none begins for ever, and each says why."""
import unittest

import grid


def setUpModule():
    global laptop
    the_grid = grid.up(2)
    laptop = the_grid.laptop()
    for host in the_grid.hosts:
        laptop.register(host)


def script(name, run, **more):
    return {"name": name, "run": run, "resources": {"cpus": 0.05}, **more}


class Restarts(grid.Case):
    def ended(self, spec, state, deadline=90):
        job = laptop.submit(spec)
        job.wait_state(state, deadline=deadline)
        return job

    def test_a_gang_is_placed_on_links_that_nobody_has_measured(self):
        told = laptop.run("job", "submit", "-d", laptop.write_job(script("pair", "true", num_nodes=2)))
        self.assertIn("measuring the link between", told.err)

    def test_a_gang_runs_on_slow_links_with_a_warning_and_is_not_refused_for_ever(self):
        self.grid.command("shape", 1, "500mbit", "0ms")
        try:
            laptop.run("provider", "links", "--measure", "--all", timeout=90)
            told = laptop.run("job", "submit", "-d", laptop.write_job(script("slow", "true", num_nodes=2)), timeout=60)
        finally:
            self.grid.command("unshape", 1)
        self.assertIn("measuring the link between h1 and h2 again", told.err)
        self.assertIn("were measured at less than 10 Gbit/s", told.err)

    def test_a_program_may_make_its_checkpoint_directory_itself(self):
        job = self.ended(script("maker", "set -e; mkdir out; echo x > out/s.bin", checkpoint={"path": "out"},
                                recovery={"max_failures": 0}), "SUCCEEDED")
        self.assertEqual(len(job.show()["attempts"]), 2)

    def test_a_program_that_expects_the_directory_finds_it(self):
        job = self.ended(script("finder", "echo x > out/s.bin", checkpoint={"path": "out"}), "SUCCEEDED")
        self.assertEqual(len(job.show()["attempts"]), 1)

    def test_a_program_that_kills_itself_is_charged_in_the_end(self):
        job = self.ended(script("killer", "echo x >> out/a; kill -TERM $$", checkpoint={"path": "out"}), "FAILED", 150)
        self.assertLessEqual(len(job.show()["attempts"]), 6)
        self.assertIn("signal 15", laptop.run("job", "explain", job.id).out)

    def test_last_words_stop_a_job_and_are_its_reason(self):
        job = self.ended(script("importer", "echo \"ModuleNotFoundError: No module named 'nobody'\" >&2; exit 1"), "FAILED", 60)
        self.assertEqual(len(job.show()["attempts"]), 1)
        self.assertIn("No module named 'nobody'", laptop.run("job", "explain", job.id).out)


if __name__ == "__main__":
    unittest.main()
