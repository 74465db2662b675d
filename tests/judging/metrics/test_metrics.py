"""Metrics: created from a template, edited as new versions, copied, archived; concurrent edits are not lost."""

from __future__ import annotations

import re
from html import unescape

import pytest

from datasets.models import Version
from evalsite.accounts.models import Project, User
from judging.core.builtin import BUILTINS, PAIR
from judging.core.metric_definition import JudgeModel, MetricDefinition, Script
from judging.core.results import JudgeCall, JudgementResult, Verdict
from judging.core.values import Outcome
from judging.endpoints.models import Endpoint
from judging.engine import planning
from judging.metrics.models import Metric, MetricVersion
from judging.metrics.selectors import newest_version
from judging.metrics.services import metric_create
from judging.records.models import Run
from judging.runs.services import ChosenMetric, run_create
from tests.conftest import ClientOf
from tests.judging.judged import judge, said
from tests.judging.metrics.conftest import form_of
from tests.make import a_version

METRICS = "/p/physics/metrics/"


def page_of(metric: Metric, what: str = "") -> str:
    return f"{METRICS}{metric.pk}/{what}"


def definition_of(metric: Metric) -> MetricDefinition:
    return MetricDefinition.from_json(newest_version(metric).definition)


@pytest.mark.parametrize(
    ("name", "status"),
    [("alice", 200), ("adam", 200), ("olga", 200), ("bob", 403), ("rita", 403), ("charlie", 404)],
)
@pytest.mark.parametrize("what", ["", "new/", "new/?start=", "1/", "1/versions/", "1/versions/1/"])
def test_metrics_are_the_analysts(
    what: str, name: str, status: int, cast: dict[str, User], client_of: ClientOf, metric: Metric
) -> None:
    what = what.replace("1/", f"{metric.pk}/", 1)
    assert client_of(cast[name]).get(METRICS + what).status_code == status


@pytest.mark.parametrize(
    "what", ["1/copy/", "1/archive/", "1/restore/", "1/versions/1/restore/", "preview/", "try/"]
)
@pytest.mark.parametrize(("name", "status"), [("bob", 403), ("rita", 403), ("charlie", 404)])
def test_nobody_else_changes_or_tries_them(
    what: str, name: str, status: int, cast: dict[str, User], client_of: ClientOf, metric: Metric
) -> None:
    what = what.replace("1/", f"{metric.pk}/", 1)
    assert client_of(cast[name]).post(METRICS + what).status_code == status


def test_the_editor_offers_the_templates_in_the_readers_language(
    client_of: ClientOf, alice: User, project: Project
) -> None:
    page = client_of(alice).get(METRICS + "new/?start=", headers={"Accept-Language": "zh-hans"})
    assert "single_turn_score.zh" in page.text
    assert "single_turn_score.en" not in page.text


@pytest.mark.parametrize("name", sorted(name for name in BUILTINS if BUILTINS[name].kind != PAIR))
def test_every_built_in_template_can_be_started_from(
    name: str, client_of: ClientOf, alice: User, project: Project
) -> None:
    page = client_of(alice).get(METRICS + "new/", {"start": name})
    assert BUILTINS[name].source.splitlines()[0] in unescape(page.text)
    assert re.search(rf'name="gives" value="{BUILTINS[name].gives}"[^>]* checked', page.text)


def test_saving_makes_the_first_version(client_of: ClientOf, alice: User, live: Endpoint) -> None:
    typed = form_of(
        None, **{"judge-0-endpoint": live.pk, "judge-0-template": "a\r\n{{ response.content }}\r\n"}
    )
    client_of(alice).post(METRICS + "new/", typed)
    definition = definition_of(Metric.objects.get(name="New"))
    assert definition.judges[0].template == "a\n{{ response.content }}\n"
    assert (definition.judges[0].endpoint, definition.judges[0].name) == (live.pk, "Live")


def test_a_saved_metric_names_the_next_step(client_of: ClientOf, alice: User, metric: Metric) -> None:
    typed = form_of(metric, **{"judge-0-template": "new {{ response.content }}"})
    assert "Next steps" in client_of(alice).post(page_of(metric), typed, follow=True).text
    assert "Next steps" not in client_of(alice).get(page_of(metric)).text


def test_editing_makes_a_new_version_and_leaves_the_old_one(
    client_of: ClientOf, alice: User, metric: Metric
) -> None:
    first = newest_version(metric).definition
    client_of(alice).post(
        page_of(metric), form_of(metric, **{"judge-0-template": "new {{ response.content }}"})
    )
    assert definition_of(metric).judges[0].template == "new {{ response.content }}"
    assert MetricVersion.objects.get(metric=metric, number=1).definition == first


