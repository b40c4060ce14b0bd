"""Words that undo each other. Two questions that stand on different sides of one pair ask for opposite
things, two words on one side for the same.

A new pair is one line: the words of one side, "|", the words of the other. English words stand as they come
without an ending (`stem` takes endings off), phrasal verbs with "_".
"""

from functools import lru_cache

from .tokens import stem

_DEEDS = """
enable turn_on switch_on activate reactivate unmute allow permit 开启 打开 启用 激活 开通 启动 允许 | disable turn_off switch_off deactivate mute forbid ban 关闭 停用 禁用 关掉 关停 停止 禁止 注销
start begin launch boot turn_up 开始 启动 开机 | stop end finish quit shutdown shut_down halt abort 结束 停止 终止 关机 中止
add append insert attach create 添加 增加 新增 加入 追加 新建 创建 插入 | remove delete drop detach erase clear uncheck 删除 移除 删掉 去掉 清除 去除 清空
install set_up 安装 装上 | uninstall 卸载 卸掉
import load ingest 导入 载入 | export dump unload 导出
upload push 上传 | download pull 下载
send 发送 寄 寄出 寄给 | receive 接收 收到 收
increase raise expand extend grow enlarge widen scale_up speed_up zoom_in 增加 提高 增大 调高 扩大 提升 加大 上调 上涨 涨 增长 变大 延长 放大 扩容 加快 | decrease reduce lower shrink shorten cut narrow scale_down slow_down zoom_out 减少 降低 减小 调低 缩小 下降 下调 下跌 跌 缩短 变小 减慢 缩容
gain bulk_up 增肌 增重 长胖 增肥 | lose 减肥 减重 瘦身 减脂
upgrade update 升级 | downgrade 降级 rollback roll_back 回退 回滚
log_in sign_in login check_in 登录 登陆 签到 入住 | log_out sign_out logout check_out check-out 退出 登出 签退 退房
lock 锁定 上锁 | unlock 解锁
freeze 冻结 | unfreeze thaw 解冻
block blacklist 拉黑 屏蔽 | unblock whitelist 取消屏蔽
bind link pair 绑定 配对 关联 | unbind unlink unpair 解绑 解除绑定
subscribe 订阅 关注 续费 续订 | unsubscribe 退订 取关
connect 连接 连上 联机 | disconnect 断开 断连 脱机
merge combine join 合并 | split separate 拆分 分割 分开
compress zip 压缩 | decompress unzip extract 解压
encrypt 加密 | decrypt 解密
encode 编码 | decode 解码
show display reveal unhide 显示 展示 | hide conceal 隐藏
expand 展开 | collapse 折叠 收起
open 开门 | close 关门
buy purchase 购买 买 买入 | sell 出售 卖 卖出
borrow 借入 借款 | lend repay pay_back 还款 归还 借出
rent_out let 出租 | rent 租 租房 承租
deposit pay_in top_up charge_up 存款 充值 存入 | withdraw 取款 提现 取出
hire recruit 招聘 入职 录用 | fire dismiss resign lay_off 辞退 离职 解雇 辞职 开除
marry 结婚 | divorce 离婚
arrive arrival 到达 抵达 | depart departure leave 出发 离开
enter 进入 入境 入场 | exit 离境 出境 退场
accept approve agree 接受 同意 批准 通过 | reject decline refuse deny 拒绝 驳回
plant sow 种 播种 | harvest dig_up 收获 采收
encourage 鼓励 | discourage 劝阻
win 赢 | lose 输
"""  # noqa: E501
# Said of things in passing, too ("too hot for normal coffee"): they count only where the texts are near.
_QUALITIES = """
read 读 读取 | write 写入 写
maximum max most at_most 最多 最大 最高 上限 至多 最长 | minimum min least at_least 最少 最小 最低 下限 至少 最短 起步
cheap cheapest 便宜 最便宜 | expensive dear 贵 最贵
fast quick quickest fastest faster 快 更快 最快 | slow slowest slower 慢 更慢 最慢
early earliest 早 最早 提前 提早 | late latest 晚 最晚 推迟 延后 延迟 延期
before prior 之前 以前 饭前 事前 前 | after 之后 以后 饭后 事后 后
first 第一 首 | last 最后 末
over above 以上 超过 大于 高于 | under below 以下 低于 小于 不足 以内 不到
inside indoor 室内 里面 | outside outdoor 室外 外面
domestic 国内 境内 | international abroad overseas foreign 国际 国外 境外 海外 出国
online 线上 网上 在线 | offline in-store 线下 门店 离线
public 公开 公有 | private 私有 私密 私人
input 输入 | output 输出
client 客户端 | server 服务端 服务器端
frontend 前端 | backend 后端
sync synchronous 同步 | async asynchronous 异步
left 左 左边 左侧 | right 右 右边 右侧
horizontal 横向 水平 | vertical 竖向 垂直
ascending 升序 正序 | descending 降序 倒序
positive 阳性 正 | negative 阴性 负
odd 奇数 | even 偶数
empty 空 | full 满
hot heat 热 加热 制热 | cold cool 冷 冷却 制冷
dry 干 晾干 | wet damp 湿
old oldest 旧 | new newest 新
single 单 | double 双
advantage pro benefit 优点 好处 利 | disadvantage con drawback 缺点 坏处 弊
income revenue 收入 | expense spending 支出
profit 盈利 | loss 亏损
buyer 买家 买方 | seller 卖家 卖方 商家
employee 员工 | employer 雇主 公司
landlord 房东 | tenant 租客 房客
male man men boy 男 男性 男生 | female woman women girl 女 女性 女生
adult 成人 大人 成年人 | child kid 儿童 小孩 孩子 婴儿
upstairs 楼上 | downstairs 楼下
weekday 工作日 | weekend 周末
personal 个人 | company corporate business 单位 企业
cooked 熟 煮熟 | raw 生
high 高 | low 低
big large 大 | small little 小
long 长 | short 短
deep 深 | shallow 浅
up 上 | down 下
front 前面 | back 后面
best better good 好 最好 更好 | worst worse bad 坏 差 最差
in 进 入 | out 出
on 开 | off 关
easy easier 简单 容易 | hard harder difficult 难 困难
all every everything 所有 全部 全 每个 | only single 只 仅 仅仅
always 总是 一直 | never 从不 从来不
outbound 去程 | return 返程 回程
import_duty 进口 | export_duty 出口
gross 税前 | net 税后
"""  # noqa: E501
# What a question about the one end of a scale says, in whatever words it is put: never the other end.
_EXTREMES = """
biggest largest greatest 最大 | smallest tiniest 最小
longest 最长 | shortest 最短
tallest highest 最高 | shortest lowest 最矮 最低
deepest 最深 | shallowest 最浅
oldest eldest 最老 最旧 最古老 最年长 | youngest newest 最新 最年轻
hottest warmest 最热 最暖和 | coldest coolest 最冷 最凉快
cheapest 最便宜 | dearest priciest costliest 最贵
lightest 最轻 | heaviest 最重
fastest quickest 最快 | slowest 最慢
nearest closest 最近 | farthest furthest 最远
richest wealthiest 最富 最富有 最有钱 | poorest 最穷 最贫穷
widest broadest 最宽 | narrowest 最窄
thickest 最厚 最粗 | thinnest 最薄 最细
strongest 最强 | weakest 最弱
hardest toughest 最难 | easiest simplest 最简单 最容易
earliest 最早 | latest 最晚 最迟
loudest noisiest 最吵 | quietest 最安静
brightest 最亮 | darkest dimmest 最暗
safest 最安全 | riskiest deadliest 最危险
driest 最干 最干燥 | wettest 最湿 最潮湿
best 最好 | worst 最差 最坏 最糟
"""
# Everyday words that stand for each other, without an opposite worth the name: one line each.
_SYNONYMS = """
fix repair mend 修 修理 维修
ship deliver
cancel call_off 取消 撤销
change modify edit alter adjust 改 修改 更改 变更 调整
check view see look_up 查 查询 查看 查找 看
find locate 找 寻找 找到
get obtain receive 获取 获得 拿到 领取 领
choose select pick 选 选择 挑
use apply 用 使用
reset restore recover 重置 重设 恢复 找回
apply register sign_up enrol enroll 申请 报名 注册
contact reach call phone 联系
replace swap exchange 换 更换 替换
reduce cut
need require
occur happen
forbidden prohibited banned
mistake error
quick fast rapid
big large
kid child
phone cellphone mobile smartphone 手机
laptop notebook 笔记本 笔记本电脑
photo picture image 照片 图片
movie film 电影
car vehicle 汽车 车
job work 工作
salary pay wage 工资 薪水 薪资
refund 退款 退钱
return 退货 退
computer pc 电脑 计算机
bicycle bike 自行车 单车
fridge refrigerator 冰箱
tv television 电视 电视机
invoice 发票
parcel package 包裹 快件
cost price fee
shop store 商店 店
"""
_SIDES: dict[str, tuple[tuple[str, str], ...]] = {}
for _line in filter(str.strip, (_DEEDS + _QUALITIES + _EXTREMES).splitlines()):
    _one, _, _other = _line.partition("|")
    for _side, _words in (("+", _one.split()), ("-", _other.split())):
        for _word in _words:
            _key = stem(_word)
            _SIDES[_key] = (*_SIDES.get(_key, ()), (f"{_one.split()[0]}/{_other.split()[0]}", _side))
