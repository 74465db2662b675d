"""Encodings, byte order marks and line ends, as bytes become lines."""

import io

import pytest

from datasets.core.decode import Upload, blocks, encoding_of, text_encoding
from datasets.core.limits import Limits


def upload(content: bytes, encoding: str = "") -> Upload:
    return Upload(io.BytesIO(content), Limits(), encoding)


def lines(content: bytes, encoding: str) -> list[str]:
    return [line.decode() for block in blocks(upload(content), encoding) for line in block.lines]


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", ["q,a\n", "question,answer\n一加一,二\n再见,三\n", '{"messages": []}\n'])
def test_utf16_needs_no_mark(text: str, codec: str) -> None:
    content = text.encode(codec)
    assert encoding_of(upload(content)) == "utf-16"
    assert "\n".join(lines(content, "utf-16")) + "\n" == text


def test_a_few_nuls_are_no_utf16() -> None:
    assert encoding_of(upload(b'{"a": "x\0y", "b": "\0"}\n')) == "utf-8"


@pytest.mark.parametrize("codec", ["utf-8", "utf-16-le", "gb18030"])
def test_two_marks_are_no_text(codec: str) -> None:
    encoding = {"utf-8": "utf-8-sig", "utf-16-le": "utf-16"}.get(codec, codec)
    assert lines("\ufeff\ufeffa\nb\n".encode(codec), encoding) == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"a\rb\r", ["a", "b"]),
        (b"a\rb\r\nc", ["a\rb\r", "c"]),  # a line feed outside quotes: \r belongs to the text
        (b'a,b\r"x\ny",c\rd\r', ["a,b", '"x', 'y",c', "d"]),
        (b"a\r\nb\r\n", ["a\r", "b\r"]),
        (b'a\n"x\ry"\n', ["a", '"x\ry"']),
        (b"a\r", ["a\r"]),
    ],
)
def test_lines_end_with_cr_only_where_no_line_feed_does(content: bytes, found: list[str]) -> None:
    assert lines(content, "utf-8") == found


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        ("naïve café à la Molière".encode("cp1252"), "cp1252"),
        ("问题".encode("gb18030"), "gb18030"),
        ("问题，回答".encode() + b"\xff\n", "utf-8"),  # one broken byte does not make it another encoding
        (b"x" * 200_000 + "é, à\n".encode("latin-1"), "cp1252"),
    ],
)
def test_another_tool_s_file_is_read_in_the_likeliest_encoding(content: bytes, encoding: str) -> None:
    assert text_encoding(upload(content)) == encoding


def test_a_named_encoding_is_not_doubted() -> None:
    assert text_encoding(upload(b"abc", "koi8-r")) == "koi8-r"


def test_bytes_that_a_named_encoding_lacks_spoil_only_their_line() -> None:
    content = "東京\n".encode("shift_jis") + b"\xfd\xfe\n" + "大阪\n".encode("shift_jis")
    found = [line for block in blocks(upload(content), "shift_jis") for line in block.lines]
    assert (found[0].decode(), found[2].decode()) == ("東京", "大阪")
    assert found[1].decode("utf-8", "replace") != ""
