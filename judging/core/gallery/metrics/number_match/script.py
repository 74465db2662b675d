import re

RELATIVE, ABSOLUTE = 0.01, 1e-9  # the larger of the two is allowed


def last_number(text):
    numbers = re.findall(r"[-+−]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?", str(text))
    return float(numbers[-1].replace(",", "").replace("−", "-")) if numbers else None


def preprocess(data, resp, **kwargs):
    reference = data.get("ref_answer")
    wanted = last_number(data.get("gt") if reference is None else reference)
    number = last_number(resp.content)
    if wanted is None:
        return None
    return number is not None and abs(number - wanted) <= max(ABSOLUTE, RELATIVE * abs(wanted))
