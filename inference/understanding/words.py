"""Words that carry a sentence rather than its subject: what they are, in English and Chinese.

Closed classes are listed whole; of verbs and adverbs the commonest, because a text is cut into phrases at
them and a missed cut costs a longer phrase, not a wrong one.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from .folding import fold


def _row(words: str) -> frozenset[str]:
    return frozenset(words.split())


PERSONS = _row("he him his himself she her hers herself")
PLURALS = _row("they them their theirs themselves")
THINGS = _row("it its itself")
DEMONSTRATIVES = _row("this that these those")
SELVES = _row("i me my mine myself you your yours yourself we us our ours ourselves")
DETERMINERS = _row("the a an some any each every no all both either neither another other such")
PREPOSITIONS = _row(
    "about above across after against along among around as at before behind below beneath beside besides "
    "between beyond by despite down during except for from in inside into like near of off on onto out "
    "outside over past per since than through throughout to toward towards under until up upon via vs "
    "versus "
    "with within without"
)
CONJUNCTIONS = _row("and or but so because if when while although though whether unless nor yet then")
QUESTION_WORDS = _row("what which who whom whose when where why how what's who's where's how's when's why's")
AUXILIARIES = _row(
    "am is are was were be been being do does did done have has had having can could will would shall "
    "should "
    "may might must ought don't doesn't didn't isn't aren't wasn't weren't can't couldn't won't wouldn't "
    "shouldn't haven't hasn't hadn't i'm you're he's she's it's we're they're i've you've we've they've "
    "i'll "
    "you'll he'll she'll it'll we'll they'll i'd you'd he'd she'd we'd they'd that's there's here's let's "
    "gonna wanna cannot ain't"
)
ADVERBS = _row(
    "not very too also just only even still already ever never always often sometimes usually again now "
    "here "
    "there well much many more most less least few little lot lots enough quite rather really actually "
    "basically probably maybe perhaps likely mostly nearly almost about instead else otherwise however "
    "therefore else yes no ok okay sure please thanks thank oh ah hmm hey hi hello got right yeah yep nope "
    "today tomorrow yesterday soon later ago once twice first second third last next same different better "
    "best worse worst bigger biggest larger largest smaller cheaper cheapest good bad great nice fine long "
    "longer short shorter far high higher low lower big small large old older new newer young different "
    "several own able way things thing anything something everything nothing anyone someone everyone "
    "nobody "
    "sort kind type typical typically generally"
)
VERBS = _row(
    "name define summarize translate elaborate accept add agree allow answer appear apply arrive ask "
    "avoid be beat become begin believe belong book "
    "break bring build burn buy call care carry catch cause change charge check choose clean close come "
    "compare connect consider contain continue convert cook cost count cover create cut dab deal decide "
    "describe develop die differ disable do draw drink drive drop dry eat enable end enjoy explain fail "
    "fall "
    "feed feel fill find finish fit fix fly follow forget get give go grow handle happen have hear help "
    "hit "
    "hold hurt impact include increase influence install keep kill know last lay lead learn leave lend "
    "let lie "
    "like list live look lose love make manage mean measure meet mention mix move need occur offer open "
    "order "
    "own pay perform pick place plan play prefer prevent produce protect prove provide pull push put raise "
    "reach read receive recommend record reduce refer release remain remember remove rent replace require "
    "return ride rise run save say scale see seem sell send serve set share ship show sing sit skip "
    "sleep soak "
    "solve speak spend split stand start stay stick stop store study suggest suit support surprise take "
    "talk "
    "taste teach tell tend think throw tie train travel treat try turn understand update use visit wait "
    "walk "
    "want wash watch wear win wipe wonder work worry write written won wrote said told took taken gave "
    "given "
    "got gotten went gone made came kept left felt found known seen thought meant met paid put ran sold "
    "sent "
    "spent spoke stood taught understood wore worn became began brought bought built chose cut died drank "
    "drove ate fell flew forgot grew heard held led lost read rose sang sat slept drew"
)
# Nouns that are of something: without it, they lean on what was said.
RELATIONAL = _row(
    "advantage aim aspect benefit cause challenge characteristic component con consequence cost criticism "
    "date definition detail difference disadvantage drawback effect element event example factor feature "
    "finding "
    "function goal history idea impact importance ingredient key kind limitation meaning member method "
    "model name "
    "objective origin outcome part phase price principle pro problem process property provision purpose "
    "reason "
    "requirement result risk role rule side significance size solution stage step strategy strength "
    "structure symptom leader president minister king queen ceo founder author director mayor governor "
    "owner "
    "creator inventor capital population currency theory title treatment type use variant version way "
    "weakness winner"
)
RELATIONAL_CHINESE = re.compile(
    r"(?:原因|影响|好处|坏处|优点|缺点|优势|劣势|目标|目的|价格|费用|名字|名称|作用|症状|步骤|例子|特点|"
    r"特征|区别|用途|成分|功能|"
    r"规则|结果|后果|类型|种类|条件|流程|手续|材料|门票|续航|首月|台阶|温度|时间|地点|历史|起源|意义|"
    r"方法|风险|代价|成员|版本|副作用)"
)
FILLERS = DETERMINERS | PREPOSITIONS | CONJUNCTIONS | QUESTION_WORDS | AUXILIARIES | ADVERBS
FUNCTION = FILLERS | PERSONS | PLURALS | THINGS | DEMONSTRATIVES | SELVES


@lru_cache(maxsize=8192)
def is_verb(word: str) -> bool:
    """Is this lower-case English word one of the common verbs, in any of its regular forms?"""
    if word in VERBS:
        return True
    for ending, instead in (
        ("ies", "y"),
        ("es", ""),
        ("s", ""),
        ("ied", "y"),
        ("ed", ""),
        ("ed", "e"),
        ("ing", ""),
        ("ing", "e"),
    ):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            stem = word[: -len(ending)] + instead
            if stem in VERBS or (len(stem) > 3 and stem[-1] == stem[-2] and stem[:-1] in VERBS):
                return True
    return False


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """A crude common form for comparing: plural, possessive and regular verb endings off."""
    word = word.casefold().replace("’", "'").removesuffix("'s").removesuffix("'")
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) > len(ending) + 2 and not word.endswith("ss"):
            return word[: -len(ending)].removesuffix("e")
    return word.removesuffix("e") if len(word) > 3 else word


class Token(NamedTuple):
    """A word or mark of a text; `text[start:end]` is how it is written there."""

    text: str
    start: int
    end: int

    @property
    def lower(self) -> str:
        return self.text.casefold().replace("’", "'")


_TOKEN = re.compile(r"[^\W\d_]+(?:['’.&\-_+#/]*\w+)*[+#]*|\d+(?:[.,:/\-]?\w+)*%?|[^\s\w]|_")


@lru_cache(maxsize=512)
def tokens(text: str) -> tuple[Token, ...]:
    """Words and marks of an English text in order."""
    return tuple(Token(found.group(), found.start(), found.end()) for found in _TOKEN.finditer(text))


def is_word(token: Token) -> bool:
    return token.text[0].isalnum()


def is_content(word: str) -> bool:
    """Does this lower-case word name something, as far as the lists can tell?"""
    return (
        word[:1].isalnum()
        and word not in FUNCTION
        and word.split("'")[0] not in FUNCTION
        and not is_verb(word)
    )


@lru_cache(maxsize=2048)
def content(text: str) -> frozenset[str]:
    """What a text is about, for comparing: English stems, and pairs of Chinese characters."""
    text = fold(text[:4000])
    found = {stem(word.lower) for word in tokens(text) if word.text.isascii() and is_content(word.lower)}
    for run in re.findall(r"[\u3400-\u9fff]+", text):
        found.update(run[at : at + 2] for at in range(len(run) - 1))
    return frozenset(found)
