"""What a result says, once: an answer is made from a result, and terminal, page, notebook and JSON render it.

Each topic has one module, whose name says what was done (``replayed``). What renders an answer knows no topic.
"""
