"""Template lint: renders a template with every row, and reports each problem once for all rows.

Findings are codes and counts; `judging.messages.lint_sentence` makes sentences of them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import chain, groupby, islice
from typing import Any, TypeVar

from datasets.core.rubric import RUBRIC
from datasets.core.texts import Text, gettext_noop, ngettext_noop
from datasets.core.variables import is_reference
from judging.core.checklists import criterion_variables, rubric_of
from judging.core.metric_definition import Script
from judging.core.placeholders import KINDS, Hint, expression_for, hints
from judging.core.preparation import prepared
from judging.core.prompts import NameAt, Names, Rendered, RenderItem, estimated_tokens, names_of, render
from judging.core.reading.words import PLAIN_NAMES, STRONG_NAMES, STRONG_WORDS
from judging.core.results import Context, JudgedItem
from judging.core.sandbox.job import SandboxFailure
from judging.core.sandbox.pool import Sandbox
from judging.core.sandbox.wire import Path, dotted

CODES: dict[str, Text] = {
    "template_blank": gettext_noop("The template is empty: the judge would be asked nothing."),
    "syntax": gettext_noop("The template can't be read: %(message)s"),
    "render_error": ngettext_noop(
        "The template fails in %(rows)s row: %(message)s",
        "The template fails in %(rows)s rows: %(message)s",
        "rows",
    ),
    "unknown_name": gettext_noop("No row has “%(name)s”."),
    "name_missing": ngettext_noop(
        "“%(name)s” is missing in %(rows)s row. Ask first whether it “is defined”, or give it a default.",
        "“%(name)s” is missing in %(rows)s rows. Ask first whether it “is defined”, or give it a default.",
        "rows",
    ),
    "name_none": ngettext_noop(
        "“%(name)s” has no value (None) in %(rows)s row, and the prompt uses it there.",
        "“%(name)s” has no value (None) in %(rows)s rows, and the prompt uses it there.",
        "rows",
    ),
    "name_falsy": ngettext_noop(
        "“%(name)s” is 0, false or empty in %(rows)s row, which the template treats as having no reference. "
        "Test “%(name)s is not none” instead.",
        "“%(name)s” is 0, false or empty in %(rows)s rows, which the template treats as having no reference. "
        "Test “%(name)s is not none” instead.",
        "rows",
    ),
    "blank_render": ngettext_noop(
        "The prompt of %(rows)s row is blank.", "The prompts of %(rows)s rows are blank.", "rows"
    ),
    "response_unused": gettext_noop(
        "The template never mentions the response: the judge does not see what it judges. "
        "Add {{ response.content }}, unless the preprocess script puts the answer elsewhere."
    ),
    "answers_unused": gettext_noop(
        "The template does not mention both answers: the judge does not see what it compares. "
        "Add {{ a.content }} and {{ b.content }}, unless the preprocess script puts the answers elsewhere."
    ),
    "response_of_pair": gettext_noop(
        "There is no “%(name)s” where two candidates are compared. Write “%(suggestion)s”: the answers are a and b."
    ),
    "model_of_pair": gettext_noop(
        "“%(name)s” does not exist: judges that compare candidates don't see the names of models, so that they can't "
        "favour one."
    ),
    "no_answer_format": gettext_noop(
        "The template does not say in which form to answer, so replies may not be readable. End it with "
        "{{ answer_format }}."
    ),
    "set_in_loop": gettext_noop(
        "The value that the loop gives “%(name)s” is lost at the end of each turn. Write "
        "{%% set counted = namespace(n=0) %%} before the loop and {%% set counted.n = counted.n + 1 %%} inside it."
    ),
    **KINDS,
}
_OF_PREPROCESS: dict[str, Text] = {
    "syntax": gettext_noop("The preprocess script can't be loaded: %(message)s"),
    "render_error": ngettext_noop(
        "The preprocess script fails in %(rows)s row: %(message)s",
        "The preprocess script fails in %(rows)s rows: %(message)s",
        "rows",
    ),
}
_UNKNOWN_BUT_ALIKE = gettext_noop("No row has “%(name)s”. Did you mean “%(suggestion)s”?")
# A row's line, and the template's variables for one of its answers.
Subject = tuple[int, RenderItem | SandboxFailure]
# A row's line, its data, and one of its answers or None.
Answer = tuple[int, dict[str, Any], dict[str, Any] | None]

_VERDICT_NAMES = "|".join(
    re.escape(name)
    for name in sorted({*STRONG_NAMES, *STRONG_WORDS, *chain(*PLAIN_NAMES.values())}, key=len, reverse=True)
)
_ANSWER_FORM = re.compile(
    rf"""answer_format\b|["'“‘](?:{_VERDICT_NAMES})["'”’]|<(?:{_VERDICT_NAMES})>|(?<![^\W\d_])(?:{_VERDICT_NAMES})\s?[:：]""",
    re.IGNORECASE,
)
"""Where a template names a verdict: in quotes, in a tag or before a colon."""

