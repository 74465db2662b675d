"""The metric gallery: ready-made metrics to choose from, each a folder in metrics/ (docs/gallery.md).

`card.yaml` has the keys of `Card`, `metric.en.yaml` and `metric.zh.yaml` are metrics files of one metric each,
`examples.jsonl` has a line for each `Example`, `record.json` says what was measured, `{}` if nothing was. The folders
are read when the gallery is first used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl, urlencode

import msgspec

from datasets.core.variables import computed
from judging.core.answer_format import Language
from judging.core.builtin import with_reference
from judging.core.gallery.columns import with_chosen_parts, with_columns
from judging.core.gallery.fields import FIELDS, MappedField
from judging.core.gallery.record import Record
from judging.core.metric_definition import MetricDefinition
from judging.core.metrics_file import read_metrics_file
from judging.core.results import JudgedItem
from judging.core.values import Value

FOLDER = Path(__file__).with_name("metrics")
LANGUAGES: tuple[Language, ...] = ("en", "zh")
Task = Literal[
    "platform",
    "template",
    "general",
    "rag",
    "chat",
    "code",
    "translation",
    "summary",
    "agent",
    "safety",
    "format",
]
TASKS: tuple[Task, ...] = (
    *("platform", "template", "general", "rag", "chat", "code"),
    *("translation", "summary", "agent", "safety", "format"),
)
_PASSES = {"pass": True, "fail": False}


class InLanguages(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text in each language of the gallery."""

    en: str
    zh: str

    def text(self, language: Language) -> str:
        return self.zh if language == "zh" else self.en


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An answer to judge with the right verdict: `pass` or `fail`, a number, or a code of a comparison. `why`: what a
    judge would say; `reply`: its whole reply, where that is not `why` and a line with the verdict. `met`: which
    criteria of the rubric a judge would say are met. `turns`: messages before the question, the user's first; `other`:
    the answer B of a comparison."""

    language: Language
    verdict: str | int | float
    question: str = ""
    turns: list[str] = []
    row: dict[str, Any] = {}
    answer: str = ""
    tool_calls: list[dict[str, Any]] | None = None
    other: str = ""
    why: str = ""
    reply: str = ""
    met: list[bool] = []

    @property
    def value(self) -> Value:
        """The verdict as a judgement's value."""
        return _PASSES.get(self.verdict, self.verdict) if isinstance(self.verdict, str) else self.verdict

    def messages(self) -> list[dict[str, str]]:
        """The row's messages, the question last."""
        roles = ("user", "assistant")
        turns = [*self.turns, self.question]
        return [{"role": roles[number % 2], "content": text} for number, text in enumerate(turns)]

    @property
    def data(self) -> dict[str, Any]:
        """The row as templates see it."""
        messages = self.messages()
        return {"messages": messages, "ref_answer": None} | self.row | computed(messages)


