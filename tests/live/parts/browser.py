"""A headless Chromium, driven over its pipe for debugging: JSON that ends with a NUL."""

import fcntl
import json
import os
import subprocess

# What the pipe is in the browser.
READ_FD, WRITE_FD = 3, 4
MOVED_FD = 20


class Browser:
    def __init__(self, profile, width, height):
        (commands, self.commands), (self.answers, answers) = os.pipe(), os.pipe()
        inherited = [fcntl.fcntl(fd, fcntl.F_DUPFD, MOVED_FD) for fd in (commands, answers)]

        def connect():
            os.dup2(inherited[0], READ_FD)
            os.dup2(inherited[1], WRITE_FD)

        self.process = subprocess.Popen(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=connect, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in (commands, answers, *inherited):
            os.close(fd)
        self.last_id, self.received, self.session, self.problems = 0, b"", None, []
        page = next(each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def receive(self):
        while b"\0" not in self.received:
            more = os.read(self.answers, 65536)
            if not more:
                raise SystemExit("the browser has ended")
            self.received += more
        message, self.received = self.received.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.last_id += 1
        command = {"id": self.last_id, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.commands, json.dumps(command).encode() + b"\0")
        while (message := self.receive()).get("id") != self.last_id:
            if message.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.problems.append(message["params"])
        if "error" in message:
            raise SystemExit(f"{method}: {message['error']}")
        return message["result"]

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)

    def value(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def close(self):
        self.call("Browser.close")
        self.process.wait(20)
