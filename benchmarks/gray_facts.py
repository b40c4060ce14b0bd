"""The set of `benchmarks.gray`: facts about places that are made up; each is asked for in two ways and
answered in six. Some pairings are wrong for what is asked: about another subject, of a figure that is out
of date, of the other direction.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Wrong = Literal["", "entity", "outdated", "direction"]


@dataclass(frozen=True)
class Fact:
    """One entry: `question` is what it was stored for, `stored` its answer; `asked` is what hits it, `fresh`
    are right answers to that, each worded by itself. `wrong`: how the stored answer is none to it."""

    id: str
    lang: str
    wrong: Wrong
    question: str
    stored: str
    asked: str
    fresh: tuple[str, ...]


@dataclass(frozen=True)
class _Frame:
    """A relation: how it is asked for, twice, and answered, six times; `values` for subjects in turn.
    `turned`: question and answers of the other direction, if it has one."""

    lang: str
    name: str
    asks: tuple[str, str]
    answers: tuple[str, ...]
    values: tuple[str, ...]
    turned: tuple[str, tuple[str, ...]] | None = None


_EN_SUBJECTS = (
    "Harrow library",
    "Norden clinic",
    "Tilbury museum",
    "Kestrel garden",
    "Amber hall",
    "Mossfield pool",
    "Quarry cinema",
    "Linden archive",
    "Saffron theatre",
    "Birchwood lodge",
    "Copper gallery",
    "Dovecote farm",
    "Elmgrove school",
    "Falcon station",
    "Granite arena",
    "Hollow observatory",
    "Ivory workshop",
    "Juniper depot",
    "Kingsbrook market",
    "Larkspur hotel",
)
_ZH_SUBJECTS = (
    "青禾图书馆",
    "北岭诊所",
    "云溪博物馆",
    "松涛花园",
    "琥珀会堂",
    "苔原泳池",
    "石坊影院",
    "椴树档案馆",
    "藏红剧院",
    "白桦山庄",
    "赤铜美术馆",
    "鸽舍农场",
    "榆林学校",
    "猎鹰车站",
    "花岗体育馆",
    "空谷天文台",
    "象牙工坊",
    "刺柏仓库",
    "王溪市场",
    "飞燕酒店",
)

_FRAMES = (
    _Frame(
        "en",
        "hours",
        ("When does the {s} open on weekdays?", "from what time can I get into the {s} on a working day"),
        (
            "The {s} opens at {v} on weekdays.",
            "On working days the doors open at {v}.",
            "You can come in from {v}, Monday to Friday.",
            "Weekday visitors are let in from {v}.",
            "It is open from {v} on working days.",
            "Its weekday opening time is {v}.",
        ),
        ("7:30", "8:00", "8:45", "9:15", "10:00", "6:45", "9:30", "10:30", "11:00", "7:00"),
    ),
    _Frame(
        "en",
        "pages",
        ("How many pages does the guide to the {s} have?", "length of the {s} guide in pages"),
        (
            "The guide to the {s} has {v} pages.",
            "It runs to {v} pages.",
            "There are {v} pages in it.",
            "The booklet is {v} pages long.",
            "{v} pages, the plan included.",
            "You get {v} pages.",
        ),
        ("44", "112", "76", "150", "96", "210", "64", "180", "120", "250"),
    ),
    _Frame(
        "en",
        "floor",
        ("On which floor is the office of the {s}?", "where in the building do I find the {s} office"),
        (
            "The office of the {s} is on floor {v}.",
            "You find it on floor {v}.",
            "Go up to floor {v}, the office is there.",
            "It sits on floor number {v}.",
            "The office is located on the building's floor {v}.",
            "Take the lift to floor {v}.",
        ),
        ("2", "5", "3", "8", "6", "4", "9", "7", "12", "11"),
    ),
    _Frame(
        "en",
        "weight",
        ("How much may a parcel for the {s} weigh?", "what is the heaviest parcel that the {s} takes"),
        (
            "Parcels for the {s} may weigh up to {v} kilograms.",
            "The limit is {v} kilograms.",
            "At most {v} kg per parcel.",
            "Nothing heavier than {v} kilograms is accepted.",
            "A parcel can have {v} kg and no more.",
            "They take parcels of up to {v} kilograms.",
        ),
        ("10", "31", "20", "25", "15", "5", "40", "12", "30", "18"),
    ),
    _Frame(
        "en",
        "weeks",
        ("How long does a permit from the {s} take?", "number of weeks until the {s} gives out a permit"),
        (
            "A permit from the {s} takes {v} weeks.",
            "Count on {v} weeks for it.",
            "It is there after {v} weeks.",
            "Processing takes {v} weeks.",
            "It needs {v} weeks to be issued.",
            "The waiting time is {v} weeks.",
        ),
        ("2", "6", "4", "8", "3", "5", "10", "7", "12", "9"),
    ),
    _Frame(
        "en",
        "head",
        ("Who runs the {s}?", "name of the person in charge of the {s}"),
        (
            "The {s} is run by {v}.",
            "{v} is in charge there.",
            "It is headed by {v}.",
            "The director is {v}.",
            "{v} runs the place.",
            "Its head is {v}.",
        ),
        (
            "Mara Ellwood",
            "Tomas Rehn",
            "Ines Calder",
            "Piet Vos",
            "Lena Farkas",
            "Omar Haddad",
            "Greta Solberg",
            "Hugo Marin",
            "Nadia Petrov",
            "Kenji Mori",
        ),
    ),
    _Frame(
        "en",
        "parking",
        ("In which street do visitors of the {s} park?", "where can I leave my car when I go to the {s}"),
        (
            "Visitors of the {s} park in {v}.",
            "Leave the car in {v}.",
            "There are parking spaces for visitors in {v}.",
            "You can park in {v}.",
            "The car park is in {v}.",
            "Parking is in {v}, a short walk away.",
        ),
        (
            "Mill Lane",
            "Station Road",
            "Orchard Street",
            "Bridge Street",
            "Castle Row",
            "Harbour Way",
            "Park Avenue",
            "Chapel Hill",
            "Market Square",
            "River Walk",
        ),
    ),
    _Frame(
        "en",
        "alarm",
        ("How do I switch on the alarm of the {s}?", "turning the alarm on at the {s}, how"),
        (
            "At the {s} you switch the alarm on with code {v} and the green key.",
            "Enter {v}, then press the green key, and the alarm is on.",
            "Type {v} and confirm with the green key to turn it on.",
            "Code {v} followed by the green key arms it.",
            "It is armed with {v} and then the green key.",
            "Key in {v}, press green, and the alarm is active.",
        ),
        ("4417", "9032", "5581", "7206", "3345", "8129", "6674", "2290", "1958", "5063"),
        (
            "How do I switch off the alarm of the {s}?",
            (
                "Hold the red key for 5 seconds until it beeps twice.",
                "Keep the red key pressed for 5 seconds, and the alarm is off.",
                "It is disarmed by holding the red key down for 5 seconds.",
                "Press red for 5 seconds to turn the alarm off.",
                "The red key, held for 5 seconds, switches it off.",
            ),
        ),
    ),
    _Frame(
        "en",
        "import",
        ("How do I import the visitor list of the {s}?", "importing the {s} visitor list, where is that"),
        (
            "For the {s} choose Lists, Import, and pick the file {v}.csv.",
            "Open Lists, click Import and select {v}.csv.",
            "Under Lists there is Import; choose {v}.csv there.",
            "Go to Lists, then Import, and take the file {v}.csv.",
            "Use Import in the Lists menu with {v}.csv.",
            "In Lists press Import and open {v}.csv.",
        ),
        (
            "guests",
            "names",
            "members",
            "people",
            "visits",
            "arrivals",
            "entries",
            "persons",
            "bookings",
            "seats",
        ),
        (
            "How do I export the visitor list of the {s}?",
            (
                "Open Reports, click Export and choose a folder on your computer.",
                "Under Reports there is Export, which asks for a folder.",
                "Use Export in the Reports menu and say where to save it.",
                "Go to Reports, then Export, and choose where it goes.",
                "In Reports press Export and pick a folder.",
            ),
        ),
    ),
    _Frame(
        "en",
        "seats",
        (
            "How many seats does the main room of the {s} have?",
            "number of people that can sit in the {s} main room",
        ),
        (
            "The main room of the {s} has {v} seats.",
            "{v} people can sit there.",
            "It seats {v}.",
            "There are {v} seats in it.",
            "The room has places for {v} people.",
            "Up to {v} people find a seat.",
        ),
        ("80", "240", "120", "310", "95", "450", "60", "175", "520", "140"),
    ),
    _Frame(
        "zh",
        "hours",
        ("{s}平日几点开门？", "工作日最早什么时候可以进{s}"),
        (
            "{s}平日{v}开门。",
            "工作日{v}开始放人。",
            "周一到周五从{v}起可以进。",
            "平日的开门时间是{v}。",
            "工作日{v}起开放。",
            "平常日子{v}就开了。",
        ),
        ("7:30", "8:00", "8:45", "9:15", "10:00", "6:45", "9:30", "10:30", "11:00", "7:00"),
    ),
    _Frame(
        "zh",
        "pages",
        ("{s}的导览手册有多少页？", "{s}导览手册的页数"),
        (
            "{s}的导览手册有{v}页。",
            "一共{v}页。",
            "全书{v}页。",
            "手册厚{v}页。",
            "连地图在内{v}页。",
            "页数是{v}。",
        ),
        ("44", "112", "76", "150", "96", "210", "64", "180", "120", "250"),
    ),
    _Frame(
        "zh",
        "floor",
        ("{s}的办公室在几层？", "{s}办公室在楼里哪一层能找到"),
        (
            "{s}的办公室在{v}层。",
            "到{v}层就能找到。",
            "上{v}层，办公室就在那儿。",
            "坐电梯到{v}层。",
            "办公室位于大楼{v}层。",
            "就在{v}层。",
        ),
        ("2", "5", "3", "8", "6", "4", "9", "7", "12", "11"),
    ),
    _Frame(
        "zh",
        "weight",
        ("寄到{s}的包裹最重多少？", "{s}能收多重的包裹"),
        (
            "寄到{s}的包裹最重{v}公斤。",
            "上限是{v}公斤。",
            "每件不超过{v}公斤。",
            "超过{v}公斤就不收了。",
            "一件包裹最多{v}公斤。",
            "只收{v}公斤以内的。",
        ),
        ("10", "31", "20", "25", "15", "5", "40", "12", "30", "18"),
    ),
    _Frame(
        "zh",
        "weeks",
        ("{s}的许可要办多久？", "{s}发许可需要几周时间"),
        (
            "{s}的许可要办{v}周。",
            "得等{v}周。",
            "{v}周以后能拿到。",
            "办理时间是{v}周。",
            "大约{v}周发下来。",
            "前后要{v}周。",
        ),
        ("2", "6", "4", "8", "3", "5", "10", "7", "12", "9"),
    ),
    _Frame(
        "zh",
        "head",
        ("{s}的负责人是谁？", "谁在管{s}"),
        (
            "{s}由{v}负责。",
            "负责人是{v}。",
            "那里归{v}管。",
            "主管叫{v}。",
            "是{v}在管。",
            "由{v}主持。",
        ),
        ("马思远", "唐可欣", "贺知秋", "陆明川", "孟清和", "欧阳岚", "顾怀瑾", "沈若水", "秦朗", "薛一鸣"),
    ),
    _Frame(
        "zh",
        "parking",
        ("去{s}的人车停在哪条街？", "开车去{s}的话车停哪儿"),
        (
            "去{s}的人把车停在{v}。",
            "车停{v}。",
            "{v}有给访客的车位。",
            "可以停在{v}。",
            "停车场在{v}。",
            "停到{v}，走几步就到。",
        ),
        (
            "磨坊巷",
            "车站路",
            "果园街",
            "大桥街",
            "城堡里",
            "海港道",
            "公园大街",
            "教堂坡",
            "集市广场",
            "河滨步道",
        ),
    ),
    _Frame(
        "zh",
        "alarm",
        ("{s}的警报怎么打开？", "怎样把{s}的警报开起来"),
        (
            "{s}的警报输入{v}再按绿键打开。",
            "先输{v}，再按绿键，警报就开了。",
            "键入{v}并用绿键确认即可开启。",
            "{v}加绿键就能布防。",
            "输{v}，按绿键。",
            "按{v}和绿键，警报启动。",
        ),
        ("4417", "9032", "5581", "7206", "3345", "8129", "6674", "2290", "1958", "5063"),
        (
            "{s}的警报怎么关掉？",
            (
                "按住红键 5 秒，听到两声就关了。",
                "红键长按 5 秒，警报解除。",
                "长按红键 5 秒即可撤防。",
                "按红键不放，5 秒后关闭。",
                "红键按住 5 秒，警报停。",
            ),
        ),
    ),
    _Frame(
        "zh",
        "import",
        ("怎么导入{s}的访客名单？", "{s}的访客名单在哪里导入"),
        (
            "{s}的在“名单”里点“导入”，选{v}.csv。",
            "打开名单，点导入，选中{v}.csv。",
            "名单菜单下有导入，选{v}.csv 就行。",
            "进名单，再进导入，取{v}.csv。",
            "用名单里的导入功能打开{v}.csv。",
            "在名单里按导入，打开{v}.csv。",
        ),
        (
            "guests",
            "names",
            "members",
            "people",
            "visits",
            "arrivals",
            "entries",
            "persons",
            "bookings",
            "seats",
        ),
        (
            "怎么导出{s}的访客名单？",
            (
                "打开报表，点导出，选一个文件夹。",
                "报表菜单下有导出，会问您存到哪儿。",
                "进报表，再进导出，选保存位置。",
                "用报表里的导出功能，指定文件夹。",
                "在报表里按导出，选文件夹。",
            ),
        ),
    ),
    _Frame(
        "zh",
        "seats",
        ("{s}的大厅有多少座位？", "{s}大厅里能坐多少人"),
        (
            "{s}的大厅有{v}个座位。",
            "能坐{v}人。",
            "里面有{v}个位子。",
            "座位一共{v}个。",
            "可以容纳{v}人就座。",
            "最多坐{v}人。",
        ),
        ("80", "240", "120", "310", "95", "450", "60", "175", "520", "140"),
    ),
)

PER_FRAME, WRONG_PER_FRAME = 15, 3


def facts(per_frame: int = PER_FRAME, wrong: int = WRONG_PER_FRAME) -> list[Fact]:
    """The set: of every relation `per_frame` entries, the last `wrong` of them wrong for what hits them."""
    return [fact for frame in _FRAMES for fact in _of(frame, per_frame, wrong)]


def _of(frame: _Frame, entries: int, wrong: int) -> Iterator[Fact]:
    subjects = _EN_SUBJECTS if frame.lang == "en" else _ZH_SUBJECTS
    for at in range(entries):
        value = frame.values[at % len(frame.values)]
        other = frame.values[(at + 3) % len(frame.values)]
        way: Wrong = "" if at < entries - wrong else _way(frame, at)
        subject, about = subjects[at], subjects[at]
        asked, answers, told = frame.asks[1], frame.answers[1:], value
        if way == "entity":
            about, told = subjects[(at + 5) % len(subjects)], other
        elif way == "outdated":
            asked, told = frame.asks[0], other
        elif way == "direction" and frame.turned:
            asked, answers = frame.turned
        yield Fact(
            id=f"{frame.lang}-{frame.name}-{at:02}",
            lang=frame.lang,
            wrong=way,
            question=frame.asks[0].format(s=subject),
            stored=frame.answers[0].format(s=subject, v=value),
            asked=asked.format(s=about),
            fresh=tuple(answer.format(s=about, v=told) for answer in answers),
        )


def _way(frame: _Frame, at: int) -> Wrong:
    """Another direction where the relation has one; else another subject, or (every second) an old figure."""
    if frame.turned:
        return "direction"
    return "entity" if at % 2 else "outdated"


class Told:
    """The model: what is right for each question, in other words each time. Until `switch` what was right
    before."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self._stored = {fact.question: fact.stored for fact in facts}
        self._fresh = {fact.asked: fact.fresh for fact in facts}
        self._times: dict[str, int] = {}
        self._switched = False

    def switch(self) -> None:
        """From now on everything is as it is today."""
        self._switched = True

    def to(self, messages: Sequence[object]) -> str:
        """The answer to the last message."""
        question = messages[-1]["content"]  # type: ignore[index]
        if not self._switched or question not in self._fresh:
            return self._stored.get(question, "I don't know.")
        fresh = self._fresh[question]
        times = self._times[question] = self._times.get(question, -1) + 1
        return fresh[times % len(fresh)]
