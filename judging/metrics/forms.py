"""The form about a metric: one part for the metric, one for each of its judge models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from evalsite.accounts.models import Project
from judging.core.builtin import BUILTINS
from judging.core.pipeline import JudgeModel, MetricDefinition, ParserSpec
from judging.core.replies import ParserError, make_parser
from judging.messages import FILE_PROBLEMS, reason_sentence
from judging.metrics import preview, selectors
from judging.metrics.fields import JsonObjectField
from judging.metrics.models import Endpoint

MAX_TEMPLATE = 400_000  # characters
MAX_SCRIPT = 200_000
MAX_JUDGES = 20

PARSERS = [
    ("score", gettext_lazy("a score such as [[7]] or Score: 7")),
    ("comparison", gettext_lazy("a verdict such as [[A>B]]")),
    ("regex", gettext_lazy("the last match of a regular expression")),
    ("json_path", gettext_lazy("a value in a JSON reply")),
]


def code(rows: int) -> forms.Textarea:
    return forms.Textarea(attrs={"rows": rows, "class": "mono", "spellcheck": "false"})


def unified(text: str) -> str:
    """Browsers send line ends as CR LF; line numbers and templates want one character."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


class EndpointField(forms.ModelChoiceField):  # type: ignore[type-arg]  # Django's own takes none
    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.name} · {obj.model}"


class CodeField(forms.CharField):
    """Source text: kept to the character, but for line ends."""

    def __init__(self, *, rows: int, **more: Any) -> None:
        super().__init__(strip=False, widget=code(rows), **more)

    def to_python(self, value: Any) -> Any:
        return unified(super().to_python(value) or "")


class MetricForm(forms.Form):
    name = forms.CharField(label=gettext_lazy("Name"), max_length=200)
    min_score = forms.FloatField(label=gettext_lazy("Lowest score"), initial=1, min_value=-1e9, max_value=1e9)
    max_score = forms.FloatField(
        label=gettext_lazy("Highest score"), initial=10, min_value=-1e9, max_value=1e9
    )
    undefined = forms.ChoiceField(
        label=gettext_lazy("A name that a row does not have"),
        choices=[
            ("strict", gettext_lazy("is an error of that item (strict)")),
            ("lenient", gettext_lazy("is left empty (lenient)")),
        ],
    )
    sandbox = forms.ChoiceField(
        label=gettext_lazy("Scripts run"),
        required=False,
        choices=[
            ("batch", gettext_lazy("batch by batch (fast)")),
            ("item", gettext_lazy("each item in a process of its own")),
        ],
    )
    preprocess = CodeField(
        rows=8,
        label=gettext_lazy("Before: preprocess"),
        required=False,
        max_length=MAX_SCRIPT,
        help_text=gettext_lazy(
            "def preprocess(data, resp): called for each response; what it adds to data and resp, the template sees."
        ),
    )
    postprocess = CodeField(
        rows=8,
        label=gettext_lazy("After: postprocess"),
        required=False,
        max_length=MAX_SCRIPT,
        help_text=gettext_lazy(
            "def postprocess(judge_reqs, judge_resps, judge_models, data, resp, **kwargs): "
            "what it returns is the score."
        ),
    )

    def clean_preprocess(self) -> str:
        return self._script("preprocess")

    def clean_postprocess(self) -> str:
        return self._script("postprocess")

    def _script(self, kind: str) -> str:
        source: str = self.cleaned_data[kind]
        if not source.strip():
            return ""
        failure = preview.script_failure(kind, source)
        if failure is not None:
            raise forms.ValidationError(failure_sentence("script", failure))
        return source

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        if values.get("min_score", 0) >= values.get("max_score", 10**10):
            self.add_error("max_score", _("The highest score must be above the lowest."))
        return values


class JudgeForm(forms.Form):
    """One judge model. `before` is what is stored: its address, if it has no endpoint, cannot be changed here."""

    endpoint = EndpointField(
        Endpoint.objects.none(), label=gettext_lazy("Judge model"), empty_label=gettext_lazy("choose one")
    )
    template = CodeField(rows=22, label=gettext_lazy("Prompt template"), max_length=MAX_TEMPLATE)
    parse = forms.ChoiceField(label=gettext_lazy("Read from the reply"), choices=PARSERS)
    pattern = forms.CharField(
        label=gettext_lazy("Expression or path"),
        required=False,
        strip=False,
        max_length=2000,
        help_text=gettext_lazy(
            "A regular expression whose first group is the score, or a JSON path such as result.score."
        ),
        widget=forms.TextInput(attrs={"class": "mono", "spellcheck": "false"}),
    )
    system_prompt = CodeField(
        rows=3, label=gettext_lazy("System prompt"), required=False, max_length=MAX_TEMPLATE
    )
    params = JsonObjectField(
        label=gettext_lazy("Generation parameters"),
        help_text=gettext_lazy(
            'A JSON object such as {"temperature": 0}; it goes before the endpoint\'s own.'
        ),
    )

    def __init__(self, data: Any, *, project: Project, number: int, before: JudgeModel | None) -> None:
        self.before = before
        super().__init__(data, prefix=f"judge-{number}", initial=judge_initial(before) if before else None)
        endpoints = selectors.endpoints_of(project)
        if before and before.endpoint:  # an archived one stays chosen
            endpoints |= Endpoint.objects.filter(project=project, pk=before.endpoint)
        choice = self.fields["endpoint"]
        assert isinstance(choice, EndpointField)
        choice.queryset = endpoints
        if before and self.address:
            choice.required = False
            place = {"model": before.model, "url": before.url}
            choice.empty_label = _("%(model)s at %(url)s, as imported") % place

    @property
    def address(self) -> str:
        """The address of a judge model that was imported without an endpoint."""
        return self.before.url if self.before and not self.before.endpoint else ""

    def clean_template(self) -> str:
        source: str = self.cleaned_data["template"]
        failure = preview.template_failure(source)
        if failure is not None:
            raise forms.ValidationError(failure_sentence("prompt", failure))
        return source

    def parser(self) -> ParserSpec:
        kind = self.cleaned_data.get("parse") or "score"
        return {kind: self.cleaned_data.get("pattern", "")} if kind in ("regex", "json_path") else kind

    def clean(self) -> dict[str, Any]:
        try:
            make_parser(self.parser(), 1, 10)
        except ParserError as error:
            self.add_error("pattern", str(FILE_PROBLEMS[error.code]) % {"detail": error.detail})
        return self.cleaned_data

    def result(self) -> JudgeModel:
        """Only of a valid form."""
        values = self.cleaned_data
        before = self.before or JudgeModel(name="", template="")
        judge = msgspec.structs.replace(
            before,
            template=values["template"],
            system_prompt=values["system_prompt"] or None,
            params=values["params"],
            parse=self.parser(),
            both_orders=before.both_orders and values["parse"] == "comparison",
        )
        return with_endpoint(judge, values["endpoint"])


