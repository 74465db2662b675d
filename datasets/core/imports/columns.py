"""Maps table columns: specified as `question=…,answer:MODEL=…`, or guessed from the names."""

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from datasets.core.imports.model import Becomes, NotUsable

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
_MESSAGES = _names("messages conversations conversation chat dialog dialogue 对话 body.messages")
_SYSTEM = _names("system system_prompt 系统提示词 系统提示 系统")
_REFERENCE = _names(
    "reference ref_answer reference_answer expected expected_output expected_answer ideal gold "
    "golden gold_answer golden_answer ground_truth groundtruth gt target label correct_answer "
    "correct best_answer solution 参考答案 标准答案 正确答案 答案 参考 参考回答"
)
_MODEL = _names("model model_name model_id generator llm response.body.model 模型 模型名称 模型名")
_ANSWER = _names(
    "response.body.choices.message.content answer response output completion model_output "
    "model_answer model_response prediction generation generated_text generated reply result 回答 "
    "回复 输出 模型回答 模型输出 模型回复"
)
_SCORE = _names("score rating grade points 分数 得分 评分 打分")
_BATCH_ID = "custom_id"
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


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of columns, '' or () for none. The texts of `question` are joined by an empty line.

    Answers are either in `answers`, as (model, column) pairs, or in `answer`, whose model is in the column `model`;
    without one, the answer column's name is the model. `fields` holds (name, column) pairs; None takes all unused
    columns.
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

    @property
    def roles(self) -> list[tuple[Becomes, str]]:
        """(what it becomes, column) of all columns that become something other than a field."""
        roles: list[tuple[Becomes, str]] = [("question", column) for column in self.question]
        roles += [("messages", self.messages), ("system", self.system), ("reference", self.reference)]
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
        single = ("messages", "system", "reference", "model", "answer")
        pairs += [(name, str(getattr(self, name))) for name in single if getattr(self, name)]
        pairs += [(f"answer:{_escaped(model)}", column) for model, column in self.answers]
        for one in self.scores:
            of = f"@{_escaped(one.model)}" if one.model else ""
            pairs.append((f"score:{_escaped(one.metric)}{of}", one.column))
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
    made = Columns()
    for part in next(csv.reader(io.StringIO(text, newline="")), []):
        what, equals, column = part.strip().partition("=")
        if not equals:
            raise NotUsable("columns_not_understood", part=part)
        made = _with(made, what.strip(), column.strip(), part)
    return made


def _with(made: Columns, what: str, column: str, part: str) -> Columns:
    kind, _colon, name = what.partition(":")
    if what == "question":
        return replace(made, question=(*made.question, column))
    if what in ("messages", "system", "reference", "model", "answer"):
        single: dict[str, Any] = {what: column}
        return replace(made, **single)
    if kind == "answer" and name:
        return replace(made, answers=(*made.answers, (unquote(name), column)))
    if kind == "score" and name:
        metric, _at, model = name.partition("@")
        return replace(made, scores=(*made.scores, Score(unquote(metric), column, unquote(model))))
    if kind == "field":
        more = ((unquote(name) or column, column),) if column else ()
        return replace(made, fields=(*(made.fields or ()), *more))
    raise NotUsable("columns_not_understood", part=part)


def guess(columns: Sequence[str], first: Sequence[Record] = ()) -> Columns:
    """Guess the mapping from the names and first records; what cannot be guessed stays empty."""
    left = _Left(list(columns))
    messages = left.take(_MESSAGES, lambda name: _holds_messages(name, first))
    system, reference = left.take(_SYSTEM), left.take(_REFERENCE)
    model = left.take(_MODEL, lambda name: not _holds_numbers(name, first))
    question = () if messages else _guessed_question(left)
    answer = left.take(_ANSWER, lambda name: not _holds_objects(name, first))
    answers = [] if model else _answers_of_models(left, first)
    if answers and answer:
        answers, answer = [(answer, answer), *answers], ""
    if not question and not messages and answer:
        question = tuple(filter(None, [left.take([_BATCH_ID])]))
    found = Columns(question, messages, system, reference, model if answer else "", answer, tuple(answers))
    return replace(found, scores=tuple(_guessed_scores(left, found, first)))


class _Left:
    """The columns that are not mapped yet."""

    def __init__(self, columns: list[str]) -> None:
        self.columns = columns

    def take(self, wanted: Iterable[str], fits: Callable[[str], bool] = lambda _name: True) -> str:
        """Remove and return the column with the first of these names; '' if none exists or it does not fit."""
        by_name = {_plain(name): name for name in reversed(self.columns)}
        name = next((by_name[_plain(want)] for want in wanted if _plain(want) in by_name), "")
        if not name or not fits(name):
            return ""
        self.columns.remove(name)
        return name


def _plain(name: str) -> str:
    return re.sub(r"[\s_\-]+", "_", name.strip().lower())


def _guessed_question(left: _Left) -> tuple[str, ...]:
    begun = left.take(_QUESTION)
    more = left.take(_CONTINUED) if _plain(begun) in ("instruction", "指令") else ""
    return tuple(name for name in (begun, more) if name)


def _answers_of_models(left: _Left, first: Sequence[Record]) -> list[tuple[str, str]]:
    """(model, column) of columns like `answer_gpt-4`, `Claude 回答` or `qwen2.5-72b`."""
    found = []
    for name in list(left.columns):
        model = _beside(name, _ANSWER) or (name if _MODEL_FAMILIES.match(name) else "")
        if model and not _NO_MODEL.match(model) and not _holds_numbers(name, first):
            found.append((model, name))
            left.columns.remove(name)
    return found


def _beside(name: str, words: Iterable[str]) -> str:
    """The part of a column's name before or after one of the words; '' if it contains none of them."""
    for word in words:
        apart = "" if not word.isascii() else _AROUND
        part = re.escape(word)
        found = re.fullmatch(rf"{part}{apart}(.+)|(.+?){apart}{part}[)）\]】]?", name.strip(), re.IGNORECASE)
        if found:
            return (found[1] or found[2]).strip(" _-:：.()（）[]【】")
    return ""


def _guessed_scores(left: _Left, found: Columns, first: Sequence[Record]) -> Iterator[Score]:
    """Numeric columns named like a score, if it is clear which model's answer they score."""
    models = {_plain(model): model for model, _column in found.answers}
    for name in left.columns:
        if not _holds_numbers(name, first):
            continue
        if _plain(name) in _SCORE and (found.answer or len(models) == 1):
            yield Score(name, name, next(iter(models.values()), ""))
        elif models and _plain(_beside(name, _SCORE)) in models:
            yield Score("score", name, models[_plain(_beside(name, _SCORE))])


def number(value: Any) -> float | None:
    """A cell as a finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        made = float(value)
    except (ValueError, OverflowError):
        return None
    return made if math.isfinite(made) else None


def _holds_numbers(name: str, first: Sequence[Record]) -> bool:
    """Whether all non-empty cells in the first rows are numbers."""
    held = [row[name] for row in first if row.get(name) not in (None, "")]
    return bool(held) and all(number(value) is not None for value in held)


def _holds_objects(name: str, first: Sequence[Record]) -> bool:
    return any(isinstance(row.get(name), dict | list) for row in first)


def _holds_messages(name: str, first: Sequence[Record]) -> bool:
    held = [row[name] for row in first if row.get(name) not in (None, "")]
    return bool(held) and all(
        isinstance(value, list) or (isinstance(value, str) and value.lstrip().startswith("["))
        for value in held
    )
