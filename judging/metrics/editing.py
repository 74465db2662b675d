"""What the editor's page needs beside its form: the definition that it began with, and the prompt of a sample row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.translation import gettext as _

from datasets.models import Version
from evalsite.accounts.models import Project
from evalsite.numbers import whole
from evalsite.templatetags.show import duration
from judging.core.pipeline import JudgeModel, MetricDefinition
from judging.core.replies import ParserError, make_parser
from judging.endpoints.manual_calls import Waiting
from judging.endpoints.models import Endpoint
from judging.messages import FILE_PROBLEMS, reason_sentence
from judging.metrics import samples, trying
from judging.metrics.forms import MetricForms, starting_definition, typed_definition
from judging.metrics.judge_forms import prompt_sentence, script_sentence
from judging.metrics.models import Metric, MetricVersion
from judging.metrics.preview import Prompt, preview_prompt
from judging.metrics.samples import Offered, Sample
from judging.metrics.scripting import ScriptRun, script_runs
from judging.metrics.trying import Text, Trial
from judging.runs.budget import MILLION, cost_of_reply
from judging.runs.past_replies import PastReply, tried_on_metric
from judging.sandbox_messages import localized


@dataclass(frozen=True, slots=True)
class Look:
    """A preview as the page shows it. Without a sample row there is no prompt."""

    definition: MetricDefinition
    judge: int
    sample: Sample | None
    prompt: Prompt | None
    versions: list[Version]
    scripts: dict[str, ScriptRun]

    @property
    def address(self) -> str:
        """The name of the address that gives this preview."""
        return "metrics:preview"

    @property
    def error(self) -> str:
        """Why the template gives no prompt."""
        failure = self.prompt.shown.error if self.prompt else None
        return prompt_sentence(failure) if failure else ""

    @property
    def script_error(self) -> str:
        """Why preprocess failed on this row."""
        failure = self.prompt.preprocess.failure if self.prompt and self.prompt.preprocess else None
        return script_sentence("preprocess", failure) if failure else ""

    @property
    def names(self) -> list[Offered]:
        return samples.names_offered(self.sample, self.judge) if self.sample else []

    @property
    def responses(self) -> list[tuple[str, str, int, bool]]:
        return samples.response_choices(self.sample) if self.sample else []


def look(project: Project, before: MetricDefinition, typed: QueryDict) -> Look:
    """The preview of what is typed, on the row that is chosen in the same form."""
    texts = {name: str(typed[name]) for name in typed}
    definition, judge = typed_judge(before, typed)
    sample = samples.choose_sample(project, texts)
    prompt = preview_prompt(definition, judge, sample.item) if sample and definition.judges else None
    metric = texts.get("metric", "")
    metric_id = int(metric) if metric.isdecimal() and len(metric) < 16 else None
    scripts = script_runs(definition, sample, metric_id, texts.get("sample_reply", ""))
    return Look(definition, judge, sample, prompt, list(samples.versions_offered(project)), scripts)


def typed_judge(before: MetricDefinition, typed: QueryDict) -> tuple[MetricDefinition, int]:
    """The definition as it is typed, and which of its judge models is looked at."""
    definition = typed_definition(typed, before) if typed else before
    chosen = typed.get("row_judge", "")
    known = chosen.isdecimal() and len(chosen) < 4 and int(chosen) < len(definition.judges)
    return definition, int(chosen) if known else 0


def definition_at(project: Project, metric: str, number: str, start: str = "") -> MetricDefinition:
    """The definition that a form began with: version `number` of a metric, or a starting point."""
    found = MetricVersion.objects.filter(
        metric__project=project, metric=whole(metric) or 0, number=whole(number) or 0
    ).first()
    if found is not None:
        return MetricDefinition.from_json(found.definition)
    return starting_definition(start, "")


@dataclass(frozen=True, slots=True)
class Tried:
    """A trial in words."""

    trial: Trial
    sample: Sample | None
    sentence: str
    money: float | None = None  # None where the endpoint has no prices
    currency: str = ""
    about: str = ""  # which line of a rule program

    @property
    def request_json(self) -> str:
        return json.dumps(self.trial.request, ensure_ascii=False, indent=2)


def try_on(look: Look, forms: MetricForms) -> Iterator[Text | Waiting | Trial]:
    """Send the prompt that is shown to the judge model that is chosen, with the parameters that are typed."""
    if look.prompt is None or look.prompt.failed or look.script_error:
        yield Trial({}, code="no_prompt")
        return
    form = forms.judges[look.judge]
    if not form.is_valid():
        yield Trial({}, code="no_endpoint" if "endpoint" in form.errors else "form_errors")
        return
    judge: JudgeModel = form.result()
    settings, code, detail = trying.settings_for(judge)
    if settings is None:
        yield Trial({}, code=code, detail=detail)
        return
    yield from trying.try_prompt(settings, look.definition, judge, look.prompt.text)


def tried(look: Look, trial: Trial) -> Tried:
    sentence = reason_sentence(trial.code, trial.detail, "prompt") if trial.code else ""
    asked = look.definition.judges[look.judge].endpoint if look.definition.judges else None
    money, currency = cost_of(trial, asked)
    return Tried(trial, look.sample, sentence, money, currency)


def cost_of(trial: Trial, asked: int | None) -> tuple[float | None, str]:
    """What the reply has cost by the prices of the endpoint that was asked, and their currency."""
    if trial.asked is None or trial.asked.reply is None:
        return None, ""
    endpoint = Endpoint.objects.filter(pk=asked).first() if asked else None
    if endpoint is None or endpoint.price_read is None or endpoint.price_written is None:
        return None, ""
    spent = cost_of_reply(
        trial.asked.reply, False, (float(endpoint.price_read), float(endpoint.price_written))
    )
    return spent.money / MILLION, endpoint.currency


def events(look: Look, forms: MetricForms) -> Iterator[bytes]:
    """The trial as lines of JSON for the page's module: pieces of text, at the end the result as HTML."""
    language = translation.get_language()
    for told in try_on(look, forms):
        event: dict[str, Any]
        with translation.override(language):
            if isinstance(told, Text):
                event = {"kind": told.kind, "text": told.text}
            elif isinstance(told, Waiting):
                event = {"kind": "wait", "text": waiting_sentence(told)}
            else:
                html = render_to_string("metrics/_trial.html", {"tried": tried(look, told)})
                event = {"kind": "end", "html": html}
        yield json.dumps(event).encode() + b"\n"


