"""Reads the parts of an XLSX file that a table needs as streams: sheets, shared strings and styles.

There may be millions of shared strings: their texts are in a temporary file, with eight bytes each in memory.
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
"""About ten distinct strings for each possible row of a sheet."""
MOST_STYLES = 100_000
MOST_SHEETS = 10_000
WIDEST = 16_384
"""Maximum number of columns in a sheet."""
_CHUNK = 64 * 1024
_LONGEST_TAG = MEBIBYTE
_STYLE_LISTS = ("cellStyleXfs", "cellXfs", "cellStyles", "dxfs")
_CONVENTIONAL = {"styles": "xl/styles.xml", "sharedStrings": "xl/sharedStrings.xml"}

Start = Callable[[str, dict[str, str]], None]
End = Callable[[str], None]


class TooMuch(Exception):
    """A part contains more than any spreadsheet program writes."""


def local(name: str) -> str:
    """The local name of an element or attribute, without its namespace prefix."""
    return name[name.rfind(":") + 1 :]


def column_number(letters: str) -> int:
    """Convert a column's letters to its number."""
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number


def parsed(
    archive: zipfile.ZipFile, member: str, start: Start, end: End | None, text: Any = None
) -> Iterator[None]:
    """Parse a part with callbacks per element (qualified names); yields after each chunk.

    Raises TooMuch, ExpatError (also for document type declarations), and what zipfile raises for damaged archives.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, text
    parser.StartDoctypeDeclHandler = _refused
    with archive.open(member) as stream:
        bytes_read = 0
        while chunk := stream.read(_CHUNK):
            bytes_read += len(chunk)
            parser.Parse(chunk, False)
            if bytes_read - parser.CurrentByteIndex > _LONGEST_TAG:
                raise TooMuch
            yield
        parser.Parse(b"", True)
    yield


def _refused(*_about: object) -> None:
    raise expat.ExpatError("a document type")


def _elements(archive: zipfile.ZipFile, member: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (name, attributes) of each element."""
    elements: list[tuple[str, dict[str, str]]] = []
    for _some in parsed(
        archive, member, lambda name, attributes: elements.append((local(name), attributes)), None
    ):
        yield from elements
        elements.clear()


@dataclass(slots=True)
class Workbook:
    """`sheets`: {title: part name}; `dates` and `spans`: styles of date and duration cells."""

    sheets: dict[str, str] = field(default_factory=dict)
    strings: str = ""
    dates: set[int] = field(default_factory=set)
    spans: set[int] = field(default_factory=set)
    from_1904: bool = False


def read_workbook(archive: zipfile.ZipFile) -> Workbook:
    """Read the workbook's parts. Raises KeyError if one is missing, TooMuch, and as `parsed`."""
    names = set(archive.namelist())
    package = _related(archive, "_rels/.rels", "", names)
    main = next((part for kind, part in package.values() if kind == "officeDocument"), "xl/workbook.xml")
    folder, name = posixpath.split(main)
    related = _related(archive, f"{folder}/_rels/{name}.rels", folder, names)
    parts = {kind: part for kind, part in related.values() if part in names}
    parts = {kind: part for kind, part in _CONVENTIONAL.items() if part in names} | parts
    workbook = Workbook(strings=parts.get("sharedStrings", ""))
    for element, attributes in _elements(archive, main):
        if element == "workbookPr":
            workbook.from_1904 = attributes.get("date1904") in ("1", "true")
        elif element == "sheet":
            named = next((value for key, value in attributes.items() if key.endswith(":id")), "")
            kind, part = related.get(named, ("", ""))
            if kind == "worksheet" and part in names:
                workbook.sheets[attributes["name"]] = part
            _bounded(workbook.sheets, MOST_SHEETS)
    if "styles" in parts:
        _read_styles(archive, parts["styles"], workbook)
    return workbook


def _bounded(values: Any, most: int) -> None:
    if len(values) > most:
        raise TooMuch


def _related(
    archive: zipfile.ZipFile, member: str, folder: str, names: set[str]
) -> dict[str, tuple[str, str]]:
    """{id: (kind, part)} of a relationships part; {} if the part does not exist."""
    parts: dict[str, tuple[str, str]] = {}
    if member in names:
        for element, attributes in _elements(archive, member):
            if element == "Relationship":
                part = posixpath.normpath(posixpath.join("/", folder, attributes.get("Target", ""))).lstrip(
                    "/"
                )
                parts[attributes.get("Id", "")] = (posixpath.basename(attributes.get("Type", "")), part)
                _bounded(parts, MOST_SHEETS)
    return parts


def _read_styles(archive: zipfile.ZipFile, member: str, workbook: Workbook) -> None:
    """Find the cell styles for dates and durations."""
    from openpyxl.styles.numbers import builtin_format_code, is_date_format, is_timedelta_format

    formats: dict[int, str] = {}
    within, number = "", -1
    for element, attributes in _elements(archive, member):
        if element in _STYLE_LISTS:
            within = element
        elif element == "numFmt" and not within:
            formats[int(attributes["numFmtId"])] = attributes.get("formatCode", "")[:1000]
            _bounded(formats, MOST_STYLES)
        elif element == "xf" and within == "cellXfs":
            number += 1
            of = int(attributes.get("numFmtId", 0))
            code = formats.get(of) or builtin_format_code(of)
            if is_date_format(code):
                (workbook.spans if is_timedelta_format(code) else workbook.dates).add(number)
                _bounded(workbook.dates, MOST_STYLES)
                _bounded(workbook.spans, MOST_STYLES)


class SharedStrings:
    """The shared strings of a workbook by number; raises LookupError for an unknown number."""

    def __init__(self, archive: zipfile.ZipFile, member: str, longest: int) -> None:
        self._ends = array("Q", [0])
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # closed together with this object
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
    """Yield batches of shared strings, without formatting and phonetic hints."""
    whole: list[str] = []
    parts: list[str] = []
    left = longest
    state = {"t": False, "rPh": False}

    def start(name: str, _given: dict[str, str]) -> None:
        name = local(name)
        if name in state:
            state[name] = True
        elif name == "si":
            nonlocal left
            left = longest
            parts.clear()

    def end(name: str) -> None:
        name = local(name)
        if name in state:
            state[name] = False
        elif name == "si":
            whole.append("".join(parts))

    def text(content: str) -> None:
        nonlocal left
        if state["t"] and not state["rPh"]:
            parts.append(content)
            left -= len(content)
            if left < 0:
                raise TooMuch

    for _some in parsed(archive, member, start, end, text):
        yield whole
        whole.clear()
