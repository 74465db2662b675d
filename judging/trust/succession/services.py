"""Successions of judges: begun from a finished run, judged by the workers, computed when the new run has ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from datasets.models import Candidate, Response
from evalsite.accounts.models import User
from evalsite.audit import Action, record
from evalsite.tasks import jobs
from evalsite.tasks.jobs import Hold
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.endpoints.models import Endpoint
from judging.engine.rubric_rows import mean_criteria
from judging.records.models import Judgement, Run, RunMetric, RunState
from judging.runs.preflight import Preflight, preflight
from judging.runs.selectors import Cost, MetricChoice
from judging.runs.services import ChosenMetric, RunOptions, free_name, run_create
from judging.trust.succession.models import Succession
from judging.trust.succession.verdicts import succession_document

JOB = "succession"


@dataclass(frozen=True, slots=True)
class Answers:
    """The stored answers that both judge: ids of their rows, how many verdicts were given on them, and how many rows
    are left out because an answer could not be generated."""

    rows: Sequence[int]
    judgements: int
    left_out: int


def refuse_no_succession(old: RunMetric) -> None:
    """Raise ValidationError if no other judge can judge the same answers of a run."""
    if not old.run.by_workers or old.run.state != RunState.FINISHED or old.metric_version is None:
        raise ValidationError(
            _("Only a finished run with a stored version of a metric can be judged by another judge.")
        )
    if not MetricDefinition.from_json(old.definition).judges:
        raise ValidationError(_("This metric asks no judge model, so no other can follow it."))


def answers_of(old: RunMetric) -> Answers:
    """The answers that a run's metric has judged."""
    judged = Judgement.objects.filter(run=old.run_id, run_metric=old, current=True)
    rows = set(judged.values_list("row", flat=True).distinct())
    candidates = old.run.run_candidates.values("candidate")
    empty = Response.objects.filter(candidate__in=candidates, raw="").values_list("row", flat=True)
    failed = rows & set(empty)
    judgements = judged.exclude(row__in=failed).count()
    return Answers(sorted(rows - failed), judgements, len(failed))


def successor(old: RunMetric, endpoints: Mapping[int, Endpoint]) -> MetricDefinition:
    """The metric with other judges. `endpoints`: by number of the judge model; the others stay."""
    version = old.metric_version
    assert version is not None
    definition = MetricDefinition.from_json(version.definition)
    judges = tuple(
        _with_endpoint(judge, endpoints[number]) if number in endpoints else judge
        for number, judge in enumerate(definition.judges)
    )
    return msgspec.structs.replace(definition, judges=judges)


def _with_endpoint(judge: JudgeModel, endpoint: Endpoint) -> JudgeModel:
    return msgspec.structs.replace(judge, endpoint=endpoint.pk, url="", model="", api_key_env="")


def succession_cost(
    old: RunMetric, definition: MetricDefinition, answers: Answers
) -> tuple[Cost, Preflight | None]:
    """What the new judges are asked, with an estimate of tokens and price."""
    criteria = mean_criteria(old.run.version) if definition.asks_by_criterion else 1
    calls = round(answers.judgements * definition.calls_over(1, criteria))
    cost = Cost(
        len(answers.rows),
        answers.judgements,
        calls,
        about=criteria != 1,
        criteria=criteria,
        of_metrics=(answers.judgements,),
    )
    return cost, preflight(old.run.version, [MetricChoice(old.metric_version, definition, [])], cost)


@transaction.atomic
def succession_begin(
    *, old: RunMetric, endpoints: Mapping[int, Endpoint], margin: float, user: User
) -> Succession:
    """Have the workers judge the same stored answers with other judges, in a run of its own that asks no candidate; one
    that goes on with the same judges is returned. Raises ValidationError."""
    Run.objects.select_for_update().get(pk=old.run_id)
    refuse_no_succession(old)
    definition, answers = successor(old, endpoints), answers_of(old)
    assert old.metric_version is not None
    if not answers.rows:
        raise ValidationError(_("The run has judged no answer that another judge could judge."))
    new_judge = judge_names(definition)
    going = Succession.objects.filter(old=old, new_judge=new_judge, finished_at=None, run__deleted_at=None)
    if earlier := going.exclude(run=None).first():
        return earlier
    run = run_create(
        project=old.run.project,
        name=free_name(old.run.project, _("%(metric)s: succession") % {"metric": definition.name[:120]}),
        version=old.run.version,
        candidates=list(
            Candidate.objects.filter(pk__in=old.run.run_candidates.values("candidate")).order_by("pk")
        ),
        metrics=[ChosenMetric(definition)],
        user=user,
        seed=old.run.seed,
        only_rows=answers.rows,
        options=RunOptions(leave_out_unreadable=True),
    )
    succession = Succession.objects.create(
        project=old.run.project,
        metric_version=old.metric_version,
        old=old,
        run=run,
        old_judge=judge_names(MetricDefinition.from_json(old.definition)),
        new_judge=new_judge,
        margin=margin,
        created_by=user,
    )
    about = {"run": old.run.name, "old": succession.old_judge, "new": new_judge}
    metric = succession.metric_version.metric
    record(Action.SUCCESSION_BEGUN, project=run.project, thing=metric, by=user, **about)
    return succession


def judge_names(definition: MetricDefinition) -> str:
    """The models of a definition's judges, those of their endpoints where it does not hold them itself."""
    models = dict(Endpoint.objects.values_list("pk", "model"))
    return ", ".join(
        judge.model or models.get(judge.endpoint or 0, "") or judge.name for judge in definition.judges
    )


@transaction.atomic
def margin_change(*, succession: Succession, margin: float, user: User) -> None:
    """Decide with another margin; the figures are computed again."""
    before = succession.margin
    if before != margin:
        Succession.objects.filter(pk=succession.pk).update(margin=margin)
        metric = succession.metric_version.metric
        record(
            Action.SUCCESSION_MARGIN,
            project=succession.project,
            thing=metric,
            by=user,
            before=before,
            after=margin,
        )
        jobs.request(JOB, succession.pk, again=True)


@jobs.job(JOB, Succession)
def succession_compute(hold: Hold, succession: Succession) -> None:
    """Compute the document of a succession whose run has finished, unless nothing has changed since."""
    old, run = succession.old, succession.run
    if old is None or run is None or run.state != RunState.FINISHED:
        return
    basis = basis_of(succession)
    if basis == succession.computed_from:
        return
    document = succession_document(old, run.metrics.get(), succession.margin)
    with transaction.atomic():
        hold.finish()
        Succession.objects.filter(pk=succession.pk).update(
            document=document, computed_from=basis, finished_at=succession.finished_at or timezone.now()
        )


def basis_of(succession: Succession) -> list[float]:
    """What a document depends on: revisions of both runs, and the margin."""
    old, run = succession.old, succession.run
    return [old.run.revision, run.revision, succession.margin] if old and run else []


def successions_finish() -> None:
    """Have the documents of successions computed whose run has finished; called by the reconciler."""
    ended = Succession.objects.filter(
        finished_at=None, run__state=RunState.FINISHED, run__deleted_at=None, old__run__deleted_at=None
    )
    for pk in ended.values_list("pk", flat=True):
        jobs.request(JOB, pk)
