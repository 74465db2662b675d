"""Restores the indentation of Python code that was copied through a document and has none.

Blocks are opened by lines that end in a colon; where they end follows from the grammar (`else` and `except` need their
`if` and `try`, `return` needs a function, `continue` a loop) and from what could never be reached. Where this leaves
several readings, one is chosen by the names that lines use, and the line is reported as uncertain.
"""

from __future__ import annotations

import ast
import io
import token
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

MARK = "  # indentation?"
"""Added to uncertain lines, so that they can still be found after the repair."""

_INDENT = "    "
_MOST_READINGS = 2000  # at a line; code with more is left alone
_MATES = {
    "elif": ("if", "elif"),
    "else": ("if", "elif", "for", "while", "except"),
    "except": ("try", "except"),
    "finally": ("try", "except", "try-else"),
    "case": ("case",),
}
"""The blocks that a clause may follow, by its first word."""
_ENDS = ("return", "raise", "break", "continue")
_LOOPS = ("for", "while")
_AT_TOP = ("def", "class", "import", "from", "@", "async")
_WITHOUT_MEANING = {tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, token.ENDMARKER}


@dataclass(frozen=True, slots=True)
class Indented:
    """The code with its indentation, and the numbers (from 1) of the lines that might belong to another block."""

    source: str
    uncertain: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Statement:
    first: int  # line, from 1
    last: int
    word: str  # the first token
    opens: bool  # whether a block follows
    code: str

    @cached_property
    def tree(self) -> ast.AST:
        """The statement alone, with an empty block; an empty module where it cannot stand alone."""
        code = f"{self.code} pass" if self.opens else self.code
        code = code.removeprefix("el") if self.word == "elif" else code
        code = f"try: pass\n{code}" if self.word == "except" else code
        try:
            return ast.parse(code)
        except SyntaxError:
            return ast.Module([], [])

    @cached_property
    def uses(self) -> frozenset[str]:
        """Names that it reads from elsewhere."""
        nodes = list(ast.walk(self.tree))
        targets = [node.target for node in nodes if isinstance(node, ast.comprehension)]
        own = {node.arg for node in nodes if isinstance(node, ast.arg)}
        own.update(name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))
        read = (node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
        return frozenset(name.id for name in read if name.id not in own)

    @cached_property
    def binds(self) -> frozenset[str]:
        """Names of variables, parameters, functions and caught exceptions."""
        names = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(node, ast.arg):
                names.add(node.arg)
            elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler) and node.name:
                names.add(node.name)
            elif isinstance(node, ast.alias):
                names.add((node.asname or node.name).partition(".")[0])
        return frozenset(names)

    @cached_property
    def counts(self) -> bool:
        """Whether it is like `n += 1`."""
        return any(isinstance(node, ast.AugAssign) for node in ast.walk(self.tree))


_Block = tuple[str, int]  # kind, and the position of the statement that opens it
_Stack = tuple[_Block, ...]


def with_indentation(source: str) -> Indented:
    """Indent the blocks of code in which no line is indented; unchanged if no reading is valid Python."""
    if any(line[:1] in (" ", "\t") and line.strip() for line in source.split("\n")):
        return Indented(source)
    try:
        statements = list(_statements(source))
        if not any(statement.opens for statement in statements):
            return Indented(source)
        return _written(source, statements, *_read(statements))
    except (tokenize.TokenError, SyntaxError, _NoReading):
        return Indented(source)


class _NoReading(Exception):
    """No indentation makes the code valid, or too many do."""


def _read(statements: list[_Statement]) -> tuple[list[int], list[int]]:
    """The depth of each statement, and the positions of those that could have another."""
    possible = _possible(statements)
    stack: _Stack = ()
    depths: list[int] = []
    uncertain: list[int] = []
    for position in range(len(statements)):
        options = {
            depth: after
            for depth, after in _placed(statements, position, stack)
            if after in possible[position]
        }
        depth = _likely(statements, position, stack, sorted(options, reverse=True))
        if len(options) > 1:
            uncertain.append(position)
        depths.append(depth)
        stack = options[depth]
    return depths, uncertain


def _possible(statements: list[_Statement]) -> list[set[_Stack]]:
    """For each statement, the blocks that may be open after it in a reading that is valid to the end."""
    reached: list[dict[_Stack, set[_Stack]]] = []  # after each statement: its open blocks, and those before
    stacks: set[_Stack] = {()}
    for position in range(len(statements)):
        after: dict[_Stack, set[_Stack]] = {}
        for stack in stacks:
            for _depth, placed in _placed(statements, position, stack):
                after.setdefault(placed, set()).add(stack)
        if not after or len(after) > _MOST_READINGS:
            raise _NoReading
        reached.append(after)
        stacks = set(after)
    valid = {stack for stack in stacks if not statements[-1].opens and not _has_try(stack)}
    possible = [valid]
    for after in reversed(reached[1:]):
        possible.insert(0, set().union(*(after[stack] for stack in possible[0])))
    if not valid:
        raise _NoReading
    return possible


