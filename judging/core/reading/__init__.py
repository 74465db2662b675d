"""Reads the verdict that a judge's reply states, whole and unmistakably, or says why there is none.

thinking → cleaning → forms (objects, [[…]], tags, labels), otherwise prose → the value → several: see `reader`.
"""
