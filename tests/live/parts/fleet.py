#!/usr/bin/env python3
"""fleet.py CASE [ARGUMENT...]: the files of fleet/ before their real readers. ESPY is the program, SCRATCH a
directory. Prints a line for each thing that holds."""

import http.client
import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys

import kubernetes
import yaml

from listen import ESPY, LIMIT, SCRATCH, Prometheus, Run, until, work

FLEET = pathlib.Path(__file__).resolve().parents[3] / "fleet"
TOOLS = FLEET.parent / "tools"
TOKEN = "a-token-of-sixteen-characters"


def job(name, runs, tool=None):
    targets = ", ".join(f"'127.0.0.1:{run.address.port}'" for run in runs)
    label = f", labels: {{tool: {tool}}}" if tool else ""
    return f"""
  - job_name: {name}
    scrape_interval: 200ms
    scrape_timeout: 200ms
    static_configs: [{{targets: [{targets}]{label}}}]"""


def merge(prometheus):
    """What two espys count, one process each, is added to what one counts that traces both."""
    program = """import os, sys
os.dup2(os.open("/dev/null", os.O_WRONLY), 77)
sys.stdin.readline()
for size in map(int, sys.argv[1:]):
    os.write(77, b"x" * size)
sys.stdin.readline()"""
    writers = [subprocess.Popen([sys.executable, "-c", program, *sizes], stdin=subprocess.PIPE, text=True)
               for sizes in (["1", "2", "3", "100"] * 250, ["3", "70", "5000", "5000"] * 300)]
    pids = [writer.pid for writer in writers]
    def run(name, *of):
        who = " || ".join(f"pid == {pid}" for pid in of)
        return Run(name=name, script=f"tracepoint:syscalls:sys_enter_write /args.fd == 77 && ({who})/ {{ "
                   "@calls[args.count] = count(); @amount = sum(args.count); @sizes = hist(args.count); "
                   "@linear = lhist(args.count, 0, 200, 10); @all = stats(args.count); }")
    first, second, both = run("a", pids[0]), run("b", pids[1]), run("c", *pids)
    for writer in writers:
        writer.stdin.write("\n")
        writer.stdin.flush()
    with Prometheus(prometheus, "scrape_configs:" + job("apart", [first, second]) + job("one", [both])) as server:
        until(lambda: [value for _, value in server.query("sum by (job) (espy_sizes_count)") or []] == ["2200"] * 2, 60)
        until(lambda: len({value for _, value in server.query("sum by (job) (espy_all_sum)")}) == 1)
        for family, by in (("espy_calls_total", "count"), ("espy_amount_total", "job"), ("espy_sizes_bucket", "le"),
                           ("espy_linear_bucket", "le"), ("espy_all_sum", "job"), ("espy_all_count", "job")):
            apart, one = ({labels.get(by) if by != "job" else "": value for labels, value in
                           server.query(f'sum by ({by}) ({family}{{job="{name}"}})')} for name in ("apart", "one"))
            print(family, len(one), apart == one)
        for quantile in ("0.1", "0.5", "0.99"):
            values = {server.query(f'histogram_quantile({quantile}, sum by (le) (espy_sizes_bucket{{job="{name}"}}))')
                      [0][1] for name in ("apart", "one")}
            print("quantile", quantile, len(values) == 1)
    for each in (first, second, both):
        each.end()
    for writer in writers:
        writer.communicate("\n", LIMIT)


def expressions():
    """Each expression of the rules and of the dashboard, as Prometheus takes it."""
    for group in yaml.safe_load((FLEET / "rules.yml").read_text())["groups"]:
        for rule in group["rules"]:
            yield rule.get("record", rule.get("alert")), rule["expr"]
    dashboard = json.loads((FLEET / "dashboard.json").read_text())
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            assert target["datasource"]["uid"] == "${datasource}" and "datasource" in variables
            yield panel["title"], target["expr"].replace("$__rate_interval", "5m").replace("$instance", ".*")


# What has no value where nothing is wrong, or where the machine has no block device.
MAY_BE_EMPTY = ("Espy", "biolatency")


def queries(prometheus, promtool):
    """The rules and the dashboard find what the tools serve."""
    # Debian's Prometheus does not ask Kubernetes.
    config = yaml.safe_load((FLEET / "prometheus.yml").read_text().replace("/etc/prometheus", str(SCRATCH)))
    for each in config["scrape_configs"]:
        each.pop("kubernetes_sd_configs", None)
    (SCRATCH / "config.yml").write_text(yaml.dump(config))
    (SCRATCH / "espy-token").write_text(TOKEN)
    shutil.copy(FLEET / "rules.yml", SCRATCH)
    (SCRATCH / "targets").mkdir()
    shutil.copy(FLEET / "targets.yml", SCRATCH / "targets")
    done = subprocess.run([promtool, "check", "config", SCRATCH / "config.yml"], capture_output=True, text=True)
    print("promtool", done.returncode, "" if done.returncode == 0 else done.stdout + done.stderr)
    tools = ("runqlat", "biolatency", "syscount")
    runs = {tool: Run("--budget=2%", name=tool, program=[TOOLS / f"{tool}.bt"]) for tool in tools}
    with Prometheus(prometheus, "scrape_configs:" + "".join(
            job(f"espy-{tool}", [run], tool) for tool, run in runs.items())) as server:
        seen = 0
        for name, text in expressions():
            if any(word in name + text for word in MAY_BE_EMPTY):
                until(lambda: server.query(text) is not None)
                continue
            until(lambda: server.query(text), 60, name)
            seen += 1
        print("expressions with values", seen)
        print("labels", {frozenset(labels) for labels, _ in server.query("espy_syscall_total")} ==
              {frozenset(("__name__", "instance", "job", "tool", "syscall"))})
        print("variable", len(server.query("espy_build_info")))
    for run in runs.values():
        run.end()