def test_saving_without_a_change_makes_no_version(client_of: ClientOf, alice: User, metric: Metric) -> None:
    page = client_of(alice).post(page_of(metric), form_of(metric), follow=True)
    assert "no new version was saved" in page.text
    assert newest_version(metric).number == 1


def test_of_two_who_edit_at_once_the_second_is_reported_and_loses_nothing(
    client_of: ClientOf, alice: User, adam: User, metric: Metric
) -> None:
    mine, theirs = (form_of(metric, **{"judge-0-template": text}) for text in ("of alice", "of adam"))
    client_of(adam).post(page_of(metric), theirs)
    page = client_of(alice).post(page_of(metric), mine)
    assert page.status_code == 409
    assert "Adam saved version 2" in page.text
    assert "of alice" in page.text
    assert definition_of(metric).judges[0].template == "of adam"


def test_who_knows_the_other_version_may_save_over_it(
    client_of: ClientOf, alice: User, metric: Metric
) -> None:
    client = client_of(alice)
    mine = form_of(metric, **{"judge-0-template": "of alice", "seen": 2})
    client.post(page_of(metric), form_of(metric, **{"judge-0-template": "of adam"}))
    client.post(page_of(metric), mine)
    assert (newest_version(metric).number, definition_of(metric).judges[0].template) == (3, "of alice")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": ""}, "This field is required"),
        ({"min_score": "10"}, "must be above"),
        ({"min_score": "nan"}, "Enter a number"),
        ({"judge-0-endpoint": ""}, "This field is required"),
        ({"judge-0-template": "{% for %}"}, "line 1"),
        ({"judge-0-params": "{"}, "line 1, column 2"),
        ({"judge-0-parse": "regex", "judge-0-pattern": "("}, "Invalid regular expression"),
        ({"judge-0-parse": "json_path", "judge-0-pattern": ""}, "Invalid JSON path"),
        ({"preprocess": "def preprocess(:"}, "syntax error"),
        ({"preprocess": "x = 1"}, "no function"),
        ({"postprocess": "def postprocess(unheard_of): pass"}, "unheard_of"),
    ],
)
def test_a_mistake_is_marked_and_nothing_is_saved(
    change: dict[str, str], says: str, client_of: ClientOf, alice: User, metric: Metric
) -> None:
    page = client_of(alice).post(page_of(metric), form_of(metric, **change))
    assert page.status_code == 422
    assert says in page.text
    assert newest_version(metric).number == 1


def test_an_endpoint_of_another_project_cannot_be_chosen(
    client_of: ClientOf, alice: User, charlie: User, metric: Metric
) -> None:
    elsewhere = Project.objects.get(slug="elsewhere")
    foreign = Endpoint.objects.create(project=elsewhere, name="Theirs", url="http://h/v1", model="m")
    page = client_of(alice).post(page_of(metric), form_of(metric, **{"judge-0-endpoint": foreign.pk}))
    assert page.status_code == 422
    assert "Theirs" not in page.text


def test_an_imported_judge_keeps_its_address_which_the_form_cannot_change(
    client_of: ClientOf, alice: User, project: Project
) -> None:
    judges = tuple(
        JudgeModel(name=name, template="t", url=f"http://{name}/v1", model="m", api_key_env="KEY", repeats=2)
        for name in ("one", "two")
    )
    metric = metric_create(
        project=project, definition=MetricDefinition(name="Both", judges=judges), user=None
    )
    typed = form_of(
        metric, **{"judge-1-template": "changed", "judge-0-url": "http://evil", "url": "http://evil"}
    )
    client_of(alice).post(page_of(metric), typed)
    saved = definition_of(metric).judges
    assert saved[0] == judges[0]
    assert (saved[1].template, saved[1].url, saved[1].repeats) == ("changed", "http://two/v1", 2)


def test_scripts_are_kept_in_the_version(client_of: ClientOf, alice: User, metric: Metric) -> None:
    script = "def preprocess(data, resp):\n    return 1\n"
    client_of(alice).post(page_of(metric), form_of(metric, preprocess=script))
    assert definition_of(metric).scripts == (Script(kind="preprocess", source=script),)


