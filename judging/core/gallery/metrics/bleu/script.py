import math
import re
from collections import Counter


def tokens(text):
    return re.findall(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+|[^\w\s]", str(text))


def bleu(answer, reference, most=4):
    """Sentence BLEU with exponential smoothing and effective order (Papineni 2002; Chen and Cherry 2014)."""
    logs, smooth = [], 1.0
    for n in range(1, most + 1):
        grams, wanted = (Counter(zip(*(text[i:] for i in range(n)))) for text in (answer, reference))
        if not grams:
            break
        hits = sum((grams & wanted).values())
        if n == 1 and not hits:
            return 0.0
        if not hits:
            smooth *= 2
        logs.append(math.log((hits or 1 / smooth) / sum(grams.values())))
    if not logs:
        return 0.0
    brevity = min(0.0, 1 - len(reference) / len(answer))
    return 100 * math.exp(brevity + sum(logs) / len(logs))


def preprocess(data, resp, **kwargs):
    reference = data.get("ref_answer")
    reference = data.get("gt") if reference is None else reference
    return None if reference is None else bleu(tokens(resp.content), tokens(reference))
