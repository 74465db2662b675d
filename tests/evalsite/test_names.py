"""Names in sentences: a blank stands between Chinese and Latin, and none between two Chinese characters."""

import pytest
from django.utils import translation

from evalsite.names import fitted, join_sentences, with_names


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("heron", "由 heron 判定"), ("人工", "由人工判定"), ("豆包 pro", "由豆包 pro 判定")],
)
def test_a_name_has_blanks_as_its_ends_need_them(name: str, sentence: str) -> None:
    assert with_names("由 %(by)s 判定", {"by": name}) == sentence


def test_a_name_keeps_its_own_blanks() -> None:
    assert with_names("%(name)s 更好", {"name": "大 模型"}) == "大 模型更好"


def test_placeholders_in_braces_are_fitted_too() -> None:
    assert fitted("由 {by} 判定，{name} 居首", {"by": "人工", "name": "heron"}) == "由{by}判定，{name} 居首"


def test_an_english_sentence_stays_as_it_is() -> None:
    assert with_names("%(name)s is higher", {"name": "豆包"}) == "豆包 is higher"


@pytest.mark.parametrize(
    ("language", "sentences", "joined"),
    [("en", ("New.", "Old."), "New. Old."), ("zh-hans", ("新的。", "旧的。"), "新的。旧的。")],
)
def test_a_blank_stands_between_english_sentences_only(
    language: str, sentences: tuple[str, ...], joined: str
) -> None:
    with translation.override(language):
        assert join_sentences(sentences) == joined
