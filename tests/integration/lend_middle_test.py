# SPDX-License-Identifier: Apache-2.0
"""Who stands between a researcher and a lent machine, or in the place of its agent: what a relay that changes, repeats or
exchanges bytes gets, and what a machine gets that lies in every text it tells."""
import json
import os
import subprocess
import unittest

import grid
import lend_test
import lender
from grid import wait_until
from lender import IMAGE, LENT, RELAY
from lend_clients_test import Client

# In place of the relay's program. Changes what the researcher sends behind the handshake, TLS record by TLS record.
MIDDLE = r'''#!/usr/bin/python3
import os, subprocess, sys, threading, time
home = os.path.expanduser("~")
real, words = home + "/.gridctl-relay/real-agent", sys.argv[1:]
def setting(name):
    with open(home + "/" + name, encoding="utf-8") as file:
        return file.read().strip()
mode = setting("mode")
if words[1:2] != ["call"] or mode == "pass":
    os.execv(real, ["gridctl-agent", *words])
if mode == "exchange":
    one, other = setting("pair").split()
    os.execv(real, ["gridctl-agent", "relay", "call", other if words[2] == one else one])
child = subprocess.Popen([real, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def down():
    while piece := os.read(child.stdout.fileno(), 65536):
        os.write(1, piece)
    os._exit(0)
threading.Thread(target=down, daemon=True).start()
def send(data):
    child.stdin.write(data)
    child.stdin.flush()
record = open(f"{home}/recorded.{os.getpid()}", "wb") if mode == "record" else None
buffer, count, held = b"", 0, b""
while piece := os.read(0, 65536):
    if record:
        record.write(piece)
        record.flush()
        send(piece)
        continue
    buffer += piece
    while len(buffer) >= 5 and len(buffer) >= 5 + int.from_bytes(buffer[3:5], "big"):
        size = 5 + int.from_bytes(buffer[3:5], "big")
        one, buffer, count = buffer[:size], buffer[size:], count + 1
        if count <= 4:
            send(one)
            continue
        with open(home + "/changed", "w") as file:
            file.write(mode)
        if mode == "repeat":
            send(one + one)
        elif mode == "flip":
            send(one[:-3] + bytes([one[-3] ^ 1]) + one[-2:])
        elif mode == "insert":
            send(b"\x17\x03\x03\x00\x20" + b"A" * 32 + one)
        elif mode == "omit":
            send(one if count > 5 else b"")
        elif mode == "reorder":
            held = b"" if held else one
            send(b"" if held else one + held)
        elif mode == "reflect":
            os.write(1, one)
            send(one)
        elif mode == "cut":
            send(one[:len(one) // 2])
            child.stdin.close()
            time.sleep(1)
            os._exit(0)
child.stdin.close()
child.wait()
'''

# In place of the agent of the lent machine. Adds to every text that it tells.
LIAR = r'''#!/usr/bin/python3
import binascii, json, os, struct, subprocess, sys, threading
with open(os.path.expanduser("~/real-agent")) as file:
    real = file.read().strip()
if sys.argv[1:2] != ["connect"]:
    os.execv(real, [real, *sys.argv[1:]])
EVIL = "\x1b]0;owned\x07\x1b[31m\nhint: gridctl evil\r\n\u202e\u009b"
KEPT = {"op", "id", "job", "epoch", "phase", "end", "doing", "kind", "vendor", "uuid", "boot_id", "machine_id", "build", "peer_key", "peer_proof",
        "code", "retry", "root", "features", "host_key", "receipts", "pending", "part", "pci", "arch", "attribute"}
def lie(value, key=""):
    if isinstance(value, dict):
        return {name: lie(part, name) for name, part in value.items()}
    if isinstance(value, list):
        return value if key in KEPT else [lie(part, key) for part in value]
    return value + EVIL if isinstance(value, str) and key not in KEPT and 0 < len(value) < 3000 else value
def encode(kind, stream, payload):
    head = b"GF" + bytes([kind, 0]) + struct.pack(">II", stream, len(payload))
    return head + struct.pack(">I", binascii.crc32(head + payload)) + payload
child = subprocess.Popen([real, *sys.argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def up():
    while piece := os.read(0, 65536):
        child.stdin.write(piece)
        child.stdin.flush()
    child.stdin.close()
threading.Thread(target=up, daemon=True).start()
def put(data):
    while data:
        data = data[os.write(1, data):]
BEGIN = b"\nGRIDCTL-AGENT/1\n"
buffer, begun = b"", False
while piece := os.read(child.stdout.fileno(), 65536):
    buffer += piece
    if not begun:
        at = buffer.find(BEGIN)
        if at < 0:
            continue
        put(EVIL.encode() + BEGIN)
        buffer, begun = buffer[at + len(BEGIN):], True
    while len(buffer) >= 16 and len(buffer) >= 16 + struct.unpack(">I", buffer[8:12])[0]:
        size = struct.unpack(">I", buffer[8:12])[0]
        kind, stream, payload = buffer[2], struct.unpack(">I", buffer[4:8])[0], buffer[16:16 + size]
        buffer = buffer[16 + size:]
        if kind in (2, 4, 5):
            told = lie(json.loads(payload))
            for one in told.get("attempts", []):
                one["no_checkpoint"] = "x" + EVIL
                for checkpoint in one.get("checkpoints", []):
                    checkpoint["notes"] = ["left out: x" + EVIL]
            payload = json.dumps(told).encode()
        put(encode(kind, stream, payload))
'''


