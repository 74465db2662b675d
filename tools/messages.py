"""Extract, compile and check the site's translations without GNU gettext. See docs/translating.md.

python tools/messages.py extract    collect the messages, merge the packages' translations, compile
python tools/messages.py compile    only write the .mo files
python tools/messages.py check      list missing or wrong translations; exit status 1 if there are any
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import polib
from babel.messages.extract import extract_python
from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parent.parent
LOCALE = ROOT / "evalsite" / "locale"
PLURALS = {"en": "nplurals=2; plural=(n != 1);", "zh_Hans": "nplurals=1; plural=0;"}
CONTEXT_END = "\x04"  # separates context and msgid, as in .mo files
PLACEHOLDER = re.compile(r"%\(\w+\)[a-z]|%[sd]|\{\w+\}")

# function: (number of message arguments, whether a context comes first)
FUNCTIONS = {
    **dict.fromkeys(("_", "gettext", "gettext_lazy", "gettext_noop"), (1, False)),
    **dict.fromkeys(("ngettext", "ngettext_lazy", "ngettext_noop"), (2, False)),
    **dict.fromkeys(("pgettext", "pgettext_lazy", "pgettext_noop"), (1, True)),
    **dict.fromkeys(("npgettext", "npgettext_lazy"), (2, True)),
}


@dataclass(slots=True)
class Text:
    """A translatable message. `key` is the msgid, preceded by its context if it has one."""

    key: str
    plural: str = ""
    files: set[str] = field(default_factory=set)

    @property
    def context(self) -> str | None:
        return self.key.split(CONTEXT_END)[0] if CONTEXT_END in self.key else None

    @property
    def msgid(self) -> str:
        return self.key.split(CONTEXT_END)[-1]


Translations = dict[str, list[str]]  # key → translation, or one for each plural form


def main(arguments: list[str]) -> int:
    if arguments == ["extract"]:
        return report(extract(), "extracted and compiled")
    if arguments == ["compile"]:
        for language in PLURALS:
            mo_path(language).write_bytes(catalogue(language).to_binary())
        return 0
    if arguments == ["check"]:
        return report(problems(), "every text is translated")
    sys.stderr.write(__doc__ or "")
    return 2


def report(lines: list[str], otherwise: str) -> int:
    sys.stdout.write("\n".join(lines or [otherwise]) + "\n")
    return 1 if lines else 0


# --- collecting ----------------------------------------------------------------------------------------------------


def collect() -> dict[str, Text]:
    """All messages in code and templates, by key."""
    texts: dict[str, Text] = {}
    for path, source in sources():
        for key, plural in calls(source):
            text = texts.setdefault(key, Text(key))
            text.plural = text.plural or plural
            text.files.add(path.relative_to(ROOT).as_posix())
    return texts


def sources() -> Iterator[tuple[Path, str]]:
    """Each file that may contain messages, with its contents as Python source; templates are converted."""
    for package in ("evalsite", "datasets", "judging"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path, path.read_text()
    for path in sorted((ROOT / "templates").rglob("*.*")):
        # templatize() masks everything but messages with X; strip the indentation, which would not be valid Python
        lines = templatize(path.read_text(), origin=str(path)).splitlines()
        yield path, "\n".join(line.strip() for line in lines)


def calls(source: str) -> Iterator[tuple[str, str]]:
    """(key, plural or "") for every gettext call in Python source."""
    encoded = io.BytesIO(source.encode())
    for _line, function, arguments, _comments in extract_python(
        encoded, FUNCTIONS, (), {"encoding": "utf-8"}
    ):
        count, has_context = FUNCTIONS[str(function)]
        given = list(arguments) if isinstance(arguments, (tuple, list)) else [arguments]
        wanted = given[: count + has_context]
        if not all(isinstance(argument, str) and argument for argument in wanted):
            continue  # a variable: its message is marked where it is defined
        context = f"{wanted.pop(0)}{CONTEXT_END}" if has_context else ""
        yield context + wanted[0], wanted[1] if count == 2 else ""


# --- catalogues ----------------------------------------------------------------------------------------------------


def po_path(language: str) -> Path:
    return LOCALE / language / "LC_MESSAGES" / "django.po"


def mo_path(language: str) -> Path:
    return po_path(language).with_suffix(".mo")


def catalogue(language: str) -> polib.POFile:
    return polib.pofile(str(po_path(language)))


def entry_key(entry: polib.POEntry) -> str:
    return f"{entry.msgctxt}{CONTEXT_END}{entry.msgid}" if entry.msgctxt else entry.msgid


def stored_translations(language: str) -> Translations:
    """The catalogue's complete, non-fuzzy translations."""
    if not po_path(language).exists():
        return {}
    entries = [entry for entry in catalogue(language) if not entry.obsolete and not entry.fuzzy]
    forms = {entry_key(e): list(e.msgstr_plural.values()) if e.msgid_plural else [e.msgstr] for e in entries}
    return {key: found for key, found in forms.items() if all(found)}


