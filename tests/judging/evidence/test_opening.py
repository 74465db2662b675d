"""Evidence files of other installations: opened as a marked imported run that shows the same figures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.core.management import CommandError, call_command

from evalsite.accounts.models import Membership, Project, User
from judging.core.judges.scripted import ScriptedJudge
from judging.evidence.container import raw_key
from judging.evidence.services import evidence_write
from judging.people.services import evaluation_close
from judging.records.models import Run
from judging.records.overrides import override_add
from judging.reports.services import report_document
from judging.reports.text_report import plain_report
from tests.conftest import ClientOf
from tests.judging import judged
from tests.judging.checklists.helpers import RUBRIC, a_checklist, with_rubrics
from tests.judging.checklists.test_runs import attentive
from tests.judging.evidence.test_evidence import change
from tests.judging.people.make import about, rate_all
from tests.judging.working import work
from tests.make import a_comparison, a_run, a_version

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(project: Project) -> Run:
    return judged.a_judged_run(project, lambda place: judged.said(10 if place % 2 else 4), rows=6)


def written(run: Run, folder: Path) -> Path:
    path = folder / "evidence.zip"
    evidence_write(run=run, path=path, hashes_only=False, key=None, user=None)
    return path


def opened(file: Path) -> tuple[Run, dict[str, Any]]:
    """The run that a file becomes, and what its report says of the file."""
    out = StringIO()
    call_command("import_dataset", str(file), "--json", stdout=out, stderr=StringIO())
    document = json.loads(out.getvalue())
    assert (document["source"], document["left_out"]) == ("evidence", [])
    run = Run.objects.get(pk=document["run"])
    return run, report_document(run)["evidence"]


def test_it_becomes_an_imported_run_with_the_same_figures(
    run: Run, rita: User, bob: User, tmp_path: Path
) -> None:
    override_add(judgement=judged.first_of(run), value=2, reason="wrong", by=bob)
    evaluation = about(run, [rita])
    rate_all(evaluation, rita, 7)
    evaluation_close(evaluation=evaluation, by=bob)
    again, evidence = opened(written(run, tmp_path))
    assert (again.imported, evidence["origin"]["run"]) == (True, run.name)
    assert (evidence["same_figures"], evidence["verified"]["recomputed"]) == (True, True)
    inside, here = (report_document(each) for each in (run, again))
    assert here["people_candidates"].keys() == inside["people_candidates"].keys() == {"alpha", "beta"}
    assert [entry["alpha"] for entry in here["raters"]] == [entry["alpha"] for entry in inside["raters"]]
    assert set(again.verdict_sources.filter(kind="rater").values_list("name", flat=True)) == {"R1"}


@pytest.mark.django_db(transaction=True)
def test_comparisons_in_both_orders_and_checklists_keep_their_figures(
    project: Project, tmp_path: Path
) -> None:
    with ScriptedJudge(lambda received: "[[A>B]]" if len(received.raw) % 3 else "[[B>A]]") as judge:
        compared = work(a_run(a_version(project, rows=4), a_comparison(judge.url)))
    with ScriptedJudge(attentive) as judge:
        checked = work(a_run(with_rubrics(project, [RUBRIC] * 3), a_checklist(judge.url)))
    for run in (compared, checked):
        again, evidence = opened(written(run, tmp_path))
        assert evidence["same_figures"], run
    cells, before = (report_document(each)["candidates"]["beta"]["quality"] for each in (again, run))
    assert [cells[name] for name in ("criteria", "tags")] == [before[name] for name in ("criteria", "tags")]


def test_a_licence_in_it_is_text_and_counts_nowhere(run: Run, tmp_path: Path) -> None:
    file = written(run, tmp_path)
    entry = {**LICENCE, "metric": run.metrics.get().name, "judge": "judge"}
    change(file, "report.json", with_licence(entry), hashed=True)
    again, evidence = opened(file)
    assert evidence["licences"] == [entry]  # not what no page could say
    assert "may be used for gates" in plain_report(report_document(again))
    assert [entry["state"] for entry in report_document(again)["licences"]] == ["none"]
    with pytest.raises(SystemExit, match="3"):
        call_command("report", str(again.pk), "--require", "licence", stdout=StringIO(), stderr=StringIO())


LICENCE = {
    "use": "gates", "state": "valid", "reason": "", "dataset": "elsewhere", "version": 1, "items": 200,
    "failures": 0.3, "here": True,
}  # fmt: skip


def with_licence(entry: dict[str, Any]) -> Callable[[bytes], bytes]:
    odd = ["x", None, {}, entry | {"use": "all"}, entry | {"items": "many"}, entry | {"reason": "x" * 9_000}]
    return lambda content: json.dumps(json.loads(content) | {"licences": [*odd, entry]}).encode()


def test_a_report_inside_that_is_none_is_told_and_breaks_no_page(run: Run, tmp_path: Path) -> None:
    file = written(run, tmp_path)
    change(file, "report.json", lambda _content: b"[1]", hashed=False)
    again, evidence = opened(file)
    verified = evidence["verified"]
    assert (verified["intact"], verified["recomputed"], evidence["same_figures"]) == (False, False, False)
    assert "Parts of the file were changed" in plain_report(report_document(again))


def test_pages_mark_the_run(run: Run, tmp_path: Path, alice: User, client_of: ClientOf) -> None:
    again, _evidence = opened(written(run, tmp_path))
    Membership.objects.update_or_create(project=again.project, user=alice, defaults={"role": "analyst"})
    client, address = client_of(alice), f"/p/{again.project.slug}/runs/{again.pk}/"
    for page in (address, f"{address}report/"):
        text = client.get(page).content.decode()
        assert f"Opened from an evidence file: run “{run.name}” over" in text
        assert "not signed" in text


def test_a_changed_file_is_a_warning_on_the_page_of_its_run(
    run: Run, tmp_path: Path, alice: User, client_of: ClientOf
) -> None:
    file = written(run, tmp_path)
    sound, _evidence = opened(file)
    change(file, "report.json", lambda content: content.replace(b'"mean": ', b'"mean": 1', 1), hashed=False)
    doubtful, _evidence = opened(file)
    Membership.objects.update_or_create(project=sound.project, user=alice, defaults={"role": "analyst"})
    warned = 'class="notice" data-kind="warning">Opened from an evidence file'
    pages = [client_of(alice).get(f"/p/{each.project.slug}/runs/{each.pk}/") for each in (sound, doubtful)]
    assert [warned in page.content.decode() for page in pages] == [False, True]


@pytest.mark.parametrize(
    ("name", "edit", "message"),
    [
        ("results/0001.jsonl", lambda content: content.replace(b"4", b"5", 1), "was changed"),
        (
            "settings.json",
            lambda content: content.replace(b'"hashes_only": false', b'"hashes_only": true '),
            "",
        ),
    ],
)
def test_a_changed_file_is_refused(
    name: str, edit: Callable[[bytes], bytes], message: str, run: Run, tmp_path: Path
) -> None:
    file = written(run, tmp_path)
    change(file, name, edit, hashed=False)
    with pytest.raises(CommandError, match=message or "was changed"):
        call_command("import_dataset", str(file), stdout=StringIO())
    assert Run.objects.count() == 1


def test_what_holds_hashes_only_cannot_be_opened(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "evidence.zip"
    evidence_write(run=run, path=file, hashes_only=True, key=None, user=None)
    with pytest.raises(CommandError, match="hashes only"):
        call_command("import_dataset", str(file), stdout=StringIO())


def test_another_installation_verifies_and_opens_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    file = tmp_path / "evidence.zip"
    evidence_write(run=run, path=file, hashes_only=False, key=here, user=None)
    pem = tmp_path / "there.pem"
    pem.write_bytes(there.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    elsewhere = {"DATA_DIR": str(tmp_path / "there"), "EVIDENCE_KEY_FILE": str(pem), "DATABASE_URL": ""}

    def manage(*arguments: str) -> tuple[int, dict[str, Any]]:
        ended = subprocess.run(
            [sys.executable, "manage.py", *arguments, "--json"],
            env=os.environ | elsewhere, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        return ended.returncode, json.loads(ended.stdout)

    key = raw_key(here.public_key()).hex()
    status, document = manage("verify", str(file), "--key", key)
    assert (status, document["recomputed"], document["signed_by_given_key"]) == (0, True, True)
    assert not (tmp_path / "there").exists()
    status, document = manage("import_dataset", str(file))
    assert (status, document["source"], document["valid_rows"], document["left_out"]) == (
        0,
        "evidence",
        6,
        [],
    )
    assert document["verdicts"] == run.total
    change(file, "rows/0001.jsonl", lambda content: content.replace(b"1", b"2", 1), hashed=False)
    status, document = manage("verify", str(file), "--key", key)
    assert (status, document["intact"], document["signed_by_given_key"]) == (1, False, True)
    assert [each["place"] for each in document["differences"]] == ["rows/0001.jsonl"]
