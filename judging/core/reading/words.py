"""Tables of the words that the reader knows."""

from __future__ import annotations

from datasets.core.kinds import CATEGORY, COMPARISON, PASS_FAIL, SCORE


def _words(text: str) -> list[str]:
    return text.split()


THINKING_TAGS = _words(
    "think thinking thought thoughts reasoning rationale analysis reflection scratchpad seed:think"
)

# Names of values: strong ones are plain ones after one of these words, or such a word alone.
STRONG_WORDS = _words("overall final total 总 總 最终 综合 綜合")
STRONG_NAMES = _words("总分 總分")

_VERDICT_NAMES = _words("verdict judgement judgment decision result 结论 判定 结果 判断 判定结果")

PLAIN_NAMES: dict[str, list[str]] = {
    SCORE: [
        *_words(
            "score rating 评分 得分 分数 打分 评价 评分结果 打分结果 評分 分數 點數 評価 スコア 점수 Bewertung "
            "Gesamtbewertung Punkte Оценка puntuación"
        ),
        "note finale",
    ],
    PASS_FAIL: [
        *_VERDICT_NAMES,
        *(
            "pass/fail",
            "pass or fail",
            "met",
            "passed",
            "criteria met",
            "meets criteria",
            "是否通过",
            "是否满足",
            "是否满足标准",
        ),
    ],
    CATEGORY: [*_VERDICT_NAMES, "label", "category", "类别", "标签"],
    COMPARISON: [
        *_VERDICT_NAMES,
        *("winner", "choice", "preference", "better answer", "better response", "更好的回答"),
    ],
}
ONLY_IN_JSON: dict[str, list[str]] = {PASS_FAIL: ["pass"], COMPARISON: ["better"]}
WEAK_NAMES: dict[str, list[str]] = {
    SCORE: _words("verdict result answer grade mark rate note points quality evaluation assessment"),
    PASS_FAIL: ["answer"],
    CATEGORY: ["answer"],
    COMPARISON: ["answer"],
}

# Values
NUMBER_WORDS: dict[str, int] = {
    word: number
    for words in (
        _words("zero one two three four five six seven eight nine ten"),
        _words("零 一 二 三 四 五 六 七 八 九 十"),
    )
    for number, word in enumerate(words)
} | {"两": 2}
UNITS = _words("points point pts pt stars star 分 点 點 星 점 です")
SCALE_WORDS = ["/", "out of", "of", "von", "sur", "из"]

PASSES = _words("pass passed passes yes true met correct 通过 是 是的 合格 正确 对 满足 符合 达到")
FAILS = [
    *_words("fail failed fails no false not_met incorrect 不通过 否 不是 不合格 错误 错 未通过 不正确 不对"),
    *("不满足", "不符合", "未达到", "未满足"),
]
PASS_FAIL_WORDS: dict[str, bool] = {
    word.replace("_", " "): value for words, value in ((PASSES, True), (FAILS, False)) for word in words
}

TIE_WORDS = _words("c tie draw 平 平局 两者相当")
BOTH_BAD_WORDS = ["both bad", "都不好"]
SIDE_WORDS = _words("response assistant answer model 回答 助手")

# Words around values
JUDGING_WORDS = _words(
    "rate rates rated rating give gives gave given giving score scores scored scoring award awards awarded awarding "
    "assign assigns assigned assigning deserve deserves deserved deserving earn earns earned earning "
    "receive receives received receiving get gets got gotten getting"
)
GUARD_WORDS = _words(
    "if unless could might than least most between about almost nearly max maximum maximal min minimum minimal "
    "passing average previous reference correct each 如果 约 至少 最多 接近 最高 最低 及格 平均 参考 每"
)
NEGATIONS = _words("not cannot no 不能 无法 不是 并非 没有 不会 不应 不该")
PROVISIONAL = ["at first", "initial", "initially", "draft", "初步", "先给"]
CORRECTIONS = [
    *("correction", "corrected", "revised", "final", "on reflection", "更正", "改为", "最后", "最终"),
]
CONTRASTS = _words("but however 但")
REASON_WORDS = _words("because since 因为 由于 理由")
ROUGHLY = _words("about around approximately roughly almost nearly 大约 大概 约 至少 最多 接近 ~ ≈ < >")
