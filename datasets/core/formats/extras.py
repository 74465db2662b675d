"""What messages and answers hold beside the keys that rules know: learned as it is met, then decoded in one go."""

from collections.abc import Callable, Iterable
from functools import reduce
from operator import attrgetter, or_
from types import GenericAlias
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from datasets.core.formats.sound import keys_of

MOST_EXTRAS = 30
_DEEPEST_FORM = 3
_SCALAR = str | int | float | bool | None  # numbers as they are: messages are compared
_FLAT = dict[str, _SCALAR]
Form = tuple[tuple[str, Any], ...]
"""The keys of an object, sorted, each with its value's type or, if that is an object, form."""


class Extras:
    """All keys that some objects were found to have beside the `known` ones.

    Of a decoded object `values` are what stands there, `absent` where nothing does. `nested`: some of them may hold
    an object or array within another.
    """

    def __init__(self, *known: str) -> None:
        self._known = frozenset(known)
        self._types: dict[str, set[Any]] = {}
        self._below: list[tuple[int, int | None]] = []
        self.values: Callable[[Any], tuple[Any, ...]] = tuple
        self.absent: tuple[Any, ...] = ()
        self.nested = False

    def __contains__(self, name: str) -> bool:
        return name in self._types

    def learn(self, holders: Iterable[dict[str, Any]]) -> bool:
        """Whether there is anything new in these, to be known from now on."""
        before = sum(map(len, self._types.values()))
        for holder in holders:
            for name in holder.keys() - self._known:
                self._types.setdefault(name, set()).add(_type_of(holder[name]))
        return sum(map(len, self._types.values())) > before

    @property
    def can_be_known(self) -> bool:
        return len(self._types) <= MOST_EXTRAS and all(map(can_be_learned, self._types))

    def structure(self, known: dict[str, Any], *, forbid_unknown_fields: bool) -> Any:
        """A type with these fields and the further ones, in the order in which an object's keys are sorted.

        It has `tool_calls` in any case.
        """
        widest = {name: _widest(types) for name, types in self._types.items()}
        names = {name: name if name == "tool_calls" else f"further_{at}" for at, name in enumerate(widest)}
        fields = known | {name: (names[name], kind | UnsetType, UNSET) for name, (kind, _) in widest.items()}
        self._below = [
            (at, below)
            for at, (name, (_, below)) in enumerate(widest.items())
            if below != 0 or _FLAT in self._types[name]
        ]
        self.nested = any(below != 0 for _, below in self._below)
        asked = [*names.values(), "nothing", "nothing"][: max(2, len(names))]  # of one it would give no tuple
        self.values = attrgetter(*asked)
        self.absent = (UNSET,) * len(asked)
        return msgspec.defstruct(
            "Structure",
            [fields[name] for name in sorted(fields)],
            rename={inner: name for name, inner in names.items()},
            namespace={"nothing": UNSET} | ({} if "tool_calls" in names else {"tool_calls": UNSET}),
            forbid_unknown_fields=forbid_unknown_fields,
            kw_only=True,
            gc=False,
        )

    def keys(self, values: tuple[Any, ...]) -> int:
        """How many further keys an object with these values has, and what stands below them."""
        keys = len(values) - values.count(UNSET)
        for at, below in self._below:
            value = values[at]
            kind = type(value)
            if below is None:
                keys += 0 if value is UNSET else keys_of(value)
            elif kind is list:
                keys += below * len(value)
            elif kind is dict:
                keys += len(value)
        return keys


def _type_of(value: Any) -> Any:
    """The decoder's type for a value; for a list of objects that have the same form, that."""
    if isinstance(value, dict):
        return dict[str, Any] if any(map(_holds_more, value.values())) else _FLAT
    if isinstance(value, list):
        if not any(map(_holds_more, value)):
            return list[_SCALAR]
        forms = {_form_of(item) for item in value}
        return forms.pop() if len(forms) == 1 and isinstance(value[0], dict) else list[Any]
    return int | float if type(value) in (int, float) else type(value)


def _form_of(value: Any, deepest: int = _DEEPEST_FORM) -> Any:
    """The form of an object, unless it holds arrays or is too deep; else the type of any value that is none."""
    if not isinstance(value, dict):
        return list[Any] if isinstance(value, list) else _type_of(value)
    if not deepest or not all(map(can_be_learned, value)):
        return list[Any]
    inner = tuple((name, _form_of(value[name], deepest - 1)) for name in sorted(value))
    return list[Any] if any(kind == list[Any] for _, kind in inner) else inner


def _holds_more(value: Any) -> bool:
    return isinstance(value, dict | list)


def _widest(types: set[Any]) -> tuple[Any, int | None]:
    """One type for all, as a decoder wants no two kinds of objects or arrays; how many keys an item of an array holds.

    None where that may be any number.
    """
    forms = [kind for kind in types if isinstance(kind, tuple)]
    kept: set[Any] = types.difference(forms)
    below: int | None = 0
    if len(forms) == 1 and not kept & {list[_SCALAR], list[Any]}:
        formed, below = _made(forms[0])
        kept.add(GenericAlias(list, (formed,)))
    elif forms:
        kept.add(list[Any])
    for wide, narrow in ((dict[str, Any], _FLAT), (list[Any], list[_SCALAR])):
        if wide in kept:
            kept.discard(narrow)
            below = None
    return reduce(or_, kept, type(None)), below


def _made(form: Form) -> tuple[Any, int]:
    """The structure for a form, and how many keys it has."""
    fields, keys = list[tuple[str, Any]](), len(form)
    for at, (_, kind) in enumerate(form):
        if isinstance(kind, tuple):
            kind, held = _made(kind)
            keys += held
        fields.append((f"key_{at}", kind))
    rename = {f"key_{at}": name for at, (name, _) in enumerate(form)}
    return msgspec.defstruct("Formed", fields, rename=rename, forbid_unknown_fields=True, gc=False), keys


def can_be_learned(name: str) -> bool:
    """Whether a structure can have a key of this name."""
    return not any(sign in '"\\' or sign < " " for sign in name)
