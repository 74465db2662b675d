"""The parts of an XLSX file that a table needs, each read as a stream: its sheets, shared strings and styles.

Of shared strings, of which there may be millions, memory holds eight bytes each; the texts lie in a temporary file.
"""

import os
import posixpath
import tempfile
import weakref
import zipfile
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from datasets.core.limits import MEBIBYTE

MOST_STRINGS = 10_000_000
"""Ten different texts in every row that a sheet can have would be a few more."""
MOST_STYLES = 100_000
MOST_SHEETS = 10_000
_CHUNK = 64 * 1024
_LONGEST_TAG = MEBIBYTE
_STYLE_LISTS = ("cellStyleXfs", "cellXfs", "cellStyles", "dxfs")
_CONVENTIONAL = {"styles": "xl/styles.xml", "sharedStrings": "xl/sharedStrings.xml"}

Start = Callable[[str, dict[str, str]], None]
End = Callable[[str], None]


class TooMuch(Exception):
    """A part holds more than any spreadsheet program writes."""


def local(name: str) -> str:
    """The name of an element or attribute without the prefix of its namespace."""
    return name[name.rfind(":") + 1 :]


def parsed(
    archive: zipfile.ZipFile, member: str, start: Start, end: End | None, text: Any = None
) -> Iterator[None]:
    """Calls back for each element, with its name as it is written, and yields after every few of them.

    Raises ExpatError, also where the part declares entities, TooMuch, and what zipfile raises of damaged archives.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, text
    parser.StartDoctypeDeclHandler = _refused
    with archive.open(member) as stream:
        given = 0
        while chunk := stream.read(_CHUNK):
            given += len(chunk)
            parser.Parse(chunk, False)
            if given - parser.CurrentByteIndex > _LONGEST_TAG:
                raise TooMuch
            yield
        parser.Parse(b"", True)
    yield


def _refused(*_about: object) -> None:
    raise expat.ExpatError("a document type")


def _elements(archive: zipfile.ZipFile, member: str) -> Iterator[tuple[str, dict[str, str]]]:
    """(name, attributes) of each element, one after the other."""
    found: list[tuple[str, dict[str, str]]] = []
    for _some in parsed(archive, member, lambda name, given: found.append((local(name), given)), None):
        yield from found
        found.clear()


@dataclass(slots=True)
class Workbook:
    """`sheets`: {title: its part}; `dates` and `spans`: styles whose numbers are dates, and lengths of time."""

    sheets: dict[str, str] = field(default_factory=dict)
    strings: str = ""
    dates: set[int] = field(default_factory=set)
    spans: set[int] = field(default_factory=set)
    from_1904: bool = False


def read_workbook(archive: zipfile.ZipFile) -> Workbook:
    """Raises KeyError if a part is missing, TooMuch, and as `parsed`."""
    names = set(archive.namelist())
    package = _related(archive, "_rels/.rels", "", names)
    main = next((part for kind, part in package.values() if kind == "officeDocument"), "xl/workbook.xml")
    folder, name = posixpath.split(main)
    related = _related(archive, f"{folder}/_rels/{name}.rels", folder, names)
    parts = {kind: part for kind, part in related.values() if part in names}
    parts = {kind: part for kind, part in _CONVENTIONAL.items() if part in names} | parts
    found = Workbook(strings=parts.get("sharedStrings", ""))
    for element, given in _elements(archive, main):
        if element == "workbookPr":
            found.from_1904 = given.get("date1904") in ("1", "true")
        elif element == "sheet":
            named = next((value for key, value in given.items() if key.endswith(":id")), "")
            kind, part = related.get(named, ("", ""))
            if kind == "worksheet" and part in names:
                found.sheets[given["name"]] = part
            _bounded(found.sheets, MOST_SHEETS)
    if "styles" in parts:
        _read_styles(archive, parts["styles"], found)
    return found


def _bounded(given: Any, most: int) -> None:
    if len(given) > most:
        raise TooMuch


def _related(
    archive: zipfile.ZipFile, member: str, folder: str, names: set[str]
) -> dict[str, tuple[str, str]]:
    """{id: (kind, part)} of a list of relationships; {} where there is no list."""
    found: dict[str, tuple[str, str]] = {}
    if member in names:
        for element, given in _elements(archive, member):
            if element == "Relationship":
                part = posixpath.normpath(posixpath.join("/", folder, given.get("Target", ""))).lstrip("/")
                found[given.get("Id", "")] = (posixpath.basename(given.get("Type", "")), part)
                _bounded(found, MOST_SHEETS)
    return found


def _read_styles(archive: zipfile.ZipFile, member: str, found: Workbook) -> None:
    """Which styles of cells are those of dates."""
    from openpyxl.styles.numbers import builtin_format_code, is_date_format, is_timedelta_format

    formats: dict[int, str] = {}
    within, number = "", -1
    for element, given in _elements(archive, member):
        if element in _STYLE_LISTS:
            within = element
        elif element == "numFmt" and not within:
            formats[int(given["numFmtId"])] = given.get("formatCode", "")[:1000]
            _bounded(formats, MOST_STYLES)
        elif element == "xf" and within == "cellXfs":
            number += 1
            of = int(given.get("numFmtId", 0))
            code = formats.get(of) or builtin_format_code(of)
            if is_date_format(code):
                (found.spans if is_timedelta_format(code) else found.dates).add(number)
                _bounded(found.dates, MOST_STYLES)
                _bounded(found.spans, MOST_STYLES)


class SharedStrings:
    """The texts of a workbook by their numbers; raises LookupError of a number that there is not."""

    def __init__(self, archive: zipfile.ZipFile, member: str, longest: int) -> None:
        self._ends = array("Q", [0])
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the strings
        weakref.finalize(self, self._file.close)
        if member:
            for texts in _texts(archive, member, longest):
                self._keep(texts)
        self._file.flush()

    def _keep(self, texts: list[str]) -> None:
        end = self._ends[-1]
        for text in texts:
            end += self._file.write(text.encode("utf-8", "surrogatepass"))
            self._ends.append(end)
        if len(self._ends) > MOST_STRINGS:
            raise TooMuch

    def __getitem__(self, number: int) -> str:
        if not 0 <= number < len(self._ends) - 1:
            raise LookupError(number)
        start, end = self._ends[number], self._ends[number + 1]
        return os.pread(self._file.fileno(), end - start, start).decode("utf-8", "surrogatepass")


def _texts(archive: zipfile.ZipFile, member: str, longest: int) -> Iterator[list[str]]:
    """The shared strings, some at a time, without their formats and how they are pronounced."""
    whole: list[str] = []
    parts: list[str] = []
    room = longest
    state = {"t": False, "rPh": False}

    def start(name: str, _given: dict[str, str]) -> None:
        name = local(name)
        if name in state:
            state[name] = True
        elif name == "si":
            nonlocal room
            room = longest
            parts.clear()

    def end(name: str) -> None:
        name = local(name)
        if name in state:
            state[name] = False
        elif name == "si":
            whole.append("".join(parts))

    def text(given: str) -> None:
        nonlocal room
        if state["t"] and not state["rPh"]:
            parts.append(given)
            room -= len(given)
            if room < 0:
                raise TooMuch

    for _some in parsed(archive, member, start, end, text):
        yield whole
        whole.clear()
