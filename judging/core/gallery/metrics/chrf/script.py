from collections import Counter


def chrf(answer, reference, most=6, beta=2):
    """chrF2: the F score of character n-grams, recall weighing beta² (Popović 2015)."""
    answer, reference = ("".join(str(text).split()) for text in (answer, reference))
    precisions, recalls = [], []
    for n in range(1, most + 1):
        grams, wanted = (
            Counter(text[i : i + n] for i in range(len(text) - n + 1)) for text in (answer, reference)
        )
        if not grams or not wanted:
            continue
        hits = sum((grams & wanted).values())
        precisions.append(hits / sum(grams.values()))
        recalls.append(hits / sum(wanted.values()))
    if not precisions:
        return 0.0
    precision, recall = sum(precisions) / len(precisions), sum(recalls) / len(recalls)
    weighed = beta**2 * precision + recall
    return 100 * (1 + beta**2) * precision * recall / weighed if weighed else 0.0


def preprocess(data, resp, **kwargs):
    reference = data.get("ref_answer")
    reference = data.get("gt") if reference is None else reference
    return None if reference is None else chrf(resp.content, reference)
