"""Drawing answers to look at, setting rows aside for tests before the first look, and storing notes."""

from __future__ import annotations

import random
import secrets
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from datasets.models import Version
from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from judging.filters.judgement_filter import ANYTHING, Filters
from judging.look.models import Look, LookAnswer, Note, SetAside
from judging.look.population import Population, draw, draw_by_score, of_run, of_version, rows_of
from judging.records.models import Run, RunMetric

FEWEST, MOST, USUAL = 20, 100, 50
"""Answers of a look."""
MOST_SET_ASIDE = 400
LONGEST_NOTE = 20_000


class NothingToLookAt(Exception):
    """There is no answer to draw. `code`: no_answers, no_match (of the filter), or equal_scores."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class NoteChanged(Exception):
    """The note was changed on another page meanwhile: `note`."""

    def __init__(self, note: Note) -> None:
        super().__init__(note.pk)
        self.note = note


def look_create(
    *,
    project: Project,
    version: Version,
    user: User,
    run: Run | None = None,
    filters: Filters = ANYTHING,
    by_score_of: RunMetric | None = None,
    size: int = USUAL,
    seed: int | None = None,
) -> Look:
    """Draw `size` answers of a run, or of a version, never from rows that are set aside. Raises NothingToLookAt."""
    seed = secrets.randbelow(2**31) if seed is None else seed
    with transaction.atomic():
        rows_set_aside(version=version, run=run)
        population = population_of(version, run, filters, by_score_of)
        drawn = draw_by_score(population, size, seed) if by_score_of else draw(population, size, seed)
        if drawn is None:
            raise NothingToLookAt("equal_scores")
        answers, count = drawn
        if not answers:
            raise NothingToLookAt("no_answers" if filters == ANYTHING else "no_match")
        look = Look.objects.create(
            project=project,
            version=version,
            run=run,
            query=filters.query(),
            by_score_of=by_score_of,
            seed=seed,
            size=len(answers),
            population=count,
            created_by=user,
        )
        LookAnswer.objects.bulk_create(
            LookAnswer(
                look=look,
                place=place,
                row_id=answer.row,
                response_id=answer.response,
                drawn_with=answer.drawn_with,
            )
            for place, answer in enumerate(answers, start=1)
        )
        record(Action.LOOK_DRAWN, project=project, thing=look, name=look.name, by=user, answers=len(answers))
    return look


def population_of(
    version: Version, run: Run | None, filters: Filters = ANYTHING, metric: RunMetric | None = None
) -> Population:
    """The answers that a look may show: without rows that are set aside, for whichever run of the version."""
    population = of_run(run, filters, metric) if run else of_version(version)
    return population.without_rows(all_set_aside(version))


def rows_set_aside(*, version: Version, run: Run | None) -> SetAside:
    """The rows of a run, or of a version, from which tests are drawn: evenly half of them, at most 400. Chosen once,
    before the first look; call it in a transaction.

    Rows that are set aside for other runs of the version come first, so that several runs do not use up its rows; rows
    that somebody has looked at are left out.
    """
    # Looks at runs of one version wait for each other here: none may draw what another one sets aside.
    Version.objects.select_for_update().get(pk=version.pk)
    existing = SetAside.objects.filter(version=version, run=run).first()
    if existing is not None:
        return existing
    seed = secrets.randbelow(2**31)
    rows = rows_of(run, version)
    chosen = choose_set_aside(rows, all_set_aside(version), _rows_looked_at(version), seed)
    return SetAside.objects.create(version=version, run=run, seed=seed, rows=chosen)


def rows_to_set_aside(version: Version, run: Run | None) -> int:
    """The number of rows that the first look will set aside; 0 if it was done before."""
    if SetAside.objects.filter(version=version, run=run).exists():
        return 0
    return min((run.rows if run else version.valid_rows) // 2, MOST_SET_ASIDE)


def choose_set_aside(rows: list[int], reserved: set[int], shown: set[int], seed: int) -> list[int]:
    """Half of `rows`, at most 400, in order: those already `reserved` first, never those `shown`."""
    order = random.Random(f"set aside:{seed}")
    quota = min(len(rows) // 2, MOST_SET_ASIDE)
    first = [row for row in rows if row in reserved]
    rest = [row for row in rows if row not in reserved and row not in shown]
    if len(first) >= quota:
        return sorted(order.sample(first, quota))
    return sorted([*first, *order.sample(rest, min(quota - len(first), len(rest)))])


def all_set_aside(version: Version) -> set[int]:
    """The rows of a version that are set aside for any run, which no look and no worked example may show."""
    return {
        row
        for rows in SetAside.objects.filter(version=version).values_list("rows", flat=True)
        for row in rows
    }


def _rows_looked_at(version: Version) -> set[int]:
    return set(LookAnswer.objects.filter(look__version=version).values_list("row", flat=True).distinct())


def note_save(
    *,
    answer: LookAnswer,
    user: User,
    text: str,
    passed: bool | None,
    new_kind: bool,
    seen: int,
    page: UUID | None = None,
) -> Note:
    """Store a person's note on an answer. `seen`: the `edits` of the note that the page shows, 0 for none; `page`: the
    page's own id, so that it can repeat what it sent without learning the answer.

    Raises NoteChanged if another page of the same person stored something else meanwhile; nothing is overwritten.
    """
    values = {
        "text": text[:LONGEST_NOTE],
        "passed": passed,
        "new_kind": new_kind and passed is False,
    }
    with transaction.atomic():
        note, created = Note.objects.get_or_create(answer=answer, author=user)
        note = Note.objects.select_for_update().get(pk=note.pk)
        if all(getattr(note, name) == value for name, value in values.items()):
            return note
        if not created and note.edits != seen and (page is None or note.page != page):
            raise NoteChanged(note)
        decided = note.passed is None and passed is not None
        Note.objects.filter(pk=note.pk).update(
            **values, page=page, edits=F("edits") + 1, changed_at=timezone.now()
        )
        if decided:
            record(
                Action.LOOK_NOTED,
                project=answer.look.project,
                thing=answer.look,
                name=answer.look.name,
                by=user,
                answer=answer.place,
            )
        note.refresh_from_db()
    return note
