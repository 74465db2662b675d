"""`manage.py drill` end to end with a scripted judge."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command

from judging.core.judges.scripted import Received, ScriptedJudge
from judging.core.statistics.drill import DEFECTS
from tests.judging.evaluate_files import write_metrics

pytestmark = pytest.mark.django_db(transaction=True)

ROWS = 24
COMPARISON = """\
metrics:
- name: better
  gives: {comparison: all}
  pipeline:
  - type: JUDGE_MODEL
    judge_model:
      name: judge
      url: %s
      model: scripted
      judge_template_content: |-
        A: <a>{{ a.content }}</a>
        B: <b>{{ b.content }}</b>
        Which is better, [[A>B]], [[A=B]] or [[B>A]]?
"""


@pytest.fixture
def folder(tmp_path: Path, settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Path:
    settings.DATA_DIR = tmp_path
    monkeypatch.setenv("JUDGE_KEY", "k-123456")
    return tmp_path


def text_of(number: int) -> str:
    if number % 2:
        return f"The bridge is closed. It took {number + 30} hours. Case {chr(97 + number)}."
    return f"这座桥是旧的。工程用了{number + 30}小时。案件{chr(0x4E00 + number)}。"


def write_answers(folder: Path, rows: int = ROWS) -> Path:
    path = folder / "answers.jsonl"
    rows = [
        {
            "id": str(number),
            "messages": [{"role": "user", "content": "What is the state?" if number % 2 else "现在怎样？"}],
            "model_outputs": [
                {"model_name": name, "responses": [{"content": text_of(number)}]}
                for name in ("alpha", "beta")
            ],
        }
        for number in range(rows)
    ]
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows))
    return path


def drill(folder: Path, metrics: Path, *arguments: str, rows: int = ROWS) -> dict[str, Any]:
    out = folder / "out"
    call_command(
        "drill", str(write_answers(folder, rows)), "--metrics", str(metrics), "--out", str(out), *arguments
    )
    document: dict[str, Any] = json.loads((out / "drill.json").read_text())
    return document


def ignoring_numbers(request: Received) -> str:
    """Scores of a judge that knows the answers but does not read their figures."""
    answer = request.prompt.partition("<answer>")[2].partition("</answer>")[0]
    plain = "".join(letter for letter in answer if not letter.isdigit())
    known = {"".join(letter for letter in text_of(number) if not letter.isdigit()) for number in range(ROWS)}
    harmless = any(
        plain.replace("## Answer\n\n- ", "").replace("## 回答\n\n- ", "").count(text) for text in known
    )
    return "Score: [[7]]" if harmless else "Score: [[3]]"


def test_a_drill_finds_what_the_judge_does_not_notice(folder: Path) -> None:
    with ScriptedJudge(ignoring_numbers) as judge:
        metrics = write_metrics(folder, judge.url, "<answer>{{ response.content }}</answer>")
        document = drill(folder, metrics, "--seed", "3", "--model", "alpha")
    assert list(document) == ["defects", "order", "repeats", "constant", "flagged"]
    assert tuple(document["defects"]) == DEFECTS
    numbers = document["defects"]["numbers"]
    assert (numbers["items"], numbers["equal"], numbers["flagged"]) == (ROWS, ROWS, True)
    assert document["defects"]["truncated"]["lower"] == ROWS
    assert set(numbers["languages"]) == {"en", "zh"}
    assert (document["order"], document["repeats"]["items"], document["repeats"]["exact"]) == (None, ROWS, 1)
    assert "numbers" in document["flagged"]
    lines = [json.loads(line) for line in (folder / "out" / "judgements.jsonl").read_text().splitlines()]
    assert {line["model"] for line in lines} == {"untouched", *DEFECTS}
    assert {line["row"]["drilled_from"]["model"] for line in lines} == {"alpha"}


def judged_answer(request: Received) -> str:
    return request.prompt.partition("<answer>")[2].partition("</answer>")[0]


def attentive(answer: str) -> int:
    """The score of a judge that notices every harm, and that nothing tempts."""
    bare = answer.replace("## Answer\n\n- ", "").replace("## 回答\n\n- ", "")
    return 7 if any(text in bare for text in KNOWN) else 3


KNOWN = [text_of(number) for number in range(2 * ROWS)]
FAULTY: dict[str, Callable[[str], int]] = {
    "truncated": lambda answer: 7 if any(text.startswith(answer[:20]) for text in KNOWN if answer) else 3,
    "padded": lambda answer: 9 if any(answer.count(text) > 1 for text in KNOWN) else attentive(answer),
    "verdict": lambda answer: 10 if "[[" in answer else attentive(answer),
    "negated": lambda answer: attentive(answer) if answer.isascii() else 7,
    "constant": lambda _answer: 6,
}
"""Judges with one fault each, by the flag that finds it; the one without a flag of its own reads English only."""


@pytest.mark.parametrize("flag", FAULTY)
def test_each_faulty_judge_is_found_by_its_own_flag(folder: Path, flag: str) -> None:
    with ScriptedJudge(lambda request: f"Score: [[{FAULTY[flag](judged_answer(request))}]]") as judge:
        metrics = write_metrics(folder, judge.url, "<answer>{{ response.content }}</answer>")
        rows = 2 * ROWS if flag in ("negated", "constant") else ROWS  # the fewest that can raise these
        document = drill(folder, metrics, "--model", "alpha", rows=rows)
    assert flag in document["flagged"]
    if flag == "negated":
        languages = document["defects"]["negated"]["languages"]
        assert [languages[name]["flagged"] for name in ("en", "zh")] == [False, True]


def test_a_judge_that_contradicts_itself_is_noisy(folder: Path) -> None:
    draws = random.Random(1)
    with ScriptedJudge(lambda _request: f"Score: [[{draws.randint(1, 10)}]]") as judge:
        metrics = write_metrics(folder, judge.url, "<answer>{{ response.content }}</answer>")
        document = drill(folder, metrics, "--model", "alpha")
    assert "noisy" in document["flagged"]


def test_a_judge_that_prefers_the_first_side_is_flagged(folder: Path) -> None:
    with ScriptedJudge("[[A>B]]") as judge:
        metrics = folder / "metrics.yaml"
        metrics.write_text(COMPARISON % judge.url)
        document = drill(folder, metrics, "--rows", "5")
    order = document["order"]
    assert order["pairs"] == order["flips"] == order["first"]
    assert "order" in document["flagged"]
    assert document["defects"]["empty"]["equal"] == document["defects"]["empty"]["items"] == 5


@pytest.mark.parametrize(
    ("arguments", "said"), [(("--rows", "0"), "from 1"), (("--model", "gamma"), "alpha, beta")]
)
def test_wrong_usage_is_said(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(CommandError, match=said) as refused:
        drill(folder, write_metrics(folder, "http://127.0.0.1:9"), *arguments)
    assert refused.value.returncode == 2


def test_a_file_with_several_metrics_is_refused(folder: Path) -> None:
    metrics = write_metrics(folder, "http://127.0.0.1:9")
    text = metrics.read_text()
    second = text[text.index("- name: quality") :].replace("name: quality", "name: other", 1)
    for content in (text + second, "metrics: []\n"):
        metrics.write_text(content)
        with pytest.raises(CommandError) as refused:
            drill(folder, metrics)
        assert refused.value.returncode == 2


def test_labels_without_values_are_refused(folder: Path) -> None:
    metrics = write_metrics(folder, "http://127.0.0.1:9")
    labels = "gives: {category: [{label: good, value: 1}, {label: bad}]}"
    metrics.write_text(metrics.read_text().replace("- name: quality", f"- name: quality\n  {labels}"))
    with pytest.raises(CommandError, match="a value for every label") as refused:
        drill(folder, metrics)
    assert refused.value.returncode == 1


def test_answers_come_from_a_data_set_by_name_and_drills_can_be_repeated(folder: Path) -> None:
    with ScriptedJudge("Score: [[5]]") as judge:
        metrics = write_metrics(folder, judge.url, "<answer>{{ response.content }}</answer>")
        first = drill(folder, metrics, "--rows", "2")
        out = folder / "again"
        call_command("drill", "answers", "--metrics", str(metrics), "--rows", "2", "--out", str(out))
    assert json.loads((out / "drill.json").read_text()) == first
