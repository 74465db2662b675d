import json

POINTS = {"minor": 1, "major": 5, "critical": 10}
MOST = 25


def postprocess(judge_resp, **kwargs):
    text = judge_resp.content or ""
    try:
        errors = json.loads(text[text.index("{") : text.rindex("}") + 1])["errors"]
        lost = sum(POINTS[error["severity"].strip().lower()] for error in errors)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        print("no list of errors:", error)
        return None
    return max(0, MOST - lost)
