"""Evidence files: what they hold, and what `verify` says of intact, changed and foreign ones."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.conf import settings
from django.core.management import CommandError, call_command

from datasets.core.rubric import read_rubric
from evalsite.accounts.models import Project, User
from judging.core.checklists import conclude_checklist
from judging.core.licensing import Sizes
from judging.core.metric_definition import MetricDefinition
from judging.core.results import JudgeCall, JudgementResult, Verdict
from judging.evidence.comparing import compared
from judging.evidence.container import raw_key
from judging.metrics.models import MetricVersion
from judging.metrics.services import metric_create
from judging.records.models import Run
from judging.reports.figures import for_page
from judging.reports.services import report_document
from judging.trust.models import Licence
from judging.trust.services import sealed_test_close, sealed_test_open, split_draw
from tests.judging import judged
from tests.judging.checklists.helpers import RUBRIC, a_checklist, with_rubrics
from tests.judging.people.make import about, rate_each
from tests.make import a_metric, a_run, a_version

Members = dict[str, bytes]


@pytest.fixture
def file(project: Project, tmp_path: Path) -> Path:
    judged.a_judged_run(project, lambda place: judged.said(10 if place % 2 else 4))
    return tmp_path / "evidence.zip"


def write(file: Path, *options: str) -> None:
    call_command("evidence", str(Run.objects.get().pk), "--out", str(file), *options, stderr=StringIO())


def verified(file: Path, *options: str) -> tuple[int, dict[str, Any]]:
    """The exit status and the document of `verify --json`."""
    out, status = StringIO(), 0
    try:
        call_command("verify", str(file), "--json", *options, stdout=out, stderr=StringIO())
    except SystemExit as ended:
        status = int(ended.code or 0)
    return status, json.loads(out.getvalue())


def printed(file: Path) -> list[str]:
    """The lines of `verify` on a file that differs."""
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("verify", str(file), stdout=out, stderr=StringIO())
    return out.getvalue().splitlines()


def members(file: Path) -> Members:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(file: Path, contents: Members) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)


def change(file: Path, name: str, edit: Callable[[bytes], bytes], *, hashed: bool) -> None:
    """Change a member, and its hash in the manifest if `hashed`."""
    contents = members(file)
    contents[name] = edit(contents[name])
    if hashed:
        manifest = json.loads(contents["manifest.json"])
        manifest["files"][name]["sha256"] = hashlib.sha256(contents[name]).hexdigest()
        contents["manifest.json"] = json.dumps(manifest).encode()
    rewrite(file, contents)


def change_json(file: Path, name: str, edit: Callable[[Any], Any]) -> None:
    """Change a JSON member in place, and its hash in the manifest."""

    def edited(content: bytes) -> bytes:
        document = json.loads(content)
        edit(document)
        return json.dumps(document).encode()

    change(file, name, edited, hashed=True)


def sign_with(key: Ed25519PrivateKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pem = tmp_path / "key.pem"
    pem.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    monkeypatch.setattr(settings, "CONFIG", replace(settings.CONFIG, evidence_key_file=str(pem)))


@pytest.mark.django_db
@pytest.mark.parametrize("options", [(), ("--hashes-only",)])
def test_a_finished_run_is_intact_and_recomputed(file: Path, options: tuple[str, ...]) -> None:
    write(file, *options)
    status, document = verified(file)
    assert document["differences"] == []
    assert (status, document["intact"], document["recomputed"], document["signed"]) == (0, True, True, False)
    assert document["key"] is document["signed_by_given_key"] is None


@pytest.mark.django_db
def test_of_a_run_that_has_not_ended_none_is_written(file: Path) -> None:
    Run.objects.update(state="running")
    with pytest.raises(CommandError, match="has not ended yet") as refusal:
        write(file)
    assert (refusal.value.returncode, file.exists()) == (1, False)


@pytest.mark.django_db
def test_the_report_inside_is_that_of_the_run(file: Path) -> None:
    write(file)
    inside = json.loads(members(file)["report.json"])
    run = judged.Run.objects.get()
    assert inside == json.loads(json.dumps(report_document(run)))


@pytest.mark.django_db
def test_with_hashes_only_no_text_of_the_data_is_inside(file: Path) -> None:
    write(file, "--hashes-only")
    assert b"question" not in b"".join(
        content for name, content in members(file).items() if name.split("/")[0] in ("rows", "answers")
    )
    assert all(
        "request" not in reply
        for line in members(file)["judgements/0001.jsonl"].splitlines()
        for reply in json.loads(line)["replies"]
    )


@pytest.mark.django_db
def test_one_changed_byte_breaks_a_hash(file: Path) -> None:
    write(file)
    change(file, "rows/0001.jsonl", lambda content: content[:-3] + b"!" + content[-2:], hashed=False)
    status, document = verified(file)
    assert (status, document["intact"]) == (1, False)
    assert [difference["place"] for difference in document["differences"]] == ["rows/0001.jsonl"]


@pytest.mark.django_db
def test_differences_are_printed_as_sentences(file: Path) -> None:
    write(file)
    change(file, "report.json", lambda content: content.replace(b'"mean": ', b'"mean": 1', 1), hashed=True)
    (line,) = [line for line in printed(file) if "/mean: " in line]
    assert re.fullmatch(r"report\.json/.*/mean: 1[\d.]+ in the file, [\d.]+ computed", line)
    change(file, "judgements/0001.jsonl", lambda _content: b"{", hashed=True)
    assert "The report cannot be computed again: " in "\n".join(printed(file))


@pytest.mark.django_db
def test_a_changed_figure_with_its_hash_is_a_difference(file: Path) -> None:
    write(file)
    change(file, "report.json", lambda content: content.replace(b'"mean": ', b'"mean": 1', 1), hashed=True)
    status, document = verified(file)
    assert (status, document["intact"], document["recomputed"]) == (1, True, False)
    assert document["differences"][0]["place"].endswith("/mean")


@pytest.mark.django_db
def test_a_changed_reply_with_its_hash_is_a_difference(file: Path) -> None:
    write(file)

    def other_verdict(content: bytes) -> bytes:
        first, *rest = content.splitlines()
        record = json.loads(first)
        record["replies"][0]["reply"]["content"] = "Score: 7"
        return b"\n".join([json.dumps(record).encode(), *rest])

    change(file, "judgements/0001.jsonl", other_verdict, hashed=True)
    status, document = verified(file)
    assert (status, document["recomputed"]) == (1, False)
    assert any(difference["computed"] == 7 for difference in document["differences"])


@pytest.mark.django_db
@pytest.mark.parametrize(
    "name", ["../../outside.txt", "/tmp/watch-outside.txt", "rows/../../outside.txt", "C:\\x"]
)
def test_a_path_out_of_the_folder_is_not_intact_and_writes_nothing(file: Path, name: str) -> None:
    write(file)
    rewrite(file, {**members(file), name: b"x"})
    before = sorted(file.parent.rglob("*"))
    status, document = verified(file)
    assert (status, document["intact"]) == (1, False)
    assert [difference["place"] for difference in document["differences"]] == [name]
    assert sorted(file.parent.rglob("*")) == before
    assert not any(
        Path(place).exists() for place in ("/tmp/watch-outside.txt", file.parent.parent / "outside.txt")
    )


@pytest.mark.django_db
def test_a_name_that_stands_twice_is_not_intact(file: Path) -> None:
    write(file)
    with zipfile.ZipFile(file, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("report.json", archive.read("report.json"))
    status, document = verified(file)
    assert (status, document["intact"]) == (1, False)
    assert [difference["place"] for difference in document["differences"]] == ["report.json"]


@pytest.mark.django_db
def test_a_link_is_not_followed(file: Path, tmp_path: Path) -> None:
    write(file)
    secret = tmp_path / "secret"
    secret.write_bytes(members(file)["report.json"])
    contents = members(file)
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in contents.items():
            link = zipfile.ZipInfo(name)
            link.external_attr = 0o120777 << 16
            archive.writestr(link, str(secret) if name == "report.json" else content)
    status, document = verified(file)
    assert (status, document["intact"], document["recomputed"]) == (1, False, False)


@pytest.mark.django_db
def test_a_script_in_it_is_not_executed(project: Project, tmp_path: Path) -> None:
    mark = tmp_path / "written"
    code = f"def postprocess(**kwargs):\n    return open({str(mark)!r}, 'w').write('x')"
    metric = a_metric(judged.JUDGE_URL, postprocess=code, parse={"regex": "Score: (\\d+)"})
    judged.a_judged_run(project, lambda _: judged.said(7), metric=metric)
    file = tmp_path / "evidence.zip"
    write(file)
    assert str(mark).encode() in members(file)["settings.json"]
    verified(file)
    assert not mark.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("settings.json", b"[" * 100_000),
        ("report.json", b"[" + b"[]," * 2_000_001 + b"0]"),
        ("judgements/0001.jsonl", b"[" + b"[]," * 2_000_001 + b"0]"),
        ("verdicts/0001.jsonl", b"1" * 10_000),
        ("report.json", b"\xff\xfe"),
    ],
)
def test_json_that_would_fill_memory_is_a_difference(file: Path, name: str, text: bytes) -> None:
    write(file)
    change(file, name, lambda _: text, hashed=True)
    status, document = verified(file)
    assert (status, document["recomputed"]) == (1, False)


@pytest.mark.django_db
def test_a_licence_of_its_own_making_is_a_difference(file: Path) -> None:
    write(file)
    change(
        file,
        "report.json",
        lambda content: json.dumps(
            json.loads(content) | {"licences": [{"state": "valid", "use": "gates"}]}
        ).encode(),
        hashed=True,
    )
    status, document = verified(file)
    places = {difference["place"] for difference in document["differences"]}
    assert (status, places) == (1, {"report.json/licences/0/state", "report.json/licences/0/use"})


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("before", "after"),
    [(b'"source": "licence"', b'"value": 0.01, "source": "licence"'), (b'"tpr": 1.0', b'"tpr": 0.5')],
)
def test_what_a_licences_test_corrects_is_computed_again(
    project: Project, rita: User, tmp_path: Path, before: bytes, after: bytes
) -> None:
    later, file = _corrected_by_a_licence(project, rita), tmp_path / "licensed.zip"
    call_command("evidence", str(later.pk), "--out", str(file), stderr=StringIO())
    status, document = verified(file)
    assert (status, document["recomputed"], document["differences"]) == (0, True, [])
    change(file, "report.json", lambda content: content.replace(before, after), hashed=True)
    status, document = verified(file)
    assert (status, document["intact"], document["recomputed"]) == (1, True, False)


@pytest.mark.django_db
def test_what_a_licence_says_is_computed_from_its_test(project: Project, rita: User, tmp_path: Path) -> None:
    later, file = _corrected_by_a_licence(project, rita), tmp_path / "licensed.zip"
    call_command("evidence", str(later.pk), "--out", str(file), stderr=StringIO())
    changed = {"use": "gates", "failures": 0.2, "tpr_low": 0.99, "tnr_high": 0.5, "items": 4}
    change_json(file, "report.json", lambda report: report["licences"][0].update(changed))
    _status, document = verified(file)
    places = {difference["place"] for difference in document["differences"]}
    assert places == {f"report.json/licences/0/{name}" for name in changed}


@pytest.mark.django_db
def test_figures_of_an_older_licence_are_taken_as_stored_and_said(
    project: Project, rita: User, tmp_path: Path
) -> None:
    later, file = _corrected_by_a_licence(project, rita), tmp_path / "licensed.zip"
    licence = Licence.objects.get()
    licence.figures["positive"]["low"] = 0.7
    licence.save()
    call_command("evidence", str(later.pk), "--out", str(file), stderr=StringIO())
    err = StringIO()
    call_command("verify", str(file), stdout=StringIO(), stderr=err)
    assert "Taken as stored in the licence of quality: tpr_low." in err.getvalue()


@pytest.mark.django_db
@pytest.mark.parametrize("at_once", [True, False])
def test_a_checklist_is_concluded_again(project: Project, tmp_path: Path, at_once: bool) -> None:
    definition = a_checklist(judged.JUDGE_URL, at_once=at_once)
    run = a_run(with_rubrics(project, [RUBRIC], ["alpha"]), definition)
    judged.judge(run, lambda _place: nothing_met(definition))
    file = tmp_path / "checklist.zip"
    write(file)
    assert verified(file)[0] == 0
    change(file, "judgements/0001.jsonl", lambda content: content.replace(b"not met", b"met"), hashed=True)
    places = {difference["place"].split("/")[0] for difference in verified(file)[1]["differences"]}
    assert places == {"judgements", "checklists"}


def nothing_met(definition: MetricDefinition) -> JudgementResult:
    """What a judge says that finds no criterion of RUBRIC met, all of them at once or one by one."""
    entry = '{{"id": "{}", "verdict": "not met"}}'
    replies = [" ".join(map(entry.format, "123"))] if definition.at_once else ["Verdict: not met"] * 3
    calls = tuple(
        JudgeCall(0, 0, {}, {"content": reply, "finish_reason": "stop"}, None, [], criterion=number)
        for number, reply in enumerate(replies, 0 if definition.at_once else 1)
    )
    verdicts = tuple(Verdict(0, 0, False, criterion=number) for number in (1, 2, 3))
    rubric = read_rubric(RUBRIC)[0]
    assert rubric is not None
    outcome, checklist = conclude_checklist(definition, rubric, calls, verdicts)
    return JudgementResult(outcome, calls, verdicts, checklist=checklist.to_json())


@pytest.mark.django_db
def test_orders_under_other_versions_follow_from_the_means_inside(project: Project, tmp_path: Path) -> None:
    definition, file = a_metric(judged.JUDGE_URL), tmp_path / "versions.zip"
    metric = metric_create(project=project, definition=definition, user=None)
    version = a_version(project, rows=2, models=("alpha", "beta"))
    for number, ahead in ((2, 1), (1, 0)):
        run = judged.judge(
            a_run(version, definition), lambda place, ahead=ahead: judged.said(4 + 3 * (place % 2 == ahead))
        )
        stored = MetricVersion.objects.get_or_create(metric=metric, number=number, defaults=SAME)[0]
        run.metrics.update(metric_version=stored)
        for_page(run)
    call_command("evidence", str(run.pk), "--out", str(file), stderr=StringIO())
    assert verified(file)[0] == 0

    def reverse(report: dict[str, Any]) -> None:
        (order,) = report["ranking"][0]["orders"]
        order["names"].reverse()

    change_json(file, "report.json", reverse)
    places = [difference["place"] for difference in verified(file)[1]["differences"]]
    assert places == [f"report.json/ranking/0/orders/0/names/{place}" for place in (0, 1)]


SAME = {"definition": a_metric(judged.JUDGE_URL).to_json()}


def _corrected_by_a_licence(project: Project, rita: User) -> Run:
    """A run without ratings, of a metric whose judge was licensed with those of another one."""
    definition = a_metric(judged.JUDGE_URL, gives="pass_fail", parse="bool")
    metric = metric_create(project=project, definition=definition, user=None)
    run = judged.a_judged_run(
        project, lambda place: judged.said(place % 2 == 0), rows=40, metric=definition, models=["alpha"]
    )
    run.metrics.update(metric_version=metric.versions.get())
    rate_each(about(run, [rita]), rita, lambda item: item.row.line % 2 == 1 and item.row.line > 3)
    split = split_draw(version=run.version, metric=metric, sizes=Sizes(0, 0, 40), seed=5)
    sealed_test_open(test=sealed_test_close(test=split.test, run=run), run_metric=run.metrics.get())
    later = judged.judge(a_run(run.version, definition), lambda place: judged.said(place % 3 > 0))
    later.metrics.update(metric_version=metric.versions.get())
    return later


@pytest.mark.django_db
def test_very_many_names_take_no_long_time(file: Path) -> None:
    write(file)
    rewrite(file, members(file) | {f"x/{number}": b"" for number in range(30_000)})
    status, document = verified(file)
    assert (status, document["intact"], len(document["differences"])) == (1, False, 1000)


@pytest.mark.django_db
def test_a_bomb_is_no_evidence_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(file)
    change(file, "rows/0001.jsonl", lambda _: b" " * 3_000_000, hashed=True)
    monkeypatch.setattr(settings, "CONFIG", replace(settings.CONFIG, unpacked_max_mb=2))
    with pytest.raises(CommandError, match="size limit") as refused:
        verified(file)
    assert refused.value.returncode == 2


def test_another_file_is_no_evidence_file(tmp_path: Path) -> None:
    for content in (b"", b"PK\x03\x04 broken", b"text"):
        file = tmp_path / "other.zip"
        file.write_bytes(content)
        with pytest.raises(CommandError, match="not an evidence file") as refused:
            verified(file)
        assert refused.value.returncode == 2


@pytest.mark.django_db
def test_signatures(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, foreign = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    sign_with(mine, tmp_path, monkeypatch)
    write(file)
    status, document = verified(file, "--key", raw_key(mine.public_key()).hex())
    assert (status, document["signed"], document["signed_by_given_key"]) == (0, True, True)
    assert document["key"].startswith("SHA256:")
    status, document = verified(file, "--key", raw_key(foreign.public_key()).hex())
    assert (status, document["signed"], document["signed_by_given_key"]) == (1, True, False)
    change(file, "rows/0001.jsonl", lambda content: content + b" ", hashed=True)
    status, document = verified(file)
    assert (status, document["signed"]) == (1, False)


@pytest.mark.parametrize(
    ("computed", "inside", "differs"),
    [
        (1.0, 1.0 + 1e-12, False),
        (1.0, 1.0 + 1e-6, True),
        (3, 4, True),
        (True, 1, True),
        ("a", "b", True),
        ([1], [1, 2], True),
        ({"a": None}, {"a": 0}, True),
        ({"a": [1, "x"]}, {"a": [1, "x"]}, False),
    ],
)
def test_differences(computed: Any, inside: Any, differs: bool) -> None:
    assert bool(list(compared(computed, inside))) == differs
