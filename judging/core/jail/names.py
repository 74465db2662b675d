"""Which names a parsed template looks up."""

from collections.abc import Iterator

from jinja2 import Environment, nodes

_SPECIAL = {"loop", "self", "super", "caller", "varargs", "kwargs"}

NameAndLine = tuple[str, int]


def dotted(node: nodes.Node) -> str | None:
    """`data.a.b` for such a chain (however its parts are written), None for any other expression."""
    if isinstance(node, nodes.Name):
        return node.name
    if isinstance(node, nodes.Getattr):
        inner = dotted(node.node)
        return inner and f"{inner}.{node.attr}"
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
        inner = dotted(node.node)
        key = node.arg.value
        return inner and (f"{inner}.{key}" if isinstance(key, str) else f"{inner}[{key}]")
    return None


def expression_name(node: nodes.Node) -> str:
    """A short name for an expression: its chain, or the first chain in it, or nothing for a constant."""
    return next((name for name, _ in _chains(node)), "")


def used_names(tree: nodes.Template, environment: Environment) -> list[NameAndLine]:
    """Names that must come from outside, each once per line, in the template's order."""
    own = {node.name for node in tree.find_all(nodes.Name) if node.ctx != "load"}
    own |= {node.name for node in tree.find_all(nodes.Macro)}
    known = own | _SPECIAL | set(environment.globals)
    found = (chain for chain in _chains(tree) if _root(chain[0]) not in known)
    return list(dict.fromkeys(found))


def _root(name: str) -> str:
    return name.replace("[", ".").split(".")[0]


def _chains(node: nodes.Node) -> Iterator[NameAndLine]:
    name = dotted(node)
    if name is not None and not (isinstance(node, nodes.Name) and node.ctx != "load"):
        yield name, node.lineno
        return
    if isinstance(node, nodes.Call) and isinstance(node.node, nodes.Getattr):
        yield from _chains(node.node.node)  # the method's own name is no field
        children = [child for child in node.iter_child_nodes() if child is not node.node]
    else:
        children = list(node.iter_child_nodes())
    for child in children:
        yield from _chains(child)
