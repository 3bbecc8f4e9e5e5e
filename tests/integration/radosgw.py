# SPDX-License-Identifier: Apache-2.0
"""A real S3 server on loopback: one monitor and one storage daemon of Ceph, in memory, and their gateway.

Debian's packages ceph-mon, ceph-osd and radosgw; nothing of it outlives stop()."""
import hashlib
import hmac
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

PROGRAMS = ("ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "ceph", "monmaptool", "ceph-authtool")
ACCESS_KEY, SECRET_KEY = "gridkey", "gridsecret"
PATIENCE = 60  # seconds for each daemon to be there

# The proposal interval makes the start ten times as fast; the storage daemon finds its place in the map by itself
# only where the network and the monitor are quick enough, so it does not try.
CONFIGURATION = """
[global]
fsid = {fsid}
mon host = [v1:127.0.0.1:{monitor}]
mon initial members = a
public network = 127.0.0.0/8
ms bind msgr2 = false
ms bind ipv4 = true
auth cluster required = none
auth service required = none
auth client required = none
auth supported = none
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pgp num = 4
osd pool default pg autoscale mode = off
mon allow pool size one = true
paxos propose interval = 0.05
paxos min wait = 0.01
mon osd min up ratio = 0
mon warn on pool no redundancy = false
mon max pg per osd = 2000
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = 4294967296
osd memory target = 939524096
osd crush update on start = false
osd class update on start = false
osd class load list = *
osd class default list = *
run dir = {folder}/run
log file = {folder}/log/$name.log
pid file = {folder}/run/$name.pid
admin socket = {folder}/run/$name.asok
mon data = {folder}/mon
osd data = {folder}/osd
mgr data = {folder}/mgr
rgw data = {folder}/rgw
keyring = {folder}/keyring
mon data avail crit = 1
[client.rgw]
rgw frontends = beast {listens}
rgw thread pool size = 16
rgw verify ssl = false
"""


def missing():
    """The programs that are not installed."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Radosgw:
    def __init__(self, address=None):
        """On loopback, and on another address of this machine when one is given: that is its endpoint then."""
        self.folder = tempfile.mkdtemp(prefix="gridctl-radosgw.")
        self.port = free_port()
        self.loopback = f"http://127.0.0.1:{self.port}"
        self.addresses = ["127.0.0.1", *([address] if address else [])]
        self.endpoint = f"http://{self.addresses[-1]}:{self.port}"
        try:
            self.start()
        except BaseException:
            self.stop()
            raise

    def run(self, *words, check=True):
        done = subprocess.run(words, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}: {done.stdout}")
        return done.returncode == 0

    def start(self):
        for name in ("mon", "osd", "rgw", "mgr", "log", "run"):
            os.mkdir(os.path.join(self.folder, name))
        with open("/proc/sys/kernel/random/uuid", encoding="ascii") as file:
            fsid = file.read().strip()
        monitor = free_port()
        with open(os.path.join(self.folder, "ceph.conf"), "w", encoding="ascii") as file:
            file.write(CONFIGURATION.format(fsid=fsid, monitor=monitor, folder=self.folder, listens=" ".join(
                f"endpoint={address}:{self.port}" for address in self.addresses)))
        self.run("ceph-authtool", "--create-keyring", "keyring", "--gen-key", "-n", "mon.", "--cap", "mon", "allow *")
        self.run("ceph-authtool", "keyring", "--gen-key", "-n", "client.admin", "--cap", "mon", "allow *",
                 "--cap", "osd", "allow *", "--cap", "mgr", "allow *")
        self.run("monmaptool", "--create", "--addv", "a", f"[v1:127.0.0.1:{monitor}]", "--fsid", fsid, "monmap")
        self.run("ceph-mon", "-c", "ceph.conf", "--mkfs", "-i", "a", "--monmap", "monmap", "--keyring", "keyring")
        self.run("ceph-mon", "-c", "ceph.conf", "-i", "a")
        with open("/proc/sys/kernel/random/uuid", encoding="ascii") as file:
            disk = file.read().strip()
        # On a loaded machine it is not yet ready to be asked; asked again, it gives the same answer.
        self.wait("the monitor", lambda: self.run("ceph", "-c", "ceph.conf", "osd", "new", disk, check=False))
        self.run("ceph-osd", "-c", "ceph.conf", "-i", "0", "--mkfs", "--osd-uuid", disk)
        self.wait("the monitor", lambda: self.run("ceph", "-c", "ceph.conf", "osd", "crush", "add", "osd.0", "1.0",
                                                  "root=default", "host=h", check=False))
        # It may come before the monitor knows the file system's id, and ends then.
        self.wait("the storage daemon", lambda: self.run("ceph-osd", "-c", "ceph.conf", "-i", "0", check=False))
        self.start_gateway()
        self.run("radosgw-admin", "-c", "ceph.conf", "-n", "client.rgw", "user", "create", "--uid", "grid",
                 "--display-name", "grid", "--access-key", ACCESS_KEY, "--secret-key", SECRET_KEY)

    def wait(self, what, look):
        end = time.monotonic() + PATIENCE
        while not look():
            if time.monotonic() > end:
                raise RuntimeError(f"{what} of Ceph did not start")
            time.sleep(0.05)

    def answers(self):
        try:
            urllib.request.build_opener(urllib.request.ProxyHandler({})).open(self.loopback, timeout=2).close()
            return True
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False

    def start_gateway(self):
        self.run("radosgw", "-c", "ceph.conf", "-n", "client.rgw")
        self.wait("the gateway", self.answers)

    def kill_gateway(self):
        self.kill("client.rgw.pid")

    def kill(self, name):
        try:
            with open(os.path.join(self.folder, "run", name), encoding="ascii") as file:
                pid = int(file.read())
            os.kill(pid, signal.SIGKILL)
            self.wait("the end of a daemon", lambda: not os.path.exists(f"/proc/{pid}") or is_zombie(pid))
        except (FileNotFoundError, ProcessLookupError, ValueError):
            pass

    def make_bucket(self, name):
        """Signed as the manual of S3 says, in as few lines as it takes."""
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        scope = f"{stamp[:8]}/us-east-1/s3/aws4_request"
        nothing = hashlib.sha256(b"").hexdigest()
        signed = f"host:127.0.0.1:{self.port}\nx-amz-content-sha256:{nothing}\nx-amz-date:{stamp}\n"
        names = "host;x-amz-content-sha256;x-amz-date"
        request = f"PUT\n/{name}\n\n{signed}\n{names}\n{nothing}"
        key = ("AWS4" + SECRET_KEY).encode()
        for part in scope.split("/"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
        signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        headers = {"x-amz-date": stamp, "x-amz-content-sha256": nothing, "Authorization":
                   f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/{scope}, SignedHeaders={names}, Signature={signature}"}
        call = urllib.request.Request(f"{self.loopback}/{name}", method="PUT", headers=headers)
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(call, timeout=PATIENCE).close()

    def environment(self):
        """For programs that speak to it."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return dict(clean, AWS_ACCESS_KEY_ID=ACCESS_KEY, AWS_SECRET_ACCESS_KEY=SECRET_KEY, no_proxy=",".join(self.addresses),
                    GRIDCTL_S3_ENDPOINT=self.endpoint)

    def stop(self):
        run = os.path.join(self.folder, "run")
        for name in os.listdir(run) if os.path.isdir(run) else ():
            if name.endswith(".pid"):
                self.kill(name)
        shutil.rmtree(self.folder, ignore_errors=True)


def is_zombie(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(") ")[2][:1] == "Z"
    except OSError:
        return True
