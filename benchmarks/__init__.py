"""How fast brwsim is, measured on the machine at hand.

``python -m benchmarks run`` measures (``--quick`` in two minutes, with smaller sizes and rougher figures),
``table`` prints a measured file as Markdown, ``compare`` says what got slower between two files, and
``nightly`` keeps a history, judges the newest run against it and plots the trend.
"""
