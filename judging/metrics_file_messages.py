"""What is wrong in a metrics file, as sentences in the reader's language."""

from __future__ import annotations

from django.utils.translation import gettext as _

from judging.core.metrics_file import MetricsFileError
from judging.core.rules.program import Problem as RuleProblem
from judging.core.rules.program import SourcePlace
from judging.core.yaml_tree import YamlProblem
from judging.messages import FILE_PROBLEMS
from judging.rule_messages import problem_sentence


def metrics_file_sentences(error: MetricsFileError) -> list[str]:
    """One line for each problem: its place, what is wrong, what is wanted."""
    return [
        _("line %(line)s: %(sentence)s") % {"line": problem.line, "sentence": _problem_sentence(problem)}
        for problem in error.problems
    ]


def _problem_sentence(problem: YamlProblem) -> str:
    if problem.code == "rules_error":
        return str(FILE_PROBLEMS[problem.code]) % {**problem.params, "sentence": _in_rules(problem.params)}
    sentence = str(FILE_PROBLEMS[problem.code]) % problem.params
    near = problem.params.get("near")
    return (
        _("%(sentence)s Did you mean “%(near)s”?") % {"sentence": sentence, "near": near}
        if near
        else sentence
    )


def _in_rules(params: dict[str, str]) -> str:
    """What is wrong in a rule program."""
    place = SourcePlace(int(params["rule_line"]), int(params["rule_column"]))
    return problem_sentence(RuleProblem(params["rule_code"], place, params))
