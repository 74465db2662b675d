"""Scripts in the metric editor are checked while typing and run on the sample row."""

from __future__ import annotations

from html import unescape

import pytest

from datasets.models import Version
from evalsite.accounts.models import User
from judging.core.builtin import BUILTINS, PAIR
from judging.core.metric_definition import MetricDefinition
from judging.core.scripts import RECOMMENDED
from judging.metrics.editor.scripts import LABELS
from judging.metrics.models import Metric, MetricVersion
from judging.runs.services import ChosenMetric, run_create
from tests.conftest import ClientOf
from tests.judging.judged import judge, said
from tests.judging.metrics.conftest import form_of

PREVIEW = "/p/physics/metrics/preview/"
POSTPROCESS = "def postprocess(judge_resps, **kwargs):\n    return judge_resps[0].content\n"


def shown(client_of: ClientOf, user: User, metric: Metric | None, **typed: object) -> str:
    page = client_of(user).post(PREVIEW, form_of(metric, **typed), headers={"HX-Request": "true"})
    assert page.status_code == 200
    return unescape(page.text)


def test_what_preprocess_does_to_the_row_is_shown(
    client_of: ClientOf, alice: User, metric: Metric, version: Version
) -> None:
    script = (
        "def preprocess(data, resp):\n    print('seen')\n    resp.length = len(resp.content)\n    return 7\n"
    )
    page = shown(client_of, alice, metric, preprocess=script)
    for part in ('id="preprocess-run"', ">7</dd>", "response.length", ">10</dd>", "seen", " ms"):
        assert part in page


@pytest.mark.parametrize("kind", ["preprocess", "postprocess"])
@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("x = (\n", "line 1"),
        ("x = 1\n", "no function"),
        ("\n\ndef {kind}(unheard_of):\n    pass\n", "unheard_of"),
        ("def {kind}(**kwargs):\n    x = 1\n    return 1 / 0\n", "line 3"),
        ("def {kind}(**kwargs):\n    return [1]\n", "returned"),
        ("import socket\n", "socket"),
        ("def {kind}(**kwargs):\n    while True: pass\n", "timed out"),
    ],
)
def test_what_is_wrong_with_a_script_is_reported_with_its_line(
    kind: str, script: str, says: str, client_of: ClientOf, alice: User, metric: Metric, version: Version
) -> None:
    page = shown(client_of, alice, metric, **{kind: script.replace("{kind}", kind)})
    assert 'data-kind="error"' in page
    assert says in page


def test_a_script_is_checked_where_there_is_no_row_to_run_it_on(
    client_of: ClientOf, alice: User, metric: Metric
) -> None:
    assert "The script loads." in shown(
        client_of, alice, metric, preprocess="def preprocess(data): return 1\n"
    )
    assert "line 1" in shown(client_of, alice, metric, postprocess="def postprocess(:\n")


def test_postprocess_runs_on_the_reply_that_is_typed(
    client_of: ClientOf, alice: User, metric: Metric, version: Version
) -> None:
    page = shown(client_of, alice, metric, postprocess=POSTPROCESS, sample_reply="so so")
    assert '>"so so"</dd>' in page


def test_else_on_an_example(client_of: ClientOf, alice: User, metric: Metric, version: Version) -> None:
    page = shown(client_of, alice, metric, postprocess=POSTPROCESS)
    assert '>"Score: [[10]]"</dd>' in page
    assert "an example reply" in page


def test_else_on_what_was_last_said_about_the_answer(
    client_of: ClientOf, alice: User, metric: Metric, version: Version
) -> None:
    first = MetricVersion.objects.get(metric=metric)
    run = run_create(
        project=metric.project,
        name="run",
        version=version,
        candidates=list(version.candidates.all()),
        metrics=[ChosenMetric(MetricDefinition.from_json(first.definition), first)],
        user=None,
    )
    judge(run, lambda _: said(4, content="I say [[4]]"))
    assert '>"I say [[4]]"</dd>' in shown(client_of, alice, metric, postprocess=POSTPROCESS)


def test_postprocess_sees_what_the_judge_would_be_asked(
    client_of: ClientOf, alice: User, metric: Metric, version: Version
) -> None:
    script = "def postprocess(judge_reqs, **kwargs):\n    return judge_reqs[0].messages[0].content\n"
    assert "Q: What is 1+1?" in shown(client_of, alice, metric, postprocess=script)


def test_a_metric_of_scripts_alone_is_run_too(
    client_of: ClientOf, alice: User, metric: Metric, version: Version
) -> None:
    typed = {"judges": "1", "preprocess": "def preprocess(data): return 42\n"}
    assert ">42</dd>" in shown(client_of, alice, metric, **typed)


