"""Preprocess and postprocess scripts as seen by their authors."""

from typing import Any

import pytest

from judging.core.sandbox.pool import Sandbox
from judging.core.scripts import ScriptOutcome, load_failure, run_preprocess, run_script
from tests.judging.core.sandbox.scripting import failure_of, result_of, run, script

ANSWERS = {
    "judge_reqs": [{"messages": [], "stream": True}, {"messages": [], "n": 2}],
    "judge_resps": [{"content": "[[A>B]]"}, {"content": None, "error": "gone"}],
    "judge_models": [
        {"name": "one", "judge_template_content": "t"},
        {"name": "two", "judge_template_content": "t"},
    ],
    "data": {"messages": []},
    "resp": {"content": "x"},
}


def preprocess(sandbox: Sandbox, source: str, data: dict[str, Any], resp: dict[str, Any]) -> ScriptOutcome:
    (outcome,) = run_preprocess(sandbox, source, [(data, resp)])
    return outcome


def postprocess(sandbox: Sandbox, source: str) -> ScriptOutcome:
    (outcome,) = run_script(sandbox, "postprocess", source, [ANSWERS])
    return outcome


@pytest.mark.parametrize(
    "declared", ["data, resp", "data, resp, **kwargs", "resp", "data", "", "**kwargs", "resp, /, data=1"]
)
def test_a_script_is_called_with_the_parameters_that_it_declares(declared: str, sandbox: Sandbox) -> None:
    assert preprocess(sandbox, f"def preprocess({declared}):\n    return 1", {}, {}).result == 1


def test_a_preprocess_before_all_other_steps_has_nothing_in_kwargs(sandbox: Sandbox) -> None:
    assert (
        preprocess(sandbox, "def preprocess(data, resp, **kwargs):\n    return len(kwargs)", {}, {}).result
        == 0
    )


def test_postprocess_has_the_last_judge_in_kwargs(sandbox: Sandbox) -> None:
    source = """
def postprocess(judge_reqs, judge_resps, judge_models, data, resp, **kwargs):
    assert sorted(kwargs) == ["judge_model", "judge_req", "judge_resp", "results"]
    assert kwargs["judge_resp"] is judge_resps[-1]
    return f'{kwargs["judge_req"].n} {kwargs["judge_resp"].error} {kwargs["judge_model"]["name"]}'
"""
    assert postprocess(sandbox, source).result == "2 gone two"


@pytest.mark.parametrize(
    ("before", "seen"),
    [
        ({"judge_resps": [{"content": "8"}], "judge_reqs": [{}], "judge_models": [{}]}, "1 []"),
        ({"results": [7, None]}, "0 [7, None]"),
    ],
)
def test_a_later_preprocess_has_what_came_before_it_in_kwargs(
    before: dict[str, Any], seen: str, sandbox: Sandbox
) -> None:
    source = """
def preprocess(data, resp, **kwargs):
    assert sorted(kwargs) == ["judge_models", "judge_reqs", "judge_resps", "results"]
    return f'{len(kwargs["judge_resps"])} {kwargs["results"]}'
"""
    item = {"data": {}, "resp": {}, **before}
    (outcome,) = run_script(sandbox, "preprocess", source, [item])
    assert (outcome.failure, outcome.result) == (None, seen)


def test_a_first_preprocess_may_declare_what_comes_before_it(sandbox: Sandbox) -> None:
    source = "def preprocess(resp, judge_resps, results):\n    return len(judge_resps) + len(results)"
    assert preprocess(sandbox, source, {}, {}).result == 0


def test_postprocess_may_ask_for_less(sandbox: Sandbox) -> None:
    assert (
        postprocess(sandbox, "def postprocess(judge_resps):\n    return judge_resps[0].content").result
        == "[[A>B]]"
    )


