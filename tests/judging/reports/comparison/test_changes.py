"""Comparison of two stored runs: each cause is found, alone and in pairs, and the shares sum to the difference."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import msgspec
import pytest
from django.core.management import call_command

from datasets.models import Response, Row
from evalsite.accounts.models import Project, User
from judging.core.change import CAUSES
from judging.core.metric_definition import Label, MetricDefinition
from judging.core.results import JudgementResult, Verdict
from judging.core.values import Outcome
from judging.records.models import Reading, Run
from judging.records.overrides import override_add
from judging.reports.comparison.services import comparison_document
from judging.reports.services import report_document
from tests.judging.checklists.helpers import RUBRIC, a_checklist, with_rubrics
from tests.judging.judged import JUDGE_URL, judge, said
from tests.make import a_metric, a_project, a_run, a_version

pytestmark = pytest.mark.django_db
ROWS = 6


@pytest.fixture
def project() -> Project:
    return a_project()


def metric(**changes: Any) -> MetricDefinition:
    return a_metric(JUDGE_URL, **changes)


def run_of(version: Any, definition: MetricDefinition, scores: list[int | None]) -> Run:
    """A run in which the judge gives these scores; None is an unparsed reply."""
    return judge(a_run(version, definition), lambda place: said(scores[place]))


def shares(before: Run, after: Run) -> dict[str, float]:
    cell = comparison_document(before, after)["quality"]["alpha"]
    total = math.fsum(share["difference"] for share in cell["shares"])
    assert total == pytest.approx(cell["difference"], abs=1e-12)
    return {share["cause"]: share["difference"] for share in cell["shares"]}


def a_version_of(project: Project, rows: int = ROWS) -> Any:
    return a_version(project, rows=rows, models=("alpha",))


def an_override(run: Run, place: int, value: int) -> None:
    judgement = run.judgements.order_by("position")[place]
    override_add(
        judgement=judgement, value=value, reason="wrong", by=User.objects.create(username=f"u{run.pk}")
    )


def change_rows(version: Any, lines: list[int]) -> None:
    for row in Row.objects.filter(version=version, line__in=lines):
        row.raw = json.dumps({"messages": [{"role": "user", "content": f"a new question {row.line}"}]})
        row.save()


def with_ids(version: Any) -> None:
    for row in Row.objects.filter(version=version):
        row.raw = json.dumps({**json.loads(row.raw), "id": f"row-{row.line}"})
        row.save()


def change_answers(version: Any, lines: list[int]) -> None:
    for answer in Response.objects.filter(row__version=version, row__line__in=lines):
        answer.raw = json.dumps({"content": "another answer"})
        answer.save()


def test_equal_runs_differ_by_noise_alone(project: Project) -> None:
    version = a_version_of(project)
    first, second = (run_of(version, metric(), scores) for scores in ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 9]))
    assert shares(first, second) == {"noise": pytest.approx(0.5)}


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"model": "another"}, "judge"),
        ({"params": {"temperature": 1}}, "judge"),
        ({"template": "Rate {{ response.content }}"}, "prompt"),
        ({"system_prompt": "Be strict."}, "prompt"),
        ({"preprocess": "def preprocess(*a, **k): return 1"}, "scripts"),
    ],
)
def test_a_setting_that_changes_what_is_asked_is_the_cause(
    project: Project, changes: dict[str, Any], cause: str
) -> None:
    version = a_version_of(project)
    first = run_of(version, metric(), [1, 2, 3, 4, 5, 6])
    second = run_of(version, metric(**changes), [2, 3, 4, 5, 6, 7])
    assert shares(first, second) == {cause: pytest.approx(1)}


POSTPROCESS = """
import json
def postprocess(judge_reqs, judge_resps, judge_models, data, resp, **kwargs):
    return json.loads(judge_resps[0]["content"])["lenient"]
