"""Joining several files into one: which files fit together, and the source of each line."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from datasets.core.decode import Upload
from datasets.core.limits import Limits
from datasets.versions.joined_parts import (
    Misfit,
    PartSource,
    common_name,
    fit_together,
    natural_key,
    place_of,
)

LIMITS = Limits()
MOST = 1_000_000
ROW = b'{"messages": [{"role": "user", "content": "q%d"}]}'
LEGACY = b'{"conversation": [{"prompt": "q", "response": "a"}]}\n'


def sources(*contents: bytes) -> list[PartSource]:
    return [
        PartSource(f"part-{number}", Upload(io.BytesIO(content), LIMITS))
        for number, content in enumerate(contents, 1)
    ]


def joined(*contents: bytes) -> bytes:
    return b"".join(fit_together(sources(*contents), MOST))


def refusal(*contents: bytes, most: int = MOST) -> Misfit:
    with pytest.raises(Misfit) as caught:
        b"".join(fit_together(sources(*contents), most))
    return caught.value


def places(*contents: bytes) -> Callable[[int], tuple[int, int]]:
    joining = fit_together(sources(*contents), MOST)
    b"".join(joining)
    placed = [(one.first_line, one.skipped) for one in joining.placed]
    return lambda line: place_of(line, placed)


def test_parts_come_one_after_the_other_and_each_ends_its_line() -> None:
    assert joined(ROW % 1, ROW % 2 + b"\n", ROW % 3) == ROW % 1 + b"\n" + ROW % 2 + b"\n" + ROW % 3 + b"\n"


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: text.encode("utf-8-sig"),
        lambda text: text.encode("utf-16"),
        lambda text: text.encode("gb18030"),
        lambda text: gzip.compress(text.encode()),
    ],
    ids=["bom", "utf-16", "gb18030", "gzip"],
)
def test_each_part_is_decoded_by_its_own_encoding(encode: Callable[[str], bytes]) -> None:
    text = '{"messages": [{"role": "user", "content": "你好，世界"}]}\n'
    assert joined(ROW % 1, encode(text)).decode() == (ROW % 1).decode() + "\n" + text


def test_the_header_of_later_csv_parts_is_dropped() -> None:
    assert joined(b"prompt,response\na,b\n", b"Prompt, response\nc,d\n") == b"prompt,response\na,b\nc,d\n"


def test_a_header_over_two_lines_after_blank_ones_is_dropped_whole() -> None:
    header = b'prompt,response,"my\nnote"\n'
    assert joined(header + b"a,b,c\n", b"\n" + header + b"d,e,f\n") == header + b"a,b,c\nd,e,f\n"


def test_a_line_is_found_in_its_file() -> None:
    at = places(b"\n".join([ROW % 1, ROW % 2]), b"", (ROW % 3) + b"\n\n" + (ROW % 4))
    assert [at(line) for line in range(1, 6)] == [(0, 1), (0, 2), (2, 1), (2, 2), (2, 3)]


def test_a_line_of_a_later_csv_part_counts_the_header_that_was_dropped() -> None:
    at = places(b"prompt,response\na,b\n", b"\nprompt,response\nc,d\n")
    assert [at(line) for line in (1, 2, 3)] == [(0, 1), (0, 2), (1, 3)]


def test_an_empty_first_csv_part_leaves_the_header_to_the_next() -> None:
    assert joined(b"", b"prompt,response\na,b\n", b"prompt,response\n") == b"prompt,response\na,b\n"


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        ([ROW % 1, b"prompt,response\na,b\n"], "format"),
        ([b"prompt,response\na,b\n", ROW % 1], "format"),
        ([ROW % 1, LEGACY], "family"),
        ([b"prompt,response\n", b"response,prompt\n"], "columns"),
        ([b"prompt,response\n", b"prompt,response,note\n"], "columns"),
        ([b"prompt,response\n", b"q,a\n"], "columns"),
        ([ROW % 1, b"%PDF-1.7\n" + b"\0" * 100], "unreadable"),
        ([ROW % 1, gzip.compress(ROW % 2, mtime=0)[:-9]], "unreadable"),
    ],
)
def test_a_part_that_does_not_fit_is_named(contents: list[bytes], reason: str) -> None:
    found = refusal(*contents)
    assert (found.name, found.reason) == ("part-2", reason)


def test_rows_of_no_format_do_not_hide_that_later_parts_differ() -> None:
    found = refusal(b'{"id": 1}\n', ROW % 1, LEGACY)
    assert (found.name, found.params["first"]) == ("part-3", "part-2")


def test_a_quote_that_is_open_at_the_end_of_a_part_is_refused_with_its_line() -> None:
    found = refusal(b'prompt,response\na,b\nc,"d\n', b"prompt,response\ne,f\n")
    assert (found.name, found.reason, found.params) == ("part-1", "quote", {"line": 3})


def test_an_open_quote_in_the_last_part_is_a_finding_of_its_own() -> None:
    last = b'prompt,response\nc,"d\n'
    assert joined(b"prompt,response\na,b\n", last).endswith(b'c,"d\n')


def test_parts_larger_than_the_limit_together_are_refused() -> None:
    row = ROW % 1 + b"\n"
    assert refusal(row, row, most=2 * len(row) - 1).reason == "too_large"
    assert b"".join(fit_together(sources(row, row), 2 * len(row))) == row + row


def test_a_chosen_format_says_what_the_parts_are() -> None:
    parts = sources(b"[a],response\n1,2\n", b"[a],response\n3,4\n")
    assert b"".join(fit_together(parts, MOST, "legacy_csv")) == b"[a],response\n1,2\n3,4\n"


def test_no_part_is_held_in_memory() -> None:
    part = json.dumps({"messages": [{"role": "user", "content": "x" * 1000}]}).encode() + b"\n"
    limits = replace(LIMITS, unpacked_bytes=1 << 30)
    parts = [PartSource(f"{n}", Upload(io.BytesIO(gzip.compress(part * 5000)), limits)) for n in range(2)]
    sizes: Iterator[int] = (len(chunk) for chunk in fit_together(parts, 1 << 30))
    assert max(sizes) <= 1 << 20


def test_names_are_sorted_as_people_count() -> None:
    names = ["part-10.jsonl", "Part-2.jsonl", "part-1.jsonl", "2.jsonl", "10.jsonl", "全.jsonl"]
    wanted = ["2.jsonl", "10.jsonl", "part-1.jsonl", "Part-2.jsonl", "part-10.jsonl", "全.jsonl"]
    assert sorted(names, key=natural_key) == wanted


@pytest.mark.parametrize(
    ("stems", "name"),
    [
        (["part-1", "part-2"], "part"),
        (["eval.part1", "eval.part2"], "eval"),
        (["train-00000-of-00002", "train-00001-of-00002"], "train"),
        (["data-2024-01", "data-2024-02"], "data-2024"),
        (["v2 a", "v2 b"], "v2"),
        (["中文(1)", "中文(2)"], "中文"),
        (["a", "b"], ""),
        (["1", "2"], ""),
        (["same", "same"], "same"),
        (["set", "set-2"], "set"),
    ],
)
def test_the_name_is_the_common_beginning(stems: list[str], name: str) -> None:
    assert common_name(stems) == name
