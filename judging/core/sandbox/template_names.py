"""Finds the names that a parsed template looks up."""

from collections.abc import Iterator

from jinja2 import Environment, nodes

from judging.core.sandbox.wire import Path, dotted

_SPECIAL = {"loop", "self", "super", "caller", "varargs", "kwargs"}
_EXISTENCE_TESTS = {"defined", "undefined"}
DEFAULT_FILTERS = {"default", "d"}

PathAndLine = tuple[Path, int]


def path_of(node: nodes.Node) -> Path | None:
    """`("data", "a", 0)` for a chain of names in any notation, None for any other expression."""
    if isinstance(node, nodes.Name):
        return (node.name,)
    if isinstance(node, nodes.Getattr):
        inner = path_of(node.node)
        return inner and (*inner, node.attr)
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
        inner, key = path_of(node.node), node.arg.value
        return inner and (*inner, key) if type(key) in (str, int) else None
    return None


def expression_name(node: nodes.Node) -> str:
    """A short name for an expression: its chain, otherwise the first chain in it, otherwise '' (for a constant).

    For `a if b else c`, the name comes from the values that may be output, not from the condition.
    """
    if isinstance(node, nodes.CondExpr):
        shown = (expression_name(branch) for branch in (node.expr1, node.expr2) if branch is not None)
        return next((name for name in shown if name), "")
    return next((dotted(path) for path, _ in _chains(node)), "")


def parts_of_text(node: nodes.Filter) -> Iterator[nodes.Node | None]:
    """The nodes that a filter turns into text: its input, the elements of a literal list, the arguments of `format`."""
    yield node.node
    if node.name == "join" and isinstance(node.node, (nodes.List, nodes.Tuple)):
        yield from node.node.items
    if node.name == "format":
        yield from node.args
        yield from (keyword.value for keyword in node.kwargs)


def used_names(tree: nodes.Template, environment: Environment) -> list[PathAndLine]:
    """Names that must come from outside, each once per line, in template order."""
    own = {node.name for node in tree.find_all(nodes.Name) if node.ctx != "load"}
    own |= {node.name for node in tree.find_all(nodes.Macro)}
    defined = own | _SPECIAL | set(environment.globals)
    chains = (chain for chain in _chains(tree) if chain[0][0] not in defined)
    return list(dict.fromkeys(chains))


def names_set_in_loops(tree: nodes.Template) -> list[PathAndLine]:
    """Variables of a loop's surroundings that are set inside it, where Jinja2 forgets the new value at each turn."""
    # By id: nodes with the same contents are equal, wherever they stand.
    inside = {
        id(assignment): assignment
        for loop in tree.find_all(nodes.For)
        for assignment in loop.find_all(nodes.Assign)
    }
    outside = {
        assigned.target.name
        for assigned in tree.find_all(nodes.Assign)
        if isinstance(assigned.target, nodes.Name) and id(assigned) not in inside
    }
    names = [
        ((assigned.target.name,), assigned.lineno)
        for assigned in inside.values()
        if isinstance(assigned.target, nodes.Name)
        and (assigned.target.name in outside or assigned.target.name in _names_in(assigned.node))
    ]
    return list(dict.fromkeys(names))


def other_file(tree: nodes.Template) -> nodes.Node | None:
    """The first tag that would load another template, of which there is none."""
    return next(tree.find_all((nodes.Include, nodes.Extends, nodes.Import, nodes.FromImport)), None)


def _names_in(node: nodes.Node) -> set[str]:
    return {part.name for part in (node, *node.find_all(nodes.Name)) if isinstance(part, nodes.Name)}


def existence_tested_names(tree: nodes.Template) -> list[Path]:
    """Names whose existence the template tests, so that they may be missing."""
    tested = [node.node for node in tree.find_all(nodes.Test) if node.name in _EXISTENCE_TESTS]
    tested += [
        node.node for node in tree.find_all(nodes.Filter) if node.name in DEFAULT_FILTERS and node.node
    ]
    paths = [path for path in map(path_of, tested) if path]
    for compared in tree.find_all(nodes.Compare):
        paths += _existence_tested_by_in(compared)
    return list(dict.fromkeys(paths))


