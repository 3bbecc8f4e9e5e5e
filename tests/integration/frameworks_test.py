# SPDX-License-Identifier: Apache-2.0
"""The templates of gangs as a user would start them, with the frameworks of today, on hosts that lose power. Needs their
packages in a folder, which each host gets: GRIDCTL_FRAMEWORKS=VENV/lib/python3.11/site-packages."""
import os
import re
import subprocess
import unittest

import grid

LOST_AFTER = 8  # seconds: frameworks take all of a small machine while they are loaded
DONE = re.compile(r"done at step (\d+): (\S+)$", re.MULTILINE)
ENVIRONMENT = {"PYTHONPATH": grid.SITE, "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu", "DS_ACCELERATOR": "cpu",
               "CUDA_VISIBLE_DEVICES": "", "KERAS_BACKEND": "torch", "TF_CPP_MIN_LOG_LEVEL": "3", "HF_HUB_OFFLINE": "1",
               "RAY_DISABLE_DOCKER_CPU_WARNING": "1", "RAY_memory_monitor_refresh_ms": "0"}
EXTENSIONS = "/home/worker/extensions"
DEEPSPEED = {"TORCH_EXTENSIONS_DIR": EXTENSIONS}
# For each template what tells that its packages are here, how many steps take about half a minute, and what differs.
TEMPLATES = {
    "torchrun": ("torch", 3000, {}),
    "fsdp": ("torch", 150, {}),
    "accelerate": ("accelerate", 800, {}),
    "lightning": ("lightning", 800, {}),
    # Its `latest` is written by each save: rarer ones, so that a host may see that nothing more of one comes.
    "deepspeed": ("deepspeed", 1000, {"checkpoint": {"interval": "8s"}}),
    "jax": ("jax", 20000, {"ranks": 1}),
    "mpi": ("mpi4py", 12000, {}),
    "ray": ("ray", 20000, {"ranks": 1, "cpus": 0.5}),
    "ray-train": ("ray", 3000, {"ranks": 1, "cpus": 0.5}),
}


def setUpModule():
    global laptop
    laptop = grid.up_with_frameworks("torch")


