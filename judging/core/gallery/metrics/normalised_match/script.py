import re
import unicodedata


def plain(text):
    text = unicodedata.normalize("NFKC", str(text)).casefold()
    text = re.sub(r"\b(a|an|the)\b", " ", text)
    return "".join(char for char in text if unicodedata.category(char)[0] not in "PZC")


def preprocess(data, resp, **kwargs):
    reference = data.get("ref_answer")
    reference = data.get("gt") if reference is None else reference
    return None if reference is None else plain(resp.content) == plain(reference)