def test_judge_replies_have_the_standard_fields_and_a_failed_one_its_error(sandbox: Sandbox) -> None:
    source = "def postprocess(judge_resps):\n    return str([dict(one) for one in judge_resps])"
    fine = {"content": "[[A>B]]", "reasoning_content": None, "tool_calls": None}
    assert postprocess(sandbox, source).result == str([fine, {"content": None, "error": "gone"}])


def test_a_parameter_that_is_not_given_is_named_when_loading(sandbox: Sandbox) -> None:
    (outcome,) = run(sandbox, "\ndef preprocess(data, other):\n    return 1")
    assert outcome.failure is not None
    assert (outcome.failure.code, outcome.failure.line) == ("load", 2)
    assert "'other'" in outcome.failure.message


@pytest.mark.parametrize("name", ["messages", "ref_answer", "gt", "question", "history"])
def test_standard_fields_of_data_are_none_when_absent(name: str, sandbox: Sandbox) -> None:
    assert result_of(sandbox, f"return data['{name}'] is None and data.{name} is None") is True


@pytest.mark.parametrize(
    ("name", "value"), [("content", ""), ("reasoning_content", None), ("tool_calls", None)]
)
def test_standard_fields_of_resp_when_absent(name: str, value: object, sandbox: Sandbox) -> None:
    outcome = preprocess(sandbox, script(f"return resp.{name} == {value!r}"), {}, {"content": None})
    assert outcome.result is True


WRITES = {
    "data.x = 1": {"x": 1},
    "data['x'] = 1": {"x": 1},
    "data.deep.inner.x = 1": {"deep": {"inner": {"x": 1}}},
    "data.x = {}\ndata.x.y = 1\ndata['x']['z'] = 2": {"x": {"y": 1, "z": 2}},
    "data['x'] = {}\ndata['x'].y = 1": {"x": {"y": 1}},
    "x = {}\ndata.x = x\nx['y'] = 1": {"x": {"y": 1}},
    "data.list[0].x = 1": {"list": [{"x": 1}]},
    "data.list.append(None)": {"list": [{}, None]},
    "data.n = True": {"n": True},
    "data.n = 1.0": {"n": 1.0},
    "data.n = 1": {},
    "del data.n": {"n": None},
    "data.pop('n')": {"n": None},
    "data.x = (1, 2)": {"x": [1, 2]},
    "data.update(x=None)": {"x": None},
    "data.list[0] = {}": {},
    "data.x = [{}]\ndata.x[0].y = 1": {"x": [{"y": 1}]},
    "data.x = [1, [{}]]\ndata.x[1][0].y = 1": {"x": [1, [{"y": 1}]]},
    "data.x = {'z': [{}]}\ndata.x.z[0].y = 1": {"x": {"z": [{"y": 1}]}},
    "data.x = x = []\nfor n in range(2): x.append({'n': n})\ndata.x[1].n = 5": {"x": [{"n": 0}, {"n": 5}]},
    "data.x = x = []\ndata.x.append(1)\nx.append(2)": {"x": [1, 2]},
    "data.list.append({})\ndata.list[-1].y = 1": {"list": [{}, {"y": 1}]},
    "data.list[0] = {}\ndata.list[0].y = 1": {"list": [{"y": 1}]},
}


@pytest.mark.parametrize(("body", "changed"), WRITES.items())
def test_changed_fields_are_reported(body: str, changed: dict[str, Any], sandbox: Sandbox) -> None:
    data = {"n": 1, "deep": {"inner": {}}, "list": [{}]}
    outcome = preprocess(sandbox, script(body), data, {})
    assert (outcome.failure, repr(outcome.changed["data"])) == (None, repr(changed))


