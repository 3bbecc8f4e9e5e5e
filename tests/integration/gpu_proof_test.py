# SPDX-License-Identifier: Apache-2.0
"""Who judges the ranks of scripts/gpu-proof is judged here, and what it says where there is no GPU."""
import importlib.machinery
import importlib.util
import os
import types
import unittest

import grid

PATH = os.path.join(grid.SOURCE, "scripts", "gpu-proof")
LOADER = importlib.machinery.SourceFileLoader("gpu_proof", PATH)
gpu_proof = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_proof", LOADER))
LOADER.exec_module(gpu_proof)

DEVICES = ("1fa0be92-9c2e-4ba5-a5ab-6bd4eb9d1b1c", "c6b7d5a1-35d3-4d8e-8f64-2c6e3d5d9c77")


def life(after, last, backend="nccl", ranks=(0, 1), world=2):
    lines = [f"rank {rank} of {world} by {backend} on {DEVICES[rank]} begins after step {after}" for rank in ranks]
    return lines + [f"rank {rank} step {step} sum {2.0 * step + 1:.1f}" for step in range(after + 1, last + 1) for rank in ranks]


class Ranks(unittest.TestCase):
    def check(self, *lines, steps=4, backend="nccl"):
        return gpu_proof.check_ranks("\n".join(lines), steps, backend)

    def test_two_lives_of_two_ranks_are_understood(self):
        lives = self.check("NCCL INFO Bootstrap: Using lo:127.0.0.1<0>", *life(0, 3), *life(2, 4))
        self.assertEqual([one["step"] for one in lives], [0, 2])
        self.assertEqual(lives[1]["devices"], dict(enumerate(DEVICES)))

    def test_each_kind_of_false_run_is_refused(self):
        for name, lines in {"nothing": [],
                            "one rank": life(0, 4, ranks=(0,)),
                            "each for itself": life(0, 4, world=1),
                            "another backend": life(0, 4, backend="gloo"),
                            "a step too few": life(0, 3),
                            "a wrong sum": [*life(0, 4), "rank 1 step 2 sum 4.0"],
                            "a sum of one rank alone": life(0, 4)[:-1]}.items():
            with self.subTest(name), self.assertRaises(AssertionError):
                self.check(*lines)

    def test_without_torch_it_is_skipped_with_the_reason(self):
        options = types.SimpleNamespace(python="/nonexistent/python3")
        with self.assertRaises(gpu_proof.Skipped) as skipped:
            gpu_proof.claim_gang(None, options)
        self.assertIn("has no torch", str(skipped.exception))

    def test_the_ranks_program_is_python(self):
        compile(gpu_proof.RANKS, "ranks", "exec")
        self.assertNotIn("PROOF\n", gpu_proof.RANKS, "it is given to the shell up to that word")


if __name__ == "__main__":
    unittest.main()
