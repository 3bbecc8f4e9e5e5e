#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A lent host behind a relay beside a host that is reached directly, over the same link: how long the same files take.

    sudo tests/integration/isolated python3 tests/bench/relay.py
"""
import os
import statistics
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "integration"))
import grid  # noqa: E402
import lender  # noqa: E402

DIRECT = 4
LINKS = (("100mbit", "10ms", 32 << 20), ("20mbit", "40ms", 8 << 20))
TURNS = 3


def setUpModule():
    lender.set_up(4)


class Rates(lender.LenderCase):
    def pull(self, name, size):
        """Seconds."""
        self.laptop.run("provider", "drain", *({"ada", "bob"} - {name}))
        self.laptop.run("provider", "undrain", name)
        job = self.laptop.submit({"name": name, "image": lender.IMAGE, "resources": {"cpus": 0.5},
                                  "run": f"head -c {size} /dev/urandom > data"})
        job.wait_success()
        self.assertEqual(job.attempts()[-1]["provider"], name)
        began = time.monotonic()
        self.laptop.run("job", "pull", job.id, os.path.join(self.grid.folder, job.id), timeout=300)
        return time.monotonic() - began

    def test_pulls(self):
        self.joined("bob")
        self.laptop.register(DIRECT, "ada", "podman")
        for rate, delay, size in LINKS:
            for host in self.grid.hosts:
                self.grid.command("shape", host, rate, delay)
            seconds = {(name, times): statistics.median(self.pull(name, times * size) for _ in range(TURNS))
                       for name in ("bob", "ada") for times in (1, 2)}
            # The second half of the longer one: without the logins.
            rates = {name: size * 8 / (seconds[name, 2] - seconds[name, 1]) / 1e6 for name in ("bob", "ada")}
            first = {name: 2 * seconds[name, 1] - seconds[name, 2] for name in ("bob", "ada")}
            print(f"{rate}, {delay}: by the relay {rates['bob']:.1f} Mbit/s, directly {rates['ada']:.1f} Mbit/s, ratio "
                  f"{rates['bob'] / rates['ada']:.2f}; besides {first['bob']:.1f} s and {first['ada']:.1f} s to begin and end",
                  flush=True)
            for host in self.grid.hosts:
                self.grid.command("unshape", host)


if __name__ == "__main__":
    unittest.main(verbosity=2)
