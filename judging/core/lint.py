"""Template lint: renders a template with every row, and reports each problem once for all rows.

Findings are codes and counts; judging/lint_messages.py makes sentences of them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from typing import Any, Literal, TypeVar

from datasets.core.variables import is_reference
from judging.core.prompts import NameAt, Names, Rendered, RenderItem, estimated_tokens, names_of, render
from judging.core.sandbox.job import SandboxFailure
from judging.core.sandbox.pool import Sandbox
from judging.core.sandbox.wire import Path, dotted
from judging.core.scripts import ScriptOutcome, run_preprocess

Code = Literal[
    "syntax",
    "unknown_name",
    "render_error",
    "name_missing",
    "name_none",
    "name_falsy",
    "blank_render",
    "response_unused",
]
# A row's line, and the template's variables for one of its answers.
Subject = tuple[int, RenderItem | SandboxFailure]
# A row's line, its data, and one of its answers or None.
Answer = tuple[int, dict[str, Any], dict[str, Any] | None]

FIRST_ROWS = 10
_BATCH = 500
_REFERENCE = ("data", "ref_answer")
_REFERENCES = (_REFERENCE, ("data", "gt"))
_ROOTS = (
    *("data", "response", "preprocess_result", "max_score", "min_score"),
    *("judge_resps", "judge_reqs"),
)
_LATE = ("judge_resps", "judge_reqs")  # the replies of earlier judges are unknown before a run
_ALWAYS = {
    "data": ("messages", "question", "gt", "history", "ref_answer"),
    "response": ("content", "reasoning_content", "tool_calls"),
}
_MOST_KEYS = 10_000  # stored per path, for suggestions


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One finding.

    ``name``: the dotted name, or ``preprocess`` for an error in the script; ``line``: in the template (or the script).
    ``rows``: the number of affected rows, ``first_rows``: the lines of the first of them. ``message``: the error
    message of Python or Jinja2, if any.
    """

    code: Code
    name: str | None = None
    line: int | None = None
    rows: int = 0
    first_rows: tuple[int, ...] = ()
    suggestion: str | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Longest:
    """The longest render: the row's line, its characters and its estimated tokens."""

    line: int
    characters: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Lint:
    """The result of linting a template.

    ``rows``: how many were checked; ``without_reference``: how many of them have no reference although the template
    uses one, which is not a finding, because a template may handle that.
    """

    errors: tuple[LintFinding, ...] = ()
    warnings: tuple[LintFinding, ...] = ()
    longest: Longest | None = None
    rows: int = 0
    without_reference: int = 0


@dataclass(slots=True)
class _Occurrences:
    """Counts the rows that have a problem; consecutive answers of one row count once.

    `line` (of the template or the script) and `message` are those of the first occurrence.
    """

    line: int | None = None
    message: str = ""
    rows: int = 0
    first_rows: list[int] = field(default_factory=list)
    _last: int | None = None

    def add(self, row: int) -> None:
        if row == self._last:
            return
        self._last = row
        self.rows += 1
        if len(self.first_rows) < FIRST_ROWS:
            self.first_rows.append(row)

    def finding(self, code: Code, name: str | None = None) -> LintFinding:
        return LintFinding(code, name, self.line, self.rows, tuple(self.first_rows), message=self.message)


def lint(sandbox: Sandbox, template: str, subjects: Iterable[Subject]) -> Lint:
    """Lint a template with all subjects: a row's line and the variables of a render.

    The subjects (answers) of a row must be consecutive; a SandboxFailure stands for a failed preprocess. Memory does
    not grow with the number of subjects. Raises SandboxRefused and SandboxBroken as ``Sandbox.run`` does.
    """
    names, broken = names_of(sandbox, template)
    if broken:
        return Lint((LintFinding(_code(broken), line=broken.line, message=broken.message),))
    linting = _Linting(names)
    for batch in _batches(subjects):
        items = [item for _, item in batch if isinstance(item, RenderItem)]
        rendered = iter(render(sandbox, template, items, "lenient"))
        for line, item in batch:
            if isinstance(item, SandboxFailure):
                linting.add_failed_script(line, item)
            else:
                linting.add(line, item, next(rendered))
    return linting.result()


Each = TypeVar("Each")
Key = TypeVar("Key")


def _batches(every: Iterable[Each]) -> Iterator[list[Each]]:
    rest = iter(every)
    while batch := list(islice(rest, _BATCH)):
        yield batch


