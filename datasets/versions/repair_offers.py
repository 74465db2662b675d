"""The repairs offered for a version: which apply to its findings, and what they would do to samples."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from django.db.models import QuerySet
from django.db.models.functions import Length

from datasets.core.decode import Encoding, Unreadable, Upload, utf8_chunks
from datasets.core.findings import CODES
from datasets.core.formats import model_key
from datasets.core.limits import Limits
from datasets.core.reader import KEPT_PER_CODE
from datasets.core.repair.apply import Repair, repair_file
from datasets.core.repair.kinds import REPAIRS, WITHOUT_VALUE
from datasets.core.rows import object_in
from datasets.core.spelling import misspelt_top_keys
from datasets.messages import repair_labels
from datasets.models import Candidate, Row, StoredFinding, Version
from datasets.selectors import encoding_of
from datasets.versions.row_writer import loaded_object
from evalsite.text_diff import Passage, excerpts, pieces

SAMPLES = 2
ROWS_TRIED = 200
AROUND = 60  # characters of context around a change
LONGEST_SAMPLE = 50_000  # longer rows are repaired but not shown
HEAD_BYTES = 64 * 1024
HEAD_LINES = 14
LONGEST_LINE = 400
GROUPS_SHOWN = 50
HINDRANCES = ("file.too_large", "row.too_large")
"""Files that were not read completely cannot be repaired."""
TOGETHER = {"to_jsonl": ("strip_comments", "strip_trailing_commas", "to_jsonl")}
"""Repairs offered together: for JSON over several lines it is unknown which of them it needs."""
RENAMES = "rename_key"
OF_THE_FILE = ("file.unknown_format", "field.misspelt", "ref_answer.some_missing")
"""Codes of one finding on the whole file, for which any row may be renamed."""
KEYS_SHOWN = 8
OF_LINES = ("strip_comments", "strip_trailing_commas", "python_literal")
"""Repairs of a line's first error, which may hide another."""


@dataclass(frozen=True, slots=True)
class RepairSample:
    """A real row before and after as one text with marked changes; `dropped`: the row is removed."""

    line: int
    pieces: list[Passage]
    dropped: bool


@dataclass(frozen=True, slots=True)
class Beginning:
    """The first lines of a file before and after; `after` is None if the first value is too long to show."""

    before: str
    after: str | None


@dataclass(frozen=True, slots=True)
class Spelling:
    """One spelling of a model name; `candidate` links to its valid rows, None if it has none."""

    name: str
    rows: int
    responses: int
    candidate: int | None


@dataclass(frozen=True, slots=True)
class AlikeGroup:
    """Similar names, most frequent first."""

    key: str
    spellings: list[Spelling]


@dataclass(frozen=True, slots=True)
class RenamedKey:
    """A key to rename, and in how many rows; None if there are more findings than are stored."""

    name: str
    meant: str
    rows: int | None


@dataclass(frozen=True, slots=True)
class RepairOffer:
    """The repairs for findings of one code; they fix `fixes` of the stored ones, None: all."""

    code: str
    names: tuple[str, ...]
    fixes: int | None = None
    samples: list[RepairSample] = field(default_factory=list)
    beginning: Beginning | None = None
    groups: list[AlikeGroup] = field(default_factory=list)
    renamed: list[RenamedKey] = field(default_factory=list)

    @property
    def rows_renamed(self) -> int:
        """In how many rows keys are renamed; 0 if that is not known."""
        counts = [key.rows for key in self.renamed]
        return 0 if None in counts else max((count for count in counts if count), default=0)

    @property
    def needs_choice(self) -> bool:
        return bool(self.groups)

    @property
    def sentences(self) -> list[str]:
        return repair_labels(self.names)


@dataclass(frozen=True, slots=True)
class VersionRepairs:
    """The offers by code; `together` lists all repairs that need no choice, if there are several offers."""

    offers: dict[str, RepairOffer] = field(default_factory=dict)
    together: tuple[str, ...] = ()
    hindered: bool = False

    @property
    def fixes_errors(self) -> bool:
        """Whether any offer repairs errors, not only warnings."""
        return any(CODES[code].severity == "error" for code in self.offers)


