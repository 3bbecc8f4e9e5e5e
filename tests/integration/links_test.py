# SPDX-License-Identifier: Apache-2.0
"""What is measured of links, against what the links were made to be; firewalls; hosts that are not where they say."""
import re
import sqlite3
import unittest

import grid
from grid import figure, wait_until

MIB = 1 << 20
SLOW = 2            # 100 Mbit/s, 40 ms
RTT, RATE = 40, 100e6
FIREWALLED = 3      # refuses connections to all but its sshd
DAY_BYTES = 512 * MIB


def setUpModule():
    global laptop
    the_grid = grid.up(3)
    laptop = the_grid.laptop()
    # 1 and 3 stand in one room, and one of them says that it stands in Australia
    laptop.register(1, None, "process", "--label", "measure=10GB", "--site", "hpc", "--region", "DE")
    laptop.register(SLOW, None, "process", "--label", "measure=10GB", "--site", "hpc", "--region", "DE")
    laptop.register(FIREWALLED, None, "process", "--label", "measure=10GB", "--site", "hpc", "--region", "AU")
    the_grid.command("shape", SLOW, "100mbit", f"{RTT}ms")
    the_grid.enter(SLOW, "iptables -A INPUT -p tcp --syn --dport 1024:65535 -j DROP")
    the_grid.enter(FIREWALLED, "iptables -A INPUT -p tcp --syn --dport 1024:65535 -j REJECT --reject-with tcp-reset")


def carried(the_grid, host):
    """Bytes that went over the host's wire so far."""
    text = the_grid.enter(host, "cat /sys/class/net/eth0/statistics/rx_bytes /sys/class/net/eth0/statistics/tx_bytes")
    return sum(map(int, text.split()))


def open_ports(the_grid, host):
    """TCP ports that are listened on, from the kernel's tables."""
    text = the_grid.enter(host, "cat /proc/net/tcp /proc/net/tcp6")
    return {int(line.split()[1].rpartition(":")[2], 16) for line in text.splitlines() if " 0A " in line}


class Links(grid.Case):
    shown = None

    @classmethod
    def measured(cls):
        """The first measurement of all, made once, without a daemon."""
        if cls.shown is None:
            the_grid = grid.the_grid
            before = {host: carried(the_grid, host) for host in the_grid.hosts}
            done = laptop.run("provider", "links", "--measure", "--json", timeout=280)
            cls.shown = done.json
            cls.carried = {host: carried(the_grid, host) - before[host] for host in the_grid.hosts}
            figure("measuring three hosts and their links", f"{done.seconds:.1f} s")
        return cls.shown

    def link(self, source, target):
        found = [one for one in self.measured()["links"] if (one["source"], one["target"]) == (source, target)]
        self.assertEqual(len(found), 1, f"{source} to {target} in {self.measured()['links']}")
        return found[0]

    def contact(self, source, target):
        found = [one for one in self.measured()["contacts"] if (one["from"], one["to"]) == (source, target)]
        self.assertEqual(len(found), 1, f"{source} to {target} in {self.measured()['contacts']}")
        return found[0]

    def host(self, name, shown=None):
        return next(one for one in (shown or self.measured())["hosts"] if one["name"] == name)

    def test_figures_are_those_of_the_links(self):
        # A machine of two cores that does much else: never better than the link, not much worse.
        for source, target in (("@here", "h2"), ("h2", "@here"), ("h1", "h2"), ("h2", "h1")):
            one = self.link(source, target)
            figure(f"rate {source} to {target}, of 100 Mbit/s", f"{one['bits_per_second'] / 1e6:.1f} Mbit/s")
            self.assertGreater(one["bits_per_second"], 0.4 * RATE, one)
            self.assertLess(one["bits_per_second"], 1.1 * RATE, one)
        for source, target in (("@here", "h2"), ("h1", "h2"), ("h2", "h1")):
            one = self.link(source, target)
            figure(f"round trip {source} to {target}, of {RTT} ms", f"{one['rtt_ms']:.1f} ms")
            self.assertGreaterEqual(one["rtt_ms"], RTT)
            self.assertLess(one["rtt_ms"], 2 * RTT)
        for source, target in (("@here", "h1"), ("h1", "h3"), ("h3", "h1")):
            one = self.link(source, target)
            figure(f"round trip {source} to {target}, unshaped", f"{one['rtt_ms']:.2f} ms")
            self.assertLess(one["rtt_ms"], RTT / 2)
            if one["bits_per_second"]:
                figure(f"rate {source} to {target}, unshaped", f"{one['bits_per_second'] / 1e9:.2f} Gbit/s")
        self.assertLess(self.host("h2")["down_bits_per_second"], 1.1 * RATE)
        self.assertGreater(self.host("h1")["down_bits_per_second"], 2 * RATE)

    def test_who_cannot_connect_is_told_with_the_reason(self):
        self.assertTrue(self.contact("h2", "h1")["connects"])
        self.assertTrue(self.contact("h3", "h1")["connects"])
        self.assertRegex(self.contact("h1", "h3")["reason"], "connection refused")
        self.assertRegex(self.contact("h1", "h2")["reason"], "no answer")
        # Between these two no connection works in either direction: no rate, two reasons.
        self.assertRegex(self.contact("h2", "h3")["reason"], "connection refused")
        self.assertRegex(self.contact("h3", "h2")["reason"], "no answer")
        self.assertFalse([one for one in self.measured()["links"] if {one["source"], one["target"]} == {"h2", "h3"}])
        # One way is enough to measure both.
        self.assertIsNotNone(self.link("h1", "h3")["bits_per_second"])
        self.assertIsNotNone(self.link("h3", "h1")["bits_per_second"])

    def test_nothing_listens_afterwards(self):
        self.measured()
        for host in self.grid.hosts:
            self.assertEqual(open_ports(self.grid, host), {22}, f"h{host}")

    def test_the_bytes_are_counted_and_within_the_budget(self):
        self.measured()
        for number in self.grid.hosts:
            spent = self.host(f"h{number}")["measuring_bytes_today"]
            figure(f"bytes of measuring h{number}", f"{spent / MIB:.1f} MiB counted, "
                                                    f"{self.carried[number] / MIB:.1f} MiB on the wire")
            self.assertGreater(spent, 0)
            self.assertLess(spent, DAY_BYTES)
            # Headers, handshakes, acknowledgements, and logins on top.
            self.assertLess(self.carried[number], 1.25 * spent + 4 * MIB)
            self.assertGreater(self.carried[number], spent)
        # All is fresh: to look again costs nothing.
        before = {host: carried(self.grid, host) for host in self.grid.hosts}
        again = laptop.run("provider", "links", "--measure")
        self.assertNotIn("measuring", again.err)
        for host in self.grid.hosts:
            self.assertLess(carried(self.grid, host) - before[host], MIB / 8)

    def test_a_host_far_from_its_declared_site_is_shown(self):
        self.assertRegex(self.host("h2")["site_problem"], r"declared site hpc, but 4\d ms from its other host")
        self.assertIsNone(self.host("h1")["site_problem"])
        self.assertEqual(self.host("h1")["site"], "hpc")
        self.assertEqual(self.host("h3")["site"], "hpc")
        self.assertNotEqual(self.host("h2")["site"], "hpc")
        text = laptop.run("provider", "links", "h2").out
        self.assertIn("declared site hpc", text)
        self.assertNotIn("h3  h1", text)


