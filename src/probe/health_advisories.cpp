// SPDX-License-Identifier: Apache-2.0
// What is publicly known against the programs through which hosts are reached or jobs are run. Only what matters to
// gridctl: a job that gets its host, a stranger that gets in, a host that gets this machine. Upstream ranges from the
// projects' own advisories; Debian's revisions from the packages' changelogs.
#include "probe/health_packages.hpp"

namespace gridctl::probe {
namespace {

constexpr Advisory k_advisories[] = {
    {"CVE-2024-6387", "openssh", "8.5p1", "9.8p1", "bookworm 1:9.2p1-2+deb12u3, bullseye -, buster -, trixie -",
     "sshd: a stranger may get root (regreSSHion)", true},
    {"CVE-2023-48795", "openssh", "", "9.6p1", "bookworm 1:9.2p1-2+deb12u2, bullseye 1:8.4p1-5+deb11u3, trixie -",
     "somebody on the way can cut messages out of the beginning of a connection (Terrapin)"},
    {"CVE-2025-26465", "openssh", "6.8p1", "9.9p2", "bookworm 1:9.2p1-2+deb12u5, bullseye 1:8.4p1-5+deb11u4, trixie -",
     "ssh with VerifyHostKeyDNS believes a wrong host key"},
    {"CVE-2023-38408", "openssh", "5.5p1", "9.3p2", "bookworm 1:9.2p1-2+deb12u1, trixie -",
     "a host to which the agent is forwarded can run code here"},
    {"CVE-2025-61984", "openssh", "", "10.1p1", "bookworm 1:9.2p1-2+deb12u8",
     "user names with control characters reach the shell of a ProxyCommand"},
    {"CVE-2026-55200", "libssh2", "1.11.0", "1.11.2", "bookworm -, bullseye -",
     "a host can overwrite memory of the gridctl that connects to it", true},
    {"CVE-2019-13115", "libssh2", "", "1.9.0", "buster -", "a host can read memory of the gridctl that connects to it"},
    {"CVE-2024-21626", "runc", "1.0.0", "1.1.12", "bookworm 1.1.5+ds1-1+deb12u1, trixie -",
     "a container's image can reach the host's files (Leaky Vessels)", true},
    {"CVE-2025-31133", "runc", "", "1.2.8", "", "a container can write to files of the host's kernel (maskedPaths)",
     true},
    {"CVE-2025-31133", "runc", "1.3.0", "1.3.3", "",
     "a container can write to files of the host's kernel (maskedPaths)", true},
    {"CVE-2024-41110", "docker", "19.03", "23.0.15", "bookworm 20.10.24+dfsg1-1+deb12u1, trixie -",
     "authorisation plugins can be passed by; without such plugins nothing is lost"},
    {"CVE-2024-1753", "podman", "", "4.9.4", "",
     "an image that is built there can reach the host's files; gridctl builds none"},
    {"CVE-2024-0132", "nvidia-container-toolkit", "", "1.16.2", "", "a container's image can reach the host's files",
     true},
    {"CVE-2025-23359", "nvidia-container-toolkit", "1.16.2", "1.17.4", "",
     "a container's image can reach the host's files", true},
    {"CVE-2025-23266", "nvidia-container-toolkit", "1.17.4", "1.17.8", "",
     "a container's image can run code on the host (NVIDIAScape)", true},
    {"CVE-2024-1086", "linux", "6.1", "6.1.76", "", "a local user can become root (nf_tables)", true},
    {"CVE-2024-1086", "linux", "6.6", "6.6.15", "", "a local user can become root (nf_tables)", true},
    {"CVE-2022-0847", "linux", "5.8", "5.10.92", "", "a local user can overwrite any file (Dirty Pipe)", true},
    {"CVE-2022-0847", "linux", "5.15", "5.15.25", "", "a local user can overwrite any file (Dirty Pipe)", true},
};

}  // namespace

std::span<const Advisory> advisories() { return k_advisories; }

}  // namespace gridctl::probe
