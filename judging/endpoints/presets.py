"""Model servers that the endpoint form fills in: names, addresses, protocol, and where these were read.

A preset with a `source` was compared with that page of the vendor on the day CHECKED; the form marks one without as
"not checked". Prices that could be read are in prices.json. A test of the connection shows what a server refuses.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from django.utils.translation import get_language, gettext_noop
from django.utils.translation import gettext as _

from judging.core.judges.protocols import CHAT, PROTOCOLS
from judging.endpoints.prices import PriceList, price_list_of

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
    def prices(self) -> PriceList | None:
        """The vendor's price list, if one could be read."""
        return price_list_of(self.url)

    @property
    def protocol_name(self) -> str:
        """The protocol as the form names it."""
        return PROTOCOLS[self.protocol].name

    @property
    def limit(self) -> str:
        """The note in the user's language."""
        return _(self.note) if self.note else ""


PRESETS = (
    Preset(
        "OpenAI",
        "https://api.openai.com/v1",
        source="https://github.com/openai/openai-python/blob/e43b422412a9e96c9cc5192c61fffbe2d7e04836/src/openai/_client.py",
    ),
    Preset(
        "Anthropic",
        "https://api.anthropic.com/v1",
        protocol="anthropic",
        source="https://github.com/anthropics/anthropic-sdk-python/blob/009b035305e0724ce108ebd796935f91711fc6e1/src/anthropic/_client.py",
    ),
    Preset(
        "Gemini",
        "https://generativelanguage.googleapis.com/v1beta",
        protocol="gemini",
        source="https://github.com/googleapis/python-genai/blob/66807187f2123c6676175ac991f4e34eb09200d1/google/genai/_api_client.py",
    ),
    Preset("Azure OpenAI", "https://RESOURCE.openai.azure.com", protocol="azure"),
    Preset("OpenRouter", "https://openrouter.ai/api/v1", source="https://openrouter.ai/docs/quick-start"),
    Preset(
        "DeepSeek",
        "https://api.deepseek.com/v1",
        "DeepSeek（深度求索）",
        source="https://api-docs.deepseek.com/zh-cn/",
    ),
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
    Preset(
        "Zhipu",
        "https://open.bigmodel.cn/api/paas/v4",
        "智谱",
        source="https://docs.bigmodel.cn/cn/api",
    ),
    Preset(
        "Moonshot",
        "https://api.moonshot.cn/v1",
        "月之暗面（Kimi）",
        source="https://platform.moonshot.cn/docs/api/chat",
    ),
    Preset(
        "MiniMax",
        "https://api.minimaxi.com/v1",
        source="https://platform.minimaxi.com/docs/api-reference/text-openai-api",
    ),
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
    Preset(
        "SGLang",
        "http://127.0.0.1:30000/v1",
        local=True,
        source="https://github.com/sgl-project/sglang/blob/0c7e859d6a3afa2d1f2c03eb024b8823dbabbd78/docs/basic_usage/openai_api_completions.ipynb",
    ),
    Preset(
        "Ollama",
        "http://127.0.0.1:11434/v1",
        local=True,
        source="https://github.com/ollama/ollama/blob/000ce02098f6bfea486601b5cae35ba38f8824fc/docs/openai.md",
    ),
    Preset(
        "LM Studio",
        "http://127.0.0.1:1234/v1",
        local=True,
        source="https://lmstudio.ai/docs/api/openai-api",
    ),
    Preset("llama.cpp", "http://127.0.0.1:8080/v1", local=True),
)
