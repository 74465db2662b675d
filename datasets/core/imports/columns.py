"""Maps table columns: specified as `question=…,answer:MODEL=…`, or guessed from the names."""

import csv
import io
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any
from urllib.parse import unquote

from datasets.core.imports.chat import chat, text_in
from datasets.core.imports.choices import CHOICES, in_json, is_choice_text, letter_number
from datasets.core.imports.model import Becomes, NotUsable
from datasets.core.imports.outputs import outputs_in

Record = dict[str, Any]


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Column names in English and Chinese. The first match in a table is used. Comparison ignores case and treats blanks,
# `_` and `-` alike.

_QUESTION = _names(
    "question prompt instruction query user_prompt user input input_text problem task request 问题 "
    "提问 题目 题干 指令 提示词 输入 用户输入 用户问题 query_text text content 文本 内容"
)
_CONTINUED = _names("input context 输入 补充输入")
_MESSAGES = _names(
    "messages conversations conversation chat dialog dialogue 对话 body.messages request.messages "
    "request.body.messages input.messages"
)
_SYSTEM = _names("system system_prompt 系统提示词 系统提示 系统")
_REFERENCE = _names(
    "reference ref_answer reference_answer expected expected_output expected_answer ideal gold "
    "golden gold_answer golden_answer ground_truth groundtruth gt target label correct_answer "
    "correct best_answer solution 参考答案 标准答案 正确答案 答案 参考 参考回答"
)
_MODEL = _names(
    "model model_name model_id generator llm response.body.model response.model request.model 模型 模型名称 模型名"
)
_ANSWER = _names(
    "response.body.choices.message.content response.choices.message.content choices.message.content "
    "response.body.choices.text response.choices.text response.message.content "
    "answer response output completion model_output "
    "model_answer model_response prediction generation generated_text generated reply result 回答 "
    "回复 输出 模型回答 模型输出 模型回复"
)
_OUTPUTS = _names("model_outputs outputs model_responses responses")
_QUESTION_KEYS = frozenset((*_QUESTION, *_MESSAGES))
_RUBRIC = _names("rubric rubrics checklist 评分细则 检查表")
_SCORE = _names("score rating grade points 分数 得分 评分 打分")
_BATCH_ID = "custom_id"
_CHOSEN = (("answer", CHOICES), ("Answer", CHOICES.title()))
PREFERENCE = ("chosen", "rejected")
"""The better and the worse answer of a preference data set: its models' names too."""
_MODEL_FAMILIES = re.compile(
    r"^(gpt|chatgpt|o[1-9]\b|claude|gemini|gemma|llama|mi[sx]tral|qwen|deepseek|glm|chatglm|yi-|baichuan|ernie|kimi|"
    r"doubao|hunyuan|phi-|grok|command-r|internlm|vicuna|falcon|通义|文心|豆包|混元|"
    r"model[ _-]?[a-z0-9]$|模型\s?[a-z0-9一二三四])",
    re.IGNORECASE,
)
_AROUND = r"[\s_\-:：.()（）\[\]【】]+"
_NO_MODEL = re.compile(
    r"^(id|no|idx|index|len|length|time|times?tamp|tokens?|count|type|date|format|key|url|lang|language|source|status|"
    r"score|rating|编号|长度|时间|类型|来源)$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Score:
    """A numeric column that scores a model's answer; `model` is '' if a column or the table names it."""

    metric: str
    column: str
    model: str = ""


SINGLE = ("messages", "outputs", "system", "reference", "rubric", "model", "answer")


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of columns, '' or () for none. The texts of `question` are joined by an empty line.

    Answers are either in `answers`, as (model, column) pairs, or in `answer`, whose model is in the column `model`;
    without one, the answer column's name is the model. An answer in the column of `messages` is the last reply there.
    `outputs` holds the answers of several models, `rubric` criteria, a line each where it is a text. `fields` holds
    (name, column) pairs; None takes all unused columns.
    """

    question: tuple[str, ...] = ()
    messages: str = ""
    system: str = ""
    reference: str = ""
    model: str = ""
    answer: str = ""
    answers: tuple[tuple[str, str], ...] = ()
    scores: tuple[Score, ...] = ()
    fields: tuple[tuple[str, str], ...] | None = None
    outputs: str = ""
    rubric: str = ""

    @property
    def roles(self) -> list[tuple[Becomes, str]]:
        """(what it becomes, column) of all columns that become something other than a field."""
        roles: list[tuple[Becomes, str]] = [("question", column) for column in self.question]
        roles += [("messages", self.messages), ("system", self.system), ("reference", self.reference)]
        roles += [("outputs", self.outputs), ("rubric", self.rubric)]
        roles += [("model", self.model), ("answer", self.answer)]
        roles += [("answer", column) for _model, column in self.answers]
        roles += [("verdict", score.column) for score in self.scores]
        return [(becomes, column) for becomes, column in roles if column]

    @property
    def used(self) -> list[str]:
        return [column for _becomes, column in self.roles]

    def fields_of(self, columns: Sequence[str]) -> list[tuple[str, str]]:
        """(name, column) of the custom fields. Using a part of an object (`a.b`) excludes the whole object."""
        if self.fields is not None:
            return list(self.fields)
        used = set(self.used)
        whole = {name.split(".")[0] for name in used if name not in columns or "." in name}
        own = [name for name in columns if "." not in name or name.split(".")[0] not in columns]
        return [(name, name) for name in own if name not in used and name not in whole]

    def checked(self, columns: Sequence[str]) -> "Columns":
        """Return self if the table has these columns and one is a question; else raise NotUsable."""
        named = [*self.used, *(column for _name, column in self.fields or ())]
        missing = next((name for name in named if name not in columns), None)
        if missing is not None:
            raise NotUsable("no_such_column", column=missing, columns=", ".join(columns[:50]))
        if not (self.question or self.messages):
            raise NotUsable("no_question_column", columns=", ".join(columns[:50]))
        return self

    def __str__(self) -> str:
        """Format as for `--columns`; `parse` reads it back."""
        pairs = [("question", column) for column in self.question]
        pairs += [(name, str(getattr(self, name))) for name in SINGLE if getattr(self, name)]
        pairs += [(f"answer:{_escaped(model)}", column) for model, column in self.answers]
        for score in self.scores:
            of = f"@{_escaped(score.model)}" if score.model else ""
            pairs.append((f"score:{_escaped(score.metric)}{of}", score.column))
        pairs += [(f"field:{_escaped(name)}", column) for name, column in self.fields or ()]
        if self.fields == ():
            pairs.append(("field", ""))
        return ",".join(_quoted(f"{what}={column}") for what, column in pairs)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',"\n\r') else text


def _escaped(name: str) -> str:
    """Escape the characters that have a meaning in a mapping."""
    return name.replace("%", "%25").replace("=", "%3D").replace("@", "%40")


def parse(text: str) -> Columns:
    """Parse `question=A,answer:MODEL=B,…`; a part with a comma is double-quoted. Raises NotUsable.

    `field:NAME=COLUMN` keeps only those columns, `field=` none; by default all unused columns are kept.
    """
    columns = Columns()
    for part in next(csv.reader(io.StringIO(text, newline="")), []):
        what, equals, column = part.strip().partition("=")
        if not equals:
            raise NotUsable("columns_not_understood", part=part)
        columns = _with(columns, what.strip(), column.strip(), part)
    return columns


def _with(columns: Columns, what: str, column: str, part: str) -> Columns:
    kind, _colon, name = what.partition(":")
    if what == "question":
        return replace(columns, question=(*columns.question, column))
    if what in SINGLE:
        single: dict[str, Any] = {what: column}
        return replace(columns, **single)
    if kind == "answer" and name:
        return replace(columns, answers=(*columns.answers, (unquote(name), column)))
    if kind == "score" and name:
        metric, _at, model = name.partition("@")
        return replace(columns, scores=(*columns.scores, Score(unquote(metric), column, unquote(model))))
    if kind == "field":
        more = ((unquote(name) or column, column),) if column else ()
        return replace(columns, fields=(*(columns.fields or ()), *more))
    raise NotUsable("columns_not_understood", part=part)


@dataclass(slots=True)
class Look:
    """What a column holds, over all records: the number of its values, and whether any is a text, an object or a list
    with a text (`readable`), an object (`objects`), or a list of messages (`conversations`).

    `outputs`: all are the outputs of several models. `numbers`: all are numbers; `whole`: all are whole ones; `chats`:
    all may be lists of messages. `choices` counts those that name a choice beside them by its number, letter or text,
    `choice_texts` those by its text.
    """

    values: int = 0
    readable: bool = False
    objects: bool = False
    conversations: bool = False
    outputs: bool = True
    numbers: bool = True
    whole: bool = True
    chats: bool = True
    choices: int = 0
    choice_texts: int = 0

    def add(self, value: Any) -> None:
        self.values += 1
        if isinstance(value, str):
            self.readable, self.outputs = True, False
            self.chats = self.chats and value.lstrip().startswith("[")
        elif isinstance(value, dict | list):
            self._add_part(value)
        else:
            self.readable, self.outputs, self.chats = True, False, False
        if self.numbers:
            self.numbers = (counted := number(value)) is not None
            self.whole = self.whole and counted is not None and counted.is_integer()

    def _add_part(self, value: dict[str, Any] | list[Any]) -> None:
        """What is known already is not looked at again, as it takes time."""
        self.chats = self.chats and isinstance(value, list)
        self.objects = self.objects or isinstance(value, dict)
        if not self.conversations and isinstance(value, list):
            self.conversations = bool(chat(value)[0])
        self.outputs = self.outputs and outputs_in(value) is not None
        self.readable = self.readable or text_in(value) is not None

    def add_choice(self, value: Any, choices: list[Any]) -> None:
        """Count a value that was added, beside these choices."""
        is_text = is_choice_text(value, choices)
        self.choice_texts += is_text
        self.choices += is_text or is_whole(value) or letter_number(value) is not None

    @property
    def all_numbers(self) -> bool:
        return self.values > 0 and self.numbers

    @property
    def all_whole(self) -> bool:
        return self.values > 0 and self.numbers and self.whole

    @property
    def all_chats(self) -> bool:
        return self.values > 0 and self.chats

    @property
    def all_outputs(self) -> bool:
        return self.values > 0 and self.outputs

    @property
    def all_choice_texts(self) -> bool:
        return 0 < self.values == self.choice_texts

    @property
    def all_choices(self) -> bool:
        return 0 < self.values == self.choices

    @property
    def any_text(self) -> bool:
        return self.values == 0 or self.readable

    @property
    def settled(self) -> bool:
        """Whether no further value of a cell in a text, a sheet or a typed column can change it."""
        undecided = self.outputs or self.numbers or self.chats or self.choices
        return self.readable and not undecided


Looks = Mapping[str, Look]
SETTLING = 1_000
"""After as many records, most columns are known to hold texts."""


class LazyLooks(Looks):
    """What each column holds; all records are read only for a column that the first ones do not settle."""

    def __init__(self, records: Callable[[], Iterator[Record]]) -> None:
        self._records = records
        self._first = looks_of(islice(records(), SETTLING))
        self._is_whole = False

    def __getitem__(self, name: str) -> Look:
        if not (self._is_whole or self._first[name].settled):
            self._first, self._is_whole = looks_of(self._records()), True
        return self._first[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._first)

    def __len__(self) -> int:
        return len(self._first)


def looks_of(records: Iterable[Record]) -> defaultdict[str, Look]:
    """What each column holds in these records; empty cells count as none."""
    looks: defaultdict[str, Look] = defaultdict(Look)
    for record in records:
        for name, value in record.items():
            if value is not None and value != "":
                looks[name].add(value)
        count_choice(record, looks)
    return looks


def count_choice(record: Record, looks: defaultdict[str, Look]) -> None:
    """Count the answer of a record that has a list of choices."""
    for name, beside in _CHOSEN:
        answer, choices = record.get(name), in_json(record.get(beside))
        if answer not in (None, "") and isinstance(choices, list):
            looks[name].add_choice(answer, choices)


def names_question(names: Sequence[str]) -> bool:
    """Whether a column of these names holds questions or messages."""
    return not {_plain(name) for name in names}.isdisjoint(_QUESTION_KEYS)


def guess(columns: Sequence[str], looks: Looks | None = None) -> Columns:
    """Guess the mapping from the names and what the columns hold; what cannot be guessed stays empty."""
    seen = looks if isinstance(looks, LazyLooks) else defaultdict(Look, looks or {})
    left = _Left(list(columns))
    messages = left.take(_MESSAGES, lambda name: seen[name].all_chats or seen[name].conversations)
    preferred = [(name, name) for name in left.take_all(PREFERENCE)]
    outputs = left.take(_OUTPUTS, lambda name: seen[name].all_outputs)
    system, reference = left.take(_SYSTEM), left.take(_REFERENCE)
    reference = reference or _guessed_choice(left, seen)
    rubric = left.take(_RUBRIC, lambda name: not seen[name].all_numbers)
    model = left.take(_MODEL, lambda name: not seen[name].all_numbers)
    question = () if messages else _guessed_question(left)
    if len(question) == 1 and seen[question[0]].conversations:
        messages, question = question[0], ()
    answer = left.take([name for name in left.named(_ANSWER) if seen[name].any_text])
    outputs = outputs or ("" if answer else _guessed_outputs(left, seen))
    answers = preferred if model else preferred + _answers_of_models(left, seen)
    if answers and answer:
        answers, answer = [(answer, answer), *answers], ""
    if not question and not messages:
        if preferred and seen[PREFERENCE[0]].conversations:
            messages = PREFERENCE[0]
        elif answer:
            question = tuple(filter(None, [left.take([_BATCH_ID])]))
    if not (answer or answers or outputs):
        answer = left.take([name for name in left.named(_ANSWER) if seen[name].objects])
    named = model if answer else ""
    guessed = Columns(
        *(question, messages, system, reference, named, answer, tuple(answers)),
        outputs=outputs,
        rubric=rubric,
    )
    return replace(guessed, scores=tuple(_guessed_scores(left, guessed, seen)))


def _guessed_choice(left: "_Left", looks: Looks) -> str:
    """A column `answer` beside a list of choices that holds their numbers, letters or texts: the reference.

    Letters and texts beside the name of a model are its answers.
    """
    choices = [name for name in left.columns if _plain(name) == CHOICES]
    if not any(looks[name].all_chats for name in choices):  # a list, or its text in JSON
        return ""
    has_model = not {_plain(name) for name in left.columns}.isdisjoint(_MODEL)
    return left.take(
        ["answer"], lambda name: looks[name].all_whole or (looks[name].all_choices and not has_model)
    )


class _Left:
    """The columns that are not mapped yet."""

    def __init__(self, columns: list[str]) -> None:
        self.columns = columns
        self.taken: set[str] = set()

    def take(self, wanted: Iterable[str], fits: Callable[[str], bool] = lambda _name: True) -> str:
        """Remove and return the column with the first of these names; '' if none exists or it does not fit."""
        name = next(iter(self.named(wanted)), "")
        if not name or not fits(name):
            return ""
        self.columns.remove(name)
        self.taken.add(name)
        return name

    def named(self, wanted: Iterable[str]) -> list[str]:
        """The columns with these names, in the order of the names."""
        by_name = {_plain(name): name for name in reversed(self.columns)}
        return [by_name[_plain(want)] for want in wanted if _plain(want) in by_name]

    def parts_like_models(self, name: str) -> bool:
        """Whether a part of the objects in a column is called like a model."""
        parts = (part.removeprefix(f"{name}.") for part in self.columns if part.startswith(f"{name}."))
        return any(map(_MODEL_FAMILIES.match, parts))

    def take_all(self, wanted: Sequence[str]) -> list[str]:
        """Remove and return the columns with these names if all exist."""
        if not set(wanted) <= set(self.columns):
            return []
        for name in wanted:
            self.columns.remove(name)
        return list(wanted)


def _plain(name: str) -> str:
    return re.sub(r"[\s_\-]+", "_", name.strip().lower())


def _guessed_question(left: _Left) -> tuple[str, ...]:
    begun = left.take(_QUESTION)
    more = left.take(_CONTINUED) if _plain(begun) in ("instruction", "指令") else ""
    return tuple(name for name in (begun, more) if name)


def _guessed_outputs(left: _Left, looks: Looks) -> str:
    """A column of an answer that holds objects of models' names and answers."""
    names = (name for name in left.named(_ANSWER) if left.parts_like_models(name))
    return left.take([name for name in names if looks[name].all_outputs])


def _answers_of_models(left: _Left, looks: Looks) -> list[tuple[str, str]]:
    """(model, column) of columns like `answer_gpt-4`, `Claude 回答` or `qwen2.5-72b`."""
    answers = []
    opened = {name.split(".")[0] for name in left.taken}
    objects = set(left.named(_ANSWER))
    for name in list(left.columns):
        model = _beside(name, _ANSWER) or (name if _MODEL_FAMILIES.match(name) else "")
        whole = name.split(".")[0]
        is_part = "." in name and whole in opened | left.taken
        is_part = is_part or (whole in objects and not _MODEL_FAMILIES.match(model))
        if model and not is_part and not _NO_MODEL.match(model) and not looks[name].all_numbers:
            answers.append((model, name))
            left.columns.remove(name)
            left.taken.add(name)
    return answers


def _beside(name: str, words: Iterable[str]) -> str:
    """The part of a column's name before or after one of the words; '' if it contains none of them."""
    for word in words:
        apart = "" if not word.isascii() else _AROUND
        part = re.escape(word)
        match = re.fullmatch(rf"{part}{apart}(.+)|(.+?){apart}{part}[)）\]】]?", name.strip(), re.IGNORECASE)
        if match:
            return (match[1] or match[2]).strip(" _-:：.()（）[]【】")
    return ""


def _guessed_scores(left: _Left, columns: Columns, looks: Looks) -> Iterator[Score]:
    """Numeric columns named like a score, if it is clear which model's answer they score."""
    models = {_plain(model): model for model, _column in columns.answers}
    for name in left.columns:
        score = None
        if _plain(name) in _SCORE and (columns.answer or len(models) == 1):
            score = Score(name, name, next(iter(models.values()), ""))
        elif models and _plain(_beside(name, _SCORE)) in models:
            score = Score("score", name, models[_plain(_beside(name, _SCORE))])
        if score and looks[name].all_numbers:
            yield score


def number(value: Any) -> float | None:
    """A cell as a finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        parsed = float(value)
    except (ValueError, OverflowError):
        return None
    return parsed if math.isfinite(parsed) else None


def is_whole(value: Any) -> bool:
    """Whether a cell is a whole number."""
    counted = number(value)
    return counted is not None and counted.is_integer()
