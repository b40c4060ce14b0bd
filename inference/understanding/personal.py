"""What in a text belongs to one person: data that identify somebody, and what people say about themselves.

Data are recognised by their form and, where they have one, by their check digits, so that a part number does
not pass for a card number. A number that fails its check is still personal when a word says what it is ("my
card is 4111…"): the check only decides about bare digits.
"""

import re

_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]+\.\w+")
_PHONE = re.compile(
    r"(?<![\d.])(?:\+\d{1,3}[\s().-]*\d[\d\s().-]{5,16}\d"  # +44 20 7946 0958
    r"|\(?\d{3}\)?[\s.-]\d{3}[\s.-]\d{4}"  # 555-123-4567
    r"|0\d{2,3}[\s-]?\d{7,8}"  # 010-62345678
    r"|1[3-9]\d[\s-]?\d{4}[\s-]?\d{4})(?!\.?\d)"  # 138 0013 8000
)
_SOCIAL_SECURITY = re.compile(r"(?<!\d)\d{3}-\d{2}-\d{4}(?!\d)")
_DIGITS = re.compile(r"(?<![\d.,])\d(?:[ -]?\d){12,18}(?![.,]?\d)")
_CHINESE_ID = re.compile(
    r"(?<!\d)[1-9]\d{5}(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])\d{3}[\dXx](?!\d)"
)
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b")
_SECRET = re.compile(
    r"\b(?:password|passwd|passcode|pin|api[ _-]?key|secret|token)\s*(?:is|was|[:=])\s*(?!not\b|an?\b"
    r"|the\b|too\b|wrong\b|expired\b|in)\S"
    r"|\bsk-[A-Za-z0-9]{16,}|\bAKIA[A-Z0-9]{16}|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|(?:密码|口令|密钥)\s*(?:是|为|[:：=])\s*[A-Za-z0-9]",
    re.IGNORECASE,
)
# A number that a word before it says is somebody's: an order, an account, a case.
_NUMBERED = re.compile(
    r"\b(?:order|invoice|ticket|account|acct|case|booking|reservation|tracking|customer|member(?:ship)?"
    r"|policy|claim|passport|license|licence"
    r"|reference|ref|confirmation|patient|student|card|serial|phone|pnr)"
    r"\s*(?:no\.?|number|id|code|ref|is|#|:|：)*\s*#?(?=[A-Z0-9-]*\d)[A-Z0-9-]{4,}"
    r"|(?:订单|单号|工单|快递|运单|账号|帐号|账户|卡号|身份证|护照|手机号?|电话|会员号?|保单|学号|工号"
    r"|病历|车牌|案件|预约号|流水)号?码?"
    r"\s*(?:是|为|[:：#])?\s*[A-Za-z]{0,4}\d{4,}",
    re.IGNORECASE,
)
# Seven digits in a row and more are seldom a quantity; a round one, or one with a unit, may be.
_LONG_NUMBER = re.compile(
    r"(?<![\d.,:/_-])\d{6,}(?![.,:/_-]?\d|\s?(?:[%$€£¥元块美万亿]|usd|eur|rows|users|people|px|bytes"
    r"|ms|steps|words))",
    re.IGNORECASE,
)
_STREET = re.compile(
    r"\b\d{1,5}[a-z]?\s+(?:[A-Z][\w'’.]*\s+){1,3}(?:street|st|avenue|ave|road|rd|lane|ln|drive|dr"
    r"|boulevard|blvd|court|ct|square|terrace|way)\b"
    r"|\b(?:[A-Z][\w’']*\s+){1,2}(?:street|strasse|straße|str|road|lane|avenue)\.?\s+\d{1,4}\b",
    re.IGNORECASE,
)
_ADDRESS_ZH = re.compile(
    r"[\u4e00-\u9fff]{2,6}(?:省|市|区|县|镇|乡|村)[\u4e00-\u9fff]{0,10}?(?:路|街|大道|巷|弄|胡同|小区"
    r"|花园|村)\d+(?:号|弄|栋|幢|单元|室)?"
    r"|[\u4e00-\u9fff]{2,8}(?:路|街|大道|巷|弄|胡同)\d+(?:号|弄)|(?<!\d)\d++(?:栋|幢|号楼)\d*(?:单元)?\d+室?"
)


def _luhn(digits: str) -> bool:
    """The check of payment cards (ISO/IEC 7812)."""
    doubled = (int(digit) * (1 + at % 2) for at, digit in enumerate(reversed(digits)))
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def _is_card(digits: str) -> bool:
    return 13 <= len(digits) <= 19 and digits[0] in "23456" and len(set(digits)) > 1 and _luhn(digits)


def _is_chinese_id(number: str) -> bool:
    """The check of GB 11643 (ISO 7064 MOD 11-2)."""
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    total = sum(int(digit) * weight for digit, weight in zip(number, weights, strict=False))
    return "10X98765432"[total % 11] == number[-1].upper()


