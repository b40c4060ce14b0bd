"""Something the person at the keyboard can put right."""


class Problem(Exception):
    """Its text is one clear line, shown instead of a traceback."""
