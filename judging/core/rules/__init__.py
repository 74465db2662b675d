"""The scoring-rule language (`# DSL`): text → lines → sheet → program → evaluation. No Django, no judge, no sandbox.

    reading = read_program(text)                         check.py: a program, or every error with its place
    evaluation = plan(reading.program, answer, reference)      plan.py: mechanical lines at once, the rest as questions
    result = conclude(evaluation, found)                       conclude.py: the answers to those → score, lines, error

| file | stage |
| --- | --- |
| `lines.py` | text → lines, words with their places |
| `parse.py` | lines → `program.Sheet` (what is written, in its order) and errors of form |
| `check.py` | sheet → `program.Program` (what is meant) and errors of meaning |
| `functions.py`, `words.py` | the table of functions; the words of both languages |
| `values.py`, `formats.py`, `fields.py` | exact values, JSON and XML read safely, a field found by its name |
| `scoring.py` | the mechanical functions |
| `plan.py`, `conclude.py`, `aggregate.py` | scoring one answer |
| `asking.py`, `code.py` | prompts for the judge model and its replies; Python blocks in the sandbox |
| `lint.py` | a reference held against the program |
| `write.py` | program → text |
"""
