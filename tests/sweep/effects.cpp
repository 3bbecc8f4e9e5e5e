// SPDX-License-Identifier: Apache-2.0
#include "sweep/effects.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace gridctl::sweep {
namespace {

constexpr auto k_quiet = std::to_array<std::uint64_t>({
    // reads
    SYS_read,
    SYS_pread64,
    SYS_readv,
    SYS_preadv,
    SYS_preadv2,
    SYS_lseek,
    SYS_getdents64,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_statfs,
    SYS_fstatfs,
    SYS_faccessat,
    SYS_faccessat2,
    SYS_readlinkat,
    SYS_getcwd,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_recvmmsg,
    SYS_getsockopt,
    SYS_getsockname,
    SYS_getpeername,
    SYS_getxattr,
    SYS_fgetxattr,
    SYS_readahead,
    SYS_fadvise64,
    // memory
    SYS_mmap,
    SYS_munmap,
    SYS_mprotect,
    SYS_mremap,
    SYS_madvise,
    SYS_brk,
    SYS_membarrier,
    SYS_mlock,
    // itself: what the kernel forgets with the process
    SYS_getpid,
    SYS_gettid,
    SYS_getppid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getpgid,
    SYS_getsid,
    SYS_getgroups,
    SYS_uname,
    SYS_sysinfo,
    SYS_getrandom,
    SYS_getrusage,
    SYS_prlimit64,
    SYS_getrlimit,
    SYS_setrlimit,
    SYS_prctl,
    SYS_set_tid_address,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_umask,
    SYS_chdir,
    SYS_fchdir,
    SYS_close,
    SYS_close_range,
    SYS_dup,
    SYS_dup3,
    SYS_pipe2,
    SYS_socket,
    SYS_socketpair,
    SYS_setsockopt,
    SYS_epoll_create1,
    SYS_epoll_ctl,
    SYS_eventfd2,
    SYS_timerfd_create,
    SYS_timerfd_settime,
    SYS_timerfd_gettime,
    SYS_signalfd4,
    SYS_inotify_init1,
    SYS_inotify_add_watch,
    SYS_inotify_rm_watch,
    SYS_pidfd_open,
    SYS_setitimer,
    SYS_getcpu,
    SYS_wait4,
    SYS_waitid,
    SYS_flock,
    SYS_fcntl,
    // waiting and signals to itself
    SYS_ppoll,
    SYS_pselect6,
    SYS_epoll_pwait,
    SYS_epoll_pwait2,
    SYS_futex,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_gettimeofday,
    SYS_times,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_sched_getparam,
    SYS_sched_getscheduler,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigpending,
    SYS_rt_sigreturn,
    SYS_rt_sigsuspend,
    SYS_rt_sigtimedwait,
    SYS_sigaltstack,
    SYS_restart_syscall,
    SYS_exit,
    SYS_exit_group,
    // durability only
    SYS_fsync,
    SYS_fdatasync,
    SYS_sync_file_range,
    SYS_syncfs,
#ifdef __x86_64__
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_getdents,
    SYS_dup2,
    SYS_pipe,
    SYS_poll,
    SYS_select,
    SYS_epoll_wait,
    SYS_epoll_create,
    SYS_eventfd,
    SYS_arch_prctl,
    SYS_time,
    SYS_alarm,
    SYS_pause,
    SYS_getpgrp,
#endif
});

bool is_one_of(std::uint64_t number, auto... candidates) { return ((number == std::uint64_t(candidates)) || ...); }

bool is_write(std::uint64_t number) {
  return is_one_of(number, SYS_write, SYS_pwrite64, SYS_writev, SYS_pwritev, SYS_pwritev2);
}

std::string descriptor_path(const Call& call, std::uint64_t descriptor) {
  return "/proc/" + std::to_string(call.process) + "/fd/" + std::to_string(static_cast<int>(descriptor));
}

std::string read_link(const std::string& link) {
  std::array<char, 4096> target{};
  const ssize_t length = ::readlink(link.c_str(), target.data(), target.size());
  return length > 0 ? std::string(target.data(), std::size_t(length)) : std::string();
}

bool is_kernels(std::string_view path) { return path.starts_with("/proc/") || path.starts_with("/sys/"); }

// One that lies on a disk.
bool is_file(const Call& call, std::uint64_t descriptor) {
  struct stat info {};
  const std::string link = descriptor_path(call, descriptor);
  return ::stat(link.c_str(), &info) == 0 && S_ISREG(info.st_mode) && !is_kernels(read_link(link));
}

bool is_nameless(const Call& call, std::uint64_t descriptor) {
  return read_link(descriptor_path(call, descriptor)).starts_with("anon_inode:");
}

bool makes_file(std::uint64_t flags) { return (flags & (O_CREAT | O_TRUNC)) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

// Text of the process that makes the call; empty when it cannot be read.
std::string text_at(const Call& call, std::uint64_t address) {
  std::array<char, 4096> text{};
  const std::size_t to_page_end = 4096 - address % 4096;  // the next page may not be there
  std::size_t length = 0;
  for (const std::size_t piece : {to_page_end, text.size() - to_page_end}) {
    if (std::find(text.begin(), text.begin() + length, '\0') != text.begin() + length) break;
    iovec here{text.data() + length, piece}, there{reinterpret_cast<void*>(address + length), piece};
    const ssize_t got = ::process_vm_readv(call.process, &here, 1, &there, 1, 0);
    if (got <= 0) break;
    length += std::size_t(got);
  }
  return std::string(text.data(), std::size_t(std::find(text.begin(), text.begin() + length, '\0') - text.begin()));
}

struct Place {
  std::optional<std::uint64_t> directory;  // descriptor
  std::uint64_t path = 0;                  // address
};

// The (first) path that the call names.
std::optional<Place> place_of(const Call& call) {
#ifdef __x86_64__
  if (is_one_of(call.number, SYS_open, SYS_mkdir, SYS_unlink, SYS_rmdir, SYS_rename, SYS_link, SYS_chmod))
    return Place{{}, call.arguments[0]};
#endif
  if (is_one_of(call.number, SYS_openat, SYS_openat2, SYS_mkdirat, SYS_unlinkat, SYS_renameat, SYS_renameat2,
                SYS_linkat, SYS_fchmodat, SYS_utimensat))
    return Place{call.arguments[0], call.arguments[1]};
  return std::nullopt;
}

std::string path_of(const Call& call, const Place& place) {
  const std::string path = text_at(call, place.path);
  if (path.starts_with('/')) return path;
  const bool in_directory = place.directory && static_cast<int>(*place.directory) != AT_FDCWD;
  const std::string process = "/proc/" + std::to_string(call.process);
  return read_link(in_directory ? descriptor_path(call, *place.directory) : process + "/cwd") + "/" + path;
}

bool is_there(const Call& call) {
  const auto place = place_of(call);
  struct stat info {};
  return place && ::lstat(path_of(call, *place).c_str(), &info) == 0;
}

bool is_open(const Call& call) {
#ifdef __x86_64__
  if (call.number == SYS_open) return true;
#endif
  return is_one_of(call.number, SYS_openat, SYS_openat2);
}

// The first of what openat2 and clone3 are told in memory.
std::uint64_t flags_at(const Call& call, std::uint64_t address, std::uint64_t unreadable) {
  std::uint64_t flags = 0;
  iovec here{&flags, sizeof flags}, there{reinterpret_cast<void*>(address), sizeof flags};
  return ::process_vm_readv(call.process, &here, 1, &there, 1, 0) > 0 ? flags : unreadable;
}

std::uint64_t open_flags(const Call& call) {
#ifdef __x86_64__
  if (call.number == SYS_open) return call.arguments[1];
#endif
  return call.number == SYS_openat ? call.arguments[2] : flags_at(call, call.arguments[2], O_CREAT | O_TRUNC);
}

std::uint64_t clone_flags(const Call& call) {
  return call.number == SYS_clone ? call.arguments[0] : flags_at(call, call.arguments[0], 0);
}

bool opens_anew(const Call& call) {
  const std::uint64_t flags = open_flags(call);
  return makes_file(flags) && ((flags & O_TRUNC) != 0 || (flags & O_TMPFILE) == O_TMPFILE || !is_there(call));
}

bool is_mkdir(std::uint64_t number) {
#ifdef __x86_64__
  if (number == SYS_mkdir) return true;
#endif
  return number == SYS_mkdirat;
}

bool removes(std::uint64_t number) {
#ifdef __x86_64__
  if (is_one_of(number, SYS_unlink, SYS_rmdir)) return true;
#endif
  return number == SYS_unlinkat;
}

bool changes_names(std::uint64_t number) {
#ifdef __x86_64__
  if (is_one_of(number, SYS_rename, SYS_link, SYS_symlink, SYS_creat, SYS_truncate)) return true;
#endif
  return is_one_of(number, SYS_renameat, SYS_renameat2, SYS_linkat, SYS_symlinkat);
}

bool is_log(std::string_view name) { return name == "daemon.log" || name == "supervisor.log"; }

bool is_sync(std::uint64_t number) {
  return is_one_of(number, SYS_fsync, SYS_fdatasync, SYS_sync_file_range, SYS_syncfs);
}

}  // namespace

bool has_effect(const Call& call) {
  if (std::find(k_quiet.begin(), k_quiet.end(), call.number) != k_quiet.end()) return false;
  if (is_open(call)) return opens_anew(call);
  if (is_write(call.number)) return !is_nameless(call, call.arguments[0]);
  if (is_mkdir(call.number)) return !is_there(call);
  if (removes(call.number)) return is_there(call);
  if (call.number == SYS_ioctl) return is_one_of(call.arguments[1], FICLONE, FICLONERANGE);
  if (call.number == SYS_clone || call.number == SYS_clone3) return (clone_flags(call) & CLONE_THREAD) == 0;
  return true;
}

bool is_hidden(const Call& call) {
  if (!is_write(call.number) && !is_one_of(call.number, SYS_ftruncate, SYS_fallocate, SYS_fchmod, SYS_fchown))
    return false;
  const std::string path = read_link(descriptor_path(call, call.arguments[0]));
  const std::string name = path.substr(path.rfind('/') + 1);
  if (name.ends_with("-journal")) return call.number != SYS_ftruncate;
  return name.ends_with(".db") || is_log(name) || (name.starts_with('.') && name.find(".tmp-") != name.npos);
}

bool can_fail(const Call& call) {
  if (is_write(call.number) || is_one_of(call.number, SYS_ftruncate, SYS_fallocate))
    return is_file(call, call.arguments[0]);
  if (is_open(call)) return opens_anew(call);
  if (is_mkdir(call.number)) return !is_there(call) && !is_kernels(target_of(call));
  return is_sync(call.number) || changes_names(call.number) ||
         (is_one_of(call.number, SYS_copy_file_range, SYS_splice) && is_file(call, call.arguments[2]));
}

bool can_tear(const Call& call) {
  return is_one_of(call.number, SYS_write, SYS_pwrite64) && call.arguments[2] >= 2 && is_file(call, call.arguments[0]);
}

std::string target_of(const Call& call) {
  if (const auto place = place_of(call)) return path_of(call, *place);
  return read_link(descriptor_path(call, call.arguments[0]));
}

std::string call_name(std::uint64_t number) {
  static constexpr auto k_names = std::to_array<std::pair<std::uint64_t, std::string_view>>({
      {SYS_write, "write"},
      {SYS_pwrite64, "pwrite64"},
      {SYS_writev, "writev"},
      {SYS_openat, "openat"},
      {SYS_openat2, "openat2"},
      {SYS_fsync, "fsync"},
      {SYS_fdatasync, "fdatasync"},
      {SYS_ftruncate, "ftruncate"},
      {SYS_fallocate, "fallocate"},
      {SYS_mkdirat, "mkdirat"},
      {SYS_renameat, "renameat"},
      {SYS_renameat2, "renameat2"},
      {SYS_unlinkat, "unlinkat"},
      {SYS_linkat, "linkat"},
      {SYS_symlinkat, "symlinkat"},
      {SYS_fchmod, "fchmod"},
      {SYS_fchown, "fchown"},
      {SYS_fchmodat, "fchmodat"},
      {SYS_utimensat, "utimensat"},
      {SYS_copy_file_range, "copy_file_range"},
      {SYS_splice, "splice"},
      {SYS_ioctl, "ioctl"},
      {SYS_clone, "clone"},
      {SYS_clone3, "clone3"},
      {SYS_execve, "execve"},
      {SYS_kill, "kill"},
      {SYS_tgkill, "tgkill"},
      {SYS_sendto, "sendto"},
      {SYS_sendmsg, "sendmsg"},
      {SYS_sendmmsg, "sendmmsg"},
      {SYS_connect, "connect"},
      {SYS_bind, "bind"},
      {SYS_listen, "listen"},
      {SYS_accept4, "accept4"},
      {SYS_shutdown, "shutdown"},
      {SYS_setsid, "setsid"},
      {SYS_pidfd_send_signal, "pidfd_send_signal"},
#ifdef __x86_64__
      {SYS_open, "open"},
      {SYS_mkdir, "mkdir"},
      {SYS_rename, "rename"},
      {SYS_unlink, "unlink"},
      {SYS_rmdir, "rmdir"},
      {SYS_link, "link"},
      {SYS_symlink, "symlink"},
      {SYS_chmod, "chmod"},
      {SYS_fork, "fork"},
      {SYS_vfork, "vfork"},
#endif
  });
  const auto found =
      std::find_if(k_names.begin(), k_names.end(), [number](const auto& one) { return one.first == number; });
  return found == k_names.end() ? "syscall " + std::to_string(number) : std::string(found->second);
}

}  // namespace gridctl::sweep
