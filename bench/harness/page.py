"""docs/internals/performance.md and its plot, from the rows of a report."""

import math

from harness.report import columns, number

INTRO = """# Performance

<!-- Written by `bench/run --write`: not to be edited. -->

These tables compare espy with bpftrace and with hand-written C programs, on one machine: {machine}.
[bench/README.md](../../bench/README.md) explains each measurement. `bench/run BUILD --json FILE` measures, and
`bench/run --from FILE --write` writes this page. Cells hold the median and, in parentheses, the best of the
rounds.{busy}
"""
BUSY = " **The machine was busy with other work: the best values say more than the medians.**"
PLOT = "performance-growth.svg"
COLORS = {"espy": "e", "bpftrace": "b"}

# Colors that contrast with white and with a dark page.
STYLE = """
text { font: 11px sans-serif; fill: #333 } .title { font-weight: bold } .grid { stroke: #ddd } .axis { stroke: #888 }
.e { stroke: #0a62c4; fill: none; stroke-width: 2 } .b { stroke: #c2570c; fill: none; stroke-width: 2 }
.dot.e { fill: #0a62c4 } .dot.b { fill: #c2570c }
@media (prefers-color-scheme: dark) {
  text { fill: #ccc } .grid { stroke: #3a3a3a } .axis { stroke: #888 }
  .e { stroke: #6cb1ff } .b { stroke: #ff9e57 } .dot.e { fill: #6cb1ff } .dot.b { fill: #ff9e57 }
}
"""
WIDTH, HEIGHT, COLUMNS = 260, 190, 3  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 24, 24


def write(report, directory):
    lines = [INTRO.format(machine=report.machine, busy=BUSY if is_busy(report) else "")]
    for title, rows in report.groups.items():
        lines.append(f"\n## {title}\n")
        if any(row.series for row in rows):
            lines.append(f"![Time and memory by number]({PLOT})\n")
            (directory / PLOT).write_text(plot(rows), encoding="utf-8")
        lines += table(rows)
    if report.notes:
        lines += ["\n## Notes\n", *(f"- {note}" for note in report.notes)]
    text = "\n".join(lines) + "\n"
    (directory / "performance.md").write_text(text.replace("\n\n\n", "\n\n"), encoding="utf-8")


def is_busy(report):
    return report.by_best or any("busy" in note for note in report.notes)


def table(rows):
    tools = columns(rows)
    head = ["", "unit", *tools, *(f"espy/{tool}" for tool in tools[1:])]
    out = ["| " + " | ".join(head).lstrip() + " |", "|---" * len(head) + "|"]
    for row in rows:
        cells = [row.name.replace("|", "\\|"), row.unit]
        for tool in tools:
            samples = row.samples.get(tool)
            best = f" ({number(row.best(samples))})" if samples and len(samples) > 1 else ""
            cells.append(number(row.value(tool)) + best if samples else "")
        for tool in tools[1:]:
            ratio = row.ratio(tool)
            cells.append("" if ratio is None else f"{ratio:.3g}")
        out.append("| " + " | ".join(cells) + " |")
    return out


def plot(rows):
    """A panel for each series and unit, both axes logarithmic."""
    panels = {}
    for row in rows:
        if row.series and row.samples:
            panels.setdefault((row.series, row.unit), []).append(row)
    lines = math.ceil(len(panels) / COLUMNS)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {COLUMNS * WIDTH} {lines * HEIGHT + 24}" role="img">',
             "<title>What a script costs by the number of what it has: espy and bpftrace</title>",
             f"<style>{STYLE}</style>"]
    for index, ((series, unit), points) in enumerate(panels.items()):
        x, y = index % COLUMNS * WIDTH, index // COLUMNS * HEIGHT
        parts += [f'<g transform="translate({x},{y})">', *panel(f"{series}: {unit}", points), "</g>"]
    y = lines * HEIGHT + 14
    for index, tool in enumerate(COLORS):
        x = LEFT + index * 100
        parts += [f'<path class="{COLORS[tool]}" d="M{x} {y - 4}h20"/>', f'<text x="{x + 26}" y="{y}">{tool}</text>']
    return "\n".join([*parts, "</svg>\n"])


def panel(title, rows):
    values = [row.value(tool) for row in rows for tool in COLORS if row.value(tool)]
    right, low, high = max(max(row.size for row in rows), 2), *decades(values)
    first = min(row.size for row in rows)

    def across(size):
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(size / first) / max(math.log(right / first), 1e-9)

    def down(value):
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - math.log10(value / low) / math.log10(high / low))

    bottom = HEIGHT - BOTTOM
    yield f'<text class="title" x="{LEFT}" y="14">{title}</text>'
    tick = low
    while tick <= high * 1.01:
        yield f'<path class="grid" d="M{LEFT} {down(tick):.1f}H{WIDTH - RIGHT}"/>'
        yield f'<text x="{LEFT - 4}" y="{down(tick) + 4:.1f}" text-anchor="end">{number(tick)}</text>'
        tick *= 10
    yield f'<path class="axis" d="M{LEFT} {bottom}H{WIDTH - RIGHT}"/>'
    for row in rows:
        yield f'<text x="{across(row.size):.1f}" y="{bottom + 14}" text-anchor="middle">{short(row.size)}</text>'
    for tool, css in COLORS.items():
        points = [(across(row.size), down(row.value(tool))) for row in rows if row.value(tool)]
        if points:
            yield f'<path class="{css}" d="M' + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) + '"/>'
        yield from (f'<circle class="dot {css}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in points)


def decades(values):
    """The powers of ten around the values."""
    low = 10.0 ** math.floor(math.log10(min(values)))
    return low, max(10.0 ** math.ceil(math.log10(max(values))), low * 10)


def short(size):
    return f"{size // 1_000_000}M" if size >= 1_000_000 else f"{size // 1000}k" if size >= 1000 else str(size)
