"""The size of a JSON text's values is counted before they are parsed."""

import pytest

from judging.core.json_size import TooLarge, check_json_size


def fits(text: bytes) -> bool:
    try:
        check_json_size(text, depth=2, marks=100)
    except TooLarge:
        return False
    return True


@pytest.mark.parametrize("text", [b"[[1]]", b'{"a":[1,2,3]}', b'"[[[["', b'["\\"[[[["]', b"[],[],[],[]", b""])
def test_a_small_text_passes(text: bytes) -> None:
    assert fits(text)


@pytest.mark.parametrize("text", [b"[[[", b'{"a":{"b":{', b'["",[[', b'["\\\\",[['])
def test_a_deeper_nest_does_not(text: bytes) -> None:
    with pytest.raises(TooLarge, match="nested too deeply"):
        check_json_size(text, depth=2, marks=100)


@pytest.mark.parametrize("text", [b"[" + b"1," * 101, b'{"a":1,' * 34, b"[]," * 51])
def test_nor_do_more_values(text: bytes) -> None:
    with pytest.raises(TooLarge, match="more than 100"):
        check_json_size(text, depth=1000, marks=100)
