"""Replies about two candidates' answers are read again: with both answers for scripts, and both orders tried."""

from __future__ import annotations

import pytest
from msgspec import structs

from evalsite.accounts.models import Project
from judging.core.judges.scripted import ScriptedJudge
from judging.core.metric_definition import Script
from judging.core.replies import make_parser
from judging.records.definitions import definition_now
from judging.records.models import Run
from judging.runs.rerun import reparse
from judging.runs.rerun.parser_trial import try_on_run
from judging.runs.rerun.preview import preview_reading
from judging.runs.rerun.selection import EVERYTHING
from tests.judging.working import work
from tests.make import a_comparison, a_run, a_version

pytestmark = pytest.mark.django_db(transaction=True)
SCRIPT = (
    "def postprocess(judge_reqs, judge_resps, judge_models, data, resp, **kwargs):\n"
    "    assert resp.content.startswith('a') and kwargs['other_resp'].content.startswith('b')\n"
    "    assert [r.swapped for r in judge_resps] == [r.swapped for r in judge_reqs] == [False, True]\n"
    "    return 'B>>A'\n"
)


@pytest.fixture
def run(project: Project) -> Run:
    with ScriptedJudge(reply="[[A>B]]") as judge:
        return work(a_run(a_version(project, 2, tuple("ab")), a_comparison(judge.url)))


def test_a_script_gets_both_answers_and_both_orders_in_the_preview_and_after(run: Run) -> None:
    run_metric = run.metrics.get()
    definition = structs.replace(
        definition_now(run_metric), scripts=(Script(kind="postprocess", source=SCRIPT, after=1),)
    )
    preview = preview_reading(run_metric, definition, EVERYTHING)
    assert preview is not None
    assert [(item.before, item.after) for item in preview.changed] == [("unsettled", "B>>A")] * 2
    reparse.run_reparse(run=run, run_metric=run_metric, definition=definition, user=None)
    work(run)
    assert set(run.judgements.filter(current=True).values_list("value", flat=True)) == {'"B>>A"'}


def test_a_parser_is_tried_on_unsettled_pairs_in_the_first_order(run: Run) -> None:
    definition = definition_now(run.metrics.get())
    parser = make_parser("score", definition.reading_of(definition.judges[0]))
    tried = try_on_run(run.metrics.get(), 0, parser)
    assert [(reply.then, reply.now) for reply in tried] == [("A>B", "A>B"), ("B>A", "B>A")] * 2