def repairs_for(version: Version) -> VersionRepairs:
    """Everything the page offers. Reads the beginning of the file and a few rows."""
    repairs = _repairs_found(version)
    if not repairs or any(code in version.counts for code in HINDRANCES) or not version.file_is_kept:
        return VersionRepairs(hindered=bool(repairs))
    offers = {code: _offer(version, code, names) for code, names in repairs.items()}
    plain = [offer for offer in offers.values() if not offer.needs_choice]
    names = _ordered({name for offer in plain for name in offer.names})
    return VersionRepairs(offers, names if len(plain) > 1 else ())


def names_offered(version: Version) -> frozenset[str]:
    """Every repair that applies to this version; none if the file could not be read to its end."""
    if any(code in version.counts for code in HINDRANCES):
        return frozenset()
    return frozenset(name for names in _repairs_found(version).values() for name in names)


def _repairs_found(version: Version) -> dict[str, tuple[str, ...]]:
    """{code: repairs named by its findings}. The first finding with each repair is always stored."""
    rows = (
        StoredFinding.objects.filter(version=version)
        .exclude(repair="")
        .values_list("code", "repair")
        .distinct()
    )
    repairs: dict[str, set[str]] = {}
    for code, name in rows.order_by("code", "repair"):
        repairs.setdefault(code, set()).update(TOGETHER.get(name, (name,)))
    if repairs.get("json.invalid"):
        repairs["json.invalid"] |= _hidden_repairs(version)
    return {code: _ordered(names) for code, names in repairs.items()}


def _hidden_repairs(version: Version) -> set[str]:
    """Further repairs needed by the first invalid lines, beyond those named by their findings."""
    names = set()
    for row in _rows_to_repair(version, "json.invalid", ROWS_TRIED):
        text: str | None = row.raw
        for name in OF_LINES:
            before, text = text, _repaired(text, name)
            if text != before:
                names.add(name)
    return names


def _ordered(names: set[str]) -> tuple[str, ...]:
    return tuple(name for name in REPAIRS if name in names)


def _offer(version: Version, code: str, names: tuple[str, ...]) -> RepairOffer:
    if code == "model_name.alike":
        return RepairOffer(code, names, groups=alike_groups(version)[:GROUPS_SHOWN])
    if code in ("file.not_jsonl", "file.converted"):
        return RepairOffer(code, names, beginning=_beginning(version, names))
    samples, renamed = _samples(version, code, names), _renamed(version, code) if RENAMES in names else []
    return RepairOffer(code, names, _fixes(version, code), samples=samples, renamed=renamed)


def _renamed(version: Version, code: str) -> list[RenamedKey]:
    """The keys that are renamed because of one code, most frequent first."""
    findings = StoredFinding.objects.filter(version=version, code=code, repair=RENAMES)
    rows = Counter[tuple[str, str]]()
    for params in findings.values_list("params", flat=True):
        rows[params["near"], params["meant"]] += 1
    whole_file = code in OF_THE_FILE
    if code == "file.unknown_format":
        first = next((row.raw for row in _first_rows(version)), "")
        rows.update(misspelt_top_keys(object_in(first) or {}).items())
    cut = version.counts[code] > KEPT_PER_CODE
    return [
        RenamedKey(near, meant, version.fields_found.get(near) if whole_file else None if cut else count)
        for (near, meant), count in rows.most_common(KEYS_SHOWN)
    ]


def _fixes(version: Version, code: str) -> int | None:
    """How many of a code's findings the repair fixes; None if all, or more than are stored."""
    if version.counts[code] > KEPT_PER_CODE:
        return None
    number = StoredFinding.objects.filter(version=version, code=code).exclude(repair="").count()
    return None if number == version.counts[code] else number


