# SPDX-License-Identifier: Apache-2.0
"""What is known of a host: all of it or the reason, what changed since, and what its owner said otherwise."""
import os
import unittest

import grid
from grid import plain, wait_until

CHANGED, REBOOTED, LIAR = 1, 2, 3
UUID = "GPU-11111111-2222-3333-4444-555555555555"
# The only attributes of which nothing is an answer, and what it says.
NOTHING_SAYS = {"notes": "nothing is worth a word", "engines.problem": "it works",
                "engines.version": "no engine is needed for a process", "facts.home_problem": "it can be written",
                "gpus.throttle": "its clocks are free", "gpus.partition.profile": "it is whole",
                "gpus.partition.parent": "it is whole", "gpus.model": "no model of the catalogue, surely",
                "nics.device": "no RDMA device"}
REASONS = {"not_applicable", "not_supported", "not_reported", "needs_bench", "no_tool", "no_driver", "denied", "timed_out",
           "unreadable"}


def setUpModule():
    global laptop
    the_grid = grid.up(3)
    laptop = the_grid.laptop()
    for host in (CHANGED, REBOOTED):
        laptop.register(host, None, "process", "--gpu", "RTX_4090:2")


def give_gpu(the_grid, host):
    """A stub nvidia-smi: one GPU more."""
    stub = os.path.join(grid.SOURCE, "tests", "support", "nvidia-smi")
    with open(stub, encoding="utf-8") as file:
        text = file.read()
    the_grid.enter(host, f"cat > /usr/bin/nvidia-smi <<'STUB'\n{text}\nSTUB\nchmod 755 /usr/bin/nvidia-smi")


def leaves(tree, path=""):
    """(path, value) of every attribute, whatever there is; of lists of things, those of each thing."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from leaves(value, f"{path}.{name}" if path else name)
    elif isinstance(tree, list) and tree and isinstance(tree[0], dict):
        for one in tree:
            yield from leaves(one, path)
    else:
        yield path, tree


class Inventory(grid.Case):
    def shown(self, host):
        return laptop.run("provider", "show", f"h{host}", "--json").json

    def assert_explained(self, inventory):
        """Every attribute there is holds a value, or has a gap with its reason; the numbers of both."""
        filled, explained, bare = [], [], []

        def look(owner, prefix):
            gaps = {gap["attribute"]: gap["reason"] for gap in owner["gaps"]}
            self.assertLessEqual(set(gaps.values()), REASONS)
            for path, value in leaves({name: value for name, value in owner.items() if name not in ("gaps", "gpus")}):
                whole = prefix + path
                if value not in (None, "", []):
                    filled.append(whole)
                elif any(path == gap or path.startswith(gap + ".") for gap in gaps):
                    explained.append(whole)
                elif whole not in NOTHING_SAYS:
                    bare.append(whole)

        look(inventory, "")
        if not inventory["gpus"]:
            self.assertIn("gpus", [gap["attribute"] for gap in inventory["gaps"]])
        for gpu in inventory["gpus"]:
            look(gpu, "gpus.")
        self.assertEqual(bare, [], "neither filled nor explained")
        return filled, explained

    def history(self, host):
        return [event["kind"] for event in self.shown(host)["history"]]

    def test_every_attribute_is_filled_or_says_why_not(self):
        inventory = self.shown(CHANGED)["inventory"]
        self.assertEqual(inventory["version"], 2)
        filled, explained = map(set, self.assert_explained(inventory))
        grid.figure("attributes of a test host that hold a value", f"{len(filled)}; that say why not: {len(explained)}")
        self.assertGreaterEqual(len(filled), 40, filled)

    def test_what_its_owner_said_stands_beside_what_is_found(self):
        shown = self.shown(REBOOTED)
        self.assertEqual(shown["declared_gpus"], "RTX_4090:2")
        self.assertIn("declared RTX_4090:2, found 0", shown["contradictions"][0])
        self.assertIn("contradiction", laptop.run("provider", "show", f"h{REBOOTED}").out)

    def test_a_rescan_says_what_changed_once(self):
        name = f"h{CHANGED}"
        self.assertEqual(laptop.run("provider", "rescan", name).out.strip(), f"{name} is unchanged")
        give_gpu(self.grid, CHANGED)
        self.assertIn(f"gpu {UUID}: new:", laptop.run("provider", "rescan", name).out)
        self.assertEqual(laptop.run("provider", "rescan", name, "--json").json["changes"], [])
        self.assertEqual(self.history(CHANGED).count("inventory_changed"), 1)
        shown = self.shown(CHANGED)
        self.assertEqual([gpu["uuid"] for gpu in shown["gpus"]], [UUID])
        self.assert_explained(shown["inventory"])
        text = laptop.run("provider", "show", name).out
        self.assertIn("Unknown, and why", text)
        # The stub is a lie, which no honest machine tells: its GPU is on no bus.
        self.assertIn(f"{UUID} is reported at 00000000:01:00.0, where the bus has no device", text)

    def test_a_stub_that_claims_a_gpu_is_caught_and_gets_no_job(self):
        give_gpu(self.grid, LIAR)
        laptop.register(LIAR, None, "process")
        name = f"h{LIAR}"
        self.assertEqual([gpu["uuid"] for gpu in self.shown(LIAR)["gpus"]], [UUID], "believed until it is measured")
        laptop.run("provider", "bench", name, "--quick", check=False, timeout=180)
        refused = laptop.run("job", "submit", "-d", "-y", "--gpu", "1", "--provider", name, "--", "true", code=4)
        self.assertIn(f"{name}: mismatch: it differs from its declaration", refused.err)

    def test_the_daemon_looks_again_at_a_host_that_was_started_anew(self):
        job = laptop.submit(plain("keeps-the-daemon", envs={"STEPS": 2000}), "--provider", f"h{CHANGED}")
        job.wait_state("RUNNING")
        give_gpu(self.grid, REBOOTED)
        self.grid.reboot(REBOOTED)
        wait_until("the daemon to look again", 60,
                   lambda: {"rebooted", "inventory_changed"} <= set(self.history(REBOOTED)), laptop.evidence)
        self.assertEqual([gpu["uuid"] for gpu in self.shown(REBOOTED)["gpus"]], [UUID])
        laptop.run("job", "cancel", job.id, "--now")
        job.wait_state("CANCELLED")


if __name__ == "__main__":
    unittest.main(verbosity=2)
