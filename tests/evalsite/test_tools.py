"""Tests of tools/: vendored files are unchanged, every message is translated, names say what they hold."""

import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pytest

from tools import messages, names, tests, vendor
from tools.bench.engine import evaluate

ROOT = Path(__file__).parents[2]
STARTED = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path.read_text()
    for path in sorted((ROOT / "tools").rglob("*.py"))
    if '__name__ == "__main__"' in path.read_text()
}
"""Tools with a command line: module → its source."""


@pytest.mark.parametrize("name", STARTED)
def test_every_tool_finds_what_it_imports(name: str) -> None:
    assert callable(import_module(name).main)


@pytest.mark.parametrize("name", [name for name, text in STARTED.items() if ".parse_args()" in text])
def test_tools_explain_their_arguments(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit) as ended:
        import_module(name).main()
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: ")


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


def test_a_per_cent_sign_beside_a_placeholder_is_written_twice() -> None:
    wrong = messages.polib.POEntry(msgid="%(n)s%% of them", msgstr="占 %(n)s%")
    right = messages.polib.POEntry(msgid="%(n)s%% of them", msgstr="占 %(n)s%%")
    assert messages.entry_problems("zh_Hans", wrong) != []
    assert messages.entry_problems("zh_Hans", right) == []


def test_the_bench_takes_no_number_of_calls_for_a_rule_program(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        evaluate(tmp_path, tmp_path / "data", "", tmp_path / "rows.jsonl", "in flight 64", 64)  # type: ignore[misc]


def test_vague_names_of_variables_parameters_and_attributes_count() -> None:
    source = "def f(given, *, known):\n    made = [one for one in given.rows]\n    print(f'{made}', self.kept, 'found')"
    assert list(names.names_in(source)).count("one") == 2
    assert names.vague_names(source) == 8


def test_strings_keywords_of_calls_and_names_of_functions_do_not_count() -> None:
    assert names.vague_names("def found(): return {'asked': call(made=1)}") == 0


def test_too_many_vague_names_are_shown_with_their_files() -> None:
    by_file = {"a.py": 1, "b.py": 3}
    assert names.report(by_file, 4)[0]
    passed, text = names.report(by_file, 3)
    assert not passed
    assert text.splitlines()[1:] == ["    3 b.py", "    1 a.py"]


def test_names_say_what_they_hold() -> None:
    passed, text = names.report(names.counts(), names.LIMIT)
    assert passed, text


@pytest.mark.parametrize(
    ("found", "whole"),
    [
        ((0, 0, 0), 0),
        ((1, 0, 0), 1),
        ((0, 1, 0), 1),
        ((0, 0, 1), 1),
        ((2, 1, 0), 2),
        ((5, 0, 0), 0),
        ((0, 5, 5), 0),
        ((5, 5, 5), 5),
        ((5, 1, 5), 1),
    ],
)
def test_all_parts_of_the_tests_run_and_each_can_fail_them(found: tuple[int, ...], whole: int) -> None:
    statuses, asked = iter(found), list[Sequence[str]]()

    def run(command: Sequence[str]) -> int:
        asked.append(command)
        return next(statuses)

    assert tests.main(["-m", "not browser"], run) == whole
    assert [command[-2:] for command in asked] == [["-m", "not browser"]] * 3


def test_every_test_belongs_to_one_part() -> None:
    some = [
        "tests/evalsite/test_health.py",
        "tests/browser/test_frame.py",
        "tests/processes/test_serve.py",
        "tests/judging/endpoints/test_limiter.py",
    ]
    options = [["--collect-only", "-q", "--part", part, *some] for part in tests.PARTS]
    program = (
        f"import pytest\nfor one in {options}: pytest.main(one); print('---')"  # one start instead of three
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    files = [
        {Path(line.partition(":")[0]).name for line in part.splitlines() if line}
        for part in done.stdout.split("---\n")
    ]
    assert files == [{"test_health.py"}, {"test_frame.py", "test_serve.py"}, {"test_limiter.py"}, set()]
