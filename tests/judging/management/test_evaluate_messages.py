"""Messages of `evaluate` for files it cannot judge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from datasets.models import Version
from evalsite.accounts.models import Project
from judging.core.metric_definition import MetricDefinition
from judging.management.command_line import CannotStart, paste_hints, upload
from judging.management.commands.evaluate import start_run, why_unscored
from tests.judging.judged import JUDGE_URL, judge, said
from tests.make import a_metric, a_run, a_version

pytestmark = pytest.mark.django_db
ROW = '{"messages": [{"role": "user", "content": "Why?"}]}'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"{ROW}\n[1]\n", "1 of 2 rows have errors"),
        (f"[\n{ROW},\n{ROW}\n]\n", "its objects do not stand one on each line"),
    ],
)
def test_it_says_what_keeps_a_file_from_being_judged(
    project: Project, tmp_path: Path, text: str, why: str
) -> None:
    file = tmp_path / "some.json"
    file.write_text(text)
    with pytest.raises(CannotStart) as refused:
        upload(project, file, "")
    assert f"cannot be judged: {why} (manage.py validate" in str(refused.value)


def test_a_table_is_not_stored_but_sent_to_its_import(project: Project, tmp_path: Path) -> None:
    file = tmp_path / "my table.csv"
    file.write_text("question,answer\nWhy?,So.\n")
    with pytest.raises(CannotStart) as refused:
        upload(project, file, "")
    assert str(refused.value).endswith(f"manage.py import_dataset '{file}'")
    assert not Version.objects.exists()


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("def postprocess(:", "line 1 of the postprocess script: SyntaxError"),
        ("import numpy", "'numpy' can't be imported"),
        (
            "def postprocess(judge_resps):\n    import numpy",
            "line 2 of the postprocess script: ImportError: 'numpy' can't be imported",
        ),
        ("x = 1", "there is no function 'postprocess'"),
    ],
)
def test_a_script_that_cannot_be_loaded_is_refused_before_anything_is_uploaded(
    tmp_path: Path, source: str, why: str
) -> None:
    rows, metrics = tmp_path / "rows.jsonl", tmp_path / "metrics.yaml"
    rows.write_text(ROW)
    metrics.write_text(
        f"metrics:\n- name: quality\n  pipeline:\n  - {{type: POSTPROCESS, file_content: {json.dumps(source)}}}\n"
    )
    with pytest.raises(CannotStart, match="quality") as refused:
        start_run(rows, metrics, "")
    assert why in str(refused.value)
    assert Version.objects.count() == 0


JUDGED = "metrics:\n- name: quality\n  pipeline:\n  - {type: JUDGE_MODEL, judge_modle: {}}\n"


def test_a_metrics_file_with_an_unknown_key_is_not_run(tmp_path: Path) -> None:
    rows, metrics = tmp_path / "rows.jsonl", tmp_path / "metrics.yaml"
    rows.write_text(ROW)
    metrics.write_text(JUDGED)
    with pytest.raises(CannotStart, match="judge_modle"):
        start_run(rows, metrics, "")
    assert Version.objects.count() == 0


def test_a_name_is_used_once(project: Project, tmp_path: Path) -> None:
    a_run(a_version(project), a_metric("http://127.0.0.1:9"), name="once")
    with pytest.raises(CannotStart, match="There is a run called once already"):
        start_run(tmp_path / "rows.jsonl", tmp_path / "metrics.yaml", "once")


@pytest.mark.parametrize(
    ("options", "metrics", "sentence"),
    [
        ({"parse": "comparison"}, 1, "2 unparsed: no verdict such as [[A>B]]; first: line 1"),
        ({}, 1, "2 unparsed: no verdict such as [[10]]; first: line 1"),
        ({}, 2, "2 unparsed: no verdict such as [[10]]; first: line 1 (quality)"),
    ],
)
def test_it_says_why_there_is_no_score(
    project: Project, options: dict[str, str], metrics: int, sentence: str
) -> None:
    several = [a_metric(JUDGE_URL, name=name, **options) for name in ("quality", "style")[:metrics]]
    run = judge(a_run(a_version(project, rows=2, models=("alpha",)), *several), lambda _: said(None))
    assert why_unscored(run)[0] == sentence
    assert len(why_unscored(run)) == metrics


def test_what_a_copied_metric_needs_is_said_before_it_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = "def preprocess(judge_resps):\n    return re.search(r'\\\\[\\\\[', judge_resps[0]['content'])\n"
    template = "{{ response.content + '\\\\n' }}"
    metric = a_metric(JUDGE_URL, name="quality", postprocess=source, template=template)
    rules = MetricDefinition(name="fields", rules="# DSL\n• a:精确匹配\n@格式限制:JSON")
    lines = [*paste_hints(metric), *paste_hints(rules)]
    assert [line.partition(": ")[0] for line in lines] == [
        "quality, postprocess",
        "quality, postprocess",
        "quality, Judge model 1, line 1",
        "fields, line 2",
    ]
    (metrics := tmp_path / "metrics.yaml").write_text(
        f"metrics:\n- name: quality\n  pipeline:\n  - {{type: POSTPROCESS, file_content: {json.dumps(source)}}}\n"
    )
    with pytest.raises(CannotStart):
        start_run(tmp_path / "rows.jsonl", metrics, "")
    assert f"{metrics}: quality, postprocess: The backslashes" in capsys.readouterr().err


def test_a_metric_that_works_has_no_such_hint() -> None:
    metric = a_metric(JUDGE_URL, template="{{ response.content + '\\n' }}", parse={"regex": r"\[\[(\d+)\]\]"})
    assert list(paste_hints(metric)) == []
    pasted = a_metric(JUDGE_URL, parse={"regex": r"\\[\\[(\\d+)\\]\\]"})
    (line,) = paste_hints(pasted)
    assert line.endswith(r" \[\[(\d+)\]\]")