@pytest.mark.parametrize(
    "expression",
    [
        "[one.a for one in data.x][0]",
        "data.get('x')[0].a",
        "data['x'][-1].a",
        "resp.x[0].a",
        "data.deep.x[0].a",
        "data.get('y').a",
        "data.setdefault('z', {'a': 7}).a",
        "data.setdefault('x', None)[0].a",
    ],
)
@pytest.mark.parametrize("count", [1, 2000])
def test_what_a_script_assigns_answers_to_attributes_in_lists_too(
    expression: str, count: int, sandbox: Sandbox
) -> None:
    body = f"data.x = [{{'a': 7}} for _ in range({count})]\nresp.x = data.x\ndata.deep.x = data.x"
    outcome = preprocess(
        sandbox, script(f"{body}\ndata.y = {{'a': 7}}\nreturn {expression}"), {"deep": {}}, {}
    )
    assert (outcome.failure, outcome.result) == (None, 7)


def test_changes_of_the_response_are_distinguished(sandbox: Sandbox) -> None:
    outcome = preprocess(sandbox, script("resp.clean = resp.content.strip()"), {}, {"content": " x "})
    assert outcome.changed == {"data": {}, "response": {"clean": "x"}}


def test_large_uploaded_integers_pass_unharmed(sandbox: Sandbox) -> None:
    outcome = preprocess(
        sandbox, script("data.deep.x = 1\nreturn str(data.big)"), {"big": 10**40, "deep": {"n": 10**40}}, {}
    )
    assert (outcome.result, outcome.changed["data"]) == (str(10**40), {"deep": {"n": 10**40, "x": 1}})


@pytest.mark.parametrize(
    "value",
    [
        "{1}",
        "b''",
        "float('nan')",
        "{1: 2}",
        "lambda: 1",
        "'\\ud800'",
        "'\\0'",
        "2 ** 63",
        "[[float('inf')]]",
        "1j",
    ],
)
def test_a_field_that_is_no_json_value_is_an_error_that_names_it(value: str, sandbox: Sandbox) -> None:
    failure = failure_of(sandbox, f"data.x = {value}")
    assert (failure.code, failure.message[:6]) == ("result", "data.x")


def test_a_field_that_holds_itself_is_an_error(sandbox: Sandbox) -> None:
    assert failure_of(sandbox, "data.x = []\ndata.x.append(data.x)").code == "result"


@pytest.mark.parametrize("value", [True, False, 0, -(2**63), 2**63 - 1, 1.5, "文", "", None])
def test_results_come_back_exactly(value: object, sandbox: Sandbox) -> None:
    assert repr(result_of(sandbox, f"return {value!r}")) == repr(value)


WRONG = {
    "[1]": "list [1]",
    "{}": "dict {}",
    "float('nan')": "float nan",
    "-float('inf')": "float -inf",
    "2 ** 63": "an integer beyond 64 bits",
    "10 ** 5000": "an integer beyond 64 bits",
    "b'x'": "bytes b'x'",
    "'\\ud800'": "a text with half a character or a NUL in it",
    "[0] * 1000": "list " + "[" + "0, " * 33 + "…",
}


@pytest.mark.parametrize(("value", "words"), WRONG.items())
def test_any_other_result_is_an_error_that_says_what_came_back(
    value: str, words: str, sandbox: Sandbox
) -> None:
    failure = failure_of(sandbox, f"return {value}")
    assert (failure.code, failure.message) == ("result", f"preprocess returned {words}")


def test_an_exception_has_the_scripts_line_and_message(sandbox: Sandbox) -> None:
    failure = failure_of(sandbox, "import json\nreturn json.loads('{')")
    assert (failure.code, failure.line) == ("exception", 4)
    assert failure.message.startswith("JSONDecodeError: Expecting property name")


def test_a_text_of_an_exception_may_itself_be_broken(sandbox: Sandbox) -> None:
    failure = failure_of(sandbox, "raise E", "class E(Exception):\n    def __str__(self): 1 / 0")
    assert failure.message == "E: (its text can't be shown)"


def test_what_was_printed_is_kept_also_when_it_fails(sandbox: Sandbox) -> None:
    (outcome,) = run(sandbox, script("print('one', 2)\nraise ValueError"))
    assert (outcome.printed, outcome.failure and outcome.failure.message) == ("one 2\n", "ValueError")


