# SPDX-License-Identifier: Apache-2.0
"""Hosts as people really have them: what works, and how soon and how clearly the rest is refused.

Each row of a table spoils a host in one way, tries it, and mends it again.
"""
import contextlib
import dataclasses
import json
import os
import re
import shlex
import shutil
import struct
import subprocess
import time
import unittest

import grid
from grid import plain

PATIENCE = 10    # seconds to a clear answer where no bytes move
BASHRC = "/home/worker/.bashrc"
AGENT_HOME = "/home/worker/.gridctl"


def setUpModule():
    global the_grid
    the_grid = grid.up(3, small_disks={3: "60m"})
    subprocess.run(["cc", "-O2", "-static", "-o", the_grid.disk(1, "tmp/nonamespaces"),
                    os.path.join(grid.SOURCE, "tests", "support", "no_namespaces.c")], check=True)


@dataclasses.dataclass
class Row:
    name: str
    spoil: str           # run as root in the host
    mend: str            # the same
    says: tuple = ()     # all of it, in what register prints
    host: int = 1
    code: int = 5
    sshd: bool = False   # sshd reads its configuration anew


def bashrc(line):
    return f"printf '%s\\n' {shlex.quote(line)} > {BASHRC}; chown worker {BASHRC}", f"rm -f {BASHRC}"


def sshd_config(*lines):
    path = "/etc/ssh/sshd_config"
    quoted = " ".join(shlex.quote(line) for line in lines)
    return (f"cp {path} {path}.kept; {{ printf '%s\\n' {quoted}; cat {path}.kept; }} > {path}", f"mv {path}.kept {path}")


# Logins that may not make namespaces, as on Ubuntu 24.04 or where an administrator has switched them off.
NO_NAMESPACES = sshd_config("ForceCommand /tmp/nonamespaces sh -c \"$SSH_ORIGINAL_COMMAND\"")
# As on machines that run from memory, and in containers: stat and /proc/locks name different devices.
OVERLAY_HOME = ("mkdir -p /run/over && mount -t tmpfs tmpfs /run/over && mkdir /run/over/up /run/over/work && chown worker "
                "/run/over/up && mount -t overlay overlay -o lowerdir=/home/worker,upperdir=/run/over/up,workdir=/run/over/work "
                "/home/worker", "umount -l /home/worker; umount -l /run/over")
# The kernel counts a user's processes on the whole machine: those of grids beside this one must not count here.
# usermod refuses while one of the user's processes is still ending.
FEW_PROCESSES = tuple(f"timeout 10 sh -c 'while pkill -KILL -u worker; do sleep 0.1; done' && usermod -u {uid} worker && "
                      f"{{ {words}; }}" for uid, words in
                      zip((grid.WORKER + 277, grid.WORKER), bashrc("ulimit -u 100")))
FUSE_HOME = ("[ -e /dev/fuse ] || mknod -m 666 /dev/fuse c 10 229; mkdir -p /tmp/fuse/up /tmp/fuse/work; "
             "chown worker /tmp/fuse/up; fuse-overlayfs -o lowerdir=/home/worker,upperdir=/tmp/fuse/up,"
             "workdir=/tmp/fuse/work,allow_other /home/worker && stat -f -c %T /home/worker | grep -q fuse",
             "umount -l /home/worker; rm -rf /tmp/fuse")

KEYS_AWAY = sshd_config("AuthorizedKeysFile /etc/ssh/keys")
KEYS_AWAY = ("cp /home/worker/.ssh/authorized_keys /etc/ssh/keys; " + KEYS_AWAY[0], KEYS_AWAY[1])

# Row, what it does: the reason must be named.
REFUSED = [
    Row("agent's folder of somebody else", f"rm -rf {AGENT_HOME}; mkdir -m 755 {AGENT_HOME}", f"rm -rf {AGENT_HOME}",
        ("cannot be put", "ermission denied", "ln -s DIR ~/.gridctl")),
    Row("home read-only", "mount -o remount,bind,ro /home", "mount -o remount,bind,rw /home",
        ("cannot be put", "ead-only file system")),
    Row("home missing", f"{KEYS_AWAY[0]}; mv /home/worker /home/away", f"mv /home/away /home/worker; {KEYS_AWAY[1]}",
        ("cannot be put",), sshd=True),
    Row("home forbids execution", "mount -o remount,bind,noexec /home", "mount -o remount,bind,exec /home",
        ("noexec", "ln -s DIR ~/.gridctl")),
    Row("home full", "dd if=/dev/zero of=/home/fill bs=64k status=none || true", "rm -f /home/fill",
        ("used up", "df -i"), host=3),
    Row("a limit on the size of files", *bashrc("ulimit -f 100"), ("cannot be put",)),
    Row("a start-up file that starts another shell", *bashrc("exec sh"), (".bashrc", "for terminals only", "ssh -p")),
    Row("a start-up file that waits", *bashrc("sleep 600"), (".bashrc",)),
    Row("a start-up file that exits", *bashrc("exit 0"), ("without a word", "nologin", "ssh -p")),
    Row("no login shell", "usermod -s /usr/sbin/nologin worker", "usermod -s /bin/bash worker", ("not available",)),
    Row("passwords only", *sshd_config("PubkeyAuthentication no", "PasswordAuthentication yes"),
        ("does not accept keys", "password"), code=6, sshd=True),
    Row("a second factor", *sshd_config("AuthenticationMethods publickey,password", "PasswordAuthentication yes"),
        ("accepted our key but also asks for input", "password"), code=6, sshd=True),
]

