"""Jinja2 inside a worker: compiles and renders templates, and records which used names were undefined or None.

Constants are never folded: `{% if false %}{{ 'a' * 10**9 }}{% endif %}` costs nothing because it is never reached.
"""

import json
from collections.abc import Iterable, Iterator
from types import GeneratorType, TracebackType
from typing import Any

from jinja2 import TemplateSyntaxError, Undefined, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError
from jinja2.runtime import ChainableUndefined, Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import escape

from judging.core.sandbox.template_names import (
    DEFAULT_FILTERS,
    existence_tested_names,
    expression_name,
    names_set_in_loops,
    other_file,
    parts_of_text,
    tested_names,
    used_names,
)
from judging.core.sandbox.wire import Failed, Raw, WireFailure, describe, dotted, make_decoder

_DATA_DEFAULTS = ("question", "gt", "history", "ref_answer")
_RESPONSE_DEFAULTS = ("reasoning_content", "tool_calls")

Note = tuple[str, int | None]
_decode = make_decoder()


class Notes:
    """Names recorded during a render, each once per line, in order of use. ``resolved``: names that have a value."""

    def __init__(self) -> None:
        self.undefined: dict[Note, str] = {}
        self.none: dict[Note, None] = {}
        self.resolved: set[str] = set()

    def clear(self) -> None:
        """Reset for the next item; `resolved` accumulates."""
        self.undefined.clear()
        self.none.clear()


class SubstitutedText(str):
    """A substituted part of the output that knows its origin."""

    kind: str
    name: str
    line: int


class Missing(ChainableUndefined):
    """An undefined value that records its use; testing whether it is defined, or `default`, does not count as use."""

    notes: Notes
    dotted = ""
    line: int | None = None

    def used(self) -> None:
        name = self.dotted or str(self._undefined_name or "")
        message = self._undefined_hint or f"'{name}' is undefined"
        self.notes.undefined.setdefault((name, self.line), message)

    def _fail_with_undefined_error(self, *args: Any, **kwargs: Any) -> Any:
        self.used()
        return super()._fail_with_undefined_error(*args, **kwargs)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _fail_with_undefined_error
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = _fail_with_undefined_error
    __mod__ = __rmod__ = __pos__ = __neg__ = __pow__ = __rpow__ = _fail_with_undefined_error
    __lt__ = __le__ = __gt__ = __ge__ = _fail_with_undefined_error
    __int__ = __float__ = __complex__ = __index__ = __call__ = _fail_with_undefined_error

    def __str__(self) -> str:
        self.used()
        return ""

    def __iter__(self) -> Any:
        self.used()
        return iter(())

    def __len__(self) -> int:
        self.used()
        return 0

    def __bool__(self) -> bool:
        self.used()
        return False

    def __contains__(self, item: object) -> bool:
        self.used()
        return False

    def __eq__(self, other: object) -> bool:
        self.used()
        return isinstance(other, Undefined)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        self.used()
        return id(type(self))


