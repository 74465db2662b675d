import re


def preprocess(data, resp, **kwargs):
    return re.search(data["pattern"], resp.content) is not None
