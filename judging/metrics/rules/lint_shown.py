"""What lint says of all references, beside the editor of rules."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import QueryDict

from evalsite.accounts.models import Project
from judging.core.rules.check import read_program
from judging.core.rules.lint import BREAKS_RULE, Lint, Minded
from judging.metrics import linting, samples
from judging.metrics.judge_forms import unified
from judging.metrics.lint_state import LintState
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
class LintShown(LintState):
    """What is known of the references under the program that is typed."""

    @property
    def result(self) -> Lint | None:
        return rule_linting.from_json(self.found) if self.found else None

    @property
    def complaints(self) -> list[MindedShown]:
        result = self.result
        return [MindedShown(one) for one in result.complaints] if result else []


def lint_shown(project: Project, typed: QueryDict, *, check: bool) -> LintShown | None:
    """None without a version to look through, or while the program has errors."""
    version = samples.chosen_version(project, {name: str(typed[name]) for name in typed})
    source, preprocess = (unified(str(typed.get(name, ""))) for name in ("rules", "preprocess"))
    if version is None or read_program(source).program is None:
        return None
    texts = source, preprocess if preprocess.strip() else ""
    kind = linting.Kind.RULES
    look = linting.begin if check else linting.known
    return LintShown.of(version, look(version, *texts, kind))
