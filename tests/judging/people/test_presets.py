"""The evaluation presets of a version depend on its rows' contents, not on its format."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from datasets.importing.worker import import_version
from datasets.models import Candidate, Response, Row, Version, VersionState
from datasets.services import dataset_upload
from datasets.versions import attach
from datasets.versions.references import reference_of
from evalsite.accounts.models import Project, User
from evalsite.tasks import workers
from judging.people import assignments
from judging.people.item_view import shown_to
from judging.people.presets import others, presets_of
from tests.conftest import ClientOf
from tests.judging.people.make import legacy, make_evaluation
from tests.make import a_version

pytestmark = pytest.mark.django_db
PAIRS = ["every_pair", "baseline"]


def codes(version: Version) -> list[str]:
    return [one.code for one in presets_of(version)]


def made_of(parent: Version, origin: str, models: tuple[str, ...] = ("qwen",)) -> Version:
    """A version with the parent's rows as messages and answers by `models`, as created by attaching or generation."""
    version = Version.objects.create(
        dataset=parent.dataset,
        number=parent.number + 1,
        state=VersionState.READY,
        origin=origin,
        parent=parent,
        format="judge_only",
        rows=parent.rows,
        valid_rows=parent.valid_rows,
    )
    candidates = [Candidate.objects.create(version=version, name=one, responses=1) for one in models]
    for line in range(1, parent.rows + 1):
        raw = row_of(f"p{line}", f"expected {line}")
        row = Row.objects.create(version=version, line=line, valid=True, raw=json.dumps(raw))
        for one in candidates:
            Response.objects.create(row=row, candidate=one, number=1, raw=json.dumps({"content": "said"}))
    return version


def row_of(question: str, expected: str = "", **more: Any) -> dict[str, Any]:
    answer = [{"role": "assistant", "content": expected}] if expected else []
    return {"messages": [{"role": "user", "content": question}, *answer], **more}


def rows_are(version: Version, raw: dict[str, Any]) -> Version:
    Row.objects.filter(version=version).update(raw=json.dumps(raw))
    Candidate.objects.filter(version=version).update(responses=version.rows)
    return version


@pytest.mark.parametrize("origin", ["attach", "run", "repair"])
def test_what_began_as_legacy_opens_side_by_side_after_answers_came(project: Project, origin: str) -> None:
    version = made_of(legacy(project, False), origin)
    assert codes(version) == ["reference", "single", "as_it_stands"]


def test_a_legacy_file_stays_one_when_another_is_attached_to_it(
    project: Project, settings: LazySettings, tmp_path: Path
) -> None:
    settings.DATA_DIR = tmp_path
    turns = [{"prompt": "first", "response": "1"}, {"prompt": "last", "response": "expected"}]
    file = json.dumps({"conversation": turns}).encode()
    uploaded = dataset_upload(project=project, name="a", file=BytesIO(file), file_name="a.jsonl", user=None)
    assert import_version(uploaded.pk, workers.owner())
    uploaded.refresh_from_db()
    given = {"file": BytesIO(file), "file_name": "b.jsonl", "model_name": "qwen", "match_by": ""}
    sent = attach.answers_upload(version=uploaded, user=None, **given)
    assert attach.match(sent.pk, workers.owner())
    sent.refresh_from_db()
    made = attach.attachment_use(attachment=sent, user=None)
    assert made is not None
    assert import_version(made.pk, workers.owner())
    made.refresh_from_db()
    assert made.format == "judge_only"
    assert codes(made) == ["reference", "single", "as_it_stands"]


def test_legacy_survives_a_chain_of_versions(project: Project) -> None:
    attached = made_of(made_of(legacy(project, False), "attach"), "run", ("qwen", "gpt"))
    assert codes(made_of(attached, "repair", ("qwen", "gpt"))) == [
        "reference",
        *PAIRS,
        "single",
        "as_it_stands",
    ]


def test_a_file_read_again_in_another_format_did_not_begin_as_legacy(project: Project) -> None:
    assert codes(made_of(legacy(project, False), "format"))[0] == "single"


def test_rows_without_references_offer_no_comparison_with_them(project: Project) -> None:
    assert codes(rows_are(a_version(project), row_of("q"))) == ["single", *PAIRS]


@pytest.mark.parametrize("raw", [row_of("q", "expected"), row_of("q", ref_answer="expected")])
def test_any_version_whose_rows_carry_references_offers_them(project: Project, raw: dict[str, Any]) -> None:
    version = rows_are(a_version(project, models=("alpha", "beta", "gamma")), raw)
    assert codes(version) == ["single", "as_it_stands", "reference", "every_pair", "balanced", "baseline"]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (row_of("q", "last", ref_answer="field"), "last"),
        (row_of("q", ref_answer="field"), "field"),
        (row_of("q", ref_answer=42), "42"),
        (row_of("q", ref_answer=["一", "b"]), '["一", "b"]'),
        (row_of("q", ref_answer=None), None),
        (row_of("q", ref_answer=" "), None),
    ],
)
def test_the_reference_of_a_row(raw: dict[str, Any], expected: str | None) -> None:
    assert reference_of(Row(raw=json.dumps(raw)), "judge_only") == expected


def test_a_ref_answer_is_next_to_the_answer(project: Project, rita: User) -> None:
    version = rows_are(a_version(project, models=("alpha",)), row_of("q", ref_answer="the field"))
    evaluation = make_evaluation(project, [rita], version=version, scheme="reference")
    seen = shown_to(assignments.claim(evaluation=evaluation, user=rita)[0])
    assert seen.right is not None
    assert "the field" in (seen.left.content, seen.right.content)


def test_two_files_are_offered_also_after_answers_were_attached(project: Project) -> None:
    one, other = legacy(project, False), legacy(project, False, "newer")
    assert "versions" in codes(made_of(one, "attach"))
    assert list(others(made_of(other, "attach"))) == [made_of_first(one), one]


def made_of_first(version: Version) -> Version:
    return version.children.get()


def test_a_legacy_file_alone_opens_beside_the_newest_one_that_asks_the_same(project: Project) -> None:
    one, _twin = legacy(project, False), legacy(project, False, "newer")
    legacy(project, False, "else", ("something else",))
    assert codes(one)[0] == "versions"


def test_a_legacy_file_without_a_twin_is_scored_as_it_is(project: Project) -> None:
    one, _other = legacy(project, False), legacy(project, False, "else", ("something else",))
    assert codes(one) == ["as_it_stands", "versions"]


def test_the_page_of_an_attached_version_preselects_side_by_side(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    version = made_of(legacy(project, False), "attach")
    page = client_of(alice).get(f"/p/physics/evaluations/new/?version={version.pk}").content.decode()
    chosen = next(line for line in page.split("<input") if 'name="kind"' in line and "checked" in line)
    assert 'value="reference"' in chosen
