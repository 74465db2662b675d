"""The format guide: the four formats with examples, and all possible findings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from datasets import uploads
from datasets.core.findings import CODES
from datasets.core.formats import FORMAT_NAMES, FORMAT_RULES
from datasets.core.repair.kinds import REPAIRS
from datasets.messages import JSON_PROBLEMS, WANTED, translated
from evalsite.names import join_sentences

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

EXAMPLE_LINES = 4
REQUIRED, OPTIONAL = True, False

_MESSAGES = _(
    "A list of {role, content}. Roles: system, user, assistant, tool; at least one message is the user's. “content” "
    "is a text, or a list of {type: “text”, text}. If the last message is the assistant's, it is the reference "
    "answer “gt”."
)
_OUTPUTS = _(
    "A list with one entry for each model: {model_name, responses}. “responses” is a list of {content, "
    "reasoning_content}; several are several answers to the same question. A model has the same name in every row."
)
_REFERENCE = _("The reference answer: any JSON value.")
_IDENTITY = _("A unique ID of the row. It matches answers attached later, and rows across versions.")
_PARAMETERS = _(
    "max_tokens, temperature, top_p, top_k, stop, seed, presence_penalty, frequency_penalty: when a run generates "
    "answers, these override the model's parameters for this row."
)
_FURTHER = _(
    "Kept as is, and available in prompts as data.NAME. question, gt and history are computed and take precedence."
)
_COMMON = (
    ("ref_answer", OPTIONAL, _REFERENCE),
    ("id", OPTIONAL, _IDENTITY),
    ("temperature, …", OPTIONAL, _PARAMETERS),
    (_("any other key"), OPTIONAL, _FURTHER),
)
_KEYS: dict[str, tuple[tuple[StrPromise | str, bool, StrPromise], ...]] = {
    "judge_only": (("messages", REQUIRED, _MESSAGES), ("model_outputs", REQUIRED, _OUTPUTS), *_COMMON),
    "infer_and_judge": (("messages", REQUIRED, _MESSAGES), *_COMMON),
    "legacy_jsonl": (
        (
            "conversation",
            REQUIRED,
            _("A list of turns {prompt, response}, both texts. The last response is the reference answer."),
        ),
        ("system", OPTIONAL, _("The system prompt, before the first turn: a text.")),
        (_("any other key"), OPTIONAL, _FURTHER),
    ),
    "legacy_csv": (
        ("prompt", REQUIRED, _("The question. Columns can be in any order and case.")),
        ("response", REQUIRED, _("The expected answer: the reference.")),
        ("system", OPTIONAL, _("The system prompt; empty if there is none.")),
        (_("any other column"), OPTIONAL, _FURTHER),
    ),
}


@dataclass(frozen=True, slots=True)
class FormatGuide:
    """One format; `keys` are (name, required, description), `example` the first lines of the sample."""

    code: str
    name: str
    rule: str
    keys: tuple[tuple[StrPromise | str, bool, StrPromise], ...]
    sample: Path
    example: str


@dataclass(frozen=True, slots=True)
class KindGuide:
    """One kind of finding, with its message and its repair ('' if there is none)."""

    code: str
    severity: str
    sentence: str
    repair: str


def formats() -> list[FormatGuide]:
    """The four formats in the order of the upload page."""
    samples = uploads.sample_files()
    return [
        FormatGuide(
            code,
            translated(FORMAT_NAMES[code]),
            translated(rule),
            _KEYS[code],
            samples[code],
            _example(samples[code]),
        )
        for code, rule in FORMAT_RULES.items()
    ]


def _example(path: Path) -> str:
    return "\n".join(path.read_text().splitlines()[:EXAMPLE_LINES])


def kinds() -> list[KindGuide]:
    """All kinds of findings, in the order of the table of findings."""
    return [
        KindGuide(
            code,
            kind.severity,
            _sentence(code),
            join_sentences(gettext(REPAIRS[name].label) for name in kind.repairs),
        )
        for code, kind in CODES.items()
    ]


class _Open(dict[str, object]):
    """Params that format as an ellipsis."""

    def __missing__(self, name: str) -> str:
        return "…"


def _sentence(code: str) -> str:
    several = _Open(met=3, missing=2) if code in ("csv.columns", "ref_answer.some_missing") else _Open()
    if code in ("field.shadowed", "field.misspelt"):
        several["rows"] = 2
    if code == "json.invalid":
        several["problem"] = JSON_PROBLEMS["unexpected"] % {"met": "…", "wanted": WANTED["comma_or_brace"]}
    return translated(CODES[code].sentence, several)
