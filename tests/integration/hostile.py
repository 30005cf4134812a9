"""A program that tries to get out of the box that workers run in. For each attempt it prints "ATTEMPT name stopped why" or
"ATTEMPT name succeeded what". Run by escape_test.py, as a worker and, to see that the attempts are some, without a box.

What it is told comes as one argument, JSON: key (a file that is not its own), state (the folder of the agent), outside (a folder
with files for it to spoil: outside/NAME for each attempt), agent and victim (process ids), address (of 16 bytes in the victim's
memory), abstract (the name of a socket), secrets (names of variables), attempts (by name; missing: all but those of QUANTITY)."""
import ctypes
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
SAID = {}
# The numbers of calls that the C library has no function for. Of x86-64; elsewhere these attempts are none.
NUMBERS = {"ptrace": 101, "mount": 165, "umount2": 166, "unshare": 272, "chroot": 161, "perf_event_open": 298, "bpf": 321,
           "userfaultfd": 323, "io_uring_setup": 425, "keyctl": 250, "add_key": 248, "process_vm_readv": 310, "setns": 308,
           "name_to_handle_at": 303, "prlimit64": 302, "shmget": 29, "open_tree": 428, "fsopen": 430, "clone3": 435,
           "syslog": 103, "pidfd_getfd": 438, "kcmp": 312, "openat2": 437}
ATTEMPTS = {}
QUANTITY = {}


def attempt(function):
    ATTEMPTS[function.__name__] = function
    return function


def quantity(function):
    QUANTITY[function.__name__] = function
    return function


def call(name, *words):
    if os.uname().machine != "x86_64":
        raise OSError("has no number here")
    result = LIBC.syscall(ctypes.c_long(NUMBERS[name]), *[ctypes.c_long(w) if isinstance(w, int) else w for w in words])
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def spoiled(name):
    return os.path.join(SAID["outside"], name)


def read(path):
    with open(path, "rb") as file:
        return file.read(64)


# Files.

@attempt
def read_key():
    return read(SAID["key"])


@attempt
def list_state():
    return os.listdir(SAID["state"])


@attempt
def key_through_proc():
    return read(f"/proc/self/root{SAID['key']}")


@attempt
def key_through_agent():
    return read(f"/proc/{SAID['agent']}/root{SAID['key']}")


@attempt
def key_through_symlink():
    os.symlink(SAID["key"], "leads-to-key")
    return read("leads-to-key")


@attempt
def key_through_hard_link():
    os.link(SAID["key"], "is-key")
    return read("is-key")


@attempt
def key_by_another_program():
    return subprocess.run(["cat", SAID["key"]], check=True, capture_output=True).stdout


@attempt
def key_by_handle():
    handle, mount = ctypes.create_string_buffer(struct.pack("Ii", 120, 0) + bytes(120)), ctypes.c_int()
    return call("name_to_handle_at", -100, SAID["key"].encode(), handle, ctypes.byref(mount), 0)


@attempt
def write_outside():
    with open(spoiled("write_outside"), "r+") as file:
        file.write("x")
    return "written"


@attempt
def make_outside():
    with open(spoiled("made"), "w") as file:
        file.write("x")
    return "made"


@attempt
def truncate_by_mode_three():
    os.open(spoiled("truncate_by_mode_three"), os.O_ACCMODE | os.O_TRUNC)
    return "emptied"


@attempt
def truncate_by_path():
    os.truncate(spoiled("truncate_by_path"), 0)
    return "emptied"


@attempt
def unlink_outside():
    os.unlink(spoiled("unlink_outside"))
    return "removed"


@attempt
def rename_outside():
    os.rename(spoiled("rename_outside"), "is-mine")
    return "taken"


@attempt
def mode_outside():
    os.chmod(spoiled("mode_outside"), 0o666)
    return "open to all"


@attempt
def core_pattern():
    os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY)
    return "open"


@attempt
def kernel_log():
    buffer = ctypes.create_string_buffer(4096)
    return call("syslog", 3, buffer, 4096)


@attempt
def kernel_messages():
    return os.open("/dev/kmsg", os.O_RDWR)


# Other processes.

@attempt
def ptrace_victim():
    return call("ptrace", 0x4206, SAID["victim"], 0, 0)  # PTRACE_SEIZE


@attempt
def memory_of_victim():
    with open(f"/proc/{SAID['victim']}/mem", "rb", buffering=0) as file:
        file.seek(SAID["address"])
        return file.read(16)


@attempt
def memory_by_call():
    buffer = ctypes.create_string_buffer(16)
    here = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 16)
    there = (ctypes.c_size_t * 2)(SAID["address"], 16)
    return call("process_vm_readv", SAID["victim"], here, 1, there, 1, 0)


@attempt
def environment_of_agent():
    return read(f"/proc/{SAID['agent']}/environ")


@attempt
def files_of_agent():
    folder = f"/proc/{SAID['agent']}/fd"  # how many they are is no secret
    return [os.readlink(f"{folder}/{name}") for name in os.listdir(folder)]


