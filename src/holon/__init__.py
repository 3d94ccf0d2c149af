"""Holon: a headless, event-driven runtime for long-lived agents."""

__version__ = "0.1.0"
