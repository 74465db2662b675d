"""Rule metrics: their editor, what it shows while one types, the guided form, the check of all references."""