def waiting_sentence(waits: Waiting) -> str:
    """What a trial is kept waiting by."""
    if waits.code == "held_slots":
        return _("Waiting for a free slot: runs use all the calls that this endpoint takes at a time.")
    time = duration(waits.seconds)
    if waits.code == "held_closed":
        return _("Waiting %(time)s: the server asked to be left alone so long.") % {"time": time}
    return _("Waiting %(time)s for the endpoint's requests or tokens per minute.") % {"time": time}


def tried_at_once(look: Look, forms: MetricForms) -> Tried:
    """The trial as a whole, for a page without scripts."""
    *_pieces, last = try_on(look, forms)
    assert isinstance(last, Trial)
    return tried(look, last)


@dataclass(frozen=True, slots=True)
class Past:
    """A way of reading tried on past replies to the form's judge model of this number; or what is wrong with it."""

    number: int
    replies: list[PastReply]
    error: str = ""


def past_replies(metric: Metric | None, before: MetricDefinition, typed: QueryDict) -> Past | None:
    """The parser that is typed for the judge model that `read` names; None where none is asked for."""
    which = typed.get("read", "")
    if metric is None or not which.isdecimal() or len(which) > 3:
        return None
    number, prefix = int(which), f"judge-{which}-"
    kind, pattern = typed.get(f"{prefix}parse", "score"), typed.get(f"{prefix}pattern", "")
    scale = typed_definition(typed, before)
    try:
        parser = make_parser(
            {kind: pattern} if kind in ("regex", "json_path") else kind, scale.min_score, scale.max_score
        )
    except ParserError as error:
        return Past(number, [], str(FILE_PROBLEMS[error.code]) % {"detail": localized(error.detail)})
    return Past(number, tried_on_metric(metric, number, parser) if number < len(before.judges) else [])
