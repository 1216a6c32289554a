"""Other schedulers' rules behind Ringleaf's engine, to be compared with.

A baseline is an ``Engine`` that chooses nodes and chips by another rule: the same
events, instructions, queues and gangs, so that a difference is one of placement. Start
reading at ``registry``, then ``engine``.
"""