# --- recommended scripts and repairs ---------------------------------------------------------------------------

DOUBLED = (
    'import re\ndef postprocess(judge_resps, **kwargs):\n    return re.findall(r"\\\\[\\\\[(\\\\d)", "x")\n'
)


def test_every_recommended_script_has_a_label_and_a_button(
    client_of: ClientOf, alice: User, metric: Metric
) -> None:
    assert set(LABELS) == set(RECOMMENDED)
    for address in (f"/p/physics/metrics/{metric.pk}/", "/p/physics/metrics/rules/new/"):
        page = client_of(alice).get(address).text
        assert [name for name in RECOMMENDED if f'value="script:{name}"' not in page] == []


@pytest.mark.parametrize("name", RECOMMENDED)
def test_a_recommended_script_is_inserted_without_saving(
    name: str, client_of: ClientOf, alice: User, metric: Metric
) -> None:
    one = RECOMMENDED[name]
    page = client_of(alice).post(f"/p/physics/metrics/{metric.pk}/", form_of(metric, change=f"script:{name}"))
    assert (page.status_code, MetricVersion.objects.count()) == (200, 1)
    assert page.context["form"].metric[one.kind].value() == one.source


def test_it_is_inserted_among_rules_too(client_of: ClientOf, alice: User, version: Version) -> None:
    typed = {"rules": "# DSL", "name": "n", "change": "script:strip_think"}
    page = client_of(alice).post("/p/physics/metrics/rules/new/", typed)
    assert page.context["form"]["preprocess"].value() == RECOMMENDED["strip_think"].source
    assert page.context["form"]["rules"].value() == "# DSL"


def test_doubled_backslashes_are_reported_and_a_fix_is_offered(
    client_of: ClientOf, alice: User, metric: Metric, version: Version
) -> None:
    page = shown(client_of, alice, metric, postprocess=DOUBLED)
    assert "The backslashes of a pattern are doubled" in page
    assert 'value="repair:postprocess:' in page
    assert "repair:" not in shown(client_of, alice, metric, postprocess=POSTPROCESS)


def test_the_fix_changes_the_script_without_saving(
    client_of: ClientOf, alice: User, metric: Metric, version: Version
) -> None:
    form = form_of(metric, postprocess=DOUBLED, change="repair:postprocess")
    page = client_of(alice).post(f"/p/physics/metrics/{metric.pk}/", form)
    assert page.context["form"].metric["postprocess"].value() == DOUBLED.replace("\\\\", "\\")
    assert MetricVersion.objects.count() == 1


DOUBLED_PATTERN = r"Score: \\[\\[(\\d+)\\]\\]"


def test_a_fix_is_offered_for_doubled_backslashes_of_a_judge_s_pattern(
    client_of: ClientOf, alice: User, metric: Metric, version: Version
) -> None:
    typed = {"judge-0-parse": "regex", "judge-0-pattern": DOUBLED_PATTERN}
    assert 'value="repair:judge-0-pattern"' in shown(client_of, alice, metric, **typed)
    assert "repair:" not in shown(client_of, alice, metric, **typed | {"judge-0-parse": "json_path"})
    assert "repair:" not in shown(client_of, alice, metric, **typed | {"judge-0-pattern": r"\[\[(\d+)\]\]"})


def test_the_fix_changes_the_pattern_without_saving(
    client_of: ClientOf, alice: User, metric: Metric, version: Version
) -> None:
    typed = {"judge-0-parse": "regex", "judge-0-pattern": DOUBLED_PATTERN}
    form = form_of(metric, **typed, change="repair:judge-0-pattern")
    page = client_of(alice).post(f"/p/physics/metrics/{metric.pk}/", form)
    assert page.context["form"].judges[0]["pattern"].value() == r"Score: \[\[(\d+)\]\]"
    assert "repair:" not in page.text


@pytest.mark.parametrize(
    "name", [name for name in BUILTINS if name.endswith(".en") and BUILTINS[name].kind != PAIR]
)
def test_a_further_judge_model_starts_from_any_template(
    name: str, client_of: ClientOf, alice: User, metric: Metric
) -> None:
    assert f'<option value="{name}">' in client_of(alice).get(f"/p/physics/metrics/{metric.pk}/").text
    form = form_of(metric, change="add", add_from=name)
    page = client_of(alice).post(f"/p/physics/metrics/{metric.pk}/", form)
    _first, second = page.context["form"].judges
    assert second["template"].value() == BUILTINS[name].source
