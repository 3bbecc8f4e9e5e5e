# SPDX-License-Identifier: Apache-2.0
"""What a guest tries on a lent machine by way of images and of its limits."""
import os
import shutil
import signal
import subprocess
import time
import unittest

import grid
import lender
from grid import plain, wait_until
from lender import IMAGE, LENT, RELAY

PUBLIC = "93.184.215.14"  # stands for an address of the Internet; these hosts reach none
NAME = "registry.example.net"
NEAR_PORT, OWN_PORT, REGISTRY_PORT = 8098, 8099, 5000

# A registry of three repositories: good/img as it is, layers/img whose layer lies at addresses that the image names, and
# moved/img whose layers are redirected to one.
REGISTRY = r"""
import http.server, json, ssl, sys
folder, near, own = sys.argv[1:4]
manifest = json.load(open(folder + "/manifest.json"))
class Handler(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self):
        self.do_GET()
    def answer(self, body, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)
    def do_GET(self):
        parts = self.path.split("/")
        if self.path == "/v2/":
            return self.answer(b"{}", "application/json")
        if "manifests" in parts:
            told = json.loads(json.dumps(manifest))
            for layer in told["layers"] if parts[2] != "good" else []:
                layer["digest"] = "sha256:" + parts[2].encode().hex().ljust(64, "0")  # of a layer that no engine has
            if parts[2] == "layers":
                for layer in told["layers"]:
                    layer["mediaType"] = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"
                    layer["urls"] = [near + "/layer", own + "/layer"]
            return self.answer(json.dumps(told).encode(), told["mediaType"])
        if parts[2] == "moved":
            self.send_response(307)
            self.send_header("Location", near + "/moved")
            self.end_headers()
            return
        self.answer(open(folder + "/" + parts[-1].partition(":")[2], "rb").read(), "application/octet-stream")
server = http.server.ThreadingHTTPServer(("0.0.0.0", 5000), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(folder + "/cert.pem", folder + "/key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


def setUpModule():
    lender.set_up()


class Attacks(lender.LenderCase):
    def background(self, host, words):
        pid = self.grid.enter(host, f"({words}) > /tmp/background.$$ 2>&1 & echo $!").strip()
        self.addCleanup(self.grid.enter, host, f"pkill -P {pid}; kill {pid}", check=False)

    def open_registry(self):
        """An image of the lent host's, at a registry with a public address."""
        near = f"http://{self.relay['address']}:{NEAR_PORT}"
        self.grid.as_worker(LENT, f"rm -rf /tmp/img; podman save -q --format docker-dir -o /tmp/img {IMAGE}")
        there = self.grid.disk(RELAY, "home/worker/registry")
        shutil.copytree(self.grid.disk(LENT, "tmp/img"), there, dirs_exist_ok=True)
        with open(os.path.join(there, "registry.py"), "w", encoding="utf-8") as file:
            file.write(REGISTRY)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{there}/key.pem", "-out", f"{there}/cert.pem",
                        "-days", "2", "-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"], check=True, capture_output=True)
        self.grid.enter(RELAY, f"ip addr add {PUBLIC}/32 dev lo")
        self.addCleanup(self.grid.enter, RELAY, f"ip addr del {PUBLIC}/32 dev lo", check=False)
        self.background(RELAY, f"python3 /home/worker/registry/registry.py /home/worker/registry {near} http://127.0.0.1:{OWN_PORT}")
        for host, port in ((RELAY, NEAR_PORT), (LENT, OWN_PORT)):
            self.background(host, f"mkdir -p /tmp/hits; cd /tmp/hits; python3 -m http.server {port} 2> /tmp/hits.log")
        certs = self.grid.disk(LENT, f"etc/containers/certs.d/{NAME}:{REGISTRY_PORT}")
        os.makedirs(certs, exist_ok=True)
        shutil.copy(os.path.join(there, "cert.pem"), os.path.join(certs, "ca.crt"))
        self.grid.enter(LENT, f"echo {PUBLIC} {NAME} >> /etc/hosts; ip route add default via {self.relay['address'].rpartition('.')[0]}.254")
        with open(os.path.join(os.path.dirname(os.path.dirname(self.grid.disk(RELAY).rstrip("/"))), "router.pid"), encoding="utf-8") as file:
            subprocess.run(["nsenter", "-t", file.read().split()[0], "-n", "ip", "route", "replace", PUBLIC + "/32", "dev", f"w{RELAY}"], check=True)
        self.addCleanup(self.grid.enter, LENT, f"sed -i /{NAME}/d /etc/hosts; ip route del default", check=False)
        wait_until("the registry", 5, lambda: "200" in self.grid.enter(
            LENT, f"curl -s -o /dev/null -w '%{{http_code}}' --cacert /etc/containers/certs.d/{NAME}:{REGISTRY_PORT}/ca.crt "
                  f"https://{NAME}:{REGISTRY_PORT}/v2/", check=False),
            lambda: self.grid.enter(RELAY, "cat /tmp/background.*; ss -ltn", check=False) + self.grid.enter(
                LENT, f"ip route; curl -m 5 -v https://{NAME}:{REGISTRY_PORT}/v2/ 2>&1", check=False))

    def hits(self):
        return [line for host in (RELAY, LENT) for line in self.grid.enter(host, "cat /tmp/hits.log", check=False).splitlines() if "GET" in line]

    def test_an_image_leads_the_engine_to_public_addresses_only(self):
        self.open_registry()
        self.joined("bob", f"--registries {NAME}:{REGISTRY_PORT}")
        def ended(name, image):
            job = self.laptop.submit({"name": name, "image": f"{NAME}:{REGISTRY_PORT}/{image}", "run": "echo it began", "resources": {"cpus": 0.5}})
            job.wait_state("FAILED", "SUCCEEDED", deadline=90)
            return job
        for name, image in (("layers", "layers/img:1"), ("moved", "moved/img:1")):
            job = ended(name, image)
            self.assertEqual(self.hits(), [], job.evidence())
            self.assertEqual(job.state, "FAILED", job.evidence())
        job = ended("good", "good/img:1")
        self.assertEqual(job.state, "SUCCEEDED", job.evidence())

    def test_an_archive_takes_no_name_of_the_owners(self):
        self.joined()
        self.grid.as_worker(LENT, f"podman tag {IMAGE} localhost/owners:1; printf 'FROM {IMAGE}\\nLABEL evil=1\\n' | podman build -q -t localhost/evil:1 - ")
        def ids():
            return self.grid.as_worker(LENT, "podman image inspect --format '{{.Id}}' localhost/owners:1 localhost/evil:1").split()
        owners, evil = ids()
        self.assertNotEqual(owners, evil)
        self.grid.as_worker(LENT, "podman tag localhost/evil:1 localhost/owners:1; podman tag localhost/evil:1 localhost/brought:1; rm -f /tmp/evil.tar; "
                                  f"podman save -q -m -o /tmp/evil.tar localhost/owners:1 localhost/brought:1; podman tag {owners} localhost/owners:1; podman rmi localhost/brought:1 localhost/evil:1")
        archive = os.path.join(self.laptop.folder, "evil.tar")
        shutil.copy(self.grid.disk(LENT, "tmp/evil.tar"), archive)
        job = self.laptop.submit({"name": "evil", "image": "./evil.tar", "run": "echo it began", "resources": {"cpus": 0.5}})
        job.wait_success(deadline=120)
        self.assertIn("it began", job.logs())
        now = self.grid.as_worker(LENT, "podman image inspect --format '{{.Id}}' localhost/owners:1").strip()
        self.assertEqual(now, owners, "the archive has taken the owner's name")
        self.assertNotIn("brought", self.grid.as_worker(LENT, "podman image ls"))

    def test_limits_hold_without_supervisor_and_researcher(self):
        self.joined("bob", "--max-job 15s")
        job = self.laptop.submit(plain("orphan", image=IMAGE, envs={"STEPS": 100000}))
        job.wait_checkpoint(1)
        self.grid.partition(LENT)
        self.addCleanup(self.grid.heal, LENT)
        self.grid.signal(LENT, self.grid.pids(LENT, "gridctl-agent (supervise|connect)"), signal.SIGKILL)
        self.assertEqual(len(self.grid.as_worker(LENT, "podman ps -q").split()), 1)
        wait_until("the limit to end it", 30, lambda: not self.grid.as_worker(LENT, "podman ps -q").split(),
                   lambda: self.grid.as_worker(LENT, "ps -ef; cat .gridctl/lend/*/log"))
        self.grid.heal(LENT)
        self.laptop.run("job", "cancel", job.id)


