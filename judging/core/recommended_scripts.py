"""Common scripts to start from. Their labels are defined in judging.metrics.editor.scripts."""

from __future__ import annotations

from dataclasses import dataclass

from judging.core.scripts import ScriptKind

_POSTPROCESS = "def postprocess(judge_reqs, judge_resps, judge_models, data, resp, **kwargs):\n"
_SCORES = r"""
import re

SCORE = re.compile(r"\[\[\s*(-?\d+(?:\.\d+)?)\s*\]\]")


def scores_of(judge_resps):
    found = [SCORE.findall(reply.content or "") for reply in judge_resps]
    return [float(numbers[-1]) for numbers in found if numbers]
""".lstrip()


@dataclass(frozen=True, slots=True)
class Recommended:
    name: str
    kind: ScriptKind
    source: str


RECOMMENDED: dict[str, Recommended] = {
    one.name: one
    for one in (
        Recommended(
            "strip_think",
            "preprocess",
            r"""
import re


def preprocess(data, resp, **kwargs):
    text = re.sub(r"<think>.*?(</think>|\Z)", "", resp.content, flags=re.DOTALL | re.IGNORECASE)
    resp.content = re.split(r"</think>", text, flags=re.IGNORECASE)[-1].strip()
""".lstrip(),
        ),
        Recommended(
            "json_field",
            "preprocess",
            r"""
import json

FIELD = "answer"


def preprocess(data, resp, **kwargs):
    text = resp.content.strip()
    if text.startswith("```"):
        text = text.partition("\n")[2].rpartition("```")[0]
    try:
        value = json.loads(text)[FIELD]
    except (ValueError, KeyError, TypeError) as error:
        print(f"{FIELD} not found: {error}")
        return
    resp.content = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
""".lstrip(),
        ),
        Recommended(
            "length",
            "preprocess",
            """
def preprocess(data, resp, **kwargs):
    return len(resp.content.strip())
""".lstrip(),
        ),
        Recommended(
            "comparison",
            "postprocess",
            r"""
import re

SCORES = {"A>>B": 1, "A>B": 2, "A=B": 3, "B>A": 4, "B>>A": 5}
VERDICT = re.compile(r"\[\[\s*(A>>B|A>B|A=B|B>A|B>>A)\s*\]\]")


""".lstrip()
            + _POSTPROCESS
            + """\
    found = VERDICT.findall(judge_resps[-1].content or "")
    return SCORES[found[-1]] if found else None
""",
        ),
        Recommended(
            "mean",
            "postprocess",
            _SCORES
            + "\n\n"
            + _POSTPROCESS
            + """\
    scores = scores_of(judge_resps)
    return round(sum(scores) / len(scores), 2) if scores else None
""",
        ),
        Recommended(
            "majority",
            "postprocess",
            "from collections import Counter\n"
            + _SCORES
            + "\n\n"
            + _POSTPROCESS
            + """\
    votes = Counter(scores_of(judge_resps)).most_common(2)
    if not votes or (len(votes) == 2 and votes[0][1] == votes[1][1]):
        return None
    return votes[0][0]
""",
        ),
    )
}
