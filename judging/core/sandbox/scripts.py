"""Preprocess and postprocess scripts inside a worker: loads one, calls its function and reads its results."""

import ast
import builtins
import difflib
import inspect
import io
import linecache
import math
import sys
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType, ModuleType, TracebackType
from typing import Any, TypeGuard

from judging.core.sandbox.allowed_imports import failing_import, is_importable
from judging.core.sandbox.wire import (
    Failed,
    Raw,
    WireFailure,
    describe,
    make_decoder,
    make_encoder,
    without_places,
)

FILE = "<script>"
NO_IMPORT = "{!r} can't be imported in a script"
_MOST_DEPTH = 100
_PLAIN = frozenset((str, int, float, bool, type(None)))
_BARE: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (int, int.__int__),
    (float, float.__float__),
    (str, str.__str__),
)
_encode = make_encoder(allow_nan=True)
_OF_DATA = ("messages", "ref_answer", "gt", "question", "history")
_INT64 = range(-(2**63), 2**63)
_BEFORE = ("judge_reqs", "judge_resps", "judge_models", "results")  # what came before the script's step
ARGUMENTS = {
    "preprocess": ("data", "resp", *_BEFORE),
    "postprocess": ("data", "resp", *_BEFORE, "judge_req", "judge_resp", "judge_model"),
}
OTHER_ANSWER = "other_resp"  # an argument in comparisons of candidates only