"""
SETTINGS: dict[str, dict[str, Any]] = {
    "judge": {"model": "another"},
    "prompt": {"template": "Rate {{ response.content }}"},
    "scripts": {"postprocess": POSTPROCESS},
    "parser": {"parse": {"json_path": "strict"}},
}


def runs_changed_by(project: Project, causes: set[str]) -> tuple[Run, Run]:
    """Two runs over versions of equal content that differ only by these causes. Judges reply
    {"score": n, "strict": n − 1, "lenient": n + 2}, and the first run's parser reads `score`."""
    before, after = a_version_of(project, 8), a_version_of(project, 8)
    for version in (before, after):
        with_ids(version)
    if "rows" in causes:
        row = Row.objects.get(version=after, line=1)
        row.raw = json.dumps({**json.loads(row.raw), "topic": "new"})
        row.save()
    if "answers" in causes:
        change_answers(after, [2])
    changes = {name: value for cause in causes & SETTINGS.keys() for name, value in SETTINGS[cause].items()}
    first = judge(a_run(before, metric()), lambda place: replied(3 + place % 3, "score"))
    read = "lenient" if "scripts" in causes else "strict" if "parser" in causes else "score"
    moved = {"rows": (0, 2), "answers": (1, 2), "noise": (4, 1)}

    def said_later(place: int) -> JudgementResult:
        more = sum(by for cause, (where, by) in moved.items() if cause in causes and where == place)
        more += len(causes & {"judge", "prompt"})
        prompt = "Rate this." if "prompt" in causes else "Judge this."
        if "missing" in causes and place == 5:
            return said(None, content="I cannot say.", prompt=prompt)
        return replied(3 + place % 3 + more, read, prompt)

    second = judge(a_run(after, metric(**changes)), said_later)
    if "overrides" in causes:
        an_override(second, 6, 10)
    return first, second


def replied(number: int, read: str, prompt: str = "Judge this.") -> JudgementResult:
    values = {"score": number, "strict": number - 1, "lenient": number + 2}
    return said(values[read], content=json.dumps(values), prompt=prompt)


NOT_DISTINGUISHED = {
    frozenset({"judge", "prompt"}): {"judge+prompt"},
    **{frozenset({asking, "noise"}): {asking} for asking in ("judge", "prompt")},
    **{frozenset({asking, "missing"}): {asking} for asking in ("judge", "prompt")},
}
"""Causes that cannot be distinguished: a changed judge or prompt also hides noise and missing scores."""


@pytest.mark.parametrize("cause", CAUSES)
def test_each_cause_alone_is_found(project: Project, cause: str) -> None:
    found = shares(*runs_changed_by(project, {cause}))
    assert {name for name, difference in found.items() if abs(difference) > 1e-9} == {cause}


@pytest.mark.parametrize("pair", list(itertools.combinations(CAUSES, 2)), ids="+".join)
def test_each_pair_of_causes_is_found(project: Project, pair: tuple[str, str]) -> None:
    found = shares(*runs_changed_by(project, set(pair)))
    moved = {name for name, difference in found.items() if abs(difference) > 1e-9}
    assert moved == NOT_DISTINGUISHED.get(frozenset(pair), set(pair))


def test_what_each_of_two_settings_did_is_reported_exactly(project: Project) -> None:
    found = shares(*runs_changed_by(project, {"judge", "parser"}))
    assert found == {"judge": pytest.approx(1), "parser": pytest.approx(-1)}


def test_a_part_that_was_judged_by_another_version_has_its_own_causes(project: Project) -> None:
    first, second = runs_changed_by(project, {"noise"})
    reading = Reading.objects.create(
        run_metric=second.metrics.get(),
        number=1,
        definition=metric(model="another").to_json(),
        sends_requests=True,
    )
    second.judgements.filter(position=4).update(reading=reading)
    assert shares(first, second) == {"judge": pytest.approx(1 / 8), "noise": 0}


def in_pairs(version: Any) -> None:
    """Two rows each belong to one cluster."""
    for row in Row.objects.filter(version=version):
        row.raw = json.dumps({**json.loads(row.raw), "cluster": f"c{(row.line + 1) // 2}"})
        row.save()
    version.fields_found = {"cluster": ROWS}
    version.save()