def _placed(statements: list[_Statement], position: int, stack: _Stack) -> Iterator[tuple[int, _Stack]]:
    """Depths at which the statement may stand after these open blocks, each with the open blocks after it."""
    statement, before = statements[position], statements[position - 1] if position else None
    most = len(stack) - (before is not None and before.word in _ENDS)
    for depth in [most] if before and before.opens else range(most + 1):
        if _has_mate(statement, before, stack, depth) and _may_stand(statements, position, stack, depth):
            kind = "try-else" if statement.word == "else" and stack[depth][0] == "except" else statement.word
            yield depth, stack[:depth] + (((kind, position),) if statement.opens else ())


def _has_mate(statement: _Statement, before: _Statement | None, stack: _Stack, depth: int) -> bool:
    """Whether a clause follows its block, and no `try` ends without a clause, and a `match` holds only cases."""
    is_clause = statement.opens and statement.word in _MATES
    if is_clause and depth < len(stack) and stack[depth][0] in _MATES[statement.word]:
        return not _has_try(stack[depth + 1 :])
    if _has_try(stack[depth:]):
        return False
    in_match = depth > 0 and stack[depth - 1][0] == "match"
    if statement.word == "case" and is_clause:
        return in_match and before is not None and before.word == "match"
    return not is_clause and not in_match


def _has_try(blocks: _Stack) -> bool:
    return any(kind == "try" for kind, _position in blocks)


def _may_stand(statements: list[_Statement], position: int, stack: _Stack, depth: int) -> bool:
    """Whether what is inside or outside its blocks at this depth makes the statement valid."""
    statement, before = statements[position], statements[position - 1] if position else None
    kinds = [kind for kind, _position in stack[:depth]]
    after_def = kinds[len(kinds) - kinds[::-1].index("def") :] if "def" in kinds else kinds
    if before and (before.opens or before.word == "@"):
        pass  # the only place
    elif statement.word in _AT_TOP and any(kind != "class" for kind in kinds):
        return False
    if statement.word == "return" and "def" not in kinds:
        return False
    if statement.word in ("break", "continue") and not set(_LOOPS) & set(after_def):
        return False
    outside = {start for kind, start in stack[depth:] if kind == "def"}
    return not any(statement.uses & _local(statements, start, position) for start in outside)


def _local(statements: list[_Statement], start: int, position: int) -> frozenset[str]:
    """Names bound from the block's first line up to the statement, but not before the block."""
    within = frozenset[str]().union(*(statement.binds for statement in statements[start:position]))
    return within.difference(*(statement.binds for statement in statements[:start]))


def _likely(statements: list[_Statement], position: int, stack: _Stack, depths: list[int]) -> int:
    """The deepest block to which the statement seems to belong by the names that it uses."""
    statement = statements[position]
    for depth in depths[:-1]:
        kind, start = stack[depth - 1]
        if kind in ("def", "class") or statement.uses & _local(statements, start, position):
            return depth
        if kind in _LOOPS and statement.counts:
            return depth
    return depths[-1]


def _written(source: str, statements: list[_Statement], depths: list[int], uncertain: list[int]) -> Indented:
    lines = source.split("\n")
    inside_strings = _inside_strings(source)
    end = 0
    for position, (statement, depth) in enumerate(zip(statements, depths, strict=True)):
        for number in range(end, statement.last):  # with the comments before it
            if lines[number] and number + 1 not in inside_strings:
                lines[number] = _INDENT * depth + lines[number]
        if position in uncertain:
            lines[statement.last - 1] += MARK
        end = statement.last
    return Indented("\n".join(lines), tuple(statements[position].first for position in uncertain))


def _statements(source: str) -> Iterator[_Statement]:
    lines = source.split("\n")
    tokens: list[tokenize.TokenInfo] = []
    for info in tokenize.generate_tokens(io.StringIO(source).readline):
        if info.type == tokenize.NEWLINE:
            first, last, opens = tokens[0].start[0], tokens[-1].end[0], tokens[-1].string == ":"
            word = tokens[1].string if tokens[0].string == "async" else tokens[0].string
            code = "\n".join([*lines[first - 1 : last - 1], lines[last - 1][: tokens[-1].end[1]]])
            yield _Statement(first, last, word, opens, code)
            tokens = []
        elif info.type not in _WITHOUT_MEANING:
            tokens.append(info)


def _inside_strings(source: str) -> set[int]:
    """Numbers of the lines that begin inside a string."""
    numbers: set[int] = set()
    starts: list[int] = []
    for info in tokenize.generate_tokens(io.StringIO(source).readline):
        kind = token.tok_name[info.type]
        if kind == "STRING":
            numbers.update(range(info.start[0] + 1, info.end[0] + 1))
        elif kind == "FSTRING_START":  # since Python 3.12
            starts.append(info.start[0])
        elif kind == "FSTRING_END":
            numbers.update(range(starts.pop() + 1, info.end[0] + 1))
    return numbers
