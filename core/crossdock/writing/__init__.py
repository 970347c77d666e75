"""Operations to outcomes: targets know requests and answers, delivery sends each operation once.

Comes in: operations. Goes out: outcomes in the state, and what is in doubt. May import the platform, HTTP, pacing and
the state.
"""
