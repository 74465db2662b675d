"""Selecting the row and response for a preview, and the names that a template can use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest, QueryDict

from datasets import selectors
from datasets.core.rubric import RUBRIC
from datasets.core.variables import row_and_response
from datasets.models import Candidate, Response, Row, Version
from evalsite.accounts.models import Project
from evalsite.web.numbers import whole
from judging.core.metric_definition import MetricDefinition
from judging.core.results import JudgedItem
from judging.core.rules.values import exact_json

MAX_LOOKED_AT = 20_000  # rows searched for one that lacks a field
_COMPUTED = ("question", "gt", "history", "ref_answer")
_MISSING = "missing:"
_SESSION = "previewed_versions"  # {project: version}


@dataclass(frozen=True, slots=True)
class Sample:
    """A row of a version and one response to it; `response` is None if there is none."""

    version: Version
    row: Row
    data: dict[str, Any]
    responses: list[Response]
    response: Response | None
    not_found: str = ""  # the field that no row lacks
    other_key: str = ""  # of the chosen answer to compare with

    @property
    def has_no_answers(self) -> bool:
        """Whether no row of the version has an answer."""
        answered = Candidate.uploaded.filter(version=self.version, responses__gt=0)
        return not self.responses and not answered.exists()

    @property
    def item(self) -> JudgedItem:
        data, response = row_and_response(self.data, self.response.raw) if self.response else (self.data, {})
        return JudgedItem(data, response, selectors.exact_reference(self.row, exact_json))

    @property
    def other(self) -> Response | None:
        """The answer that `response` is compared with: the chosen one, else that of the next candidate in the row, with
        the same number if there is one."""
        if self.response is None:
            return None
        now = self.response
        others = self._others(now)
        chosen = next((other for other in others if _key(other) == self.other_key), None)
        if chosen is not None:
            return chosen
        later = [other for other in others if other.candidate_id > now.candidate_id] or others
        alike = (other for other in later if other.number == now.number)
        return next(alike, next(iter(later), None))

    def _others(self, now: Response) -> list[Response]:
        return [other for other in self.responses if other.candidate_id != now.candidate_id]

    @property
    def other_choices(self) -> list[tuple[str, str, int, bool]]:
        """The same as `response_choices` of the answers that `response` can be compared with."""
        others = self._others(self.response) if self.response else []
        return _choices(others, self.other)

    def item_for(self, definition: MetricDefinition) -> JudgedItem:
        """What this metric judges: the response, or both answers if it compares candidates."""
        if not definition.compares_candidates:
            return self.item
        other = row_and_response(self.data, self.other.raw)[1] if self.other else {}
        return replace(self.item, other=other)

    @property
    def response_choices(self) -> list[tuple[str, str, int, bool]]:
        """(key, candidate name, number, whether selected) of each response."""
        return _choices(self.responses, self.response)


def _choices(responses: Sequence[Response], selected: Response | None) -> list[tuple[str, str, int, bool]]:
    return [
        (_key(response), response.candidate.name, response.number, response == selected)
        for response in responses
    ]


@dataclass(frozen=True, slots=True)
class OfferedName:
    """A name that a template can use. `rows`: in how many rows it occurs, if counted."""

    expression: str
    field: str = ""
    rows: int | None = None
    may_lack: bool = False

    @property
    def inserted(self) -> str:
        return "{{ " + self.expression + " }}"


def choose_sample(project: Project, query: QueryDict, last: int = 0) -> Sample | None:
    """The row selected by the form data (row_version, row_line, row_response, row_other, go); None without a usable
    version.

    `last`: the version that was chosen last.
    """
    version = chosen_version(project, query, last)
    row, not_found = _row(version, query) if version else (None, "")
    if version is None or row is None:
        return None
    responses = selectors.responses_of(row)
    response = _response(responses, query.get("row_response", ""))
    other = query.get("row_other", "")
    return Sample(version, row, selectors.row_values(row), responses, response, not_found, other)


def chosen_version(project: Project, query: QueryDict, last: int = 0) -> Version | None:
    """The version selected by `row_version`, else the one chosen `last`, else the newest usable one with answers."""
    versions = selectors.usable_versions(project)
    for pk in (whole(query.get("row_version", "")), last):
        if pk and (version := versions.filter(pk=pk).first()):
            return version
    return _newest(versions)


def _newest(versions: QuerySet[Version]) -> Version | None:
    """The newest version with answers, else the newest."""
    with_answers = Candidate.uploaded.filter(version=OuterRef("pk"), responses__gt=0)
    return versions.filter(Exists(with_answers)).first() or versions.first()


def last_version(request: HttpRequest, project: Project, query: QueryDict) -> int:
    """The version that this visitor previewed last in the project; 0 if none but the proposed one was.

    Remembers the version selected in `query`.
    """
    remembered: dict[str, int] = request.session.get(_SESSION, {})
    selected = whole(query.get("row_version", "")) or 0
    if selected and remembered.get(project.slug, 0) != selected:
        proposed = _newest(selectors.usable_versions(project))
        version_id = 0 if proposed and proposed.pk == selected else selected
        if remembered.get(project.slug, 0) != version_id:
            request.session[_SESSION] = {**remembered, project.slug: version_id}
        return version_id
    return remembered.get(project.slug, 0)


def versions_offered(project: Project, sample: Sample | None = None) -> list[Version]:
    """The versions offered for a preview: the newest fifty, and that of the sample."""
    versions = list(selectors.usable_versions(project)[:50])
    return versions if sample is None or sample.version in versions else [*versions, sample.version]


def _row(version: Version, query: QueryDict) -> tuple[Row | None, str]:
    line, go = whole(query.get("row_line", "")) or 0, query.get("go", "")
    now = selectors.row_for(version, line)
    now = now if now is not None and now.valid else selectors.next_row(version, 0)
    if now is None or not go:
        return now, ""
    if go.startswith(_MISSING):
        lacking = row_lacking(version, go.removeprefix(_MISSING), now.line)
        return lacking or now, "" if lacking else go.removeprefix(_MISSING)
    steps = {"next": selectors.next_row, "previous": selectors.previous_row}
    step = steps.get(go)
    return (step(version, now.line) if step else selectors.random_row(version)) or now, ""


def row_lacking(version: Version, field: str, after: int) -> Row | None:
    """The next row after line `after`, wrapping around, in which `data.<field>` is missing or None."""
    rows = Row.objects.filter(version=version, valid=True)
    for part in (rows.filter(line__gt=after), rows.filter(line__lte=after)):
        for row in part.order_by("line")[:MAX_LOOKED_AT].iterator(chunk_size=500):
            row.version = version
            if selectors.row_values(row).get(field) is None:
                return row
    return None


def _response(responses: list[Response], key: str) -> Response | None:
    """The response with this key, else the same candidate's first, else the first."""
    candidate = key.partition(":")[0]
    exact = (response for response in responses if _key(response) == key)
    alike = (response for response in responses if str(response.candidate_id) == candidate)
    return next(exact, None) or next(alike, None) or next(iter(responses), None)


