import re

LOW, HIGH = 1, 200


def preprocess(data, resp, **kwargs):
    words = len(re.findall(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+", resp.content))
    print(words)
    return LOW <= words <= HIGH
