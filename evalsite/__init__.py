"""The site: settings, accounts, background work, and what both apps use."""

__version__ = "0.1.0"
