"""Which rows and answers of a version the lines of a results file are about."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import msgspec
import numpy as np

from datasets.models import UPLOADED, Candidate, Response, Row, Version
from datasets.versions.references import NAME, reference_of, references_made
from judging.core.results_file.fields import Refusal
from judging.core.results_file.records import RefusedLine
from judging.core.results_file.verdicts import REFERENCE, AnswerKey, FileVerdict, row_name

_ROWS = 2_000  # read at a time
Place = tuple[int, str, int]  # row, model, number


@dataclass(frozen=True, slots=True)
class LocatedVerdict:
    """A verdict with the ids of what it is about. A reference is an answer without ids until it is made one."""

    verdict: FileVerdict
    row: int
    candidate: int | None
    response: int | None
    other_candidate: int | None = None
    other: int | None = None

    @property
    def question(self) -> tuple[object, ...]:
        """What it answers: equal for verdicts of which only one can count. It is the same whichever answer of a
        comparison is named first."""
        verdict, one, other = self.verdict, self.response or 0, self.other or 0
        answers = (other, one) if self.turned else (one, other if verdict.other else None)
        source = verdict.source_kind, verdict.source
        return (self.row, *answers, verdict.metric, *source, verdict.repeat, self.shown_first)

    @property
    def turned(self) -> bool:
        """Whether its question names its answers the other way round."""
        return self.verdict.other is not None and is_turned(self.response, self.other)

    @property
    def shown_first(self) -> int | None:
        """Which of its question's answers was first."""
        return other_side(self.verdict.shown_first) if self.turned else self.verdict.shown_first

    @property
    def said(self) -> str:
        """What it says about its question, in one form: equal for equal verdicts."""
        return self.verdict.said_of_turned if self.turned else self.verdict.said


def is_turned(response: int | None, other: int | None) -> bool:
    """Of two answers the one with the lower id is A in their question; a reference without an id is the lowest."""
    return (other or 0) < (response or 0)


def other_side(shown_first: int | None) -> int | None:
    return shown_first and 3 - shown_first


class _RowId(msgspec.Struct):
    id: Any = None


_decode_id = msgspec.json.Decoder(_RowId).decode


class RowIds:
    """The rows of a version by their custom field `id`: 16 bytes a row."""

    def __init__(self, version: Version) -> None:
        keys, rows = array("Q"), array("q")
        found = Row.objects.filter(version=version, valid=True).values_list("pk", "raw")
        for pk, raw in found.iterator(_ROWS):
            name = _id_of(raw)
            if name:
                keys.append(_key(name))
                rows.append(pk)
        order = np.argsort(np.frombuffer(keys, np.uint64), kind="stable")
        self._keys = np.frombuffer(keys, np.uint64)[order]
        self._rows = np.frombuffer(rows, np.int64)[order]

    def row(self, name: str) -> int:
        """The one row of this name. Raises Refusal."""
        key = np.uint64(_key(name))
        first, last = (int(np.searchsorted(self._keys, key, side)) for side in ("left", "right"))
        if last == first:
            raise Refusal("unknown_id", id=name[:80])
        if last > first + 1:
            raise Refusal("id_not_unique", id=name[:80])
        return int(self._rows[first])


def _id_of(raw: str) -> str:
    try:
        return row_name(_decode_id(raw).id)
    except (msgspec.MsgspecError, Refusal):
        return ""


def _key(name: str) -> int:
    return int.from_bytes(blake2b(name.encode("utf-8", "replace"), digest_size=8).digest())


class Answers:
    """Finds answers of one version, many lines at a time."""

    def __init__(self, version: Version) -> None:
        self.version = version
        self.hidden = Version.objects.filter(dataset=version.dataset_id, number=0).first()
        self._ids: RowIds | None = None
        self.models = self._candidates()

    def _candidates(self) -> dict[str, list[int]]:
        """{name: candidates}: the uploaded one alone, or else all whose answers a run asked for."""
        found: dict[str, list[int]] = defaultdict(list)
        known = Candidate.objects.filter(version=self.version).order_by("pk")
        uploaded = {name for name, source in known.values_list("name", "source") if source == UPLOADED}
        for pk, name, source in known.values_list("pk", "name", "source"):
            if source == UPLOADED or name not in uploaded:
                found[name].append(pk)
        if self.hidden:
            named = Candidate.objects.filter(version=self.hidden, source__startswith="s").order_by("pk")
            for pk, name in named.values_list("pk", "name"):
                if name not in uploaded:
                    found[name].append(pk)
        return found

    def find(self, verdicts: Sequence[FileVerdict]) -> list[LocatedVerdict | RefusedLine]:
        """What each verdict is about, or why that is not known."""
        batch = _Batch(self, verdicts)
        return [batch.found(one) for one in verdicts]

    def row_by_id(self, name: str) -> int:
        if self._ids is None:
            self._ids = RowIds(self.version)
        return self._ids.row(name)

    def is_reference(self, model: str) -> bool:
        """Does it name the row's reference? Exports of human evaluations call it "reference"."""
        return model in (REFERENCE, NAME) and model not in self.models

    def candidates(self, model: str) -> list[int]:
        found = self.models.get(model)
        if not found:
            raise Refusal("unknown_model", model=model[:80])
        return found

    def with_references(self, found: Sequence[LocatedVerdict]) -> list[LocatedVerdict]:
        """The same, where references are answers; those that were none yet are made so."""
        rows = {one.row for one in found if one.response is None or _lacks_other(one)}
        if not rows:
            return list(found)
        known = list(Row.objects.filter(pk__in=rows))
        candidate, made = references_made(self.version, known)
        return [_with_reference(one, candidate.pk, made.get(one.row)) for one in found]


