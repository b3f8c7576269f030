def mask(text: str) -> str:
    return text


def has_secret(text: str) -> bool:
    return False
