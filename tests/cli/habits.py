#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What people type by habit or by mistake, and the hint they get.

    habits.py GRIDCTL [--show]

Each hint that is a whole line is tried, too: gridctl must know its command and options. --show prints the table.
"""
import os
import shlex
import subprocess
import sys
import tempfile
import unittest

GRIDCTL = os.path.abspath(sys.argv[1])

FILES = {
    "train.yaml": "name: train\nrun: echo hi\n",
    "key.yaml": "name: train\nrnu: echo hi\n",
    "keys.yaml": "name: train\nrun: echo hi\nresources: {acelerators: A100:1, cpu: 4, memroy: 16GB}\n",
    "values.yaml": "name: train\nrun: echo hi\nresources: {accelerators: A100x2, memory: 16 gigs, cpus: many}\n",
    "units.yaml": "name: train\nrun: echo hi\ncheckpoint: {path: out, interval: 5 minute}\nmax_duration: 2 hrs\n",
    "germany.yaml": "name: train\nrun: echo hi\nconstraints: {region: {in: [Germany]}}\n",
    "kube.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: train}\n",
    "run.sh": "#!/bin/bash\n#SBATCH --gres=gpu:2\nsrun python train.py\n",
    "plain.sh": "#!/bin/bash\npython train.py\n",
    "sweep.sh": "#!/bin/bash\n#SBATCH --array=1-3\nsed -n ${SLURM_ARRAY_TASK_ID}p $1\n",
}

# What is typed after "gridctl", and what its answer must have. A text after "> " is the whole hint.
TABLE = [
    # Slurm
    ("sbatch run.sh", "> gridctl job submit run.sh"),
    ("sbatch --gres=gpu:2 run.sh", "> gridctl job submit --gpu 2 run.sh"),
    ("sbatch run.sh 3 4", "> gridctl job submit run.sh -- 3 4"),
    ("srun run.sh", "> gridctl job submit -- bash run.sh"),
    ("sbatch --array=0-9 run.sh", "> gridctl job submit --array 0-9 run.sh"),
    ("srun python train.py", "> gridctl job submit -- python train.py"),
    ("srun -n 1 --gres=gpu:a100:2 python train.py", "> gridctl job submit --gpu a100:2 -- python train.py"),
    ("salloc --gres=gpu:1", "> gridctl job submit --gpu 1 -- COMMAND"),
    ("squeue -u me", "> gridctl job ls"),
    ("scancel 42", "> gridctl job cancel 42"),
    ("sinfo", "> gridctl provider ls"),
    ("sacct", "> gridctl job ls --all"),
    # SkyPilot, dstack, Vast.ai
    ("sky launch -c mine train.yaml", "> gridctl job submit train.yaml"),
    ("sky exec mine train.yaml", "> gridctl job submit train.yaml"),
    ("sky down train", "> gridctl job cancel train"),
    ("sky status", "> gridctl job ls"),
    ("sky logs train", "> gridctl job logs train"),
    ("dstack apply -f train.yaml", "> gridctl job submit train.yaml"),
    ("apply -f train.yaml", "> gridctl job submit train.yaml"),
    ("vastai search offers", "> gridctl provider ls"),
    ("vastai create instance 1234", "> gridctl job submit FILE.yaml"),
    ("vastai show instances", "> gridctl job ls"),
    ("vastai destroy instance 7", "> gridctl job cancel 7"),
    # kubectl and docker
    ("kubectl get pods", "> gridctl job ls"),
    ("kubectl get nodes", "> gridctl provider ls"),
    ("get jobs", "> gridctl job ls"),
    ("describe job train", "> gridctl job show train"),
    ("delete job train", "> gridctl job cancel train"),
    ("docker ps", "> gridctl job ls"),
    ("docker run --rm -it --gpus all pytorch/pytorch python train.py",
     "> gridctl job submit --gpu 1 --image pytorch/pytorch -- python train.py"),
    ("run --gpus all pytorch/pytorch python train.py",
     "> gridctl job submit --gpu 1 --image pytorch/pytorch -- python train.py"),
    ("run train.py", "> gridctl job submit -- python3 train.py"),
    ("exec -it train bash", "> gridctl job shell train"),
    ("kubectl exec train -- python3 -V", "> gridctl job exec train -- python3 -V"),
    ("job exec train nvidia-smi", "> gridctl job exec train -- nvidia-smi"),
    ("stop train", "> gridctl job cancel train"),
    ("logs -f train", "> gridctl job logs -f train"),
    ("cp train:/out here", "> gridctl job pull train here"),
    ("ssh ada", "> gridctl provider show ada"),
    # Slips in commands and options
    ("jbo ls", "did you mean 'job'?"),
    ("job sumbit train.yaml", "did you mean 'job submit'?"),
    ("job sl", "did you mean 'job ls'?"),
    ("provider regsiter a me@h", "did you mean 'provider register'?"),
    ("job logs train --folow", "did you mean --follow?"),
    ("job ls --stauts RUNNING", "did you mean --status?"),
    ("job ls --status RUNING", "did you mean RUNNING?"),
    ("--verison", "> gridctl --version"),
    ("-v", "> gridctl --version"),
    ("help jobs", "> gridctl help job"),
    # In job files
    ("job submit trian.yaml", "did you mean 'train.yaml'?"),
    ("job submit plain.sh", "> gridctl job submit -- bash plain.sh"),
    ("job submit sweep.sh items.txt 3", "> gridctl job submit sweep.sh -- items.txt 3"),
    ("job submit kube.yaml", "is a manifest of Kubernetes, not a job file"),
    ("job submit key.yaml", "key 'rnu': not a known key; did you mean 'run'?"),
    ("job submit keys.yaml", "did you mean 'accelerators'?", "did you mean 'cpus'?", "did you mean 'memory'?"),
    ("job submit values.yaml", "did you mean 'A100:2'?", "a number of GiB such as 16 or 16+", "got 'many'"),
    ("job submit units.yaml", "such as 15m, got '5 minute'", "1h30m, got '2 hrs'"),
    ("job submit python3 train.py", "put the command to run after --"),
    # Values, units, names
    ("job submit --gpu A100x2 -- true", "did you mean 'A100:2'?"),
    ("job submit --memory 16GBs -- true", "a size such as 512MB, got '16GBs'"),
    ("job submit --gres=gpu:2 -- true", "here: --gpu 2 for gres=gpu:2"),
    ("job submit --time 1:00:00 train.yaml", "here: write max_duration: TIME in the job file"),
    ("job cancel --grace 5mins train", "write it as 90s, 15m or 2h"),
    ("provider ls gpu_nam=A100", "did you mean gpu_name?"),
    ("provider show hots1", "did you mean 'host1'?"),
    ("job submit --gpu A1000 -- true", "no GPU is called 'A1000'; did you mean 'A100'?"),
    ("job submit germany.yaml", "regions are codes such as DE; did you mean 'DE' for 'Germany'?"),
    ("job show trian", "did you mean 'train'?"),
    ("plan train --model lama-3-8b --gpu H100:8", "did you mean 'llama-3-8b'?"),
    ("plan train --model llama-3-8b --gpu H1000:8", "did you mean 'H100'?"),
    ("plan train --model llama-3-8b --gpu H100:8 --layout dp=8,zer=3", "did you mean 'zero'?"),
    ("store add nas /mnt/nas", "gridctl store add NAME dir:/path"),
]


class Habits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for name, text in FILES.items():
            with open(os.path.join(cls.folder.name, name), "w", encoding="utf-8") as file:
                file.write(text)
        state = os.path.join(cls.folder.name, "state")
        subprocess.run([sys.argv[2], state, "0", "2"], check=True)
        import sqlite3
        db = sqlite3.connect(os.path.join(state, "state.db"))
        with db:
            db.execute("INSERT INTO jobs(id, name, spec, machine, state, reason, provider, resources, epoch, head, unfinished, recoveries,"
                       " submitted_ms) VALUES('abcdefgh1234','train','{}','{}','SUCCEEDED','','','',1,1,0,0,1)")
        db.close()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def say(self, words):
        environment = {**os.environ, "GRIDCTL_STATE": os.path.join(self.folder.name, "state")}
        return subprocess.run([GRIDCTL, *words], cwd=self.folder.name, env=environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=60, check=False)

    def test_the_hint_is_what_was_meant(self):
        for line, *wanted in TABLE:
            with self.subTest(line):
                done = self.say(shlex.split(line))
                self.assertNotEqual(done.returncode, 0)
                hints = [one.removeprefix("hint: ") for one in done.stderr.splitlines() if one.startswith("hint: ")]
                for want in wanted:
                    if want.startswith("> "):
                        self.assertEqual(hints, [want[2:]], done.stderr)
                    else:
                        self.assertIn(want, done.stderr)
                if "--show" in sys.argv:
                    print(f"gridctl {line}\n    {hints[0] if hints else done.stderr.splitlines()[0]}")

    def test_a_query_that_nothing_can_match_says_what_was_meant(self):
        for query, want in (("region=Germany", "did you mean 'DE' for 'germany'?"),
                            ("region in [finnland]", "did you mean 'FI' for 'finnland'?"),
                            ("gpu_name=A1000", "did you mean 'A100'?")):
            done = self.say(["provider", "ls", query])
            self.assertEqual((done.returncode, done.stdout), (0, ""))
            self.assertIn(want, done.stderr)
        for query in ("region=KP", "gpu_name=A100", "gpu_name=H100 region=somewhere"):
            self.assertNotIn("did you mean", self.say(["provider", "ls", query]).stderr)

    def test_every_line_that_is_hinted_at_is_understood(self):
        for line, *wanted in TABLE:
            for want in wanted:
                words = shlex.split(want)[2:] if want.startswith("> gridctl ") else []
                if not words or "FILE.yaml" in words or words[0] in ("help", "--version"):
                    continue
                with self.subTest(want):
                    at = words.index("--") if "--" in words else len(words)
                    done = self.say([*words[:at], "--help"])
                    self.assertEqual(done.returncode, 0, done.stderr)
                    for option in words[:at]:
                        if option.startswith("--") or (option.startswith("-") and len(option) == 2):
                            self.assertIn(option, done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
