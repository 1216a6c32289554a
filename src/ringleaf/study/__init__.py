"""Several runs of the simulator, compared: who is better, by how much, how sure.

Start reading at ``compare``. A run is asked for by its ``Spec``, which is plain values,
so that another process or machine can play it.
"""