def _is_iban(text: str) -> bool:
    """The check of ISO 13616 (MOD 97-10)."""
    plain = text.replace(" ", "").upper()
    return (
        15 <= len(plain) <= 34
        and int("".join(str(int(sign, 36)) for sign in plain[4:] + plain[:4])) % 97 == 1
    )


_LOOKS = (
    ("an e-mail address", _EMAIL),
    ("a phone number", _PHONE),
    ("a social security number", _SOCIAL_SECURITY),
    ("a secret", _SECRET),
    ("a customer's number", _NUMBERED),
    ("an address", _STREET),
    ("an address", _ADDRESS_ZH),
)


def find_data(text: str) -> str:
    """What the text holds that identifies somebody ("a phone number"), "" if nothing. Showing such data to
    somebody else is what must not happen, so what is in doubt counts."""
    for name, pattern in _LOOKS:
        if pattern.search(text):
            return name
    if any(_is_chinese_id(match.group()) for match in _CHINESE_ID.finditer(text)):
        return "an identity number"
    if any(_is_card(re.sub(r"\D", "", match.group())) for match in _DIGITS.finditer(text)):
        return "a card number"
    if any(_is_iban(match.group()) for match in _IBAN.finditer(text)):
        return "a bank account"
    if any(not match.group().endswith("000") for match in _LONG_NUMBER.finditer(text)):
        return "a long number"
    return ""


_IDENTITY = re.compile(
    r"\b(?:my name(?:'s| is)|call me|i(?: am|['’]m) (?:called|named)|i (?:live|work|study"
    r"|was born) (?:in|at|on|near)|i(?: am|['’]m)(?: an?)? \d+|my (?:birthday|address|age|phone|number"
    r"|e-?mail|ssn|salary) is)\b"
    r"|我叫|我姓|我的名字|我今年|我住在?|我家(?:住|在)|我在[\u4e00-\u9fff]{2,8}(?:上班|工作|读书|上学)"
    r"|我(?:是|今年)?\d+岁|我的?(?:生日|地址|电话|手机号|邮箱|工资|年龄)是|本人",
    re.IGNORECASE,
)
# What people say of their body, heart, family and law: nobody else's answer, and not for others' eyes.
_INTIMATE = re.compile(
    r"\b(?:i(?: am|['’]m| feel| was| have been|['’]ve been)(?: so| very| really| a bit| a| an)* (?:sick"
    r"|ill|tired|sad|depressed|anxious|lonely|scared|stressed|pregnant|diabetic"
    r"|gay|lesbian|bi|trans(?:gender)?|hiv|autistic|divorced|single|married|widowed|unemployed|broke"
    r"|in debt|bankrupt|hurt|abused|bleeding|dizzy|suicidal|overweight|vegan|vegetarian"
    r"|muslim|christian|jewish|hindu|an? (?:alcoholic|addict|immigrant|veteran|single (?:mom|mother|dad"
    r"|father)))"
    r"|i(?:['’]ve got| have| had| suffer from|['’]ve had)(?: an?| the| my)* (?:[a-z]+ )?(?:headache"
    r"|migraine|fever|flu|cold|cough|pain|rash|cancer|diabetes|asthma|adhd|depression|anxiety|hiv"
    r"|allerg\w+|surgery|miscarriage|abortion|kids?|child(?:ren)?|debt|loan|mortgage|criminal record"
    r"|blood pressure)"
    r"|my (?:wife|husband|girlfriend|boyfriend|partner|ex|fiancée?|son|daughter|kids?|child|baby|mom"
    r"|mum|mother|dad|father|brother|sister|boss|therapist|doctor|lawyer|diagnosis|pregnancy|period"
    r"|divorce|symptoms?|medication|depression|anxiety)"
    r"|(?:kill|hurt|harm) myself|my life)\b"
    r"|我(?:得了|患有?|确诊|怀孕|失恋|离婚|抑郁|焦虑|失业|被骗|被裁|被辞退|生病|发烧|头疼|头痛|失眠"
    r"|过敏|流产|欠债|欠了|破产|想死|不想活)"
    r"|我(?:最近|今天|昨天|一直|总是|老是|经常)?(?:很|好|有点|非常)?(?:难过|伤心|抑郁|焦虑|孤独|害怕"
    r"|压力大|头疼|头痛|失眠|发烧|咳嗽|肚子疼|胃疼|拉肚子)"
    r"|我(?:的)?(?:老婆|妻子|老公|丈夫|女朋友|男朋友|女友|男友|对象|前任|儿子|女儿|孩子|宝宝|妈妈?"
    r"|爸爸?|母亲|父亲|爷爷|奶奶|老板|领导|病情|症状|检查结果|体检报告)",
    re.IGNORECASE,
)
# Things of which only the asker's own instance is meant when its state is asked for.
_ACCOUNT = (
    r"(?:order|orders|package|parcel|delivery|shipment|payment|refund|balance|account|accounts|booking"
    r"|bookings|reservation|flight|trip|ticket|appointment"
    r"|bill|bills|invoice|statement|salary|payslip|paycheck|application|claim|results?|test results?"
    r"|subscription|credit score|score|grades?|schedule|calendar|meeting|meetings"
    r"|inbox|e-?mails?|messages?|files?|photos?|documents?|notes|cart|wishlist|points|limit|tax return"
    r"|visa application|case|contract|location|history|data|plan|name|age|birthday)"
)
_ACCOUNT_ZH = (
    "(?:订单|包裹|快递|物流|退款|余额|账户|账号|帐号|预订|预约|航班|行程|车票"
    "|机票|账单|发票|工资|奖金|申请|理赔|保单|成绩|分数|积分|会员|套餐|话费"
    "|流量|日程|会议|邮件|消息|文件|照片|购物车|额度|征信|病历|报告|合同|位置"
    "|名字|生日|年龄)"
)
_MINE = re.compile(rf"\b(?:my|our|mine)\b(?: \w+){{0,2}}? {_ACCOUNT}\b", re.IGNORECASE)
_MINE_ZH = re.compile(rf"(?:我的?|我们的?|咱们?的?)(?:[\u4e00-\u9fff]{{0,4}}?){_ACCOUNT_ZH}")
# How, where to find, may I, what is: asked of anybody's, and answered for everybody.
_GENERAL = re.compile(
    r"\bhow (?:do|can|could|would|should|to)\b|\bhow long (?:do|does|will|is|are)\b|\bwhere (?:do|can"
    r"|should|would) i\b|\b(?:can|could|may|should|must|do|would|am) i\b|\bcan you (?:explain"
    r"|tell me how)\b"
    r"|\bwhat (?:do|should|can|must) i\b|\bwhat happens\b|\bwhen (?:do|should|can|must) i\b"
    r"|\bis it (?:ok|okay|safe|possible|legal|allowed|better)\b|\bhow often\b|\bways? to\b|\bwhat(?:'s"
    r"| is) (?:a|the best|the way|the difference)\b"
    r"|怎么(?!还没|还不|没|不|样了|回事)|如何|怎样|咋(?!还|没|不)|在哪里?[能可]?[以]?(?:查|看|找|改"
    r"|下载|申请|办)|哪里(?:能|可以)?(?:查|看|找|改|下载|申请|办)|能不能|可不可以|可以.{0,12}吗"
    r"|能.{0,12}吗|需要.{0,10}(?:吗|什么)|要不要|该不该|流程|步骤|方法|什么条件|什么材料|多久能",
    re.IGNORECASE,
)


