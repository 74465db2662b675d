"""Column names in English and Chinese by which files from other sources are recognised.

The first match in a table is used. Comparison ignores case and treats blanks, `_` and `-` alike.
"""

import re


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


QUESTION = _names(
    "question prompt instruction query user_prompt user input input_text problem task request 问题 "
    "提问 题目 题干 指令 提示词 输入 用户输入 用户问题 query_text text content 文本 内容"
)
CONTINUED = _names("input context 输入 补充输入")
MESSAGES = _names("messages conversations conversation chat dialog dialogue 对话 body.messages")
SYSTEM = _names("system system_prompt 系统提示词 系统提示 系统")
REFERENCE = _names(
    "reference ref_answer reference_answer expected expected_output expected_answer ideal gold "
    "golden gold_answer golden_answer ground_truth groundtruth gt target label correct_answer "
    "correct best_answer solution 参考答案 标准答案 正确答案 答案 参考 参考回答"
)
MODEL = _names("model model_name model_id generator llm response.body.model 模型 模型名称 模型名")
ANSWER = _names(
    "response.body.choices.message.content answer response output completion model_output "
    "model_answer model_response prediction generation generated_text generated reply result 回答 "
    "回复 输出 模型回答 模型输出 模型回复"
)
SCORE = _names("score rating grade points 分数 得分 评分 打分")
BATCH_ID = "custom_id"
MODEL_FAMILIES = re.compile(
    r"^(gpt|chatgpt|o[1-9]\b|claude|gemini|gemma|llama|mi[sx]tral|qwen|deepseek|glm|chatglm|yi-|baichuan|ernie|kimi|"
    r"doubao|hunyuan|phi-|grok|command-r|internlm|vicuna|falcon|通义|文心|豆包|混元|"
    r"model[ _-]?[a-z0-9]$|模型\s?[a-z0-9一二三四])",
    re.IGNORECASE,
)
AROUND = r"[\s_\-:：.()（）\[\]【】]+"


NO_MODEL = re.compile(
    r"^(id|no|idx|index|len|length|time|times?tamp|tokens?|count|type|date|format|key|url|lang|language|source|status|"
    r"score|rating|编号|长度|时间|类型|来源)$",
    re.IGNORECASE,
)