class Generator(CodeGenerator):
    """Generates code that passes the name and line in the template along with each lookup and substitution.

    None in the input of a filter or a formatted text is recorded too: `{{ data.gt|trim }}` also outputs the word None.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._taken_in: set[int] = set()  # nodes, by id

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> Any:
        if id(node) not in self._taken_in:
            return super().visit(node, *args, **kwargs)
        self._taken_in.remove(id(node))
        self.write("environment.taken_in(")
        super().visit(node, *args, **kwargs)
        self.write(f", {expression_name(node)!r}, {node.lineno})")

    def _take_in(self, taken: Iterable[nodes.Node | None]) -> None:
        self._taken_in.update(id(node) for node in taken if node is not None)

    def visit_Filter(self, node: nodes.Filter, frame: Frame) -> None:  # noqa: N802 - Jinja2's name
        if node.name not in DEFAULT_FILTERS:
            self._take_in(parts_of_text(node))
        super().visit_Filter(node, frame)

    def visit_Call(self, node: nodes.Call, frame: Frame, forward_caller: bool = False) -> None:  # noqa: N802
        if isinstance(node.node, nodes.Getattr) and node.node.attr == "format":
            self._take_in((*node.args, *(keyword.value for keyword in node.kwargs)))
        super().visit_Call(node, frame, forward_caller=forward_caller)

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802
        self._take_in(node.nodes)
        super().visit_Concat(node, frame)

    def visit_Mod(self, node: nodes.BinExpr, frame: Frame) -> None:  # noqa: N802
        if isinstance(node.left, nodes.Const) and isinstance(node.left.value, str):
            self._take_in(node.right.items if isinstance(node.right, nodes.Tuple) else [node.right])
        super().visit_Mod(node, frame)

    def _output_child_to_const(self, node: nodes.Expr, frame: Frame, finalize: Any) -> str:
        if not isinstance(node, nodes.TemplateData):
            raise nodes.Impossible()
        return super()._output_child_to_const(node, frame, finalize)

    def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        self.write("environment.substitute(")

    def _output_child_post(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        reaches_the_page = frame.buffer is None
        escaped = (
            "context.eval_ctx.autoescape" if frame.eval_ctx.volatile else bool(frame.eval_ctx.autoescape)
        )
        self.write(f", {expression_name(node)!r}, {node.lineno}, {reaches_the_page}, {escaped})")

    def visit_Getattr(self, node: nodes.Getattr, frame: Frame) -> None:  # noqa: N802
        self.write("environment.attribute(")
        self.visit(node.node, frame)
        self.write(f", {node.attr!r}, {expression_name(node)!r}, {node.lineno})")

    def visit_Getitem(self, node: nodes.Getitem, frame: Frame) -> None:  # noqa: N802
        if isinstance(node.arg, nodes.Slice):
            super().visit_Getitem(node, frame)
            return
        self.write("environment.element(")
        self.visit(node.node, frame)
        self.write(", ")
        self.visit(node.arg, frame)
        self.write(f", {expression_name(node)!r}, {node.lineno})")


class SandboxEnvironment(ImmutableSandboxedEnvironment):
    """Jinja2's immutable sandbox, configured for judge prompts."""

    code_generator_class = Generator

    def __init__(self) -> None:
        super().__init__(autoescape=False, optimized=False, keep_trailing_newline=True, cache_size=0)
        self.notes, self.keep_pieces = Notes(), False
        self.undefined = type("Undefined", (Missing,), {"notes": self.notes})
        self.filters["tojson"] = self.to_json
        del self.globals["lipsum"]  # needs random words, not a judge's

    def to_json(self, value: Any, indent: int | None = None) -> str:
        return json.dumps(value, ensure_ascii=False, indent=indent, default=self._no_json)

    def _no_json(self, value: Any) -> None:
        if not isinstance(value, Undefined):
            raise TypeError(f"{type(value).__name__} is no JSON value")
        str(value)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Look up an attribute; a dict's field takes precedence over its method of the same name."""
        if isinstance(obj, dict) and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)

    def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:
        """Raise an error for an unsafe attribute, rather than treating it as missing."""
        raise SecurityError(f"{attribute!r} of a {type(obj).__name__} is out of reach for templates")

    def attribute(self, obj: Any, attribute: str, name: str, line: int) -> Any:
        if type(obj) is dict and attribute in obj:  # skips the extra steps for nearly all lookups
            value = obj[attribute]
            if not isinstance(value, Missing):
                self.notes.resolved.add(name)
                return value
        return self._named(self.getattr(obj, attribute), obj, name, line)

    def element(self, obj: Any, key: Any, name: str, line: int) -> Any:
        return self._named(self.getitem(obj, key), obj, name, line)

    def _named(self, value: Any, obj: Any, name: str, line: int) -> Any:
        if not isinstance(value, Missing):
            self.notes.resolved.add(name)
        elif not value.dotted:  # a field of an undefined value is that same undefined value
            value.dotted, value.line = str(value._undefined_name) if value is obj else name, line
        return value

    def taken_in(self, value: Any, name: str, line: int) -> Any:
        """Return the value, recording it if it is None."""
        if value is None:
            self.notes.none[name, line] = None
        return value

    def substitute(self, value: Any, name: str, line: int, reaches_the_page: bool, escaped: bool) -> str:
        """A value as text; in a preview, if it goes straight to the output, with its origin."""
        if type(value) is str and not escaped:
            text = value
        else:
            self.taken_in(value, name, line)
            text = str(escape(value) if escaped else value)
        if not (self.keep_pieces and reaches_the_page):
            return text
        piece = SubstitutedText(text)
        piece.kind = "none" if value is None else "undefined" if isinstance(value, Undefined) else "value"
        piece.name, piece.line = name, line
        return piece


# Created before the workers fork: each has one template, and so its own copy.
_environment = SandboxEnvironment()


def parsed(source: str) -> nodes.Template:
    """The template's tree. Raises TemplateSyntaxError, also for a tag that would load another template."""
    tree = _environment.parse(source)
    if (tag := other_file(tree)) is not None:
        raise TemplateSyntaxError("a prompt can't include, import or extend other templates", tag.lineno)
    return tree


def template_line(trace: TracebackType | None) -> int | None:
    """The template's line in a traceback: the innermost one in a compiled template."""
    line = None
    while trace:
        template = trace.tb_frame.f_globals.get("__jinja_template__")
        if template:
            line = template.get_corresponding_lineno(trace.tb_lineno)
        trace = trace.tb_next
    return line


