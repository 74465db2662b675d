"""A judge written for a group of notes: the editor starts from the group's definition with its notes as worked
examples, and saving it stores labels of the answers for training."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

import msgspec
from django.utils.translation import ngettext

from datasets.models import Row
from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from evalsite.templatetags.show import number
from judging.core.builtin import builtin
from judging.core.leaks import first_leak
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.core.worked_examples import as_text
from judging.filters.row_filters import id_subquery
from judging.look.models import NoteGroup, TrainLabel
from judging.look.results import GroupView, LookResult
from judging.look.services import all_set_aside
from judging.metrics.editor.forms import starting_definition
from judging.metrics.models import Metric
from judging.records.row_texts import texts_of_rows
from judging.rule_messages import reader_language

KIND = "group"
"""The kind of this starting point: `group:<id>`."""
MOST_EXAMPLES = 6
LONGEST_EXAMPLE = 300
_TEXTS = {
    "en": {
        "task": "Judge one thing only: whether the answer has the fault “{name}”. Nothing else about it matters here.",
        "definition": "An answer has this fault if: {definition}",
        "reference": "If there is a reference answer, compare with it: other words for the same are no fault.",
        "examples": "Worked examples of this fault, with what people noted:",
        "example": "Example {number}\nQuestion: {question}{reference}\nAnswer: {answer}\nFAIL, because: {note}",
        "example_reference": "\nReference answer: {reference}",
        "verdict": "The answer fails if it has the fault “{name}”; otherwise it passes, whatever else is wrong.",
    },
    "zh": {
        "task": "只评判一件事：回答是否存在“{name}”这一问题。其他方面一概不考虑。",
        "definition": "符合以下描述的回答即存在这一问题：{definition}",
        "reference": "有参考答案时，请对照参考答案评判：意思相同而说法不同不算问题。",
        "examples": "存在这一问题的示例，以及人工批注：",
        "example": "示例 {number}\n问题：{question}{reference}\n回答：{answer}\n不通过，理由：{note}",
        "example_reference": "\n参考答案：{reference}",
        "verdict": "回答存在“{name}”这一问题即为不通过；否则即为通过，无论是否有其他错误。",
    },
}


_VALUES = re.compile(r"(?:\{%- set .*\n)+")
_REFERENCE = re.compile(r"\{% if has_reference -%\}\n-----.*?\{% endif -%\}\n", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Example:
    """A worked example: the beginnings of question, answer and reference ('' without one), and what a person noted."""

    question: str
    answer: str
    note: str
    reference: str = ""


class GroupStart:
    """The starting point of a metric: a group (metrics.editor.starting_points)."""

    def definition(self, project: Project, pk: int) -> MetricDefinition | None:
        view = _view(project, pk)
        if view is None:
            return None
        turns = "single" if view.group.look.version.format == "legacy_csv" else "multi"
        language = reader_language()
        start = f"{turns}_turn_pass_fail.{language}"
        references = any(answer.reference for answer in LookResult(view.group.look).answers)
        template = template_of(
            builtin(start).source,
            language,
            view.group.name,
            view.group.definition,
            examples_of(view),
            builtin(f"{turns}_turn_reference.{language}").source if references else "",
        )
        base = starting_definition(start, view.group.name)
        return msgspec.structs.replace(base, judges=(JudgeModel(name="", template=template),))

    def saved(self, project: Project, pk: int, metric: Metric, user: User) -> str:
        view = _view(project, pk)
        if view is None:
            return ""
        count = labels_store(view=view, metric=metric, user=user)
        stored = ngettext(
            "%(n)s answer that was looked at is now a training label of this metric and never part of a test.",
            "%(n)s answers that were looked at are now training labels of this metric and never part of a test.",
            count,
        )
        return stored % {"n": number(count)}


def _view(project: Project, pk: int) -> GroupView | None:
    groups = NoteGroup.objects.select_related("look__version", "look__run")
    group = groups.filter(pk=pk, look__project=project, look__version__deleted_at=None).first()
    if group is None or (group.look.run and group.look.run.deleted_at):
        return None
    group.look.project = project
    return next((view for view in LookResult(group.look).groups if view.group.pk == pk), None)


def examples_of(view: GroupView) -> list[Example]:
    """Up to six notes of the group, one an answer, never of rows that are set aside for tests, nor with a text that
    stands in one of these: a prompt that holds it is refused."""
    result, version = LookResult(view.group.look), view.group.look.version
    aside = all_set_aside(version)
    sealed = list(texts_of_rows(Row.objects.filter(pk__in=id_subquery(list(aside))), version.format))
    by_answer: dict[int, Example] = {}
    for note in view.notes:
        answer = result.by_note[note.pk]
        if answer.answer.row_id not in aside and note.text.strip():
            by_answer.setdefault(
                note.answer_id,
                Example(*map(_short, (answer.question, answer.text, note.text, answer.reference))),
            )
    usable = (example for example in by_answer.values() if not first_leak(_as_asked(example), sealed))
    return list(islice(usable, MOST_EXAMPLES))


def _as_asked(example: Example) -> str:
    return "\n".join((example.question, example.answer, example.note, example.reference))


def template_of(
    source: str, language: str, name: str, definition: str, examples: list[Example], referring: str = ""
) -> str:
    """A built-in template for pass or fail, with the group's fault in place of its criteria. `referring`: the built-in
    template that shows the row's reference, if this one is to show it, too.

    The material between the marking lines, and what the template says about it, stay as they are.
    """
    texts = _TEXTS[language]
    intro, _criteria, *material, _verdict, answer_format = source.strip().split("\n\n")
    parts = [intro, texts["task"].format(name=as_text(name))]
    if definition.strip():
        parts.append(texts["definition"].format(definition=as_text(definition.strip())))
    if (values := _VALUES.match(referring)) and (block := _REFERENCE.search(referring)):
        parts[0] = values[0] + parts[0]
        parts.append(texts["reference"])
        material[-1] = block[0] + material[-1]
    if examples:
        parts.append(texts["examples"])
        parts += [
            texts["example"].format(
                number=number,
                question=as_text(example.question),
                reference=texts["example_reference"].format(reference=as_text(example.reference))
                if example.reference
                else "",
                answer=as_text(example.answer),
                note=as_text(example.note),
            )
            for number, example in enumerate(examples, start=1)
        ]
    return "\n\n".join([*parts, *material, texts["verdict"].format(name=as_text(name)), answer_format, ""])


def labels_store(*, view: GroupView, metric: Metric, user: User) -> int:
    """Store the labels of the looked-at answers for a metric: FAIL for those of the group, PASS for all others, also
    those that failed otherwise. They are for training only. Returns their number."""
    result = LookResult(view.group.look)
    look = result.look
    notes = {note.answer_id: note.text for note in view.notes}
    aside = all_set_aside(look.version)
    labels = [
        TrainLabel(
            metric=metric,
            version=look.version,
            run=look.run,
            row_id=answer.answer.row_id,
            response_id=answer.answer.response_id,
            passed=answer.answer.pk not in notes,
            note=notes.get(answer.answer.pk, ""),
            created_by=user,
        )
        for answer in result.looked_at
        if answer.answer.row_id not in aside
    ]
    TrainLabel.objects.bulk_create(labels, ignore_conflicts=True)
    record(
        Action.TRAIN_LABELLED,
        project=look.project,
        thing=metric,
        by=user,
        group=view.group.name,
        answers=len(labels),
    )
    return len(labels)


def _short(text: str) -> str:
    whole = " ".join(text.split())
    return whole if len(whole) <= LONGEST_EXAMPLE else f"{whole[:LONGEST_EXAMPLE]}…"


GROUP_START = GroupStart()
