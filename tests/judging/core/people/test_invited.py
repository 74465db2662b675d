"""A pasted list of people in the shapes in which lists come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.core.people.invited import LONGEST, Invited, WrongEntry, read_people


def pairs(text: str) -> list[tuple[str, str]]:
    return [(person.name, person.mail) for person in read_people(text)[0]]


def wrong(text: str) -> list[WrongEntry]:
    return read_people(text)[1]


DORA, EMIL = ("Dora Lind", "dora@x.example"), ("Emil", "emil@x.example")


@pytest.mark.parametrize(
    "text",
    [
        "Dora Lind <dora@x.example>\nEmil <emil@x.example>",
        "Dora Lind <dora@x.example>; Emil <emil@x.example>;",
        "Dora Lind <dora@x.example>, Emil <emil@x.example>",
        "Dora Lind, dora@x.example\r\nEmil, emil@x.example\r\n",
        "Dora Lind\tdora@x.example\nEmil\temil@x.example",
        "dora@x.example\tDora Lind\nemil@x.example\tEmil",
        "1\tDora Lind\tdora@x.example\tPhysics\n2\tEmil\temil@x.example\tLaw",
        "No.\tName\tDept\tE-mail\n1\tDora Lind\tPhysics\tdora@x.example\n2\tEmil\tLaw\temil@x.example",
        "First name,Last name,Email\nDora,Lind,dora@x.example\nEmil,,emil@x.example",
        "姓名，邮箱\nDora Lind，dora@x.example\nEmil，emil@x.example",
        "1. Dora Lind dora@x.example\n2. Emil emil@x.example",
        "- Dora Lind (dora@x.example)\n- Emil (emil@x.example)",
        '"Dora Lind" <dora@x.example>\n\n\ufeff"Emil" <mailto:emil@x.example>',
        "Dora Lind,dora@x.example,Emil,emil@x.example",
        "Dora\u00a0Lind  <dora@x.example>\n   Emil；emil@x.example",
    ],
)
def test_names_with_addresses(text: str) -> None:
    assert pairs(text) == [DORA, EMIL]


@pytest.mark.parametrize(
    "text",
    [
        "王伟\n李娜",
        "王伟、李娜",
        "王伟，李娜",
        "1、王伟\n2、李娜",
        "姓名\n王伟\n李娜",
        "1\t王伟\t物理\n2\t李娜\t法律",
        "王伟\t李娜",
        "• 王伟\n• 李娜",
    ],
)
def test_names_alone(text: str) -> None:
    assert pairs(text) == [("王伟", ""), ("李娜", "")]


def test_addresses_alone() -> None:
    assert pairs("dora@x.example emil@x.example".replace(" ", "\n")) == [("", DORA[1]), ("", EMIL[1])]
    assert pairs("dora@x.example, emil@x.example") == [("", DORA[1]), ("", EMIL[1])]


def test_a_surname_before_a_comma_belongs_to_the_name() -> None:
    assert pairs('"Lind, Dora" <dora@x.example>') == [("Lind, Dora", DORA[1])]
    assert pairs("Lind, Dora <dora@x.example>") == [DORA]


def test_a_number_alone_may_be_a_name() -> None:
    assert pairs("1001\n1002") == [("1001", ""), ("1002", "")]


def test_what_is_wrong_keeps_its_line() -> None:
    text = "Dora <dora@x>\n\n???\nEmil\n" + "x" * (LONGEST + 1) + "\nemil"
    assert [(entry.line, entry.why, entry.first) for entry in wrong(text)] == [
        (1, "mail", 0),
        (3, "name", 0),
        (5, "long", 0),
        (6, "twice", 4),
    ]


def test_the_same_name_with_another_address_is_another_person() -> None:
    assert len(pairs("Wang Wei <a@x.example>\nWang Wei <b@x.example>")) == 2
    assert [entry.why for entry in wrong("A <a@x.example>\nB <A@X.example>")] == ["twice"]


def test_an_empty_list_has_nobody() -> None:
    assert read_people(" \n\t\n,;\n") == ([], [])


def test_a_label_names_both() -> None:
    assert Invited(1, "Dora", "d@x.example").label == "Dora <d@x.example>"


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    people, _wrong = read_people(text)
    assert all(0 < len(person.label) <= LONGEST for person in people)
