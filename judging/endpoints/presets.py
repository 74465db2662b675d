"""Model servers that the endpoint form fills in: names, addresses, protocol, and where these were read.

A preset with a `source` was compared with that page of the vendor on the day CHECKED; the form marks one without as
"not checked". No vendor's price list could be read on that day, so presets hold no prices: an endpoint's price is what
its owner enters, and unknown until then. A test of the connection shows what a server refuses.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from django.utils.translation import get_language, gettext_noop
from django.utils.translation import gettext as _

from judging.core.judges.protocols import CHAT, PROTOCOLS

CHECKED = date(2026, 11, 27)


@dataclass(frozen=True, slots=True)
class Preset:
    """A server. `url`: its address, with the part in capitals to replace, if any; `local`: run by oneself; `source`:
    the vendor's page that names address and protocol, '' if none was read; `note`: a known limit, as a message."""

    name: str
    url: str
    chinese: str = ""
    local: bool = False
    source: str = ""
    note: str = ""
    protocol: str = CHAT

    @property
    def label(self) -> str:
        """The name in the user's language."""
        return self.chinese if self.chinese and (get_language() or "").startswith("zh") else self.name

    @property
    def protocol_name(self) -> str:
        """The protocol as the form names it."""
        return PROTOCOLS[self.protocol].name

    @property
    def limit(self) -> str:
        """The note in the user's language."""
        return _(self.note) if self.note else ""


PRESETS = (
    Preset("OpenAI", "https://api.openai.com/v1"),
    Preset("Anthropic", "https://api.anthropic.com/v1", protocol="anthropic"),
    Preset("Gemini", "https://generativelanguage.googleapis.com/v1beta", protocol="gemini"),
    Preset("Azure OpenAI", "https://RESOURCE.openai.azure.com", protocol="azure"),
    Preset("OpenRouter", "https://openrouter.ai/api/v1", source="https://openrouter.ai/docs/quick-start"),
    Preset("DeepSeek", "https://api.deepseek.com/v1", "DeepSeek（深度求索）"),
    Preset(
        "Qwen (DashScope)",
        "https://dashscope.aliyuncs.com/compatible-mode/v1",
        "通义千问（阿里云百炼）",
        source="https://help.aliyun.com/zh/model-studio/compatibility-of-openai-with-dashscope",
    ),
    Preset(
        "Volcengine Ark",
        "https://ark.cn-beijing.volces.com/api/v3",
        "火山方舟",
        source="https://www.volcengine.com/docs/82379/1298459",
    ),
    Preset(
        "Hunyuan",
        "https://api.hunyuan.cloud.tencent.com/v1",
        "腾讯混元",
        source="https://cloud.tencent.com/document/product/1729/111007",
        note=gettext_noop("5 calls at a time by default"),
    ),
    Preset("Zhipu", "https://open.bigmodel.cn/api/paas/v4", "智谱"),
    Preset(
        "Moonshot",
        "https://api.moonshot.cn/v1",
        "月之暗面（Kimi）",
        source="https://platform.moonshot.cn/docs/api/chat",
    ),
    Preset("MiniMax", "https://api.minimaxi.com/v1"),
    Preset(
        "SiliconFlow",
        "https://api.siliconflow.cn/v1",
        "硅基流动",
        source="https://docs.siliconflow.cn/docs/userguide/quickstart",
    ),
    Preset(
        "vLLM",
        "http://127.0.0.1:8000/v1",
        local=True,
        source="https://docs.vllm.ai/en/v0.8.1/serving/openai_compatible_server.html",
    ),
    Preset("SGLang", "http://127.0.0.1:30000/v1", local=True),
    Preset("Ollama", "http://127.0.0.1:11434/v1", local=True),
    Preset(
        "LM Studio",
        "http://127.0.0.1:1234/v1",
        local=True,
        source="https://lmstudio.ai/docs/api/openai-api",
    ),
    Preset("llama.cpp", "http://127.0.0.1:8080/v1", local=True),
)