def interval(before: Run, after: Run) -> tuple[float, float]:
    cell = comparison_document(before, after)["quality"]["alpha"]
    return cell["ci_low"], cell["ci_high"]


def test_rows_of_a_cluster_count_as_one(project: Project) -> None:
    scores = [3, 3, 5, 5, 7, 7]
    apart, together = (a_version_of(project) for _ in range(2))
    in_pairs(together)
    wide, narrow = (
        interval(run_of(version, metric(), [5] * 6), run_of(version, metric(), scores))
        for version in (together, apart)
    )
    assert wide[1] - wide[0] > narrow[1] - narrow[0]


def test_the_interval_of_a_difference_stays_within_the_width_of_the_scale(project: Project) -> None:
    version = a_version_of(project)
    low, high = interval(run_of(version, metric(), [1] * 6), run_of(version, metric(), [10] * 6))
    assert (high, -9 < low < 9) == (9, True)


def test_an_override_is_the_cause_of_its_item(project: Project) -> None:
    version = a_version_of(project)
    first, second = (run_of(version, metric(), [1, 2, 3, 4, 5, 6]) for _ in range(2))
    an_override(second, 0, 7)
    assert shares(first, second) == {"overrides": pytest.approx(1), "noise": 0}


def test_the_same_override_in_both_runs_hides_what_the_judge_says(project: Project) -> None:
    version = a_version_of(project)
    first, second = (run_of(version, metric(), scores) for scores in ([1, 2, 3, 4, 5, 6], [9, 2, 3, 4, 5, 6]))
    for run in (first, second):
        an_override(run, 0, 7)
    assert shares(first, second) == {"noise": 0}


def test_an_unscored_answer_is_missing(project: Project) -> None:
    version = a_version_of(project)
    first = run_of(version, metric(), [1, 2, 3, 4, 5, None])
    second = run_of(version, metric(), [1, 2, 3, 4, 5, 9])
    assert shares(first, second) == {"missing": pytest.approx(1), "noise": 0}


def test_rows_that_were_added_and_changed_are_rows(project: Project) -> None:
    before, after = a_version_of(project), a_version_of(project, ROWS + 1)
    for version in (before, after):
        with_ids(version)
    changed = Row.objects.get(version=after, line=1)
    changed.raw = json.dumps({"messages": [{"role": "user", "content": "new"}], "id": "row-1"})
    changed.save()
    first = run_of(before, metric(), [1, 2, 3, 4, 5, 6])
    second = run_of(after, metric(), [7, 2, 3, 4, 5, 6, 9])
    cell = comparison_document(first, second)["quality"]["alpha"]
    assert {share["cause"]: share["items"] for share in cell["shares"]} == {"rows": 2, "noise": 5}
    assert shares(first, second)["noise"] == 0


def test_rows_without_an_id_are_matched_by_their_content(project: Project) -> None:
    before, after = a_version_of(project), a_version_of(project)
    first = run_of(before, metric(), [1, 2, 3, 4, 5, 6])
    second = run_of(after, metric(), [2, 2, 3, 4, 5, 6])
    assert shares(first, second) == {"noise": pytest.approx(1 / 6)}


def test_answers_that_changed_in_another_version_are_answers(project: Project) -> None:
    before, after = a_version_of(project), a_version_of(project)
    change_answers(after, [1, 2])
    first = run_of(before, metric(), [1, 2, 3, 4, 5, 6])
    second = run_of(after, metric(), [4, 5, 3, 4, 5, 6])
    assert shares(first, second) == {"answers": pytest.approx(1), "noise": 0}


def test_two_causes_on_different_items_are_distinguished(project: Project) -> None:
    before, after = a_version_of(project), a_version_of(project)
    change_answers(after, [1])
    first = run_of(before, metric(), [1, 2, 3, 4, 5, 6])
    second = run_of(after, metric(), [4, 2, 3, 4, 5, 6])
    an_override(second, 1, 8)
    assert shares(first, second) == {"answers": pytest.approx(0.5), "overrides": pytest.approx(1), "noise": 0}


