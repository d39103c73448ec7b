"""Generate `docs/benchmarks.md` and its plots from the results in `benchmarks/results/`.

python benchmarks/report.py
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

import svg
from figures import FIGURES
from harness import RESULTS
from sections import PHASES, SECTIONS, TOPICS, Section, prose

_DOCS = Path(__file__).parent.parent / "docs"
_PLOTS = _DOCS / "benchmarks"


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    _PLOTS.mkdir(exist_ok=True)
    for old in _PLOTS.glob("*.svg"):
        old.unlink()
    results = {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}
    first, *others = SECTIONS
    parts = [
        prose("introduction"),
        *([_section(first, results[first.name])] if first.name in results else []),
        _summary(results),
    ]
    for section in others:
        if section.name in results:
            parts.append(_section(section, results[section.name]))
    parts.append(prose("tried"))
    (_DOCS / "benchmarks.md").write_text("\n".join(parts))


def _summary(results: dict[str, Any]) -> str:
    lines = ["## Limits and measurements", ""]
    lines += [
        "The table contains all limits, met or missed. Of limits that apply to each of many phases or shapes, it shows"
    ]
    lines += ["the highest figure.", ""]
    lines += ["| | limit | measured | |", "|---|--:|--:|---|"]
    titles = {section.name: section.title for section in SECTIONS}
    for topic, questions in TOPICS:
        lines.append(f"| **{topic}** | | | |")
        for name, beginning in questions:
            if name not in results:
                lines.append(f"| {titles[name]} | | not measured | |")
                continue
            required = [each for each in results[name]["requirements"] if each["title"].startswith(beginning)]
            for each in _highest(required, _GROUPS[name]) if name in _GROUPS else required:
                title = "" if len(questions) == 1 or titles[name] == topic else f"{titles[name]}: "
                limit, measured = (_ratio(each[value], each) for value in ("at_most", "measured"))
                mark = "" if each["met"] else "**missed**"
                lines.append(f"| {title}{each['title']} | ≤ {limit} | {measured} | {mark} |")
    return "\n".join([*lines, ""])


def _ratio(value: float, requirement: dict[str, Any]) -> str:
    if requirement.get("is_ratio") and 0 < requirement["at_most"] <= 0.5 and value > 0:
        return f"1/{svg.number(1 / value)}"
    return svg.number(value)


#: Sections whose plots have other clients.
_BESIDE_OTHERS = (
    "beside_others",
    "controllers",
    "controllers_real",
    "lone_events",
    "real_server",
    "unchanged_runs",
)

#: Splits the titles of requirements that the summary groups: the members of a group differ only in `part`.
_GROUPS = {
    "loop_blocking": re.compile(r"(?P<subject>[^:]+: )(?P<part>[^:]+): (?P<figure>.+)"),
    "heavy_objects": re.compile(r"(?P<subject>)(?P<part>.+): (?P<figure>.+)"),
}


def _highest(required: list[dict[str, Any]], pattern: re.Pattern[str]) -> list[dict[str, Any]]:
    """Reduce each group of requirements to the one with the highest figure."""
    found: dict[str, dict[str, Any]] = {}
    for each in required:
        match = pattern.fullmatch(each["title"])
        if match is None:
            found[each["title"]] = each
            continue
        group = f"{match['subject']}{match['figure']}"
        if group not in found or each["measured"] > found[group]["measured"]:
            found[group] = each | {"title": f"{group} (highest: {match['part']})"}
    return list(found.values())


def _section(section: Section, result: dict[str, Any]) -> str:
    lines = [f"## {section.title}", ""]
    if section.text:
        lines += [section.text, ""]
    medians: dict[str, dict[str, float]] = result["medians"]
    for figure, unit in section.plots:
        title = f"{section.title}: {FIGURES[figure]}"
        name = section.name if figure == section.plots[0][0] else f"{section.name}_{figure}"
        others, limit = section.name in _BESIDE_OTHERS, section.limits.get(figure, 0.0)
        lines += [_plot(name, title, svg.bars(title, _column(medians, figure), unit, others=others, limit=limit))]
    match section.name:
        case "loop_blocking":
            lines += _blocking(medians)
        case "scale" | "million":
            lines += [*_scale(section.name, medians), "", *_table(medians)]
        case _:
            lines += _table(medians)
    origin = f"{result['rounds']} round{'s' if result['rounds'] > 1 else ''}" + (
        f" on {result['date']}, in {result['seconds']} s" if "date" in result else ""
    )
    lines += ["", *(f"{note}\n" for note in result["notes"]), f"{origin}. {result['machine']}.{_speed(result)}", ""]
    return "\n".join(lines)


def _speed(result: dict[str, Any]) -> str:
    """Return a sentence on the speed of the machine, if it was measured."""
    times = [value for speed in result.get("calibration_ms", []) for pair in speed.values() for value in pair]
    if not times:
        return ""
    low, high = svg.number(min(times)), svg.number(max(times))
    return f" Before and after the measurements, the same work took {low} to {high} ms of CPU time."


def _column(medians: dict[str, dict[str, float]], figure: str) -> dict[str, float]:
    return {name: figures[figure] for name, figures in medians.items() if figure in figures}


def _table(medians: dict[str, dict[str, float]]) -> list[str]:
    shown = [figure for figure in FIGURES if any(figure in figures for figures in medians.values())]
    lines = ["| | " + " | ".join(FIGURES[figure] for figure in shown) + " |", "|---" + "|--:" * len(shown) + "|"]
    for name, figures in medians.items():
        cells = [svg.number(figures[figure]) if figure in figures else "" for figure in shown]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def _blocking(medians: dict[str, dict[str, float]]) -> list[str]:
    lines = ["| | CPU, s | blocked p99, ms | blocked max, ms | by the clock: p99, ms | by the clock: max, ms |"]
    lines += ["|---|--:|--:|--:|--:|--:|"]
    for name, figures in medians.items():
        for phase in PHASES:
            shown = ("cpu_seconds", "blocked_p99_ms", "blocked_max_ms", "p99_ms", "max_ms")
            cells = [svg.number(figures[f"{phase}_{figure}"]) for figure in shown]
            lines.append(f"| {name}: {phase.replace('_', ' ')} | " + " | ".join(cells) + " |")
    return lines


def _plot(name: str, title: str, document: str) -> str:
    (_PLOTS / f"{name}.svg").write_text(document)
    return f"![{title}](benchmarks/{name}.svg)\n"


def _scale(name: str, medians: dict[str, dict[str, float]]) -> list[str]:
    """Return plots by size, and the growth of each cost from a quarter of the largest size to that size."""
    sizes = {int(name.split()[0].replace(",", "")): each for name, each in medians.items() if name.endswith(" pods")}
    by_count = {int(name.split()[0]): each for name, each in medians.items() if re.fullmatch(r"\d+ handlers?", name)}
    by_size: dict[str, list[tuple[float, float]]] = {
        "first list, CPU s": [(size, each["sync_cpu_seconds"]) for size, each in sorted(sizes.items())],
        "memory, MiB": [
            (size, each["kib_per_object"] * each["objects"] / 1024) for size, each in sorted(sizes.items())
        ],
        "CPU per event, µs": [(size, each["watch_us_per_event"]) for size, each in sorted(sizes.items())],
    }
    by_handlers: dict[str, list[tuple[float, float]]] = {
        "CPU per event, µs": [(count, each["watch_us_per_event"]) for count, each in sorted(by_count.items())],
        "CPU per notification, µs": [
            (count, each["watch_us_per_notification"]) for count, each in sorted(by_count.items())
        ],
    }
    found = []
    if len(sizes) > 1:
        found.append(_plot(f"{name}_objects", "By number of pods", svg.panels("By number of pods", by_size, "pods")))
        most = max(sizes)
        if (quarter := most // 4) in sizes:
            found += [f"| ratio of {most:,} to {quarter:,} pods | per object or event |", "|---|--:|"]
            for figure in ("sync_cpu_seconds", "kib_per_object", "watch_us_per_event"):
                ratio = sizes[most][figure] / sizes[quarter][figure]
                ratio *= sizes[quarter]["objects"] / sizes[most]["objects"] if figure == "sync_cpu_seconds" else 1
                found.append(f"| {FIGURES[figure]} | {svg.number(ratio)} |")
            found.append("")
    if len(by_count) > 1:
        found.append(
            _plot(
                "scale_handlers", "By number of handlers", svg.panels("By number of handlers", by_handlers, "handlers")
            )
        )
    return found


if __name__ == "__main__":
    main()
