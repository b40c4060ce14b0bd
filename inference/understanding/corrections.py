"""Which turns take back something said before ("不对，我是说 B", "no, I meant B", "make it 3, not 2").

A modest rule: it looks for the ways in which people announce a change of mind.
"""

import re

from .turns import Turns

_CORRECTS = re.compile(
    r"不对|不是[，,]|我是说|我的意思是|说错|记错|打错|量错|搞错|改成|换成|改为|改到|改去|改用|换了|改了|"
    r"还是.{1,12}吧|算了|不要了|"
    r"等等|改主意|"
    r"\bno,? (?:i|we) mean|\bi mean(?:t)?\b|\bactually\b|\bscratch that\b|\bscrap that\b|\bnever ?mind\b|"
    r"\bmake (?:it|that)\b|\bchange(?:d)? (?:it|that|of plan|to|my mind|them)\b|\bswitch(?:ed)? to\b|"
    r"\bon second thought|"
    r"\bsorry,|\bcorrection\b|\binstead\b|\bwait,|\bnow it's\b|\brather than\b|,? not \w+[.!]?$",
    re.IGNORECASE,
)


def corrects(text: str) -> bool:
    """Does this message take back or replace something that was said before it?"""
    return bool(_CORRECTS.search(text[:500]))


def last_correction(history: Turns) -> int:
    """The index of the last user turn that corrects an earlier one; -1 if none does."""
    for at in range(len(history) - 1, 0, -1):
        if history[at]["role"] == "user" and corrects(history[at]["content"]):
            return at
    return -1