def _key(response: Response) -> str:
    return f"{response.candidate_id}:{response.number}"


def names_offered(
    sample: Sample, judges_before: int = 0, answers: Sequence[str] = ("response",)
) -> list[OfferedName]:
    """The names that a template can use, most frequently used first. `answers`: `a` and `b` if it compares two."""
    version = sample.version
    counted: dict[str, int] = version.fields_found
    data = [OfferedName(f"data.{name}", name, may_lack=True) for name in _COMPUTED]
    fields = [
        OfferedName(dotted("data", name), name, rows, rows < version.rows)
        for name, rows in counted.items()
        if name not in _COMPUTED
    ]
    response_names = sample.item.response or ("content",)
    response = [OfferedName(dotted(root, name)) for name in response_names for root in answers]
    scale = [OfferedName("min_score"), OfferedName("max_score"), OfferedName("preprocess_result")]
    earlier = [OfferedName("judge_resps[0].content")] if judges_before else []
    about = ("text", "points", "tags") if RUBRIC in counted else ()
    criterion = [OfferedName(dotted("criterion", name)) for name in about]
    return [*data, OfferedName("data.messages"), *fields, *criterion, *response, *scale, *earlier]


def dotted(root: str, name: str) -> str:
    """`data.x`, or `data['x y']` if the name is not an identifier."""
    return f"{root}.{name}" if name.isidentifier() else f"{root}[{name!r}]"
