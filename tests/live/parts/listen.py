#!/usr/bin/env python3
"""listen.py CASE: runs of espy with --listen, and what its clients see. ESPY is the program, FILE a script that traces
the process $1 and has the maps below; SCRATCH a directory. Prints a line for each thing that holds."""

import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

from browser import Browser

ESPY, FILE = os.environ["ESPY"], os.environ["FILE"]
SCRATCH = pathlib.Path(os.environ["SCRATCH"])
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"
FACTOR = int(os.environ.get("TIME_FACTOR", "1"))  # of an emulated machine
LIMIT = 20 * FACTOR  # seconds, far above what any of these takes


def until(condition, limit=LIMIT, what="it"):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.01)
    raise SystemExit(f"waited in vain for {what}")


class Run:
    """A run of espy that traces this process, once its probes are attached. `name` keeps its output apart."""

    def __init__(self, *options, listen="0", environment=None, script=None, name="", program=None):
        self.out, self.errors = open(SCRATCH / f"run{name}.out", "w+"), open(SCRATCH / f"run{name}.err", "w+")
        program = program or (["-e", script] if script else [FILE, str(os.getpid())])
        self.process = subprocess.Popen([ESPY, "--listen", listen, *options, *program], stdout=self.out,
                                        stderr=self.errors, env={**os.environ, **(environment or {})})
        self.url = until(lambda: re.search(r"Listening at (http://\S+)\n", self.text(self.errors)))[1]
        self.address = urllib.parse.urlsplit(self.url)
        until(lambda: "ttached" in self.text(self.out) + self.text(self.errors))

    @staticmethod
    def text(file):
        return pathlib.Path(file.name).read_text()

    def get(self, path, headers=None, method="GET"):
        connection = http.client.HTTPConnection(self.address.hostname, self.address.port, timeout=LIMIT)
        connection.request(method, path, headers=headers or {})
        response = connection.getresponse()
        body = response.read().decode()
        connection.close()
        return response, body

    def metrics(self):
        return samples(self.get("/metrics", {"Accept": OPEN_METRICS})[1])

    def socket(self):
        return socket.create_connection((self.address.hostname, self.address.port), timeout=LIMIT)

    def messages(self):
        """The messages that a page gets, one at a time."""
        client = self.socket()
        client.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with client, client.makefile(encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("data: "):
                    yield json.loads(line[6:])

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        status = self.process.wait(LIMIT)
        if status != 0:
            raise SystemExit(f"exit status {status}: {self.text(self.errors)}")
        return self.text(self.out)


def samples(text):
    """The samples of an exposition, by their names with labels."""
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


def work():
    """System calls that the script counts, by their descriptor: 100 of 10 bytes, 20 of 5000."""
    null = os.open("/dev/null", os.O_WRONLY)
    os.dup2(null, 77)
    for size in [10] * 100 + [5000] * 20:
        os.write(77, b"x" * size)
    os.close(77)
    os.close(null)


def settled(run):
    work()
    return until(lambda: (found := run.metrics()).get("espy_calls_total") == "120" and found)


def printed_maps(run):
    """What espy -f json prints at the end."""
    entries = [json.loads(line) for line in run.end().splitlines() if line]
    return {name: value for entry in entries if entry["type"] in ("map", "hist", "stats")
            for name, value in entry["data"].items()}


def numbers():
    """The numbers of /metrics are those of the maps at the end."""
    run = Run("-f", "json")
    found = settled(run)
    maps = printed_maps(run)
    print("counter", found["espy_calls_total"] == str(maps["@calls"]))
    by_size = {f'espy_by_size_total{{comm="{key.split(",")[0]}",count="{key.split(",")[1]}"}}': str(count)
               for key, count in maps["@by_size"].items()}
    print("labels", by_size.items() <= found.items(), len(by_size))
    print("gauges", found["espy_largest"] == str(maps["@largest"]), found["espy_last"] == str(maps["@last"]))
    print("summary", found["espy_amount_count"] == str(maps["@amount"]["count"]),
          found["espy_amount_sum"] == str(maps["@amount"]["total"]))
    buckets = {bucket["max"]: bucket["count"] for bucket in maps["@sizes"]}
    print("histogram", found['espy_sizes_bucket{le="15.0"}'] == str(buckets[15]),
          found['espy_sizes_bucket{le="8191.0"}'] == found["espy_sizes_count"] == str(sum(buckets.values())))
    print("losses", [found.get(name) for name in ('espy_losses_total{kind="lost_updates"}', 'espy_lost_total{kind="full_map"}')])


def formats():
    """Both formats, with help of comments; names that a scraper refuses are changed."""
    run = Run()
    settled(run)
    response, text = run.get("/metrics", {"Accept": OPEN_METRICS})
    print(response.getheader("Content-Type"))
    print(text.endswith("\n# EOF\n"), "# TYPE espy_calls counter\n" in text)
    response, text = run.get("/metrics")
    print(response.getheader("Content-Type"))
    print("# EOF" not in text, "# TYPE espy_calls_total counter\n" in text)
    print(re.search("# HELP espy_calls_total (.*)", text)[1])
    if len(sys.argv) > 2:  # promtool
        check = subprocess.run([sys.argv[2], "check", "metrics"], input=text, capture_output=True, text=True)
        print("promtool", check.returncode, check.stdout + check.stderr)
    run.end()


def bounded():
    """Keys beyond the limit are left out and counted; those that were shown stay."""
    script = ('config = { max_metric_samples = 3; labels = "@x: number" } begin { $i = 0; while ($i < 10) { @x[$i] = '
              '$i; $i++ } } interval:ms:50 { @x[20] = 100; @rounds++; }')
    run = Run(script=script)
    shown = lambda: {name for name in run.metrics() if name.startswith("espy_x{")}
    first = shown()
    until(lambda: int(run.metrics().get("espy_rounds", 0)) > 1)
    print(len(first), shown() == first)
    print(run.metrics()['espy_omitted_series{map="@x"}'])
    run.end()


def refused():
    """What is not allowed gets a status and nothing else."""
    run = Run()
    status = lambda *request, **more: run.get(*request, **more)[0].status
    print("other host", status("/metrics", {"Host": "example.com"}), status("/", {"Host": "127.0.0.1.example.com"}))
    print("loopback", status("/", {"Host": "localhost:1"}), status("/metrics", {"Host": "[::1]"}))
    print("paths", status("/etc/passwd"), status("/../../etc/passwd"), status("/metrics/"), status("/%2e%2e/"))
    print("methods", status("/", method="POST"), status("/", method="DELETE"), status("/metrics", method="HEAD"),
          status("/", method="BREW"))

    def status_line(request):
        with run.socket() as client:
            client.sendall(request)
            return client.makefile("rb").readline().decode().strip()

    print("body", status("/", {"Content-Length": "5"}),
          status_line(b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n\r\n"))
    print("large", status("/", {"X": "x" * 9000}))
    print("malformed", status_line(b"GET / HTTP/1.1\r\n Host: localhost\r\n\r\n"))
    print("hosts", status_line(b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: x\r\n\r\n"),
          status_line(b"GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    run.end()
    for wrong in ("x", "127.0.0.1", "127.0.0.1:99999", "example.com:80", "::1:80"):
        done = subprocess.run([ESPY, "--listen", wrong, "-e", "begin { exit(); }"], capture_output=True, text=True)
        print(done.returncode, done.stderr.splitlines()[0])


def token():
    """Beyond the loopback a token is required, in the URL or in a header."""
    run = Run(listen="0.0.0.0:0")
    secret = urllib.parse.parse_qs(run.address.query)["token"][0]
    status = lambda path, headers=None: run.get(path, headers)[0].status
    print(len(secret), status("/"), status("/metrics"), status("/events"), status("/?token=" + "0" * len(secret)))
    print(status("/?token=" + secret), status("/metrics", {"Authorization": "Bearer " + secret}))
    run.end()
    given = {"ESPY_LISTEN_TOKEN": "a-token-of-the-environment"}
    run = Run(environment=given)
    print(run.address.query, status("/metrics"), status("/metrics?" + run.address.query))
    run.end()


def pipelined():
    """Requests that come together are answered in their order on one connection."""
    run = Run()
    with run.socket() as client:
        client.sendall(b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200 + b"GET /metrics HTTP/1.1\r\n"
                       b"Host: localhost\r\nConnection: close\r\n\r\n")
        with client.makefile("rb") as answer:
            text = answer.read().decode()
    print(text.count("HTTP/1.1 404"), text.count("HTTP/1.1 200"), text.rindex("HTTP/1.1 404") < text.rindex("HTTP/1.1 200"))
    run.end()


class Prometheus:
    """A real Prometheus with the configuration `config`, until the end of `with`."""

    def __init__(self, program, config):
        (SCRATCH / "prometheus.yml").write_text(config)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        log = open(SCRATCH / "prometheus.log", "w")
        self.server = subprocess.Popen([program, f"--config.file={SCRATCH}/prometheus.yml",
                                        f"--storage.tsdb.path={SCRATCH}/data",
                                        f"--web.listen-address=127.0.0.1:{self.port}"], stdout=log, stderr=log)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.server.terminate()
        self.server.wait(LIMIT)

    def query(self, text):
        """The labels and values that `text` has now, in an order of their own. None if it is starting."""
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
            connection.request("GET", "/api/v1/query?" + urllib.parse.urlencode({"query": text}))
            answer = json.load(connection.getresponse())
        except (OSError, http.client.HTTPException, ValueError):
            return None
        if answer["status"] != "success":
            raise SystemExit(f"{text}: {answer}")
        return [(each["metric"], each["value"][1]) for each in answer["data"]["result"]]


def cost():
    """What probes cost is among the metrics, with the sums of the kernel, and what pages get."""
    run = Run()
    name = 'program="0",probe="tracepoint:syscalls:sys_enter_write"'

    def timed(found):
        return int(found.get(f"espy_program_timed_runs_total{{{name}}}", 0))

    def worked():
        work()
        return timed(run.metrics()) > 100 and run.metrics()

    found = until(worked)
    seconds = float(found[f"espy_program_timed_seconds_total{{{name}}}"])
    print("ns of a run", 1 < seconds * 1e9 / timed(found) < 100_000, float(found["espy_timing_seconds"]) < 1e-5)
    print("share", 0 <= float(found[f"espy_program_cpu_ratio{{{name}}}"]) < 1, found["espy_omitted_probes"])
    print("memory", int(found['espy_map_memory_bytes{map="@by_size"}']) > 0, int(found["espy_peak_memory_bytes"]) > 0)
    page = next(message["cost"] for message in run.messages() if message["cost"])
    print("page", page["programs"][0][0], page["map_bytes"] > 0)
    later = until(lambda: timed(run.metrics()) > timed(found) or work())  # windows open when somebody asks
    print("later", later)
    run.end()


def sampled():
    """A budget that has probes off is among the metrics, and on the page."""
    calls = os.environ["BIN"] + "/programs/busy_calls"
    run = Run(program=["--budget=1%", "-c", f"{calls} {LIMIT * 1000} 2000", "-e", f"uprobe:{calls}:work {{ @ = count(); }}"])
    print("seen", float(until(lambda: (share := run.metrics().get('espy_seen_ratio{map="@"}', "1")) != "1" and share)) < 1)
    print("page", until(lambda: next(each["seen"] for message in run.messages() for each in message["maps"]
                                     if "seen" in each)) < 1)
    run.process.send_signal(signal.SIGINT)
    run.process.wait(LIMIT)


def crowd():
    """Connections that ask for nothing make room for those that ask."""
    run = Run()
    idle = [run.socket() for _ in range(100)]
    until(lambda: run.get("/metrics")[0].status == 200)

    def sockets():
        try:
            links = pathlib.Path(f"/proc/{run.process.pid}/fd").iterdir()
            return sum(os.readlink(link).startswith("socket:") for link in links)
        except FileNotFoundError:  # it was closed meanwhile
            return sys.maxsize

    print(len(idle), until(lambda: sockets() <= 64 + 3))  # with the listener, and a pair of libevent
    run.end()


def prometheus():
    """A real Prometheus scrapes the run, and finds its numbers and a quantile."""
    run = Run("-f", "json")
    settled(run)
    with Prometheus(sys.argv[2], f"""
scrape_configs:
  - job_name: espy
    scrape_interval: 200ms
    scrape_timeout: 200ms
    static_configs: [{{targets: ['127.0.0.1:{run.address.port}']}}]
""") as server:
        until(lambda: server.query("espy_calls_total"), 60)
        value = lambda text: server.query(text)[0][1]
        names = ("espy_calls_total", "espy_largest", "espy_amount_sum", "espy_sizes_count")
        found = {name: value(name) for name in names}
        labels = {(metric["count"], number) for metric, number in server.query("espy_by_size_total")}
        median, high = float(value("histogram_quantile(0.5, espy_sizes_bucket)")), float(
            value("histogram_quantile(0.99, espy_sizes_bucket)"))
    maps = printed_maps(run)
    print("numbers", found == {"espy_calls_total": str(maps["@calls"]), "espy_largest": str(maps["@largest"]),
                               "espy_amount_sum": str(maps["@amount"]["total"]), "espy_sizes_count": "120"})
    print("labels", labels == {(key.split(",")[1], str(count)) for key, count in maps["@by_size"].items()})
    print("quantiles", 7 <= median <= 15, 4095 <= high <= 8191)


def pages():
    """A page gets all maps, then those that change, the lines of the log, and word of the end."""
    run = Run(script='begin { @still = 1; } interval:ms:20 { @n++; if (@n < 6) { printf("line %d\\n", @n); } }')
    response, text = run.get("/")
    policy = response.getheader("Content-Security-Policy")
    nonce = re.search("'nonce-(.*?)'", policy)[1]
    print("page", response.getheader("Content-Type"), text.count(f'nonce="{nonce}"'), "default-src 'none'" in policy)
    print("outside", re.findall(r'(?:src|href)="(?!data:|metrics)', text), nonce not in run.get("/")[1])
    messages, log, seen, count = run.messages(), [], [], None
    for message in messages:
        seen.append([each["name"] for each in message["maps"]])
        log += message["log"]
        count = next((each["entries"][0][1] for each in message["maps"] if each["name"] == "@n"), count)
        if len(seen) == 5:
            run.process.send_signal(signal.SIGINT)
        if message["ended"]:
            break
    print("maps", seen[0], set(map(tuple, seen[1:])) <= {("@n",), ()})
    print("log", [text for number, kind, text in log])
    print("ended", message["ended"], f"@n: {count}\n" in run.end())


def flame():
    """The stacks of a page are those of -f folded."""
    run = Run("-f", "folded", script=f"tracepoint:syscalls:sys_enter_write /pid == {os.getpid()} && args.fd == 77/ "
              "{ @[comm, ustack, kstack] = count(); }")
    work()
    for message in run.messages():
        found = next(each for each in message["maps"] if each["name"] == "@") if message["maps"] else None
        if found and sum(weight for weight, *frames in found.get("stacks", [])) == 120:
            break
    lines = {";".join(found["frames"][index] for index in frames) + f" {weight}" for weight, *frames in found["stacks"]}
    folded = {line for line in run.end().splitlines() if not line.startswith("Attached") and line}
    print(lines == folded, len(lines) > 0, all(len(line.split(";")) > 3 for line in lines))


def stalled():
    """A viewer that takes nothing is dropped, and the others go on."""
    run = Run(script='interval:ms:5 { printf("%s\\n", "' + "x" * 900 + '"); @n++; }')
    stalled = socket.socket()
    stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stalled.connect((run.address.hostname, run.address.port))
    stalled.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    other = run.messages()  # a viewer for as long as this refers to it
    for count, _ in enumerate(other):
        if count % 10 == 0 and run.metrics()["espy_web_viewers_dropped_total"] == "1":
            break
    print(run.metrics()["espy_web_viewers_dropped_total"], run.metrics()["espy_web_viewers"])
    run.end()


def viewers():
    """Twenty viewers cost a small share of a CPU."""
    run = Run(script='begin { $i = 0; while ($i < 50) { @keys[$i] = 0; $i++; } } interval:ms:20 '
              '{ @n++; @keys[@n % 50] += @n; @sizes = hist(@n); @linear = lhist(@n, 0, 1000, 50); '
              'printf("tick %d\\n", @n); }')
    streams = [run.messages() for _ in range(20)]
    threads = [threading.Thread(target=lambda stream=stream: [None for _ in stream], daemon=True) for stream in streams]
    for thread in threads:
        thread.start()
    until(lambda: run.metrics()["espy_web_viewers"] == "20")

    def seconds():
        fields = pathlib.Path(f"/proc/{run.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def share():
        before, began = seconds(), time.monotonic()
        time.sleep(3)
        return (seconds() - before) / (time.monotonic() - began)

    shares = []
    until(lambda: shares.append(share()) or min(shares) <= 0.03 * FACTOR, 2 * LIMIT)
    print("at most 3 %", min(shares) <= 0.03 * FACTOR)
    print(shares, file=sys.stderr)
    run.end()


def browser():
    """A browser draws the page without an error; its flame graph is -f folded."""
    run = Run("-f", "folded", script=f"tracepoint:syscalls:sys_enter_write /pid == {os.getpid()} && args.fd == 77/ "
              '{ @s[ustack] = count(); @n = count(); @h = hist(args.count); @k["<b>"] = count(); print("<i>"); '
              '@t[comm] = tseries(args.count, 1s, 5); @st[""] = stats(args.count); @tu[1] = (1, "two", (3, "four")); '
              '@start[tid] = nsecs; }')
    page = Browser(SCRATCH / "profile", 1200, 900)
    page.call("Page.navigate", url=run.url)
    until(lambda: page.value("document.querySelector('.state').textContent") == "live")
    page.value("document.querySelector('.pause').click()")
    work()
    number = """[...document.querySelectorAll('section')].find(each => each.ariaLabel === '@n')
                .querySelector('.number').textContent"""
    until(lambda: page.value("state.maps.get('@n').entries.length && state.maps.get('@n').entries[0][1]") == 120)
    print("paused", page.value(number) != "120")
    page.value("document.querySelector('.pause').click()")
    until(lambda: page.value(number) == "120")
    print("panels", page.value("[...document.querySelectorAll('section')].map(each => each.ariaLabel).join()"))
    until(lambda: page.value("document.querySelectorAll('.lines li').length"))
    print("as text", page.value("document.querySelectorAll('main b, main i').length"),
          page.value("document.querySelector('td').textContent"), page.value("document.querySelector('.lines li').textContent"))
    until(lambda: page.value("document.querySelectorAll('section svg g').length > 3"))
    folded = page.value("state.views.get('@s').foldedText()")
    page.value("document.querySelectorAll('section svg g')[1].querySelector('rect').dispatchEvent("
               "new MouseEvent('click', {bubbles: true}))")
    print("zoomed", page.value("state.views.get('@s').path.length"))
    cells = "[...state.views.get('%s').panel.querySelectorAll('%s')].slice(0, 4).map(each => each.textContent).join()"
    print("statistics", page.value(cells % ("@st", "th")), page.value(cells % ("@st", "td")))
    print("tuple", page.value(cells % ("@tu", "td")))
    print("chart", page.value("state.views.get('@t').picture.querySelectorAll('polyline, circle').length > 0"))
    print("scratch", page.value("state.views.get('@start').isFolded"))
    print("root at the top", page.value("document.querySelector('.flame g rect').getAttribute('y')"))
    page.resize(390, 844)
    print("phone", page.value("document.documentElement.scrollWidth"))
    printed = run.end()
    until(lambda: page.value("document.querySelector('.state').textContent") == "ended")
    print("problems", [each for each in page.problems if "net::ERR" not in str(each)])
    page.close()
    print("folded", set(folded.splitlines()) == {line for line in printed.splitlines() if ";" in line})


if __name__ == "__main__":
    globals()[sys.argv[1]]()