def setUpModule():
    lender.set_up()


class Middle(lender.LenderCase):
    def program(self, host, path, text):
        with open(self.grid.disk(host, path), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.grid.disk(host, path), 0o755)

    def state_of(self, host):
        return self.grid.as_worker(host, "cd .gridctl; cat lend/*/session lend/*/terms.json lend/*/receipts/accepted 2> /dev/null; find jobs kept snapshots 2> /dev/null | sort",
                                   check=False)

    def check(self, name):
        return self.laptop.run("provider", "check", name, "--timeout", "20s", check=False).code

    def test_a_relay_that_changes_what_passes_gets_nothing(self):
        """Records twice, changed, of its own, missing, in another order, sent back, cut; the bytes of another call; another machine's."""
        self.joined("bob")
        self.joined("carl", host=3)
        ids = [self.laptop.run("provider", "show", name, "--json").json["address"].partition(":")[2] for name in ("bob", "carl")]
        wait_until("both keys to be in use", 30, lambda: all(
            self.grid.as_worker(host, "ls .gridctl/lend/*/session_proven || true").strip() for host in (LENT, 3)))
        self.laptop.run("daemon", "stop")
        self.program(RELAY, "home/worker/middle", MIDDLE)
        set_mode = lambda mode: self.grid.as_worker(RELAY, f"rm -f changed; echo {mode} > mode")
        self.grid.as_worker(RELAY, f"cd .gridctl-relay; mv gridctl-agent real-agent; cp ~/middle gridctl-agent; echo {' '.join(ids)} > ~/pair")
        self.addCleanup(self.grid.as_worker, RELAY, "cd .gridctl-relay; mv real-agent gridctl-agent")
        set_mode("record")
        self.assertEqual(self.check("bob"), 0)
        before = self.state_of(LENT), self.state_of(3)
        for mode in ("repeat", "flip", "insert", "omit", "reorder", "reflect", "cut", "exchange"):
            with self.subTest(mode):
                set_mode(mode)
                self.assertNotEqual(self.check("bob"), 0)
                if mode != "exchange":
                    self.assertEqual(self.grid.as_worker(RELAY, "cat changed").strip(), mode)
        set_mode("pass")
        for lent in ids:  # to the machine that it was for, and to another
            told = self.grid.as_worker(RELAY, "for one in recorded.*; do (cat $one; sleep 2) | timeout 10 .gridctl-relay/real-agent relay call " + lent +
                                       "; done | tr -cd '[:print:]'; true", check=False)
            self.assertNotIn("GRIDCTL-AGENT", told)
        self.assertEqual((self.state_of(LENT), self.state_of(3)), before)
        for name in ("bob", "carl"):
            self.assertEqual(self.check(name), 0, "it heals")
        self.assertIn("does not have the agreed key", self.owners("lend log"))

    def test_no_key_is_agreed_on_twice_and_no_older_protocol_is_spoken(self):
        token = self.token("bob")
        self.laptop.run("daemon", "stop")
        self.owners(f"provider join {token} --yes {lender.IMAGES}")
        self.addCleanup(self.owners, "lend leave --grace 1s || true")
        one, other = Client(self), Client(self)
        for client in (one, other):  # nobody has used a key yet: an answer may have been lost
            self.assertIn("part", client.ask("rekey", part="01" * 32))
        self.assertEqual([self.check("bob") for _ in range(2)], [0, 0])
        before = self.state_of(LENT)
        for client in (one, other):
            self.assertIn("have agreed on a key already", json.dumps(client.ask("rekey", part="01" * 32)))
        self.assertEqual(self.state_of(LENT), before)
        self.assertEqual(self.check("bob"), 0)
        for versions in ((0, 0), (2, 9), (1, 0)):
            self.assertIn("no common protocol version", json.dumps(Client(self, versions).hello))
        for controller in ("a" * 13, "../../x", ""):
            with self.assertRaises((EOFError, AssertionError)):
                self.assertNotIn("error", Client(self, controller=controller).hello)

    def test_a_try_to_join_that_failed_spoils_no_token(self):
        """The relay was away; a folder for news of jobs may be left of it."""
        token = self.token("bob")
        self.grid.partition(RELAY)
        self.addCleanup(self.grid.heal, RELAY)
        self.assertIn("while calling", self.owners(f"provider join {token} --yes {lender.IMAGES} --timeout 8s", code=5))
        self.grid.heal(RELAY)
        self.grid.as_worker(LENT, f"mkdir -p .gridctl/jobs/{lend_test.Lend.controller_of(token)}/notify")
        self.owners(f"provider join {token} --yes {lender.IMAGES}")
        self.addCleanup(self.owners, "lend leave --grace 1s || true")
        self.wait_provider("bob")

    def invitation(self):
        return os.path.dirname(self.grid.as_worker(LENT, "ls -t $HOME/.gridctl/lend/*/token | head -1").strip())

    def test_texts_of_a_machine_are_only_texts(self):
        """In each that it tells are escape sequences, and a line that looks like a hint of ours."""
        self.joined("bob")
        folder = self.invitation()
        self.laptop.run("daemon", "stop")
        self.program(LENT, "home/worker/liar", LIAR)
        self.grid.as_worker(LENT, f"cp {folder}/agent real-agent; printf /home/worker/liar > {folder}/agent")
        self.laptop.run("daemon", "start")
        job = self.laptop.submit({"name": "told", "image": IMAGE, "resources": {"cpus": 0.5}, "checkpoint": {"interval": "1s"}, "outputs": ["*"],
                                  "run": "mkfifo 'a\nb'; for n in $(seq 12); do echo $n > $GRIDCTL_CKPT_DIR/n; sleep 1; done; exit 3", "recovery": {"max_failures": 1}})
        job.wait_state("FAILED", deadline=90)
        lost = self.laptop.submit({"name": "noimage", "image": "docker.io/nothing/here:1", "resources": {"cpus": 0.5}, "run": "true"})
        wait_until("its error", 60, lambda: "owned" in self.laptop.run("job", "events", lost.id).out, lost.evidence)
        shown = 0
        for words in (["provider", "rescan", "bob"], ["provider", "show", "bob"], ["provider", "show", "bob", "--json"], ["provider", "check", "bob"], ["provider", "bench", "bob"],
                      ["provider", "ls"], ["provider", "links"], ["job", "ls"], ["job", "show", job.id], ["job", "events", job.id], ["job", "explain", job.id],
                      ["job", "explain", lost.id], ["job", "events", lost.id], ["job", "show", lost.id], ["job", "pull", job.id, os.path.join(self.laptop.folder, "pulled")],
                      ["checkpoint", "ls", job.id], ["job", "report", job.id], ["top", "--once"], ["top", "--json"], ["doctor"], ["daemon", "status"]):
            told = self.laptop.run(*words, check=False)
            text = told.out + told.err
            shown += text.count("owned")
            with self.subTest(words):
                self.assertEqual({c for c in text if (c < " " and c not in "\n\t") or c in "\u202e\u009b\x7f"}, set())
                self.assertEqual([line for line in text.split("\n") if line.strip().startswith("hint: gridctl evil")], [], text)
        self.assertGreater(shown, 30, "it has lied")


if __name__ == "__main__":
    unittest.main()