def test_an_old_version_is_shown_and_comes_back_as_a_new_one(
    client_of: ClientOf, alice: User, metric: Metric
) -> None:
    client = client_of(alice)
    client.post(page_of(metric), form_of(metric, **{"judge-0-template": "second"}))
    assert "Q: {{ data.question }}" in client.get(page_of(metric, "versions/1/")).text
    client.post(page_of(metric, "versions/1/restore/"))
    assert newest_version(metric).number == 3
    assert definition_of(metric).judges[0].template.startswith("Q: ")


def test_renaming_renames_the_metric_and_a_taken_name_is_reported(
    client_of: ClientOf, alice: User, metric: Metric, project: Project
) -> None:
    metric_create(project=project, definition=MetricDefinition(name="Taken"), user=None)
    client = client_of(alice)
    assert (
        "A metric named “Taken” already exists"
        in client.post(page_of(metric), form_of(metric, name="Taken")).text
    )
    client.post(page_of(metric), form_of(metric, name="Other"))
    metric.refresh_from_db()
    assert metric.name == "Other"


def test_a_copy_is_a_metric_of_its_own(client_of: ClientOf, alice: User, metric: Metric) -> None:
    client_of(alice).post(page_of(metric, "copy/"))
    copy = Metric.objects.get(name="Quality (2)")
    assert definition_of(copy).judges == definition_of(metric).judges
    assert definition_of(copy).name == "Quality (2)"


def test_archiving_takes_it_from_the_list_and_can_be_undone(
    client_of: ClientOf, alice: User, metric: Metric
) -> None:
    client = client_of(alice)
    client.post(page_of(metric, "archive/"))
    assert page_of(metric) not in client.get(METRICS).text
    assert page_of(metric) in client.get(METRICS, {"archived": 1}).text
    client.post(page_of(metric, "restore/"))
    assert page_of(metric) in client.get(METRICS).text


def test_no_page_of_a_metric_shows_a_key(
    client_of: ClientOf, alice: User, metric: Metric, version: Version, endpoint: Endpoint
) -> None:
    from tests.judging.metrics.conftest import KEY

    text = (
        client_of(alice).get(page_of(metric)).text + client_of(alice).get(page_of(metric, "versions/1/")).text
    )
    assert KEY not in text


# --- several judge models ----------------------------------------------------------------------------------------


@pytest.fixture
def pair(project: Project, live: Endpoint, alice: User) -> Metric:
    """A metric with two judge models; the second one compares in both orders."""
    judges = (
        JudgeModel(name="first", endpoint=live.pk, template="one", repeats=2),
        JudgeModel(name="second", endpoint=live.pk, template="two", parse="comparison", both_orders=True),
    )
    return metric_create(project=project, definition=MetricDefinition(name="Pair", judges=judges), user=alice)


def typed_for(metric: Metric, order: list[int], **changes: object) -> dict[str, object]:
    """The form data a browser sends, with every field of each judge model."""
    fields = form_of(metric, judges="1", judge_order=order)
    for number, one in enumerate(definition_of(metric).judges):
        fields |= {f"judge-{number}-name": one.name, f"judge-{number}-repeats": one.repeats}
        if one.both_orders:
            fields[f"judge-{number}-both_orders"] = "on"
    return fields | changes


def test_saving_as_it_is_keeps_every_judge_as_it_was(client_of: ClientOf, alice: User, pair: Metric) -> None:
    page = client_of(alice).post(page_of(pair), typed_for(pair, [0, 1]), follow=True)
    assert "no new version was saved" in page.text


@pytest.mark.parametrize(
    ("order", "names"), [([1, 0], ["second", "first"]), ([1], ["second"]), ([0, 0, 99], ["first", "third"])]
)
def test_judges_are_saved_in_the_order_of_the_form(
    order: list[int], names: list[str], client_of: ClientOf, alice: User, pair: Metric, live: Endpoint
) -> None:
    third = {
        "judge-99-name": "third",
        "judge-99-endpoint": live.pk,
        "judge-99-template": "x",
        "judge-99-parse": "",
    }
    client_of(alice).post(page_of(pair), typed_for(pair, order, **third))
    assert [judge.name for judge in definition_of(pair).judges] == names


