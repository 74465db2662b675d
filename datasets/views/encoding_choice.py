"""The encoding of an import's text files: what was detected, and the choice of another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from datasets.core.imports.encodings import OFFERED, encoding_seen, is_guessed, is_known
from datasets.models import FileImport
from datasets.versions import file_import


@dataclass(frozen=True, slots=True)
class Choice:
    """`seen` is the encoding in which the files are read, '' if none is text; `named` is one that a user chose."""

    seen: str = ""
    named: str = ""
    guessed: bool = False

    @property
    def is_certain(self) -> bool:
        return not (self.guessed or self.named)

    @property
    def offered(self) -> list[tuple[str, str]]:
        """(codec, label) of the encodings to choose from."""
        names = OFFERED if self.named in ("", *OFFERED) else (*OFFERED, self.named)
        return [(name, name.upper()) for name in names]


def of_draft(draft: FileImport) -> Choice:
    """The encoding of the draft's first text file, or of one that was decoded by a guess."""
    limits, first = file_import.options_of(draft).limits, ""
    for file in file_import.source_files(draft):
        seen = encoding_seen(file, limits)
        if seen and is_guessed(file, seen):
            return Choice(seen.upper(), draft.encoding, guessed=True)
        first = first or seen
    return Choice(first.upper(), draft.encoding)


def store(draft: FileImport, sent: Mapping[str, str]) -> bool:
    """Store a chosen encoding. Returns whether it is another: the columns are then suggested anew."""
    named = sent.get("encoding", draft.encoding)[:40]
    if named == draft.encoding or (named and not is_known(named)):
        return False
    file_import.draft_encoding(draft, named)
    return True