class Card(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A metric of the gallery. `needs`: what it reads of a row besides question and answer, by the names of
    fields.FIELDS; `order`: its place among others of the task, which are else in the order of ids. `metrics`: the
    metric in each language, whose prompts and scripts name the columns as `needs` does, but for the reference; its
    judge is at no endpoint."""

    id: str
    task: Task
    name: InLanguages
    sentence: InLanguages
    needs: list[str] = []
    order: int = 0
    metrics: dict[Language, MetricDefinition] = {}
    examples: list[Example] = []
    record: Record = Record()

    @property
    def gives(self) -> str:
        return self.metrics["en"].kind

    @property
    def asks_judge(self) -> bool:
        return bool(self.metrics["en"].judges)

    @property
    def compares_candidates(self) -> bool:
        return self.metrics["en"].compares_candidates

    @property
    def calls(self) -> int:
        """Requests for one answer, or one pair of them; a checklist's are counted by criterion."""
        return self.metrics["en"].calls

    @property
    def field_specs(self) -> dict[str, MappedField]:
        """What is known of each field in `needs`."""
        return {name: FIELDS[name] for name in self.needs}

    def item(self, example: Example) -> JudgedItem:
        """What this metric judges in an example. Fields that it reads and the row lacks are None."""
        answer = {"content": example.answer, "tool_calls": example.tool_calls}
        other = {"content": example.other} if self.compares_candidates else None
        lacking = dict.fromkeys(map(_column, self.needs))
        return JudgedItem(lacking | example.data, answer, other=other)

    def example_mapping(self, examples: Sequence[Example]) -> dict[str, str]:
        """The columns of examples, which are named like the fields but for the reference; those that none has are left
        out."""
        present = {column for example in examples for column in example.row}
        return {name: _column(name) for name in self.needs if _column(name) in present}

    def template(self, language: Language, mapping: Mapping[str, str]) -> str:
        """The prompts; '' without a judge."""
        return "\n\n".join(judge.template for judge in self.definition(language, mapping).judges)

    def definition(self, language: Language, mapping: Mapping[str, str]) -> MetricDefinition:
        """The metric, with the columns of `mapping` by field; its judge has no endpoint yet."""
        source = self.metrics[language]
        renamed = {_column(name): column for name, column in mapping.items() if column}
        return msgspec.structs.replace(
            source,
            judges=tuple(
                msgspec.structs.replace(judge, template=self._prompt(judge.template, mapping))
                for judge in source.judges
            ),
            scripts=tuple(
                msgspec.structs.replace(script, source=with_columns(script.source, renamed))
                for script in source.scripts
            ),
        )

    def _prompt(self, template: str, mapping: Mapping[str, str]) -> str:
        renamed = {name: column for name, column in mapping.items() if column and name != "reference"}
        prompt = with_columns(with_chosen_parts(template, mapping), renamed)
        reference = mapping.get("reference", "")
        return with_reference(prompt, reference) if reference and reference != "ref_answer" else prompt


def _column(name: str) -> str:
    """The column of a field in the gallery's own prompts, scripts and examples."""
    return "ref_answer" if name == "reference" else name


_CARD = msgspec.json.Decoder(Card)
_RECORD = msgspec.json.Decoder(Record)
_EXAMPLE = msgspec.json.Decoder(Example)


@cache
def gallery() -> dict[str, Card]:
    """All cards by id, in the order of tasks, and of names within one. Raises msgspec.ValidationError."""
    cards = {path.parent.name: _card(path.parent) for path in sorted(FOLDER.glob("*/card.yaml"))}
    return dict(sorted(cards.items(), key=lambda pair: (TASKS.index(pair[1].task), pair[1].order)))


def _card(folder: Path) -> Card:
    card = msgspec.yaml.decode((folder / "card.yaml").read_bytes(), type=_CARD.type)
    if card.id != folder.name:
        raise msgspec.ValidationError(f"{folder.name}: the id is {card.id}")
    return msgspec.structs.replace(
        card,
        metrics={language: _metric(folder, language) for language in LANGUAGES},
        examples=read_examples((folder / "examples.jsonl").read_bytes()),
        record=_RECORD.decode((folder / "record.json").read_bytes()),
    )


def _metric(folder: Path, language: Language) -> MetricDefinition:
    text = (folder / f"metric.{language}.yaml").read_text(encoding="utf-8")
    (metric,) = read_metrics_file(text, folder).metrics
    nowhere = {"name": "", "url": "", "model": ""}
    judges = tuple(msgspec.structs.replace(judge, **nowhere) for judge in metric.judges)
    return msgspec.structs.replace(metric, judges=judges)


def read_examples(lines: bytes) -> list[Example]:
    """The examples of JSON Lines; empty lines are left out. Raises msgspec.DecodeError, with the line in its notes."""
    examples = []
    for number, line in enumerate(lines.splitlines(), 1):
        try:
            examples += [_EXAMPLE.decode(line)] if line.strip() else []
        except msgspec.DecodeError as error:
            error.add_note(f"line {number}")
            raise
    return examples


class Start(NamedTuple):
    """What a new metric starts from: a card, the language of its prompt, and the columns for its fields."""

    card: Card
    language: Language
    mapping: Mapping[str, str]

    @property
    def text(self) -> str:
        """`correct.en`, or with columns `correct.en:reference=answer`."""
        columns = urlencode({name: column for name, column in self.mapping.items() if column})
        return f"{self.card.id}.{self.language}" + (f":{columns}" if columns else "")

    @property
    def definition(self) -> MetricDefinition:
        return self.card.definition(self.language, self.mapping)


def start_of(text: str) -> Start | None:
    """What `Start.text` names; None if there is no such card or language. Fields that the card doesn't read are left
    out."""
    name, _colon, columns = text.partition(":")
    card_id, _dot, ending = name.partition(".")
    card = gallery().get(card_id)
    language = next((language for language in LANGUAGES if language == ending), None)
    if card is None or language is None:
        return None
    mapping = {key: column for key, column in parse_qsl(columns) if key in card.needs}
    return Start(card, language, mapping)


def searched(text: str) -> Iterator[Card]:
    """The cards whose name or sentence contains each word of a text, in either language."""
    words = text.casefold().split()
    for card in gallery().values():
        about = " ".join((card.name.en, card.name.zh, card.sentence.en, card.sentence.zh)).casefold()
        if all(word in about for word in words):
            yield card
