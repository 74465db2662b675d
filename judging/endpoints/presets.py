"""Model servers that the endpoint form fills in: names in both languages, addresses and protocols.

Addresses are from memory of each server's documentation and not checked, or for servers of one's own where the program
listens by default. A test of the connection shows what a server refuses.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import get_language

from judging.core.judges.protocols import CHAT


@dataclass(frozen=True, slots=True)
class Preset:
    """A server. `url`: its address, with the part in capitals to replace, if any; `local`: run by oneself."""

    name: str
    url: str
    chinese: str = ""
    local: bool = False
    protocol: str = CHAT

    @property
    def label(self) -> str:
        """The name in the user's language."""
        return self.chinese if self.chinese and (get_language() or "").startswith("zh") else self.name


PRESETS = (
    Preset("OpenAI", "https://api.openai.com/v1"),
    Preset("Anthropic", "https://api.anthropic.com/v1", protocol="anthropic"),
    Preset("Gemini", "https://generativelanguage.googleapis.com/v1beta", protocol="gemini"),
    Preset("Azure OpenAI", "https://RESOURCE.openai.azure.com", protocol="azure"),
    Preset("OpenRouter", "https://openrouter.ai/api/v1"),
    Preset("DeepSeek", "https://api.deepseek.com/v1", "DeepSeek（深度求索）"),
    Preset("Qwen (DashScope)", "https://dashscope.aliyuncs.com/compatible-mode/v1", "通义千问（阿里云百炼）"),
    Preset("Volcengine Ark", "https://ark.cn-beijing.volces.com/api/v3", "火山方舟"),
    Preset("Hunyuan", "https://api.hunyuan.cloud.tencent.com/v1", "腾讯混元"),
    Preset("Zhipu", "https://open.bigmodel.cn/api/paas/v4", "智谱"),
    Preset("Moonshot", "https://api.moonshot.cn/v1", "月之暗面（Kimi）"),
    Preset("MiniMax", "https://api.minimaxi.com/v1"),
    Preset("SiliconFlow", "https://api.siliconflow.cn/v1", "硅基流动"),
    Preset("vLLM", "http://127.0.0.1:8000/v1", local=True),
    Preset("SGLang", "http://127.0.0.1:30000/v1", local=True),
    Preset("Ollama", "http://127.0.0.1:11434/v1", local=True),
    Preset("LM Studio", "http://127.0.0.1:1234/v1", local=True),
    Preset("llama.cpp", "http://127.0.0.1:8080/v1", local=True),
)