# Row, how it works: registers, and runs a job.
WORKS = [
    Row("nothing peculiar", "true", "true"),
    Row("60 kB of noise", *bashrc("head -c 45000 /dev/urandom | base64")),
    Row("no HOME", *bashrc("unset HOME")),
    Row("no PATH", *bashrc("PATH=/nowhere")),
    Row("no subordinate ids", "cp /etc/subuid /etc/subuid.kept; : > /etc/subuid", "mv /etc/subuid.kept /etc/subuid",
        ("warn",)),
    Row("no /var/tmp", "mv /var/tmp /var/away", "mv /var/away /var/tmp"),
    Row("a read-only /var/tmp", "mount --bind /var/tmp /var/tmp; mount -o remount,bind,ro /var/tmp", "umount /var/tmp"),
    Row("no package tools", "mv /usr/bin/dpkg-query /usr/bin/dpkg-away", "mv /usr/bin/dpkg-away /usr/bin/dpkg-query"),
    Row("one session a connection", *sshd_config("MaxSessions 1"), sshd=True),
    Row("keys renewed in the middle", *sshd_config("RekeyLimit 1M"), sshd=True),
    Row("only ciphers that libssh2 lacks", *sshd_config("Ciphers aes256-gcm@openssh.com"), sshd=True),
    Row("at most a hundred processes", *FEW_PROCESSES),
    Row("a shell that ends when nobody types", *bashrc("TMOUT=1; readonly TMOUT; export TMOUT")),
    Row("no namespaces for ordinary users", *NO_NAMESPACES, sshd=True),
    Row("a home on FUSE", *FUSE_HOME),
    Row("a home that is an overlay of two file systems", *OVERLAY_HOME),
    Row("a login shell of another kind", "usermod -s /bin/dash worker", "usermod -s /bin/bash worker"),
]


