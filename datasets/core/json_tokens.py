r"""The tokens of JSON and of what is nearly JSON, with their places, and the order in which they may follow each other.

Errors, JSON over several lines, repairs and Python literals read these tokens; each decides what it accepts. A token is
(kind, start, end), and every text consists of tokens and JSON's white space between them:

    string      "…" as JSON has it
    loose       "…" with escapes that JSON does not have
    control     "…" with control characters, such as line ends
    single      '…' on one line, as Python writes it
    quote       a quote that is not closed, or one of other alphabets
    open close  { [ and } ]
    round       ( and )
    comma colon
    word        a number, literal or name
    comment     //… or #… to the end of the line, or /*…*/
    unended     /* that is not closed
    space       white space that JSON does not have
    other       any other character
    end         the end of the text

Readers stop at `quote` and `unended`: the rest of the text would be searched again for the end of each further one.
"""

import re
from collections.abc import Iterator

MAX_DEPTH = 200
Token = tuple[str, int, int]
QUOTED = r'"(?:[^"\\]++|\\.)*+"'
PLAIN = frozenset(("string", "open", "close", "comma", "colon", "word"))
"""The kinds of which JSON consists."""
CLOSING = {"{": "}", "[": "]"}

_TOKEN = re.compile(
    rf"""[ \t\r\n]*+(?:
      (?P<string>"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{{4}}))*+")
    | (?P<comma>,)
    | (?P<colon>:)
    | (?P<open>[{{\[])
    | (?P<close>[}}\]])
    | (?P<round>[()])
    | (?P<word>[-+.\w]++)
    | (?P<comment>//[^\n]*+|\#[^\n]*+|/\*.*?\*/)
    | (?P<unended>/\*)
    | (?P<loose>"(?:[^"\\\x00-\x1f]++|\\.)*+")
    | (?P<control>{QUOTED})
    | (?P<single>'(?:[^'\\\n]++|\\[^\n])*+')
    | (?P<quote>["'`“”„‟＂「」‘’＇])
    | (?P<end>\Z)
    | (?P<space>\s)
    | (?P<other>.)
    )""",
    re.VERBOSE | re.DOTALL,
)


def token_at(text: str, at: int) -> Token:
    """The next token from this position."""
    token = _TOKEN.match(text, at)
    assert token  # one of the alternatives fits any character
    return token.lastgroup or "", token.start(token.lastindex or 0), token.end()


def tokens(text: str, at: int = 0) -> Iterator[Token]:
    """The tokens from this position, without the end."""
    for token in _TOKEN.finditer(text, at):
        if token.lastgroup != "end":
            yield token.lastgroup or "", token.start(token.lastindex or 0), token.end()


class Nesting:
    """The open brackets of a JSON text and what is expected next."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.expects = "value"

    @property
    def expected(self) -> str:
        """What is expected next, as named in a finding."""
        if self.expects == "separator":
            return "comma_or_brace" if self.open[-1] == "{" else "comma_or_bracket"
        return self.expects.removesuffix("_or_end")

    def take(self, kind: str, sign: str) -> bool:
        """Go on behind a token if it fits here; return whether it does. A comma may precede a closing bracket."""
        expects, after = self.expects, "separator" if self.open else "value"
        if kind == "colon" and expects == "colon":
            after = "value"
        elif kind == "string" and expects == "key_or_end":
            after = "colon"
        elif kind == "comma" and expects == "separator":
            after = _FIRST[self.open[-1]]
        elif kind == "open" and expects in ("value", "value_or_end"):
            self.open.append(sign)
            after = _FIRST[sign]
        elif kind == "close" and self._closes(sign):
            self.open.pop()
            after = "separator" if self.open else "value"
        elif kind not in ("string", "word") or expects not in ("value", "value_or_end"):
            return False
        self.expects = after
        return True

    def _closes(self, sign: str) -> bool:
        """Whether the bracket closes the innermost open one."""
        fits = bool(self.open) and sign == CLOSING[self.open[-1]]
        return fits and self.expects in ("separator", "key_or_end", "value_or_end")


_FIRST = {"{": "key_or_end", "[": "value_or_end"}
