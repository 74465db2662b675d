import json
import re

NAMES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {
    "type",
    "required",
    "properties",
    "items",
    "enum",
    "minimum",
    "maximum",
    "pattern",
    "title",
    "description",
    "$schema",
}


def is_type(value, name):
    if name in ("number", "integer"):
        plain = isinstance(value, (int, float)) and not isinstance(value, bool)
        return plain and (name == "number" or value == int(value))
    return isinstance(value, NAMES[name])


def check(value, schema, at="$"):
    if unknown := set(schema) - KNOWN:
        raise ValueError(f"unsupported keywords in the schema: {sorted(unknown)}")
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(is_type(value, name) for name in types):
        return f"{at}: not of type {types}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{at}: not in enum"
    number = is_type(value, "number")
    if number and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        return f"{at}: out of range"
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        return f"{at}: does not match the pattern"
    parts = []
    if isinstance(value, dict):
        if missing := [key for key in schema.get("required", []) if key not in value]:
            return f"{at}: {missing} missing"
        parts = [
            (key, value[key], part) for key, part in schema.get("properties", {}).items() if key in value
        ]
    elif isinstance(value, list):
        parts = [(number, part, schema.get("items", {})) for number, part in enumerate(value)]
    return next((wrong for key, part, inner in parts if (wrong := check(part, inner, f"{at}.{key}"))), "")


def preprocess(data, resp, **kwargs):
    schema = data["schema"]
    schema = json.loads(schema) if isinstance(schema, str) else schema
    fenced = re.fullmatch(r"\s*```(?:json)?\s*\n(.*?)\n?```\s*", resp.content, re.DOTALL | re.IGNORECASE)
    try:
        value = json.loads(fenced.group(1) if fenced else resp.content)
    except (ValueError, RecursionError) as error:
        print(error)
        return False
    wrong = check(value, schema)
    print(wrong)
    return not wrong
