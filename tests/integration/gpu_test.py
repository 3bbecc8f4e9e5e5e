# SPDX-License-Identifier: Apache-2.0
"""Two researchers, each with a daemon, and one GPU: a stub nvidia-smi gives it, real submits race for it."""
import os
import time
import unittest

import grid

RACES = 1000 if grid.LONG else 10
UUID = "GPU-11111111-2222-3333-4444-555555555555"


def setUpModule():
    global ada, bob
    the_grid = grid.up(1)
    stub = os.path.join(grid.SOURCE, "tests", "support", "nvidia-smi")
    the_grid.enter(1, f"cat > /usr/bin/nvidia-smi <<'STUB'\n{open(stub, encoding='utf-8').read()}\nSTUB\nchmod 755 /usr/bin/nvidia-smi")
    ada, bob = the_grid.laptop("ada"), the_grid.laptop("bob")
    for laptop in (ada, bob):
        laptop.register(1, None, "process")


class Gpus(grid.Case):
    def test_the_inventory_shows_the_stub(self):
        shown = ada.run("provider", "ls", "--json").json
        self.assertEqual([gpu["uuid"] for gpu in shown[0]["gpus"]], [UUID])

    def test_two_laptops_racing_for_one_gpu_never_both_hold_it(self):
        # The program itself notices another beside it.
        spec = {"name": "race", "resources": {"accelerators": "1", "cpus": 0.5}, "recovery": {"lost_after": "5s"},
                "run": "mkdir ~/holder || echo doubled; sleep 0.05; rmdir ~/holder; echo uuid=$CUDA_VISIBLE_DEVICES"}
        paths = [laptop.write_job(spec) for laptop in (ada, bob)]
        boot = self.grid.boot_id(1)
        for race in range(RACES):
            both = [laptop.spawn("job", "submit", "-y", path) for laptop, path in zip((ada, bob), paths)]
            while any(one.poll() is None for one in both):
                leases = [lease for lease in self.grid.leases_on(1, boot) if UUID in lease["gpu"]]
                holders = {(lease["controller"], lease["job"], lease["epoch"]) for lease in leases}
                self.assertLessEqual(len(holders), 1, f"race {race}: two hold the GPU: {leases}")
                time.sleep(0.005)
            for one in both:
                out, err = one.communicate()
                self.assertEqual((one.returncode, out), (0, f"uuid={UUID}\n"), f"race {race}: {err}")
        contested = 0
        for laptop in (ada, bob):
            jobs = laptop.run("job", "ls", "--all", "--json").json
            self.assertEqual([job["state"] for job in jobs], ["SUCCEEDED"] * RACES)
            contested += sum(bool(grid.Job(laptop, job["job_id"]).events("launch_failed")) for job in jobs)
        grid.figure("races for one GPU", f"{RACES}, in {contested} of them the second was refused by the host itself")
        self.grid.wait_clean()


if __name__ == "__main__":
    unittest.main(verbosity=2)
