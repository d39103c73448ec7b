"""Parse the source of an expression into nodes.

The grammar has conditions, `||`, `&&`, comparisons, sums, products, signs and selections. Macros are recognised by name
and number of arguments, as in CEL. A call that has the name but not the form of a macro is an ordinary call; the
checker then reports an undeclared function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.cel.nodes import Bind, Call, Fold, ListOf, Literal, MapOf, Name, Node, Select
from aioinformer.cel.tokens import SyntaxFault, Token, tokens

if TYPE_CHECKING:
    from collections.abc import Collection

_LEVELS = (
    ("||",),
    ("&&",),
    ("<", "<=", ">=", ">", "==", "!=", "in"),
    ("+", "-"),
    ("*", "/", "%"),
)
# Names that CEL reserves.
RESERVED = frozenset(
    {
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop"),
        *("namespace", "package", "return", "var", "void", "while"),
    }
)
_CONSTANTS = {"true": True, "false": False, "null": None}
_LARGEST = (1 << 63) - 1
_CHAINED = ("_&&_", "_||_")
# Macros by name and number of arguments: the kind of the fold, and how many arguments are variable names.
_FOLDS = {
    ("all", 2): ("all", 1),
    ("exists", 2): ("exists", 1),
    ("exists_one", 2): ("exists_one", 1),
    ("existsOne", 2): ("exists_one", 1),
    ("map", 2): ("map", 1),
    ("map", 3): ("map", 1),
    ("filter", 2): ("filter", 1),
    ("sortBy", 2): ("sortBy", 1),
    ("all", 3): ("all", 2),
    ("exists", 3): ("exists", 2),
    ("exists_one", 3): ("exists_one", 2),
    ("existsOne", 3): ("exists_one", 2),
    ("transformList", 3): ("map", 2),
    ("transformList", 4): ("map", 2),
    ("transformMap", 3): ("transformMap", 2),
    ("transformMap", 4): ("transformMap", 2),
    ("transformMapEntry", 3): ("transformMapEntry", 2),
    ("transformMapEntry", 4): ("transformMapEntry", 2),
}


def parse(source: str, namespaced: Collection[str]) -> Node:
    """Parse an expression.

    Args:
        source: the source text.
        namespaced: the functions with a dot in their names.

    Raises:
        SyntaxFault: the source is not a valid expression.
    """
    return _Parser(source, namespaced).whole()


class _Parser:
    def __init__(self, source: str, namespaced: Collection[str]) -> None:
        self._tokens = list(tokens(source))
        self._next = 0
        self._namespaced = namespaced

    def whole(self) -> Node:
        node = self._condition()
        if self._token.kind != "end":
            raise self._unexpected("<EOF>")
        return node

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._token
        self._next += 1
        return token

    def _is(self, *texts: str) -> bool:
        return self._token.kind in ("operator", "name") and self._token.text in texts

    def _skip(self, text: str) -> bool:
        found = self._is(text)
        self._next += found
        return found

    def _expect(self, text: str) -> Token:
        if not self._is(text):
            raise self._unexpected(f"'{text}'")
        return self._take()

    def _unexpected(self, wanted: str) -> SyntaxFault:
        token = self._token
        return SyntaxFault(token.at, f"Syntax error: mismatched input '{token.text}' expecting {wanted}")

    def _condition(self) -> Node:
        node = self._level(0)
        if not self._is("?"):
            return node
        at = self._take().at
        then = self._level(0)
        self._expect(":")
        return Call(at, "_?_:_", None, (node, then, self._condition()))

    def _level(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._signed()
        node = self._level(level + 1)
        while self._is(*_LEVELS[level]):
            token = self._take()
            function = "@in" if token.text == "in" else f"_{token.text}_"
            args: tuple[Node, ...] = (node,)
            if function in _CHAINED and isinstance(node, Call) and node.function == function:
                # A long chain becomes one node with many arguments, not a deep tree.
                args = node.args
            node = Call(token.at, function, None, (*args, self._level(level + 1)))
        return node

    def _signed(self) -> Node:
        if not self._is("!", "-"):
            return self._member()
        token = self._take()
        number = self._token
        if token.text == "-" and number.kind == "literal" and type(number.value) in (int, float):
            self._tokens[self._next] = Token(token.at, "literal", "-" + number.text, -number.value)
            return self._member()
        return Call(token.at, f"{token.text}_", None, (self._signed(),))

    def _member(self) -> Node:
        node = self._primary()
        while True:
            if self._is("."):
                node = self._selection(node, self._take().at)
            elif self._is("["):
                at = self._take().at
                function = "_[?_]" if self._skip("?") else "_[_]"
                node = Call(at, function, None, (node, self._condition()))
                self._expect("]")
            else:
                return node

    def _selection(self, node: Node, dot: int) -> Node:
        optional = self._skip("?")
        token = self._token
        if token.kind != "name" or token.text in ("in", *_CONSTANTS):
            raise self._unexpected("IDENTIFIER")
        self._take()
        if optional or not self._is("("):
            return Select(dot, node, token.text, optional=optional)
        at = self._take().at
        args = self._arguments()
        qualified = f"{_path(node)}.{token.text}"
        if qualified in self._namespaced:
            return Call(at, qualified, None, args)
        return _macro(at, token.text, node, args) or Call(at, token.text, node, args)

    def _arguments(self) -> tuple[Node, ...]:
        args: list[Node] = []
        while not self._skip(")"):
            args.append(self._condition())
            if not self._is(")"):
                self._expect(",")
                if self._is(")"):
                    raise self._unexpected("an expression")
        return tuple(args)

    def _primary(self) -> Node:
        token = self._take()
        match token.kind, token.text:
            case "literal", _:
                if type(token.value) is int and token.value > _LARGEST:
                    raise SyntaxFault(token.at, "invalid int literal")
                return Literal(token.at, token.value)
            case "operator", "(":
                node = self._condition()
                self._expect(")")
                return node
            case "operator", "[":
                return self._list(token.at)
            case "operator", "{":
                return self._map(token.at)
            case "operator", "." if self._token.kind == "name":
                return self._primary()
            case "name", name if name in _CONSTANTS:
                return Literal(token.at, _CONSTANTS[name])
            case "name", name if name != "in":
                return self._name(token)
        self._next -= 1
        raise self._unexpected("an expression")

    def _name(self, token: Token) -> Node:
        if token.text in RESERVED:
            raise SyntaxFault(token.at, f"reserved identifier: {token.text}")
        if not self._is("("):
            return Name(token.at, token.text)
        at = self._take().at
        args = self._arguments()
        if token.text != "has" or len(args) != 1:
            return Call(at, token.text, None, args)
        if not isinstance(args[0], Select):
            raise SyntaxFault(at, "invalid argument to has() macro")
        return Select(at, args[0].operand, args[0].field, test=True)

    def _list(self, at: int) -> Node:
        items: list[tuple[Node, bool]] = []
        while not self._skip("]"):
            optional = self._skip("?")
            items.append((self._condition(), optional))
            if not self._is("]"):
                self._expect(",")
        return ListOf(at, tuple(items))

    def _map(self, at: int) -> Node:
        entries: list[tuple[Node, Node, bool]] = []
        while not self._skip("}"):
            optional = self._skip("?")
            key = self._condition()
            self._expect(":")
            entries.append((key, self._condition(), optional))
            if not self._is("}"):
                self._expect(",")
        return MapOf(at, tuple(entries))


def _path(node: Node) -> str:
    match node:
        case Name():
            return node.name
        case Select(test=False, optional=False):
            return f"{_path(node.operand)}.{node.field}"
    return ""


def _macro(at: int, name: str, target: Node, args: tuple[Node, ...]) -> Node | None:
    if name in ("optMap", "optFlatMap") and len(args) == 2:
        (variable,) = _variables(args[:1], name)
        return Bind(at, target, variable, args[1], name == "optFlatMap")
    if (name, len(args)) not in _FOLDS:
        return None
    kind, width = _FOLDS[name, len(args)]
    names = _variables(args[:width], name)
    rest = args[width:]
    return Fold(at, kind, target, names, rest[0] if len(rest) > 1 else None, rest[-1])


def _variables(args: tuple[Node, ...], macro: str) -> tuple[str, ...]:
    for arg in args:
        if not isinstance(arg, Name):
            raise SyntaxFault(arg.at, "argument must be a simple name")
    names = tuple(arg.name for arg in args if isinstance(arg, Name))
    if len(set(names)) != len(names):
        raise SyntaxFault(args[-1].at, f"{macro}() variables must have different names")
    return names
