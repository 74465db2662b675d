"""The protocols of model servers. Requests are built, stored and shown in the form of OpenAI's chat completions; a
protocol translates each on its way out, and each event or document of the reply on its way in.
"""

from __future__ import annotations

from judging.core.judges.protocols import anthropic, azure, chat, gemini, responses
from judging.core.judges.protocols.protocol import Protocol

CHAT = chat.PROTOCOL.code
PROTOCOLS: dict[str, Protocol] = {
    protocol.code: protocol
    for protocol in (
        chat.PROTOCOL,
        responses.PROTOCOL,
        anthropic.PROTOCOL,
        gemini.PROTOCOL,
        azure.PROTOCOL,
    )
}
__all__ = ["CHAT", "PROTOCOLS", "Protocol"]
