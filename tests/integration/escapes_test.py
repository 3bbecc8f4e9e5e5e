# SPDX-License-Identifier: Apache-2.0
# Red team: a job that tries to get out of each engine, to look into others, and to stay when it is told to go.
import re
import shlex
import time
import unittest

import grid
from grid import plain

IMAGE = "localhost/busybox:1"
CANARY = "canary-4711"  # what nobody but its owner may read
GRACE = 2               # seconds that a job has to end

# Each is a line of shell that succeeds when the job has got what it must not have. $CANARY is not known to the job: it
# looks for the word's beginning.
ANYWHERE = [
    ("environment of other processes", "cat /proc/[0-9]*/environ 2>/dev/null | grep -q 'canary-4711-of-the-[n]eighbour'"),
    ("open files of other processes", "cat /proc/[0-9]*/fd/* 2>/dev/null & sleep 1; kill $! 2>/dev/null; false"),
    ("working folders of other processes",
     "for p in /proc/[0-9]*; do cat $p/cwd/neighbour 2>/dev/null; done | grep -q canary"),
    ("roots of other processes",
     "for p in /proc/[0-9]*; do cat $p/root/home/worker/.ssh/secret 2>/dev/null; done | grep -q canary"),
    ("memory of other processes",
     "for p in $(grep -l neighbour /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3); do "
     "[ $p = $$ ] || head -c 1 /proc/$p/mem 2>/dev/null; done | grep -q ."),
    ("new privileges", "grep -q '^NoNewPrivs:.*0' /proc/self/status"),
    ("capabilities that make devices", "grep '^CapEff:' /proc/self/status | grep -qE '[1-9a-f]' && mknod dev b 8 0"),
    ("a set-user-ID program", "cp $(command -v sh) mine && chmod u+s mine && ./mine -c 'cat /etc/shadow' | grep -q ."),
    ("the passwords of the host", "cat /etc/shadow 2>/dev/null | grep -q 'root:.*[$]'"),
    ("a device of a disk", "mknod disk b 8 0 && head -c 1 disk | grep -q ."),
    ("the disks", "head -c 1 /dev/vda >/dev/null || head -c 1 /dev/sda >/dev/null"),
    ("the memory of the kernel", "head -c 1 /dev/mem >/dev/null || head -c 1 /dev/kmem >/dev/null || head -c 1 /proc/kcore >/dev/null"),
    ("the program for crashed ones", "echo '|/tmp/x' > /proc/sys/kernel/core_pattern"),
    ("the program for modules", "echo /tmp/x > /proc/sys/kernel/modprobe"),
    ("the keys of the kernel", "echo b > /proc/sysrq-trigger"),
    ("the helper of control groups", "for f in $(find /sys/fs/cgroup -name release_agent 2>/dev/null); do echo /tmp/x > $f && exit 0; done; false"),
    ("control groups", "for f in /sys/fs/cgroup/x /sys/fs/cgroup/memory/x /sys/fs/cgroup/cpu/x; do mkdir $f && [ -e $f/cgroup.procs ] && exit 0; "
     "done; false"),
    ("a file system of the host", "mkdir -p m && mount -t proc proc m"),
    ("a view that others have", "mkdir -p m && mount --bind / m"),
    ("what is mounted over", "umount /home/worker/.ssh || umount -l /proc"),
    ("namespaces of process 1", "nsenter -t 1 -m -p true"),
    ("the host by chroot", "chroot /proc/1/root ls /home/worker/.gridctl"),
    ("the clock", "date -s '2001-01-01 00:00'; date +%Y | grep -q 2001"),
    ("the name of the host", "hostname owned"),
    ("packets below TCP", "ping -c 1 -W 1 127.0.0.1 >/dev/null 2>&1 && [ -n \"$IN_CONTAINER\" ]"),
    ("the network's settings", "ip link add x type dummy || ifconfig lo 127.0.0.2"),
    ("modules", "insmod /tmp/x.ko || modprobe loop_x"),
    ("the engine's socket", "[ -z \"$IN_CONTAINER\" ] || for s in /var/run/docker.sock /run/docker.sock /run/podman/podman.sock "
     "/run/user/1500/podman/podman.sock; do [ -w $s ] && exit 0; done; false"),
    ("the user's service manager", "systemd-run --user -q true || [ -w /run/user/1500/systemd/private ] || [ -w /run/user/1500/bus ]"),
    ("sudo", "sudo -n true || [ -z \"$IN_CONTAINER\" ] && su -c true </dev/null"),
    ("the fence", "echo 999 >> /home/worker/.gridctl/fence || find / -name fence -path '*gridctl*' -exec sh -c 'echo 9 >> {}' \\; "
     "2>/dev/null | grep -q ."),
    ("the words that stop it", "for f in /gridctl/ctl \"$PWD/../ctl\"; do echo x > $f/stop && [ -n \"$IN_CONTAINER\" ] && exit 0; done; false"),
    ("the agent's program", "for f in /gridctl/agent /home/worker/.gridctl/bin/*/gridctl-agent; do : >> $f && exit 0; done; false"),
    ("the running agent's program", "for p in /proc/[0-9]*; do readlink $p/exe | grep -q agent && : >> $p/exe && exit 0; done; false"),
    ("the leases of others", "for f in /var/tmp/gridctl-leases*/* /run/gridctl-leases*/* /var/tmp/gridctl-leases.*; do "
     "[ -n \"$IN_CONTAINER\" ] && [ -e $f ] && : >> $f && exit 0; done; false"),
    ("processes of the host", "[ -n \"$IN_CONTAINER\" ] && ps | grep -q '[s]shd'"),
    ("an end of other processes",
     "for p in $(grep -l -e 'neighbour' -e supervise /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3); do "
     "[ $p = $$ ] || kill -0 $p 2>/dev/null && grep -q supervise /proc/$p/cmdline && exit 0; done; false"),
]
# The user's own, where the job runs as the user.
OF_THE_USER = [
    (f"{name}", f"grep -rq canary /home/worker/{name} 2>/dev/null")
    for name in (".ssh", ".aws", ".netrc", ".git-credentials", ".kube", ".docker", ".config/gcloud", ".gnupg")
] + [
    ("a login", "echo key >> /home/worker/.ssh/authorized_keys"),
    ("a unit of the user's service manager", "mkdir -p /home/worker/.config/systemd/user && touch /home/worker/.config/systemd/user/evil.service"),
    ("variables of sessions", "mkdir -p /home/worker/.config/environment.d && touch /home/worker/.config/environment.d/evil.conf"),
    ("programs of sessions", "mkdir -p /home/worker/.config/autostart && touch /home/worker/.config/autostart/evil.desktop"),
    ("a link to a key", "ln -s /home/worker/.ssh/secret link && grep -q canary link"),
    ("a hard link to a key", "ln /home/worker/.ssh/secret hard && grep -q canary hard"),
    ("another name of a folder", "mv /home/worker/.ssh /home/worker/.ssh2 && grep -rq canary /home/worker/.ssh2"),
    ("another job's folder", "grep -rqs 'canary-4711-of-the-[n]eighbour' /home/worker/.gridctl/jobs"),
    ("another job's secrets", f"grep -rqs canary /dev/shm/gridctl-{grid.WORKER} /run/user/{grid.WORKER}/gridctl-{grid.WORKER}"),
    ("a view of its own", "unshare -Ur sh -c 'umount /home/worker/.ssh; grep -rq canary /home/worker/.ssh'"),
]


