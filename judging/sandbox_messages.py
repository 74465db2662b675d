"""The sandbox's own English messages, which are stored with judgements, in the reader's language.

What Python or Jinja says (`KeyError: 'x'`) stays as it is.
"""

from __future__ import annotations

import re
from functools import cache

from django.utils.translation import gettext, gettext_noop

_NAME = re.compile(r"%\((\w+)\)s")
_PLACE = re.compile(
    r"line (?P<line>\d+) of the (?P<kind>preprocess|postprocess) script(?:: (?P<rest>.*))?", re.S
)

MESSAGES = (
    gettext_noop("there is no function '%(name)s'"),
    gettext_noop("%(kind)s wants '%(name)s', which is not given"),
    gettext_noop("ImportError: '%(module)s' can't be imported in a script"),
    gettext_noop("AttributeError: there is no field '%(name)s'"),
    gettext_noop("more than %(most)s characters in the changed fields"),
    gettext_noop("more than %(most)s characters"),
    gettext_noop("more than %(seconds)s seconds of processor time"),
    gettext_noop("more than %(seconds)s seconds"),
    gettext_noop("more memory than an item may use"),
    gettext_noop("%(kind)s returned a text of %(count)s characters"),
    gettext_noop("%(kind)s returned a text with half a character or a NUL in it"),
    gettext_noop("%(kind)s returned an integer beyond 64 bits"),
    gettext_noop("%(kind)s returned %(value)s"),
    gettext_noop("%(field)s has a key that is no text: %(value)s"),
    gettext_noop("%(field)s is no JSON value: %(type)s"),
    gettext_noop("its process was ended by %(signal)s"),
    gettext_noop("its process ended itself"),
    gettext_noop("its process was ended before it began"),
    gettext_noop("the worker did not answer as agreed: %(why)s"),
    gettext_noop("'%(name)s' is undefined"),
    gettext_noop("too deeply nested"),
)


def localized(message: str) -> str:
    """The message in the active language, with the line and script that it begins with."""
    place = _PLACE.fullmatch(message)
    if place is not None:
        words = {"line": place["line"], "kind": place["kind"], "detail": localized(place["rest"] or "")}
        if not words["detail"]:
            return gettext("line %(line)s of the %(kind)s script") % words
        return gettext("line %(line)s of the %(kind)s script: %(detail)s") % words
    for msgid, pattern in _patterns():
        found = pattern.fullmatch(message)
        if found is not None:
            return gettext(msgid) % found.groupdict()
    return message


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Each message with the expression that it matches, in order: the more exact ones stand first."""
    return tuple((msgid, re.compile(_expression(msgid), re.S)) for msgid in MESSAGES)


def _expression(msgid: str) -> str:
    """`more than %(most)s characters` as `more than (?P<most>.+?) characters`."""
    texts = _NAME.split(msgid)
    return "".join(f"(?P<{part}>.+?)" if number % 2 else re.escape(part) for number, part in enumerate(texts))
