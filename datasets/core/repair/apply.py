"""Applies repairs to an uploaded file, streamed; valid content stays byte for byte.

Every repair is idempotent. A compressed upload is written uncompressed, and one in UTF-16 or GB18030 as UTF-8,
whichever repair is applied.
"""

import codecs
import filecmp
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeVar

from datasets.core.decode import Block, Unreadable, Upload, blocks, utf8_chunks
from datasets.core.detect import detect
from datasets.core.findings import too_large
from datasets.core.formats import model_key
from datasets.core.json_repairs import without_comment, without_comments, without_trailing_commas
from datasets.core.limits import Limits
from datasets.core.pretty_json import Broken, Passed, PrintedValue, objects_in, with_unended_comment
from datasets.core.repair.kinds import ORDER, REPAIRS, Concerned, RowChange
from datasets.core.row_repairs import renamed
from datasets.core.rows import is_json, object_in
from datasets.core.stats import Detection, models_of

_MOST_ROUNDS = 20  # limit for repeating repairs after a split

Part = TypeVar("Part", bytes, Block)
Progress = Callable[[float], None]
"""Called for every chunk with the share that is done; an exception aborts the repair."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A repair; for `unify_model_names` with the name to use and the name it replaces.

    Without `replaces`, all names similar to `value` are replaced.
    """

    name: str
    value: str = ""
    replaces: str = ""


def repair_file(
    source: Path,
    target: Path,
    repairs: Sequence[Repair],
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> None:
    """Apply `repairs` in order, `source` → `target` (another file); raises OSError, Unreadable.

    `target` is written under a temporary name first, so that it is complete or does not exist.
    """
    limits = limits or Limits()
    steps = sorted(repairs, key=lambda repair: ORDER.index(repair.name)) or [Repair("to_utf8")]
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".repair-") as name:
        folder = Path(name)
        current, has_split = _round(source, folder / "0", steps, limits, progress)
        if has_split:
            current = _settled(current, folder, steps, limits)
        current.replace(target)


def _round(
    source: Path, target: Path, steps: Sequence[Repair], limits: Limits, progress: Progress | None
) -> tuple[Path, bool]:
    """Apply the steps in sequence; return the resulting path and whether multi-line JSON was split."""
    current, has_split = source, False
    for number, repair in enumerate(steps):
        following = target.with_suffix(f".{number}")
        part = _part_of(progress, number, len(steps)) if progress else None
        shape = _run(current, following, repair, limits, part)
        has_split = has_split or (repair.name == "to_jsonl" and shape == "spread")
        if current != source:
            current.unlink()
        current = following
    return current, has_split


def _settled(path: Path, folder: Path, steps: Sequence[Repair], limits: Limits) -> Path:
    """Repeat the steps until nothing changes, if splitting left anything broken.

    Broken values are single lines then and can be repaired as such; what follows a value that never ends may have to be
    split again.
    """
    for number in range(1, _MOST_ROUNDS):
        if _is_clean(path):
            break
        further, _ = _round(path, folder / str(number), steps, limits, None)
        nothing_new = filecmp.cmp(path, further, shallow=False)
        path.unlink()
        path = further
        if nothing_new:
            break
    return path


def _is_clean(path: Path) -> bool:
    """Whether every line is an object, so that nothing is left to split or repair."""
    with path.open("rb") as file:
        return all(line.startswith(b"{") and is_json(line) for line in file)


def _part_of(progress: Progress, number: int, steps: int) -> Progress:
    """Report a step's progress as a share of all steps."""
    return lambda share: progress((number + share) / steps)


class _Watched(Upload):
    """Reports read progress in the pass that counts; in earlier passes only 0."""

    def __init__(self, source: Path, limits: Limits, progress: Progress | None) -> None:
        super().__init__(source, limits)
        self.progress = progress
        self.counts = False

    def chunks(self, progress: Callable[[int], None] | None = None) -> Iterator[bytes]:
        for chunk in super().chunks(progress):
            if self.progress:
                self.progress(self._file.tell() / self.bytes if self.counts else 0.0)
            yield chunk


def _run(source: Path, target: Path, repair: Repair, limits: Limits, progress: Progress | None) -> str:
    """Apply one repair; return the shape of its input."""
    with _Watched(source, limits, progress) as upload:
        seen = detect(upload)
        upload.counts = True
        if repair.name == "to_jsonl":
            with_unended_comment(lambda comment: _write(target, _to_jsonl(upload, seen, comment)))
        else:
            _write(target, _repaired(upload, seen, repair))
        return seen.shape


def _write(target: Path, parts: Iterator[bytes]) -> None:
    with target.open("wb") as file:
        file.writelines(parts)


def _as_it_is(upload: Upload) -> Iterator[bytes]:
    return _whole(upload.chunks())


def _whole(parts: Iterator[Part]) -> Iterator[Part]:
    """Yield what is readable of a truncated or damaged archive; validation reports the problem."""
    try:
        yield from parts
    except Unreadable as stopped:
        if stopped.finding.code != "file.encoding":
            raise


