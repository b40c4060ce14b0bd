"""What a fingerprint reads, and what two of them say of each other."""

import json
import pickle

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from inference.understanding.fingerprint import Fingerprint, Reason, compare, confusable, fingerprint
from inference.understanding.keys import keywords


def verdict(a: str, b: str) -> str:
    return compare(fingerprint(a), fingerprint(b)).verdict


def codes(a: str, b: str) -> set[str]:
    return {reason.code for reason in compare(fingerprint(a), fingerprint(b)).reasons}


# What differs, and the code that has to say so.
DIFFERENT = [
    ("polarity", "开启A功能", "别开启A功能"),
    ("polarity", "为什么我能登录", "为什么我不能登录"),
    ("polarity", "不吃早饭会胖吗", "吃早饭会胖吗"),
    ("polarity", "What is allowed in hand luggage?", "What is not allowed in hand luggage?"),
    ("polarity", "Why does my car start?", "Why doesn't my car start?"),
    ("polarity", "Is it safe to take the pill with alcohol?", "Is it safe to take the pill without alcohol?"),
    ("polarity", "How do I let the cat in?", "How do I stop the cat from coming in?"),
    ("opposite", "怎么开启夜间模式", "怎么关闭夜间模式"),
    ("opposite", "增加内存会变快吗", "减少内存会变快吗"),
    ("opposite", "怎么安装微信", "怎么卸载微信"),
    ("opposite", "上一个版本怎么装", "下一个版本怎么装"),
    ("opposite", "How do I import contacts?", "How do I export contacts?"),
    ("opposite", "What is the minimum age to vote?", "What is the maximum age to vote?"),
    ("opposite", "Turn on the light in the kitchen", "Turn the light in the kitchen off"),
    ("opposite", "Can I drink coffee before the blood test?", "Can I drink coffee after the blood test?"),
    ("opposite", "which of the lakes is deepest", "the shallowest lake in the country"),
    ("opposite", "I want the tram stop that is closest", "farthest stop of all?"),
    ("opposite", "哪座塔最高", "镇上最矮的塔"),
    ("opposite", "最便宜的套餐是哪种", "哪种套餐最贵"),
    ("opposite", "谁最年轻", "最年长的人叫什么"),
    ("direction", "从北京到上海坐几号车", "从上海到北京坐几号车"),
    ("direction", "把欧元换成日元怎么操作", "把日元换成欧元怎么操作"),
    ("direction", "怎么把 PDF 转成 Word", "怎么把 Word 转成 PDF"),
    ("direction", "refund from gift card to bank", "refund from bank to gift card"),
    ("direction", "How do I convert miles to kilometres?", "How do I convert kilometres to miles?"),
    ("direction", "Do you deliver to Iceland?", "Do you deliver from Iceland?"),
    ("direction", "scale from 2 to 5 pods", "scale from 5 to 2 pods"),
    ("number", "能带两个箱子上飞机吗", "能带三个箱子上飞机吗"),
    ("number", "1.5 升水多重", "2 升水多重"),
    ("number", "How do I cook 5 kg of rice?", "How do I cook 5 lb of rice?"),
    ("number", "Is a fever of 38 °C dangerous?", "Is a fever of 41 °C dangerous?"),
    ("number", "the first chapter of the book", "the second chapter of the book"),
    ("number", "一次能取 5000 元吗", "一次能取 5000 美元吗"),
    ("version", "Python 3.9 支持 match 语句吗", "Python 3.10 支持 match 语句吗"),
    ("version", "iPhone 14 怎么截屏", "iPhone15怎么截屏"),
    ("version", "What is new in Windows 10?", "What is new in Windows 11?"),
    ("date", "明天的会议几点开始", "后天的会议几点开始"),
    ("date", "5月3日放假吗", "5月4日放假吗"),
    ("date", "meeting on Tuesday at 3 pm", "meeting on Thursday at 3 pm"),
    ("date", "Is the pool open in winter?", "Is the pool open in summer?"),
    ("form", "用英文介绍长城", "用日文介绍长城"),
    ("form", "长城有多长，一句话回答", "长城有多长，详细介绍"),
    ("form", "Explain recursion to a child", "Explain recursion to an expert"),
    ("form", "What is a black hole? In 20 words.", "What is a black hole? In 200 words."),
    # Whom it is told to is form, what is told them is not.
    ("wording", "How would you describe rain to a child?", "How would you describe wind to a child?"),
    ("wording", "Explain mitosis to a beginner", "Explain osmosis to a beginner"),
    ("wording", "Say what gravity is for a five-year-old", "Say what friction is for a five-year-old"),
    ("intent", "What's the price of a museum pass?", "Where is a museum pass sold?"),
    ("intent", "怎么预订会议室", "为什么预订会议室"),
    ("entity", "do I need a visa for Brazil", "do I need a visa for Portugal"),
    ("entity", "怎么去杭州", "怎么去苏州"),
    ("wording", "怎么给猫喂药", "怎么给狗喂药"),
    ("wording", "How do I clean a leather sofa?", "How do I clean a leather jacket?"),
    ("condition", "How do I cancel my gym contract?", "How do I cancel my gym contract after moving?"),
    ("roles", "企业能起诉员工吗", "员工能起诉企业吗"),
    ("order", "2019 年，老赵把店卖给了老钱。", "2019 年，老钱把店卖给了老赵。"),
    ("order", "The firm bought the bank in 1990.", "The bank bought the firm in 1990."),
]
# The same in other words or spelling, near and far.
SAME = [
    ("这家店不错吗", "这家店好不好"),
    ("能带两个箱子上飞机吗", "请问能带2个箱子上飞机吗？"),
    ("能带兩個箱子上飛機嗎", "能带两个箱子上飞机吗"),
    ("跑 1 km 消耗多少热量", "跑 1000 米消耗多少热量"),
    ("一千二百块钱的手机推荐", "1200元的手机推荐"),
    ("3.5万公里要换轮胎吗", "35000公里要换轮胎吗"),
    ("能不能退货", "可以退货吗"),
    ("是不是所有人都要交税", "所有人都要交税吗"),
    ("不得不加班怎么办", "必须加班怎么办"),
    ("没关系，怎么重启路由器", "怎么重启路由器"),
    ("为什么没有声音", "没声音是怎么回事"),
    ("怎么申请护照啊", "怎么申请护照"),
    ("苹果和香蕉哪个热量高", "香蕉和苹果哪个热量高"),
    ("iPhone15怎么截图", "iphone 15 怎么截图"),
    ("怎么开启夜间模式", "夜间模式怎么开启"),
    ("What isn't allowed in hand luggage?", "What is not allowed in hand luggage?"),
    ("How do I turn the light off?", "How do I turn off the light?"),
    ("How many days are in two weeks?", "How many days are in 2 weeks?"),
    ("Is a tomato a fruit?", "are tomatoes fruit?"),
    ("hello, how do I reset my router?", "How do I reset my router"),
    ("How do I cook rice?", "Please tell me how I can cook rice."),
]
UNDECIDED = [
    ("What is the capital of Peru?", "what's peru's capital"),
    ("how do i install docker on ubuntu", "on ubuntu how do i install docker"),
    ("How do I receive a refund?", "How do I recieve a refund?"),
    ("Do you ship to Norway?", "Do you deliver to Norway?"),
    ("怎么开启夜间模式", "如何打开夜间模式"),
    ("Not only dogs but also cats get fleas, right?", "Do dogs and cats both get fleas?"),
    ("营业时间是几点", "你们几点开门"),
    ("I never remember my PIN. How do I get a new one?", "Is there a way to have a PIN replaced?"),
]