FIRST_ROWS = 10
_BATCH = 500
_REFERENCE = ("data", "ref_answer")
_REFERENCES = (_REFERENCE, ("data", "gt"))
_ROOTS = (
    *("data", "preprocess_result", "max_score", "min_score", "answer_format"),
    *("judge_resps", "judge_reqs", "criterion", "criteria"),
)
_OF_ONE, _OF_PAIR = ("response",), ("a", "b")  # the answers in a template
_MODEL_NAMES = ("model", "model_name", "name", "candidate", "candidate_name")
_LATE = ("judge_resps", "judge_reqs")  # the replies of earlier judges are unknown before a run
_OF_ANSWER = ("content", "reasoning_content", "tool_calls")
_ALWAYS = {
    "data": ("messages", "question", "gt", "history", "ref_answer"),
    **dict.fromkeys((*_OF_ONE, *_OF_PAIR), _OF_ANSWER),
}
_MOST_KEYS = 10_000  # stored per path, for suggestions


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One finding.

    ``name``: the dotted name, or ``preprocess`` for an error in the script; ``line``: in the template (or the script).
    ``rows``: the number of affected rows, ``first_rows``: the lines of the first of them. ``message``: the error
    message of Python or Jinja2, if any.
    """

    code: str
    name: str | None = None
    line: int | None = None
    rows: int = 0
    first_rows: tuple[int, ...] = ()
    suggestion: str | None = None
    message: str = ""

    @property
    def sentence(self) -> Text:
        """The untranslated sentence; its parameters are `name`, `rows`, `suggestion` and `message`."""
        if self.name == "preprocess" and self.code in _OF_PREPROCESS:
            return _OF_PREPROCESS[self.code]
        if self.suggestion is not None and self.code == "unknown_name":
            return _UNKNOWN_BUT_ALIKE
        return CODES[self.code]


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

    def finding(self, code: str, name: str | None = None) -> LintFinding:
        return LintFinding(code, name, self.line, self.rows, tuple(self.first_rows), message=self.message)


def lint(sandbox: Sandbox, template: str, subjects: Iterable[Subject], *, of_pairs: bool = False) -> Lint:
    """Lint a template with all subjects: a row's line and the variables of a render.

    `of_pairs`: the template compares candidates, and the subjects are those of pairs.
    The subjects (answers) of a row must be consecutive; a SandboxFailure stands for a failed preprocess. Memory does
    not grow with the number of subjects. Raises SandboxRefused and SandboxBroken as ``Sandbox.run`` does.
    """
    if not template.strip():
        return Lint((LintFinding("template_blank"),))
    names, broken = names_of(sandbox, template)
    if broken:
        finding = LintFinding(_code(broken), line=broken.line, message=broken.message)
        return Lint((finding,), tuple(map(_hinted, hints(template))))
    linting = _Linting(template, names, _OF_PAIR if of_pairs else _OF_ONE)
    for batch in _batches(subjects):
        items = [item for _, item in batch if isinstance(item, RenderItem)]
        rendered = iter(render(sandbox, template, items, "lenient"))
        for line, item in batch:
            if isinstance(item, SandboxFailure):
                linting.add_failed_script(line, item)
            else:
                linting.add(line, item, next(rendered))
    return linting.result()


def is_of_pairs(sandbox: Sandbox, template: str) -> bool:
    """Whether a template can only be meant for pairs of candidates, by the names that it uses."""
    names, _broken = names_of(sandbox, template)
    used = {lookup.path[0] for lookup in names.used}
    return used.issuperset(_OF_PAIR) and used.isdisjoint(_OF_ONE)


Each = TypeVar("Each")
Key = TypeVar("Key")


def _batches(every: Iterable[Each]) -> Iterator[list[Each]]:
    rest = iter(every)
    while batch := list(islice(rest, _BATCH)):
        yield batch


class _Linting:
    """Collects the problems found so far."""

    def __init__(self, template: str, names: Names, answers: tuple[str, ...]) -> None:
        self._template, self._names, self._answers = template, names, answers
        self._known = _KnownNames(names, answers)
        self._rows, self._blank, self._without_reference = _Occurrences(), _Occurrences(), _Occurrences()
        self._references = {str(lookup.path[1]) for lookup in names.used if lookup.path in _REFERENCES}
        self._undefined: dict[str, _Occurrences] = {}
        self._none: dict[str, _Occurrences] = {}
        self._falsy: dict[str, _Occurrences] = {}
        self._tests_reference = next((lookup for lookup in names.tested if lookup.path == _REFERENCE), None)
        self._failed: dict[tuple[str, int | None], _Occurrences] = {}
        self._failed_scripts: dict[tuple[str, int | None], _Occurrences] = {}
        self._longest: tuple[int, str] | None = None

    def add_failed_script(self, row: int, failure: SandboxFailure) -> None:
        self._rows.add(row)
        _count(self._failed_scripts, (_code(failure), failure.line), row, failure.line, failure.message)

    def add(self, row: int, item: RenderItem, rendered: Rendered) -> None:
        self._rows.add(row)
        self._known.look(item)
        self._known.add_resolved(rendered.resolved)
        for note in rendered.undefined:
            if _root(note.name) not in _LATE:
                _count(self._undefined, note.name, row, note.line)
        for note in rendered.none:
            if _is_unexpected_none(note, item):
                _count(self._none, note.name, row, note.line)
        reference = item.data.get("ref_answer")
        if self._tests_reference and is_reference(reference) and not reference:
            _count(self._falsy, self._tests_reference.name, row, self._tests_reference.line)
        if self._references and not any(is_reference(item.data.get(name)) for name in self._references):
            self._without_reference.add(row)
        if rendered.error and rendered.error.code != "undefined":
            _count(
                self._failed,
                (rendered.error.code, rendered.error.line),
                row,
                rendered.error.line,
                rendered.error.message,
            )
        if rendered.text is not None:
            self._add_text(row, rendered.text)

    def _add_text(self, row: int, text: str) -> None:
        if not text.strip():
            self._blank.add(row)
        if self._longest is None or len(text) > len(self._longest[1]):
            self._longest = (row, text)

    def result(self) -> Lint:
        longest = None
        all_hints = hints(self._template, self._known.fields())
        dashed = [hint for hint in all_hints if hint.kind == "dashed"]
        if self._longest:
            row, text = self._longest
            longest = Longest(row, len(text), estimated_tokens(text))
        return Lint(
            tuple(self._errors(dashed)),
            (*self._warnings(), *(_hinted(hint) for hint in all_hints if not self._is_unknown_name(hint))),
            longest,
            self._rows.rows,
            self._without_reference.rows,
        )

    def _warnings(self) -> Iterator[LintFinding]:
        for name, occurrences in self._undefined.items():
            if self._known.exists(name):
                yield occurrences.finding("name_missing", name)
        for name, occurrences in self._none.items():
            yield occurrences.finding("name_none", name)
        for name, occurrences in self._falsy.items():
            yield occurrences.finding("name_falsy", name)
        if self._blank.rows:
            yield self._blank.finding("blank_render")
        used = {lookup.path[0] for lookup in self._names.used}
        if not used.issuperset(self._answers):
            yield LintFinding("answers_unused" if self._answers == _OF_PAIR else "response_unused")
        if not says_how_to_answer(self._template):
            yield LintFinding("no_answer_format")
        for lookup in self._names.set_in_loops:
            yield LintFinding("set_in_loop", lookup.name, lookup.line)

    @staticmethod
    def _is_unknown_name(hint: Hint) -> bool:
        """Whether an error `unknown_name` says the same."""
        return hint.kind in ("dashed", "other_name")

    def _errors(self, dashed: list[Hint]) -> Iterator[LintFinding]:
        for (code, _), occurrences in self._failed_scripts.items():
            yield occurrences.finding(code, "preprocess")
        unknown = self._known.never_there()
        unknown |= {
            name: occurrences.line
            for name, occurrences in self._undefined.items()
            if not self._known.exists(name)
        }
        everywhere = self._rows.rows, tuple(self._rows.first_rows)
        for hint in dashed:  # Jinja2 reads each as a difference of several names
            for part in hint.text.split("-"):
                unknown.pop(part, None)
            yield LintFinding("unknown_name", hint.text, hint.line, *everywhere, hint.suggestion)
        for name, line in unknown.items():
            code, suggestion = self._why_unknown(name)
            yield LintFinding(code, name, line, *everywhere, suggestion)
        for occurrences in self._failed.values():
            yield occurrences.finding("render_error")

    def _why_unknown(self, name: str) -> tuple[str, str | None]:
        """The code of an unknown name, and what to write instead."""
        if self._answers == _OF_PAIR and _root(name) == "response":
            return "response_of_pair", f"a{name.removeprefix('response') or '.content'}"
        if self._answers == _OF_PAIR and _root(name) in _OF_PAIR and name.partition(".")[2] in _MODEL_NAMES:
            return "model_of_pair", None
        return "unknown_name", self._known.suggestion(name)


def says_how_to_answer(template: str) -> bool:
    """Whether a template asks for a form of verdict that is read wherever it stands in a reply."""
    return "[[" in template or bool(_ANSWER_FORM.search(template))


def _count(by_key: dict[Key, _Occurrences], key: Key, row: int, line: int | None, message: str = "") -> None:
    by_key.setdefault(key, _Occurrences(line, message)).add(row)


def _hinted(hint: Hint) -> LintFinding:
    return LintFinding(hint.kind, hint.text, hint.line, suggestion=hint.suggestion)


def _code(failure: SandboxFailure) -> str:
    return "syntax" if failure.code in ("syntax", "load") else "render_error"


def _root(name: str) -> str:
    return name.replace("[", ".").split(".")[0]


def _is_unexpected_none(note: NameAt, item: RenderItem) -> bool:
    """Whether a None is worth a warning: not in an answer or a reply that does not exist yet."""
    root = _root(note.name)
    has_no_value_yet = root in _LATE or (root in (*_OF_ONE, "a") and item.response is None)
    return note.name not in ("", "data", *_OF_ONE, *_OF_PAIR) and not has_no_value_yet


def subjects(
    sandbox: Sandbox, answers: Iterable[Answer], scripts: Sequence[Script] = (), *, of_pairs: bool = False
) -> Iterator[Subject]:
    """The template's variables for each answer, after running the scripts before the first judge.

    `of_pairs`: each answer of a row with the next, the last with the first, so that each is A once and B once.
    """
    pairs = _pairs_in(answers) if of_pairs else ((*answer, None) for answer in answers)
    if not scripts:
        yield from ((line, _render_item(data, response, other)) for line, data, response, other in pairs)
        return
    for batch in _batches(pairs):
        items = [JudgedItem(data, response or {}, other=other) for _line, data, response, other in batch]
        for (line, _data, response, _other), result in zip(
            batch, prepared(sandbox, scripts, items), strict=True
        ):
            yield line, result.failure or _prepared_item(result.context, has_answer=response is not None)


Pair = tuple[int, dict[str, Any], dict[str, Any] | None, dict[str, Any] | None]


def _pairs_in(answers: Iterable[Answer]) -> Iterator[Pair]:
    for line, of_row in groupby(answers, key=lambda answer: answer[0]):
        row = list(of_row)
        for place, (_line, data, response) in enumerate(row):
            yield line, data, response, row[(place + 1) % len(row)][2] or {}


def _prepared_item(context: Context, *, has_answer: bool) -> RenderItem:
    item = context.item
    seen = item.response if has_answer or item.response else None
    return _render_item(item.data, seen, item.other, context.preprocess_result)


def _render_item(
    data: dict[str, Any],
    response: dict[str, Any] | None,
    other: dict[str, Any] | None,
    result: bool | int | float | str | None = None,
) -> RenderItem:
    """The variables for a row; those about criteria are about its rubric's first."""
    rubric = rubric_of(data) if RUBRIC in data else None
    criteria = criterion_variables(rubric, 1) if rubric else {}
    return RenderItem(data, response, result, criteria=criteria, other=other)


