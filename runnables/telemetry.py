"""What operators want to know of a run that no callback of LangChain's tells: its custom events."""

from langchain_core.callbacks import BaseCallbackManager, adispatch_custom_event
from langchain_core.runnables import RunnableConfig

STRUCTURED_OUTPUT = "structured-output"
"""A model gave an object: `step`, and the `rung` that gave it."""

MODEL_RETRY = "model-retry"
"""A model is called once more: `role`, `model`."""

MODEL_FAILURE = "model-failure"
"""A model gave no reply, with all retries: `role`, `model`, and the error's `code`."""


async def dispatch_event(config: RunnableConfig, event: str, **data: str) -> None:
    """Tell the callback handlers of the run; outside of a run there are none."""
    callbacks = config.get("callbacks")
    if isinstance(callbacks, BaseCallbackManager) and callbacks.parent_run_id is not None:
        await adispatch_custom_event(event, data, config=config)
