"""Words that carry no content of a question, in two weights.

`PURE` words say nothing beyond grammar and politeness, or are read elsewhere (question words as the intent).
`LIGHT` words seldom matter: no difference is made of them, but two questions agree only if theirs are the
same.
"""

from .tokens import stem

_PURE_ENGLISH = """
a an the this that these those it its there here i me myself we us you one ones
is are am was were be been being do does did doing done have has had having let
to between what whats which who whom whose where when why how and so then of
please pls thanks thank hi hello hey ok okay well just really very also too even tell know explain wonder
wondering
question can't don't isn't s t re ve ll d m not no without
step steps procedure process method reason reasons instructions way ways need want like wish try trying
help difference different compare comparison compared cost costs price prices fee fees mean means vs versus
"""
_LIGHT_ENGLISH = """
my mine our ours your yours
can could will would shall should may might must or but if than as in on at into onto for from by with
about around among
through during within per via off out again still already yet ever now over under up down before after
above below
show say says said ask answer possible best thing things
get gets got getting make makes made making go goes going come take takes use using used work works happen
happens give
right correct proper properly exactly actually basically simply some any such other another much many more
most lot long often far whether whatever
etc able allowed supposed instead sure kind sort type part never neither nor none cannot
good great better nice excellent people someone anyone everyone somebody something anything everything guy
guys
think thinking believe especially mostly overall somehow example examples happened generally usually start
started starting
they them their themselves
"""
_PURE_CHINESE = """
的 地 得 了 着 过 吗 呢 吧 啊 呀 嘛 么 哦 哈 啦 哟 呗 咯 我 你 您 我们 你们 咱 咱们 自己 俺 人家 大家 这
那 这个 那个 这些 那些 这种 那种 此 该 其
是 有 和 与 跟 及 以及 并 并且 而 而且 就 就是 也 都 还 又 再 才 却 则 的话 时 时候 把 将 对 对于 关于
怎么 怎样 如何 咋 怎么样 为什么 为啥 为何 怎么办 怎么回事 什么 啥 哪 哪里 哪儿 哪个 哪些 哪种 哪位 谁 几
多少 多 多久 多长 多大 何时 何 是否 能否 可否 什么样 怎么着 几个 多少钱 哪样 咋样 咋办 怎
请 请问 麻烦 谢谢 你好 您好 帮 帮我 帮忙 告诉 告诉我 讲 说 说说 讲讲 问 问下 问一下 一下 一点 一些 知道
想知道 求 求助 求教 各位 大佬 请教 求问 想问 想问问
很 太 挺 非常 真 真的 到底 究竟 其实 一般 通常 大概 大约 左右 才能 怎样才能 才行 个 等 等等 之 所 某 要 想
具体 回事 干嘛 干嘛的 干什么 由谁 由谁来 住 这句 说明 介绍 解释 有什么 怎么弄 没 不 没有
做法 吃法 玩法 读法 方法 步骤 办法 流程 方式 教程 原因 区别 差别 不同 不一样 意思 含义 用法 写法 钱 打算
想要 愿意 要花 花 什么意思 啥意思 哪个更
"""
_LIGHT_CHINESE = """
在 或 或者 还是 但 但是 所以 因为 由于 如果 要是 里 里面 里头 上 上面 中 下 后 前 内 间 给 被 让 叫 使 用
以 从 到 至 往 向 于 由 为 按 当 比
会 能 可以 能够 可 应该 应 需要 需 必须 肯 这里 那里 这样 那样 这边 那边 他 她 它 他们
弄 搞 做 办 办理 进行 实现 使用 操作 详细 情况 东西 事 事情 问题 解决 处理
比较 更 最 特别 正常 一直 直接 最近 一般来说 好 行 不行 去 来 出来 起来 上去 下来 下去 过来 出 进 变 成
成为 变成
方案 设置 只是 有关 相关 有人 无 未 别
"""


def _all(english: str, chinese: str) -> frozenset[str]:
    return frozenset([*english.split(), *map(stem, english.split()), *chinese.split()])


PURE = _all(_PURE_ENGLISH, _PURE_CHINESE)
LIGHT = _all(_LIGHT_ENGLISH, _LIGHT_CHINESE) - PURE
FILLERS = PURE | LIGHT
# "How long does it take" asks how long it takes.
_WRITTEN = _LIGHT_ENGLISH.split()
THIRD_PERSON = {f"{word}{s}": word for word in _WRITTEN for s in ("s", "es") if f"{word}{s}" in _WRITTEN}
# What may, must and can be asked of is one thing in many words.
MODALS = {
    **dict.fromkeys("能 能够 可以 可 can could may might able possible allowed".split(), "can"),
    **dict.fromkeys("需要 需 必须 应该 应 should must need shall".split(), "must"),
    **dict.fromkeys("will would 会".split(), "will"),
}

# Words for what kind of thing a name is: "learn Turkish" and "learn the Turkish language" ask the same.
GENERIC = _all(
    "file language area app application software website site program system country city",
    "文件 网络 文档 软件 系统 程序 应用 平台 语言 地区 国家 城市 市 字符串 列表 数字 牌子 品牌",
)
