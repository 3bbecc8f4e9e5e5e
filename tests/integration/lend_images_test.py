# SPDX-License-Identifier: Apache-2.0
"""A lent host runs images by the digest that their registry told the researcher's machine: a registry of the test's own,
with tokens, at an address that stands for one of the Internet."""
import hashlib
import json
import os
import shutil
import subprocess
import unittest

import grid
import lender
from grid import wait_until
from lender import IMAGE, LENT, RELAY

PUBLIC = "93.184.215.14"  # stands for an address of the Internet; these hosts reach none
NAME = "registry.example.net"
PORT = 5000

# A registry of one image, team/img, that gives manifests only for a token. The file `tag` says what the tag 1 means: the
# manifest, an index of it, or the digest of another one. The file `log` has what was asked for.
REGISTRY = r"""
import hashlib, http.server, json, ssl, sys
folder, url = sys.argv[1:3]
manifest = open(folder + "/manifest.json", "rb").read()
kind = json.loads(manifest)["mediaType"]
def named(body):
    return "sha256:" + hashlib.sha256(body).hexdigest()
index_kind = "application/vnd.oci.image.index.v1+json"
index = json.dumps({"schemaVersion": 2, "mediaType": index_kind, "manifests": [
    {"mediaType": kind, "digest": named(manifest), "size": len(manifest), "platform": {"architecture": sys.argv[3], "os": "linux"}}]}).encode()
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_):
        with open(folder + "/log", "a") as log:
            log.write(self.headers.get("User-Agent", "-").split("/")[0] + " " + self.command + " " + self.path + "\n")
    def do_HEAD(self):
        self.do_GET()
    def answer(self, status, body, *headers):
        self.send_response(status)
        for name, value in headers + (("Content-Length", str(len(body))),):
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)
    def do_GET(self):
        if self.path.startswith("/token?"):
            return self.answer(200, json.dumps({"token": "t0ken"}).encode())
        if self.headers.get("Authorization") != "Bearer t0ken":
            return self.answer(401, b"{}", ("WWW-Authenticate", f'Bearer realm="{url}/token",service="test"'))
        if self.path == "/v2/":
            return self.answer(200, b"{}")
        what = self.path.rsplit("/", 1)[1]
        tag = open(folder + "/tag").read().strip()
        if "/manifests/" in self.path:
            body = index if what == named(index) or (what == "1" and tag == "index") else manifest
            told = "sha256:" + "0" * 64 if what == "1" and tag == "lie" else named(body)
            if what not in ("1", named(manifest), named(index)):
                return self.answer(404, b"{}")
            return self.answer(200, body, ("Content-Type", index_kind if body == index else kind), ("Docker-Content-Digest", told))
        try:
            self.answer(200, open(folder + "/" + what.partition(":")[2], "rb").read(), ("Content-Type", "application/octet-stream"))
        except OSError:
            self.answer(404, b"{}")
server = http.server.ThreadingHTTPServer(("0.0.0.0", int(url.rpartition(":")[2])), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(folder + "/cert.pem", folder + "/key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


def setUpModule():
    lender.set_up()
    grid.Laptop.image_constraints = {}


def here(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@unittest.skipUnless(os.environ.get("GRIDCTL_ISOLATED"), "changes /etc/hosts, so it needs mounts of its own (tests/integration/isolated)")
class Images(lender.LenderCase):
    def put_over(self, path, add):
        """A file of this machine reads as if it ended with that, for the processes of this test."""
        ours = os.path.join(self.laptop.folder, os.path.basename(path))
        with open(path, encoding="utf-8") as file, open(ours, "w", encoding="utf-8") as copy:
            copy.write(file.read() + add)
        here("mount", "--bind", ours, path)
        self.addCleanup(here, "umount", "-l", path)

    def prepare_registry(self):
        self.folder = self.grid.disk(RELAY, "home/worker/registry")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.grid.as_worker(LENT, f"rm -rf /tmp/img; podman save -q --format docker-dir -o /tmp/img {IMAGE}")
        shutil.copytree(self.grid.disk(LENT, "tmp/img"), self.folder)
        with open(os.path.join(self.folder, "manifest.json"), "rb") as file:
            self.manifest = "sha256:" + hashlib.sha256(file.read()).hexdigest()
        with open(os.path.join(self.folder, "registry.py"), "w", encoding="utf-8") as file:
            file.write(REGISTRY)
        self.tag("manifest")
        here("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{self.folder}/key.pem", "-out", f"{self.folder}/cert.pem",
             "-days", "2", "-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}")
        self.grid.enter(RELAY, f"ip addr add {PUBLIC}/32 dev lo")
        self.addCleanup(self.grid.enter, RELAY, f"ip addr del {PUBLIC}/32 dev lo", check=False)
        certs = self.grid.disk(LENT, f"etc/containers/certs.d/{NAME}:{PORT}")
        os.makedirs(certs, exist_ok=True)
        shutil.copy(os.path.join(self.folder, "cert.pem"), os.path.join(certs, "ca.crt"))
        self.grid.enter(LENT, f"echo {PUBLIC} {NAME} >> /etc/hosts; ip route add default via {self.relay['address'].rpartition('.')[0]}.254")
        self.addCleanup(self.grid.enter, LENT, f"sed -i /{NAME}/d /etc/hosts; ip route del default", check=False)
        with open(os.path.join(os.path.dirname(os.path.dirname(self.grid.disk(RELAY).rstrip("/"))), "router.pid"), encoding="utf-8") as file:
            here("nsenter", "-t", file.read().split()[0], "-n", "ip", "route", "replace", PUBLIC + "/32", "dev", f"w{RELAY}")
        way = here("ip", "-j", "route", "get", self.relay["address"])
        way = json.loads(way)[0]
        here("ip", "route", "replace", PUBLIC + "/32", *(["via", way["gateway"]] if "gateway" in way else []), "dev", way["dev"])
        self.put_over("/etc/hosts", f"{PUBLIC} {NAME}\n")
        with open(os.path.join(self.folder, "cert.pem"), encoding="utf-8") as file:
            self.put_over(os.path.realpath("/etc/ssl/certs/ca-certificates.crt"), file.read())

    def tag(self, meaning):
        with open(os.path.join(self.folder, "tag"), "w", encoding="utf-8") as file:
            file.write(meaning)

    def start_registry(self):
        pid = self.grid.enter(RELAY, f"(python3 /home/worker/registry/registry.py /home/worker/registry https://{NAME}:{PORT} "
                                     "$(uname -m | sed s/x86_64/amd64/) > /tmp/registry.out 2>&1) & echo $!").strip()
        stop = f"pkill -P {pid}; kill {pid}"
        self.addCleanup(self.grid.enter, RELAY, stop, check=False)
        wait_until("the registry", 10, lambda: subprocess.run(
            ["curl", "-s", "-m", "2", "-o", "/dev/null", f"https://{NAME}:{PORT}/v2/"], check=False).returncode == 0,
            lambda: self.grid.enter(RELAY, "cat /tmp/registry.out; ss -ltn", check=False))
        return stop

    def asked(self):
        path = os.path.join(self.folder, "log")
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as file:
            return [line for line in file.read().splitlines() if "/manifests/" in line]

    def job(self, name, run="echo it began", **more):
        return {"name": name, "image": f"{NAME}:{PORT}/team/img:1", "run": run, "resources": {"cpus": 0.5}, **more}

    def test_a_tag_is_resolved_here_and_the_lent_host_is_given_the_digest(self):
        self.prepare_registry()
        self.start_registry()
        self.joined("bob", f"--registries {NAME}:{PORT}")
        job = self.laptop.submit(self.job("first"))
        job.wait_state("SUCCEEDED", "FAILED", deadline=90)
        self.assertEqual(job.state, "SUCCEEDED", job.evidence() + "\n".join(self.asked()))
        self.assertEqual(job.show()["image_digests"], {f"{NAME}:{PORT}/team/img:1": self.manifest})
        self.assertIn(self.manifest, self.laptop.run("job", "show", job.id).out)
        by_host = [line for line in self.asked() if not line.startswith("gridctl")]
        self.assertTrue(by_host and all(line.endswith(self.manifest) for line in by_host), self.asked())
        with self.subTest("an index, and the next attempt of a job whose tag has moved"):
            self.tag("index")
            job = self.laptop.submit(self.job("moves", "echo attempt $GRIDCTL_ATTEMPT; [ $GRIDCTL_ATTEMPT = 2 ]", recovery={"max_failures": 0}))
            job.wait_state("FAILED", deadline=90)
            index = list(job.show()["image_digests"].values())
            self.assertNotEqual(index, [self.manifest])
            self.tag("manifest")
            self.laptop.run("job", "resume", job.id)
            job.wait_success(60)
            self.assertEqual(list(job.show()["image_digests"].values()), index)
        with self.subTest("a registry that lies about the digest"):
            self.tag("lie")
            told = self.laptop.run("job", "submit", "--dry-run", self.laptop.write_job(self.job("lie")))
            self.assertIn("it says that the digest is sha256:0000", told.out)
            self.assertIn("bob cannot (image_tag, for now)", told.out)
        with self.subTest("a name that it does not have"):
            told = self.laptop.run("job", "submit", "--dry-run", self.laptop.write_job(self.job("none", image=f"{NAME}:{PORT}/team/img:2")))
            self.assertIn("it has no image team/img:2", told.out)

    def test_a_job_waits_for_a_registry_that_comes_back(self):
        self.prepare_registry()
        self.joined("bob", f"--registries {NAME}:{PORT}")
        job = self.laptop.submit(self.job("patient"))
        job.wait("an explanation", 30, lambda: f"registry {NAME}:{PORT}: " in self.laptop.run("job", "explain", job.id).out)
        told = self.laptop.run("job", "explain", job.id).out
        self.assertIn("constraints: {images: tags}", told)
        self.assertIn("@sha256:", told)
        self.assertEqual(job.state, "PENDING")
        self.start_registry()
        job.wait_state("SUCCEEDED", "FAILED", deadline=120)
        self.assertEqual(job.state, "SUCCEEDED", job.evidence())
        self.assertEqual(list(job.show()["image_digests"].values()), [self.manifest])

    def test_an_image_that_only_the_host_has_needs_a_word(self):
        self.joined()
        spec = {"name": "owners", "image": IMAGE, "run": "echo it began", "resources": {"cpus": 0.5}}
        refused = self.laptop.run("job", "submit", self.laptop.write_job(spec), code=4)
        self.assertIn("is of no registry", refused.err)
        self.assertIn("constraints: {images: tags}", refused.err)
        job = self.laptop.submit({**spec, "constraints": {"images": "tags"}})
        job.wait_success(60)
        refused = self.laptop.run("job", "resume", job.id, "--images", "digests", code=4)
        self.assertIn("is of no registry", refused.err)
        refused = self.laptop.run("job", "resume", job.id, "--images", "maybe", code=2)
        self.assertIn("--images: expected digests or tags, got 'maybe'", refused.err)
        self.laptop.run("job", "resume", job.id, "--images", "tags")
        job.wait("another attempt", 60, lambda: len(job.attempts()) == 2 and job.state == "SUCCEEDED")


if __name__ == "__main__":
    unittest.main()
