"""Words that developers integrating any platform use, whether or not its documents do.

The topic gate counts each as if one word in a thousand of the documents were it.
"""

_ENGLISH = """
account api apis app application async asynchronous auth authentication authorization backend
base64 batch bug bugs cache callback callbacks certificate client code concurrency config console
credential credentials cron curl cursor database debug debugging decode decrypt demo deploy deployment
deprecated deprecation dev developer developers docs documentation domain encode encoding encrypt
encryption endpoint endpoints enum error errors event events exception exceptions fail failed failing
fails failure field fields frontend gateway hash header headers hmac http https idempotency idempotent
integrate integrated integrating integration ip java javascript job jobs json key keys latency limit
limits log logging login logs message messages migrate migration mock node notification notifications
oauth package page pages pagination param parameter parameters params parse payload permission
permissions php poll polling prod production push python queue quota quotas rate request requests
response responses retries retry retrying sandbox scope scopes script sdk secret server servers sign
signature signing simulate sms ssl staging status subscribe subscription sync synchronous test testing
tests throttle throttled throttling timeout timeouts timestamp timezone tls token tokens trace upgrade
uri url urls utf version versions webhook webhooks whitelist xml
"""

_CHINESE = """
接口 参数 字段 入参 出参 报文 请求 响应 返回 返回值 回调 推送 订阅 拉取 轮询 调用
调 对接 接入 联调 集成 开发 开发者 文档 示例 签名 验签 加签 密钥 秘钥 令牌 授权
鉴权 认证 权限 沙箱 测试 生产 环境 正式 线上 上线 域名 网关 白名单 证书 限流 频率
频控 并发 超时 重试 幂等 重复 分页 翻页 游标 批量 异步 同步 增量 全量 报错 错误
错误码 异常 失败 状态码 日志 排查 调试 链路 版本 废弃 升级 迁移 兼容 编码 解码
时间戳 时区 加密 解密 哈希 数据库 缓存 队列 脚本 定时 任务 代码 服务器 服务端
客户端 后端 前端 应用 账号 控制台 后台 配置 消息 通知 事件 枚举 必填 类型 格式
长度 字符串
"""

DEVELOPER_WORDS = frozenset(_ENGLISH.split()) | frozenset(_CHINESE.split())
