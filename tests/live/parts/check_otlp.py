"""Standard input is what `espy -f otlp` made of otlp.bt: each line is a request of OTLP/JSON, with what happened."""
import json
import re
import sys
import time

spans, metrics, logs = [], {}, []


def attributes(thing):
    return {each["key"]: next(iter(each["value"].values())) for each in thing["attributes"]}


for line in sys.stdin:
    request = json.loads(line)
    assert len(request) == 1, line
    for resource in request.get("resourceSpans", []):
        of = attributes(resource["resource"])
        assert of["service.name"] == "requests" and int(of["process.pid"]) > 0 and of["host.name"], of
        for scope in resource["scopeSpans"]:
            assert scope["scope"]["name"] == "espy"
            spans += scope["spans"]
    for resource in request.get("resourceMetrics", []):
        for scope in resource["scopeMetrics"]:
            metrics |= {metric["name"]: metric for metric in scope["metrics"]}
    for resource in request.get("resourceLogs", []):
        assert attributes(resource["resource"])["service.name"] == "espy"
        for scope in resource["scopeLogs"]:
            logs += scope["logRecords"]

now = time.time_ns()
handles = {span["spanId"]: span for span in spans if span["name"] == "handle"}
reads = [span for span in spans if span["name"] == "read"]
assert len(handles) == 3 and len(reads) == 3 and len(spans) == 6, spans
assert len({span["spanId"] for span in spans}) == 6
for span in spans:
    assert re.fullmatch("[0-9a-f]{32}", span["traceId"]) and re.fullmatch("[0-9a-f]{16}", span["spanId"]), span
    begin, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
    assert now - 60e9 < begin <= end <= now, span
assert sorted(span["traceId"] for span in handles.values()) == [
    f"0af7651916cd43dd8448eb211c80319{i}" for i in (1, 2, 3)], handles
for span in handles.values():
    assert span["parentSpanId"] == "b7ad6b7169203331" and attributes(span)["got"] == "64", span
    assert "traceparent" not in attributes(span)
for span in reads:
    above = handles[span["parentSpanId"]]
    assert span["traceId"] == above["traceId"], span
    assert int(above["startTimeUnixNano"]) <= int(span["startTimeUnixNano"]), span
    assert int(span["endTimeUnixNano"]) <= int(above["endTimeUnixNano"]), span
    assert [event["name"] for event in span["events"]] == ["reading"], span
    assert attributes(span)["result"] == "64", span

(point,) = metrics["read_bytes"]["sum"]["dataPoints"]
assert metrics["read_bytes"]["unit"] == "By" and attributes(point) == {"comm": "requests"}, point
assert point["asInt"] == "192" and int(point["startTimeUnixNano"]) < int(point["timeUnixNano"]) <= now, point
(point,) = metrics["sizes"]["histogram"]["dataPoints"]
assert point["count"] == "3" and point["explicitBounds"] == [63, 127] and point["bucketCounts"] == ["0", "3", "0"], point
assert metrics["calls"]["sum"]["isMonotonic"] and metrics["calls"]["sum"]["aggregationTemporality"] == 2
assert [log["body"]["stringValue"] for log in logs] == ['handled "64"'] * 3, logs