def alike_groups(version: Version) -> list[AlikeGroup]:
    """Groups of models whose names differ only in case, blanks and punctuation; the largest group first."""
    by_key: dict[str, list[str]] = {}
    for name in version.models_found:
        by_key.setdefault(model_key(name), []).append(name)
    several = {key: names for key, names in by_key.items() if len(names) > 1}
    wanted = [name for names in several.values() for name in names]
    uploaded = Candidate.uploaded.filter(version=version, responses__gt=0, name__in=wanted[:500])
    candidates = dict(uploaded.values_list("name", "pk"))
    groups = []
    for key, names in several.items():
        counts = [(name, version.models_found[name]) for name in names]
        spellings = [
            Spelling(name, count["rows"], count["responses"], candidates.get(name)) for name, count in counts
        ]
        groups.append(
            AlikeGroup(key, sorted(spellings, key=lambda spelling: (-spelling.rows, spelling.name)))
        )
    return sorted(groups, key=lambda group: (-sum(spelling.rows for spelling in group.spellings), group.key))


def _samples(version: Version, code: str, names: Sequence[str]) -> list[RepairSample]:
    """The first affected rows that the repairs change."""
    samples: list[RepairSample] = []
    rows = _first_rows(version) if code in OF_THE_FILE else _rows_to_repair(version, code, SAMPLES * 4)
    for row in rows:
        if len(samples) == SAMPLES:
            break
        after: str | None = row.raw
        for name in names:
            after = _repaired(after, name)
        if after != row.raw:
            changes = excerpts(pieces(row.raw, after or ""), AROUND)
            samples.append(RepairSample(row.line, changes, after is None))
    return samples


def _rows_to_repair(version: Version, code: str, most: int) -> QuerySet[Row]:
    """The first rows with a repairable finding of the code."""
    lines = StoredFinding.objects.filter(version=version, code=code, line__isnull=False).exclude(repair="")
    wanted = [line or 0 for line in lines.order_by("line").values_list("line", flat=True)[:most]]
    return _short_rows(version).filter(line__in=wanted)


def _first_rows(version: Version) -> QuerySet[Row]:
    return _short_rows(version)[:ROWS_TRIED]


def _short_rows(version: Version) -> QuerySet[Row]:
    rows = Row.objects.filter(version=version).annotate(length=Length("raw"))
    return rows.filter(length__lte=LONGEST_SAMPLE).order_by("line")


def _repaired(text: str | None, name: str) -> str | None:
    """An invalid JSONL row after a repair; None if it was removed."""
    return None if text is None else REPAIRS[name].change(text)


def _beginning(version: Version, names: Sequence[str]) -> Beginning:
    text = _head(version, encoding_of(version))
    if "to_jsonl" in names:
        return Beginning(_first_lines(text, HEAD_LINES), _first_objects(text, names))
    return Beginning(_first_lines(_head(version, "utf-8"), 3), _first_lines(text, 3))


def _head(version: Version, encoding: Encoding) -> bytes:
    """The first kilobytes in UTF-8, cut at a line end if there is one."""
    head = b""
    with Upload(version.path, Limits()) as upload, suppress(Unreadable):  # what was read is the sample
        for chunk in utf8_chunks(upload, encoding):
            head += chunk[:HEAD_BYTES]
            if len(head) >= HEAD_BYTES:
                return head[: head.rfind(b"\n") + 1] or head
    return head


def _first_lines(text: bytes, number: int) -> str:
    lines = text.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}").splitlines()
    shown = [line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + " …" for line in lines[:number]]
    return "\n".join(shown + (["…"] if len(lines) > number else []))


def _first_objects(text: bytes, names: Sequence[str]) -> str | None:
    """The first lines of the repaired beginning of a file, up to the last valid object, as the next may be cut."""
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "before", Path(folder) / "after"
        before.write_bytes(text)
        try:
            repair_file(before, after, [Repair(name) for name in names])
        except Unreadable:
            return None
        lines = after.read_bytes().splitlines(keepends=True)[:SAMPLES]
    while lines and loaded_object(lines[-1]) is None:
        lines.pop()
    return _first_lines(b"".join(lines), SAMPLES) if lines else None


def plain_repairs(names: Sequence[str]) -> list[Repair]:
    """The repairs with these names that need no choice."""
    return [Repair(name) for name in names if name in WITHOUT_VALUE]
