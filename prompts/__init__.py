"""The texts of prompts and answers, in all languages.

`chat_prompts` holds the prompts for models, `user_text` the text for users.
"""
