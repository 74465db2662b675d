"""Sandbox errors are shown in the user's language and name the script and line."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.utils import translation

from judging.core.sandbox.job import SandboxLimits
from judging.core.sandbox.pool import Sandbox
from judging.core.scripts import failure_detail, load_failure, run_preprocess
from judging.messages import localized, reason_sentence
from judging.metrics.editor.scripts import script_sentence

ITEM = ({"x": 1}, {"content": "an answer"})
OF_PYTHON = (
    r"\b(?:preprocess|JSON|NUL|SIGKILL|NaN|nan|set|list|unheard|socket|data|resp|x|int|True|False|None)\b"
)
FAILING = {
    "no function": "x = 1",
    "a parameter": "def preprocess(unheard): pass",
    "an import": "import socket",
    "an import inside": "def preprocess(data):\n    import socket",
    "a field": "def preprocess(data): return data.unheard",
    "a list": "def preprocess(data): return [1]",
    "a long integer": "def preprocess(data): return 2 ** 70",
    "a long text": "def preprocess(data): return 'x' * 10 ** 6",
    "half a character": "def preprocess(data): return '\\ud800'",
    "a changed field": "def preprocess(data): data.x = {1}",
    "a key": "def preprocess(data): data[1] = 1",
    "long fields": "def preprocess(data): data.x = 'x' * 10 ** 6",
    "a loop": "def preprocess(data):\n    while True: pass",
    "memory": "def preprocess(data):\n    x = 'x' * 10 ** 10",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxLimits(seconds=0.2, memory_mb=128, output_kb=64)) as sandbox:
        yield sandbox


@pytest.mark.parametrize("source", FAILING.values(), ids=FAILING.keys())
def test_a_failure_of_a_script_has_no_english_left_in_a_chinese_page(source: str, sandbox: Sandbox) -> None:
    (outcome,) = run_preprocess(sandbox, source, [ITEM])
    assert outcome.failure is not None
    with translation.override("zh-hans"):
        text = script_sentence("preprocess", outcome.failure)
    own = re.sub(r"\b\w*Error\b|" + OF_PYTHON, "", text)
    assert re.findall(r"[A-Za-z]{2,}", own) == [], text


def test_a_line_is_the_scripts_own(sandbox: Sandbox) -> None:
    (outcome,) = run_preprocess(sandbox, "def preprocess(data):\n    x = 1\n    return 1 / 0", [ITEM])
    assert outcome.failure is not None
    detail = failure_detail("preprocess", outcome.failure)
    assert detail == "line 3 of the preprocess script: ZeroDivisionError: division by zero"
    with translation.override("zh-hans"):
        assert "preprocess 脚本第 3 行：ZeroDivisionError" in reason_sentence("script_exception", detail)


def test_what_python_says_stays_as_it_is() -> None:
    with translation.override("zh-hans"):
        assert localized("KeyError: 'more than 3 seconds'") == "KeyError: 'more than 3 seconds'"


@pytest.mark.parametrize(
    ("message", "chinese"),
    [
        ("SyntaxError: '(' was never closed", "SyntaxError: “(”没有闭合"),
        ("IndentationError: unexpected indent", "IndentationError: 多余的缩进"),
        ("expected token 'end of print statement', got 'x'", "应为“}}”，实际是“x”"),
        (
            "SyntaxError: expected an indented block after 'if' statement on line 3",
            "SyntaxError: 第 3 行的 if 语句之后应有缩进的代码",
        ),
        (
            "Unexpected end of template. Jinja was looking for the following tags: 'elif' or 'else' or 'endif'. "
            "The innermost block that needs to be closed is 'if'.",
            "模板提前结束；缺少 'elif' 或 'else' 或 'endif'，最内层未结束的是“if”",
        ),
        ("NameError: name 'foo' is not defined", "NameError：变量“foo”没有定义"),
        ("error: unterminated character set at position 2", "error: 位置 2 的字符集没有闭合"),
        ("Expecting ',' delimiter", "缺少逗号"),
        ("missing ), unterminated subpattern at position 0", "位置 0 的括号没有闭合"),
    ],
)
def test_frequent_syntax_errors_are_translated(message: str, chinese: str) -> None:
    with translation.override("zh-hans"):
        assert localized(message) == chinese
    assert localized(message) == message


@pytest.mark.parametrize(
    ("source", "code", "line"),
    [
        ("def preprocess(data:", "syntax", 1),
        ("x = 1", "load", None),
        ("\nimport numpy", "load", 2),
        ("1 / 0", "load", 1),
        ("while True: pass", "timeout", 1),
    ],
)
def test_why_a_script_does_not_load_is_found_without_running_it(
    source: str, code: str, line: int | None, sandbox: Sandbox
) -> None:
    failure = load_failure(sandbox, "preprocess", source)
    assert failure is not None
    assert (failure.code, failure.line) == (code, line)


def test_a_script_that_fails_only_when_it_is_called_loads(sandbox: Sandbox) -> None:
    assert load_failure(sandbox, "preprocess", "def preprocess(data): return 1 / 0") is None
