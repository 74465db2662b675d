"""The evaluation presets of a version depend on its rows' contents, not on its format."""

from __future__ import annotations

import json
import re
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from datasets.importing.worker import import_version
from datasets.models import Candidate, Response, Row, Version, VersionState
from datasets.selectors import models_in_column
from datasets.services import dataset_upload
from datasets.versions import attach
from datasets.versions.references import reference_of
from evalsite.accounts.models import Project, User
from evalsite.tasks import jobs
from judging.people import assignments
from judging.people.item_view import shown_to
from judging.people.presets import others, presets_of
from tests.conftest import ClientOf
from tests.judging.people.make import answered, legacy, make_evaluation
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
    assert codes(version) == ["reference", "single", "as_it_stands", "spans"]


def test_a_legacy_file_stays_one_when_another_is_attached_to_it(
    project: Project, settings: LazySettings, tmp_path: Path
) -> None:
    settings.DATA_DIR = tmp_path
    turns = [{"prompt": "first", "response": "1"}, {"prompt": "last", "response": "expected"}]
    file = json.dumps({"conversation": turns}).encode()
    uploaded = dataset_upload(project=project, name="a", file=BytesIO(file), file_name="a.jsonl", user=None)
    assert import_version(uploaded.pk)
    uploaded.refresh_from_db()
    given = {"file": BytesIO(file), "file_name": "b.jsonl", "model_name": "qwen", "match_by": ""}
    sent = attach.answers_upload(version=uploaded, user=None, **given)
    assert jobs.run("match_answers", sent.pk)
    sent.refresh_from_db()
    made = attach.attachment_use(attachment=sent, user=None)
    assert made is not None
    assert import_version(made.pk)
    made.refresh_from_db()
    assert made.format == "judge_only"
    assert codes(made) == ["reference", "single", "as_it_stands", "spans"]


def test_legacy_survives_a_chain_of_versions(project: Project) -> None:
    attached = made_of(made_of(legacy(project, False), "attach"), "run", ("qwen", "gpt"))
    assert codes(made_of(attached, "repair", ("qwen", "gpt"))) == [
        "reference",
        *PAIRS,
        "single",
        "as_it_stands",
        "spans",
    ]


def test_a_file_read_again_in_another_format_did_not_begin_as_legacy(project: Project) -> None:
    assert codes(made_of(legacy(project, False), "format"))[0] == "single"


def test_rows_without_references_offer_no_comparison_with_them(project: Project) -> None:
    assert codes(rows_are(a_version(project), row_of("q"))) == ["single", "spans", *PAIRS]


@pytest.mark.parametrize("raw", [row_of("q", "expected"), row_of("q", ref_answer="expected")])
def test_any_version_whose_rows_carry_references_offers_them(project: Project, raw: dict[str, Any]) -> None:
    version = rows_are(a_version(project, models=("alpha", "beta", "gamma")), raw)
    assert codes(version) == [
        "single",
        "as_it_stands",
        "spans",
        "reference",
        "every_pair",
        "balanced",
        "baseline",
        "rank",
    ]


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


def one_file_of_two_models(project: Project) -> Version:
    version = legacy(project, False)
    Version.objects.filter(pk=version.pk).update(format="legacy_csv")
    for row in Row.objects.filter(version=version):
        raw = {"prompt": "p", "response": f"says {row.line}", "model": f"model-{row.line}"}
        Row.objects.filter(pk=row.pk).update(raw=json.dumps(raw))
    version.refresh_from_db()
    return version


def test_the_models_that_a_column_of_a_legacy_file_names_are_found(project: Project) -> None:
    version = one_file_of_two_models(project)
    assert models_in_column(version) == ["model-1", "model-2"]
    Row.objects.filter(version=version, line=1).update(raw=json.dumps({"prompt": "other", "model": "m"}))
    assert models_in_column(version) == []


@pytest.mark.parametrize(
    "address", ["evaluations/new/?version={0.pk}", "datasets/{0.dataset_id}/v{0.number}/"]
)
def test_they_are_put_side_by_side_with_one_button(
    project: Project, alice: User, client_of: ClientOf, address: str
) -> None:
    version = one_file_of_two_models(project)
    assert "A column names 2 models" in client_of(alice).get(f"/p/physics/{address.format(version)}").text


def test_a_legacy_csv_with_a_column_of_models_is_compared_without_splitting_it(
    project: Project, alice: User, client_of: ClientOf, settings: LazySettings, tmp_path: Path
) -> None:
    settings.DATA_DIR = tmp_path
    text = "prompt,response,model\nq1,yes,alpha\nq1,no,beta\nq2,one,alpha\nq2,two,beta\n"
    version = dataset_upload(
        project=project, name="both", file=BytesIO(text.encode()), file_name="both.csv", user=alice
    )
    import_version(version.pk)
    client = client_of(alice)
    draft = client.post(f"/p/physics/datasets/{version.dataset_id}/v1/import/", {"source": "table"})[
        "Location"
    ]
    client.post(draft, {"do": "import"})
    made = version.children.get()
    import_version(made.pk)
    made.refresh_from_db()
    assert (made.rows, sorted(one.name for one in made.candidates.all())) == (2, ["alpha", "beta"])
    assert codes(made)[0] == "every_pair"


def test_what_was_put_side_by_side_opens_so(project: Project) -> None:
    version = answered(a_version(project))
    Version.objects.filter(pk=version.pk).update(parent=legacy(project, False), origin="import")
    version.refresh_from_db()
    assert codes(version)[0] == "every_pair"


@pytest.mark.parametrize(("is_legacy", "primary"), [(True, "Rate by people"), (False, "Use in a run")])
def test_a_legacy_data_set_offers_human_evaluation_first(
    project: Project, alice: User, client_of: ClientOf, is_legacy: bool, primary: str
) -> None:
    version = legacy(project, False) if is_legacy else a_version(project)
    page = client_of(alice).get(f"/p/physics/datasets/{version.dataset_id}/v{version.number}/").text
    buttons = re.findall(r'<a class="button primary".*?</a>', page, re.DOTALL)
    assert [primary in one for one in buttons] == [True]


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
