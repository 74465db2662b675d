"""The form of one judge model of a metric."""

from __future__ import annotations

from typing import Any

import msgspec
from django import forms
from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from datasets.core.kinds import COMPARISON, SCORE
from datasets.messages import translated
from evalsite.accounts.models import Project
from judging.core.judges.protocols import CHAT
from judging.core.metric_definition import JudgeModel, ParserSpec
from judging.core.metrics_file import MAX_REPEATS
from judging.core.paste_repair import repaired_pattern
from judging.core.prompts import names_of
from judging.core.reading.gives import Gives
from judging.core.replies import PARSER_PROBLEMS, ParserError, make_parser
from judging.core.sandbox.job import SandboxError, SandboxFailure
from judging.endpoints import selectors
from judging.endpoints.fields import JsonObjectField
from judging.endpoints.models import Endpoint
from judging.messages import localized, reason_sentence
from judging.sandboxes import preview_sandbox

MAX_TEMPLATE = 400_000  # characters

PARSERS = [
    ("", gettext_lazy("the verdict that the metric gives")),
    ("regex", gettext_lazy("the last match of a regular expression")),
    ("json_path", gettext_lazy("a value in a JSON reply")),
]


def unified(text: str) -> str:
    """Convert the CR LF line ends that browsers send to LF."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


class EndpointField(forms.ModelChoiceField):  # type: ignore[type-arg]  # Django's own takes none
    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.name} · {obj.model}"


def offer_endpoints(form: forms.BaseForm, project: Project, before: JudgeModel | None) -> QuerySet[Endpoint]:
    """Offer the project's endpoints in the form's field. An archived one, or the URL of a judge model imported without
    an endpoint, can be kept."""
    endpoints = selectors.endpoints_of(project)
    choice = form.fields["endpoint"]
    assert isinstance(choice, EndpointField)
    if before and before.endpoint:
        endpoints |= Endpoint.objects.filter(project=project, pk=before.endpoint)
    elif before and before.url:
        choice.required = False
        place = {"model": before.model, "url": before.url}
        choice.empty_label = _("%(model)s at %(url)s, as imported") % place
    choice.queryset = endpoints
    return endpoints


class CodeField(forms.CharField):
    """Source text, unchanged except for line ends."""

    def __init__(self, *, rows: int, **more: Any) -> None:
        widget = forms.Textarea(attrs={"rows": rows, "class": "mono", "spellcheck": "false"})
        super().__init__(strip=False, widget=widget, **more)

    def to_python(self, value: Any) -> Any:
        return unified(super().to_python(value) or "")


class JudgeForm(forms.Form):
    """The form for one judge model. `before`: the stored one, whose URL can't be changed here if it has no endpoint.

    Unless `checked`, errors are not shown.
    """

    endpoint = EndpointField(
        Endpoint.objects.none(), label=gettext_lazy("Judge model"), empty_label=gettext_lazy("choose one")
    )
    template = CodeField(rows=22, label=gettext_lazy("Prompt template"), max_length=MAX_TEMPLATE)
    parse = forms.ChoiceField(label=gettext_lazy("Read from the reply"), choices=PARSERS, required=False)
    pattern = forms.CharField(
        label=gettext_lazy("Expression or path"),
        required=False,
        strip=False,
        max_length=2000,
        help_text=gettext_lazy(
            "A regular expression whose first group is the verdict, or a JSON path such as result.score."
        ),
        widget=forms.TextInput(attrs={"class": "mono", "spellcheck": "false"}),
    )
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=200,
        required=False,
        help_text=gettext_lazy("The name reviewers see. Leave empty to use the endpoint's."),
    )
    repeats = forms.IntegerField(
        label=gettext_lazy("Repeats"), min_value=1, max_value=MAX_REPEATS, required=False, initial=1
    )
    both_orders = forms.BooleanField(
        label=gettext_lazy("Judge in both orders"),
        required=False,
        help_text=gettext_lazy(
            "Calls the judge a second time with the sides swapped, to cancel position bias."
        ),
    )
    system_prompt = CodeField(
        rows=3, label=gettext_lazy("System prompt"), required=False, max_length=MAX_TEMPLATE
    )
    params = JsonObjectField(
        label=gettext_lazy("Generation parameters"),
        help_text=gettext_lazy(
            'JSON object, for example {"temperature": 0}. Overrides the endpoint\'s parameters.'
        ),
    )

    def __init__(
        self,
        typed: QueryDict | None,
        *,
        project: Project,
        number: int,
        before: JudgeModel | None,
        checked: bool = True,
    ) -> None:
        self.before = before
        self.number = number
        self.token = str(number)
        prefix = f"judge-{number}"
        initial: dict[str, Any] = judge_initial(before) if before else {}
        if typed is not None and not checked:
            initial = {name: typed.get(f"{prefix}-{name}") for name in self.base_fields}
        super().__init__(typed if checked else None, prefix=prefix, initial=initial)
        endpoints = offer_endpoints(self, project, before)
        chosen = self.initial.get("endpoint") or (before and before.url)
        if typed is None and not chosen and len(endpoints) == 1:
            self.initial["endpoint"] = endpoints[0].pk  # the only choice

    def clean_template(self) -> str:
        source: str = self.cleaned_data["template"]
        failure = template_failure(source)
        if failure is not None:
            raise forms.ValidationError(prompt_sentence(failure))
        return source

    def parser(self, otherwise: str = SCORE) -> ParserSpec:
        values = self.cleaned_data
        return parser_spec(values.get("parse") or otherwise, values.get("pattern", ""))

    @property
    def repaired_pattern(self) -> str | None:
        """The regular expression with doubled backslashes undone; None if it looks correct."""
        is_regex = self["parse"].value() == "regex"
        return repaired_pattern(self["pattern"].value() or "") if is_regex else None

    def clean(self) -> dict[str, Any]:
        try:
            make_parser(self.parser(), Gives(SCORE))
        except ParserError as error:
            self.add_error("pattern", parser_problem(error))
        return self.cleaned_data

    def result(self, kind: str = SCORE, gives: str = SCORE) -> JudgeModel:
        """The judge model of a metric of this kind; `gives`: the same if the metric says it itself, otherwise ''. Call
        only after is_valid."""
        values = self.cleaned_data
        before = self.before or JudgeModel(name="", template="")
        parse = self.parser(SCORE if gives else written_parse(self.before, kind))
        judge = msgspec.structs.replace(
            with_endpoint(before, values["endpoint"]),
            template=values["template"],
            system_prompt=values["system_prompt"] or None,
            params=values["params"],
            parse=parse,
            repeats=values["repeats"] or before.repeats,
            both_orders=values["both_orders"] and COMPARISON in (gives, parse),
        )
        named = values["name"].strip()
        return msgspec.structs.replace(judge, name=named) if named and named != before.name else judge


def written_parse(before: JudgeModel | None, kind: str) -> str:
    """How replies are read in a metric that does not say what it gives."""
    if before is not None and isinstance(before.parse, str):
        return before.parse
    return COMPARISON if kind == COMPARISON else SCORE


def parser_spec(kind: str, pattern: str) -> ParserSpec:
    return {kind: pattern} if kind in ("regex", "json_path") else kind


def parser_problem(error: ParserError) -> str:
    return translated(PARSER_PROBLEMS[error.code], {"detail": localized(error.detail)})


def with_endpoint(judge: JudgeModel, endpoint: Endpoint | None) -> JudgeModel:
    """The judge model with `endpoint`. An imported one keeps its URL if none was selected."""
    if endpoint is None or endpoint.pk == judge.endpoint:
        return judge
    return msgspec.structs.replace(
        judge, endpoint=endpoint.pk, name=endpoint.name, url="", model="", protocol=CHAT, api_key_env=""
    )


def judge_initial(judge: JudgeModel) -> dict[str, Any]:
    kind, pattern = ("", "") if isinstance(judge.parse, str) else next(iter(judge.parse.items()))
    return {
        "endpoint": judge.endpoint,
        "name": judge.name,
        "repeats": judge.repeats,
        "both_orders": judge.both_orders,
        "template": judge.template,
        "system_prompt": judge.system_prompt or "",
        "params": judge.params,
        "parse": kind,
        "pattern": pattern,
    }


def template_failure(source: str) -> SandboxFailure | None:
    """The template's syntax error, if any. Compiled in the sandbox, since templates are untrusted."""
    try:
        return names_of(preview_sandbox(), source)[1]
    except SandboxError as error:
        return SandboxFailure("refused", str(error))


def prompt_sentence(failure: SandboxFailure) -> str:
    """A message on why a template could not be rendered, with its line."""
    place = _("line %(line)s: ") % {"line": failure.line} if failure.line else ""
    return reason_sentence(f"prompt_{failure.code}", place + localized(failure.message))
