"""Read a pasted list of people: a name a line, "Name <mail>", separated by commas or tabs, from a spreadsheet."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

MOST_PEOPLE = 500
LONGEST = 200  # of a name with its address
Why = Literal["mail", "name", "long", "twice"]

_MAIL = re.compile(r"[^\s@<>()\"',;:]+@[^\s@<>()\"',;:.]+(\.[^\s@<>()\"',;:.]+)+")
_IN_BRACKETS = re.compile(r"^(.*?)\s*[<(（＜]\s*(?:mailto:)?([^<>()（）＜＞]*@[^<>()（）＜＞]*?)\s*[>)）＞]$")
_MARK = re.compile(r"^\s*(?:[-*•·–]\s+|\(?\d{1,4}[.)．、]\s*(?=\D))")
_FULL_WIDTH = str.maketrans({"，": ",", "；": ";", "、": ",", "\u00a0": " ", "\u3000": " ", "＠": "@"})
_NAME_HEADS = {"name", "full name", "names", "rater", "姓名", "名字", "评分员", "名称"}
_FIRST_HEADS, _LAST_HEADS = {"first name", "given name", "名"}, {"last name", "family name", "surname", "姓"}
_MAIL_HEADS = {
    "mail",
    "email",
    "e-mail",
    "email address",
    "e-mail address",
    "邮箱",
    "电子邮件",
    "电子邮箱",
    "邮件",
}


@dataclass(frozen=True, slots=True)
class Invited:
    """A person of the list, by the number of their line. `name` or `mail` may be ''."""

    line: int
    name: str
    mail: str

    @property
    def label(self) -> str:
        return f"{self.name} <{self.mail}>" if self.name and self.mail else self.name or self.mail


@dataclass(frozen=True, slots=True)
class WrongEntry:
    """What is no person, and why: no mail address, no name, too long, or the same as on line `first`."""

    line: int
    text: str
    why: Why
    first: int = 0


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns that a spreadsheet's heads name."""

    name: int | None
    mail: int | None
    first: int | None
    last: int | None


def read_people(text: str) -> tuple[list[Invited], list[WrongEntry]]:
    """The people of a pasted list in its order, and what is wrong in it."""
    lines = [(number, _clean(line)) for number, line in enumerate(text.splitlines(), 1) if _clean(line)]
    columns = _columns(lines[0][1]) if len(lines) > 1 else None
    people: list[Invited] = []
    wrong: list[WrongEntry] = []
    for number, line in lines[1:] if columns else lines:
        for name, mail in _people_of(line, columns, alone=len(lines) == 1):
            _sort_in(Invited(number, name, mail), people, wrong)
    return people, wrong


def _sort_in(person: Invited, people: list[Invited], wrong: list[WrongEntry]) -> None:
    person = replace(person, name=" ".join(person.name.strip(" \"'").split()))
    text = person.label[:LONGEST]
    same = next((other for other in people if _same(person, other)), None)
    if person.mail and not _MAIL.fullmatch(person.mail):
        wrong.append(WrongEntry(person.line, text, "mail"))
    elif not person.mail and not any(letter.isalnum() for letter in person.name):
        wrong.append(WrongEntry(person.line, text, "name"))
    elif len(person.label) > LONGEST:
        wrong.append(WrongEntry(person.line, text, "long"))
    elif same is not None:
        wrong.append(WrongEntry(person.line, text, "twice", same.line))
    else:
        people.append(person)


def _same(person: Invited, other: Invited) -> bool:
    if person.mail and other.mail:
        return person.mail.casefold() == other.mail.casefold()
    return bool(person.name) and person.name.casefold() == other.name.casefold()


def _clean(line: str) -> str:
    """The line with its usual separators, without marks of a list and what can't be printed."""
    printable = "".join(
        letter
        for letter in line.replace("\u3000", " ")
        if letter == "\t" or letter.isprintable() or letter == "\u00a0"
    )
    return _MARK.sub("", printable).translate(_FULL_WIDTH).rstrip(" ,;\t")


def _cells(line: str) -> tuple[list[str], str]:
    """The cells of a line and what separates them. Quotation marks keep a cell together."""
    separator = next((mark for mark in "\t;" if mark in line), ",")
    rows = list(csv.reader([line], delimiter=separator, skipinitialspace=True))
    return [cell.strip() for cell in rows[0]], separator


def _columns(line: str) -> _Columns | None:
    """The columns by the heads of the first line; None if it has no heads."""
    heads = [cell.casefold().strip(" *:：") for cell in _cells(line)[0]]

    def place(names: set[str]) -> int | None:
        return next((number for number, head in enumerate(heads) if head in names), None)

    columns = _Columns(place(_NAME_HEADS), place(_MAIL_HEADS), place(_FIRST_HEADS), place(_LAST_HEADS))
    return None if columns == _Columns(None, None, None, None) else columns


def _people_of(line: str, columns: _Columns | None, *, alone: bool) -> Iterator[tuple[str, str]]:
    """The (name, mail) of each person on a line; `alone`: it is the whole list."""
    cells, separator = _cells(line)
    if columns is not None and len(cells) > 1:
        yield _by_columns(cells, columns)
        return
    parts = [_name_and_mail(cell) for cell in cells if cell]
    mails = [mail for _name, mail in parts if mail]
    if not mails:
        names = [name for name, _mail in parts]
        yield from ((name, "") for name in (names if separator != "\t" or alone else _texts(names)[:1]))
    elif len(mails) == 1:
        yield _one_person(parts)
    else:
        yield from _several_people(parts)


def _by_columns(cells: Sequence[str], columns: _Columns) -> tuple[str, str]:
    def cell(place: int | None) -> str:
        return cells[place] if place is not None and place < len(cells) else ""

    name = cell(columns.name) or f"{cell(columns.first)} {cell(columns.last)}".strip()
    own_name, mail = _name_and_mail(cell(columns.mail))
    if columns.mail is None:
        name, mail = _name_and_mail(name)
    return name or own_name, mail or (own_name if columns.mail is not None else "")


def _name_and_mail(cell: str) -> tuple[str, str]:
    """A cell's name and address: "Name <mail>", "Name mail", "mail Name" or one of the two."""
    bracketed = _IN_BRACKETS.match(cell)
    if bracketed:
        return bracketed[1], bracketed[2]
    words = cell.removeprefix("mailto:").split()
    mails = [word for word in words if "@" in word]
    if len(mails) != 1:
        return ("", cell) if mails else (cell, "")
    return " ".join(word for word in words if word != mails[0]), mails[0]


def _texts(names: Sequence[str]) -> list[str]:
    """The cells that aren't only numbers of lines; all if there are no others."""
    named = [name for name in names if name and not name.isdecimal()]
    return named or [name for name in names if name]


def _one_person(parts: Sequence[tuple[str, str]]) -> tuple[str, str]:
    place = next(number for number, (_name, mail) in enumerate(parts) if mail)
    own, mail = parts[place]
    others = _texts([name for name, _mail in parts if name and name != own])
    if own and place and len(parts) == 2:  # "Doe, Jane <mail>"
        return f"{own} {others[0]}" if others else own, mail
    return own or (others[0] if others else ""), mail


def _several_people(parts: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """A name without an address belongs to the bare address that follows it."""
    waiting = ""
    for name, mail in parts:
        if waiting and (name or not mail):
            yield waiting, ""
            waiting = ""
        if mail:
            yield name or waiting, mail
            waiting = ""
        else:
            waiting = name
    if waiting:
        yield waiting, ""