class WrongCountry(grid.Case):
    """By itself, by the daemon, from nothing but a landmark and the hosts' declarations."""

    def events(self, provider):
        with sqlite3.connect(f"file:{laptop.state}/state.db?mode=ro", uri=True) as db:
            return db.execute("SELECT kind, text FROM host_events WHERE provider = ? ORDER BY id", (provider,)).fetchall()

    def verdict(self, name):
        shown = laptop.run("provider", "links", name, "--json").json
        return shown["hosts"][0]["country_verdict"], shown["hosts"][0]["country_reason"]

    def wait_verdict(self, name, verdict, deadline=120):
        wait_until(f"{name} to be {verdict}", deadline, lambda: self.verdict(name)[0] == verdict,
                   lambda: f"{self.verdict(name)}\n{laptop.evidence()}")
        return self.verdict(name)[1]

    def test_a_liar_is_caught_and_delay_alone_proves_nothing(self):
        laptop.run("provider", "landmark", "add", "fra", "50.11N", "8.68E", "@h1", "--country", "DE")
        laptop.need_daemon()
        # Declared in Australia, and a millisecond from Frankfurt.
        text = self.wait_verdict("h3", "impossible")
        self.assertRegex(text, r"^declared AU, but [\d.]+ ms from landmark fra: light reaches \d+ km in that time, "
                               r"and AU begins 1\d{4} km away$")
        figure("a host declared in Australia", text)
        wait_until("the event", 60, lambda: "country_contradicted" in [kind for kind, _ in self.events("h3")])
        # 40 ms within Germany is nothing strange.
        self.wait_verdict("h2", "plausible")
        # Three hundred are, though they prove nothing: "far", never "impossible".
        self.grid.command("shape", 2, "100mbit", "300ms")
        laptop.run("provider", "links", "h2", "--measure", "--all", timeout=120)
        text = self.wait_verdict("h2", "far")
        self.assertRegex(text, r"^declared DE, but 3\d\d ms from landmark fra there; up to \d+ ms is usual")
        figure("a host far from Germany", text)
        # What a liar can do about it: be slower. It looks farther from everywhere, and is still not in Australia.
        self.assertEqual(self.verdict("h3")[0], "impossible")
        wait_until("round trips of heartbeats", 60, lambda: laptop.run("provider", "links", "h1", "--json")
                   .json["hosts"][0]["rtt_samples"] >= 5, laptop.evidence)


if __name__ == "__main__":
    unittest.main(verbosity=2)
