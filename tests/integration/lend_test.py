# SPDX-License-Identifier: Apache-2.0
"""A machine that nobody can call is lent: its owner types one line, and it dials a server that both sides reach."""
import base64
import glob
import json
import os
import re
import shlex
import shutil
import time
import unittest

import grid
import lender
from grid import bound, plain, wait_until
from lender import IMAGE, IMAGES, LENT, PROGRAM, RELAY


def setUpModule():
    lender.set_up()


class Lend(lender.LenderCase):
    def test_two_commands_and_a_job_runs_behind_nat(self):
        began = time.monotonic()
        self.joined()
        grid.figure("invite, join, and answering", f"{time.monotonic() - began:.1f} s")
        job = self.laptop.submit(plain("lent", image=IMAGE, envs={"STEPS": 30}))
        job.wait_success()
        self.assert_steps_once(job, 30, attempts=1)
        self.assertEqual(job.attempts()[-1]["provider"], "bob")
        self.assertIn("no job runs", self.owners("lend status"))

    def test_processes_outside_of_containers_are_not_for_guests(self):
        self.joined()
        refused = self.laptop.run("job", "submit", self.laptop.write_job(plain("bare")), "--wait", "--timeout", "20s", check=False)
        self.assertIn(refused.code, (4, 124), str(refused))

    def test_cuts_heal_and_the_job_is_untouched(self):
        """CUTS="1 2 60 ..." names others, in seconds."""
        self.joined()
        job = self.laptop.submit(plain("cuts", image=IMAGE, envs={"STEPS": 100000, "PACE": 0.1},
                                       recovery={"lost_after": "3m"}))
        job.wait_checkpoint(1)
        for seconds in map(float, os.environ.get("CUTS", "1 4 15").split()):
            self.grid.partition(LENT)
            time.sleep(seconds)
            self.grid.heal(LENT)
            healed = time.monotonic()
            saved = job.checkpoints()[-1]["checkpoint_id"]
            wait_until("a checkpoint after the heal", 20, lambda: job.checkpoints()[-1]["checkpoint_id"] != saved, job.evidence)
            grid.figure(f"back after a cut of {seconds:.0f} s", f"{time.monotonic() - healed:.1f} s")
        self.grid.readdress(LENT, 200)
        self.addCleanup(self.grid.readdress, LENT, self.grid.facts[LENT]["address"].rpartition(".")[2])
        moved = time.monotonic()
        saved = job.checkpoints()[-1]["checkpoint_id"]
        wait_until("a checkpoint from the new address", 60, lambda: job.checkpoints()[-1]["checkpoint_id"] != saved, job.evidence)
        grid.figure("back at another address", f"{time.monotonic() - moved:.1f} s")
        self.assertEqual(len(job.attempts()), 1)
        self.laptop.run("job", "cancel", job.id)

    def test_a_job_reaches_the_internet_and_not_the_home_of_its_host(self):
        """An address stands for all of its network: the kernel is asked for the way to it."""
        self.joined()
        home = self.grid.facts[LENT]["address"]
        def scan(name):
            script = ("for to in 10.77.0.1 10.77.0.11 " + home + " 192.168.1.1 172.16.0.1 169.254.169.254 100.64.0.1 10.0.2.2; do "
                      "echo try $to: $(nc -w 3 $to 22 < /dev/null 2>&1); done; ip route 2>&1")
            job = self.laptop.submit({"name": name, "image": IMAGE, "run": script, "resources": {"cpus": 0.5}})
            job.wait_success()
            return job.logs()
        told = scan("scan")
        tried = [line for line in told.splitlines() if line.startswith("try ")]
        self.assertEqual(len(tried), 8, told)
        for line in tried:
            self.assertNotIn("SSH-2.0", line, told)
            if "10.0.2.2" not in line:
                self.assertRegex(line, "(?i)permission denied", told)
        self.owners("lend limits --egress open")
        self.assertIn("SSH-2.0", scan("open"))
        self.owners("lend limits --egress none")
        self.assertNotIn("SSH-2.0", scan("none"))

    def test_the_owner_has_his_machine_back_without_network(self):
        self.joined()
        self.laptop.register(3, engine="process", check=False)
        job = self.laptop.submit(plain("back", image=IMAGE, envs={"STEPS": 100000}))
        job.wait_checkpoint(1)
        self.assertIn("running", self.owners("lend status"))
        self.grid.partition(LENT)
        began = time.monotonic()
        told = self.owners("lend pause --grace 2s")
        grid.figure("lend pause, without network", f"{time.monotonic() - began:.1f} s")
        self.assertIn("1 job ended", told)
        self.assertEqual(self.grid.as_worker(LENT, "podman ps -q").split(), [])
        self.grid.heal(LENT)
        wait_until("the job to wait", 30, lambda: job.state != "RUNNING", job.evidence)
        self.owners("lend resume")
        self.wait_again(job)
        job.wait_output("step")
        told = self.owners("lend leave --grace 1s")
        self.assertIn("is removed", told)
        self.assertFalse(os.path.exists(self.grid.disk(LENT, "home/worker/.gridctl")))
        self.assertEqual(self.grid.pids(LENT, "gridctl"), [])
        self.laptop.run("job", "cancel", job.id)

    def test_after_a_reboot_it_is_connected_again(self):
        """Nothing starts programs with these hosts: the owner does."""
        self.joined()
        job = self.laptop.submit(plain("reboot", image=IMAGE, envs={"STEPS": 100000}))
        job.wait_checkpoint(1)
        self.grid.reboot(LENT)
        self.assertIn("begin here again", self.owners("lend resume"))
        began = time.monotonic()
        self.wait_again(job)
        job.wait_output("step")
        grid.figure("back after a reboot", f"{time.monotonic() - began:.1f} s")
        self.laptop.run("job", "cancel", job.id)

    # Stand-ins that keep what they are given: no init system runs on these hosts.
    CRONTAB = """case $1 in -l) cat /home/worker/crontab ;; -r) rm /home/worker/crontab ;; -) cat > /home/worker/crontab ;; esac"""
    SYSTEMCTL = "echo \"$0 $*\" >> /home/worker/asked"

    def stand_in(self, name, script):
        self.grid.enter(LENT, f"cat > /usr/bin/{name} <<'EOF'\n#!/bin/sh\n{script}\nEOF\nchmod 755 /usr/bin/{name}")
        self.addCleanup(self.grid.enter, LENT, f"rm -f /usr/bin/{name}")

    def comes_back(self, start):
        """The machine boots, `start` is run as the init system runs it, and nobody types anything."""
        job = self.laptop.submit(plain("boot", image=IMAGE, envs={"STEPS": 100000}))
        job.wait_checkpoint(1)
        self.grid.reboot(LENT)
        self.assertEqual(self.grid.pids(LENT, "gridctl lend"), [])
        began = time.monotonic()
        self.grid.as_worker(LENT, f"(setsid {start} < /dev/null > /dev/null 2>&1 &)")
        wait_until("the host to answer", 10, lambda: self.laptop.run("provider", "check", "bob", check=False).code == 0, job.evidence)
        took = time.monotonic() - began
        grid.figure("answers after the boot", f"{took:.1f} s")
        self.assertLess(took, bound(10))
        self.wait_again(job)
        job.wait_output("step")
        self.assertTrue(job.attempts()[-1]["resumed_from"], job.evidence())
        self.laptop.run("job", "cancel", job.id)

    def test_cron_starts_it_after_a_boot(self):
        self.stand_in("crontab", self.CRONTAB)
        self.grid.as_worker(LENT, "echo '0 3 * * * backup' > crontab")
        self.joined()
        lines = self.grid.as_worker(LENT, "cat crontab").splitlines()
        self.assertEqual(lines[0], "0 3 * * * backup")
        [line] = [line.removeprefix("@reboot ") for line in lines if line.startswith("@reboot ")]
        self.comes_back("env -i HOME=/home/worker LOGNAME=worker SHELL=/bin/sh PATH=/usr/bin:/bin /bin/sh -c " + shlex.quote(line.replace("\\%", "%")))
        self.owners("lend leave --grace 1s")
        self.assertEqual(self.grid.as_worker(LENT, "cat crontab").splitlines(), ["0 3 * * * backup"])

    def test_systemd_starts_it_after_a_boot(self):
        for name in ("systemctl", "loginctl"):
            self.stand_in(name, self.SYSTEMCTL)
        self.grid.enter(LENT, "mkdir -p /run/systemd/system")
        self.addCleanup(self.grid.enter, LENT, "rm -rf /run/systemd/system")
        self.assertIn("with the machine (systemd)", self.joined())
        asked = self.grid.as_worker(LENT, "cat asked")
        for words in ("systemctl --user daemon-reload", "systemctl --user enable gridctl-lend.service", "loginctl enable-linger"):
            self.assertIn(words, asked)
        unit = self.grid.as_worker(LENT, "cat .config/systemd/user/gridctl-lend.service")
        settings = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line)
        self.assertEqual((settings["WantedBy"], settings["KillMode"]), ("default.target", "process"), unit)
        self.comes_back("env -i HOME=/home/worker USER=worker LOGNAME=worker XDG_RUNTIME_DIR=/run/user/1500 "
                        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin " + settings["ExecStart"])
        self.grid.enter(LENT, "mkdir -p /run/systemd/system")
        self.owners("lend leave --grace 1s")
        self.assertEqual(self.grid.as_worker(LENT, "ls .config/systemd/user").split(), [])

    def test_two_researchers_share_it_and_one_word_of_the_owner_ends_both(self):
        other = self.grid.laptop("other")
        self.addCleanup(other.close)
        self.joined()
        self.owners(f"provider join {self.token('mine', laptop=other)} --yes {IMAGES}")
        self.wait_provider("mine", laptop=other)
        self.assertEqual(len(json.loads(self.owners("lend status --json"))), 2)
        jobs = [laptop.submit(plain("shared", image=IMAGE, envs={"STEPS": 100000})) for laptop in (self.laptop, other)]
        for job in jobs:
            job.wait_checkpoint(1)
        self.assertIn("2 jobs ended", self.owners("lend pause --grace 2s"))
        self.assertEqual(self.grid.as_worker(LENT, "podman ps -q").split(), [])
        for laptop, job in zip((self.laptop, other), jobs):
            laptop.run("job", "cancel", job.id)
        self.assertIn("not lent to 'nobody'", self.owners("lend leave nobody", code=3))
        self.assertIn("still lent to 1", self.owners("lend leave mine"))
        self.assertEqual(self.grid.as_worker(LENT, "ls .gridctl/lend/withdrawn").split(), [])
        self.assertEqual([one["name"] for one in json.loads(self.owners("lend status --json"))], ["bob"])

    def stub_gpu(self):
        with open(os.path.join(grid.SOURCE, "tests", "support", "nvidia-smi"), encoding="utf-8") as file:
            stub = file.read()
        self.grid.enter(LENT, f"cat > /usr/bin/nvidia-smi <<'STUB'\n{stub}\nSTUB\nchmod 755 /usr/bin/nvidia-smi; mkdir -p /etc/cdi /etc/stub-gpu; "
                              ": > /dev/nvidia-uvm; : > /etc/stub-gpu/processes; chmod 666 /etc/stub-gpu/processes")
        self.grid.enter(LENT, "cat > /etc/cdi/nvidia.json <<'CDI'\n" + json.dumps({
            "cdiVersion": "0.3.0", "kind": "nvidia.com/gpu",
            "devices": [{"name": "GPU-11111111-2222-3333-4444-555555555555", "containerEdits": {"env": ["GPU=1"]}}],
            "containerEdits": {}}) + "\nCDI")
        self.addCleanup(self.grid.enter, LENT, "rm -rf /usr/bin/nvidia-smi /etc/cdi /etc/stub-gpu /dev/nvidia-uvm")

    def owners_program(self):
        """Its process, which opens the GPU as CUDA does and is listed by the driver, and how long the job's lived on, in ms."""
        told = self.grid.as_worker(LENT, """began=$(date +%s%N)
            sleep 300 < /dev/nvidia-uvm > /dev/null 2>&1 &
            echo $! blender 900 > /etc/stub-gpu/processes
            for look in $(seq 3000); do pgrep -x -f 'sh plain.sh' > /dev/null || break; sleep 0.01; done
            echo $! $((($(date +%s%N) - began) / 1000000))""")
        return [int(word) for word in told.split()]

    def containers(self):
        return self.grid.as_worker(LENT, "podman ps -q").split()

    def test_the_owners_program_has_the_gpu(self):
        self.stub_gpu()
        self.joined()
        job = self.laptop.submit(plain("gpu", image=IMAGE, envs={"STEPS": 100000}, resources={"accelerators": 1}))
        job.wait_checkpoint(1)
        times, all_took = int(os.environ.get("RECLAIMS", "3")), []
        for turn in range(1, times + 1):
            owners, took = self.owners_program()
            all_took.append(took)
            wait_until("the container to end", 30, lambda: not self.containers(), job.evidence)
            self.assertIn("a program of yours has the GPU", self.owners("lend status"))
            self.assertIn("blender", self.owners("lend log"))
            wait_until("the log to say so", 10, lambda: self.owners("lend log").count("no job uses the GPU any more") == turn)
            self.grid.enter(LENT, f"kill {owners}; : > /etc/stub-gpu/processes", check=False)
            wait_until("the owner's program to be forgotten", 20, lambda: self.owners("lend log").count("free again") == turn)
            wait_until("the job to run again", 60, self.containers, job.evidence)
            job.wait_checkpoint(len(job.events("checkpoint")) + 1)
        told = re.search(r"your GPU was given back (\d+) times?: (.*)", self.owners("lend status"))
        self.assertEqual(int(told[1]), times)
        all_took.sort()
        grid.figure("from the owner's program to a free GPU", f"{all_took[times // 2]} ms in the middle, {all_took[-1]} ms at worst; "
                    f"to the end of the container {told[2]}")
        self.laptop.run("job", "cancel", job.id)

    GROWS = """if [ -n "$GRIDCTL_RESUME_FROM" ]; then echo resumed from $GRIDCTL_RESUME_FROM; exit 0; fi
        trap 'echo told to save; exit 0' TERM
        echo 1 > $GRIDCTL_CKPT_DIR/state; sleep 4
        WRITE
        echo it was never ended"""
    WRITE = "for n in $(seq 100); do dd if=/dev/zero of=big.$n bs=1M count=120 2> /dev/null; sleep 0.1; done"
    WRITE_NAMELESS = "exec 3> hole; rm hole; for n in $(seq 100); do dd if=/dev/zero bs=1M count=120 >&3 2> /dev/null; sleep 0.1; done"

    def grows(self, name, write):
        return self.laptop.submit({"name": name, "image": IMAGE, "run": self.GROWS.replace("WRITE", write),
                                   "resources": {"cpus": 0.5}, "checkpoint": {"interval": "1s"}})

    def test_jobs_take_no_more_disk_than_the_owner_lends(self):
        self.joined("bob", "--disk 2GiB")
        self.assertIn("disk 2.0 GiB", self.owners("lend limits"))
        refused = self.laptop.run("job", "submit", self.laptop.write_job(
            {"name": "wants", "image": IMAGE, "run": "true", "resources": {"disk": 4}}), check=False)
        self.assertEqual(refused.code, 4, str(refused))
        self.assertIn("of disk free, wanted", refused.out + refused.err)
        for number, (name, write) in enumerate((("grows", self.WRITE), ("nameless", self.WRITE_NAMELESS)), 1):
            job = self.grows(name, write)
            job.wait_attempt(1)
            self.laptop.register(RELAY, "other", "podman")
            job.wait_success()
            first, last = job.attempts()[0], job.attempts()[-1]
            self.assertEqual((first["provider"], first["reason"]), ("bob", "disk_full"), job.evidence())
            self.assertIn("told to save", job.logs("--attempt", first["number"]), job.evidence())
            self.assertNotIn("never ended", job.logs())
            self.assertEqual(last["provider"], "other")
            self.assertIn("resumed from", job.logs())
            self.assertTrue(any("the owner of this machine lends 2.0 GiB of disk" in one["text"] for one in job.events("attempt_ended")), job.evidence())
            log = self.owners("lend log")
            self.assertEqual(log.count("ends: the owner of this machine lends"), number, log)
            self.laptop.run("provider", "rm", "other", "--force")
        self.grid.as_worker(LENT, "fallocate -l 2200M .gridctl/cache/ballast")
        job = self.laptop.submit({"name": "full", "image": IMAGE, "run": "echo it began", "resources": {"cpus": 0.5}})
        wait_until("the refusal", 30, lambda: "of disk; jobs take" in self.owners("lend log"), job.evidence)
        self.grid.as_worker(LENT, "rm .gridctl/cache/ballast")
        job.wait_success(deadline=120)

    def test_a_job_that_has_run_for_long_goes_elsewhere(self):
        self.joined("bob", "--max-job 12s")
        job = self.laptop.submit(plain("long", image=IMAGE, envs={"STEPS": 100000}))
        job.wait_checkpoint(1)
        self.laptop.register(RELAY, "other", "podman")
        job.wait_attempt(2)
        first, second = job.attempts()[:2]
        self.assertEqual((first["provider"], first["reason"]), ("bob", "limit"), job.evidence())
        self.assertEqual(second["provider"], "other")
        self.assertTrue(second["resumed_from"], job.evidence())
        self.assertTrue(any("the owner of this machine lets a job run for 12s" in one["text"] for one in job.events("attempt_ended")), job.evidence())
        self.assertIn("lets a job run for 12s", self.owners("lend log"))
        self.laptop.run("job", "cancel", job.id)

    def test_images_come_from_registries_that_the_owner_allows(self):
        self.joined("bob", "--registries public")
        def ended(name, image):
            job = self.laptop.submit({"name": name, "image": image, "run": "echo it began", "resources": {"cpus": 0.5}})
            job.wait_state("FAILED", "SUCCEEDED", deadline=120)
            return job
        job = self.laptop.submit({"name": "owners", "image": IMAGE, "run": "echo it began", "resources": {"cpus": 0.5}})
        wait_until("the refusal", 60, lambda: "only this machine's owner has" in job.evidence(), job.evidence)  # another host may take it
        self.laptop.run("job", "cancel", job.id)
        self.assertIn("is one that only this machine's owner has; the owner of this machine allows images from docker.io, ghcr.io", job.evidence())
        self.assertIn("podman save -o image.tar", job.evidence())
        self.grid.as_worker(LENT, f"podman tag {IMAGE} docker.io/library/secret:1")
        self.addCleanup(self.grid.as_worker, LENT, "podman rmi docker.io/library/secret:1 || true")
        job = ended("named", "secret:1")
        self.assertEqual(job.state, "FAILED", job.evidence())
        self.assertIn("this machine's owner has an image docker.io/library/secret:1; guests get it only from its registry", job.evidence())
        hosts = self.grid.disk(LENT, "etc/hosts")
        with open(hosts, "a", encoding="utf-8") as file:
            file.write(f"{self.relay['address']} quay.io registry.home.example\n")
        self.addCleanup(self.grid.enter, LENT, "sed -i /quay.io/d /etc/hosts")
        job = ended("near", "quay.io/a/b:1")
        self.assertEqual(job.state, "FAILED", job.evidence())
        self.assertIn(f"quay.io is at {self.relay['address']}, an address of this machine's own network", job.evidence())
        for bad, word in (("localhost:5000", "is not a registry"), ("registry.home.example", "an address of your own network"), ("192.168.1.7:5000", "own network")):
            self.assertIn(word, self.owners(f"lend limits --registries {bad}", code=2))
        archive = os.path.join(self.laptop.folder, "image.tar")
        self.grid.as_worker(LENT, f"podman save -q -o /tmp/image.tar {IMAGE}")
        shutil.copy(self.grid.disk(LENT, "tmp/image.tar"), archive)
        job = ended("sent", "./image.tar")
        self.assertEqual(job.state, "SUCCEEDED", job.evidence())
        self.owners("lend limits --registries localhost")
        self.assertEqual(ended("allowed", IMAGE).state, "SUCCEEDED")

    def test_a_token_that_was_used_opens_nothing(self):
        self.joined()
        [kept] = glob.glob(os.path.join(self.laptop.state, "lent", "*.json"))
        def read():
            with open(kept, encoding="utf-8") as file:
                return json.load(file)
        wait_until("a key in the token's place", 30, lambda: read().get("session"), self.laptop.evidence)
        wait_until("its first use", 30, lambda: self.grid.as_worker(LENT, "ls .gridctl/lend/*/session_proven || true").strip())
        self.laptop.run("daemon", "stop")
        self.laptop.run("provider", "check", "bob")
        agreed = read()
        with open(kept, "w", encoding="utf-8") as file:  # what the token says, and whoever has seen it
            json.dump({key: value for key, value in agreed.items() if key != "session"}, file)
        refused = self.laptop.run("provider", "check", "bob", "--timeout", "20s", check=False)
        self.assertNotEqual(refused.code, 0, str(refused))
        self.assertIn("does not have the agreed key", refused.out + refused.err)
        with open(kept, "w", encoding="utf-8") as file:
            json.dump(agreed, file)
        self.laptop.run("provider", "check", "bob")

    def test_limits_that_do_not_hold_are_not_offered(self):
        self.joined()
        enforced = "cgroupVersion: v2" in self.grid.as_worker(LENT, "podman info 2> /dev/null")
        told = self.owners("lend limits")
        if enforced:
            return
        self.assertIn("do not hold on this machine", told)
        for words in ("--memory 1GB", "--cpus 1"):
            self.assertIn("do not hold on this machine", self.owners(f"lend limits {words}", code=2))

    def test_two_researchers_race_for_one_gpu(self):
        """RACES=300 is the long form."""
        self.stub_gpu()
        other = self.grid.laptop("rival")
        self.addCleanup(other.close)
        self.joined()
        self.owners(f"provider join {self.token('mine', laptop=other)} --yes {IMAGES}")
        self.wait_provider("mine", laptop=other)
        laptops = (self.laptop, other)
        files = [laptop.write_job({"name": "race", "image": IMAGE, "resources": {"accelerators": 1, "cpus": 0.5},
                                   "run": "echo span $(cut -d' ' -f1 /proc/uptime); sleep 0.5; echo span $(cut -d' ' -f1 /proc/uptime)"}) for laptop in laptops]
        told, waits = 0, []
        for race in range(int(os.environ.get("RACES", "4"))):
            asked = [laptop.spawn("job", "submit", "-d", "-y", "--json", file) for laptop, file in zip(laptops, files)]
            jobs = [grid.Job(laptop, json.loads(one.communicate(timeout=60)[0])["job_id"]) for laptop, one in zip(laptops, asked)]
            for job in jobs:
                job.wait_success(deadline=120)
            spans = sorted(([float(line.split()[1]) for line in job.logs().splitlines() if line.startswith("span ")], job) for job in jobs)
            for span, job in spans:
                self.assertEqual(len(span), 2, job.evidence())
            (first, _), (second, loser) = spans
            self.assertLessEqual(first[1], second[0], f"race {race}: both held the GPU\n{jobs[0].evidence()}\n{jobs[1].evidence()}")
            waits.append(second[0] - first[1])
            reasons = loser.laptop.run("job", "events", loser.id).out
            # Refused with the time at which it is free, or told by a heartbeat before it asked.
            told += bool(re.search(r"GPU|gpu", reasons) and re.search(r"free|until|in use|leased", reasons) or ": 1 busy" in reasons)
        waits.sort()
        grid.figure("races for one GPU", f"{len(waits)}; the loser began {waits[len(waits) // 2]:.1f} s after the winner's end in the middle, {waits[-1]:.1f} s at worst")
        self.assertEqual(told, len(waits), reasons)

    def test_jobs_end_with_the_owners_hours(self):
        self.joined()
        job = self.laptop.submit(plain("hours", image=IMAGE, envs={"STEPS": 100000}))
        job.wait_checkpoint(1)
        hour = int(self.grid.as_worker(LENT, "date +%H"))
        told = self.owners(f"lend limits --hours {(hour + 2) % 24}:00-{(hour + 3) % 24}:00")
        self.assertIn(f"{(hour + 2) % 24:02}:00", told)
        wait_until("the job to end there", 60, lambda: not self.grid.as_worker(LENT, "podman ps -q").split(), job.evidence)
        wait_until("the log to say so", 10, lambda: "the hours are over" in self.owners("lend log"))
        self.owners("lend limits --hours always")
        wait_until("the job to run again", 60, lambda: self.grid.as_worker(LENT, "podman ps -q").split(), job.evidence)
        self.laptop.run("job", "cancel", job.id)

    def test_the_researchers_own_machine_can_be_the_relay(self):
        address = f"worker@{self.relay['address']}:{self.relay['port']}"
        self.grid.as_worker(RELAY, r"printf '\n# mine\n\n' >> .ssh/authorized_keys")
        before = self.grid.as_worker(RELAY, "cat .ssh/authorized_keys")
        told = self.owners(f"provider invite friend --at {address} --host-key {self.relay['host_key']} --json", RELAY)
        token = json.loads(told)["token"]
        self.owners(f"provider join {token} --yes {IMAGES}")
        self.addCleanup(self.owners, "lend leave --grace 1s || true")
        def answers():
            shown = json.loads(self.owners("provider show friend --json", RELAY))
            return shown["state"] == "answering" and shown["inventory"]["cpus"] > 0
        wait_until("friend to answer", 30, answers)
        self.grid.as_worker(RELAY, "printf 'image: localhost/busybox:1\nrun: echo done\nconstraints: {images: tags}\n' > friend.yaml")
        self.owners("job submit friend.yaml", RELAY)
        lent = json.loads(self.owners("provider show friend --json", RELAY))["address"].partition(":")[2]
        self.assertIn(f"gridctl-lend-{lent}", self.grid.as_worker(RELAY, "cat .ssh/authorized_keys"))
        self.owners("provider rm friend", RELAY)
        self.assertEqual(self.grid.as_worker(RELAY, "cat .ssh/authorized_keys"), before)
        wait_until("the connection to end", 30, lambda: "connected;" not in self.owners("lend status"),
                   lambda: self.owners("lend status; cat ~/.gridctl/lend/*/log"))
        self.owners("daemon stop", RELAY)

    @staticmethod
    def controller_of(token):
        """The fourth field of a token: gridctl-lend(7)."""
        body = base64.urlsafe_b64decode(token.partition(".")[2] + "===")
        for _ in range(4):
            size = int.from_bytes(body[:4], "big")
            field, body = body[4:4 + size], body[4 + size:]
        return field.decode()

    def test_an_invitation_takes_over_neither_jobs_nor_limits(self):
        token = self.token("first")
        jobs = f".gridctl/jobs/{self.controller_of(token)}"
        self.grid.as_worker(LENT, f"mkdir -p {jobs}/job")  # of a gridctl that reaches this machine by itself
        self.assertIn("already runs jobs on this machine", self.owners(f"provider join {token} --yes", code=5))
        self.grid.as_worker(LENT, f"rm -r {jobs}")
        self.owners(f"provider join {token} --yes --egress none")
        self.addCleanup(self.owners, "lend leave --grace 1s || true")
        self.owners("lend limits --reclaim no")
        self.owners("lend pause")
        told = self.owners(f"provider join {self.token('again')} --yes")
        self.assertIn("replaces the one from", told)
        self.assertIn("egress none; reclaim no; images from public registries, paused", told)
        self.assertIn("egress none; reclaim no", self.owners("lend limits"))

    def test_without_its_hook_a_container_begins_nothing(self):
        self.joined()
        remover = self.grid.as_worker(LENT, "(while :; do rm -f .gridctl/lend/*/hooks/egress.json; done) > /dev/null 2>&1 & echo $!").strip()
        self.addCleanup(self.grid.enter, LENT, f"kill {remover}", check=False)
        job = self.laptop.submit({"name": "unhooked", "image": IMAGE, "run": "echo it began", "resources": {"cpus": 0.5}})
        job.wait_output("its network is not filtered")
        self.grid.enter(LENT, f"kill {remover}")
        job.wait_success(deadline=120)
        self.assertIn("it began", job.logs())

    def test_tokens_that_are_not_good_say_why(self):
        token = self.token("once")
        for bad, word in ((token[:-9], "damaged"), (token[:60] + ("a" if token[60] != "a" else "b") + token[61:], "damaged"),
                          ("hello", "no token"), (token.replace("lend-1", "lend-9"), "another version")):
            self.assertIn(word, self.owners(f"provider join {bad} --yes", code=2))
        self.assertIn("without a terminal, gridctl cannot ask whether", self.owners(f"provider join {token} < /dev/null", code=2))
        self.assertIn("lent to", self.owners(f"provider join {token} --yes"))
        self.addCleanup(self.owners, "lend leave --grace 1s || true")
        self.assertIn("used already", self.owners(f"provider join {token} --yes", 3, code=5))
        short = self.token("short", "--expires", "1s")
        time.sleep(1.2)
        self.assertIn("expired", self.owners(f"provider join {short} --yes", 3, code=5))
        # Again, by the same machine, and by a new invitation.
        self.assertIn("lent to", self.owners(f"provider join {token} --yes"))
        again = self.token("again")
        self.assertIn("lent to", self.owners(f"provider join {again} --yes"))
        self.wait_provider("again")
        self.assertEqual(len(json.loads(self.owners("lend status --json"))), 1)

    def home_of_relay(self):
        """Leaves out what an agent keeps there: other scenarios have jobs on the relay, which may still end."""
        return self.grid.as_worker(RELAY, "find . -path ./.gridctl -prune -o -type f ! -name lock -print | sort | xargs md5sum")

    def test_the_key_of_the_lent_machine_opens_nothing_else_on_the_relay(self):
        token = self.token("key")
        self.owners(f"provider join {token} --yes")
        self.addCleanup(self.owners, "lend leave --grace 1s || true")
        ssh = ("ssh -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR "
               f"-o ConnectTimeout=5 -F none -i $(echo ~/.gridctl/lend/*/key) -p {self.relay['port']}")
        to = f"worker@{self.relay['address']}"
        before = self.home_of_relay()
        tries = [f"{ssh} {to} 'touch broken; id'", f"{ssh} -tt {to} sh", f"{ssh} -s {to} sftp", f"{ssh} -W 127.0.0.1:22 {to}",
                 f"{ssh} -o ExitOnForwardFailure=yes -N -R 127.0.0.1:4711:127.0.0.1:22 {to}",
                 f"{ssh} -o ExitOnForwardFailure=yes -N -R /tmp/sock:127.0.0.1:22 {to}",
                 f"{ssh} -A -X {to} 'echo $SSH_AUTH_SOCK $DISPLAY'", f"{ssh} {to} 'gridctl-agent connect'",
                 f"{ssh} {to} '/bin/sh -c id'", f"LC_ALL='$(touch broken)' {ssh} -o SendEnv=LC_ALL {to} x",
                 f"scp -O {ssh[4:].replace('-p ', '-P ')} /etc/passwd {to}:broken"]
        for attempt in tries:
            told = self.grid.as_worker(LENT, f"(sleep 3) | timeout 6 {attempt} 2>&1; true", timeout=30)
            for leak in ("uid=", "GRIDCTL/1", "root:", "/tmp/ssh-"):
                self.assertNotIn(leak, told, attempt)
        self.assertEqual(self.home_of_relay(), before)


if __name__ == "__main__":
    unittest.main()
