"""Greetings, thanks and nods."""

import re

_CHITCHAT = re.compile(
    r"(?:(?:hi|hello|hey|good (?:morning|evening|afternoon)|thanks?(?: you)?(?: so much| a lot)?|ty|thx|"
    r"great|cool|nice|ok(?:ay)?|"
    r"got it|perfect|awesome|good|sure|yes|no|alright|bye|see you|wow|lol|haha|there|you|very much|"
    r"你好|您好|嗨|哈喽|在吗|早上好|晚上好|谢谢(?:你|您|啦)?|多谢|感谢|好的?|好吧|嗯+|哦+|知道了|明白了?|"
    r"懂了|收到|可以|行|不错|再见|拜拜)"
    r"[\s,.!?，。！？~～👍🙏😊]*)+",
    re.IGNORECASE,
)


def is_chitchat(text: str) -> bool:
    """Greetings, thanks and nods: turns that nothing leans on."""
    return not text.strip() or _CHITCHAT.fullmatch(text.strip()) is not None
