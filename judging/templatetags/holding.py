"""Template tag for what an archived object still holds."""

from __future__ import annotations

from django import template

from judging.deletion.kinds import contents
from judging.deletion.labels import content_texts

register = template.Library()


@register.simple_tag
def held_by(kind: str, pk: int) -> list[str]:
    """What an object holds, as a list of texts."""
    return content_texts(contents(kind, pk))