def setUpModule():
    global the_grid
    the_grid = grid.up(1)


def probes_script(probes):
    lines = ["broke=0; tried=0", "mkdir -p probes; cd probes"]
    for number, (name, attack) in enumerate(probes):
        # A timeout, since what hangs has not succeeded either.
        lines += [f"cat > p{number} <<'END'\n{attack}\nEND",
                  f"tried=$((tried + 1)); if timeout 5 sh p{number} >/dev/null 2>&1 </dev/null; then broke=$((broke + 1)); "
                  f"echo {shlex.quote('BROKEN ' + name)}; fi"]
    return "\n".join(lines + ["echo \"tried $tried, broken $broke\""])


class EveryEngine:
    """A neighbour runs beside the attacker, and must not notice."""
    engine = None

    @classmethod
    def setUpClass(cls):
        cls.grid = the_grid
        if cls.engine == "docker":
            the_grid.start_docker(1)
        the_grid.as_worker(1, "mkdir -p .ssh .aws .kube .docker .config/gcloud .gnupg; for f in .ssh/secret .aws/credentials .netrc "
                           f".git-credentials .kube/config .docker/config.json .config/gcloud/key .gnupg/key; do echo {CANARY} > $f; "
                           "done")
        cls.laptop = the_grid.laptop(cls.__name__)
        cls.laptop.register(1, None, cls.engine)

    @classmethod
    def tearDownClass(cls):
        cls.laptop.close()

    def submit(self, name, run, steps=1, **options):
        if self.engine != "process":
            options.setdefault("image", IMAGE)
        in_container = "1" if self.engine != "process" else ""
        return self.laptop.submit(plain(name, run=run, envs={"IN_CONTAINER": in_container, "STEPS": steps}, **options))

    def neighbour(self):
        secret = f"{CANARY}-of-the-neighbour"
        job = self.submit("neighbour", f"echo {secret} > neighbour; export NEIGHBOUR={secret}; exec sh plain.sh neighbour",
                          steps=100_000)
        self.addCleanup(lambda: self.laptop.run("job", "cancel", job.id, "--grace", "1s", "--wait", check=False))
        job.wait_checkpoint(1)
        return job

    def assert_unharmed(self, neighbour):
        made = len(neighbour.events("checkpoint"))
        neighbour.wait_checkpoint(made + 1, deadline=60)
        self.assertEqual(len(neighbour.attempts()), 1, neighbour.evidence())
        self.assertEqual(neighbour.events("host_lost"), [])

    def test_cannot_get_out_or_look_into_others(self):
        neighbour = self.neighbour()
        probes = ANYWHERE + (OF_THE_USER if self.engine == "process" else [])
        job = self.submit("prober", probes_script(probes))
        output = job.wait_output("tried ", deadline=200)
        broken = re.findall(r"^BROKEN (.*)$", output, re.MULTILINE)
        self.assertEqual(broken, [], output)
        self.assertIn(f"tried {len(probes)}, broken 0", output)
        grid.figure(f"{self.engine}: escapes tried", len(probes))
        job.wait_success()
        self.assert_unharmed(neighbour)
        self.laptop.run("job", "cancel", neighbour.id, "--grace", "1s", "--wait")
        self.grid.wait_clean()

    def test_cannot_stay_when_it_is_cancelled(self):
        neighbour = self.neighbour()
        job = self.submit("stayer", "trap '' TERM INT HUP QUIT; echo holding; sleep 1\n"
                          "for folder in /gridctl/run \"$PWD/../run\" $PWD/../run*; do rm -rf $folder/lock $folder/* 2>/dev/null; done\n"
                          "echo removed\n"
                          "(trap '' TERM INT HUP; setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done' & )\n"
                          "while :; do sleep 1; done")
        job.wait_output("holding")
        job.wait_output("removed")
        began = time.monotonic()
        self.laptop.run("job", "cancel", job.id, "--grace", f"{GRACE}s", "--wait", timeout=60)
        took = time.monotonic() - began
        grid.figure(f"{self.engine}: cancelled, without its lock and deaf, it is gone after", f"{took:.1f} s")
        self.assertEqual(job.state, "CANCELLED", job.evidence())
        self.assertLess(took, grid.bound(GRACE + 15), job.evidence())
        self.assert_unharmed(neighbour)
        self.laptop.run("job", "cancel", neighbour.id, "--grace", "1s", "--wait")
        self.grid.wait_clean()