for _line in filter(str.strip, _SYNONYMS.splitlines()):
    for _word in _line.split():
        _key = stem(_word)
        _SIDES[_key] = (*_SIDES.get(_key, ()), (_line.split()[0], "="))
QUALITIES = frozenset(
    f"{one.split()[0]}/{other.split()[0]}"
    for one, _, other in (line.partition("|") for line in _QUALITIES.strip().splitlines())
)


@lru_cache(maxsize=16_384)
def sides(term: str) -> tuple[tuple[str, str], ...]:
    """The pairs that a term (a stem, or a Chinese word) belongs to, and its side in each: "+" or "-"."""
    key = stem(term)
    return _SIDES.get(key) or (_SIDES.get(key[:-2], ()) if key.endswith("ly") else ())


def opposed(one: str, other: str) -> bool:
    """Does a pair have these two terms on its two sides?"""
    others = dict(sides(other))
    return any(name in others and others[name] != side for name, side in sides(one))


def alike(one: str, other: str) -> bool:
    """Does a pair have both terms on one side, and none on two?"""
    others = dict(sides(other))
    return any(others.get(name) == side for name, side in sides(one)) and not opposed(one, other)


def phrasal_verbs() -> dict[str, list[str]]:
    """The verbs of the tables that take a particle, with their particles: {"turn": ["on", "off", …]}."""
    found: dict[str, list[str]] = {}
    for key in _SIDES:
        verb, underscore, particle = key.partition("_")
        if underscore and "_" not in particle:
            found.setdefault(verb, []).append(particle)
    return found