def test_answers_come_before_settings(project: Project) -> None:
    before, after = a_version_of(project), a_version_of(project)
    change_answers(after, [1])
    first = run_of(before, metric(), [1, 2, 3, 4, 5, 6])
    second = run_of(after, metric(model="another"), [4, 3, 4, 5, 6, 7])
    assert shares(first, second) == {"answers": pytest.approx(0.5), "judge": pytest.approx(5 / 6)}


def test_a_judge_and_a_prompt_changed_at_once_share_a_name(project: Project) -> None:
    version = a_version_of(project)
    first = run_of(version, metric(), [1, 2, 3, 4, 5, 6])
    changed = metric(model="another", template="Rate {{ response.content }}")
    second = judge(a_run(version, changed), lambda place: said(place + 2, prompt="Rate this."))
    assert shares(first, second) == {"judge+prompt": pytest.approx(1)}


def test_the_same_prompt_sent_leaves_the_judge_alone(project: Project) -> None:
    version = a_version_of(project)
    first = run_of(version, metric(), [1, 2, 3, 4, 5, 6])
    second = run_of(
        version, metric(model="another", template=metric().judges[0].template + " "), [2, 3, 4, 5, 6, 7]
    )
    assert shares(first, second) == {"judge": pytest.approx(1)}


def test_the_means_are_those_of_the_reports(project: Project) -> None:
    version = a_version_of(project)
    runs = [run_of(version, metric(), scores) for scores in ([1, None, 3, 4, 5, 6], [2, 2, None, 4, 5, 9])]
    cell = comparison_document(*runs)["quality"]["alpha"]
    means = [report_document(run)["candidates"]["alpha"]["quality"]["mean"] for run in runs]
    assert [cell["a"], cell["b"]] == pytest.approx(means)


def test_means_of_checklists_are_cut_as_in_the_reports_but_not_their_difference(project: Project) -> None:
    version, checklist = with_rubrics(project, [RUBRIC] * ROWS, ["alpha"]), a_checklist(JUDGE_URL)
    runs = [
        judge(a_run(version, checklist), lambda place, least=least: said(least + place / 10))  # type: ignore[misc]
        for least in (-0.75, 0.25)
    ]
    cell = comparison_document(*runs)["quality"]["alpha"]
    means = [report_document(run)["candidates"]["alpha"]["quality"]["mean"] for run in runs]
    assert [cell["a"], cell["b"], cell["difference"]] == pytest.approx([*means, 1.0])
    assert means == pytest.approx([0.0, 0.5])
    assert shares(*runs) == {"noise": pytest.approx(1.0)}


def test_categories_have_no_mean_to_compare(project: Project) -> None:
    version = a_version_of(project)
    runs = [judge(a_run(version, metric()), lambda place: said("good")) for _ in range(2)]
    cell = comparison_document(*runs)["quality"]["alpha"]
    assert (cell["a"], cell["difference"], cell["shares"]) == (None, None, [])


def test_labels_with_values_have_the_means_of_the_reports(project: Project) -> None:
    values = {"good": 1.0, "fair": 0.5, "bad": 0.0}
    labels = tuple(Label(label=name, value=value) for name, value in values.items())
    version, category = a_version_of(project), metric(gives="category", labels=labels)
    runs = [
        judge(a_run(version, category), lambda place, said_by=said_by: said(said_by[place % 3]))  # type: ignore[misc]
        for said_by in (("good", "bad", "bad"), ("good", "good", "fair"))
    ]
    cell = comparison_document(*runs)["quality"]["alpha"]
    means = [report_document(run)["candidates"]["alpha"]["quality"]["mean"] for run in runs]
    assert [cell["a"], cell["b"]] == pytest.approx(means)
    assert shares(*runs) == {"noise": pytest.approx(0.5)}


