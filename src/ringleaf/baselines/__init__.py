"""Other schedulers' rules behind Ringleaf's engine, to be compared with.

A baseline is an ``Engine`` whose nodes and chips are chosen by somebody else: the same
events, instructions, queues and gangs, so that a difference is one of placement. Start
reading at ``registry``, then ``engine``.
"""