def _lines(upload: Upload, seen: Detection) -> Iterator[bytes]:
    """Physical UTF-8 lines with their line ends."""
    ends_open = b""
    for block in _whole(blocks(upload, seen.encoding)):
        if block.oversized:
            raise Unreadable(too_large(min(block.oversized), upload.limits))
        ends_open = b"" if block.text.endswith(b"\n") else b"\n"
        for index, line in enumerate(block.lines):
            last = ends_open and index == len(block.lines) - 1
            yield line if last else line + b"\n"


def _by_line(upload: Upload, seen: Detection, concerned: Concerned, change: RowChange) -> Iterator[bytes]:
    """Pass each `concerned` text line, without its line end, to `change`; None drops the line."""
    for line in _lines(upload, seen):
        text = _text(line) if concerned(line) else None
        if text is None:
            yield line
            continue
        body = text.rstrip("\r\n")
        changed = change(body)
        if changed is not None:
            yield (changed + text[len(body) :]).encode()


def _text(line: bytes) -> str | None:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return None


def _across_lines(
    upload: Upload, seen: Detection, change: Callable[[Iterator[str]], Iterator[str]]
) -> Iterator[bytes]:
    lines = (raw.decode("utf-8", "surrogateescape") for raw in _lines(upload, seen))
    for text in change(lines):
        yield text.encode("utf-8", "surrogateescape")


def _to_jsonl(upload: Upload, seen: Detection, unended_comment: int | None) -> Iterator[bytes]:
    """Write each value on one line. Raises UnendedComment."""
    if seen.shape != "spread":
        yield from _as_it_is(upload)
        return
    broken = _OneLine(upload.limits.row_bytes // 2)
    lines = (raw.decode("utf-8", "surrogateescape") for raw in _lines(upload, seen))
    for line, piece in objects_in(enumerate(lines, 1), upload.limits, unended_comment):
        text = _on_one_line(piece, line) + "\n" if isinstance(piece, PrintedValue) else broken.feed(piece)
        yield text.encode("utf-8", "surrogateescape")
    yield broken.feed(Passed("", ended=True)).encode()


class _OneLine:
    """Writes a broken object as one line: its text so far, then what was skipped until the next object.

    A tab replaces each line end: inside a string it is just as invalid, so that no error is silently fixed. If no
    further object is found, the rest of the file is skipped text: beyond `most` characters its lines are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._written = 0
        self._comma = ""
        self._in_line = False

    def feed(self, piece: Broken | Passed) -> str:
        """The text that can be written now."""
        if isinstance(piece, Broken):
            self._written = len(piece.text)
            self._in_line = bool(piece.text)
            return piece.text
        text = (without_comment(piece.text.rstrip("\r\n")) or "").strip(" \t\r\n")
        if not self._written and not text.strip(", "):
            return ""
        if text:  # a trailing comma may be the separator before the next object
            text, self._comma = self._comma + text.rstrip(", "), "," if text.endswith(",") else ""
        apart = "\t" if text and 0 < self._written <= self._most else ""
        self._written += len(apart + text)
        in_line = self._in_line or bool(text)
        end = "\n" if in_line and (piece.ended or self._written > self._most) else ""
        self._in_line = in_line and not end
        if piece.ended:
            self._written, self._comma = 0, ""
        return apart + text + end


def _on_one_line(piece: PrintedValue, line: str) -> str:
    """Return the value unchanged if it is valid JSON on one line, else reprinted."""
    standing = line[piece.column - 1 : piece.end_column]
    if piece.lines > 1:
        return piece.text
    return standing if is_json(standing.encode("utf-8", "surrogateescape")) else piece.text


_ACROSS_LINES = {"strip_comments": without_comments, "strip_trailing_commas": without_trailing_commas}


def _repaired(upload: Upload, seen: Detection, repair: Repair) -> Iterator[bytes]:
    name = repair.name
    if name == "to_utf8" and seen.encoding in ("utf-16", "gb18030"):
        return _whole(utf8_chunks(upload, seen.encoding))
    if seen.shape == "spread" and name in _ACROSS_LINES:
        lines = _across_lines(upload, seen, _ACROSS_LINES[name])
    elif seen.shape != "jsonl" or name == "to_utf8":
        return _as_it_is(upload)
    elif name == "unify_model_names":
        lines = _with_one_name(upload, seen, repair)
    else:
        kind = REPAIRS[name]
        lines = _by_line(upload, seen, kind.concerned, kind.change)
    return chain([codecs.BOM_UTF8] if seen.encoding == "utf-8-sig" else [], lines)


def _with_one_name(upload: Upload, seen: Detection, repair: Repair) -> Iterator[bytes]:
    value, wanted = repair.value, model_key(repair.replaces or repair.value)

    def concerned(line: bytes) -> bool:
        row = object_in(line)
        return row is None or any(name != value and model_key(name) == wanted for name in models_of(row))

    return _by_line(upload, seen, concerned, lambda text: renamed(text, value, wanted))