def with_endpoint(judge: JudgeModel, endpoint: Endpoint | None) -> JudgeModel:
    """The judge model asking `endpoint`; an imported one keeps its address if none was chosen."""
    if endpoint is None or endpoint.pk == judge.endpoint:
        return judge
    return msgspec.structs.replace(
        judge, endpoint=endpoint.pk, name=endpoint.name, url="", model="", api_key_env=""
    )


@dataclass(slots=True)
class MetricForms:
    """All parts of the form together. `before` is the definition that it began with."""

    metric: MetricForm
    judges: list[JudgeForm]
    before: MetricDefinition

    def is_valid(self) -> bool:
        return all([self.metric.is_valid(), *[judge.is_valid() for judge in self.judges]])

    @property
    def has_errors(self) -> bool:
        return bool(self.metric.errors or any(judge.errors for judge in self.judges))

    def result(self) -> MetricDefinition:
        """Only of valid forms."""
        values = self.metric.cleaned_data
        return msgspec.structs.replace(
            self.before,
            name=values["name"],
            min_score=values["min_score"],
            max_score=values["max_score"],
            undefined=values["undefined"],
            sandbox=values["sandbox"] or "batch",
            preprocess=values["preprocess"],
            postprocess=values["postprocess"],
            judges=tuple(judge.result() for judge in self.judges),
        )


def metric_forms(data: Mapping[str, Any] | None, project: Project, before: MetricDefinition) -> MetricForms:
    """The forms for a definition, with what was typed if there is `data`."""
    initial = msgspec.structs.asdict(before)
    for name in ("min_score", "max_score"):
        initial[name] = f"{initial[name]:g}"
    judges = [
        JudgeForm(data, project=project, number=number, before=judge)
        for number, judge in enumerate(before.judges)
    ]
    return MetricForms(MetricForm(data, initial=initial), judges, before)


def typed_definition(data: Mapping[str, str], before: MetricDefinition) -> MetricDefinition:
    """What is being typed, for a preview: nothing is checked, and what cannot be read is as before."""
    judges = tuple(
        msgspec.structs.replace(judge, template=unified(data.get(f"judge-{number}-template", judge.template)))
        for number, judge in enumerate(before.judges)
    )
    return msgspec.structs.replace(
        before,
        judges=judges,
        undefined="lenient" if data.get("undefined") == "lenient" else "strict",
        preprocess=unified(data.get("preprocess", before.preprocess)),
        min_score=_float(data.get("min_score"), before.min_score),
        max_score=_float(data.get("max_score"), before.max_score),
    )


def _float(text: str | None, otherwise: float) -> float:
    try:
        return float(text or "")
    except ValueError:
        return otherwise


def judge_initial(judge: JudgeModel) -> dict[str, Any]:
    kind, pattern = (judge.parse, "") if isinstance(judge.parse, str) else next(iter(judge.parse.items()))
    return {
        "endpoint": judge.endpoint,
        "template": judge.template,
        "system_prompt": judge.system_prompt or "",
        "params": judge.params,
        "parse": kind,
        "pattern": pattern,
    }


def starting_definition(start: str, name: str) -> MetricDefinition:
    """A new metric's definition: from the built-in template called `start`, or blank."""
    builtin = BUILTINS.get(start)
    judge = (
        JudgeModel(name="", template=builtin.source, parse=builtin.parse)
        if builtin
        else JudgeModel(name="", template="")
    )
    scale = (1.0, 5.0) if builtin and builtin.parse == "comparison" else (1.0, 10.0)
    return MetricDefinition(name=name, min_score=scale[0], max_score=scale[1], judges=(judge,))


def failure_sentence(what: str, failure: Any) -> str:
    """A jail's failure with its line, as the run would tell it."""
    place = _("line %(line)s: ") % {"line": failure.line} if failure.line else ""
    return reason_sentence(f"{what}_{failure.code}", place + failure.message)
