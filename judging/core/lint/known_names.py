"""Which names of a template exist in some row, and what the others may have been meant to be."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from judging.core.prompts import Names, RenderItem
from judging.core.sandbox.wire import Path, dotted

ROOTS = (
    "data",
    "response",
    "preprocess_result",
    "max_score",
    "min_score",
    "judge_resps",
    "judge_reqs",
)
LATE = ("judge_resps", "judge_reqs")  # what earlier judges say is not known before a run
_ALWAYS = {
    "data": ("messages", "question", "gt", "history", "ref_answer"),
    "response": ("content", "reasoning_content", "tool_calls"),
}
_MOST_KEYS = 10_000  # of one place, kept for suggestions


class KnownNames:
    """Looks every name up in each row until it leads somewhere."""

    def __init__(self, names: Names) -> None:
        self._asked = {path[:end] for path in names.asked for end in range(1, len(path) + 1)}
        self._first_lines: dict[Path, int] = {}
        for one in names.used:
            self._first_lines.setdefault(one.path, one.line)
        self._sought = {one.path: 1 for one in names.used if _may_be_missing(one.path)}  # path: depth reached
        self._has_strangers = any(one.path[0] not in ROOTS for one in names.used)
        self._existing = {*ROOTS, *(f"{root}.{name}" for root in _ALWAYS for name in _ALWAYS[root])}
        self._keys: dict[Path, set[str]] = {(root,): set(_ALWAYS[root]) for root in _ALWAYS}
        self._has_looked = False

    def look(self, item: RenderItem) -> None:
        """Looks for what no earlier row had."""
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
        """Names that led to a value in a render, those of loop variables and the like among them."""
        self._existing.update(names)

    def exists(self, name: str) -> bool:
        return name in self._existing

    def never_there(self) -> dict[str, int]:
        """What exists in no row, with its line, so far as the template does not ask for it first."""
        found: dict[str, int] = {}
        for path, line in self._first_lines.items():
            missing = self._missing_part(path)
            if missing and path not in self._asked and missing not in self._asked:
                found.setdefault(dotted(missing), line)
        return found

    def suggestion(self, name: str) -> str | None:
        """The existing name that this one probably represents."""
        missing = {dotted(path): path for path in map(self._missing_part, self._first_lines) if path}
        return self._alike(missing[name]) if name in missing else None

    def _missing_part(self, path: Path) -> Path | None:
        """The shortest beginning that is in no row; None if all of it is in some row, or that can't be known."""
        if path[0] not in ROOTS:
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
        """The nearest key at the same place, the same key of the other object, or the nearest variable."""
        *parent, last = path
        beside = closest(last, self._keys.get(tuple(parent), ()) if parent else ROOTS)
        elsewhere = (f"{root}.{last}" for root in _ALWAYS if last in self._keys[root,])
        if parent and beside:
            return dotted((*parent, beside))
        return next(elsewhere, beside)


def closest(word: str | int, words: Iterable[str]) -> str | None:
    """The word that is most like it, whatever their case."""
    by_lower = {one.lower(): one for one in words}
    matches = get_close_matches(str(word).lower(), by_lower, n=1)
    return by_lower[matches[0]] if matches else None


def _may_be_missing(path: Path) -> bool:
    root, *fields = path
    is_standard = len(fields) == 1 and fields[0] in _ALWAYS.get(str(root), ())
    return root in ROOTS and root not in LATE and bool(fields) and not is_standard


def _step(value: Any, part: str | int) -> Any:
    """What Jinja2 finds there: a key, an element or a method; LookupError where it finds nothing."""
    if isinstance(value, dict) and part in value:
        return value[part]
    if isinstance(value, list | str) and isinstance(part, int):
        return value[part]
    if isinstance(part, str) and not part.startswith("_") and hasattr(value, part):
        return getattr(value, part)
    raise LookupError(part)
