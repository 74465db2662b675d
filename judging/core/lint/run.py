"""Template lint: renders a template with every row, and reports each problem once for all rows."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from datasets.core.variables import is_reference
from judging.core.lint.findings import Code, Lint, LintFinding, Longest, Met, Rows
from judging.core.lint.known_names import LATE, KnownNames
from judging.core.prompts import NameAt, Names, Rendered, RenderItem, estimated_tokens, names_of, render
from judging.core.sandbox.job import SandboxFailure
from judging.core.sandbox.pool import Sandbox
from judging.core.scripts import ScriptOutcome, run_preprocess

# A row's line, and the template's variables for one of its answers.
Subject = tuple[int, RenderItem | SandboxFailure]
# A row's line, its data, and one of its answers or None.
Answer = tuple[int, dict[str, Any], dict[str, Any] | None]
_BATCH = 500
_REFERENCE = ("data", "ref_answer")
_REFERENCES = (_REFERENCE, ("data", "gt"))


def lint(sandbox: Sandbox, template: str, subjects: Iterable[Subject]) -> Lint:
    """Lint a template with all subjects: a row's line and the variables of a render.

    The subjects (answers) of a row must be consecutive; a SandboxFailure stands for a failed preprocess. Memory does
    not grow with the number of subjects. Raises SandboxRefused and SandboxBroken as ``Sandbox.run`` does.
    """
    names, broken = names_of(sandbox, template)
    if broken:
        return Lint((Met(broken.line, broken.message).finding(_code(broken)),))
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


def _batches(subjects: Iterable[Subject]) -> Iterator[list[Subject]]:
    rest = iter(subjects)
    while batch := list(islice(rest, _BATCH)):
        yield batch


class _Linting:
    """Collects the problems found so far."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._known = KnownNames(names)
        self._rows, self._blank, self._without_reference = Rows(), Rows(), Rows()
        self._references = {str(one.path[1]) for one in names.used if one.path in _REFERENCES}
        self._undefined: dict[str, Met] = {}
        self._none: dict[str, Met] = {}
        self._falsy: dict[str, Met] = {}
        self._tests_reference = next((one for one in names.tested if one.path == _REFERENCE), None)
        self._failed: dict[tuple[str, int | None], Met] = {}
        self._failed_scripts: dict[tuple[Code, int | None], Met] = {}
        self._longest: tuple[int, str] | None = None

    def add_failed_script(self, line: int, failure: SandboxFailure) -> None:
        self._rows.add(line)
        _meet(self._failed_scripts, (_code(failure), failure.line), line, failure.line, failure.message)

    def add(self, line: int, item: RenderItem, made: Rendered) -> None:
        self._rows.add(line)
        self._known.look(item)
        self._known.found(made.found)
        for note in made.undefined:
            if _root(note.name) not in LATE:
                _meet(self._undefined, note.name, line, note.line)
        for note in made.none:
            if _tells(note, item):
                _meet(self._none, note.name, line, note.line)
        reference = item.data.get("ref_answer")
        if self._tests_reference and is_reference(reference) and not reference:
            _meet(self._falsy, self._tests_reference.name, line, self._tests_reference.line)
        if self._references and not any(is_reference(item.data.get(name)) for name in self._references):
            self._without_reference.add(line)
        if made.error:
            self._add_error(line, made.error)
        elif made.text is not None:
            self._add_text(line, made.text)

    def _add_error(self, line: int, error: SandboxFailure) -> None:
        if error.code != "undefined":
            _meet(self._failed, (error.code, error.line), line, error.line, error.message)

    def _add_text(self, line: int, text: str) -> None:
        if not text.strip():
            self._blank.add(line)
        if self._longest is None or len(text) > len(self._longest[1]):
            self._longest = (line, text)

    def result(self) -> Lint:
        missing = {name: met for name, met in self._undefined.items() if self._known.exists(name)}
        warnings = [met.finding("name_missing", name) for name, met in missing.items()]
        warnings += [met.finding("name_none", name) for name, met in self._none.items()]
        warnings += [met.finding("name_falsy", name) for name, met in self._falsy.items()]
        if self._blank.count:
            warnings.append(
                LintFinding("blank_render", rows=self._blank.count, first_rows=tuple(self._blank.first))
            )
        if not any(one.path[0] == "response" for one in self._names.used):
            warnings.append(LintFinding("response_unused"))
        return Lint(
            tuple(self._errors()),
            tuple(warnings),
            self._longest_render(),
            self._rows.count,
            self._without_reference.count,
        )

    def _errors(self) -> Iterator[LintFinding]:
        for (code, _), met in self._failed_scripts.items():
            yield met.finding(code, "preprocess")
        met_nowhere = {
            name: met.line for name, met in self._undefined.items() if not self._known.exists(name)
        }
        everywhere = self._rows.count, tuple(self._rows.first)
        for name, line in (self._known.never_there() | met_nowhere).items():
            yield LintFinding("unknown_name", name, line, *everywhere, self._known.suggestion(name))
        for met in self._failed.values():
            yield met.finding("render_error")

    def _longest_render(self) -> Longest | None:
        if self._longest is None:
            return None
        line, text = self._longest
        return Longest(line, len(text), estimated_tokens(text))


Key = TypeVar("Key")


def _meet(met: dict[Key, Met], key: Key, row: int, line: int | None, message: str = "") -> None:
    met.setdefault(key, Met(line, message)).rows.add(row)


def _code(failure: SandboxFailure) -> Code:
    return "syntax" if failure.code in ("syntax", "load") else "render_error"


def _root(name: str) -> str:
    return name.replace("[", ".").split(".")[0]


def _tells(note: NameAt, item: RenderItem) -> bool:
    """Whether a None is worth a warning: not in an answer or a reply that does not exist yet."""
    root = _root(note.name)
    has_no_value_yet = root in LATE or (root == "response" and item.response is None)
    return note.name not in ("", "data", "response") and not has_no_value_yet


def subjects(sandbox: Sandbox, answers: Iterable[Answer], script: str | None) -> Iterator[Subject]:
    """The template's variables for each answer, after running the preprocess script if there is one."""
    rest = iter(answers)
    if not script:
        for line, data, response in rest:
            yield line, RenderItem(data, response)
        return
    while batch := list(islice(rest, _BATCH)):
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
