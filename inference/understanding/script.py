"""Chinese characters, and which script a text is mostly written in, which decides how it is cut."""

import re

HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")
# The block of the common ones: enough to tell a sentence's language.
COMMON_HAN = re.compile(r"[\u4e00-\u9fff]")


def is_chinese(text: str) -> bool:
    """Does the text read as Chinese? Code and product names in Latin letters weigh less than characters: one
    character says about as much as four letters."""
    han = len(HAN.findall(text))
    latin = sum(char.isascii() and char.isalpha() for char in text) if han else 0
    return han > 0 and han * 4 >= latin