class ScriptRecord(dict[str, Any]):
    """A dict whose keys are also attributes, as are those of dicts within it, directly or in lists."""

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        if type(value) is dict:
            value = ScriptRecord(value)
            self[key] = value
        elif type(value) is list:
            _make_records(value)
        return value

    def get(self, key: str, default: Any = None) -> Any:
        if key in self:
            return self[key]
        return default

    def setdefault(self, key: str, default: Any = None) -> Any:
        super().setdefault(key, default)
        return self[key]

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no field {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        try:
            del self[name]
        except KeyError:
            raise AttributeError(f"there is no field {name!r}") from None


_FEW = 32


def _make_records(values: list[Any]) -> None:
    """Replace dicts in a list by records in place, so that the script keeps working on the same list.

    Runs at every access, so for a long list only the first and last element are checked.
    """
    kinds = set(map(type, values if len(values) <= _FEW else (values[0], values[-1])))
    if dict in kinds or list in kinds:
        for index, value in enumerate(values):
            if type(value) is dict:
                values[index] = ScriptRecord(value)
            elif type(value) is list:
                _make_records(value)


_decode = make_decoder(ScriptRecord)


class Printed(io.StringIO):
    """Captures the beginning of printed output, up to a limit, until it is taken."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = self._room = most
        self.was_cut = False

    def take(self) -> tuple[str, bool]:
        """The captured text, and whether it was cut; resets both."""
        if self._room == self._most and not self.was_cut:
            return "", False
        text, was_cut = self.getvalue(), self.was_cut
        self.seek(0)
        self.truncate()
        self._room, self.was_cut = self._most, False
        return without_places(text), was_cut

    def write(self, text: str, /) -> int:
        written = str(text)[: self._room]
        self._room -= len(written)
        self.was_cut = self.was_cut or len(written) < len(text)
        super().write(written)
        return len(text)


def line_of(trace: TracebackType | None) -> int | None:
    """The script's innermost line in a traceback."""
    line = None
    while trace:
        if trace.tb_frame.f_code.co_filename == FILE:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def import_allowed(
    name: str,
    globals: Mapping[str, object] | None = None,
    locals: Mapping[str, object] | None = None,
    fromlist: tuple[str, ...] | None = (),
    level: int = 0,
) -> ModuleType:
    """``import`` for scripts. The list of modules is documented for their authors; it is not a security boundary."""
    parts = [f"{name}.{part}" for part in fromlist or () if f"{name}.{part}" in sys.modules]
    for module in (name, *parts):
        if level or not is_importable(module):
            raise ImportError(NO_IMPORT.format(module), name=module)
    return __import__(name, globals, locals, fromlist or (), level)


# Created before the workers fork: each has one script, and so its own copy.
_BUILTINS = {**vars(builtins), "__import__": import_allowed}


def load(source: str) -> ModuleType:
    """Run the script's top level as a module. Raises Failed if it cannot be compiled."""
    try:
        tree = ast.parse(source, FILE)
        code: CodeType = compile(tree, FILE, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise Failed("syntax", f"{type(error).__name__}: {error.msg}", error.lineno) from None
    except ValueError as error:  # a NUL in the source
        raise Failed("syntax", str(error)) from None
    if (missing := failing_import(tree)) is not None:
        name, line = missing
        raise Failed("load", f"ImportError: {NO_IMPORT.format(name)}", line)
    module = ModuleType("script")
    module.__dict__["__builtins__"] = _BUILTINS
    sys.modules["script"] = module
    linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
    exec(code, module.__dict__)  # noqa: S102 - the sandbox is the place for it
    return module


def forget() -> None:
    """Undo the effects of loading a script."""
    sys.modules.pop("script", None)
    linecache.cache.pop(FILE, None)


class LoadedScript:
    """A loaded script. ``options``: ``most`` characters beyond the item's size, ``printed`` captured characters."""

    line_of = staticmethod(line_of)

    def __init__(self, job: dict[str, Any]) -> None:
        self._kind: str = job["kind"]
        self._most: int = job["options"]["most"]
        self._printed = Printed(job["options"]["printed"])
        sys.stdout = sys.stderr = self._printed  # output printed while loading goes with the first item
        self._invoke = invocation(self._find(load(job["source"])), self._kind)

    def _find(self, module: ModuleType) -> Callable[..., Any]:
        function = vars(module).get(self._kind)
        if not callable(function):
            raise Failed("load", f"there is no function {self._kind!r}")
        return function  # type: ignore[no-any-return]

    def answer(self, raw: Raw) -> list[Any]:
        """Call the script for one item: ``[result, changed, printed, was cut, failure]``."""
        result, changed = None, None
        failure: WireFailure | None = None
        try:
            result, changed = self._call(raw)
        except BaseException as error:  # anything that a script raises is this item's answer
            failure = describe(error, line_of)
        return [result, changed, *self._printed.take(), failure]

    def _call(self, raw: Raw) -> tuple[Any, dict[str, dict[str, Any]]]:
        arguments = filled(_decode(raw), self._kind)
        data, response = arguments["data"], arguments["resp"]
        mutable = {"data": data, "response": response}
        if OTHER_ANSWER in arguments:
            mutable["other_response"] = arguments[OTHER_ANSWER]
        before = {name: Before(value) for name, value in mutable.items()}
        result = checked_result(self._invoke(arguments), self._kind, self._most)
        changed = {name: before[name].changed(value, name) for name, value in mutable.items()}
        if any(changed.values()):
            most = self._most + len(raw)
            if len(_encode(changed)) > most:
                raise Failed("output", f"more than {most} characters in the changed fields")
        return result, changed


def filled(item: dict[str, Any], kind: str) -> dict[str, Any]:
    """The arguments of a call, with the defaults for absent fields that are specified for scripts."""
    arguments = dict(item)  # a plain dict, because it is read on every call
    fill_data = arguments["data"].setdefault
    for name in _OF_DATA:
        fill_data(name, None)
    responses = [arguments[name] for name in ("resp", OTHER_ANSWER) if name in arguments]
    for response in responses:
        if response.get("content") is None:
            response["content"] = ""
    if kind == "postprocess" or any(name in arguments for name in _BEFORE):
        for name in _BEFORE:
            arguments.setdefault(name, [])
    if kind == "postprocess":
        for name in ("judge_reqs", "judge_resps", "judge_models"):
            arguments[name[:-1]] = arguments[name][-1] if arguments[name] else None
    for reply in (*responses, *arguments.get("judge_resps", ())):
        if "error" not in reply:
            reply.setdefault("reasoning_content", None)
            reply.setdefault("tool_calls", None)
    return arguments


def invocation(function: Callable[..., Any], kind: str) -> Callable[[dict[str, Any]], Any]:
    """A caller that passes the function the parameters it declares. Raises Failed for an unknown required parameter."""
    names = ARGUMENTS[kind]
    if _declares_just(function, ("data", "resp")):  # `inspect` would take longer than a call
        others = (*names[2:], OTHER_ANSWER) if function.__code__.co_flags & inspect.CO_VARKEYWORDS else ()
        return lambda values: function(
            values["data"], values["resp"], **{name: values[name] for name in others if name in values}
        )
    names = (*names, OTHER_ANSWER)
    positional: list[str] = []
    named: list[str] = []
    further: list[str] = []  # passed as far as there are any
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            further = [other for other in names if other not in named and other not in positional]
        elif parameter.kind is not parameter.VAR_POSITIONAL and name in names:
            (positional if parameter.kind is parameter.POSITIONAL_ONLY else named).append(name)
        elif parameter.kind is not parameter.VAR_POSITIONAL and parameter.default is parameter.empty:
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
            advice = f"; did you mean {near[0]!r}?" if near else ""
            raise Failed("load", f"unknown parameter {name!r}{advice}", _first_line(function))
    return lambda values: function(
        *[_argument(values, name) for name in positional],
        **{name: _argument(values, name) for name in named},
        **{name: values[name] for name in further if name in values},
    )


def _argument(values: dict[str, Any], name: str) -> Any:
    return values.get(name, [] if name in _BEFORE else None)


def _declares_just(function: Callable[..., Any], names: tuple[str, ...]) -> TypeGuard[FunctionType]:
    """Whether it is a plain function whose positional parameters are exactly these, in this order."""
    if type(function) is not FunctionType or function.__dict__:  # a decorator's wrapper has other parameters
        return False
    code = function.__code__
    return code.co_varnames[: code.co_argcount] == names and not code.co_kwonlyargcount


def _first_line(function: Callable[..., Any]) -> int | None:
    code = getattr(function, "__code__", None)
    return code.co_firstlineno if isinstance(code, CodeType) else None


def without_class(value: Any) -> Any:
    """A number or text of a subclass as its plain base type, regardless of overridden methods."""
    if type(value) in _PLAIN:
        return value
    bare = (bare for plain, bare in _BARE if issubclass(type(value), plain))
    return next(bare, lambda same: same)(value)


def checked_result(result: Any, kind: str, most: int) -> Any:
    """The result, if it is a bool, 64-bit int, finite float, str within the limit or None. Raises Failed otherwise."""
    if result is None or result is True or result is False:
        return result
    result = without_class(result)
    if isinstance(result, int) and result in _INT64:
        return result
    if isinstance(result, float) and math.isfinite(result):
        return result
    if isinstance(result, str) and len(result) <= most and _is_plain(result):
        return result
    raise Failed("result", f"{kind} returned {named_result(result)}")


def named_result(result: Any) -> str:
    """A description of the result that follows the word “returned”."""
    if isinstance(result, str):
        wrong = (
            f"of {len(result)} characters" if _is_plain(result) else "with half a character or a NUL in it"
        )
        return f"a text {wrong}"
    if isinstance(result, int):
        return "an integer beyond 64 bits"
    return _type_and_value(result)


def _type_and_value(value: Any) -> str:
    shown = repr(value)
    return without_places(f"{type(value).__name__} {shown[:100]}{'…' if len(shown) > 100 else ''}")


def _is_plain(text: str) -> bool:
    if "\0" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Before:
    """A snapshot of a dict's fields before a call: plain values as they are, others as JSON text."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._values = fields.copy()
        self._texts = {key: _encode(value) for key, value in fields.items() if type(value) not in _PLAIN}

    def changed(self, after: dict[str, Any], name: str) -> dict[str, Any]:
        """Fields that were added or changed; a removed field is None."""
        values, texts = self._values, self._texts
        remaining = 0
        fields = {}
        for key, value in dict.items(after):
            if key in values:
                remaining += 1
                if (values[key] is value and key not in texts) or self._is_same(key, value):
                    continue
            fields[_checked_key(key, name)] = as_json(value, f"{name}.{key}", 0)
        if remaining < len(values):
            fields |= {key: None for key, value in values.items() if key not in after and value is not None}
        return fields

    def _is_same(self, key: str, value: Any) -> bool:
        before = self._values[key]
        if key not in self._texts:
            return type(value) is type(before) and bool(value == before)
        try:
            return _encode(value) == self._texts[key]
        except (TypeError, ValueError, RecursionError):
            return False


def _checked_key(key: Any, name: str) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    raise Failed("result", f"{name} has a key that is not text: {_type_and_value(key)}")


def as_json(value: Any, path: str, depth: int) -> Any:
    """Convert the value to plain JSON data. Raises Failed naming the path of any other value."""
    value = without_class(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and _is_plain(value):
        return value
    if isinstance(value, int) and (depth or value in _INT64):  # an uploaded list may contain larger ones
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if depth < _MOST_DEPTH and isinstance(value, (list, tuple)):
        return [as_json(element, f"{path}[{index}]", depth + 1) for index, element in enumerate(value)]
    if depth < _MOST_DEPTH and isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {str(key): as_json(element, f"{path}.{key}", depth + 1) for key, element in dict.items(value)}
    raise Failed("result", f"{path[:200]} is not a JSON value: {type(value).__name__}")