def test_printed_tracebacks_show_no_path_of_the_server(sandbox: Sandbox) -> None:
    (outcome,) = run(
        sandbox,
        script("import json, traceback\ntry: json.loads('{')\nexcept ValueError: traceback.print_exc()"),
    )
    assert 'File "<script>"' in outcome.printed
    assert 'File "/' not in outcome.printed


@pytest.mark.parametrize(
    ("source", "code", "line"),
    [
        ("def preprocess(data:\n    pass", "syntax", 1),
        ("x = 1\n  y = 2", "syntax", 2),
        ("x = '\0'", "syntax", None),
        ("x = 1", "load", None),
        ("preprocess = 1", "load", None),
        ("\n\nimport os", "load", 3),
        ("1 / 0", "exception", 1),
        ("", "load", None),
    ],
)
def test_a_script_that_does_not_load_says_why(
    source: str, code: str, line: int | None, sandbox: Sandbox
) -> None:
    outcomes = run(sandbox, source, 2)
    assert [(one.failure.code, one.failure.line) for one in outcomes if one.failure] == [(code, line)] * 2


@pytest.mark.parametrize(
    ("statement", "line"),
    [
        ("import os", 3),
        ("import numpy.linalg", 3),
        ("import json, os", 3),
        ("from os import path", 3),
        ("from urllib import request", 3),
        ("from statistics import meen", 3),
        ("from . import helpers", 3),
        ("if False:\n    import os", 4),
        ("def inner():\n    import os", 4),
        ("try:\n    import os\nexcept ValueError:\n    pass", 4),
        ("try:\n    pass\nexcept ImportError:\n    import os", 6),
    ],
)
def test_a_forbidden_import_is_found_before_it_is_run(statement: str, line: int, sandbox: Sandbox) -> None:
    failure = load_failure(sandbox, "preprocess", script(statement))
    assert failure is not None
    assert (failure.code, failure.line) == ("load", line)
    assert failure.message.endswith("can't be imported in a script")


@pytest.mark.parametrize(
    "body",
    [
        "try:\n    import os\nexcept ImportError:\n    return 1",
        "try:\n    from os import path\nexcept (ValueError, ImportError):\n    return 1",
        "try:\n    import os\nexcept Exception:\n    return 1",
        "try:\n    if True:\n        import os\nexcept:\n    return 1",
        "import contextlib\nwith contextlib.suppress(ImportError):\n    import os\nreturn 1",
        "import typing\nif typing.TYPE_CHECKING:\n    import os\nreturn 1",
        "from xml.etree import ElementTree\nreturn 1",
        "from urllib import parse\nreturn 1",
        "from collections import abc\nreturn 1",
        "from statistics import mean as average\nreturn 1",
    ],
)
def test_an_import_that_may_fail_or_that_works_is_no_reason_to_refuse_a_script(
    body: str, sandbox: Sandbox
) -> None:
    assert result_of(sandbox, body) == 1


MODULES = """re json math cmath decimal fractions statistics random string textwrap unicodedata difflib datetime time
calendar collections itertools functools operator bisect heapq copy enum dataclasses typing types abc contextlib
hashlib base64 binascii html urllib.parse xml.etree.ElementTree csv io ast tokenize traceback uuid zlib"""


@pytest.mark.parametrize("name", MODULES.split())
def test_the_listed_modules_can_be_imported(name: str, sandbox: Sandbox) -> None:
    assert result_of(sandbox, "return 1", f"import {name}") == 1