SAVES = """
trap 'cat $GRIDCTL_NOTICE_FILE; echo saved > $GRIDCTL_CKPT_DIR/state; echo saved at the warning; exit 0' USR1
echo ready; [ -z "$GRIDCTL_RESUME_FROM" ] || { echo resumed with $(cat $GRIDCTL_CKPT_DIR/state); exit 0; }
while :; do sleep 0.1; done"""


class Notices(lender.LenderCase):
    def saves(self, name):
        job = self.laptop.submit({"name": name, "image": IMAGE, "run": SAVES, "resources": {"cpus": 0.5},
                                  "recovery": {"notice": "USR1"}, "checkpoint": {"interval": "1s"}})
        job.wait_output("ready")
        return job

    def test_a_pause_warns_the_job_and_what_it_saves_then_is_kept(self):
        self.joined()
        job = self.saves("paused")
        began = time.monotonic()
        self.assertIn("1 job ended", self.owners("lend pause --grace 20s"))
        self.assertLess(time.monotonic() - began, grid.bound(15), "it has saved and gone before TERM")
        self.owners("lend resume")
        job.wait_success(deadline=90)
        first = job.logs("--attempt", "1")
        self.assertIn('"reason": "pause"', first, job.evidence())
        self.assertIn("saved at the warning", first)
        self.assertIn("resumed with saved", job.logs())

    def test_a_shutdown_that_is_announced_warns_it(self):
        self.joined()
        job = self.saves("going-down")
        at = (int(time.time()) + 38) * 1_000_000
        self.grid.enter(LENT, f"mkdir -p /run/systemd/shutdown; printf 'USEC={at}\\nWARN_WALL=1\\nMODE=poweroff\\n' > /run/systemd/shutdown/scheduled")
        self.addCleanup(self.grid.enter, LENT, "rm -rf /run/systemd/shutdown")
        wait_until("the job to leave", 40, lambda: not self.grid.as_worker(LENT, "podman ps -q").split(), job.evidence)
        self.assertLess(time.time() * 1_000_000, at, "it left after the shutdown")
        wait_until("a refusal to begin there once more", 30, lambda: "shuts down at" in job.evidence() + self.owners("lend log"), job.evidence)
        self.grid.enter(LENT, "rm -rf /run/systemd/shutdown")
        job.wait_success(deadline=120)
        self.assertIn('"reason": "shutdown"', job.logs("--attempt", "1"), job.evidence())
        self.assertIn("resumed with saved", job.logs())


if __name__ == "__main__":
    unittest.main()
