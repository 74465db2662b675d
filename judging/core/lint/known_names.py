"""Which names in a template exist in at least one row, and suggestions for the others."""

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
LATE = ("judge_resps", "judge_reqs")  # the replies of earlier judges are unknown before a run
_ALWAYS = {
    "data": ("messages", "question", "gt", "history", "ref_answer"),
    "response": ("content", "reasoning_content", "tool_calls"),
}
_MOST_KEYS = 10_000  # stored per path, for suggestions


class KnownNames:
    """Looks every name up in each row until it resolves."""

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

    def never_there(self) -> dict[str, int]:
        """Names that exist in no row, with their lines, except those whose existence the template tests."""
        found: dict[str, int] = {}
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
        """The closest key at the same place, the same key of the other object, or the closest variable."""
        *parent, last = path
        beside = closest(last, self._keys.get(tuple(parent), ()) if parent else ROOTS)
        elsewhere = (f"{root}.{last}" for root in _ALWAYS if last in self._keys[root,])
        if parent and beside:
            return dotted((*parent, beside))
        return next(elsewhere, beside)


def closest(word: str | int, words: Iterable[str]) -> str | None:
    """The most similar word, ignoring case."""
    by_lower = {one.lower(): one for one in words}
    matches = get_close_matches(str(word).lower(), by_lower, n=1)
    return by_lower[matches[0]] if matches else None


def _may_be_missing(path: Path) -> bool:
    root, *fields = path
    is_standard = len(fields) == 1 and fields[0] in _ALWAYS.get(str(root), ())
    return root in ROOTS and root not in LATE and bool(fields) and not is_standard


def _step(value: Any, part: str | int) -> Any:
    """What Jinja2 finds at this step: a key, an element or a method. Raises LookupError if it finds nothing."""
    if isinstance(value, dict) and part in value:
        return value[part]
    if isinstance(value, list | str) and isinstance(part, int):
        return value[part]
    if isinstance(part, str) and not part.startswith("_") and hasattr(value, part):
        return getattr(value, part)
    raise LookupError(part)