class _KnownNames:
    """Which names of a template exist in at least one row: looks each up in every row until it resolves."""

    def __init__(self, names: Names, answers: tuple[str, ...]) -> None:
        self._roots = (*_ROOTS, *answers)
        self._existence_tested = {
            path[:end] for path in names.existence_tested for end in range(1, len(path) + 1)
        }
        self._first_lines: dict[Path, int] = {}
        for lookup in names.used:
            self._first_lines.setdefault(lookup.path, lookup.line)
        # path: depth reached
        self._sought = {lookup.path: 1 for lookup in names.used if self._may_be_missing(lookup.path)}
        self._has_strangers = any(lookup.path[0] not in self._roots for lookup in names.used)
        always = {root: _ALWAYS[root] for root in ("data", *answers)}
        self._existing = {*self._roots, *(f"{root}.{name}" for root in always for name in always[root])}
        self._keys: dict[Path, set[str]] = {(root,): set(always[root]) for root in always}
        self._has_looked = False

    def look(self, item: RenderItem) -> None:
        """Look up the names that no earlier row has."""
        self._has_looked = True
        self._remember_keys(("data",), item.data)
        if not self._sought and not self._has_strangers:
            return
        answer = item.response or {}
        answers = {"response": answer} if item.other is None else {"a": answer, "b": item.other}
        values = {
            "data": item.data,
            **answers,
            "preprocess_result": item.preprocess_result,
            **item.criteria,
        }
        for root, value in answers.items():
            self._remember_keys((root,), value)
        for path in list(self._sought):
            self._follow(path, values)

    def add_resolved(self, names: Iterable[str]) -> None:
        """Add names that resolved during a render, including those under loop variables."""
        self._existing.update(names)

    def exists(self, name: str) -> bool:
        return name in self._existing

    def fields(self) -> set[str]:
        """The names of the rows' own fields, as far as they were collected."""
        return self._keys["data",] - set(_ALWAYS["data"])

    def never_there(self) -> dict[str, int | None]:
        """Names that exist in no row, with their lines, except those whose existence the template tests."""
        lines: dict[str, int | None] = {}
        for path, line in self._first_lines.items():
            missing = self._missing_part(path)
            if missing and path not in self._existence_tested and missing not in self._existence_tested:
                lines.setdefault(dotted(missing), line)
        return lines

    def suggestion(self, name: str) -> str | None:
        """The existing name that was probably meant, or None."""
        missing = {dotted(path): path for path in map(self._missing_part, self._first_lines) if path}
        return self._alike(missing[name]) if name in missing else None

    def _missing_part(self, path: Path) -> Path | None:
        """The shortest prefix that exists in no row; None if the whole name exists or this is unknown."""
        if path[0] not in self._roots:
            return path[:1]
        return path[: self._sought[path] + 1] if path in self._sought and self._has_looked else None

    def _may_be_missing(self, path: Path) -> bool:
        root, *fields = path
        is_standard = len(fields) == 1 and fields[0] in _ALWAYS.get(str(root), ())
        return root in self._roots and root not in _LATE and bool(fields) and not is_standard

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
        if not parent and (expression := expression_for(str(last), self.fields())):
            return expression
        sibling = _closest(last, self._keys.get(tuple(parent), ()) if parent else self._roots)
        elsewhere = (f"{root}.{last}" for root in _ALWAYS if last in self._keys.get((root,), ()))
        if parent and sibling:
            return dotted((*parent, sibling))
        return next(elsewhere, sibling)


def _closest(word: str | int, words: Iterable[str]) -> str | None:
    """The most similar word, ignoring case."""
    by_lower = {candidate.lower(): candidate for candidate in words}
    matches = get_close_matches(str(word).lower(), by_lower, n=1)
    return by_lower[matches[0]] if matches else None


def _step(value: Any, part: str | int) -> Any:
    """What Jinja2 finds at this step: a key, an element or a method. Raises LookupError if it finds nothing."""
    if isinstance(value, dict) and part in value:
        return value[part]
    if isinstance(value, list | str) and isinstance(part, int):
        return value[part]
    if isinstance(part, str) and not part.startswith("_") and hasattr(value, part):
        return getattr(value, part)
    raise LookupError(part)
