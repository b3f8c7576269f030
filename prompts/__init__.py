"""The texts of prompts and answers, in all languages.

`chat_prompts` holds the prompts of the models, `user_text` the text that users read outside of prompts.
"""
