"""A headless Firefox over WebDriver BiDi, with the standard library alone."""

import base64
import contextlib
import json
import os
import re
import secrets
import shutil
import socket
import struct
import subprocess
import tempfile
import time

FIREFOX = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)
_LISTENS = re.compile(r"WebDriver BiDi listening on ws://127\.0\.0\.1:(\d+)")


class Firefox:
    """One page of Firefox.

    Attributes:
        messages: What the page wrote to the console as an error, or threw.
        asked: Addresses that it asked for.
    """

    def __init__(self, width=1100, height=1000):
        self._stack = contextlib.ExitStack()
        profile = self._stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        said = self._stack.enter_context(open(os.path.join(profile, "said"), "w+b"))
        self._process = subprocess.Popen(
            [FIREFOX, "--headless", "--no-remote", "--remote-debugging-port", "0",
             "--profile", profile, f"--width={width}", f"--height={height}"],
            stdout=said, stderr=said, env=os.environ | {"MOZ_HEADLESS": "1", "HOME": profile},
        )  # fmt: skip
        self._stack.callback(self._process.wait)
        self._stack.callback(self._process.terminate)
        self._socket = _WebSocket(self._port(said.name))
        self._stack.callback(self._socket.close)
        self._count, self.messages, self.asked = 0, [], []
        self.call("session.new", capabilities={})
        self.context = self.call("browsingContext.getTree")["contexts"][0]["context"]
        events = ["log.entryAdded", "network.beforeRequestSent"]
        self.call("session.subscribe", events=events)

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        self._stack.close()

    def _port(self, path):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with open(path, "rb") as said:
                found = _LISTENS.search(said.read().decode("utf-8", "replace"))
            if found:
                return int(found[1])
            assert self._process.poll() is None, "Firefox has ended"
            time.sleep(0.1)
        raise TimeoutError("Firefox does not listen")

    def call(self, method, **parameters):
        """The result of a command."""
        self._count += 1
        number = self._count
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.receive())
            if answer.get("id") == number:
                assert answer["type"] == "success", answer
                return answer["result"]
            self._heard(answer.get("method"), answer.get("params", {}))

    def _heard(self, method, said):
        if method == "log.entryAdded" and said["level"] in ("error", "warn"):
            self.messages.append(said["text"])
        elif method == "network.beforeRequestSent":
            self.asked.append(said["request"]["url"])

    def visit(self, address):
        """Goes to a page and waits until it is loaded."""
        self.call("browsingContext.navigate", context=self.context, url=address, wait="complete")

    def evaluate(self, expression):
        """The value of an expression, by JSON."""
        found = self.call(
            "script.evaluate", expression=f"JSON.stringify({expression})", awaitPromise=True,
            target={"context": self.context},
        )  # fmt: skip
        assert found["type"] == "success", found
        return json.loads(found["result"].get("value", "null"))

    def drag(self, start, end, kind="mouse"):
        """Presses a mouse or puts down a finger, moves it and lets it go."""
        points = [[a + (b - a) * part / 8 for a, b in zip(start, end, strict=True)]
                  for part in range(9)]  # fmt: skip
        moves = [{"type": "pointerMove", "x": round(x), "y": round(y)} for x, y in points]
        actions = [moves[0], {"type": "pointerDown", "button": 0}, *moves[1:],
                   {"type": "pointerUp", "button": 0}]  # fmt: skip
        pointer = {"type": "pointer", "id": kind, "parameters": {"pointerType": kind},
                   "actions": actions}  # fmt: skip
        self.call("input.performActions", context=self.context, actions=[pointer])

    def press(self, key):
        """Presses a key."""
        actions = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        keys = {"type": "key", "id": "keyboard", "actions": actions}
        self.call("input.performActions", context=self.context, actions=[keys])


class _WebSocket:
    """Texts to and from a server on this machine (RFC 6455)."""

    def __init__(self, port):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        key = base64.b64encode(secrets.token_bytes(16)).decode()
        self._socket.sendall(
            f"GET /session HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        self._stream = self._socket.makefile("rb")
        assert b" 101 " in self._stream.readline()
        while self._stream.readline() != b"\r\n":
            pass

    def send(self, text):
        data, mask = text.encode(), secrets.token_bytes(4)
        size = len(data)
        head = bytes([0x81]) + (
            bytes([0x80 | size]) if size < 126
            else bytes([0xFE]) + struct.pack(">H", size) if size < 1 << 16
            else bytes([0xFF]) + struct.pack(">Q", size)
        )  # fmt: skip
        masked = bytes(byte ^ mask[k % 4] for k, byte in enumerate(data))
        self._socket.sendall(head + mask + masked)

    def receive(self):
        text = b""
        while True:
            first, size = self._stream.read(2)
            size &= 0x7F
            if size > 125:
                size = int.from_bytes(self._stream.read(2 if size == 126 else 8))
            part = self._stream.read(size)
            if first & 0x0F in (0, 1):
                text += part
                if first & 0x80:
                    return text.decode()

    def close(self):
        self._stream.close()
        self._socket.close()