class Peculiar(grid.Case):
    @contextlib.contextmanager
    def spoilt(self, row):
        self.grid.enter(row.host, row.spoil)
        try:
            if row.sshd:
                self.restart_sshd(row.host)
            yield
        finally:
            self.grid.enter(row.host, row.mend)
            if row.sshd:
                self.restart_sshd(row.host)

    def restart_sshd(self, host):
        self.grid.command("sshd", host, "stop")
        self.grid.command("sshd", host, "start")

    def test_what_cannot_be_used_is_refused_soon_with_the_reason(self):
        for number, row in enumerate(REFUSED):
            # What the job of the test before has left is still being cleaned up by its agent.
            self.grid.enter(row.host, f"timeout 30 sh -c 'until rm -rf {AGENT_HOME} 2> /dev/null; do sleep 0.2; done'")
            with self.subTest(row.name), self.spoilt(row):
                laptop = self.grid.laptop(f"refused{number}")
                done = laptop.register(row.host, check=False)
                grid.figure(f"refused: {row.name}", f"{done.seconds:.1f} s")
                self.assertEqual(done.code, row.code, done)
                self.assertLess(done.seconds, PATIENCE, done)
                for words in row.says:
                    self.assertIn(words, done.out + done.err)

    def test_what_is_merely_peculiar_works(self):
        for number, row in enumerate(WORKS):
            with self.subTest(row.name), self.spoilt(row):
                laptop = self.grid.laptop(f"works{number}")
                done = laptop.register(row.host, None, "process")
                for words in row.says:
                    self.assertIn(words, done.out + done.err)
                self.assertLess(laptop.run("provider", "check", f"h{row.host}").seconds, PATIENCE)
                job = laptop.submit(plain("works", envs={"STEPS": 3}))
                job.wait_success(deadline=60)
                self.assertEqual(len(job.attempts()), 1, job.evidence())
                laptop.close()

    def test_an_encrypted_key_without_an_agent_is_named(self):
        key = os.path.join(self.grid.folder, "locked")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", key], check=True)
        facts = self.grid.facts[1]
        done = self.grid.laptop("lockedout").run("provider", "register", "h1", f"worker@{facts['address']}", "--host-key",
                                              facts["host_key"], "-i", key, check=False, env={"SSH_AUTH_SOCK": ""})
        self.assertEqual(done.code, 6, done)
        self.assertIn(f"ssh-add {key}", done.err)

    def test_a_host_that_shows_only_a_certificate(self):
        self.grid.enter(1, "cd /etc/ssh; ssh-keygen -q -t ed25519 -N '' -f ca; "
                           "ssh-keygen -q -s ca -I h1 -h ssh_host_ed25519_key.pub")
        row = Row("", *sshd_config("HostCertificate /etc/ssh/ssh_host_ed25519_key-cert.pub",
                                   "HostKeyAlgorithms ssh-ed25519-cert-v01@openssh.com"), sshd=True)
        with self.spoilt(row):
            laptop = self.grid.laptop("certified")
            laptop.register(1, None, "process")
            laptop.submit(plain("certified", envs={"STEPS": 3})).wait_success()

    def test_an_image_with_a_user_of_its_own(self):
        self.grid.as_worker(1, "podman create -q --name plain localhost/busybox:1 true && podman export plain | podman "
                               "import -q --change 'USER 1000' --change 'ENV PATH=/bin:/usr/bin' - localhost/user:1; "
                               "podman rm plain")
        laptop = self.grid.laptop("user")
        laptop.register(1, None, "podman")
        job = laptop.submit(plain("user", image="localhost/user:1", envs={"STEPS": 20}))
        job.wait_success()
        self.assert_steps_once(job, 20, attempts=1)
        self.grid.wait_clean(hosts=[1])

    def test_an_image_whose_entry_point_never_returns(self):
        self.grid.as_worker(2, "podman create -q --name plain localhost/busybox:1 true && podman export plain | podman "
                               "import -q --change 'ENTRYPOINT [\"sleep\", \"100000\"]' --change 'ENV PATH=/bin:/usr/bin' "
                               "- localhost/sleeper:1; podman rm plain")
        laptop = self.grid.laptop("sleeper")
        laptop.register(2, None, "podman")
        job = laptop.submit(plain("sleeper", image="localhost/sleeper:1", envs={"STEPS": 5}))
        job.wait_success(deadline=30)
        self.grid.wait_clean(hosts=[2])

    def test_a_large_image_delays_no_heartbeat(self):
        laptop = self.grid.laptop("large")
        laptop.register(1, None, "podman")
        neighbour = laptop.submit(plain("neighbour", image="localhost/busybox:1", envs={"STEPS": 100_000}))
        neighbour.wait_checkpoint(1)
        archive = os.path.join(laptop.folder, "large.tar")
        self.grid.as_worker(1, "podman create -q --name plain localhost/busybox:1 true && podman export plain > /tmp/plain.tar; "
                               "podman rm plain; mkdir -p /tmp/large && cd /tmp/large && head -c 300M /dev/urandom > weights && "
                               "tar rf /tmp/plain.tar weights && podman import -q --change 'ENV PATH=/bin:/usr/bin' /tmp/plain.tar "
                               "localhost/large:1 && podman save -q -o /tmp/large.tar localhost/large:1; podman rmi localhost/large:1")
        os.rename(self.grid.disk(1, "tmp/large.tar"), archive)
        began = time.monotonic()
        job = laptop.submit(plain("large", image=archive, envs={"STEPS": 3}))
        seen = [json.loads(line) for line in laptop.run("job", "watch", job.id, "--json").out.splitlines()]
        job.wait_success(deadline=180)
        sent = [one for one in seen if one["kind"] == "progress"]
        self.assertTrue(sent, "nobody was told that 300 MB were on their way")
        self.assertTrue(all(0 < one["bytes"] <= one["bytes_total"] and one["direction"] == "up" for one in sent), sent)
        grid.figure("an image of 300 MB that no host has: until the job is done", f"{time.monotonic() - began:.1f} s")
        self.assertEqual(len(job.attempts()), 1, job.evidence())
        self.assertEqual(neighbour.events("host_lost"), [])
        self.assertEqual(len(neighbour.attempts()), 1)
        laptop.run("job", "cancel", neighbour.id, "--grace", "1s", "--wait")


