"""Headless Chromium, driven over its DevTools protocol with the standard library alone."""
import base64
import json
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
START_SECONDS = 60
ANSWER_SECONDS = 60


class WebSocket:
    """A client of one WebSocket: text messages alone."""

    def __init__(self, url):
        host, port, path = re.fullmatch(r"ws://([^:/]+):(\d+)(/.*)", url).groups()
        self.socket = socket.create_connection((host, int(port)), ANSWER_SECONDS)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        self.buffered = b""
        while b"\r\n\r\n" not in self.buffered:
            self.buffered += self._receive()
        head, self.buffered = self.buffered.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise AssertionError(f"no WebSocket: {head[:200]}")

    def _receive(self):
        chunk = self.socket.recv(1 << 16)
        if not chunk:
            raise AssertionError("the browser closed the connection")
        return chunk

    def _take(self, count):
        while len(self.buffered) < count:
            self.buffered += self._receive()
        taken, self.buffered = self.buffered[:count], self.buffered[count:]
        return taken

    def send(self, text):
        payload = text.encode()
        mask = os.urandom(4)
        size = len(payload)
        head = bytes([0x81, 0x80 | (size if size < 126 else 126 if size < 1 << 16 else 127)])
        if size >= 126:
            head += struct.pack(">H" if size < 1 << 16 else ">Q", size)
        self.socket.sendall(head + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload)))

    def receive(self):
        text = b""
        while True:
            first, second = self._take(2)
            size = second & 0x7F
            if size >= 126:
                size = struct.unpack(">H" if size == 126 else ">Q", self._take(2 if size == 126 else 8))[0]
            payload = self._take(size)
            if first & 0x0F in (0, 1):
                text += payload
                if first & 0x80:
                    return text.decode()

    def close(self):
        self.socket.close()


class Browser:
    """One page in a browser of its own; what it loads and complains of is kept in `requests` and `complaints`."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tactus-browser-"))
        self.requests, self.complaints = [], []
        self.number = 0
        words = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
                 "--remote-debugging-port=0", f"--user-data-dir={self.folder}", "about:blank"]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        try:
            self.socket = WebSocket(self._page())
            for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.close()
            raise

    def _page(self):
        port_file = self.folder / "DevToolsActivePort"
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                port = int(port_file.read_text().split()[0])
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=ANSWER_SECONDS) as answer:
                    pages = [one for one in json.load(answer) if one["type"] == "page"]
                if pages:
                    return pages[0]["webSocketDebuggerUrl"]
            except (OSError, IndexError, ValueError):
                pass
            time.sleep(0.05)
        raise AssertionError("the browser did not start")

    def call(self, method, **parameters):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") == self.number:
                if "error" in message:
                    raise AssertionError(f"{method}: {message['error']}")
                return message["result"]
            self._notice(message)

    def _notice(self, message):
        method, said = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(said["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(said["exceptionDetails"])[:2000])
        elif method == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(said["args"])[:2000])
        elif method == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{said['entry']['text']} {said['entry'].get('url', '')}")

    def run(self, script):
        """The value of an expression in the page; a promise is waited for."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise AssertionError(f"{script}: {json.dumps(done['exceptionDetails'])[:1000]}")
        return done["result"].get("value")

    def open(self, url):
        self.call("Page.navigate", url=url)

    def screen(self, width, height=900, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode={"Tab": 9, "ArrowRight": 39, "ArrowLeft": 37, "End": 35}.get(key, 0))

    def point(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def picture(self, path, whole=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]))

    def close(self):
        if hasattr(self, "socket"):
            self.socket.close()
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
