"""Where templates and scripts that people write are run. What it promises is in README.md next to this file."""