@pytest.mark.parametrize(
    ("change", "order"),
    [
        ("add", [0, 1, 2]),
        ("copy:0", [0, 2, 1]),
        ("remove:0", [1]),
        ("up:1", [1, 0]),
        ("down:0", [1, 0]),
        ("up:0", [0, 1]),
        ("nonsense", [0, 1]),
        ("remove:77", [0, 1]),
    ],
)
def test_a_button_changes_the_form_and_saves_nothing(
    change: str, order: list[int], client_of: ClientOf, alice: User, pair: Metric
) -> None:
    typed = typed_for(pair, [0, 1], **{"judge-0-template": "typed so far", "change": change})
    page = client_of(alice).post(page_of(pair), typed)
    shown = [int(one) for one in re.findall(r'name="judge_order" value="(\d+)"', page.text)]
    assert (page.status_code, shown) == (200, order)
    assert ("typed so far" in page.text) is (0 in order)
    assert "errorlist" not in page.text
    assert newest_version(pair).number == 1


def test_a_copy_of_a_judge_has_all_its_settings(client_of: ClientOf, alice: User, pair: Metric) -> None:
    page = client_of(alice).post(page_of(pair), typed_for(pair, [0, 1], change="copy:1"))
    box = re.search(r'<input type="checkbox" name="judge-2-both_orders"[^>]*>', page.text)
    assert box is not None
    assert "checked" in box[0]
    assert page.text.count("two</textarea>") == 2


def test_another_judge_starts_as_a_copy_of_the_last_one_without_its_name(
    client_of: ClientOf, alice: User, pair: Metric
) -> None:
    page = client_of(alice).post(page_of(pair), typed_for(pair, [1, 0], change="add"))
    *_others, last, added = page.context["form"].judges
    settings = [name for name in last.fields if name != "name"]
    assert [added[name].value() for name in settings] == [last[name].value() for name in settings]
    assert (last["name"].value(), added["name"].value()) == ("first", "")


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("single_turn_score.zh", "单轮对话打分法"),
        ("single_turn_comparison.zh", "单轮对话对比打分法"),
        ("single_turn_reference.zh", "单轮对话参考打分法"),
        ("multi_turn_score.zh", "多轮对话打分法"),
        ("multi_turn_comparison.zh", "多轮对话对比打分法"),
        ("multi_turn_reference.zh", "多轮对话参考打分法"),
    ],
)
def test_the_templates_have_the_names_of_ti_one(
    name: str, label: str, client_of: ClientOf, alice: User, project: Project
) -> None:
    page = client_of(alice).get(METRICS + "new/", headers={"Accept-Language": "zh-hans"}).text
    assert f'metrics/gallery/{name.removesuffix(".zh")}/">{label}</a>' in page


def test_without_judge_and_script_there_is_nothing_to_save(
    client_of: ClientOf, alice: User, pair: Metric
) -> None:
    page = client_of(alice).post(page_of(pair), typed_for(pair, []))
    assert page.status_code == 422
    assert "no judge model and no script" in page.text


def test_a_metric_may_be_a_script_alone(client_of: ClientOf, alice: User, pair: Metric) -> None:
    script = "def preprocess(data, resp):\n    return 1\n"
    client_of(alice).post(page_of(pair), typed_for(pair, [], preprocess=script))
    assert definition_of(pair).judges == ()


def test_both_orders_are_for_comparisons_only(client_of: ClientOf, alice: User, pair: Metric) -> None:
    client_of(alice).post(page_of(pair), typed_for(pair, [0, 1], gives="score"))
    assert not definition_of(pair).judges[1].both_orders


@pytest.mark.parametrize("repeats", ["0", "101", "many"])
def test_times_asked_are_within_bounds(repeats: str, client_of: ClientOf, alice: User, pair: Metric) -> None:
    page = client_of(alice).post(page_of(pair), typed_for(pair, [0, 1], **{"judge-0-repeats": repeats}))
    assert page.status_code == 422


# --- parsers tried on past replies -------------------------------------------------------------------------------


@pytest.fixture
def judged(metric: Metric, project: Project) -> Metric:
    """The metric after a run whose three replies, "8 points", could not be parsed."""
    version = MetricVersion.objects.get(metric=metric)
    stored = a_version(project, models=("ant",))
    run = run_create(
        project=project,
        name="run",
        version=stored,
        candidates=list(stored.candidates.all()),
        metrics=[ChosenMetric(MetricDefinition.from_json(version.definition), version)],
        user=None,
    )
    judge(run, lambda _: said(None, content="8 points"))
    return metric


