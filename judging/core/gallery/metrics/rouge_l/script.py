import re


def tokens(text):
    return re.findall(r"[\u4e00-\u9fff]|[^\W_\u4e00-\u9fff]+", str(text).lower())


def longest_common(a, b):
    row = [0] * (len(b) + 1)
    for left in a:
        before = 0
        for j, right in enumerate(b, 1):
            above = row[j]
            row[j] = before + 1 if left == right else max(above, row[j - 1])
            before = above
    return row[-1]


def rouge_l(answer, reference):
    """F1 of the longest common subsequence (Lin 2004), of the whole text as one sentence."""
    common = longest_common(answer, reference)
    return 2 * common / (len(answer) + len(reference)) if common else 0.0


def preprocess(data, resp, **kwargs):
    reference = data.get("ref_answer")
    reference = data.get("gt") if reference is None else reference
    return None if reference is None else rouge_l(tokens(resp.content), tokens(reference))
