#!/usr/bin/env python3
"""A PostgreSQL server for a test: Debian's, in a temporary folder, by a user who is nobody else.

    postgres.py COMMAND ...   runs the command with TACTUS_TEST_POSTGRES, the address of a new server; exits as it does,
                              or with 77 and the reason where Debian's server is not installed
"""
import ctypes
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PROGRAMS = pathlib.Path("/usr/lib/postgresql/15/bin")
SKIPPED = 77
PR_SET_PDEATHSIG = 1


def missing():
    """Why there is no server to be had; empty: there is one."""
    return "" if (PROGRAMS / "initdb").exists() else f"PostgreSQL's server is not installed ({PROGRAMS}/initdb)"


def end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Postgres:
    """Serves from start() on, at a socket in its folder alone. `durable`: as a real one, which takes longer."""

    def __init__(self, durable=False):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tactus-pg-"))
        self.durable = durable
        self.process = None
        # The server refuses to run as root.
        self.user = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            self.user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        # Whoever calls may be another user than the server.
        self.folder.chmod(0o755)

    @property
    def address(self):
        return self.address_of("postgres")

    def address_of(self, database):
        return f"postgresql:///{database}?host={self.folder}&user=tactus"

    def start(self):
        data = self.folder / "data"
        if not data.exists():
            subprocess.run([PROGRAMS / "initdb", "-D", data, "-U", "tactus", "-A", "trust", "-N", "-E", "UTF8",
                            "--locale=C.UTF-8"], check=True, stdout=subprocess.DEVNULL, cwd=self.folder, **self.user)
        command = [PROGRAMS / "postgres", "-D", data, "-k", self.folder, "-c", "listen_addresses=",
                   "-c", "unix_socket_permissions=0777", "-c", "max_connections=200"]
        if not self.durable:
            command += ["-c", "fsync=off"]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder,
                                            preexec_fn=end_with_parent, **self.user)
        deadline = time.monotonic() + 60
        while subprocess.run([PROGRAMS / "pg_isready", "-q", "-h", self.folder], check=False).returncode != 0:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("PostgreSQL does not start:\n" + (self.folder / "log").read_text()[-2000:])
            time.sleep(0.05)
        return self

    def query(self, sql, database="postgres"):
        """Rows of texts."""
        done = subprocess.run([PROGRAMS / "psql", "-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-d",
                               self.address_of(database), "-c", sql], check=True, capture_output=True, text=True)
        return [line.split("\t") for line in done.stdout.splitlines()]

    def stop(self):
        """At once, as a machine that goes; start() again recovers."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(timeout=60)

    def remove(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.remove()


def main():
    why = missing()
    if why:
        print(f"skipped: {why}")
        return SKIPPED
    with Postgres() as server:
        environment = dict(os.environ, TACTUS_TEST_POSTGRES=server.address)
        return subprocess.run(sys.argv[1:], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
