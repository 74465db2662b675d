"""The example scripts of this product's source documents, as users will paste them."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from judging.core.replies import VERDICTS
from judging.core.sandbox.pool import Sandbox
from judging.core.scripts import ScriptOutcome, run_preprocess, run_script

HAS_REASONING = """
def preprocess(data: dict, resp: dict) -> bool:
    # 判断模型回复是否包含 reasoning_content
    return resp['reasoning_content'] == ''
"""
WITHOUT_REASONING = """
import re
default_cot_pairs = [('<think>', '</think>'), ('<Think>', '</Think>')]
def remove_cot(text: str, cot_pairs=None) -> str:
    if cot_pairs is None:
        cot_pairs = default_cot_pairs
    ret = text
    for t0, t1 in cot_pairs:
        ret = re.sub(f"{t0}.*?{t1}", '', ret, flags=re.DOTALL)
    return ret.strip()
def preprocess(data: dict, resp: dict) -> bool | int | str | float | None:
    field = 'clean'
    resp[field] = remove_cot(resp['content'])
    return resp[field]
"""
ONLY_DATA = """
def preprocess(data: dict, resp: dict) -> None:
    # 例如：将模型回复内容添加到 data 中
    if resp['content']:
        data['resp'] = resp['content']
    # 不影响评测判断，返回 None
    return None
"""
CAUGHT = """
def preprocess(data: dict, resp: dict) -> bool | int | str | float | None:
    try:
        return resp['content'].index(data['ref_answer'])
    except Exception as e:
        print(f"[预处理脚本出错]：{e}")
        return 1  # 根据需求返回默认值
"""
DO_NOTHING = '''
def preprocess(data: dict, resp: dict, **kwargs) -> bool | int | str | float | None:
    """
    :data: Dict,一个字典,包含以下关键信息
    """
    # --- 在此实现您的逻辑 ---
    pass
'''
MEAN = """
def postprocess(judge_reqs, judge_resps, judge_models, data, resp, **kwargs):
    scores = []
    for jr in judge_resps:
        try:
            # 假设裁判返回内容为 "该回答得分为4分" 或 "Score: 4"
            content = jr['content']
            score = int(content.strip().split(" ")[-2])  # 简单示例，请根据实际格式调整
            scores.append(score)
        except:
            continue
    if scores:
        return round(sum(scores) / len(scores), 2)
    return None
"""
MAJORITY = """
def postprocess(judge_reqs, judge_resps, judge_models, data, resp, **kwargs):
    positive_count = 0
    for jr in judge_resps:
        content = jr['content']
        if "good" in content or "correct" in content or "4" in content or "5" in content:
            positive_count += 1
    return positive_count > len(judge_resps) / 2  # 超过一半认为正确
"""
ONLY_ARRANGES = """
def postprocess(judge_reqs, judge_resps, judge_models, data, resp, **kwargs):
    # 可在此处做数据存储、结构转换等，但不影响最终评测
    return None
"""
LAST_ONE = """
def postprocess(
    judge_reqs: list[dict],
    judge_resps: list[dict],
    judge_models: list[dict],
    data: dict,
    resp: dict,
    **kwargs,
) -> bool | int | str | float | None:
    judge_req = kwargs.get('judge_req')
    judge_resp = kwargs.get('judge_resp')
    judge_model = kwargs.get('judge_model')
    return f"{judge_model['name']}: {judge_resp.content} ({len(judge_req['messages'])})"
"""
COMPARISON = r"""
import re
from typing import Optional
ans_map = {
    "A>>B": 1,
    "A>B": 2,
    "A=B": 3,
    "B>A": 4,
    "B>>A": 5,
}
def parse_last_comparison(text: str) -> Optional[str]:
    pattern = r"\[\[(A>>B|A>B|A=B|B>A|B>>A)\]\]"
    matches = re.findall(pattern, text)
    return matches[-1] if matches else None
def postprocess(
    judge_reqs: list[dict],
    judge_resps: list[dict],
    judge_models: list[dict],
    data: dict,
    resp: dict,
    **kwargs,
) -> Optional[int]:
    last_comparison = parse_last_comparison(judge_resps[-1]['content'])
    return ans_map.get(last_comparison)
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def before(sandbox: Sandbox, script: str, content: str, **data: Any) -> ScriptOutcome:
    (outcome,) = run_preprocess(sandbox, script, [(data, {"content": content})])
    assert outcome.failure is None, outcome.failure
    return outcome


def after(sandbox: Sandbox, script: str, *replies: str) -> Any:
    asked = {
        "judge_reqs": [{"messages": [{"role": "user", "content": "q"}]} for _ in replies],
        "judge_resps": [{"content": reply} for reply in replies],
        "judge_models": [{"name": "deepseek", "judge_template_content": "q"} for _ in replies],
    }
    (outcome,) = run_script(sandbox, "postprocess", script, [{**asked, "data": {}, "resp": {}}])
    assert outcome.failure is None, outcome.failure
    return outcome.result


def test_whether_there_is_reasoning(sandbox: Sandbox) -> None:
    assert before(sandbox, HAS_REASONING, "24").result is False


def test_reasoning_is_taken_out_of_the_answer(sandbox: Sandbox) -> None:
    outcome = before(sandbox, WITHOUT_REASONING, "<think>hm\n</think> 24 <Think>so</Think>")
    assert (outcome.result, outcome.changed["response"]) == ("24", {"clean": "24"})


@pytest.mark.parametrize(("content", "changed"), [("24", {"resp": "24"}), ("", {})])
def test_the_answer_is_put_among_the_data(content: str, changed: dict[str, str], sandbox: Sandbox) -> None:
    outcome = before(sandbox, ONLY_DATA, content)
    assert (outcome.result, outcome.changed["data"]) == (None, changed)


def test_a_script_that_catches_its_own_errors_has_its_lines_kept(sandbox: Sandbox) -> None:
    outcome = before(sandbox, CAUGHT, "24", ref_answer="25")
    assert (outcome.result, outcome.printed) == (1, "[预处理脚本出错]：substring not found\n")


def test_the_empty_pattern_of_a_script_returns_none(sandbox: Sandbox) -> None:
    assert before(sandbox, DO_NOTHING, "24").result is None


def test_the_mean_of_what_judges_gave(sandbox: Sandbox) -> None:
    assert after(sandbox, MEAN, "该回答得分为 4 分", "I give 3 points", "nothing") == 3.5
    assert after(sandbox, MEAN, "nothing") is None


def test_whether_most_judges_agree(sandbox: Sandbox) -> None:
    assert [after(sandbox, MAJORITY, *said) for said in (["good", "5", "no"], ["good", "no"])] == [
        True,
        False,
    ]


def test_a_script_that_only_arranges_gives_no_score(sandbox: Sandbox) -> None:
    assert after(sandbox, ONLY_ARRANGES, "9") is None


def test_the_last_judge_is_in_the_further_parameters(sandbox: Sandbox) -> None:
    assert after(sandbox, LAST_ONE, "a", "b") == "deepseek: b (1)"


@pytest.mark.parametrize(("verdict", "score"), VERDICTS.items())
def test_the_last_comparison_is_read(verdict: str, score: int, sandbox: Sandbox) -> None:
    assert after(sandbox, COMPARISON, "[[A=B]]", f"first [[A=B]], then [[{verdict}]]") == score


def test_a_pattern_whose_backslashes_were_doubled_finds_nothing(sandbox: Sandbox) -> None:
    doubled = re.sub(r"\\", r"\\\\\\\\", COMPARISON)
    assert after(sandbox, doubled, "[[A>B]]") is None
