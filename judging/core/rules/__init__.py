"""The scoring-rule language (`# DSL`).

reading = read_program(text)                     check.py: a program, or every error with its place
evaluation = plan(reading.program, answer, reference)     evaluate.py: mechanical lines are scored, the rest asked
result = conclude(evaluation, found)             evaluate.py: with the answers to those → score, lines, error
"""
