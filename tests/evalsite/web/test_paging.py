"""Pagination by page number."""

import pytest
from django.http import QueryDict

from evalsite.web.paging import paged

ITEMS = list("abcde")


@pytest.mark.parametrize(
    ("page", "here", "previous", "following"),
    [("", "ab", None, 2), ("2", "cd", 1, 3), ("3", "e", 2, None), ("9", "e", 2, None), ("0", "ab", None, 2)],
)
def test_a_page_is_named_by_its_number(
    page: str, here: str, previous: int | None, following: int | None
) -> None:
    found, result = paged(QueryDict(f"page={page}"), ITEMS, 2)
    assert ("".join(found), result["previous"], result["next"]) == (here, previous, following)


@pytest.mark.parametrize("page", ["x", "-1", "1.5", "9" * 30])
def test_nonsense_is_the_first_page(page: str) -> None:
    assert paged(QueryDict(f"page={page}"), ITEMS, 2)[1]["first"] == 1


def test_an_empty_list_has_one_empty_page() -> None:
    assert paged(QueryDict(), [], 2) == (
        [],
        {"first": 0, "last": 0, "count": 0, "previous": None, "next": None},
    )