@pytest.mark.parametrize(("code", "a", "b"), DIFFERENT)
def test_a_difference_is_a_conflict_and_is_named(code: str, a: str, b: str) -> None:
    assert verdict(a, b) == "conflict"
    assert code in codes(a, b)


@pytest.mark.parametrize(("a", "b"), SAME)
def test_other_spellings_of_one_question_agree(a: str, b: str) -> None:
    assert compare(fingerprint(a), fingerprint(b)).verdict == "agree", codes(a, b)


@pytest.mark.parametrize(("a", "b"), UNDECIDED)
def test_other_words_for_one_question_are_left_open(a: str, b: str) -> None:
    assert compare(fingerprint(a), fingerprint(b)).verdict == "unknown", codes(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Can AirTags find an iPad?", "Can an iPad find AirTags?"),
        ("How do I enable HTTP?", "How do I enable HTTPS?"),
        ("小学英语 is 怎么用", "小学英语 are 怎么用"),
        ("Do children under 5 pay?", "Do children over 5 pay?"),
        ("Why does he ignore me?", "Why does she ignore me?"),
        ("每天限额是多少", "每年限额是多少"),
        ("A 股怎么开户", "B 股怎么开户"),
        ("x² 的导数", "x2 的导数"),
        ("Java 里 == 是什么意思", "Java 里 === 是什么意思"),
        ("what does 😀 mean", "what does 😡 mean"),
    ],
)
def test_what_looks_alike_never_agrees(a: str, b: str) -> None:
    assert verdict(a, b) != "agree"