class Renderer:
    """A compiled template.

    ``options``: ``undefined`` (strict, lenient), ``most`` characters of output beyond the item's size.
    """

    def __init__(self, job: dict[str, Any]) -> None:
        self._strict = job["options"]["undefined"] == "strict"
        self._most = job["options"]["most"]
        self._keep_pieces = job["kind"] == "preview"
        environment = _environment
        environment.keep_pieces = self._keep_pieces
        self._notes = environment.notes
        self._notes.resolved.clear()
        self._resolved_before: set[str] = set()
        try:
            tree = parsed(job["source"])
            names = used_names(tree, environment)
            self._first_lines = {dotted(path): line for path, line in reversed(names)}
            self._template = environment.from_string(tree)
        except TemplateSyntaxError as error:
            raise Failed("syntax", error.message or "syntax error", error.lineno) from None

    line_of = staticmethod(template_line)

    def answer(self, raw: Raw) -> list[Any]:
        """Render one item: ``[text, undefined, none, failure, pieces, resolved]``.

        ``resolved`` has the names that no earlier item had.
        """
        self._notes.clear()
        pieces: list[str] = []
        failure: WireFailure | None = None
        try:
            self._render(context_of(_decode(raw)), pieces, self._most + len(raw))
        except BaseException as error:  # anything that a template raises is this item's answer
            failure = describe(error, self.line_of)
        undefined = self._undefined() if self._notes.undefined else []
        if undefined and (self._strict or failure):
            (_, line), message = undefined[0]
            if failure is None or failure[0] == "exception":
                failure = ("undefined", message, line)
        text = None if failure else "".join(pieces)
        described_pieces = described(pieces) if self._keep_pieces else None
        names = [note for note, _ in undefined]
        return [text, names, list(self._notes.none), failure, described_pieces, self._newly_resolved()]

    def _newly_resolved(self) -> list[str]:
        if self._notes.resolved <= self._resolved_before:
            return []
        new = self._notes.resolved - self._resolved_before
        self._resolved_before |= new
        return sorted(new)

    def _render(self, values: dict[str, Any], pieces: list[str], most: int) -> None:
        length = 0
        flow = self._template.root_render_func(self._context(values))
        for piece in flow:
            length += len(piece)
            if length > most:
                raise Failed("output", f"more than {most} characters", self._line_reached(flow))
            pieces.append(piece)

    def _context(self, values: dict[str, Any]) -> Context:
        """Like ``Template.new_context``, but from plain dicts: the chained ones take longer than a render."""
        template, environment = self._template, self._template.environment
        parent = {**environment.globals, **values}
        return environment.context_class(
            environment, parent, template.name, template.blocks, globals=environment.globals
        )

    def _line_reached(self, flow: Iterator[str]) -> int | None:
        """The template line at which a suspended render is."""
        frame = flow.gi_frame if isinstance(flow, GeneratorType) else None
        return self._template.get_corresponding_lineno(frame.f_lineno) if frame else None

    def _undefined(self) -> list[tuple[Note, str]]:
        notes = self._notes.undefined.items()
        return [((name, line or self._first_lines.get(name)), message) for (name, line), message in notes]


def described(pieces: list[str]) -> list[tuple[str, str, str, int | None]]:
    """Kind, text, name and line of each piece."""
    return [
        (piece.kind, str(piece), piece.name, piece.line)
        if isinstance(piece, SubstitutedText)
        else ("text", piece, "", None)
        for piece in pieces
    ]


def context_of(item: dict[str, Any]) -> dict[str, Any]:
    """A template's variables, with the defaults for absent fields that are specified for templates."""
    data, answers = item["data"], [item[name] for name in ("response", "a", "b") if name in item]
    for name in _DATA_DEFAULTS:
        data.setdefault(name, None)
    for answer in answers:
        if answer.get("content") is None:
            answer["content"] = ""
    judges = item.get("judge_resps", ())
    for message in (*answers, *(reply for reply in judges if "error" not in reply)):
        for name in _RESPONSE_DEFAULTS:
            message.setdefault(name, None)
    return item


class NameFinder:
    """Finds the names that a template looks up, with lines, and those whose existence or truth it tests.

    Only parses the template; it is not rendered.
    """

    def __init__(self, job: dict[str, Any]) -> None:
        try:
            tree = parsed(job["source"])
            self._names = [
                used_names(tree, _environment),
                existence_tested_names(tree),
                tested_names(tree),
                names_set_in_loops(tree),
            ]
            _environment.from_string(tree)
        except TemplateSyntaxError as error:
            raise Failed("syntax", error.message or "syntax error", error.lineno) from None

    line_of = staticmethod(template_line)

    def answer(self, raw: Raw) -> list[Any]:
        """``[[[path, line], …], [path, …], [[path, line], …], [[path, line], …]]``: used, asked and tested names, and
        those set in loops.
        """
        return self._names
