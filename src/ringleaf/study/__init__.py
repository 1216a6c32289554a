"""Several runs of the simulator, compared: who is better, by how much, how sure.

Start reading at ``compare``.
"""