class Frameworks(grid.Case):
    def tearDown(self):
        super().tearDown()
        self.grid.heal_all()

    def submit(self, template, nodes=2, ranks=2, name="", cpus=0.2, **spec):
        package, steps, _ = TEMPLATES[template]
        if not os.path.isdir(os.path.join(grid.FRAMEWORKS, package)):
            self.skipTest(f"GRIDCTL_FRAMEWORKS has no {package}")
        folder = os.path.join(self.grid.folder, f"{template}{name}")
        if not os.path.isdir(folder):
            laptop.run("template", "new", template, folder)
        with open(os.path.join(folder, "job.yaml"), encoding="utf-8") as file:
            launcher = re.search(r"^launcher: (\S+)", file.read(), re.MULTILINE).group(1)
        envs = {**ENVIRONMENT, **(DEEPSPEED if template == "deepspeed" else {}), "STEPS": str(steps)}
        return laptop.submit({"name": f"{template}{name}", "workdir": folder, "run": "python3 train.py", "num_nodes": nodes,
                              "ranks_per_node": ranks, "launcher": launcher, "class": "federated", "envs": envs,
                              "resources": {"cpus": cpus}, "checkpoint": {"interval": "3s"},
                              "recovery": {"lost_after": f"{LOST_AFTER}s"}, **spec})

    def test_a_template_runs_as_written_on_hosts_just_registered(self):
        """The first test by name: nothing has measured the links between these hosts yet."""
        folder = os.path.join(self.grid.folder, "as-written")
        laptop.run("template", "new", "torchrun", folder)
        words = [word for name, value in ENVIRONMENT.items() for word in ("-e", f"{name}={value}")]
        done = laptop.run("job", "submit", "-d", "-y", "--json", *words, os.path.join(folder, "job.yaml"))
        job = grid.Job(laptop, done.json["job_id"])
        job.wait_success(deadline=180)
        self.assertEqual(self.result(job)[0], 200, job.evidence())
        self.assertEqual(len(job.attempts()), 1, job.evidence())

    def result(self, job):
        """The step and the sum of what was learned, as the program says at its end."""
        found = DONE.findall(job.logs())
        self.assertEqual(len(found), 1, job.evidence())
        return int(found[0][0]), float(found[0][1])

    def build_extension(self):
        """DeepSpeed compiles one when it is first used, for minutes on a small machine; once is enough."""
        variables = {**ENVIRONMENT, **DEEPSPEED, "HOME": "/home/worker", "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1",
                     "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
        self.grid.command("enter", 1, "setpriv", "--reuid=worker", "--regid=worker", "--init-groups", "env", "--chdir=/home/worker",
                          *[f"{name}={value}" for name, value in variables.items()], "python3", "-c",
                          "import deepspeed; deepspeed.init_distributed('gloo', auto_mpi_discovery=False)", timeout=500)
        for host in self.grid.hosts:
            if host > 1:
                subprocess.run(["cp", "-a", self.grid.disk(1, EXTENSIONS[1:]), self.grid.disk(host, "home/worker")], check=True)

    def survive(self, template, lost=0, **options):
        options = {**TEMPLATES[template][2], **options}
        if template == "deepspeed" and os.path.isdir(os.path.join(grid.FRAMEWORKS, "deepspeed")):
            self.build_extension()
        job = self.submit(template, name="-lost", **options)
        job.wait_checkpoint(2, deadline=150)
        host = job.attempts()[-1]["members"][lost]["provider"]
        self.grid.kill(int(host[1:]))
        job.wait_attempt(2, deadline=60)
        killed = [one for one in job.events() if one["kind"] == "host_lost"][-1]
        job.wait_success(deadline=300)
        self.assertIsNotNone(job.attempts()[-1]["resumed_from"], job.evidence())
        grid.figure(f"{template}: running again after the loss was known",
                    f"{grid.iso(job.attempts()[1]['started_at']) - grid.iso(killed['at']):.1f} s")
        self.grid.start(int(host[1:]))
        undisturbed = self.submit(template, name="-undisturbed", **options)
        undisturbed.wait_success(deadline=300)
        step, learned = self.result(job)
        same_step, same = self.result(undisturbed)
        self.assertEqual(step, same_step)
        # Lightning goes on in the middle of an epoch with the rest of it in another order.
        delta = (2e-3 if template == "lightning" else 2e-4) * max(1.0, abs(same))
        self.assertAlmostEqual(learned, same, delta=delta, msg=job.evidence())
        self.grid.wait_clean()


class Programs(grid.Case):
    """Programs of one process as people write them, not knowing of gridctl: they run as they are, and go on elsewhere."""

    def tearDown(self):
        super().tearDown()
        self.grid.heal_all()

    def survive(self, program, package):
        if not os.path.isdir(os.path.join(grid.FRAMEWORKS, package)):
            self.skipTest(f"GRIDCTL_FRAMEWORKS has no {package}")
        job = laptop.submit({"name": program.replace("_", "-"), "workdir": os.path.join(grid.SOURCE, "tests", "programs"),
                             "run": f"exec python3 {program}.py", "resources": {"cpus": 0.5}, "envs": ENVIRONMENT,
                             "checkpoint": {"path": "out"}, "recovery": {"lost_after": f"{LOST_AFTER}s"}})
        job.wait_checkpoint(2, deadline=150)
        host = job.host()
        self.grid.kill(host)
        job.wait_success(deadline=300)
        self.assertIsNotNone(job.attempts()[-1]["resumed_from"], job.evidence())
        self.assertTrue(job.logs().rstrip().endswith("done"), job.evidence())
        self.grid.start(host)
        self.grid.wait_clean()


class Gangs(grid.Case):
    """Programs of several ranks that packages bring to try themselves: they run as they are."""

    def run_module(self, module, package, launcher, nodes=3, ranks=2):
        if not os.path.isdir(os.path.join(grid.FRAMEWORKS, package)):
            self.skipTest(f"GRIDCTL_FRAMEWORKS has no {package}")
        job = laptop.submit({"name": package, "run": f"python3 -m {module}", "num_nodes": nodes, "ranks_per_node": ranks,
                             "launcher": launcher, "class": "federated", "envs": ENVIRONMENT, "resources": {"cpus": 0.2}})
        job.wait_success(deadline=240)
        self.assertEqual(len(job.attempts()), 1, job.evidence())
        return job.logs()

    def test_what_accelerate_tests_itself_with(self):
        output = self.run_module("accelerate.test_utils.scripts.test_script", "accelerate", "accelerate")
        same = "Training yielded the same results on one CPU or distributed setup with batch split."
        for rank in (0, 4):  # of the first host, of the last
            self.assertIn(f"[rank {rank}] {same}", output)

    def test_the_ring_of_mpi4py(self):
        output = self.run_module("mpi4py.bench ringtest", "mpi4py", "mpi")
        self.assertRegex(output, r"time for 1 loops? = \S+ seconds \(6 processes, 1 bytes\)")

    def test_rays_cluster_as_published_job_files_start_it(self):
        """Each host's `run` starts Ray in the background; it ends at once on all but the first."""
        if not os.path.isdir(os.path.join(grid.FRAMEWORKS, "ray")):
            self.skipTest("GRIDCTL_FRAMEWORKS has no ray")
        run = """ray() { python3 -m ray.scripts.scripts "$@"; }
head_ip=`echo "$SKYPILOT_NODE_IPS" | head -n1`
if [ "$SKYPILOT_NODE_RANK" == "0" ]; then
  ray start --head --disable-usage-stats --port 6379
  sleep 5
  python3 ray_nodes.py `echo "$SKYPILOT_NODE_IPS" | wc -l`
else
  sleep 5
  ray start --address $head_ip:6379 --disable-usage-stats
fi"""
        job = laptop.submit({"name": "ray-by-hand", "workdir": grid.WORKLOADS, "run": run, "num_nodes": 2,
                             "class": "federated", "envs": ENVIRONMENT, "resources": {"cpus": 0.5}})
        job.wait_success(deadline=240)
        self.assertEqual(len(job.attempts()), 1, job.evidence())
        self.assertRegex(job.logs("--rank", "0"), r"tasks ran on 2 of 2 nodes", job.evidence())


def add_program(program, package):
    setattr(Programs, f"test_{program}", lambda self: self.survive(program, package))


for one, needs in {"plain_torch": "torch", "trainer": "transformers", "accelerate_loop": "accelerate", "lightning_loop": "lightning",
                   "keras_loop": "keras", "sb3_ppo": "stable_baselines3", "xgboost_loop": "xgboost",
                   "orbax_loop": "orbax", "dcp_loop": "torch"}.items():
    add_program(one, needs)


def add(template, lost):
    def test(self):
        self.survive(template, lost)
    setattr(Frameworks, f"test_{template.replace('-', '_')}", test)


for number, one in enumerate(TEMPLATES):
    add(one, number % 2)  # rank 0's host, the other one, in turns


if __name__ == "__main__":
    unittest.main(verbosity=2)
