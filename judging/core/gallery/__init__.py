"""The metric gallery: ready-made metrics to choose from, each a folder in metrics/ (docs/gallery.md).

`card.yaml` has the keys of `Card`, `examples.jsonl` a line for each `Example`, `record.json` what was measured, `{}` if
nothing was. The folders are read when the gallery is first used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl, urlencode

import msgspec

from datasets.core.kinds import CHECKLIST, COMPARISON
from datasets.core.variables import computed
from judging.core.answer_format import Language
from judging.core.builtin import BUILTINS, PAIR, Builtin, with_reference
from judging.core.gallery.fields import FIELDS, MappedField
from judging.core.gallery.prompt import composed
from judging.core.gallery.record import Record
from judging.core.metric_definition import JudgeModel, MetricDefinition, Script
from judging.core.results import JudgedItem
from judging.core.values import Value

FOLDER = Path(__file__).with_name("metrics")
LANGUAGES: tuple[Language, ...] = ("en", "zh")
Task = Literal[
    "template", "general", "rag", "chat", "code", "translation", "summary", "agent", "safety", "format"
]
TASKS: tuple[Task, ...] = (
    *("template", "general", "rag", "chat", "code"),
    *("translation", "summary", "agent", "safety", "format"),
)
_COLUMN = re.compile(r"^COLUMN = .*$", re.MULTILINE)
_PASSES = {"pass": True, "fail": False}
EXAMPLE_COLUMNS = {"reference": "ref_answer"}
"""The columns of examples that are not named like their field."""


class InLanguages(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text in each language of the gallery."""

    en: str
    zh: str

    def text(self, language: Language) -> str:
        return self.zh if language == "zh" else self.en


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An answer to judge with the right verdict: `pass` or `fail`, a number, or a code of a comparison. `why`: what a
    judge would say; `reply`: its whole reply, where that is not `why` and a line with the verdict. `turns`: messages
    before the question, the user's first; `other`: the answer B of a comparison."""

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
    """A metric of the gallery. `builtin`: the built-in prompt that it is; else `asks`, `shows` and `decides` make one
    (prompt.py). `script`: Python that gives the value, after the judge if there is a prompt; its first line
    `COLUMN = …` names the column of the first of `fields`. `fields`: what a script reads of the row. `order`: the place
    among others of the task, which are else in the order of ids.
    """

    task: Task
    gives: str
    name: InLanguages
    sentence: InLanguages
    order: int = 0
    id: str = ""
    builtin: str = ""
    shows: list[str] = []
    asks: InLanguages | None = None
    decides: InLanguages | None = None
    own_form: bool = False
    script: str = ""
    fields: list[str] = []
    min_score: float = 1
    max_score: float = 10
    whole: bool = False
    examples: list[Example] = []
    record: Record = Record()

    @property
    def asks_judge(self) -> bool:
        return bool(self.builtin or self.asks)

    @property
    def compares_candidates(self) -> bool:
        return self.gives == COMPARISON and (self.builtin.endswith(PAIR) or "answers" in self.shows)

    @property
    def calls(self) -> int:
        """Requests for one answer, or one pair of them; a checklist's are counted by criterion."""
        return int(self.asks_judge) * (2 if self.compares_candidates else 1)

    @property
    def mapped_fields(self) -> list[str]:
        """The fields that are taken from a column of the data set (fields.py), in the order of the prompt."""
        builtin = self.builtin and "data.ref_answer" in BUILTINS[f"{self.builtin}.en"].source
        names = [name for name in self.shows if name in FIELDS]
        return ["reference"] if builtin else list(dict.fromkeys([*names, *self.fields]))

    @property
    def field_specs(self) -> dict[str, MappedField]:
        """What is known of each field in `mapped_fields`."""
        return {name: FIELDS[name] for name in self.mapped_fields}

    def item(self, example: Example) -> JudgedItem:
        """What this metric judges in an example. Fields that it reads and the row lacks are None."""
        answer = {"content": example.answer, "tool_calls": example.tool_calls}
        other = {"content": example.other} if self.compares_candidates else None
        lacking = dict.fromkeys(EXAMPLE_COLUMNS.get(name, name) for name in self.mapped_fields)
        return JudgedItem(lacking | example.data, answer, other=other)

    def example_mapping(self, examples: Sequence[Example]) -> dict[str, str]:
        """The columns of examples, which are named like the fields but for the reference; those that none has are left
        out."""
        columns = {name: EXAMPLE_COLUMNS.get(name, name) for name in self.mapped_fields}
        present = {column for example in examples for column in example.row}
        return {name: column for name, column in columns.items() if column in present}

    def template(self, language: Language, mapping: Mapping[str, str]) -> str:
        """The prompt; '' without a judge."""
        if self.builtin:
            return _of_reference(BUILTINS[f"{self.builtin}.{language}"], mapping.get("reference", ""))
        if self.asks is None or self.decides is None:
            return ""
        return composed(
            self.asks.text(language),
            self.decides.text(language),
            self.shows,
            mapping,
            language,
            own_form=self.own_form,
        )

    def definition(self, language: Language, mapping: Mapping[str, str]) -> MetricDefinition:
        """The metric, with the columns of `mapping` by field; its judge has no endpoint yet."""
        pair = self.compares_candidates
        judge = JudgeModel(name="", template=self.template(language, mapping), both_orders=pair)
        low, high = _scale(self)
        return MetricDefinition(
            name=self.name.text(language),
            min_score=low,
            max_score=high,
            gives=self.gives,
            whole=self.whole,
            compares="all" if pair else "reference",
            judges=(judge,) if self.asks_judge else (),
            scripts=(self._script(mapping),) if self.script else (),
            ask_again=int(self.asks_judge and not self.script),
            structured="off" if self.script else "auto",
        )

    def _script(self, mapping: Mapping[str, str]) -> Script:
        source = self.script
        if self.fields and (column := mapping.get(self.fields[0])):
            source = _COLUMN.sub(lambda _match: f"COLUMN = {column!r}", source, count=1)
        judged = self.asks_judge
        return Script(kind="postprocess" if judged else "preprocess", source=source, after=int(judged))


def _scale(card: Card) -> tuple[float, float]:
    if card.gives == CHECKLIST:
        return 0, 1
    return (1, 5) if card.gives == COMPARISON else (card.min_score, card.max_score)


def _of_reference(builtin: Builtin, column: str) -> str:
    return with_reference(builtin.source, column) if column and column != "ref_answer" else builtin.source


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
    file, record = folder / "examples.jsonl", _RECORD.decode((folder / "record.json").read_bytes())
    examples = read_examples(file.read_bytes()) if file.exists() else []
    return msgspec.structs.replace(card, id=folder.name, examples=examples, record=record)


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
    mapping = {key: column for key, column in parse_qsl(columns) if key in card.mapped_fields}
    return Start(card, language, mapping)


def searched(text: str) -> Iterator[Card]:
    """The cards whose name or sentence contains each word of a text, in either language."""
    words = text.casefold().split()
    for card in gallery().values():
        about = " ".join((card.name.en, card.name.zh, card.sentence.en, card.sentence.zh)).casefold()
        if all(word in about for word in words):
            yield card