def tested_names(tree: nodes.Template) -> list[PathAndLine]:
    """Names whose truth value decides something: `{% if data.x %}`, `data.x or …`, `data.x | default('', true)`.

    A variable that is set to one of them counts as that name, and `data.get('x')` as `data.x`.
    """
    names = {
        target.name: path
        for target, value in _assigned(tree)
        if isinstance(target, nodes.Name) and (path := _path_looked_up(value))
    }
    chains = [
        ((*names.get(str(path[0]), path[:1]), *path[1:]), node.lineno)
        for node in _tested(tree)
        if (path := _path_looked_up(node))
    ]
    return list(dict.fromkeys(chains))


def _assigned(tree: nodes.Template) -> Iterator[tuple[nodes.Node, nodes.Node]]:
    """Targets and values of `{% set %}` and `{% with %}`."""
    for assignment in tree.find_all(nodes.Assign):
        yield assignment.target, assignment.node
    for block in tree.find_all(nodes.With):
        yield from zip(block.targets, block.values, strict=True)


def _path_looked_up(node: nodes.Node) -> Path | None:
    """The path of a name, including a lookup with `get`."""
    if not (
        isinstance(node, nodes.Call) and isinstance(node.node, nodes.Getattr) and node.node.attr == "get"
    ):
        return path_of(node)
    inner, key = path_of(node.node.node), node.args[0] if node.args else None
    if inner and isinstance(key, nodes.Const) and isinstance(key.value, str):
        return (*inner, key.value)
    return None


def _tested(tree: nodes.Template) -> Iterator[nodes.Node]:
    for condition in tree.find_all(nodes.If):
        yield from _parts_tested(condition.test)
    for choice in tree.find_all(nodes.CondExpr):
        yield from _parts_tested(choice.test)
    for alternative in tree.find_all(nodes.Or):
        yield from _parts_tested(alternative.left)
    for conjunction in tree.find_all(nodes.And):
        yield from _parts_tested(conjunction.left)
    for negation in tree.find_all(nodes.Not):
        yield from _parts_tested(negation.node)
    for used in tree.find_all(nodes.Filter):
        falls_back = [
            *used.args[1:2],
            *(keyword.value for keyword in used.kwargs if keyword.key == "boolean"),
        ]
        wide = any(isinstance(argument, nodes.Const) and argument.value for argument in falls_back)
        if used.name in DEFAULT_FILTERS and used.node and wide:
            yield used.node


def _parts_tested(node: nodes.Node) -> Iterator[nodes.Node]:
    """The parts of an expression that decide whether it is true."""
    if isinstance(node, (nodes.And, nodes.Or)):
        yield from _parts_tested(node.left)
        yield from _parts_tested(node.right)
    elif isinstance(node, nodes.Not):
        yield from _parts_tested(node.node)
    else:
        yield node


def _existence_tested_by_in(compared: nodes.Compare) -> Iterator[Path]:
    """`data.x` in `'x' in data`."""
    key = compared.expr.value if isinstance(compared.expr, nodes.Const) else None
    for operand in compared.ops:
        inner = path_of(operand.expr)
        if isinstance(key, str) and inner and operand.op in ("in", "notin"):
            yield (*inner, key)


def _chains(node: nodes.Node) -> Iterator[PathAndLine]:
    path = path_of(node)
    if path is not None and not (isinstance(node, nodes.Name) and node.ctx != "load"):
        yield path, node.lineno
        return
    if isinstance(node, nodes.Call) and isinstance(node.node, nodes.Getattr):
        yield from _chains(node.node.node)  # the method's own name is not a field
        children = [child for child in node.iter_child_nodes() if child is not node.node]
    else:
        children = list(node.iter_child_nodes())
    for child in children:
        yield from _chains(child)
