# SPDX-License-Identifier: Apache-2.0
"""What is known of a host: all of it or the reason, what changed since, and what its owner said otherwise."""
import os
import unittest

import grid
from grid import plain, wait_until

CHANGED, REBOOTED = 1, 2
UUID = "GPU-11111111-2222-3333-4444-555555555555"
# Attributes that must hold a value or have a gap, by their places in JSON.
OF_HOST = """machine_id boot_id hostname kernel arch os product virtualization cpu_model cpus cpu.sockets cpu.cores
cpu.threads cpu.max_mhz cpu.features cpu.numa memory_bytes memory_free_bytes disks nics gpu_direct engines gpus links
nvswitch cuda rocm oneapi software.libc software.container_gpus.toolkit software.container_gpus.devices""".split()
OF_GPU = """name uuid memory_bytes driver pci arch units memory_bus_bits ecc numa_node throttle clocks.core_mhz
clocks.core_max_mhz clocks.memory_mhz clocks.memory_max_mhz power.cap_watts power.default_watts heat.slowdown_c
pcie.generation pcie.generation_max pcie.width pcie.width_max partition.enabled fabric.active""".split()
REASONS = {"not_applicable", "not_supported", "not_reported", "needs_bench", "no_tool", "no_driver", "denied", "timed_out",
           "unreadable"}


def setUpModule():
    global laptop
    the_grid = grid.up(2)
    laptop = the_grid.laptop()
    for host in (CHANGED, REBOOTED):
        laptop.register(host, None, "process", "--gpu", "RTX_4090:2")


def give_gpu(the_grid, host):
    """A stub nvidia-smi: one GPU more."""
    stub = os.path.join(grid.SOURCE, "tests", "support", "nvidia-smi")
    with open(stub, encoding="utf-8") as file:
        text = file.read()
    the_grid.enter(host, f"cat > /usr/bin/nvidia-smi <<'STUB'\n{text}\nSTUB\nchmod 755 /usr/bin/nvidia-smi")


def value_at(tree, path):
    for name in path.split("."):
        tree = tree[name]
    return tree


class Inventory(grid.Case):
    def shown(self, host):
        return laptop.run("provider", "show", f"h{host}", "--json").json

    def assert_explained(self, owner, attributes):
        gaps = {gap["attribute"]: gap["reason"] for gap in owner["gaps"]}
        self.assertLessEqual(set(gaps.values()), REASONS)
        for attribute in attributes:
            value = value_at(owner, attribute)
            filled = value is False or value == 0 or bool(value) or (attribute == "throttle" and value is not None)
            self.assertTrue(filled or attribute in gaps, f"{attribute} is neither filled nor explained: {value}")

    def history(self, host):
        return [event["kind"] for event in self.shown(host)["history"]]

    def test_every_attribute_is_filled_or_says_why_not(self):
        inventory = self.shown(CHANGED)["inventory"]
        self.assertEqual(inventory["version"], 2)
        self.assert_explained(inventory, OF_HOST)
        filled = [name for name in OF_HOST if value_at(inventory, name) not in (None, "", [])]
        grid.figure("attributes of a test host that hold a value", f"{len(filled)} of {len(OF_HOST)}")
        self.assertGreaterEqual(len(filled), 15, filled)

    def test_what_its_owner_said_stands_beside_what_is_found(self):
        shown = self.shown(REBOOTED)
        self.assertEqual(shown["declared_gpus"], "RTX_4090:2")
        self.assertIn("declared RTX_4090:2, found 0", shown["contradictions"][0])
        self.assertIn("contradiction", laptop.run("provider", "show", f"h{REBOOTED}").out)

    def test_a_rescan_says_what_changed_once(self):
        name = f"h{CHANGED}"
        self.assertEqual(laptop.run("provider", "rescan", name).out.strip(), f"{name} is as it was")
        give_gpu(self.grid, CHANGED)
        self.assertIn(f"gpu {UUID}: new:", laptop.run("provider", "rescan", name).out)
        self.assertEqual(laptop.run("provider", "rescan", name, "--json").json["changes"], [])
        self.assertEqual(self.history(CHANGED).count("inventory_changed"), 1)
        shown = self.shown(CHANGED)
        self.assertEqual([gpu["uuid"] for gpu in shown["gpus"]], [UUID])
        self.assert_explained(shown["inventory"], OF_HOST)
        self.assert_explained(shown["inventory"]["gpus"][0], OF_GPU)
        self.assertIn("Unknown, and why", laptop.run("provider", "show", name).out)

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