class Laptops(grid.Case):
    def test_another_network_in_the_middle_of_a_job(self):
        laptop = self.grid.laptop("travels")
        laptop.register(1, None, "process")
        job = laptop.submit(plain("at-home", envs={"STEPS": 250}))
        job.wait_checkpoint(1)
        route = subprocess.run(["ip", "-o", "route", "get", self.grid.facts[1]["address"]], check=True, stdout=subprocess.PIPE,
                               text=True).stdout
        ours, gateway, device = (re.search(rf" {word} (\S+)", route)[1] for word in ("src", "via", "dev"))
        net, other = ours.rpartition(".")[0], ours.rpartition(".")[0] + ".9"
        with open(os.path.join(self.grid.environment["GRIDCTL_TESTGRID"], "router.pid"), encoding="ascii") as file:
            router = ["nsenter", "-n", "-t", file.read().split()[0]]
        subprocess.run([*router, "ip", "route", "add", f"{other}/32", "dev", "laptop"], check=True)
        for gone, new in ((ours, other), (other, ours)):  # there, and back again
            for words in (f"addr del {gone}/32 dev {device}", f"addr add {new}/32 dev {device}",
                          f"route replace {gateway}/32 dev {device} src {new}", f"route replace {net}.0/24 via {gateway} src {new}"):
                subprocess.run(["ip", *words.split()], check=True)
            began, made = time.monotonic(), len(job.events("checkpoint"))
            job.wait_checkpoint(made + 2, deadline=30)
            grid.figure("another address of the laptop: two checkpoints later", f"{time.monotonic() - began:.1f} s")
        job.wait_success(hurry=True)
        self.assertEqual(len(job.attempts()), 1, job.evidence())

    def test_a_daemon_that_was_started_within_tmux_outlives_it(self):
        laptop = self.grid.laptop("tmux")
        laptop.register(1, None, "process")
        path = laptop.write_job(plain("detached", envs={"STEPS": 60}))
        words = ["tmux", "-L", "gridctl-test", "-f", "/dev/null"]
        laptop.run("daemon", "stop", check=False)
        subprocess.run([*words, "new-session", "-d", f"{grid.GRIDCTL} job submit {path}"], env=laptop.environment, check=True)
        grid.wait_until("the job", 60, lambda: laptop.run("job", "ls", "--json").json)
        grid.wait_until("the daemon", 60, laptop.daemon_pid)
        subprocess.run([*words, "kill-server"], check=True)
        job = grid.Job(laptop, laptop.run("job", "ls", "--json").json[0]["job_id"])
        job.wait_checkpoint(2)
        job.wait_success(hurry=True)
        self.assertEqual(len(job.attempts()), 1)


class Keys(grid.Case):
    def setUp(self):
        super().setUp()
        self.laptop = self.grid.laptop(self.id().rsplit("_", 1)[1])  # a short name: so is the path of the socket
        self.socket = os.path.join(self.laptop.folder, "agent.sock")
        self.laptop.environment["SSH_AUTH_SOCK"] = self.socket
        self.agent = self.start_agent()
        self.addCleanup(lambda: self.agent and os.kill(self.agent, 15))
        for host in (1, 2):
            facts = self.grid.facts[host]
            self.laptop.run("provider", "register", f"h{host}", f"worker@{facts['address']}", "--host-key",
                            facts["host_key"], "--engine", "process")

    def start_agent(self, socket=None):
        started = subprocess.run(["ssh-agent", "-a", socket or self.socket], stdout=subprocess.PIPE, text=True, check=True).stdout
        subprocess.run(["ssh-add", "-q", self.grid.key], env=dict(self.laptop.environment, SSH_AUTH_SOCK=socket or self.socket),
                       check=True, stderr=subprocess.DEVNULL)
        return int(re.search(r"SSH_AGENT_PID=(\d+)", started)[1])

    def end_agent(self):
        os.kill(self.agent, 15)
        self.agent = None
        grid.wait_until("the end of ssh-agent", 60, lambda: not os.path.exists(self.socket))

    def test_a_login_refused_is_no_silence(self):
        job = self.laptop.submit(plain("stays", envs={"STEPS": 200}))
        job.wait_checkpoint(1)
        host = job.host()
        self.end_agent()
        self.grid.enter(host, "pkill -9 -u worker -f 'gridctl-agent connect'")
        refused = job.wait_event("host_login_refused", deadline=60)
        self.assertIn("ssh-add", str(refused))
        time.sleep(7)  # longer than lost_after
        self.agent = self.start_agent()
        job.wait_checkpoint(len(job.events("checkpoint")) + 1)
        job.wait_success(hurry=True)
        self.assertEqual(len(job.attempts()), 1, job.evidence())
        self.assertEqual(job.events("host_lost"), [])
        self.grid.wait_clean(hosts=[1, 2])

    def test_a_command_brings_the_daemon_another_ssh_agent(self):
        job = self.laptop.submit(plain("waits", envs={"STEPS": 200}))
        job.wait_checkpoint(1)
        self.end_agent()
        later = self.laptop.submit(plain("later"))
        grid.wait_until("a refusal", 60, lambda: "accepts none of our keys" in self.laptop.run("job", "events", later.id).out)
        other = os.path.join(self.laptop.folder, "other.sock")
        self.agent = self.start_agent(other)
        self.laptop.environment["SSH_AUTH_SOCK"] = other
        pid = self.laptop.daemon_pid()
        last = self.laptop.submit(plain("last"))
        for one in (last, later, job):
            one.wait_success(hurry=True)
        self.assertEqual(self.laptop.daemon_pid(), pid)
        self.assertLess(len(later.attempts()), 12, "each try waits longer")
        self.grid.wait_clean(hosts=[1, 2])  # nobody could without the ssh-agent, which ends with this test


