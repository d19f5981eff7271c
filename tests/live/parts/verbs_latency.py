"""Reads the JSON of `espy latency`, and prints how many calls its maps have: in all, or by key."""

import json
import sys

title = sys.argv[1]
maps = {}
for line in sys.stdin:
    if not line.startswith("{"):
        continue  # of the program
    each = json.loads(line)
    if each["type"] in ("hist", "stats", "map"):
        maps.update(each["data"])
histogram, statistics = maps["@latency_ns"], maps["@calls_ns"]
if isinstance(histogram, list):
    histogram, statistics = {"": histogram}, {"": statistics}
for key in sorted(histogram):
    calls = sum(row["count"] for row in histogram[key])
    print(f"{title}{' ' if key else ''}{key}: {calls} calls in the histogram, {statistics[key]['count']} in the statistics")