def test_runs_without_a_common_metric_have_nothing_to_compare(project: Project) -> None:
    version = a_version_of(project)
    other = msgspec.structs.replace(metric(), name="other")
    assert comparison_document(run_of(version, metric(), [1] * 6), run_of(version, other, [1] * 6)) == {}


def test_the_command_prints_the_document_alone(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    version = a_version_of(project)
    first, second = (run_of(version, metric(), scores) for scores in ([1] * 6, [2] * 6))
    call_command("compare", first.name, str(second.pk), "--json")
    assert json.loads(capsys.readouterr().out) == comparison_document(first, second)


def by_an_earlier_reader(run: Run) -> Run:
    """The run as stored by releases whose verdicts did not say how they were read."""
    for judgement in run.judgements.all():
        (verdict,) = json.loads(judgement.verdicts)
        kept = {name: verdict[name] for name in ("judge", "repeat", "value", "reason", "order", "flip")}
        judgement.verdicts = json.dumps([kept], separators=(",", ":"))
        judgement.save(update_fields=["verdicts"])
    return run


def test_replies_that_are_now_read_otherwise_are_the_parsers_change(project: Project) -> None:
    version = a_version_of(project)
    read_as_five = judge(a_run(version, metric()), lambda _place: said(5, content="Score: [[8]]"))
    second = run_of(version, metric(), [8] * ROWS)
    assert shares(by_an_earlier_reader(read_as_five), second) == {"parser": pytest.approx(3)}


def test_an_earlier_reader_that_read_the_same_is_no_cause(project: Project) -> None:
    version = a_version_of(project)
    first, second = run_of(version, metric(), [5] * ROWS), run_of(version, metric(), [8] * ROWS)
    assert shares(by_an_earlier_reader(first), second) == {"noise": pytest.approx(3)}


def test_the_judges_own_variation_is_said_where_it_gave_each_score_several_times(project: Project) -> None:
    version = a_version_of(project)
    result = JudgementResult(Outcome("scored", 6), (), (Verdict(0, 0, 8), Verdict(0, 1, 4)))
    runs = [judge(a_run(version, metric(repeats=2)), lambda _place: result) for _run in range(2)]
    once = run_of(version, metric(), [6] * ROWS)
    assert comparison_document(*runs)["quality"]["alpha"]["noise_alone"] == pytest.approx(
        1.959964 * math.sqrt((8 / 2 + 8 / 2) / ROWS), rel=1e-6
    )
    assert comparison_document(runs[0], once)["quality"]["alpha"]["noise_alone"] is None


def test_the_variation_of_several_judges_is_that_of_each(project: Project) -> None:
    version = a_version_of(project)
    votes = tuple(Verdict(judge, repeat, 8 - 4 * repeat + judge) for judge in (0, 1) for repeat in (0, 1))
    result = JudgementResult(Outcome("scored", 6.5), (), votes)
    two = with_two_judges(metric(repeats=2))
    runs = [judge(a_run(version, two), lambda _place: result) for _run in range(2)]
    assert comparison_document(*runs)["quality"]["alpha"]["noise_alone"] == pytest.approx(
        1.959964 * math.sqrt((8 / 4 + 8 / 4) / ROWS), rel=1e-6
    )


def test_of_a_median_the_judges_variation_is_not_said(project: Project) -> None:
    version = a_version_of(project)
    result = JudgementResult(Outcome("scored", 6), (), (Verdict(0, 0, 8), Verdict(0, 1, 4)))
    by_median = msgspec.structs.replace(metric(repeats=2), jury="median")
    runs = [judge(a_run(version, by_median), lambda _place: result) for _run in range(2)]
    assert comparison_document(*runs)["quality"]["alpha"]["noise_alone"] is None


def with_two_judges(definition: MetricDefinition) -> MetricDefinition:
    (one,) = definition.judges
    return msgspec.structs.replace(definition, judges=(one, msgspec.structs.replace(one, name="second")))
