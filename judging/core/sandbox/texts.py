"""English messages with translations: of the sandbox, and the most frequent ones of Python, Jinja and JSON.

They are stored as raised; `judging.messages.localized` finds the first text that matches, so that more specific ones
come first. Other messages of Python (`KeyError: 'x'`) are not translated.
"""

from datasets.core.texts import gettext_noop

MESSAGES = (
    gettext_noop("there is no function '%(name)s'"),
    gettext_noop("unknown parameter '%(name)s'; did you mean '%(near)s'?"),
    gettext_noop("unknown parameter '%(name)s'"),
    gettext_noop("ImportError: '%(module)s' can't be imported in a script"),
    gettext_noop("AttributeError: there is no field '%(name)s'"),
    gettext_noop("more than %(most)s characters in the changed fields"),
    gettext_noop("more than %(most)s characters"),
    gettext_noop("more than %(seconds)s seconds of processor time"),
    gettext_noop("more than %(seconds)s seconds"),
    gettext_noop("more memory than the limit per item"),
    gettext_noop("the metric gives %(kind)s, the script returned %(value)s"),
    gettext_noop("%(kind)s returned a text of %(count)s characters"),
    gettext_noop("%(kind)s returned a text with half a character or a NUL in it"),
    gettext_noop("%(kind)s returned an integer beyond 64 bits"),
    gettext_noop("%(kind)s returned %(value)s"),
    gettext_noop("%(field)s has a key that is not text: %(value)s"),
    gettext_noop("%(field)s is not a JSON value: %(type)s"),
    gettext_noop("its process was killed by %(signal)s"),
    gettext_noop("its process exited"),
    gettext_noop("its process was killed before it started"),
    gettext_noop("unexpected reply from the sandbox process: %(why)s"),
    gettext_noop("'%(name)s' is undefined"),
    gettext_noop("too deeply nested"),
    gettext_noop("a prompt can't include, import or extend other templates"),
    gettext_noop("isolation level %(level)s, at least %(minimum)s required"),
)

# The most frequent syntax errors of Python, Jinja, JSON and regular expressions.
SYNTAX = (
    gettext_noop("invalid syntax"),
    gettext_noop("'%(sign)s' was never closed"),
    gettext_noop("unmatched '%(sign)s'"),
    gettext_noop("closing parenthesis '%(sign)s' does not match opening parenthesis '%(other)s'"),
    gettext_noop("unterminated string literal (detected at line %(line)s)"),
    gettext_noop("unterminated triple-quoted string literal (detected at line %(line)s)"),
    gettext_noop("expected ':'"),
    gettext_noop("expected an indented block after %(what)s on line %(line)s"),
    gettext_noop("unexpected indent"),
    gettext_noop("unindent does not match any outer indentation level"),
    gettext_noop("inconsistent use of tabs and spaces in indentation"),
    gettext_noop("invalid non-printable character %(sign)s"),
    gettext_noop("invalid character '%(sign)s' (%(code)s)"),
    gettext_noop("unexpected character after line continuation character"),
    gettext_noop("invalid syntax. Perhaps you forgot a comma?"),
    gettext_noop("invalid syntax. Maybe you meant '==' or ':=' instead of '='?"),
    gettext_noop("'%(word)s' outside function"),
    gettext_noop("'%(word)s' outside loop"),
    gettext_noop("expected token '%(wanted)s', got '%(met)s'"),
    gettext_noop("unexpected end of template, expected '%(wanted)s'."),
    gettext_noop("unexpected '%(met)s', expected '%(wanted)s'"),
    gettext_noop("unexpected char '%(met)s' at %(place)s"),
    gettext_noop("unexpected '%(met)s'"),
    gettext_noop("Expected an expression, got '%(met)s'"),
    gettext_noop(
        "Encountered unknown tag '%(tag)s'. Jinja was looking for the following tags: %(tags)s. The innermost block "
        "that needs to be closed is '%(block)s'."
    ),
    gettext_noop(
        "Encountered unknown tag '%(tag)s'. You probably made a nesting mistake. Jinja is expecting this tag, but "
        "currently looking for %(tags)s. The innermost block that needs to be closed is '%(block)s'."
    ),
    gettext_noop("Encountered unknown tag '%(tag)s'."),
    gettext_noop(
        "Unexpected end of template. Jinja was looking for the following tags: %(tags)s. The innermost block that "
        "needs to be closed is '%(block)s'."
    ),
    gettext_noop("No filter named '%(name)s'."),
    gettext_noop("No test named '%(name)s'."),
    gettext_noop("tag name expected"),
    gettext_noop("'%(root)s' has no attribute '%(name)s'"),
    gettext_noop("Expecting value"),
    gettext_noop("Expecting property name enclosed in double quotes"),
    gettext_noop("Expecting ',' delimiter"),
    gettext_noop("Expecting ':' delimiter"),
    gettext_noop("Extra data"),
    gettext_noop("Invalid control character at"),
    gettext_noop("Invalid \\escape"),
    gettext_noop("Unterminated string starting at"),
    gettext_noop("missing ), unterminated subpattern at position %(place)s"),
    gettext_noop("unbalanced parenthesis at position %(place)s"),
    gettext_noop("unterminated character set at position %(place)s"),
    gettext_noop("nothing to repeat at position %(place)s"),
    gettext_noop("multiple repeat at position %(place)s"),
    gettext_noop("bad escape %(escape)s at position %(place)s"),
)

# The most frequent runtime errors of scripts and templates.
RUNNING = (
    gettext_noop("NameError: name '%(name)s' is not defined"),
    gettext_noop("ZeroDivisionError: division by zero"),
    gettext_noop("TypeError: '%(type)s' object is not callable"),
    gettext_noop("TypeError: '%(type)s' object is not subscriptable"),
    gettext_noop("TypeError: '%(type)s' object is not iterable"),
    gettext_noop("AttributeError: '%(type)s' object has no attribute '%(name)s'"),
    gettext_noop("OverflowError: Range too big. The sandbox blocks ranges larger than MAX_RANGE (%(most)s)."),
)

# Names of syntax elements in syntax error messages.
PARTS = (
    gettext_noop("begin of statement block"),
    gettext_noop("end of statement block"),
    gettext_noop("begin of print statement"),
    gettext_noop("end of print statement"),
    gettext_noop("end of template"),
    gettext_noop("function definition"),
    gettext_noop("class definition"),
    gettext_noop("'%(word)s' statement"),
    gettext_noop("%(one)s or %(other)s"),
)
