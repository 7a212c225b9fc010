"""Second wall: restrictions by the operating system, with limits, no new privileges, and a seccomp allow-list.

No dependencies are needed: the filter consists of about fifty BPF instructions, installed through ctypes, for x86_64
and aarch64 on Linux. On macOS there is no seccomp and no memory limit; `sandbox_init` and the other limits are used,
and `capabilities()` reports this. `lock` is called in the forked child before it receives anything.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import struct
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_PR_GET_SECCOMP, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 21, 22, 2
_KILL_PROCESS, _ALLOW, _ERRNO = 0x80000000, 0x7FFF0000, 0x00050000
_EPERM = 1
_PROT_EXEC = 4
_X32_BIT = 0x40000000


def words(text: str) -> tuple[str, ...]:
    """Return a table of names written in one line."""
    return tuple(text.split())


# System calls that a locked CPython needs: for its one socket, memory, time and exit.
_ALLOWED = words(
    "read write brk mmap munmap mremap mprotect madvise futex exit exit_group rt_sigreturn clock_gettime "
    "gettimeofday restart_syscall sched_yield"
)
# Lazy imports, error messages and codecs try these, and work without them.
_DENIED = words(
    "open openat openat2 stat fstat lstat newfstatat statx readlink readlinkat getcwd lseek fcntl ioctl "
    "access faccessat faccessat2 getdents64 getrandom getpid gettid getppid getuid geteuid getgid getegid "
    "uname sysinfo getrusage times close prlimit64 getrlimit setrlimit sched_getaffinity poll ppoll time"
)
_WITHOUT_EXEC = ("mmap", "mprotect")

_X86_64 = {
    "read": 0, "write": 1, "open": 2, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "poll": 7, "lseek": 8, "mmap": 9,
    "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigreturn": 15, "ioctl": 16, "access": 21, "sched_yield": 24,
    "mremap": 25, "madvise": 28, "getpid": 39, "exit": 60, "uname": 63, "fcntl": 72, "getcwd": 79, "readlink": 89,
    "gettimeofday": 96, "getrlimit": 97, "getrusage": 98, "sysinfo": 99, "times": 100, "getuid": 102, "getgid": 104,
    "geteuid": 107, "getegid": 108, "getppid": 110, "setrlimit": 160, "gettid": 186, "time": 201, "futex": 202,
    "sched_getaffinity": 204, "getdents64": 217, "restart_syscall": 219, "clock_gettime": 228, "exit_group": 231,
    "openat": 257, "newfstatat": 262, "readlinkat": 267, "faccessat": 269, "ppoll": 271, "prlimit64": 302,
    "getrandom": 318, "statx": 332, "openat2": 437, "faccessat2": 439,
}  # fmt: skip
_AARCH64 = {
    "getcwd": 17, "fcntl": 25, "ioctl": 29, "faccessat": 48, "openat": 56, "close": 57, "getdents64": 61, "lseek": 62,
    "read": 63, "write": 64, "ppoll": 73, "readlinkat": 78, "newfstatat": 79, "fstat": 80, "exit": 93, "exit_group": 94,
    "futex": 98, "clock_gettime": 113, "sched_getaffinity": 123, "sched_yield": 124, "restart_syscall": 128,
    "rt_sigreturn": 139, "times": 153, "uname": 160, "getrlimit": 163, "setrlimit": 164, "getrusage": 165,
    "gettimeofday": 169, "getpid": 172, "getppid": 173, "getuid": 174, "geteuid": 175, "getgid": 176, "getegid": 177,
    "gettid": 178, "sysinfo": 179, "brk": 214, "munmap": 215, "mremap": 216, "mmap": 222, "mprotect": 226,
    "madvise": 233, "prlimit64": 261, "getrandom": 278, "statx": 291, "openat2": 437, "faccessat2": 439,
}  # fmt: skip
_MACHINES = {"x86_64": (0xC000003E, _X86_64), "aarch64": (0xC00000B7, _AARCH64)}


MEMORY_LIMIT = sys.platform == "linux"  # elsewhere the host watches the memory


class Wall(NamedTuple):
    """Lock of a worker: its limits, and whether to use the kernel's filter."""

    memory_mb: float  # in addition to the memory at its start
    cpu_seconds: float
    kernel: bool


class LockError(OSError):
    """Error for a layer of the kernel wall that could not be put up."""


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@cache
def _prctl_function() -> Callable[..., int]:
    prctl = ctypes.CDLL(None, use_errno=True).prctl  # a separate function object, whose types nobody else changes
    prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    return prctl


def _prctl(option: int, first: int = 0, second: int = 0) -> int:
    return _prctl_function()(option, first, second, 0, 0)


# The filter


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
    keep: ctypes.Array[ctypes.c_char]


def _instruction(code: int, true: int, false: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, true, false, value)


def _load(offset: int) -> bytes:
    return _instruction(0x20, 0, 0, offset)


def _equal(value: int, true: int, false: int) -> bytes:
    return _instruction(0x15, true, false, value)


def _return(action: int) -> bytes:
    return _instruction(0x06, 0, 0, action)