OPENINGS = (
    *(
        "Please say",
        "Tell me",
        "I'd like to know",
        "I wonder",
        "Let me know",
        "Could you clarify",
        "Any idea",
    ),
    *("I am not sure", "Do you happen to know", "Kindly state", "Would you mind telling me", "Find out"),
)
INSIDE = [
    ("how long the path to the harbour is", "How long is the path to the harbour?"),
    ("how many minutes the ferry takes", "How many minutes does the ferry take?"),
    ("how much the family plan costs", "How much does the family plan cost?"),
    ("who drew the plans", "Who drew the plans?"),
    ("whether dogs are allowed on the beach", "Are dogs allowed on the beach?"),
    ("if the shop sells bread", "Does the shop sell bread?"),
]
OPENINGS_ZH = ("我想了解一下", "请回答：", "请指出", "好奇", "你知不知道", "能不能说一下", "请问")
INSIDE_ZH = ("从村子到码头的路有多长？", "那片礁石叫什么？", "图纸是谁画的？", "商店几点开门？")


@pytest.mark.parametrize(("inside", "plain"), INSIDE)
def test_a_question_inside_a_request_or_a_wish_is_that_question(inside: str, plain: str) -> None:
    for opening in OPENINGS:
        assert verdict(f"{opening} {inside}.", plain) == "agree", opening
        assert keywords(f"{opening} {inside}") == keywords(f"Please tell me {inside}."), opening


@pytest.mark.parametrize("inside", INSIDE_ZH)
def test_a_chinese_question_inside_a_request_or_a_wish_is_that_question(inside: str) -> None:
    assert {verdict(opening + inside, inside) for opening in OPENINGS_ZH} == {"agree"}


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Remind me when the shop opens", "When does the shop open?"),  # asks for a reminder
        ("I wonder how to open the gate", "How do I close the gate?"),
        ("Tell me if the shop is open", "Tell me why the shop is open"),
        ("介绍信怎么写", "信怎么写"),
        ("说明书怎么写", "书怎么写"),
        ("回答问题的技巧是什么", "问题的技巧是什么"),
    ],
)
def test_what_only_begins_like_that_keeps_its_beginning(text: str, other: str) -> None:
    assert verdict(text, other) != "agree"


