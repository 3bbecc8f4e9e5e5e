#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What `gridctl plan train` says of registered hosts that are not one group of like machines.

    plan_islands.py GRIDCTL FULL_STATE
"""
import json
import subprocess
import sys
import tempfile
import unittest

GRIDCTL, FULL_STATE = sys.argv[1:3]
MIXED = "NVIDIA H100 80GB HBM3:80:8,NVIDIA A100-SXM4-80GB:80:8"


class PlanTrain(unittest.TestCase):
    def plan(self, hosts, kinds, mbit, hosts_of_site, *words, code=0):
        with tempfile.TemporaryDirectory() as state:
            subprocess.run([FULL_STATE, state, "0", str(hosts), kinds, str(mbit), str(hosts_of_site)], check=True)
            done = subprocess.run([GRIDCTL, "--state", state, "plan", "train", *words, "--json"], capture_output=True,
                                  text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout) if code == 0 else done.stderr

    def test_shares_the_batch_of_kinds_that_differ(self):
        plan = self.plan(4, MIXED, 400_000, 64, "--model", "llama-3-8b", "--tokens", "2B")
        both = plan["together"]
        self.assertEqual(both["divided"], "batch")
        by_gpu = {part["gpu"]: part["batch"] for part in both["parts"]}
        self.assertEqual(sum(by_gpu.values()), plan["batch"])
        self.assertGreater(by_gpu["H100 SXM5 80GB"], by_gpu["A100 SXM4 80GB"])
        self.assertGreater(both["tokens_per_second"], plan["plans"][0]["tokens_per_second"])
        self.assertIn("all kinds of GPU together, shares of the batch by speed", plan["what_if"][0])

    def test_divides_the_layers_of_a_model_that_no_kind_holds(self):
        words = ("--model", "llama-3-70b", "--tokens", "2B", "--layout", "offload=none")
        plan = self.plan(3, "NVIDIA H100 80GB HBM3:80:8,NVIDIA A100-SXM4-80GB:80:8,NVIDIA A100-SXM4-80GB:80:8", 400_000, 64,
                         *words)
        parts = plan["together"]["parts"]
        self.assertEqual(plan["together"]["divided"], "layers")
        self.assertEqual(sum(sum(part["layers"]) for part in parts), 80)
        most = {part["gpu"]: max(part["layers"]) for part in parts}
        self.assertGreater(most["H100 SXM5 80GB"], most["A100 SXM4 80GB"])

    def test_one_kind_at_one_site_is_one_island(self):
        plan = self.plan(4, "NVIDIA H100 80GB HBM3:80:8", 400_000, 64, "--model", "llama-3-8b")
        self.assertNotIn("together", plan)
        self.assertNotIn("what_if", plan)

    def test_sites_train_apart(self):
        plan = self.plan(4, "NVIDIA H100 80GB HBM3:80:8", 1_000, 2, "--model", "llama-3-8b")
        self.assertRegex(plan["what_if"][0], r"over the WAN, 2 sites can train together by DiLoCo: over 1 Gbit/s from host\d"
                         r" to host\d, an exchange of 64\.2 GB every \d+ steps takes 514 s; \d+(\.\d+)? % of the time")

    def test_hosts_with_slow_links_train_apart(self):
        plan = self.plan(2, "NVIDIA H100 80GB HBM3:80:8", 500, 64, "--model", "llama-3-8b")
        self.assertIn("over the WAN, 2 hosts can train together by DiLoCo: over 500 Mbit/s between them", plan["what_if"][0])
        self.assertTrue(any("measured, 500 Mbit/s from host" in line for line in plan["sources"]), plan["sources"])

    def test_a_link_that_is_too_slow_is_refused_with_the_number(self):
        plan = self.plan(4, "NVIDIA H100 80GB HBM3:80:8", 2, 2, "--model", "llama-3-8b")
        self.assertIn("over the WAN, 2 sites cannot train together: the link of 2.0 Mbit/s is too slow", plan["what_if"][0])
        self.assertIn("the largest model that it could serve has", plan["what_if"][0])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