class PlainProcess(EveryEngine, grid.Case):
    engine = "process"

    def test_cannot_let_somebody_in_by_its_mounts(self):
        """The agent makes them, and no confinement holds it."""
        home = "/home/worker/"
        for number, place in enumerate((".ssh/authorized_keys2", ".ssh/rc", ".bash_login", ".config/systemd")):
            options = {"checkpoint": {"path": home + place}} if place == ".config/systemd" else {"file_mounts": {home + place: __file__}}
            job = self.submit(f"letin-{number}", "echo began; sleep 20", **options)
            job.wait("is refused", 60, lambda: any("lies in a home directory" in event["text"] for event in job.events()))
            self.laptop.run("job", "cancel", job.id, "--now", "--wait")
            self.assertEqual(job.logs(), "", job.evidence())
        self.grid.enter(1, f"for f in .ssh/authorized_keys2 .ssh/rc .bash_login; do [ ! -L {home}$f ] || exit 1; done; "
                        f"[ ! -L {home}.config/systemd ]")

    def test_finds_its_mounts_in_a_home_of_its_own(self):
        self.grid.as_worker(1, "mkdir -p venv; echo mine > venv/word")
        job = self.submit("athome", "cat ~/venv/word ~/.ssh/rc | head -3; echo seen", file_mounts={"~/.ssh/rc": __file__})
        output = job.wait_output("seen")
        self.assertTrue(output.startswith("mine\n# SPDX"), output)
        self.grid.enter(1, "[ ! -e /home/worker/.ssh/rc ]")


class Podman(EveryEngine, grid.Case):
    engine = "podman"


class Docker(EveryEngine, grid.Case):
    engine = "docker"


if __name__ == "__main__":
    unittest.main(verbosity=2)
