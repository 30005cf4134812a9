#!/usr/bin/env python3
"""bench/gpu-groups on processors: groups train, and what ends elsewhere is told.

usage: gpu_groups_test.py SOURCE_ROOT WORKER
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE, WORKER = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))


def run(*arguments):
    with tempfile.TemporaryDirectory() as folder:
        figures = pathlib.Path(folder) / "figures.json"
        done = subprocess.run([sys.executable, "-B", str(SOURCE / "bench/gpu-groups"), "--device", "cpu", "--json",
                               str(figures), *arguments], capture_output=True, text=True, timeout=300)
        return done, json.loads(figures.read_text()) if figures.exists() else None


class GpuGroupsTest(unittest.TestCase):
    def test_groups_of_every_plan_end_alike(self):
        done, rows = run("--worker", str(WORKER))

        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual({row["plan"] for row in rows}, {"every_step", "periodic", "adasum", "adamw", "delayed", "mesh_1d",
                                                      "mesh_2d"})
        self.assertEqual(len(rows), 2 * 7)
        self.assertEqual({row["rounds"] for row in rows}, {24})

    def test_a_group_that_learns_something_else_is_told(self):
        # Another plan's loss: the worker that is measured takes the place of the one that is compared with.
        with tempfile.TemporaryDirectory() as folder:
            half = pathlib.Path(folder) / "worker"
            half.write_text(f"""#!/usr/bin/env python3
import os, socket, subprocess, sys, threading
# Between script and worker: every other group's step is a tenth as long.
path = sys.argv[2]
slow = len(os.listdir(os.path.dirname(os.path.dirname(path)))) % 2 == 1
up = socket.socket(socket.AF_UNIX); up.connect(path)
inner = path + ".in"
listener = socket.socket(socket.AF_UNIX); listener.bind(inner); listener.listen(1)
child = subprocess.Popen([{str(WORKER)!r}, "--socket", inner])
down = listener.accept()[0]
def pump(source, sink, change):
    while True:
        data = source.recv(1 << 16)
        if not data:
            break
        sink.sendall(change(data))
    try:
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass
change = (lambda data: data.replace(b'"learningRate": 0.1', b'"learningRate": 0.01')) if slow else (lambda data: data)
back = threading.Thread(target=pump, args=(down, up, lambda data: data), daemon=True); back.start()
threading.Thread(target=pump, args=(up, down, change), daemon=True).start()
code = child.wait(); back.join(5); sys.exit(code)
""")
            half.chmod(0o755)
            done, rows = run("--worker", str(half), "--plans", "every_step")

        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("another loss than on processors", {row["result"] for row in rows})


if __name__ == "__main__":
    unittest.main()
