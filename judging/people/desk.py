"""What a rater does, as services: get items, give and change verdicts, skip, undo, leave a draft, look back.

Each locks the evaluation's row first, so that raters, tabs and retries wait for each other instead of overtaking.
"""

from judging.people.errors import DeskRefused
from judging.people.leasing import claim, give_back, held_by
from judging.people.looking import Progress, criteria_of, mine, progress
from judging.people.rating import change, draft_save, skip, submit, undo

__all__ = [
    "DeskRefused",
    "Progress",
    "change",
    "claim",
    "criteria_of",
    "draft_save",
    "give_back",
    "held_by",
    "mine",
    "progress",
    "skip",
    "submit",
    "undo",
]
