"""Rows of samples, their tables, and the targets that they meet or miss."""

import dataclasses
import json

from harness.process import median

TOOLS = ["espy", "bpftrace", "C"]
MEASURED = "measured"  # a column instead of the other tools: what espy's figure should be
NOISE = 1.03  # two runs of the same thing differ by this; no target is missed by less


@dataclasses.dataclass
class Row:
    name: str
    unit: str
    series: str = ""  # of a row that is a point of a line: the line ...
    size: int = 0     # ... and what grows
    samples: dict = dataclasses.field(default_factory=dict)  # tool -> samples, in `unit`
    failures: dict = dataclasses.field(default_factory=dict)  # tool -> why there are none
    limit: float | None = None      # espy's target
    at_least: bool = False          # ... is a lower bound
    at_most_ratio: dict = dataclasses.field(default_factory=dict)  # tool -> espy's target as a multiple of it
    within: float | None = None     # espy's target: how far from MEASURED, as a share of it

    def add(self, tool, sample):
        self.samples.setdefault(tool, []).append(sample)

    def best(self, samples):
        return max(samples) if self.at_least else min(samples)

    def value(self, tool, by_best=False):
        """The median, or the best of the rounds; None if there are no samples."""
        samples = self.samples.get(tool)
        if not samples:
            return None
        return self.best(samples) if by_best else median(samples)

    def ratio(self, tool, by_best=False):
        espy, other = self.value("espy", by_best), self.value(tool, by_best)
        return espy / other if espy is not None and other else None

    def misses(self, by_best):
        """What espy fails to reach, as phrases."""
        espy = self.value("espy", by_best)
        has_target = self.limit is not None or self.at_most_ratio or self.within is not None
        if espy is None:
            return [f"{self.name} ({self.unit}): no figure"] if has_target else []
        missed = []
        if self.limit is not None and (espy * NOISE < self.limit if self.at_least else espy > self.limit * NOISE):
            missed.append(f"{self.name}: {number(espy)} {self.unit}, target {number(self.limit)}")
        for tool, ratio in self.at_most_ratio.items():
            actual = self.ratio(tool, by_best)
            if actual is not None and actual > ratio * NOISE:
                missed.append(f"{self.name}: {actual:.2f} times {tool}, target {ratio:g}")
        if self.within is not None:
            actual = self.ratio(MEASURED, by_best)
            if actual is None or abs(actual - 1) > self.within:
                missed.append(f"{self.name}: {number(actual or 0)} times what was measured, target {self.within:.0%}")
        return missed

    def target(self):
        parts = []
        if self.limit is not None:
            parts.append(("≥ " if self.at_least else "≤ ") + number(self.limit))
        parts += [f"≤ {ratio:g} × {tool}" for tool, ratio in self.at_most_ratio.items()]
        if self.within is not None:
            parts.append(f"± {self.within:.0%}")
        return ", ".join(parts)


def columns(rows):
    """The tools that a group of rows has columns for; espy is the first."""
    return ["espy", MEASURED] if any(MEASURED in row.samples for row in rows) else TOOLS


def number(value):
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


class Report:
    def __init__(self):
        self.groups = {}  # title -> rows
        self.by_best = False  # targets are judged by the best of the rounds, not the median
        self.notes = []
        self.machine = ""

    def group(self, title):
        return self.groups.setdefault(title, [])

    def note(self, text):
        self.notes.append(text)
        print(f"  note: {text}", flush=True)

    def print_group(self, title):
        tools = columns(self.groups[title])
        header = ["", "unit", *tools, *(f"espy/{tool}" for tool in tools[1:]), "target", ""]
        lines = [header]
        for row in self.groups[title]:
            cells = [row.name, row.unit]
            for tool in tools:
                samples = row.samples.get(tool)
                spread = f" ({number(row.best(samples))})" if samples and len(samples) > 1 else ""
                cells.append(number(row.value(tool)) + spread if samples else "failed" if tool in row.failures else "-")
            for tool in tools[1:]:
                ratio = row.ratio(tool)
                cells.append("-" if ratio is None else f"{ratio:.3g}" if ratio < 100 else f"{ratio:.0f}")
            cells += [row.target(), "missed" if row.misses(self.by_best) else ""]
            lines.append(cells)
        widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
        print(f"\n{title}")
        for line in lines:
            cells = [cell.ljust(width) if i in (0, 1, len(line) - 2, len(line) - 1) else cell.rjust(width)
                     for i, (cell, width) in enumerate(zip(line, widths))]
            print("  " + "  ".join(cells).rstrip())
        for row in self.groups[title]:
            for tool, why in row.failures.items():
                print(f"  {tool}, {row.name}: {why}")
        print(flush=True)

    def read_json(self, path):
        """Adds the groups of an earlier run; those of this run take precedence."""
        with open(path, encoding="utf-8") as file:
            earlier = json.load(file)
        for title, rows in earlier["groups"].items():
            self.groups.setdefault(title, [Row(**row) for row in rows])
        self.notes += [note for note in earlier["notes"] if note not in self.notes]
        self.machine = self.machine or earlier["machine"]

    def misses(self):
        return [phrase for rows in self.groups.values() for row in rows for phrase in row.misses(self.by_best)]

    def write_json(self, path):
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"machine": self.machine, "notes": self.notes,
                       "groups": {title: [dataclasses.asdict(row) for row in rows]
                                  for title, rows in self.groups.items()}}, file, indent=1)
            file.write("\n")
