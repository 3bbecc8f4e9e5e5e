// SPDX-License-Identifier: Apache-2.0
// Lists published advisories against the programs through which hosts are reached or jobs are run, limited to those
// that matter to gridctl: a job that takes over its host, a stranger that gets in, a host that takes over this machine.
// Each row has its source: the project's advisory for the range, Debian's for revisions (DSA, or the package's
// changelog as installed by bookworm). A release whose revision we could not confirm is left out, and its packages are
// then "may be patched".
#include "probe/health_packages.hpp"

namespace gridctl::probe {
namespace {

constexpr Advisory k_advisories[] = {
    // Qualys 2024-07-01, openssh.com/txt/release-9.8; DSA-5724-1. The regression came with 8.5p1.
    {"CVE-2024-6387", "openssh", "8.5p1", "9.8p1", "bookworm 1:9.2p1-2+deb12u3, bullseye -, buster -, trixie -",
     "sshd: an attacker may get root without a login (regreSSHion)", true},
    // openssh.com/txt/release-9.6; changelog of 1:9.2p1-2+deb12u2; DSA-5586-1
    {"CVE-2023-48795", "openssh", "", "9.6p1", "bookworm 1:9.2p1-2+deb12u2, bullseye 1:8.4p1-5+deb11u3, trixie -",
     "someone on the network path can delete messages at the start of a connection (Terrapin)"},
    // openssh.com/txt/release-9.9p2; changelog of 1:9.2p1-2+deb12u5
    {"CVE-2025-26465", "openssh", "6.8p1", "9.9p2", "bookworm 1:9.2p1-2+deb12u5",
     "ssh with VerifyHostKeyDNS accepts a wrong host key"},
    // openssh.com/txt/release-9.3p2; changelog of 1:9.2p1-2+deb12u1
    {"CVE-2023-38408", "openssh", "5.5p1", "9.3p2", "bookworm 1:9.2p1-2+deb12u1, trixie -",
     "a host to which the agent is forwarded can run code here"},
    // openssh.com/txt/release-10.1; changelog of 1:9.2p1-2+deb12u8
    {"CVE-2025-61984", "openssh", "", "10.1p1", "bookworm 1:9.2p1-2+deb12u8",
     "user names with control characters reach the shell of a ProxyCommand"},
    // NVD: "through 1.11.1", mended by commit 97acf3d, in no release yet. libssh2-1.10.0's own src/transport.c refuses
    // lengths above LIBSSH2_PACKET_MAXPAYLOAD on its only path; the paths of 1.11 do not all.
    // Debian's 1.10.0-3+deb12u1,
    // which mends the other advisories of that summer, does not list it.
    {"CVE-2026-55200", "libssh2", "1.11.0", "1.11.2", "bookworm -, bullseye -",
     "a host can overwrite memory of the gridctl that connects to it", true},
    // Debian's changelog of 1.9.0-1
    {"CVE-2019-13115", "libssh2", "", "1.9.0", "", "a host can read memory of the gridctl that connects to it"},
    // GHSA-xr7r-f8xq-vfvv; changelog of 1.1.5+ds1-1+deb12u1
    {"CVE-2024-21626", "runc", "1.0.0", "1.1.12", "bookworm 1.1.5+ds1-1+deb12u1, trixie -",
     "a container's image can reach the host's files (Leaky Vessels)", true},
    // GHSA-9493-h29p-rfm2: all versions; mended in 1.2.8 and 1.3.3
    {"CVE-2025-31133", "runc", "", "1.2.8", "", "a container can write to files of the host's kernel (maskedPaths)",
     true},
    {"CVE-2025-31133", "runc", "1.3.0", "1.3.3", "",
     "a container can write to files of the host's kernel (maskedPaths)", true},
    // GHSA-v23v-6jw2-98fq, with the versions as corrected in github/advisory-database#4653; changelog of
    // 20.10.24+dfsg1-1+deb12u1
    {"CVE-2024-41110", "docker", "19.03", "23.0.15", "bookworm 20.10.24+dfsg1-1+deb12u1, trixie -",
     "authorisation plugins can be bypassed; harmless without such plugins"},
    {"CVE-2024-41110", "docker", "24.0", "26.1.5", "",
     "authorisation plugins can be bypassed; harmless without such plugins"},
    {"CVE-2024-41110", "docker", "27.0", "27.1.1", "",
     "authorisation plugins can be bypassed; harmless without such plugins"},
    // NVIDIA security bulletins of September 2024, February 2025 and July 2025 for the Container Toolkit
    {"CVE-2024-0132", "nvidia-container-toolkit", "", "1.16.2", "", "a container's image can reach the host's files",
     true},
    {"CVE-2025-23359", "nvidia-container-toolkit", "1.16.2", "1.17.4", "",
     "a container's image can reach the host's files", true},
    {"CVE-2025-23266", "nvidia-container-toolkit", "1.17.4", "1.17.8", "",
     "a container's image can run code on the host (NVIDIAScape)", true},
    // Stable releases 6.1.76 and 6.6.15 (kernel.org)
    {"CVE-2024-1086", "linux", "6.1", "6.1.76", "", "a local user can become root (nf_tables)", true},
    {"CVE-2024-1086", "linux", "6.6", "6.6.15", "", "a local user can become root (nf_tables)", true},
    // dirtypipe.cm4all.com: since 5.8; mended in 5.15.25; Debian mended 5.10.92-2 (DSA-5092-1)
    {"CVE-2022-0847", "linux", "5.8", "5.10.92", "", "a local user can overwrite any file (Dirty Pipe)", true},
    {"CVE-2022-0847", "linux", "5.15", "5.15.25", "", "a local user can overwrite any file (Dirty Pipe)", true},
};

}  // namespace

std::span<const Advisory> advisories() { return k_advisories; }

}  // namespace gridctl::probe
