"""Tables of the words that the reader knows."""

from __future__ import annotations

from datasets.core.kinds import CATEGORY, COMPARISON, PASS_FAIL, SCORE


def _words(text: str) -> list[str]:
    """The words of a table; `_` stands for a blank."""
    return [word.replace("_", " ") for word in text.split()]


THINKING_TAGS = _words(
    "think thinking thought thoughts reasoning rationale analysis reflection scratchpad seed:think"
)

# Names of values: strong ones are plain ones after one of these words, or such a word alone.
STRONG_WORDS = _words("overall final total 总 總 最终 综合 綜合")
STRONG_NAMES = _words("总分 總分")
_VERDICT_NAMES = _words("verdict judgement judgment decision result 结论 判定 结果 判断 判定结果")
PLAIN_NAMES: dict[str, list[str]] = {
    SCORE: _words(
        "score rating 评分 得分 分数 打分 评价 评分结果 打分结果 評分 分數 點數 評価 スコア 점수 "
        "Bewertung Gesamtbewertung Punkte Оценка puntuación note_finale"
    ),
    PASS_FAIL: _VERDICT_NAMES
    + _words("pass/fail pass_or_fail met passed criteria_met meets_criteria 是否通过 是否满足 是否满足标准"),
    CATEGORY: _VERDICT_NAMES + _words("label category 类别 标签"),
    COMPARISON: _VERDICT_NAMES + _words("winner choice preference better_answer better_response 更好的回答"),
}
ONLY_IN_JSON: dict[str, list[str]] = {PASS_FAIL: ["pass"], COMPARISON: ["better"]}
WEAK_NAMES: dict[str, list[str]] = {
    SCORE: _words("verdict result answer grade mark rate note points quality evaluation assessment"),
    PASS_FAIL: ["answer"],
    CATEGORY: ["answer"],
    COMPARISON: ["answer"],
}
OPENING_WORDS = _words("my your the la a an so")  # a weak name begins its clause or stands after one of these
QUALIFIERS = STRONG_WORDS + _words("answer response evaluation")  # and any of these

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
SCALE_WORDS = _words("/ out_of of von sur из")
SCALE_NOTE_WORDS = _words(  # of a note that says nothing but the scale
    "on a scale of from out to max maximum possible score point points 五 十 百 一百 满分 总分 共 为 是 到 至 分"
)
PASSES = _words("pass passed passes yes true met correct 通过 是 是的 合格 正确 对 满足 符合 达到")
FAILS = _words(
    "fail failed fails no false not_met incorrect 不通过 否 不是 不合格 错误 错 未通过 不正确 不对 "
    "不满足 不符合 未达到 未满足"
)
PASS_FAIL_WORDS = dict.fromkeys(PASSES, True) | dict.fromkeys(FAILS, False)
TIE_WORDS = _words("c tie draw 平 平局 两者相当")
BOTH_BAD_WORDS = _words("both_bad 都不好")
SIDE_WORDS = _words("response assistant answer model 回答 助手")

# Words around values
JUDGING_WORDS = _words(
    "rate rates rated rating give gives gave given giving score scores scored scoring award awards awarded awarding "
    "assign assigns assigned assigning deserve deserves deserved deserving earn earns earned earning "
    "receive receives received receiving get gets got gotten getting merit merits"
)
SAYING_WORDS = _words("say says said")
JUDGED = _words(
    "answer response reply output solution submission essay summary translation explanation story poem code text "
    "student"
)
GETTING_WORDS = _words(
    "deserves deserved earns earned gets got receives received scores merits is_rated is_given is_scored is_awarded"
)
# Nothing else stands in a Chinese clause before a number that is the answer's score.
KNOWN_WORDS = _words(
    "我 会 将 可 可以 应 应该 应当 能 认为 觉得 给 給 给出 打 打出 评 評 得 得到 值 值得 为 是 了 的 出 到 "
    "它 其 这 该 此 这个 这份 这条 本回答 回答 回复 作答 作文 译文 翻译 摘要 学生 该生 同学 考生 "
    "最终 最后 先 综合 总 总分 得分 评分 分数 因此 所以 综上 故 总体 整体 只 仅 吧"
)
GUARD_WORDS = _words(
    "if unless could might than least most between about almost nearly max maximum maximal min minimum minimal passing "
    "average previous reference correct each would_have would've 'd_have had_it had_the were_it "
    "如果 约 至少 最多 接近 最高 最低 及格 平均 参考 每"
)
NEGATIONS = _words("not cannot no 不能 无法 不是 并非 没有 不会 不应 不该")
PROVISIONAL = _words("at_first initial initially draft 初步 先给")
CORRECTIONS = _words("correction corrected revised final on_reflection 更正 改为 最后 最终")
TAKING_BACK = _words(
    "or no changed_to changed_it_to change_it_to revised_to lowered_to raised_to adjusted_to "
    "rounded_to make_it make_that actually "
    "或 或者 改为 改成 调整为 下调至 降为 降到 四舍五入为"
)
ANSWERS = _words("yes no 是 否")
CONTRASTS = _words("but however 但")
REASON_WORDS = _words("because since 因为 由于 理由")
ROUGHLY = _words("about around approximately roughly almost nearly 大约 大概 约 至少 最多 接近 ~ ≈ < >")