class _Linting:
    """Collects the problems found so far."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._known = _KnownNames(names)
        self._rows, self._blank, self._without_reference = _Occurrences(), _Occurrences(), _Occurrences()
        self._references = {str(one.path[1]) for one in names.used if one.path in _REFERENCES}
        self._undefined: dict[str, _Occurrences] = {}
        self._none: dict[str, _Occurrences] = {}
        self._falsy: dict[str, _Occurrences] = {}
        self._tests_reference = next((one for one in names.tested if one.path == _REFERENCE), None)
        self._failed: dict[tuple[str, int | None], _Occurrences] = {}
        self._failed_scripts: dict[tuple[Code, int | None], _Occurrences] = {}
        self._longest: tuple[int, str] | None = None

    def add_failed_script(self, row: int, failure: SandboxFailure) -> None:
        self._rows.add(row)
        _count(self._failed_scripts, (_code(failure), failure.line), row, failure.line, failure.message)

    def add(self, row: int, item: RenderItem, made: Rendered) -> None:
        self._rows.add(row)
        self._known.look(item)
        self._known.found(made.found)
        for note in made.undefined:
            if _root(note.name) not in _LATE:
                _count(self._undefined, note.name, row, note.line)
        for note in made.none:
            if _is_unexpected_none(note, item):
                _count(self._none, note.name, row, note.line)
        reference = item.data.get("ref_answer")
        if self._tests_reference and is_reference(reference) and not reference:
            _count(self._falsy, self._tests_reference.name, row, self._tests_reference.line)
        if self._references and not any(is_reference(item.data.get(name)) for name in self._references):
            self._without_reference.add(row)
        if made.error and made.error.code != "undefined":
            _count(self._failed, (made.error.code, made.error.line), row, made.error.line, made.error.message)
        if made.text is not None:
            self._add_text(row, made.text)

    def _add_text(self, row: int, text: str) -> None:
        if not text.strip():
            self._blank.add(row)
        if self._longest is None or len(text) > len(self._longest[1]):
            self._longest = (row, text)

    def result(self) -> Lint:
        longest = None
        if self._longest:
            row, text = self._longest
            longest = Longest(row, len(text), estimated_tokens(text))
        return Lint(
            tuple(self._errors()),
            tuple(self._warnings()),
            longest,
            self._rows.rows,
            self._without_reference.rows,
        )

    def _warnings(self) -> Iterator[LintFinding]:
        for name, found in self._undefined.items():
            if self._known.exists(name):
                yield found.finding("name_missing", name)
        for name, found in self._none.items():
            yield found.finding("name_none", name)
        for name, found in self._falsy.items():
            yield found.finding("name_falsy", name)
        if self._blank.rows:
            yield self._blank.finding("blank_render")
        if not any(one.path[0] == "response" for one in self._names.used):
            yield LintFinding("response_unused")

    def _errors(self) -> Iterator[LintFinding]:
        for (code, _), found in self._failed_scripts.items():
            yield found.finding(code, "preprocess")
        unknown = self._known.never_there()
        unknown |= {name: one.line for name, one in self._undefined.items() if not self._known.exists(name)}
        everywhere = self._rows.rows, tuple(self._rows.first_rows)
        for name, line in unknown.items():
            yield LintFinding("unknown_name", name, line, *everywhere, self._known.suggestion(name))
        for found in self._failed.values():
            yield found.finding("render_error")


def _count(found: dict[Key, _Occurrences], key: Key, row: int, line: int | None, message: str = "") -> None:
    found.setdefault(key, _Occurrences(line, message)).add(row)


def _code(failure: SandboxFailure) -> Code:
    return "syntax" if failure.code in ("syntax", "load") else "render_error"


def _root(name: str) -> str:
    return name.replace("[", ".").split(".")[0]


def _is_unexpected_none(note: NameAt, item: RenderItem) -> bool:
    """Whether a None is worth a warning: not in an answer or a reply that does not exist yet."""
    root = _root(note.name)
    has_no_value_yet = root in _LATE or (root == "response" and item.response is None)
    return note.name not in ("", "data", "response") and not has_no_value_yet


def subjects(sandbox: Sandbox, answers: Iterable[Answer], script: str | None) -> Iterator[Subject]:
    """The template's variables for each answer, after running the preprocess script if there is one."""
    if not script:
        yield from ((line, RenderItem(data, response)) for line, data, response in answers)
        return
    for batch in _batches(answers):
        ran = run_preprocess(sandbox, script, [(data, response or {}) for _line, data, response in batch])
        for (line, data, response), outcome in zip(batch, ran, strict=True):
            yield line, _after(outcome, data, response)


