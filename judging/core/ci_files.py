"""A run's report for continuous integration: JUnit's XML, and a summary in Markdown. Texts of rows and answers are in
neither unless they were asked for, because the logs of such systems are often public."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from evalsite.rounding import fixed, fixed_percent
from judging.core.requirements import MET, Decision

MARK = "<!-- evalsite -->"
"""Hidden in the summary: a workflow finds its earlier comment by it."""
WORST = 5
FAILED_ITEMS = 50
CANNOT_TELL = "cannot tell"
_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NOT_IN_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#!|~@])")


@dataclass(frozen=True, slots=True)
class Item:
    """A judged answer. `judgement`: its number; `address`: its page; `text`: '' unless texts were asked for."""

    judgement: int
    metric: str
    candidate: str
    line: int
    address: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Results:
    """What the files are made of. `document`: of `report --json`; `changes`: of `compare --json`, from the baseline to
    the run, None without a baseline; `failed`: of pass/fail metrics; `worse`: new failures, the worst first."""

    document: Mapping[str, Any]
    address: str
    requirements: Sequence[tuple[str, Decision]]
    failed: Sequence[Item]
    baseline: str = ""
    changes: Mapping[str, Mapping[str, Mapping[str, Any]]] | None = None
    worse: Sequence[Item] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """A metric's figure for a candidate; `rate`: whether it is a share."""

    metric: str
    candidate: str
    value: float | None
    low: float | None
    high: float | None
    rate: bool


def junit_xml(results: Results) -> bytes:
    """A case for each requirement, and one for each of the first failed items."""
    failed = results.failed[:FAILED_ITEMS]
    not_met = sum(decision.verdict != MET for _text, decision in results.requirements)
    counts = {
        "tests": str(len(results.requirements) + len(failed)),
        "failures": str(not_met + len(failed)),
    }
    root = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(root, "testsuite", {"name": _xml(results.document["run"]), **counts})
    for text, decision in results.requirements:
        case = ElementTree.SubElement(suite, "testcase", {"classname": "requirements", "name": _xml(text)})
        if decision.verdict != MET:
            kind = {"type": decision.verdict, "message": _xml(decision.sentence)}
            ElementTree.SubElement(case, "failure", kind)
    for item in failed:
        name = {"classname": _xml(item.metric), "name": _xml(_named(item))}
        case = ElementTree.SubElement(suite, "testcase", name)
        failure = ElementTree.SubElement(case, "failure", {"type": "fail", "message": "The verdict is fail."})
        failure.text = _xml("\n".join(filter(None, (item.address, item.text))))
    document: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def summary_md(results: Results) -> str:
    """Each metric and candidate with its value and interval, and the difference to the baseline."""
    head = ["Metric", "Candidate", "Value", "95 % interval"]
    if results.changes is not None:
        head += [f"Difference to {results.baseline}", "95 % interval", "Verdict"]
    rows = [head, *(_cells(line, results.changes) for line in lines_of(results.document))]
    table = [f"| {' | '.join(map(_markdown, row))} |" for row in rows]
    table.insert(1, "|" + " --- |" * len(head))
    parts = [f"{MARK}\n## {_linked(results.document['run'], results.address)}", "\n".join(table)]
    if results.requirements:
        parts.append(
            "\n".join(f"- {_markdown(decision.sentence)}" for _text, decision in results.requirements)
        )
    if results.changes is not None:
        parts.append(_worst(results.worse))
    return "\n\n".join(parts) + "\n"


def lines_of(document: Mapping[str, Any]) -> Iterator[Line]:
    """The means of a report, and the win rates of its comparisons."""
    for candidate, cells in document["candidates"].items():
        for metric, cell in cells.items():
            if cell["kind"] != "category":
                yield Line(
                    metric, candidate, cell["mean"], cell["ci_low"], cell["ci_high"], cell["kind"] == "bool"
                )
    for side in document["side_by_side"]:
        for candidate, rate in side["candidates"].items():
            ends = rate["win_rate"], rate["ci_low"], rate["ci_high"]
            yield Line(f"{side['metric']}, win rate by {side['by']}", candidate, *ends, True)


def standing(low: float | None, high: float | None) -> str:
    """What the interval of a difference says: higher, lower, or that it cannot tell."""
    if low is None or high is None or low <= 0 <= high:
        return CANNOT_TELL
    return "higher" if low > 0 else "lower"


def _cells(line: Line, changes: Mapping[str, Mapping[str, Mapping[str, Any]]] | None) -> list[str]:
    cells = [
        line.metric, line.candidate, _figure(line.value, rate=line.rate),
        _interval(line.low, line.high, rate=line.rate),
    ]  # fmt: skip
    if changes is None:
        return cells
    change = changes.get(line.metric.partition(", win rate")[0], {}).get(line.candidate)
    if change is None:
        return [*cells, "–", "–", "not in the baseline"]
    low, high = change["ci_low"], change["ci_high"]
    return [
        *cells, _figure(change["difference"], rate=line.rate, signed=True),
        _interval(low, high, rate=line.rate, signed=True), standing(low, high),
    ]  # fmt: skip


def _figure(value: float | None, *, rate: bool, signed: bool = False) -> str:
    if value is None:
        return "–"
    text = fixed(value, 3)
    if rate:
        text = f"{fixed_percent(value, 1)} {'points' if signed else '%'}"  # percentage points
    return f"+{text}" if signed and value > 0 else text.replace("-", "−")


def _interval(low: float | None, high: float | None, *, rate: bool, signed: bool = False) -> str:
    if low is None or high is None:
        return "–"
    return f"{_figure(low, rate=rate, signed=signed)} to {_figure(high, rate=rate, signed=signed)}"


def _worst(items: Sequence[Item]) -> str:
    if not items:
        return "No item is worse than in the baseline."
    lines = [f"- {_linked(_named(item), item.address)}, {_markdown(item.metric)}" for item in items[:WORST]]
    for place, item in enumerate(items[:WORST]):
        if item.text:
            lines[place] += f"\n  {_markdown(item.text)}"
    return "\n".join(["Worse than in the baseline:", "", *lines])


def _named(item: Item) -> str:
    return f"{item.candidate}, line {item.line} (judgement {item.judgement})"


def _linked(text: str, address: str) -> str:
    is_link = address.startswith(("http://", "https://"))
    if is_link:
        return f"[{_markdown(text)}]({address})"
    return f"{_markdown(text)} `{address}`" if address else _markdown(text)


def _markdown(text: str) -> str:
    """A text that is shown as it is: on one line, without marks, links and mentions."""
    return _NOT_IN_MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def _xml(text: str) -> str:
    return _NOT_IN_XML.sub("�", text)
