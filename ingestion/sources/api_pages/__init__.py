"""Reads the API operations that Markdown pages describe, whatever their layout.

The modules of this package use these terms:

- A page is a sequence of blocks: headings, paragraphs, lists, tables, code blocks (`fence`) and others.
- A call is a method with a URL, such as `POST /v1/orders`. A page states a call if it gives the call
  outside of examples, such as curl commands.
- A label is a short text that announces a value (`Method: POST`) or the block below it ("**Headers**").
- The role of a table or list is what it contains, such as `request` or `errors`; see `Role`.
- A mark is a word or sign that says whether a parameter is required, such as "optional" or `*`.
- A block stays prose if it is not replaced by parameters, error codes or permissions.
"""