def test_numbers_are_brought_to_one_unit() -> None:
    def quantities(text: str) -> list[tuple[str, str]]:
        return [tuple(quantity) for quantity in fingerprint(text).quantities]

    assert quantities("1 km") == quantities("1000 meters") == quantities("一公里") == [("1000", "length")]
    assert quantities("两个") == quantities("2 个") == [("2", "")]
    assert quantities("一千二百") == quantities("1,200") == quantities("1.2k")
    assert quantities("一个半小时") == quantities("90 minutes") == quantities("1.5 h")
    assert quantities("百分之五") == quantities("5%")
    assert quantities("5 kg") != quantities("5 lb")
    assert quantities("3 months") != quantities("90 days")


def test_a_stored_fingerprint_comes_back_equal() -> None:
    part = fingerprint(
        "How do I move 3 files from iPhone 15 to Windows 11 without iTunes by Friday? In French."
    )
    assert Fingerprint.from_json(json.loads(json.dumps(part.to_json()))) == part


@pytest.mark.parametrize("data", [{"unheard_of": []}, {"terms": 3}, {"terms": [None]}])
def test_what_is_no_fingerprint_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        Fingerprint.from_json(data)


def test_a_reason_reads_as_text_and_keeps_its_parts() -> None:
    reason = Reason("number", "2 / 3")
    assert (str(reason), reason.code, reason.detail) == ("number: 2 / 3", "number", "2 / 3")
    assert pickle.loads(pickle.dumps(reason)).code == "number"


PAIRS = [("Java", "JavaScript"), ("社保卡", "电子社保卡"), ("savings account", "checking account")]


@pytest.mark.parametrize(
    ("a", "b", "apart"),
    [
        ("How do I learn Java?", "How do I learn JavaScript?", True),
        ("社保卡丢了怎么补", "电子社保卡丢了怎么补", True),
        ("電子社保卡丟了怎麼補", "社保卡丟了怎麼補", True),
        ("open a savings account", "Open a Checking Account", True),
        ("How do I learn Java?", "How hard is Java?", False),
        ("Is Java like JavaScript?", "How do I learn JavaScript?", False),
        ("How do I learn Rust?", "How do I learn JavaScript?", False),
    ],
)
def test_confusable_names_veto_in_both_directions(a: str, b: str, apart: bool) -> None:
    assert (confusable(a, b, PAIRS) is not None) == apart == (confusable(b, a, PAIRS) is not None)


def test_no_pair_and_half_a_pair_veto_nothing() -> None:
    assert confusable("a", "b", []) is None
    assert confusable("a", "b", [("a", ""), ("", "b"), ("a", "A")]) is None


PIECES = st.sampled_from(
    [
        *"how do I not from to 5 kg iPhone 15 ? ， `x` 《 》".split(),
        *"今天 不 没 怎么 把 转成 从 到 两个 关闭 开启".split(),
        *["in French", "3.11.2", "20%", "-5 °C", "用英文", "第三", '"'],
    ]
)
TEXTS = st.one_of(
    st.text(max_size=200),
    st.lists(PIECES, max_size=14).map(" ".join),
    st.lists(PIECES, max_size=14).map("".join),
)


@settings(deadline=None)
@given(TEXTS)
@example("")
@example("😀😀")
@example("שלום עולם")
@example("a" * 8000)
@example("百" * 400)
@example("1" * 8000)
@example("\u200b\u200d")
@example("从到从到把成")
@example("第")
@example("百分之")
def test_reading_never_fails_and_comes_back_from_json(text: str) -> None:
    part = fingerprint(text)
    assert Fingerprint.from_json(json.loads(json.dumps(part.to_json()))) == part
    assert compare(part, part).verdict != "conflict"


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_comparing_is_symmetric(a: str, b: str) -> None:
    one, other = fingerprint(a), fingerprint(b)
    forth, back = compare(one, other), compare(other, one)
    assert forth.verdict == back.verdict
    assert forth.verdict == "conflict" or not forth.reasons
    assert {reason.code for reason in forth.reasons} == {reason.code for reason in back.reasons}
