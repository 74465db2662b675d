"""What lint says of all references, beside the editor of rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from datasets.models import Version
from evalsite import engine
from evalsite.accounts.models import Project
from judging.core.rules.check import read_program
from judging.core.rules.lint import BREAKS_RULE, Lint, Minded
from judging.messages import reason_sentence as judge_sentence
from judging.metrics import linting, samples
from judging.metrics.judge_forms import unified
from judging.metrics.rules import linting as rule_linting
from judging.rule_messages import reason_sentence


@dataclass(frozen=True, slots=True)
class MindedShown:
    """A complaint in words; the sentence is about the first of its rows."""

    minded: Minded

    @property
    def sentence(self) -> str:
        return reason_sentence(self.minded.reason)

    @property
    def breaks_itself(self) -> bool:
        return self.minded.code == BREAKS_RULE

    @property
    def more(self) -> bool:
        return self.minded.rows > len(self.minded.first)


@dataclass(frozen=True, slots=True)
class LintShown:
    """`result` None: not looked at, or being looked at (`waits`)."""

    version: Version
    result: Lint | None = None
    waits: bool = False
    done: int = 0
    problem: str = ""
    worker_missing: str = ""  # see engine.obstacle

    @property
    def complaints(self) -> list[MindedShown]:
        return [MindedShown(one) for one in self.result.complaints] if self.result else []


def lint_shown(project: Project, typed: QueryDict, *, check: bool) -> LintShown | None:
    """None without a version to look through, or while the program has errors."""
    version = samples.chosen_version(project, {name: str(typed[name]) for name in typed})
    source, preprocess = (unified(str(typed.get(name, ""))) for name in ("rules", "preprocess"))
    if version is None or read_program(source).program is None:
        return None
    texts = source, preprocess if preprocess.strip() else ""
    kind = linting.Kind.RULES
    found = linting.begin(version, *texts, kind) if check else linting.known(version, *texts, kind)
    more: dict[str, Any] = {}
    if found is not None:
        waits = not found.result and not found.problem
        missing = engine.obstacle(engine.DATA) if waits and not linting.is_quick(version, kind) else ""
        more = {
            "result": rule_linting.from_json(found.result) if found.result else None,
            "waits": waits,
            "done": found.subjects_done,
            "problem": judge_sentence(found.problem) if found.problem else "",
            "worker_missing": missing,
        }
    return LintShown(version, **more)
