"""Measurements of gallery metrics: started from a card, done by a worker, listed with their calls."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import msgspec
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from evalsite.tasks import jobs
from evalsite.tasks.jobs import Hold
from judging.core.answer_format import Language
from judging.core.gallery import Card, gallery
from judging.core.gallery.measured import Pair, measured
from judging.core.gallery.record import EXAMPLES, Record
from judging.core.judges.reply import Usage
from judging.core.metric_definition import MetricDefinition
from judging.endpoints.gate import Lot
from judging.endpoints.models import Endpoint
from judging.metrics.editor.try_prompt import price_of
from judging.metrics.gallery.page import with_endpoint
from judging.runs.services import frozen
from judging.sandboxes import shared_sandbox
from judging.trust.gallery.labelled import MOST_ANSWERS, LabelledData, answers_of, labelled_by
from judging.trust.gallery.measuring import Judged, Labelled, Measuring, Spending
from judging.trust.models import Measurement

JOB = "measure_metric"
SHOWN = 20
"""Measurements of a metric that its page lists, newest first."""
SPARE_CALLS = 2
"""The usual budget, as a multiple of the calls that are needed where none has to be repeated."""


def usual_budget(card: Card, answers: int) -> int:
    """Calls that a measurement may make unless somebody says otherwise: retries included."""
    return SPARE_CALLS * card.calls * min(answers, MOST_ANSWERS)


def measurements_of(project: Project, card: Card) -> list[Measurement]:
    """The newest ones of a metric."""
    rows = Measurement.objects.filter(project=project, card=card.id).select_related("created_by")
    return list(rows.order_by("-pk")[:SHOWN])


def measurement_start(
    *,
    project: Project,
    card: Card,
    language: Language,
    endpoint: Endpoint | None,
    labels: LabelledData | None,
    most_calls: int | None,
    user: User,
) -> Measurement:
    """Have a worker measure a metric on the gallery's examples, or on labelled data; `endpoint`: its judge, if it asks
    one; `most_calls`: its budget, None for the usual one.

    Raises ValidationError if there is nothing to measure, or this metric is being measured already.
    """
    answers = labels.answers if labels else len(card.examples)
    if not answers:
        raise ValidationError(_("There are no labelled answers for this metric."))
    mapping = labels.mapping(card) if labels else card.example_mapping(card.examples)
    metric = card.definition(language, mapping)
    definition = frozen(with_endpoint(labels.fitted(metric) if labels else metric, endpoint))
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        if Measurement.objects.filter(project=project, card=card.id, finished_at=None).exists():
            raise ValidationError(
                _("This metric is being measured already. Wait until that ends, or stop it.")
            )
        measurement = Measurement.objects.create(
            project=project,
            card=card.id,
            language=language,
            endpoint=endpoint,
            model=endpoint.model if endpoint else "",
            **(labels.origin if labels else {}),
            data_name=labels.name if labels else "",
            definition=definition.to_json(),
            answers=min(answers, MOST_ANSWERS),
            most_calls=usual_budget(card, answers) if most_calls is None else most_calls,
            created_by=user,
        )
        more = {"metric": card.id, "model": measurement.model, "answers": measurement.answers}
        record(Action.METRIC_MEASURED, project=project, thing=measurement, name=card.name.en, by=user, **more)
        jobs.request(JOB, measurement.pk)
    return measurement


def measurement_stop(*, measurement: Measurement) -> None:
    """Send no more requests; what was judged stays, and counts."""
    with transaction.atomic():
        jobs.cancel(JOB, measurement.pk)
        _end(measurement.pk, "stopped")


def _answers(measurement: Measurement) -> dict[str, Labelled]:
    """The labelled answers by key."""
    labels, card = labelled_by(measurement), gallery().get(measurement.card)
    if labels is not None:
        return labels.load()
    return answers_of(card, card.examples) if card else {}


def _failed(hold: Hold, measurement: Measurement, error: Exception) -> None:
    with transaction.atomic():
        hold.finish()
        _end(measurement.pk, hold.problem(error))


@jobs.job(JOB, Measurement, failed=_failed, most_tries=3)
def measure_metric(hold: Hold, measurement: Measurement) -> None:
    """Judge the answers that have no result yet, and store results and calls twice a second."""
    if measurement.finished_at is not None:
        return
    answers = _answers(measurement)
    work = Measuring(
        definition=MetricDefinition.from_json(measurement.definition),
        answers=answers,
        spending=Spending(
            measurement.most_calls,
            calls=measurement.calls,
            prompt_tokens=measurement.prompt_tokens,
            completion_tokens=measurement.completion_tokens,
        ),
        store=partial(_store, hold, measurement, answers),
        sandbox=shared_sandbox(),
        lot=Lot(measurement.project_id, -measurement.pk),
        stop=hold.stop,
        results={key: Judged(*result[:2]) for key, result in measurement.results.items() if key in answers},
    )
    problem, _colon, detail = work.run().partition(": ")
    hold.check()
    with transaction.atomic():
        hold.finish()
        _end(measurement.pk, problem, detail)


def _store(
    hold: Hold,
    measurement: Measurement,
    answers: Mapping[str, Labelled],
    results: Mapping[str, Judged],
    spending: Spending,
) -> None:
    usage = Usage(spending.prompt_tokens, spending.completion_tokens)
    cost, currency = price_of(usage, measurement.endpoint)
    stored = {
        key: [result.verdict, result.reason, answers[key].verdict, answers[key].unit]
        for key, result in results.items()
    }
    with transaction.atomic():
        hold.renew(done=len(results), total=len(answers))
        Measurement.objects.filter(pk=measurement.pk).update(
            results=stored,
            calls=spending.calls,
            prompt_tokens=spending.prompt_tokens,
            completion_tokens=spending.completion_tokens,
            cost=cost,
            currency=currency,
        )


def _end(pk: int, problem: str = "", detail: str = "") -> None:
    """Store how it ended, with the record of what was judged, unless it has ended before."""
    measurement = Measurement.objects.select_for_update().get(pk=pk)
    if measurement.finished_at is None:
        measurement.finished_at = timezone.now()
        measurement.problem, measurement.problem_detail = problem[:40], detail
        measurement.record = msgspec.to_builtins(record_of(measurement)) if measurement.results else {}
        measurement.save(update_fields=["finished_at", "problem", "problem_detail", "record"])


def record_of(measurement: Measurement) -> Record:
    """What was measured so far."""
    empty = Record(
        judge=measurement.model,
        date=measurement.created_at.date().isoformat(),
        language=measurement.language,
        data=measurement.data_name or EXAMPLES,
        calls=measurement.calls,
        tokens=measurement.prompt_tokens + measurement.completion_tokens,
    )
    results = measurement.results.values()
    pairs = [Pair(verdict, people, unit) for verdict, _reason, people, unit in results]
    return measured(empty, gallery()[measurement.card].gives, pairs)
