"""Texts in the other language, for data in one language."""

from __future__ import annotations

import random

_ENGLISH = (
    "The library opened a second reading room last spring, on the floor above the old one.",
    "Most visitors come in the afternoon, when the school across the street has closed.",
    "A volunteer sorts the returned books and puts them back on the shelves.",
    "The catalogue lists every title with its author, its year and the place where it stands.",
    "Readers can reserve a book and collect it from the desk by the entrance.",
    "On Saturdays there is a talk about local history, and the chairs are soon taken.",
    "The building is heated by a boiler that was installed when the roof was repaired.",
    "New members show a letter with their address and receive a card on the same day.",
    "Old newspapers are kept in boxes in the basement, because the paper is fragile.",
    "The garden behind the house belongs to the library too, and has benches under the trees.",
)
_CHINESE = (
    "图书馆去年春天在旧阅览室的楼上开放了第二间阅览室。",
    "读者大多在下午到来，那时街对面的学校已经放学。",
    "一位志愿者负责整理归还的图书，再把它们放回书架。",
    "目录列出每本书的书名、作者、出版年份和存放位置。",
    "读者可以预约图书，再到入口旁的服务台领取。",
    "每逢周六都有一场介绍本地历史的讲座，座位很快就坐满了。",
    "楼里的暖气来自修缮屋顶时安装的锅炉。",
    "新读者出示写有住址的信件，当天就能拿到借书证。",
    "旧报纸收在地下室的盒子里，因为纸张已经很脆。",
    "屋后的花园也归图书馆所有，树下摆着长椅。",
)


def text_of_length(language: str, length: int, draws: random.Random) -> str:
    """A text in `language` (zh, else English) of about this many characters, at least a sentence."""
    sentences = _CHINESE if language == "zh" else _ENGLISH
    gap = "" if language == "zh" else " "
    at = draws.randrange(len(sentences))
    text = sentences[at]
    while len(text) + len(sentences[(at + 1) % len(sentences)]) // 2 < length:
        at = (at + 1) % len(sentences)
        text += gap + sentences[at]
    return text