def ready(process, errors):
    """The address at which `process` listens."""
    def found():
        if process.poll() is not None:
            raise SystemExit(errors.read_text())
        return re.search(r"Listening at http://(\S+?):(\d+)", errors.read_text())
    return int(until(found)[2])


def serves(command, environment, token, family, **how):
    """Whether `command` serves `family` to those with the token only."""
    errors = SCRATCH / "served.err"
    with open(errors, "w") as log:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, env=environment, **how)
    try:
        port = ready(process, errors)
        def get(headers):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
            connection.request("GET", "/metrics", headers=headers)
            response = connection.getresponse()
            return response.status, response.read().decode()
        until(lambda: f"\n{family}{{" in get({"Authorization": f"Bearer {token}"})[1])
        return get({})[0]
    finally:
        process.send_signal(signal.SIGINT)
        print("ended", process.wait(LIMIT), file=sys.stderr)


# Before Linux 5.11 the memory of BPF counts as locked.
COUNTS_AS_LOCKED = tuple(map(int, os.uname().release.split(".")[:2])) < (5, 11)


def unit():
    """systemd takes the unit, and its command works with the rights that it gives."""
    text = (FLEET / "espy@.service").read_text().replace("/usr/bin/espy", ESPY).replace("/usr/share/espy/tools",
                                                                                      str(SCRATCH))
    shutil.copy(TOOLS / "syscount.bt", SCRATCH)
    SCRATCH.chmod(0o755)
    file = SCRATCH / "espy@syscount.service"
    file.write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", file], capture_output=True, text=True)
    print("valid", done.returncode, "" if done.returncode == 0 else done.stderr)
    settings = dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    rights = "-all" + "".join(",+" + name.lower().removeprefix("cap_")
                              for name in settings["AmbientCapabilities"].split())
    command = settings["ExecStart"].replace("%%", "%").replace("%i", "syscount").replace("${LISTEN}", "0.0.0.0:0")
    locked = resource.RLIM_INFINITY if settings["LimitMEMLOCK"] == "infinity" else 0
    def limit():
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (locked, locked))
    print("without the token", serves(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", f"--bounding-set={rights}",
         f"--inh-caps={rights}", f"--ambient-caps={rights}", *shlex.split(command.replace("$ARGUMENTS", ""))],
        {"ESPY_LISTEN_TOKEN": TOKEN}, TOKEN, "espy_syscall_total", preexec_fn=limit if COUNTS_AS_LOCKED else None))


def lost_fields(given, kept, path=""):
    """The fields of `given` that `kept` has not, or has otherwise."""
    if isinstance(given, dict) and isinstance(kept, dict):
        return [field for key in given for field in lost_fields(given[key], kept.get(key), f"{path}.{key}")]
    if isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        return [field for i, each in enumerate(given) for field in lost_fields(each, kept[i], f"{path}[{i}]")]
    return [] if given == kept else [path]


def daemonset():
    """The API's types hold all that the DaemonSet says, and its containers work with what it gives them."""
    given = yaml.safe_load((FLEET / "daemonset.yaml").read_text())
    client = kubernetes.client.ApiClient()
    class Response:
        data = json.dumps(given)
    print("unknown fields", lost_fields(given, client.sanitize_for_serialization(client.deserialize(Response, "V1DaemonSet"))))
    pod = given["spec"]["template"]["spec"]
    root = SCRATCH / "root"
    for folder in ("usr/bin", "usr/share/espy/tools", "proc", "sys"):
        (root / folder).mkdir(parents=True)
    shutil.copy(ESPY, root / "usr/bin/espy")
    for container in pod["containers"]:
        context = container["securityContext"]
        names = context["capabilities"]["add"] + (["SYS_RESOURCE"] if COUNTS_AS_LOCKED else [])
        rights = "-all" + "".join(",+" + name.lower() for name in names)
        tool = pathlib.Path(container["args"][-1])
        shutil.copy(TOOLS / tool.name, root / "usr/share/espy/tools")
        port = str(container["ports"][0]["containerPort"])
        arguments = [argument.replace(port, "0") for argument in container["args"]]
        mounts = " && ".join(f"mount --bind -o ro {path} {root}{path}" for path in
                             [mount["mountPath"] for mount in container["volumeMounts"]])
        family = {"syscount": "espy_syscall_total", "runqlat": "espy_us_bucket"}.get(tool.stem)
        if family:
            inner = shlex.join(["setpriv", "--no-new-privs", f"--bounding-set={rights},+sys_chroot", f"--inh-caps={rights}",
                                "unshare", f"--root={root}", "/usr/bin/espy", *arguments])
            print(tool.stem, serves(["unshare", "-m", "sh", "-c", f"mount -t proc proc {root}/proc && mount -t sysfs -o ro sysfs {root}/sys && {mounts} && exec {inner}"],
                                    {"ESPY_LISTEN_TOKEN": TOKEN, "PATH": os.environ["PATH"]}, TOKEN, family))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
