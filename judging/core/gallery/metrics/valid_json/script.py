import json
import re


def preprocess(data, resp, **kwargs):
    fenced = re.fullmatch(r"\s*```(?:json)?\s*\n(.*?)\n?```\s*", resp.content, re.DOTALL | re.IGNORECASE)
    try:
        json.loads(fenced.group(1) if fenced else resp.content)
    except (ValueError, RecursionError) as error:
        print(error)
        return False
    return True
