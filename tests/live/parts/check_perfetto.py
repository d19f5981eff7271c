"""check_perfetto.py PFTRACE JSON: the first is a trace by perfetto.bt in Perfetto's format, the second of another run in
JSON. Spans nest, have names and times, and their threads; the size is a tenth at most."""
import os
import re
import subprocess
import sys

text = subprocess.run([sys.executable, os.path.join(os.path.dirname(__file__), "perfetto.py"), sys.argv[1]], check=True,
                      capture_output=True, text=True).stdout
packets = re.findall(r"^packet \{\n(.*?)^\}\n", text, re.MULTILINE | re.DOTALL)


def value(packet, name, kind=int):
    found = re.search(rf"\b{name}: (.*)", packet)
    return kind(found[1].strip('"')) if found else None


names, threads, counters, depths, values = {}, {}, {}, {}, {}
now = calls = 0
assert "clock_snapshot" in packets[0] and "sequence_flags: 1" in packets[0], packets[0]
assert re.search(r"clock_id: 64\s+timestamp: \d+\s+is_incremental: true", packets[0]), packets[0]
for packet in packets[1:]:
    for number, name in re.findall(r'event_names \{\s+iid: (\d+)\s+name: "(.*)"', packet):
        names[int(number)] = name
    if "track_descriptor" in packet:
        track = value(packet, "uuid")
        if "thread {" in packet:
            threads[track] = value(packet, "tid")
        if "counter {" in packet:
            counters[track] = value(packet, "name", str)
        continue
    assert "sequence_flags: 2" in packet, packet
    if value(packet, "timestamp_clock_id") is None:
        now += value(packet, "timestamp")
    assert now < 3600e9, "times are differences"
    track, kind = value(packet, "track_uuid"), value(packet, "type", str)
    if kind == "TYPE_SLICE_BEGIN":
        assert names[value(packet, "name_iid")] == "fib" and track in threads, packet
        depths[track] = depths.get(track, 0) + 1
        calls += 1
    if kind == "TYPE_SLICE_END":
        depths[track] -= 1
        assert depths[track] >= 0, packet
    if kind == "TYPE_COUNTER":
        values[counters[track]] = value(packet, "counter_value")
assert len(threads) == 4 and set(depths.values()) == {0}, (threads, depths)
assert values["@calls"] == calls and sum(v for name, v in values.items() if name.startswith("@by_thread[")) == calls
assert "result" in values, values
print(f"{calls} calls of fib")