@attempt
def descriptor_of_victim():
    return call("pidfd_getfd", os.pidfd_open(SAID["victim"]), 0, 0)


@attempt
def signal_victim():
    os.kill(SAID["victim"], signal.SIGURG)
    return "sent"


@attempt
def signal_by_descriptor():
    signal.pidfd_send_signal(os.pidfd_open(SAID["victim"]), signal.SIGURG)
    return "sent"


@attempt
def limits_of_victim():
    return call("prlimit64", SAID["victim"], 4, (ctypes.c_ulong * 2)(0, 2**63), None)  # core files


@attempt
def namespace_of_agent():
    return call("setns", os.open(f"/proc/{SAID['agent']}/ns/mnt", os.O_RDONLY), 0)


# Sockets.

@attempt
def abstract_socket():
    socket.socket(socket.AF_UNIX).connect(b"\0" + SAID["abstract"].encode())
    return "connected"


@attempt
def raw_socket():
    return str(socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))


@attempt
def packet_socket():
    return str(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))


@attempt
def audit_netlink():
    return str(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9))


@attempt
def device_netlink():
    return str(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15))


@attempt
def crypto_socket():
    return str(socket.socket(38, socket.SOCK_SEQPACKET, 0))


@attempt
def machine_socket():
    return str(socket.socket(40, socket.SOCK_STREAM, 0))


@attempt
def named_port():
    listener = socket.socket()
    listener.bind(("127.0.0.1", SAID["port"]))
    return str(listener)


@attempt
def named_port_of_mptcp():
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    listener.bind(("127.0.0.1", SAID["port"]))
    return str(listener)


# The kernel.

@attempt
def bpf():
    return call("bpf", 0, ctypes.create_string_buffer(struct.pack("IIIII", 2, 4, 8, 1, 0) + bytes(100)), 72)


@attempt
def io_uring():
    return call("io_uring_setup", 8, ctypes.create_string_buffer(120))


@attempt
def mount():
    os.makedirs("mounted", exist_ok=True)
    result = call("mount", b"none", b"mounted", b"tmpfs", 0, None)
    call("umount2", b"mounted", 0)
    return result


@attempt
def new_mount():
    return call("fsopen", b"tmpfs", 0)


@attempt
def clone_of_tree():
    return call("open_tree", -100, b"/", 1)


@attempt
def user_namespace():
    return call("unshare", 0x10000000)


@attempt
def chroot():
    return call("chroot", b"/tmp")


@attempt
def capabilities():
    if os.getuid() == 0:
        os.setuid(0)
    held = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("CapEff"))
    if int(held, 16) == 0:
        raise OSError("has none")
    return held


@attempt
def set_user():
    os.setuid(0 if os.getuid() else 4242)
    return str(os.getuid())


@attempt
def perf_event():
    attributes = struct.pack("IIQ", 1, 112, 0) + bytes(96)  # a software event: the processor's clock
    return call("perf_event_open", ctypes.create_string_buffer(attributes, 128), 0, -1, -1, 0)


@attempt
def keys():
    return call("add_key", b"user", b"tactus-escape", b"x", 1, -2)


@attempt
def key_rings():
    return call("keyctl", 0, -4, 1, 0, 0)


@attempt
def user_faults():
    return call("userfaultfd", 0)


@attempt
def shared_by_number():
    return call("shmget", 0x7ac705, 4096, 0o1666)


@attempt
def secret_of_environment():
    for name in SAID["secrets"]:
        if name in os.environ:
            return name
    raise OSError("none is there")


@attempt
def outlives_its_job():
    """A daemon; the test sees whether it is there when the job is not. That it can be started is no escape."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for descriptor in range(3):
                os.close(descriptor)
            time.sleep(600)
        os._exit(0)
    raise OSError("is seen by who stays")


# What takes much of something. Not tried without a box.

@quantity
def fork_bomb():
    children = []
    try:
        for _ in range(600):
            child = os.fork()
            if child == 0:
                time.sleep(60)
                os._exit(0)
            children.append(child)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return "600 processes"


@quantity
def all_memory():
    try:
        taken = bytearray(3 << 30)
    except MemoryError:
        raise OSError("no memory") from None
    return f"{len(taken)} bytes"


def say(name, function):
    try:
        print("ATTEMPT", name, "succeeded", repr(function())[:80], flush=True)
    except Exception as error:  # whatever stops it
        print("ATTEMPT", name, "stopped", f"{type(error).__name__}: {error}", flush=True)


def main():
    SAID.update(json.loads(sys.argv[1]))
    if "TACTUS_JOB_NAME" in os.environ:
        os.chdir(os.environ["TMPDIR"])
    for name, function in {**ATTEMPTS, **QUANTITY}.items():
        if name not in SAID.get("attempts", ATTEMPTS):
            continue
        child = os.fork()
        if child == 0:
            say(name, function)
            os._exit(0)
        if os.waitpid(child, 0)[1] != 0:
            print("ATTEMPT", name, "stopped", "killed", flush=True)
    print("ATTEMPTS over", flush=True)
    time.sleep(SAID.get("stay", 0))


main()
