"""Recognises misspelt roles and keys."""

from collections.abc import Collection, Iterable, Iterator
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any

from datasets.core.formats import ROLES

Misspelling = tuple[tuple[str | int, ...], str, str]
"""The steps to an object in a row, a key of it, and the key that was meant."""

TOP_KEYS = ("messages", "model_outputs", "conversation", "system")
MESSAGE_KEYS = ("role", "content", "tool_calls")
OUTPUT_KEYS = ("model_name", "responses")
RESPONSE_KEYS = ("content", "reasoning_content", "tool_calls")
TURN_KEYS = ("prompt", "response")

MOST_LETTERS = 2
"""The maximum edit distance of a misspelling."""
_LONGEST = 20
_SHORT = 5
"""Names up to this length have neighbours two letters away with a different meaning."""
_REQUIRED = ("role", "content", "model_name", "responses", "prompt", "response")
_ITEMS = {"messages": MESSAGE_KEYS, "model_outputs": OUTPUT_KEYS, "conversation": TURN_KEYS}
_TYPES: dict[str, type | tuple[type, ...]] = {
    "messages": (list, str),
    "model_outputs": (list, dict),
    "conversation": list,
    "responses": list,
    "role": str,
    "system": str,
}


def role_meant(role: str) -> str | None:
    """The role that `role` seems to misspell, ignoring case; None if there is none."""
    return _role_meant(role) if len(role) <= _LONGEST else None


@lru_cache(maxsize=1024)
def _role_meant(role: str) -> str | None:
    apart, best = min((letters_apart(role.casefold(), real_role), real_role) for real_role in ROLES)
    return best if apart <= MOST_LETTERS else None


def is_misspelling(name: str, key: str) -> bool:
    """Whether `name` is similar but not equal to the key `known`."""
    return abs(len(name) - len(key)) <= MOST_LETTERS and _is_misspelling(name, key)


@lru_cache(maxsize=4096)
def _is_misspelling(name: str, key: str) -> bool:
    apart = letters_apart(name.casefold(), key)
    if apart == MOST_LETTERS and len(key) <= _SHORT:
        return sorted(name.casefold()) == sorted(key)  # two letters swapped
    return apart <= MOST_LETTERS and name != key


def near_miss(names: Iterable[str], key: str, others: Collection[str] = ()) -> dict[str, Any]:
    """The finding params for the first name that misspells `known` and is not in `others`; {} if there is none."""
    near = (name for name in names if is_misspelling(name, key) and name not in others)
    return next(({"near": name, "meant": key} for name in near), {})


def is_for(key: str, value: Any) -> bool:
    """Whether a value under another name may be the one of `key`, so that renaming is of use."""
    if not isinstance(value, _TYPES.get(key, object)):
        return False
    if key in _ITEMS and type(value) is list:
        first = value[0] if value else None
        return isinstance(first, dict) and any(
            name == wanted or is_misspelling(name, wanted) for name in first for wanted in _ITEMS[key]
        )
    return True


def misspelt_keys(row: dict[str, Any]) -> Iterator[Misspelling]:
    """All keys of a row that misspell one of ours which is missing, and can be renamed."""
    top = misspelt_top_keys(row)
    for key, meant in top.items():
        yield (), key, meant
    for key, value in row.items():
        meant = top.get(key, key)
        if meant in _ITEMS and type(value) is list:
            yield from _in_items(value, (key,), _ITEMS[meant])


def misspelt_top_keys(row: dict[str, Any]) -> dict[str, str]:
    """{key: the key that was meant} at a row's top level."""
    families = [key for key in ("messages", "conversation") if _key(row, key)]
    if not families:
        return {}
    own = next((key for key in families if key in row), families[0])
    further = "system" if own == "conversation" else "model_outputs"
    keys = {_key(row, meant): meant for meant in (own, "ref_answer", further)}
    return {key: meant for key, meant in keys.items() if key and key != meant}


def _in_items(items: list[Any], at: tuple[str | int, ...], keys: tuple[str, ...]) -> Iterator[Misspelling]:
    """The same in the items of a list whose keys should be `keys`; an optional `tool_calls` is none of them."""
    for index, item in enumerate(items):
        if type(item) is not dict:
            continue
        for meant in keys:
            key = _key(item, meant, keys)
            if (
                key not in ("", meant)
                and meant in _REQUIRED
                and not (meant == "content" and "tool_calls" in item)
            ):
                yield (*at, index), key, meant
            if meant == "responses" and type(item.get(key)) is list:
                yield from _in_items(item[key], (*at, index, key), RESPONSE_KEYS)


def _key(holder: dict[str, Any], meant: str, others: Collection[str] = TOP_KEYS) -> str:
    """The key under which the value of `meant` is: itself, or one that misspells it; '' if there is none."""
    if meant in holder:
        return meant
    near = str(near_miss(holder, meant, others).get("near", ""))
    return near if near and is_for(meant, holder[near]) else ""


def letters_apart(first: str, second: str) -> int:
    """The number of letters to insert, delete or replace to turn one word into the other."""
    changes = SequenceMatcher(None, first, second, autojunk=False).get_opcodes()
    return sum(max(end - start, to - at) for tag, start, end, at, to in changes if tag != "equal")
