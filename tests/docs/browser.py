"""A headless Chromium, driven over its debugging pipe with the standard library alone."""

import contextlib
import functools
import http.server
import json
import os
import shutil
import subprocess
import tempfile
import threading

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
_OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
    "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost",
)  # fmt: skip


@contextlib.contextmanager
def served(folder):
    """The address of a folder on this machine."""
    handler = functools.partial(_Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("localhost", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://localhost:{server.server_port}"
    finally:
        server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words):
        pass


class Browser:
    """One page of Chromium, to which nothing outside of this machine can be reached.

    Attributes:
        messages: What pages wrote to the console, and what they threw, since the last visit.
        failed: Addresses that could not be read, since the last visit.
    """

    def __init__(self, width=500):
        read, self._write = os.pipe()
        self._read, write = os.pipe()
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)

        def pipes():  # Chromium reads its descriptor 3 and writes 4
            one, two = os.dup(read), os.dup(write)
            os.dup2(one, 3)
            os.dup2(two, 4)

        self._process = subprocess.Popen(
            [CHROMIUM, *_OPTIONS, f"--user-data-dir={self._profile.name}", "about:blank"],
            close_fds=False, preexec_fn=pipes, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(read)
        os.close(write)
        self._stream = os.fdopen(self._read, "rb", buffering=0)
        self._left, self._count, self._session, self._loaded = b"", 0, None, False
        self.messages, self.failed = [], []
        targets = self._call("Target.getTargets")["targetInfos"]
        page = next(one["targetId"] for one in targets if one["type"] == "page")
        attached = self._call("Target.attachToTarget", targetId=page, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")
        self.resize(width)

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        self._process.terminate()
        self._process.wait()
        self._stream.close()
        os.close(self._write)
        self._profile.cleanup()

    def resize(self, width, height=900):
        """Makes the window as wide as that, in CSS pixels."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def visit(self, address):
        """Goes to a page and waits until it is loaded."""
        self.messages, self.failed, self._loaded = [], [], False
        self._call("Page.navigate", url=address)
        while not self._loaded:
            self._next()

    def evaluate(self, expression):
        """The value of an expression of JavaScript; promises are waited for."""
        found = self._call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def _call(self, method, **parameters):
        self._count += 1
        number = self._count
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def _next(self):
        while b"\0" not in self._left:
            part = os.read(self._stream.fileno(), 1 << 16)
            assert part, "Chromium has ended"
            self._left += part
        text, self._left = self._left.split(b"\0", 1)
        answer = json.loads(text)
        self._heard(answer.get("method"), answer.get("params", {}))
        return answer

    def _heard(self, method, said):
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.exceptionThrown":
            details = said["exceptionDetails"]
            self.messages.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning"):
            self.messages.append(str([one.get("value") for one in said["args"]]))
        elif method == "Log.entryAdded" and said["entry"]["level"] == "error":
            self.messages.append(said["entry"]["text"])
        elif method == "Network.loadingFailed" and not said.get("canceled"):
            self.failed.append(said.get("errorText"))
        elif method == "Network.responseReceived" and said["response"]["status"] >= 400:
            self.failed.append(said["response"]["url"])
