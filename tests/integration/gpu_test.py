# SPDX-License-Identifier: Apache-2.0
"""Two researchers and one GPU: a stub nvidia-smi gives the GPU, real submits race for it."""
import os
import time
import unittest

import grid
from grid import plain

RACES = 12 if grid.LONG else 4
UUID = "GPU-11111111-2222-3333-4444-555555555555"


def setUpModule():
    global ada, bob
    the_grid = grid.up(1)
    stub = os.path.join(grid.SOURCE, "tests", "support", "nvidia-smi")
    the_grid.enter(1, f"cat > /usr/bin/nvidia-smi <<'STUB'\n{open(stub, encoding='utf-8').read()}\nSTUB\nchmod 755 /usr/bin/nvidia-smi")
    ada, bob = the_grid.laptop("ada"), the_grid.laptop("bob")
    for laptop in (ada, bob):
        laptop.register(1)


class Gpus(grid.Case):
    def test_the_inventory_shows_the_stub(self):
        shown = ada.run("provider", "ls", "--json").json
        self.assertEqual([gpu["uuid"] for gpu in shown[0]["gpus"]], [UUID])

    def programs(self):
        """Pids of plain.sh, each once: a subshell looks like its parent until it becomes something else."""
        rows = [line.split(None, 2) for line in self.grid.enter(1, "ps -eww -o pid=,ppid=,args=").splitlines()]
        parents = {pid: parent for pid, parent, words in rows if "sh plain.sh" in words}
        return [pid for pid, parent in parents.items() if parent not in parents]

    def test_two_laptops_racing_for_one_gpu_never_both_hold_it(self):
        holders = []
        for race in range(RACES):
            specs = [plain(f"race-{name}-{race}", resources={"accelerators": "1"}, envs={"STEPS": 15, "SAVE_EVERY": 100},
                           run="echo uuid=$NVIDIA_VISIBLE_DEVICES; sh plain.sh") for name in ("ada", "bob")]
            jobs = [laptop.submit(spec) for laptop, spec in zip((ada, bob), specs)]
            while True:
                leases = [lease for lease in self.grid.leases_on(1) if UUID in lease["gpu"]]
                attempts = {(lease["controller"], lease["job"], lease["epoch"]) for lease in leases}
                self.assertLessEqual(len(attempts), 1, f"two hold the GPU: {leases}")
                programs = self.programs()
                self.assertLessEqual(len(programs), 1, f"two run on it: {programs}")
                states = [job.state for job in jobs]
                if all(state in grid.FINAL for state in states):
                    break
            self.assertEqual(states, ["SUCCEEDED", "SUCCEEDED"], "\n".join(job.evidence() for job in jobs))
            spans = sorted((grid.iso(a["started_at"]), grid.iso(a["ended_at"])) for job in jobs for a in job.attempts()
                           if a["started_at"])
            holders.append(spans)
            for former, latter in zip(spans, spans[1:]):
                self.assertLessEqual(former[1], latter[0] + 0.5, f"they overlapped: {spans}")
        grid.figure("races for one GPU", len(holders))
        self.grid.wait_clean()


if __name__ == "__main__":
    unittest.main(verbosity=2)
