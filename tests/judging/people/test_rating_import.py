"""Rating imports run in a worker, are continued by the next one, and are undone on failure or cancellation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile

from evalsite.accounts.models import Project, User
from evalsite.models import AuditEntry
from evalsite.tasks import jobs
from judging.people import rating_import
from judging.people.import_models import RatingsImport
from judging.people.models import Assignment, Evaluation, EvaluationRater, Item, Rating
from judging.people.rating_batch import RatingBatch
from judging.people.rating_import import import_begin, import_stop
from judging.records.models import Judgement, Run
from tests.conftest import ClientOf
from tests.judging.people.make import lines_of, make_evaluation
from tests.working import StopsAfter

pytestmark = pytest.mark.django_db(transaction=True)
LINES = 250


@pytest.fixture
def evaluation(project: Project, rita: User) -> Evaluation:
    return make_evaluation(project, [rita], rows=LINES, side_by_side=False, models=["alpha"])


@pytest.fixture
def waiting(evaluation: Evaluation, alice: User, monkeypatch: pytest.MonkeyPatch) -> RatingsImport:
    """An import of three batches, waiting for a worker."""
    monkeypatch.setattr(rating_import, "AT_ONCE", 0)
    lines = [{"item": n, "rater": "R1", "values": {"quality": 1 + n % 5}} for n in range(1, LINES + 1)]
    file = SimpleUploadedFile("r", "\n".join(map(json.dumps, lines)).encode())
    made = import_begin(evaluation=evaluation, file=file, file_name="r.jsonl", by=alice)
    assert (made.state, Rating.objects.count()) == ("waiting", 0)
    return made


def state_of(taken: RatingsImport) -> tuple[str, int, int]:
    taken.refresh_from_db()
    return taken.state, taken.new, Rating.objects.count()


def counted(evaluation: Evaluation) -> tuple[object, ...]:
    """All counters changed by ratings."""
    run = Run.objects.get(pk=evaluation.run_id)
    items = Item.objects.order_by("number").values_list("rated", "free", "assigned").distinct()
    current = Judgement.objects.filter(run=run, current=True).count()
    return run.scored, run.no_score, run.total, set(items), current, Assignment.objects.count()


def test_a_worker_imports_a_file(evaluation: Evaluation, waiting: RatingsImport) -> None:
    jobs.run("import_ratings", waiting.pk)
    assert state_of(waiting) == ("done", LINES, LINES)
    assert counted(evaluation) == (LINES, 0, LINES, {(1, 0, 1)}, LINES, LINES)
    assert EvaluationRater.objects.get().place == LINES
    assert AuditEntry.objects.get(action="ratings.imported").detail == {"ratings": LINES}


def test_the_next_worker_continues_where_the_last_one_stopped(waiting: RatingsImport) -> None:
    jobs.run("import_ratings", waiting.pk, StopsAfter(2))
    assert state_of(waiting) == ("reading", 200, 200)
    jobs.run("import_ratings", waiting.pk)
    assert state_of(waiting) == ("done", LINES, LINES)
    assert waiting.already_imported == 0


def test_another_worker_takes_over_from_a_dead_one(waiting: RatingsImport) -> None:
    assert jobs.claim("import_ratings", waiting.pk, owner="elsewhere:1:1")
    RatingsImport.objects.update(state="reading")
    jobs.run("import_ratings", waiting.pk)
    assert state_of(waiting)[0] == "reading"
    jobs.reconcile()
    jobs.run("import_ratings", waiting.pk)
    assert state_of(waiting) == ("done", LINES, LINES)


def test_a_file_that_fails_midway_leaves_nothing(
    evaluation: Evaluation, waiting: RatingsImport, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = counted(evaluation)
    monkeypatch.setattr(
        rating_import,
        "RatingBatch",
        lambda *given: RatingBatch(*given) if given[1][0].line < 200 else 1 / 0,
    )
    jobs.run("import_ratings", waiting.pk)
    assert state_of(waiting) == ("undone", 0, 0)
    assert (waiting.problem, counted(evaluation)) == ("unexpected", before)


def test_a_cancelled_import_is_undone(
    evaluation: Evaluation, waiting: RatingsImport, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = counted(evaluation)
    jobs.run("import_ratings", waiting.pk, StopsAfter(2))
    assert import_stop(ratings_import=waiting)
    jobs.run("import_ratings", waiting.pk)
    assert state_of(waiting) == ("undone", 0, 0)
    assert counted(evaluation) == before


def test_an_interrupted_undo_continues(waiting: RatingsImport) -> None:
    jobs.run("import_ratings", waiting.pk, StopsAfter(2))
    import_stop(ratings_import=waiting)
    jobs.run("import_ratings", waiting.pk, StopsAfter(1))
    assert state_of(waiting) == ("undoing", 100, 100)
    jobs.run("import_ratings", waiting.pk)
    assert state_of(waiting) == ("undone", 0, 0)


def test_a_finished_import_cannot_be_cancelled(waiting: RatingsImport) -> None:
    jobs.run("import_ratings", waiting.pk)
    assert not import_stop(ratings_import=waiting)
    assert state_of(waiting) == ("done", LINES, LINES)


def test_a_missing_file_is_reported(waiting: RatingsImport) -> None:
    place = Path(settings.DATA_DIR) / waiting.stored_as
    place.unlink()
    jobs.run("import_ratings", waiting.pk)
    assert state_of(waiting)[0] == "undone"
    assert waiting.problem == "gone"


def test_an_imported_file_is_deleted(waiting: RatingsImport) -> None:
    jobs.run("import_ratings", waiting.pk)
    assert not (Path(settings.DATA_DIR) / waiting.stored_as).exists()


def test_imported_and_exported_lines_are_the_same(evaluation: Evaluation, waiting: RatingsImport) -> None:
    jobs.run("import_ratings", waiting.pk)
    found = [(line["item"], line["values"]["quality"]) for line in lines_of(evaluation)]
    assert sorted(found) == [(n, 1 + n % 5) for n in range(1, LINES + 1)]


def test_the_page_shows_the_progress_and_that_no_worker_runs(
    evaluation: Evaluation, waiting: RatingsImport, alice: User, client_of: ClientOf
) -> None:
    address = f"/p/physics/evaluations/{evaluation.run_id}/import/{waiting.pk}/"
    assert "No worker is running" in client_of(alice).get(address).content.decode()
    jobs.run("import_ratings", waiting.pk, StopsAfter(2))
    page = client_of(alice).get(address, headers={"HX-Request": "true"}).content.decode()
    assert "line 200 of 250, 200 new ratings" in page
    assert "<html" not in page


def test_a_waiting_page_reloads_when_the_import_is_done(
    evaluation: Evaluation, waiting: RatingsImport, alice: User, client_of: ClientOf
) -> None:
    jobs.run("import_ratings", waiting.pk)
    address = f"/p/physics/evaluations/{evaluation.run_id}/import/{waiting.pk}/"
    assert client_of(alice).get(address, headers={"HX-Request": "true"}).headers["HX-Refresh"] == "true"


def test_only_organisers_see_and_cancel_it(
    evaluation: Evaluation, waiting: RatingsImport, rita: User, charlie: User, client_of: ClientOf
) -> None:
    address = f"/p/physics/evaluations/{evaluation.run_id}/import/{waiting.pk}/"
    assert client_of(rita).get(address).status_code == 403
    assert client_of(charlie).post(address + "stop/").status_code == 404
    assert state_of(waiting)[0] == "waiting"


def test_only_the_first_invalid_lines_are_listed_and_all_are_counted(
    evaluation: Evaluation, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rating_import, "LISTED", 3)
    text = "\n".join(["{x"] * 150)
    file = SimpleUploadedFile("r", text.encode())
    made = import_begin(evaluation=evaluation, file=file, file_name="r.jsonl", by=alice)
    assert (made.invalid, [line for line, _, _ in made.bad_lines]) == (150, [1, 2, 3])