# Things of one's own that work as everybody's do: why does my washing machine shake?
_REASON = re.compile(
    r"\bwhy\b|\bwhat(?:'s| is) wrong\b|\bcauses?\b|为什么|为啥|怎么回事|什么原因", re.IGNORECASE
)
# What is everybody's: the world, and mankind.
_EVERYBODYS = (
    r"(?:own |whole |home )?(?:solar system|galaxy|universe|cosmos|planet|earth|world|globe|sun|star|moon"
    r"|atmosphere|oceans?|species|ancestors|bodies|brains|senses|calendar|alphabet)\b"
)
_EVERYBODYS_ZH = "(?:太阳系|银河系|宇宙|星球|地球|世界|太阳|月球|月亮|大气层|祖先|人体)"
_ANY_MINE = re.compile(
    rf"\b(?:my|mine|our(?! {_EVERYBODYS})|ours)\b|我的|(?:我们|咱们?)的(?!{_EVERYBODYS_ZH})"
    r"|(?<!告诉)(?<!给)(?<!教)我家|我家(?!庭)",  # 告诉我家庭套餐的价格 is of nobody's home
    re.IGNORECASE,
)
_MY_PAST = re.compile(
    r"\b(?:do|did|have|had|was|am) i (?:have|had|ever|already|still|said?|told|tell|bought|ordered"
    r"|paid)\b(?! to\b)|\bdid i\b"
    r"|我(?:还)?(?:有多少|剩多少|欠|买的|订的|上次|之前)",
    re.IGNORECASE,
)


def find_personal(text: str) -> str:
    """Why a question, or something said before it, is one person's own ("says who is asking"), "" if it
    isn't. "My" makes it so, except where everybody's is meant: "How do I reset my password?", "Why does my
    washing machine shake?"."""
    if data := find_data(text):
        return f"holds {data}"
    if _IDENTITY.search(text):
        return "says who is asking"
    if _INTIMATE.search(text):
        return "speaks of somebody's life"
    own = bool(_MINE.search(text) or _MINE_ZH.search(text))
    general = _GENERAL.search(text) or (not own and _REASON.search(text))
    if _MY_PAST.search(text) or (_ANY_MINE.search(text) and not general):
        return "asks about the asker's own affairs"
    return ""
