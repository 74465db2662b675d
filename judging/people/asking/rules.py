"""Rules that send the answers which match a filter to an evaluation, once for each run that has ended."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, time

from django.db import transaction
from django.db.models import QuerySet, Sum
from django.http import QueryDict
from django.utils import timezone

from evalsite import clock
from evalsite.accounts.models import Project, User
from evalsite.audit import Action
from evalsite.tasks import jobs
from evalsite.tasks.jobs import Hold
from judging.filters.conditions import matching
from judging.filters.filter_form import FilterForm
from judging.filters.judgement_filter import CURRENT
from judging.people.asking.items import items_add
from judging.people.asking.models import Sending, SendingRule
from judging.people.asking.pool import closed_rows_of
from judging.people.assignments import audit, locked
from judging.people.judgements import figures_change
from judging.people.models import Evaluation, Item, Scheme
from judging.people.sampling import Thing
from judging.records.models import Run

JOB = "send_to_people"
PAIRS = (Scheme.EVERY_PAIR, Scheme.BALANCED, Scheme.BASELINE)
"""Of evaluations that receive pairs of candidates' answers."""
CLOSED, BAD_FILTER, LIMIT, FAILED = "closed", "filter", "limit", "failed"  # problems


def rules_of(project: Project) -> QuerySet[SendingRule]:
    """The project's rules, newest first; those that were ended are last."""
    rules = SendingRule.objects.filter(project=project, evaluation__run__deleted_at=None)
    return rules.select_related("evaluation__run", "created_by").order_by("ended_at", "-pk")


def can_receive(project: Project) -> list[Evaluation]:
    """The evaluations to which rules can send answers, or pairs of candidates' answers: not closed, newest first."""
    evaluations = Evaluation.objects.filter(
        run__project=project, run__archived_at=None, closed_at=None, scheme__in=(Scheme.NONE, *PAIRS)
    )
    evaluations = evaluations.select_related("run__version__dataset").order_by("-pk")
    return [evaluation for evaluation in evaluations if evaluation.state != "closed"]


@transaction.atomic
def rule_create(*, evaluation: Evaluation, name: str, query: str, a_day: int, user: User) -> SendingRule:
    """Create a rule. `query`: a filter of judgements as a query string."""
    project = evaluation.run.project
    rule = SendingRule.objects.create(
        project=project, name=name, query=query, evaluation=evaluation, a_day=a_day, created_by=user
    )
    audit(Action.RULE_CREATED, evaluation, user, rule=name, a_day=a_day)
    return rule


@transaction.atomic
def rule_pause(*, rule: SendingRule, by: User) -> bool:
    """Send nothing until it is resumed. False if it was paused or has ended."""
    running = SendingRule.objects.filter(pk=rule.pk, paused_at=None, ended_at=None)
    return _changed(rule, running.update(paused_at=clock.now()), Action.RULE_PAUSED, by)


@transaction.atomic
def rule_resume(*, rule: SendingRule, by: User) -> bool:
    """Let a paused rule send again: answers of runs that end from now on. False if it was not paused."""
    paused = SendingRule.objects.filter(pk=rule.pk, paused_at__isnull=False, ended_at=None)
    return _changed(rule, paused.update(paused_at=None), Action.RULE_RESUMED, by)


@transaction.atomic
def rule_end(*, rule: SendingRule, by: User) -> bool:
    """End a rule for good; what it sent stays. False if it had ended."""
    running = SendingRule.objects.filter(pk=rule.pk, ended_at=None)
    return _changed(rule, running.update(ended_at=clock.now()), Action.RULE_ENDED, by)


def _changed(rule: SendingRule, count: int, action: Action, by: User) -> bool:
    if count:
        audit(action, rule.evaluation, by, rule=rule.name)
    return bool(count)


def rules_apply(run: Run) -> None:
    """Note for each rule of the project that a run over its evaluation's data has finished; a worker then sends. Call
    in the transaction that stores the end. A run that finishes again is not sent from again."""
    if not run.by_workers:
        return
    rules = SendingRule.objects.filter(project=run.project_id, paused_at=None, ended_at=None)
    for rule in rules.filter(evaluation__run__version=run.version_id, evaluation__run__deleted_at=None):
        sending, created = Sending.objects.get_or_create(rule=rule, run=run)
        if created:
            jobs.request(JOB, sending.pk)


def sent_today(rule: SendingRule) -> int:
    """How many items it has sent today, in the setting TIME_ZONE."""
    today = timezone.localtime(clock.now(), timezone.get_default_timezone()).date()
    begin = timezone.make_aware(datetime.combine(today, time.min), timezone.get_default_timezone())
    sent: int = rule.sendings.filter(at__gte=begin).aggregate(sent=Sum("sent", default=0))["sent"]
    return sent


def _failed(hold: Hold, sending: Sending, error: Exception) -> None:
    with transaction.atomic():
        hold.problem(error)
        hold.finish()
        Sending.objects.filter(pk=sending.pk, sent=None).update(sent=0, problem=FAILED)


@jobs.job(JOB, Sending, failed=_failed)
def send_to_people(hold: Hold, sending: Sending) -> None:
    """Send the answers that match, drawn at random where they are more than may be sent today."""
    sending = Sending.objects.select_related("rule", "run__version", "run__project").get(pk=sending.pk)
    with transaction.atomic():
        hold.renew()
        evaluation = locked(sending.rule.evaluation_id)
        rule = SendingRule.objects.select_for_update().get(pk=sending.rule_id)
        sending.sent, sending.at = 0, clock.now()
        if rule.paused_at or rule.ended_at or evaluation.state == "closed":
            sending.problem = CLOSED
        else:
            _send(sending, rule, evaluation)
        sending.save()
        hold.finish()


def _send(sending: Sending, rule: SendingRule, evaluation: Evaluation) -> None:
    form = FilterForm(QueryDict(rule.query), sending.run)
    if form.problem:
        sending.problem = BAD_FILTER
        return
    things = _matches(sending.run, form, evaluation)
    allowed = max(0, rule.a_day - sent_today(rule))
    sending.matches = len(things)
    chosen = random.Random(f"send:{sending.pk}").sample(things, min(allowed, len(things)))
    if len(things) > allowed:
        sending.problem = LIMIT
    if not chosen:
        return
    sending.sent = items_add(evaluation, chosen, seed=sending.pk, by_rule=True).new
    figures_change(evaluation)
    audit(Action.ANSWERS_SENT, evaluation, None, rule=rule.name, items=sending.sent, run=sending.run.name)


def _matches(run: Run, form: FilterForm, evaluation: Evaluation) -> list[Thing]:
    """The answers with a matching judgement that the evaluation does not have, in order; where it compares answers, the
    pairs."""
    filters = replace(form.filters, attempts=CURRENT)
    judgements = matching(run, filters).filter(other_response__isnull=evaluation.scheme not in PAIRS)
    judgements = judgements.exclude(response__raw="").exclude(other_response__raw="").order_by()
    items = Item.objects.filter(evaluation=evaluation).values_list("response", "other_response")
    there = {frozenset(answers) for answers in items}
    closed = closed_rows_of(run) | closed_rows_of(evaluation.run)
    parts = ("row_id", "response_id", "other_response_id", "candidate_id", "other_response__candidate_id")
    things = {
        frozenset((response, other)): Thing(row, response, other, tuple(sorted(filter(None, candidates))))
        for row, response, other, *candidates in judgements.values_list(*parts).distinct()
        if row not in closed
    }
    new = (thing for answers, thing in things.items() if answers not in there)
    return sorted(new, key=lambda thing: (thing.response, thing.other or 0))