def test_a_pattern_is_tried_on_past_replies(client_of: ClientOf, alice: User, judged: Metric) -> None:
    typed = form_of(judged, read="0", **{"judge-0-parse": "regex", "judge-0-pattern": r"(\d+) points"})
    page = client_of(alice).post(page_of(judged, "past-replies/"), typed)
    assert page.text.count(">8</strong>") == 3
    assert "<html" not in page.text


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ({"judge-0-parse": "regex", "judge-0-pattern": "("}, "Invalid regular expression"),
        ({"judge-0-parse": "regex", "judge-0-pattern": "(.|.)+x(y|$)"}, "unparsed"),
        ({"judge-0-parse": "json_path", "judge-0-pattern": "a.b"}, "unparsed"),
    ],
)
def test_what_a_way_of_reading_does_not_find_is_reported(
    typed: dict[str, str], says: str, client_of: ClientOf, alice: User, judged: Metric
) -> None:
    page = client_of(alice).post(page_of(judged, "past-replies/"), form_of(judged, read="0", **typed))
    assert says in page.text


def test_past_replies_are_shown_without_scripts_too(client_of: ClientOf, alice: User, judged: Metric) -> None:
    page = client_of(alice).post(page_of(judged), form_of(judged, read="0"))
    assert "8 points" in page.text
    assert newest_version(judged).number == 1


def test_without_a_run_there_is_nothing_to_try_on(client_of: ClientOf, alice: User, metric: Metric) -> None:
    page = client_of(alice).post(page_of(metric, "past-replies/"), form_of(metric, read="0"))
    assert "No replies from this judge model yet" in page.text


BOTH = "[[A>>B]]", "[[B>A]]"  # with swapped sides the second one means A>B


def twice_in_both_orders(repeats: int = 2) -> JudgementResult:
    """The result of a comparison with `repeats` repeats in both orders."""
    asked, verdicts = [], []
    for repeat in range(repeats):
        for swapped in (False, True):
            reply = {"content": BOTH[swapped]}
            asked.append(JudgeCall(0, repeat, {}, reply, None, [], swapped=swapped))
            verdicts.append(Verdict(0, repeat, 1 + swapped, order="swapped" if swapped else "first"))
    return JudgementResult(Outcome("scored", 2), tuple(asked), tuple(verdicts))


def test_every_repeat_and_order_is_tried(client_of: ClientOf, alice: User, judged: Metric) -> None:
    run = Run.objects.get()
    planning.plan_attempts(run, run.judgements.filter(state="unparsed"))
    judge(run, lambda _: twice_in_both_orders())
    typed = form_of(judged, read="0", gives="comparison")
    page = client_of(alice).post(page_of(judged, "past-replies/"), typed).text
    assert [page.count(part) for part in (">1</strong>", ">2</strong>", "sides swapped", "#2")] == [
        6,
        6,
        6,
        6,
    ]
    assert "changes" not in page


@pytest.mark.parametrize(("names", "chosen"), [(["One"], 1), (["One", "Two"], 0), ([], 0)])
def test_the_only_endpoint_there_is_is_chosen_for_a_new_metric(
    names: list[str], chosen: int, client_of: ClientOf, alice: User, project: Project
) -> None:
    for name in names:
        Endpoint.objects.create(project=project, name=name, url="http://127.0.0.1:9/v1", model="m")
    page = client_of(alice).get("/p/physics/metrics/new/?start=single_turn_score.en").text
    select = page[page.index('name="judge-0-endpoint"') :].split("</select>")[0]
    assert select.count("selected>One") == chosen


def test_of_a_long_reply_the_end_is_shown_where_the_verdict_is(
    client_of: ClientOf, alice: User, judged: Metric
) -> None:
    run = Run.objects.get()
    planning.plan_attempts(run, run.judgements.filter(state="unparsed"))
    judge(run, lambda _: said(8, content="beginning " + "so on " * 200 + "\n\nScore: [[8]]"))
    page = client_of(alice).post(page_of(judged, "past-replies/"), form_of(judged, read="0")).text
    assert "so on Score: [[8]]</div>" in page
    assert "beginning" not in page


def test_a_trial_shows_what_postprocess_makes_of_the_reply(
    client_of: ClientOf, alice: User, metric: Metric, live: Endpoint, version: Version
) -> None:
    script = "def postprocess(judge_resps):\n    print('seen')\n    return len(judge_resps[0]['content'])\n"
    typed = form_of(metric, **{"judge-0-endpoint": live.pk, "postprocess": script, "try": "1"})
    page = client_of(alice).post(page_of(metric), typed)
    tried = page.context["tried"]
    assert tried.postprocess.outcome.result == len(tried.result.reply.content)
    assert "Result of postprocess:" in page.text
    without = client_of(alice).post(page_of(metric), typed | {"postprocess": ""})
    assert "Result of postprocess:" not in without.text
