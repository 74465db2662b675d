"""Django's sentences in our Chinese."""

from __future__ import annotations

import ast
import gettext
from pathlib import Path

import django
import pytest
from django import forms
from django.utils import translation

import evalsite.django_texts as django_texts

OF_DJANGO = Path(django.__file__).parent


def sentences_of_django() -> set[str]:
    texts: set[str] = set()
    for folder in ("conf", "contrib/auth"):
        with (OF_DJANGO / folder / "locale/zh_Hans/LC_MESSAGES/django.mo").open("rb") as file:
            catalog = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
            texts |= {text if isinstance(text, str) else text[0] for text in catalog}
    return texts


def test_each_is_a_sentence_of_django() -> None:
    """One that Django rephrases would be translated here for nothing."""
    source = Path(django_texts.__file__).read_text(encoding="utf-8")
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    listed = {ast.literal_eval(call.args[0]) for call in calls}
    assert len(listed) > 30
    assert listed - sentences_of_django() == set()


@pytest.mark.parametrize(
    ("value", "sentence"),
    [("", "此项必填。"), ("2", "不能大于 1。"), ("-1", "不能小于 0。"), ("x", "请输入整数。")],
)
def test_fields_use_our_sentences(value: str, sentence: str) -> None:
    with translation.override("zh-hans"), pytest.raises(forms.ValidationError) as refused:
        forms.IntegerField(min_value=0, max_value=1).clean(value)
    with translation.override("zh-hans"):
        assert refused.value.messages == [sentence]


def test_a_long_text_is_told_its_length() -> None:
    with translation.override("zh-hans"):
        with pytest.raises(forms.ValidationError) as refused:
            forms.CharField(max_length=3).clean("abcd")
        assert refused.value.messages == ["最多 3 个字符（现有 4 个）。"]