def _after(
    outcome: ScriptOutcome, data: dict[str, Any], response: dict[str, Any] | None
) -> RenderItem | SandboxFailure:
    if outcome.failure:
        return outcome.failure
    added = outcome.changed["response"]
    seen = response if response is None and not added else (response or {}) | added
    return RenderItem(data | outcome.changed["data"], seen, outcome.result)


class _KnownNames:
    """Which names of a template exist in at least one row: looks each up in every row until it resolves."""

    def __init__(self, names: Names) -> None:
        self._asked = {path[:end] for path in names.asked for end in range(1, len(path) + 1)}
        self._first_lines: dict[Path, int] = {}
        for one in names.used:
            self._first_lines.setdefault(one.path, one.line)
        self._sought = {one.path: 1 for one in names.used if _may_be_missing(one.path)}  # path: depth reached
        self._has_strangers = any(one.path[0] not in _ROOTS for one in names.used)
        self._existing = {*_ROOTS, *(f"{root}.{name}" for root in _ALWAYS for name in _ALWAYS[root])}
        self._keys: dict[Path, set[str]] = {(root,): set(_ALWAYS[root]) for root in _ALWAYS}
        self._has_looked = False

    def look(self, item: RenderItem) -> None:
        """Look up the names that no earlier row has."""
        self._has_looked = True
        if not self._sought and not self._has_strangers:
            return
        values = {
            "data": item.data,
            "response": item.response or {},
            "preprocess_result": item.preprocess_result,
        }
        for root in _ALWAYS:
            self._remember_keys((root,), values[root])
        for path in list(self._sought):
            self._follow(path, values)

    def found(self, names: Iterable[str]) -> None:
        """Add names that resolved during a render, including those under loop variables."""
        self._existing.update(names)

    def exists(self, name: str) -> bool:
        return name in self._existing

    def never_there(self) -> dict[str, int | None]:
        """Names that exist in no row, with their lines, except those whose existence the template tests."""
        found: dict[str, int | None] = {}
        for path, line in self._first_lines.items():
            missing = self._missing_part(path)
            if missing and path not in self._asked and missing not in self._asked:
                found.setdefault(dotted(missing), line)
        return found

    def suggestion(self, name: str) -> str | None:
        """The existing name that was probably meant, or None."""
        missing = {dotted(path): path for path in map(self._missing_part, self._first_lines) if path}
        return self._alike(missing[name]) if name in missing else None

    def _missing_part(self, path: Path) -> Path | None:
        """The shortest prefix that exists in no row; None if the whole name exists or this is unknown."""
        if path[0] not in _ROOTS:
            return path[:1]
        return path[: self._sought[path] + 1] if path in self._sought and self._has_looked else None

    def _follow(self, path: Path, values: dict[str, Any]) -> None:
        value: Any = values.get(str(path[0]))
        for depth, part in enumerate(path[1:], 1):
            self._remember_keys(path[:depth], value)
            try:
                value = _step(value, part)
            except LookupError:
                self._sought[path] = max(self._sought[path], depth)
                return
            self._existing.add(dotted(path[: depth + 1]))
        del self._sought[path]

    def _remember_keys(self, path: Path, value: Any) -> None:
        keys = self._keys.setdefault(path, set())
        if isinstance(value, dict) and len(keys) < _MOST_KEYS:
            keys.update(value)

    def _alike(self, path: Path) -> str | None:
        """The closest key at the same place, the same key of the other object, or the closest variable."""
        *parent, last = path
        sibling = _closest(last, self._keys.get(tuple(parent), ()) if parent else _ROOTS)
        elsewhere = (f"{root}.{last}" for root in _ALWAYS if last in self._keys[root,])
        if parent and sibling:
            return dotted((*parent, sibling))
        return next(elsewhere, sibling)


def _closest(word: str | int, words: Iterable[str]) -> str | None:
    """The most similar word, ignoring case."""
    by_lower = {one.lower(): one for one in words}
    matches = get_close_matches(str(word).lower(), by_lower, n=1)
    return by_lower[matches[0]] if matches else None


def _may_be_missing(path: Path) -> bool:
    root, *fields = path
    is_standard = len(fields) == 1 and fields[0] in _ALWAYS.get(str(root), ())
    return root in _ROOTS and root not in _LATE and bool(fields) and not is_standard


def _step(value: Any, part: str | int) -> Any:
    """What Jinja2 finds at this step: a key, an element or a method. Raises LookupError if it finds nothing."""
    if isinstance(value, dict) and part in value:
        return value[part]
    if isinstance(value, list | str) and isinstance(part, int):
        return value[part]
    if isinstance(part, str) and not part.startswith("_") and hasattr(value, part):
        return getattr(value, part)
    raise LookupError(part)
