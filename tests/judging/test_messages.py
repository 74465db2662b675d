"""Every code that can be shown to a user has a message."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from django.utils import translation

from judging.core import metrics_file, metrics_file_kind, replies, yaml_tree
from judging.core.judges.errors import ERROR_CODES
from judging.core.metrics_file import PROBLEMS, MetricsFileError, read_metrics_file
from judging.core.reading import reasons
from judging.core.reasons import ShownIn
from judging.core.sandbox import job
from judging.messages import KINDS, reason_sentence
from judging.metrics.transfer import metrics_file_sentences

SOURCES = Path(__file__).parents[2] / "judging"
SANDBOX_CODES = {*re.findall(r"``(\w+)``", (job.SandboxFailure.__doc__ or "").split("``message``")[0])} - {
    "code"
}


def codes_given_to(function_names: set[str], argument: int, *paths: Path) -> set[str]:
    """String constants passed to these functions at positional index `argument`."""
    found = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and getattr(node.func, "attr", getattr(node.func, "id", "")) in function_names
            ):
                value = node.args[argument] if len(node.args) > argument else None
                found |= {one.value for one in ast.walk(value or ast.Pass()) if isinstance(one, ast.Constant)}
    return {code for code in found if isinstance(code, str) and re.fullmatch(r"[a-z]+(_[a-z0-9]+)*", code)}


def test_the_sandbox_shows_its_codes() -> None:
    assert {"syntax", "timeout", "killed", "protocol"} <= SANDBOX_CODES


@pytest.mark.parametrize("code", sorted(ERROR_CODES))
def test_every_error_of_a_call_has_a_sentence(code: str) -> None:
    assert code in KINDS


@pytest.mark.parametrize("what", ["prompt", "script", "parser"])
def test_every_failure_of_the_sandbox_has_a_sentence(what: str) -> None:
    assert {f"{what}_{code}" for code in SANDBOX_CODES | {"undefined"}} <= set(KINDS)


@pytest.mark.parametrize(
    "code", [reasons.EMPTY, reasons.NOTHING_OFFERED, reasons.OUT_OF_RANGE, "waiting", "none_returned"]
)
def test_every_reply_without_a_score_has_a_sentence(code: str) -> None:
    assert code in KINDS


def test_every_failure_that_the_engine_makes_has_a_sentence() -> None:
    engine = [
        *(SOURCES / "engine").rglob("*.py"),
        *(SOURCES / "runs").rglob("*.py"),
        *(SOURCES / "endpoints").glob("*.py"),
        SOURCES / "core" / "pipeline.py",
    ]
    codes = codes_given_to({"Failure", "error", "unparsed"}, 0, *engine)
    assert {"internal", "no_judge", "key_missing"} <= codes <= set(KINDS)


def test_every_problem_of_a_metrics_file_has_a_sentence() -> None:
    files = [Path(module.__file__ or "") for module in (metrics_file, yaml_tree)]
    codes = codes_given_to({"wrong", "add"}, 1, *files)
    parser_codes = codes_given_to({"ParserError"}, 0, Path(replies.__file__))
    assert "unknown_key" in codes
    assert (codes | parser_codes) <= set(PROBLEMS)


@pytest.mark.parametrize("code", sorted(PROBLEMS))
def test_no_sentence_is_kept_for_a_problem_that_is_not_shown(code: str) -> None:
    sources = "".join(
        Path(module.__file__ or "").read_text()
        for module in (metrics_file, metrics_file_kind, yaml_tree, replies)
    )
    assert sources.count(f'"{code}"') > 1 or code.startswith("duplicate_")  # once in the table


def test_the_details_are_behind_the_sentence() -> None:
    with translation.override("en"):
        assert reason_sentence("connect", "refused").endswith("Details: refused")
        assert "(line 3)" in reason_sentence("prompt_syntax", "unexpected end (line 3)")


def test_an_unknown_code_is_shown_as_it_is() -> None:
    assert reason_sentence("of_tomorrow") == "of_tomorrow"


def test_a_problem_is_reported_with_its_line_and_what_was_meant() -> None:
    with pytest.raises(MetricsFileError) as caught:
        read_metrics_file("metrics:\n- {nme: a}", Path())
    with translation.override("en"):
        sentences = metrics_file_sentences(caught.value)
    assert sentences[0].startswith("line 2: Unknown key “nme”.")
    assert sentences[0].endswith("Did you mean “name”?")


def test_percent_signs_in_a_reason_do_no_harm() -> None:
    assert "100 %(x)s" in reason_sentence("connect", "100 %(x)s")


UNREAD = {code for name, code in vars(reasons).items() if name.isupper()} - {reasons.NO_MAJORITY}


@pytest.mark.parametrize("shown_in", ["prompt", "run", "rules"])
def test_every_reply_without_a_score_has_advice_wherever_it_is_shown(shown_in: ShownIn) -> None:
    assert {code for code, kind in KINDS.items() if shown_in in kind.advice} - {"not_integer"} == UNREAD


@pytest.mark.parametrize("shown_in", ["run", "rules"])
def test_only_where_a_prompt_is_tried_the_template_can_be_changed(shown_in: ShownIn) -> None:
    with translation.override("en"):
        assert "template" in reason_sentence("nothing_offered", shown_in="prompt")
        assert all("template" not in reason_sentence(code, shown_in=shown_in) for code in UNREAD)
        assert reason_sentence("nothing_offered", "3: topic", "rules").endswith("judge model. (3: topic)")


def test_advice_follows_a_chinese_sentence_without_a_blank() -> None:
    with translation.override("zh-hans"):
        assert "没有找到判定。请在模板中" in reason_sentence("nothing_offered", shown_in="prompt")
