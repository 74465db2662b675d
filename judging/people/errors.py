"""Why something cannot be done in an evaluation; each is a code that messages.py says as a sentence.

DeskRefused
├── EvaluationClosed     nobody rates any more; what was typed is kept as a draft
├── RaterLeft            this rater no longer takes part; likewise
├── NothingToUndo
├── KeyUsed              the client's key belongs to something else
├── SidesDiffer          the client saw other sides than were stored
├── NotYetRated          there is no verdict to change
└── Outdated             the verdict was changed elsewhere meanwhile
"""

from __future__ import annotations


class DeskRefused(Exception):
    """Nothing was stored but, where it says so, a draft."""

    code = "refused"


class EvaluationClosed(DeskRefused):
    code = "closed"


class RaterLeft(DeskRefused):
    code = "left"


class NothingToUndo(DeskRefused):
    code = "nothing_to_undo"


class KeyUsed(DeskRefused):
    code = "key_used"


class SidesDiffer(DeskRefused):
    code = "sides_differ"


class NotYetRated(DeskRefused):
    code = "not_yet_rated"


class Outdated(DeskRefused):
    code = "outdated"
