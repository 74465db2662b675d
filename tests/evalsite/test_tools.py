"""The tools' own promises: what is vendored is what was fetched, and every text is translated."""

from pathlib import Path

import pytest

from tools import messages, vendor
from tools.bench.engine import evaluate


def test_vendored_files_are_as_fetched() -> None:
    assert vendor.differences() == []


def test_every_vendored_package_brings_its_licence() -> None:
    packages = [package for packages in vendor.FOLDERS.values() for package in packages]
    assert [package.name for package in packages if "LICENSE" not in package.files] == []


def test_every_text_is_translated_and_compiled() -> None:
    assert messages.problems() == []


def test_texts_are_found_in_python() -> None:
    source = "_('one'); ngettext('%(n)s row', '%(n)s rows', n); pgettext('speaker', 'User'); _(variable)"
    assert list(messages.calls(source)) == [("one", ""), ("%(n)s row", "%(n)s rows"), ("speaker\x04User", "")]


def test_placeholders_must_agree() -> None:
    wrong = messages.polib.POEntry(msgid="%(n)s rows", msgstr="%(m)s 行")
    right = messages.polib.POEntry(msgid="%(n)s rows", msgstr="%(n)s 行")
    assert messages.entry_problems("zh_Hans", wrong) != []
    assert messages.entry_problems("zh_Hans", right) == []


def test_the_bench_takes_no_number_of_calls_for_a_rule_program(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        evaluate(tmp_path, tmp_path / "data", "", tmp_path / "rows.jsonl", "in flight 64", 64)  # type: ignore[misc]
