"""A better prompt suggested by a model of the user's choice, from disagreements on dev and train rows.

Test rows and sealed labels are never sent. The reply is a draft: its dev rows are judged in a run of their own, and
somebody takes it into their draft of the prompt, or closes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from datasets.models import Candidate, Row
from evalsite.accounts.models import User
from evalsite.audit import Action, record
from judging.core.leaks import first_leak
from judging.core.licensing import DEV
from judging.core.metric_definition import MetricDefinition
from judging.core.prompt_suggestions import Case, lost_mark, read_suggestion, suggestion_prompt
from judging.endpoints.models import Endpoint
from judging.metrics import model_drafts
from judging.metrics.editor.judge_forms import template_failure
from judging.metrics.editor.prompt_draft import template_draft
from judging.metrics.model_drafts import CannotDraft, Price, request_draft
from judging.metrics.models import DraftState
from judging.metrics.services import refuse_definition
from judging.records.models import Run, RunMetric
from judging.rule_messages import reader_language
from judging.runs.preflight import Preflight, preflight
from judging.runs.selectors import Cost, MetricChoice
from judging.runs.services import ChosenMetric, free_name, run_create
from judging.trust.dev import DevAgreement, agreement_of, labels_in
from judging.trust.disagreement_page import Disagreements
from judging.trust.models import PromptSuggestion, Split
from judging.trust.selectors import sealed_lines

MOST_SUGGESTIONS = 20
"""Requests for one split; further ones are refused."""
MOST_CASES = 20


class SuggestionRequest:
    """What is asked of a model about the judge in a run, and what judging the dev rows again will cost."""

    def __init__(self, split: Split, run_metric: RunMetric, judge: int = 0) -> None:
        """`judge`: the place, from 0, of the judge whose prompt is to be improved."""
        self.split, self.run_metric, self.judge = split, run_metric, judge
        self.disagreements = Disagreements(split, run_metric)

    @cached_property
    def definition(self) -> MetricDefinition:
        """Of the version whose prompt is to be improved."""
        assert self.run_metric.metric_version is not None
        return MetricDefinition.from_json(self.run_metric.metric_version.definition)

    @property
    def template(self) -> str:
        return self.definition.judges[self.judge].template

    @cached_property
    def sent(self) -> list[int]:
        """The disagreements that are sent, by their judgements: never on a row of a test of whichever metric."""
        sealed = sealed_lines(self.run_metric.run.version)
        by_judgement = self.disagreements.by_judgement
        lines = self.disagreements.lines
        unsealed = [pk for pk, each in by_judgement.items() if lines[each.answer.row] not in sealed]
        return unsealed[:MOST_CASES]

    @cached_property
    def prompt(self) -> str:
        return suggestion_prompt(self.template, [self._case(pk) for pk in self.sent], reader_language())

    def _case(self, judgement: int) -> Case:
        shown = self.disagreements.shown(judgement)
        reasons = " ".join(shown.comments)
        return Case(
            shown.question, shown.answer, shown.judge, shown.reply, shown.people, reasons, shown.other
        )

    def prices(self) -> list[Price]:
        """The price of the request by each endpoint of the project."""
        return model_drafts.prices(self.prompt, self.split.metric.project)

    @cached_property
    def dev_lines(self) -> set[int]:
        """Lines of the dev rows with labels."""
        lines = self.disagreements.lines
        return {lines[answer.row] for answer in labels_in(self.split, DEV) if answer.row in lines}

    @cached_property
    def candidates(self) -> list[Candidate]:
        """Those whose answers the run judged."""
        of_run = self.run_metric.run.run_candidates.values("candidate")
        return list(Candidate.objects.filter(pk__in=of_run).order_by("pk"))

    def judging(self) -> tuple[Cost, Preflight | None]:
        """What judging the dev rows with a new prompt costs."""
        choice = MetricChoice(self.run_metric.metric_version, self.definition, [])
        judged = self.run_metric.run.judgements.filter(run_metric=self.run_metric, current=True)
        judgements = judged.filter(row__line__in=self.dev_lines).count()
        calls = round(judgements * self.definition.calls)
        cost = Cost(len(self.dev_lines), judgements, calls, about=False, of_metrics=(judgements,))
        return cost, preflight(self.run_metric.run.version, [choice], cost)

    def dev_texts(self) -> Iterator[str]:
        """Questions and answers of the dev rows that are sent."""
        for judgement in self.sent:
            shown = self.disagreements.shown(judgement)
            if not shown.train:
                yield from (shown.question, shown.answer, shown.other)


def with_template(definition: MetricDefinition, template: str, judge: int) -> MetricDefinition:
    """The definition with another template of one of its judges."""
    judges = list(definition.judges)
    judges[judge] = msgspec.structs.replace(judges[judge], template=template)
    return msgspec.structs.replace(definition, judges=tuple(judges))


def prompt_suggest(*, wanted: SuggestionRequest, endpoint: Endpoint, user: User) -> PromptSuggestion:
    """Ask a model for a better prompt and store its reply as a draft; a failed call is stored, too.

    Raises CannotDraft, also with `no_disagreements` or `too_many`.
    """
    split, metric = wanted.split, wanted.split.metric
    if not wanted.sent:
        raise CannotDraft("no_disagreements")
    if split.suggestions.count() >= MOST_SUGGESTIONS:
        raise CannotDraft("too_many")
    version = wanted.run_metric.metric_version
    suggestion = PromptSuggestion(split=split, metric_version=version, judge=wanted.judge)
    if request_draft(suggestion, endpoint=endpoint, prompt=wanted.prompt, user=user):
        suggestion.template = read_suggestion(suggestion.reply)
        problem, suggestion.problem_detail = _problem(wanted, suggestion.template)
        suggestion.conclude(not problem, problem)
    with transaction.atomic():
        suggestion.save()
        record(
            Action.PROMPT_SUGGESTED,
            project=metric.project,
            thing=metric,
            by=user,
            model=endpoint.name,
            calls=suggestion.calls,
        )
    return suggestion


def _problem(wanted: SuggestionRequest, template: str) -> tuple[str, str]:
    """Why a suggested template cannot be used, as code and detail; ('', '') if it can."""
    if not template:
        return "no_prompt", ""
    if template.strip() == wanted.template.strip():
        return "same_prompt", ""
    if lost := lost_mark(wanted.template, template):
        return "lost_variable", lost
    if template_failure(template) is not None:
        return "broken_prompt", ""
    texts = list(wanted.dev_texts())
    if first_leak(template, texts) and not first_leak(wanted.template, texts):
        return "quotes_dev", ""
    try:
        refuse_definition(wanted.split.metric, with_template(wanted.definition, template, wanted.judge))
    except ValidationError as error:
        return "test_text", error.messages[0]
    return "", ""


def suggestion_judge(*, suggestion: PromptSuggestion, wanted: SuggestionRequest, user: User) -> Run:
    """Judge the dev rows with a suggested prompt, in a run of its own. Raises ValidationError if that is impossible."""
    changed = MetricDefinition.from_json(suggestion.metric_version.definition)
    definition = with_template(changed, suggestion.template, suggestion.judge)
    version, project = wanted.run_metric.run.version, wanted.split.metric.project
    rows = Row.objects.filter(version=version, line__in=wanted.dev_lines).values_list("pk", flat=True)
    with transaction.atomic():
        run = run_create(
            project=project,
            name=free_name(project, _("%(metric)s: suggested prompt") % {"metric": definition.name[:120]}),
            version=version,
            candidates=wanted.candidates,
            metrics=[ChosenMetric(definition)],
            user=user,
            only_rows=list(rows),
        )
        suggestion.run = run
        suggestion.save(update_fields=["run"])
    return run


def suggestion_take(*, suggestion: PromptSuggestion, user: User) -> None:
    """Put the suggested prompt into the user's draft of the editor; the suggestion is done."""
    template_draft(
        metric=suggestion.split.metric,
        user=user,
        change=lambda _template: suggestion.template,
        judge=suggestion.judge,
    )
    suggestion_close(suggestion=suggestion)


def suggestion_close(*, suggestion: PromptSuggestion) -> None:
    """Close a draft; it stays listed with its calls."""
    PromptSuggestion.objects.filter(pk=suggestion.pk, state=DraftState.DRAFT).update(state=DraftState.DONE)


@dataclass(frozen=True, slots=True)
class SuggestionFigures:
    """Dev agreement with a suggested prompt, and how it differs from the version that it changes."""

    agreement: DevAgreement | None
    ended: bool


def figures_of(suggestion: PromptSuggestion, before: DevAgreement | None) -> SuggestionFigures:
    """The dev figures of a suggestion, as far as its run is."""
    run_metric = suggestion.run.metrics.first() if suggestion.run else None
    if suggestion.run is None or run_metric is None:
        return SuggestionFigures(None, ended=False)
    labels = labels_in(suggestion.split, DEV)
    agreement = agreement_of(suggestion.split, run_metric, labels, 0, before)
    return SuggestionFigures(agreement, suggestion.run.ended)


def suggestions_of(split: Split) -> Sequence[PromptSuggestion]:
    """Newest first."""
    parts = ("created_by", "run", "metric_version__metric__project")
    return list(split.suggestions.select_related(*parts).order_by("-pk"))
