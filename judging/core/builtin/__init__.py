"""The built-in judge prompts, each in Chinese and English, as files in this folder.

In a comparison A is the reference and B the response; `replies.with_sides_swapped` exchanges them. In a `pair` A and B
are two candidates' answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from datasets.core.kinds import CATEGORY, CHECKLIST, COMPARISON, PASS_FAIL, SCORE
from judging.core.answer_format import Language

PAIR = "pair"
GIVES = {
    "score": SCORE,
    "comparison": COMPARISON,
    "reference": SCORE,
    "pass_fail": PASS_FAIL,
    "category": CATEGORY,
    "checklist": CHECKLIST,
    PAIR: COMPARISON,
}
"""The kinds of templates, and the kind of verdict that each gives."""
_STEMS = (
    *(
        f"{turns}_{kind}"
        for turns in ("single_turn", "multi_turn")
        for kind in GIVES
        if (turns, kind) != ("single_turn", "checklist")
    ),
    f"reference_{PAIR}",
)
NAMES = tuple(f"{stem}.{language}" for stem in _STEMS for language in ("zh", "en"))


@dataclass(frozen=True, slots=True)
class Builtin:
    """A template with the settings needed to use it in a metric; `kind` is one of GIVES;
    `gives` is the kind of verdict."""

    name: str
    language: Language
    kind: str
    source: str
    gives: str

    @property
    def parse(self) -> str:
        """A judge's setting to read replies; those of other kinds are read as the metric's `gives` says."""
        return COMPARISON if self.gives == COMPARISON else SCORE


def builtin(name: str) -> Builtin:
    """The built-in template with this name, such as `single_turn_score.en`. Raises KeyError."""
    return BUILTINS[name]


def with_reference(source: str, field: str) -> str:
    """A template that takes its reference from another field of the row; absent, it counts as none. `gt` still takes
    the place of a blank one."""
    name = f"data.{field}" if field.isidentifier() else f"data[{field!r}]"
    return source.replace("data.ref_answer", f"({name} | default(none))")


def _load(name: str) -> Builtin:
    stem, _dot, ending = name.partition(".")
    language: Language = "zh" if ending == "zh" else "en"
    kind = PAIR if stem.endswith(PAIR) else stem.split("_turn_")[1]
    source = Path(__file__).with_name(f"{name}.jinja").read_text(encoding="utf-8")
    return Builtin(name, language, kind, source, GIVES[kind])


BUILTINS: dict[str, Builtin] = {name: _load(name) for name in NAMES}