def part_translations(language: str) -> tuple[Translations, list[str]]:
    """The merged translations of the packages' part files, and the conflicts between parts."""
    merged: Translations = {}
    origin: dict[str, str] = {}
    clashes = []
    for path in sorted((LOCALE / language / "parts").glob("*.json")):
        for key, value in json.loads(path.read_text()).items():
            forms = [value] if isinstance(value, str) else list(value)
            if merged.setdefault(key, forms) != forms:
                clashes.append(f"{language}: {path.name} and {origin[key]} translate differently: {key!r}")
            origin.setdefault(key, path.name)
    return merged, clashes


def extract() -> list[str]:
    """Write and compile both catalogues; return the conflicts between parts (the first part wins)."""
    texts, clashes = collect(), []
    for language in PLURALS:
        parts, found = part_translations(language)
        clashes += found
        known = stored_translations(language) | parts
        if language == "en":
            known = {key: [t.msgid, t.plural] if t.plural else [t.msgid] for key, t in texts.items()}
        made = build(language, texts, known)
        po_path(language).parent.mkdir(parents=True, exist_ok=True)
        po_path(language).write_text(str(made).rstrip("\n") + "\n")
        mo_path(language).write_bytes(made.to_binary())
    return clashes


def build(language: str, texts: dict[str, Text], known: Translations) -> polib.POFile:
    """A sorted catalogue without dates and line numbers, so that it changes only with the messages."""
    made = polib.POFile(wrapwidth=110)
    made.metadata = {
        "Language": language,
        "MIME-Version": "1.0",
        "Content-Type": "text/plain; charset=UTF-8",
        "Content-Transfer-Encoding": "8bit",
        "Plural-Forms": PLURALS[language],
    }
    made.extend(po_entry(texts[key], known.get(key, [""]), PLURALS[language]) for key in sorted(texts))
    return made


def po_entry(text: Text, forms: list[str], plurals: str) -> polib.POEntry:
    entry = polib.POEntry(msgid=text.msgid, msgctxt=text.context)
    entry.occurrences = [(path, "") for path in sorted(text.files)]
    if text.plural:
        entry.msgid_plural = text.plural
        count = int(plurals[len("nplurals=")])
        entry.msgstr_plural = {n: forms[n] if n < len(forms) else "" for n in range(count)}
    else:
        entry.msgstr = forms[0]
    return entry


# --- checking ------------------------------------------------------------------------------------------------------


def problems() -> list[str]:
    """All problems of the catalogues, one line each."""
    texts = collect()
    found = []
    for language in PLURALS:
        if not po_path(language).exists():
            return [f"{language}: no catalogue; run tools/messages.py extract"]
        stored = catalogue(language)
        found += out_of_date(language, texts, stored)
        found += [problem for entry in stored for problem in entry_problems(language, entry)]
        parts, clashes = part_translations(language)
        found += clashes
        found += [
            f"{language}: a part translates a text that is not used: {key!r}"
            for key in sorted(parts.keys() - texts)
        ]
    return found


def out_of_date(language: str, texts: dict[str, Text], stored: polib.POFile) -> list[str]:
    present = {entry_key(entry): entry for entry in stored if not entry.obsolete}
    found = [f"{language}: not extracted yet: {key!r}" for key in sorted(texts.keys() - present)]
    found += [
        f"{language}: a text that is not used any more: {key!r}" for key in sorted(present.keys() - texts)
    ]
    parts, _clashes = part_translations(language)
    for key in sorted(parts.keys() & present):
        entry = present[key]
        if parts[key] != (list(entry.msgstr_plural.values()) if entry.msgid_plural else [entry.msgstr]):
            found.append(f"{language}: the part says it differently; run extract: {key!r}")
    if not mo_path(language).exists() or mo_path(language).read_bytes() != stored.to_binary():
        found.append(f"{language}: django.mo is older than django.po; run tools/messages.py compile")
    return found


def entry_problems(language: str, entry: polib.POEntry) -> list[str]:
    """Report an entry that is fuzzy, obsolete or untranslated, or whose placeholders differ from the msgid's."""
    if entry.fuzzy or entry.obsolete:
        return [f"{language}: fuzzy or obsolete: {entry.msgid!r}"]
    forms = list(entry.msgstr_plural.values()) if entry.msgid_plural else [entry.msgstr]
    if not all(forms):
        return [
            f"{language}: not translated: {entry.msgid!r} ({', '.join(path for path, _ in entry.occurrences)})"
        ]
    allowed = {
        frozenset(PLACEHOLDER.findall(text)) for text in (entry.msgid, entry.msgid_plural or entry.msgid)
    }
    if any(frozenset(PLACEHOLDER.findall(form)) not in allowed for form in forms):
        return [f"{language}: other placeholders than in {entry.msgid!r}"]
    if PLACEHOLDER.search(entry.msgid) and not all(map(can_be_filled, forms)):
        return [f"{language}: a per cent sign must be written twice (%%): {entry.msgid!r}"]
    return []


def can_be_filled(text: str) -> bool:
    """Return whether %-formatting works; if it fails, Django silently falls back to the English text."""
    try:
        text % dict.fromkeys(re.findall(r"%\((\w+)\)", text), 1)
    except (ValueError, TypeError):
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