def build_filter(machine: str) -> bytes:
    """Return the BPF program. Unknown system calls kill the process, including those that future kernels add."""
    architecture, numbers = _MACHINES[machine]
    parts = [_load(4), _equal(architecture, 1, 0), _return(_KILL_PROCESS), _load(0)]
    parts += [_instruction(0x35, 0, 1, _X32_BIT), _return(_KILL_PROCESS)]
    for name in _WITHOUT_EXEC:
        # argument 2 holds the protection; after the check the number is loaded again for the next comparison
        protection = 16 + 2 * 8
        parts += [
            _equal(numbers[name], 0, 4),
            _load(protection),
            _instruction(0x45, 0, 1, _PROT_EXEC),
            _return(_KILL_PROCESS),
            _return(_ALLOW),
        ]
    parts += _each((name for name in _ALLOWED if name not in _WITHOUT_EXEC), numbers, _ALLOW)
    parts += _each(_DENIED, numbers, _ERRNO | _EPERM)
    return b"".join([*parts, _return(_KILL_PROCESS)])


def _each(names: Iterable[str], numbers: dict[str, int], action: int) -> list[bytes]:
    return [part for name in names if name in numbers for part in (_equal(numbers[name], 0, 1), _return(action))]


@cache
def _filter_program() -> _Program:
    """Return this machine's filter in the kernel's form.

    It lives as long as the process, since the kernel has its address.
    """
    code = build_filter(platform.machine())
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    program.keep = buffer
    return program


def prepare() -> None:
    """Prepare, once and in the parent, everything that each fork needs for its lock."""
    if sys.platform == "linux":
        _prctl(_PR_GET_SECCOMP)
        if platform.machine() in _MACHINES:
            _filter_program()


def _install_filter() -> None:
    if _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(_filter_program())) != 0:
        raise LockError(ctypes.get_errno(), "seccomp refused the filter")


# Limits


def _limit(kind: int, soft: int, hard: int | None = None) -> None:
    resource.setrlimit(kind, (soft, soft if hard is None else hard))


def _set_limits(memory_bytes: int, cpu_seconds: float) -> None:
    # The timer is precise and kills by default; the limit in whole seconds is a second safeguard.
    signal.setitimer(signal.ITIMER_PROF, max(cpu_seconds, 0.001))
    whole = int(cpu_seconds) + 2
    _limit(resource.RLIMIT_CPU, whole, whole + 1)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_NPROC, 0)
    if MEMORY_LIMIT:
        _limit(resource.RLIMIT_AS, memory_bytes)
    _limit(resource.RLIMIT_NOFILE, 0)  # last: nothing can be opened from here on


def address_space() -> int:
    """Return the address space of this process in bytes, to which a memory limit is added."""
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 0
    return pages * resource.getpagesize()


def resident_bytes(pid: int) -> int:
    """Return the memory in use by a process, for systems without a memory limit; 0 if the process is gone."""
    if sys.platform == "linux":
        try:
            return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
        except (OSError, IndexError):
            return 0
    buffer = (ctypes.c_uint64 * 12)()  # struct proc_taskinfo: virtual size, resident size, ...
    size = _libc().proc_pidinfo(pid, 4, ctypes.c_uint64(0), buffer, ctypes.sizeof(buffer))
    return int(buffer[1]) if size > 0 else 0


# The wall


def die_with_parent(parent: int) -> None:
    """Request SIGKILL for when the parent dies, and exit if it is already dead."""
    if sys.platform == "linux":
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(0)


def lock(wall: Wall, base_memory: int) -> None:
    """Lock this process permanently.

    Args:
        wall: Limits. Without `wall.kernel`, only these are set (an explicit opt-out).
        base_memory: Bytes of address space in use before the program, added to the limit.

    Raises:
        LockError: The kernel refuses a layer.
    """
    _set_limits(base_memory + int(wall.memory_mb * 2**20), wall.cpu_seconds)
    if sys.platform == "linux":
        _prctl(_PR_SET_DUMPABLE, 0)
        if wall.kernel:
            if _prctl(_PR_SET_NO_NEW_PRIVS, 1) != 0:
                raise LockError(ctypes.get_errno(), "no_new_privs is not available")
            _install_filter()
    elif sys.platform == "darwin" and wall.kernel:
        _seatbelt()


def _seatbelt() -> None:
    error = ctypes.c_char_p()
    if _libc().sandbox_init(b"(version 1)(deny default)", ctypes.c_uint64(0), ctypes.byref(error)) != 0:
        raise LockError(0, f"sandbox_init refused: {(error.value or b'').decode(errors='replace')}")


def capabilities() -> dict[str, bool]:
    """Return the available layers. `seccomp` (on macOS `seatbelt`) is the essential one."""
    linux = sys.platform == "linux"
    return {
        "process": os.name == "posix",
        "limits": os.name == "posix",
        "memory_limit": MEMORY_LIMIT,
        "no_new_privs": linux,
        "seccomp": linux and platform.machine() in _MACHINES and seccomp_available(),
        "seatbelt": sys.platform == "darwin",
    }


def seccomp_available() -> bool:
    """Return True if the kernel supports seccomp filters, in which case it refuses a null filter with EFAULT."""
    if _prctl(_PR_GET_SECCOMP) < 0:
        return False
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, 0)
    return ctypes.get_errno() == 14  # EFAULT


def missing_layer() -> str | None:
    """Return a description of the first missing layer of the kernel wall, or None."""
    available = capabilities()
    if not available["process"]:
        return "processes with limits (this is not a POSIX system)"
    if not (available["seccomp"] or available["seatbelt"]):
        return "seccomp (system-call filter)" if sys.platform == "linux" else "a system-call filter"
    return None