USES = {
    "datetime.datetime.strptime('2024', '%Y').year": 2024,
    "hashlib.sha256(b'x').hexdigest()[:4]": "2d71",
    "hashlib.md5(b'x').hexdigest()[:4]": "9dd4",
    "'文'.encode('gbk').hex()": "cec4",
    "xml.etree.ElementTree.fromstring('<a>b</a>').text": "b",
    "html.unescape('&lt;')": "<",
    "urllib.parse.quote('文')": "%E6%96%87",
    "len(str(uuid.uuid4()))": 36,
    "statistics.mean([1, 2, 3])": 2,
    "str(decimal.Decimal('0.1') * 3)": "0.3",
    "'\\N{BULLET}'": "•",
    "zlib.decompress(zlib.compress(b'x')).decode()": "x",
    "time.localtime(0).tm_year in (1969, 1970)": True,
    "difflib.SequenceMatcher(None, 'ab', 'ac').ratio()": 0.5,
    "list(csv.reader(io.StringIO('a,b')))[0][1]": "b",
    "len(list(tokenize.generate_tokens(io.StringIO('x').readline)))": 3,
    "ast.literal_eval('[1]')[0]": 1,
    "dataclasses.make_dataclass('A', ['x'])(1).x": 1,
    "copy.deepcopy(data).n": 0,
    "json.loads(json.dumps(data))['n']": 0,
}


@pytest.mark.parametrize(("expression", "value"), USES.items())
def test_the_listed_modules_work_behind_the_walls(expression: str, value: object, sandbox: Sandbox) -> None:
    assert (
        result_of(sandbox, f"return {expression}", "\n".join(f"import {name}" for name in MODULES.split()))
        == value
    )


def test_a_dataclass_of_the_scripts_own_works(sandbox: Sandbox) -> None:
    before = "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass P:\n    x: int"
    assert result_of(sandbox, "return P(3).x", before) == 3


def test_seconds_are_the_items_own(sandbox: Sandbox) -> None:
    quick, slow = run(sandbox, script("for _ in range(10 ** 6 * data.n): pass"), 2)
    assert quick.seconds < slow.seconds


LIARS = """
class Text(str):
    def __len__(self): return 1
    def __str__(self): return "another"
class Number(int):
    def __int__(self): return 10 ** 40
    def __index__(self): return 10 ** 40
class Real(float):
    def __float__(self): return float("inf")
class Fields(dict):
    def __iter__(self): return iter(())
    def items(self): return ()
"""


@pytest.mark.parametrize(("value", "result"), [("Text('x')", "x"), ("Number(7)", 7), ("Real(1.5)", 1.5)])
def test_a_result_is_what_it_is_and_not_what_its_class_says(
    value: str, result: object, sandbox: Sandbox
) -> None:
    assert result_of(sandbox, f"return {value}", LIARS) == result


def test_a_text_can_not_lie_about_its_length(sandbox: Sandbox) -> None:
    assert failure_of(sandbox, "return Text('x' * 70000)", LIARS).code == "result"


def test_added_fields_are_what_they_are_too(sandbox: Sandbox) -> None:
    (outcome,) = run(sandbox, script("data.added = Fields(a=Text('x'), b=[Number(1)])", LIARS))
    assert outcome.changed["data"] == {"added": {"a": "x", "b": [1]}}


HOSTILE_VALUES = {
    "a deep nest": "x = []\nfor _ in range(10 ** 5): x = [x]\ndata.deep = x",
    "a class that raises when it is shown": "return Raises()",
    "a class that never ends being shown": "return Endless()",
    "a generator": "data.x = (n for n in range(3))",
    "a module": "data.x = traceback",
    "the function itself": "return preprocess",
    "a key that is not text": "data[3] = 3",
    "a dict in the place of the data": "dict.clear(data)\ndict.update(data, {1: object()})",
}
CLASSES = """
import traceback
class Raises:
    def __repr__(self): raise SystemExit("no")
class Endless:
    def __repr__(self):
        while True: pass
"""


@pytest.mark.parametrize("body", HOSTILE_VALUES.values(), ids=HOSTILE_VALUES.keys())
def test_a_value_without_a_repr_is_a_failure_of_its_item_only(body: str, sandbox: Sandbox) -> None:
    source = script(f"if data.n != 1: return data.n\n{body}\nreturn 'called'", CLASSES)
    first, hostile, last = run(sandbox, source, 3)
    assert (first.result, last.result) == (0, 2)
    assert hostile.failure is not None
