"""One JSON document that holds a list of records beside other keys, such as `{"version": 1, "data": [{…}, …]}`.

Several lists of the same kind, such as `{"train": [{…}], "test": [{…}]}`, are read one after the other.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from datasets.core.decode import text_encoding, utf8_chunks
from datasets.core.imports.columns import names_question
from datasets.core.imports.json_records import Text
from datasets.core.imports.key_use import KeyUse
from datasets.core.imports.model import BrokenRecord, NotUsable, Place, SourceFile, with_warning_of
from datasets.core.limits import Limits

_LISTS = ("data", "rows", "records", "examples", "items", "instances", "samples", "questions", "entries")
"""Names of lists whose records need not name a question."""
_SPLITS = (
    "train",
    "training",
    "dev",
    "development",
    "valid",
    "validation",
    "val",
    "eval",
    "evaluation",
    "test",
    "testing",
)
"""Names of several lists whose records need not name a question."""
_SPLIT = "split"
_TEXTS = {"text", "content", "文本", "内容"}
"""Names of a question that also occur in other lists, such as those of messages or documents."""
_NAMES_LOOKED_AT = 20
_NOTHING: tuple[Any, ...] = (None, "", {})


@dataclass(frozen=True, slots=True)
class Member:
    """A key of the document with its value, or with one item of its list, numbered from 1 (else 0)."""

    key: str
    value: Any
    number: int = 0


@dataclass(frozen=True, slots=True)
class Wrapper:
    """The lists of records with their lengths, and the other keys that hold something.

    `split` is the field that names a record's list, '' if there is only one.
    """

    lists: dict[str, int]
    others: list[str]
    split: str = ""

    def key_use(self, file: SourceFile) -> KeyUse:
        """The other keys, which are not imported."""
        use = KeyUse()
        use.count(Place(file.name), self.others)
        return use

    @property
    def told(self) -> str:
        """The lists that are read one after the other, '' if there is only one."""
        return ", ".join(f"{key} × {length}" for key, length in self.lists.items()) if self.split else ""


def wrapper_of(file: SourceFile, limits: Limits | None = None) -> Wrapper | None:
    """The lists of records in a file that is one object and no record itself; None for any other file."""
    items, objects = Counter[str](), Counter[str]()
    names: dict[str, set[str]] = defaultdict(set)
    held: dict[str, None] = {}
    split = _SPLIT
    with suppress(NotUsable):
        for member in _members(file, limits):
            if isinstance(member.value, BrokenRecord) or names_question([member.key]):
                return None
            if member.number or member.value not in _NOTHING:
                held[member.key] = None
            items[member.key] += member.number > 0
            if member.number and isinstance(member.value, dict):
                objects[member.key] += 1
                while split in member.value:
                    split += "_"
                if member.number <= _NAMES_LOOKED_AT:
                    names[member.key].update(member.value)
        keys = _of_records([key for key in objects if 2 * objects[key] > items[key]], names)
        lists = {key: items[key] for key in keys}
        others = [name for name in held if name not in lists]
        return Wrapper(lists, others, split if len(lists) > 1 else "") if lists else None
    return None


def _of_records(lists: list[str], names: dict[str, set[str]]) -> list[str]:
    """The list whose records name a question, or that is called like one of records, or the lists of one kind.

    These ask with the same key, or are called like the parts of a benchmark. [] if it is not clear.
    """
    with_questions = [key for key in lists if names_question(list(names[key]))]
    called = [key for key in (with_questions or lists) if key in _LISTS]
    fitting = with_questions if len(with_questions) == 1 else called
    if len(fitting) == 1:
        return fitting
    several = with_questions or lists
    if several and all(key.lower() in _SPLITS for key in several):
        return several
    return with_questions if names_question(list(_shared(with_questions, names) - _TEXTS)) else []


def _shared(lists: list[str], names: dict[str, set[str]]) -> set[str]:
    return set.intersection(*(names[key] for key in lists)) if lists else set()


def wrapped_records(
    file: SourceFile, wrapper: Wrapper, limits: Limits | None = None
) -> Iterator[tuple[int, Any]]:
    """Yield the records of the lists with their numbers, which go on from one list to the next."""
    items = (member for member in _members(file, limits) if member.key in wrapper.lists and member.number)
    for number, member in enumerate(items, 1):
        yield number, _with_split(member, wrapper.split)


def _with_split(member: Member, split: str) -> Any:
    """The record, with the name of its list."""
    value = member.value
    if not split or not isinstance(value, dict):
        return value
    return with_warning_of(value, {**value, split: member.key})


def _members(file: SourceFile, limits: Limits | None) -> Iterator[Member]:
    """Yield what the only object of a file holds; a BrokenRecord ends it, also if the file is anything else."""
    with file.upload(limits) as upload:
        text = Text(utf8_chunks(upload, text_encoding(upload)), upload.limits)
        broken = Member("", BrokenRecord("json_broken"))
        if not (text.skip() and text.take("{")):
            yield broken
            return
        while text.skip() and not text.take("}"):
            key = text.value()
            if not (isinstance(key, str) and text.skip() and text.take(":") and text.skip()):
                yield broken
                return
            for member in _values(key, text):
                yield member
                if isinstance(member.value, BrokenRecord):
                    return
        if text.skip():
            yield broken


def _values(key: str, text: Text) -> Iterator[Member]:
    """Yield the value of a key, or the items of its list."""
    if not text.take("["):
        yield Member(key, text.value())
        return
    number = 0
    while text.skip() and not text.take("]"):
        number += 1
        yield Member(key, text.value(), number)
