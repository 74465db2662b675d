"""Where a text is cut, an ellipsis says so."""


def truncate(text: str, most: int) -> str:
    """The text, or its first `most` characters followed by an ellipsis."""
    return text if len(text) <= most else f"{text[:most].rstrip()}…"
