# asserts as text, or a list of them
import re


def preprocess(data, resp, **kwargs):
    blocks = re.findall(r"```(?:python|py)?[ \t]*\n(.*?)```", resp.content, re.DOTALL | re.IGNORECASE)
    code = "\n".join(blocks) or resp.content
    tests = data["tests"]
    tests = tests if isinstance(tests, str) else "\n".join(tests)
    names = {"__name__": "answer"}
    try:
        exec(compile(code, "answer", "exec"), names)
        exec(compile(tests, "tests", "exec"), names)
        if "check" in names and data.get("entry_point"):  # HumanEval's tests are a function
            names["check"](names[data["entry_point"]])
    except (Exception, SystemExit) as error:
        print(type(error).__name__, error)
        return False
    return True
