"""Lost indentation is restored where the code leaves one reading; where it leaves several, lines are marked."""

from __future__ import annotations

import ast
import textwrap

import pytest

from judging.core.lost_indentation import MARK, with_indentation
from judging.core.scripts import RECOMMENDED

CERTAIN = (
    """
def score(reply):
    if reply is None:
        return 1
    return 2
""",
    """
try:
    import a
except ImportError:
    a = None
def score(x):
    # the answer
    for each in x:
        if each:
            continue
        try:
            a(each)
        except ValueError:
            break
        finally:
            print(x)
def choose(x):
    if x:
        raise ValueError
    elif a:
        text = '''
not indented'''
    else:
        return 2
def other(x): return x
""",
    """
def kind(x):
    match x:
        case 1:
            return 1
        case _:
            return 2
@decorated
class Case:
    def kind(self):
        return 1
""",
)


def flat(code: str) -> str:
    return "\n".join(line.lstrip() for line in code.split("\n"))


@pytest.mark.parametrize("code", CERTAIN)
def test_one_reading_is_restored(code: str) -> None:
    result = with_indentation(flat(code))
    assert (result.source, result.uncertain) == (code, ())


UNCERTAIN = """
def score(data, pairs=None):
    if pairs is None:
        pairs = DEFAULT
    text = data[0]  # indentation?
    count = 0
    for a, b in pairs:
        text = text.replace(a, b)
        if a in text:  # indentation?
            text += a
        count += 1  # indentation?
    return text  # indentation?
def strip(resp):
    if resp['content']:
        resp['clean'] = resp['content']
    return None  # indentation?
"""


def test_lines_with_several_readings_follow_the_names_they_use_and_are_marked() -> None:
    result = with_indentation(flat(UNCERTAIN.replace(MARK, "")))
    assert result.source == UNCERTAIN
    lines = UNCERTAIN.splitlines()
    assert [lines[line - 1].endswith(MARK) for line in result.uncertain] == [True] * 5


@pytest.mark.parametrize(
    "code",
    [
        "if x:\nreturn 1\n",
        "try:\n# nothing\nexcept ValueError:\npass\n",
        "def f(x):\nif x:\n",
        "else:\npass\n",
        "def f(x):\nbreak\n",
        "x = 1\n",
        "def (",
        "def f(x):\n  return x\n",
        "if x:\n" * 40 + "pass\n" + "y = 1\n" * 200,
    ],
)
def test_code_without_a_valid_reading_stays_as_it_is(code: str) -> None:
    result = with_indentation(code)
    assert (result.source, result.uncertain) == (code, ()) or ast.parse(result.source)


@pytest.mark.parametrize("name", RECOMMENDED)
def test_every_restored_script_is_valid_and_holds_the_same_lines(name: str) -> None:
    code = textwrap.dedent(RECOMMENDED[name].source)
    result = with_indentation(flat(code))
    ast.parse(result.source)
    assert flat(result.source.replace(MARK, "")) == flat(code)
