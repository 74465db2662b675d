"""A looked-up name as its parts, and as it is written."""

Path = tuple[str | int, ...]


def dotted(path: Path) -> str:
    """`data.a[0]` for `("data", "a", 0)`."""
    first, *rest = path
    return str(first) + "".join(f".{part}" if isinstance(part, str) else f"[{part}]" for part in rest)