def _lacks_other(one: LocatedVerdict) -> bool:
    return one.verdict.other is not None and one.other is None


def _with_reference(one: LocatedVerdict, candidate: int, response: int | None) -> LocatedVerdict:
    if one.response is None:
        return replace(one, candidate=candidate, response=response)
    return replace(one, other_candidate=candidate, other=response) if _lacks_other(one) else one


class _Batch:
    """What some verdicts are about, asked for in a few queries."""

    def __init__(self, answers: Answers, verdicts: Sequence[FileVerdict]) -> None:
        self.answers = answers
        rows = Row.objects.filter(version=answers.version)
        lines = {one.row for one in verdicts if one.row is not None}
        self.rows: dict[int, tuple[int, bool]] = {
            line: (pk, valid) for pk, line, valid in _parts(rows, "line", lines, "pk", "line", "valid")
        }
        self.of_verdicts = {one.line: self._row(one) for one in verdicts}
        known = {pk for pk in self.of_verdicts.values() if isinstance(pk, int)}
        self.referenced = self._referenced(verdicts)
        self.responses = self._responses(known, verdicts)

    def found(self, verdict: FileVerdict) -> LocatedVerdict | RefusedLine:
        row = self.of_verdicts[verdict.line]
        if isinstance(row, RefusedLine):
            return row
        try:
            candidate, response = self._answer(row, verdict.answer)
            other = self._answer(row, verdict.other) if verdict.other else (None, None)
        except Refusal as refusal:
            return RefusedLine(verdict.line, refusal.code, refusal.params)
        return LocatedVerdict(verdict, row, candidate, response, *other)

    def _row(self, verdict: FileVerdict) -> int | RefusedLine:
        try:
            row = self._row_by_line(verdict.row) if verdict.row is not None else None
            named = self.answers.row_by_id(verdict.row_id) if verdict.row_id else None
            if row is not None and named is not None and row != named:
                raise Refusal("two_rows", line=str(verdict.row), id=verdict.row_id[:80])
        except Refusal as refusal:
            return RefusedLine(verdict.line, refusal.code, refusal.params)
        return row or named or 0

    def _row_by_line(self, line: int) -> int:
        if line not in self.rows:
            raise Refusal("unknown_line", line=str(line))
        pk, valid = self.rows[line]
        if not valid:
            raise Refusal("invalid_row", line=str(line))
        return pk

    def _referenced(self, verdicts: Sequence[FileVerdict]) -> set[int]:
        """Of the rows whose references are compared, those that have one."""
        wanted = {
            self.of_verdicts[one.line]
            for one in verdicts
            if any(self.answers.is_reference(side.model) for side in (one.answer, one.other) if side)
        }
        rows = Row.objects.filter(pk__in=[row for row in wanted if isinstance(row, int)])
        return {row.pk for row in rows if reference_of(row, self.answers.version.format) is not None}

    def _responses(
        self, rows: set[int], verdicts: Sequence[FileVerdict]
    ) -> Mapping[Place, list[tuple[int, int]]]:
        """{(row, model, number): [(candidate, response)]} of all that may be meant."""
        models = {one.model for verdict in verdicts for one in (verdict.answer, verdict.other) if one}
        names = {pk: model for model in models for pk in self.answers.models.get(model, ())}
        own = {pk: pk for pk in rows}
        if hidden := self.answers.hidden:
            of_hidden = Row.objects.filter(version=hidden)
            own |= dict(_parts(of_hidden, "line", rows, "pk", "line"))
            reference = Candidate.objects.filter(
                version=hidden, name=NAME, source=f"v{self.answers.version.number}"[:10]
            )
            names |= dict.fromkeys(reference.values_list("pk", flat=True), REFERENCE)
        found: dict[Place, list[tuple[int, int]]] = defaultdict(list)
        responses = Response.objects.filter(candidate__in=names)
        for pk, row, candidate, number in _parts(
            responses, "row", own, "pk", "row_id", "candidate_id", "number"
        ):
            found[own[row], names[candidate], number].append((candidate, pk))
        return found

    def _answer(self, row: int, answer: AnswerKey) -> tuple[int | None, int | None]:
        """Ids of an answer's candidate and response. Raises Refusal."""
        if self.answers.is_reference(answer.model):
            answer = replace(answer, model=REFERENCE)
        found = self.responses.get((row, answer.model, answer.number), [])
        if answer.model == REFERENCE:
            if row not in self.referenced or answer.number != 1:
                raise Refusal("no_reference")
            return found[0] if found else (None, None)
        self.answers.candidates(answer.model)
        if not found:
            raise Refusal("no_such_answer", model=answer.model[:80], number=str(answer.number))
        if len(found) > 1:
            raise Refusal("model_not_unique", model=answer.model[:80])
        return found[0]


def _parts(found: Any, field: str, wanted: Iterable[int], *columns: str) -> list[tuple[Any, ...]]:
    """Columns of what has one of the wanted values in a field."""
    values = list(wanted)
    return list(found.filter(**{f"{field}__in": values}).values_list(*columns)) if values else []