class Engines(grid.Case):
    def test_an_engine_that_stops_forbids_that_engine_only(self):
        self.grid.command("dockerd", 1)
        laptop = self.grid.laptop("docker")
        laptop.register(1)
        self.grid.enter(1, "pkill dockerd; rm -f /etc/testgrid-dockerd; for try in $(seq 100); do docker version "
                           ">/dev/null 2>&1 || break; sleep 0.1; done")
        checked = laptop.run("provider", "check", "h1", check=False)
        self.assertNotIn("quarantined", checked.out + checked.err)
        laptop.submit(plain("bare", envs={"STEPS": 3})).wait_success(deadline=60)
        self.grid.command("dockerd", 1)
        checked = laptop.run("provider", "check", "h1")
        self.assertIn("docker", checked.out + checked.err)
        self.assertNotIn("FAIL", checked.out + checked.err)


    @unittest.skipUnless(shutil.which("rootlesskit"), "there is no rootlesskit")
    def test_a_docker_without_root(self):
        socket = f"/run/user/{grid.WORKER}/docker.sock"
        self.grid.as_worker(2, "PATH=$PATH:/usr/sbin:/usr/share/docker.io/contrib; setsid nohup dockerd-rootless.sh "
                               "--iptables=false --bridge=none --storage-driver vfs > /tmp/rootless.log 2>&1 & "
                               f"for try in $(seq 100); do [ -S {socket} ] && break; sleep 0.1; done")
        folder = subprocess.run([grid.SOURCE + "/scripts/mk-images", "--dir"], stdout=subprocess.PIPE, text=True,
                                check=True).stdout.strip()
        with open(f"{folder}/busybox.tar", "rb") as archive:
            subprocess.run([grid.TESTGRID, "enter", "2", "setpriv", f"--reuid={grid.WORKER}", f"--regid={grid.WORKER}",
                            "--clear-groups", "env", "HOME=/home/worker", f"DOCKER_HOST=unix://{socket}", "docker", "load", "-q"],
                           stdin=archive, check=True, env=self.grid.environment, stdout=subprocess.DEVNULL)
        laptop = self.grid.laptop("rootless")
        done = laptop.register(2, None, "docker")
        self.assertRegex(done.out + done.err, r"engine: docker \S+, rootless")
        job = laptop.submit(plain("rootless", image="localhost/busybox:1", envs={"STEPS": 20}))
        job.wait_success()
        self.assert_steps_once(job, 20, attempts=1)


class Clocks(grid.Case):
    def test_our_own_clock_quarantines_nobody(self):
        laptop = self.grid.laptop("ahead")
        library, ahead = os.path.join(laptop.folder, "stepped.so"), os.path.join(laptop.folder, "ahead")
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library,
                        os.path.join(grid.SOURCE, "tests", "support", "stepped_clock.c")], check=True)
        with open(ahead, "wb") as file:
            file.write(struct.pack("q", 3600))
        laptop.environment.update(LD_PRELOAD=library, STEPPED_CLOCK=ahead, GRIDCTL_HEALTH_EVERY="1s")
        done = laptop.register(1, None, "process")
        self.assertIn("one of them is wrong", done.err)
        laptop.run("provider", "check", "h1")
        time.sleep(3)  # some looks at its health
        laptop.submit(plain("an-hour-ahead", envs={"STEPS": 3})).wait_success(deadline=60)
        doctor = laptop.run("doctor", check=False)
        self.assertIn("differ by", doctor.out + doctor.err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
