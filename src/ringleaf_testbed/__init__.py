"""The testbed: a real API server with real components around it, on this machine.

Ringleaf is tested against the real thing: etcd, kube-apiserver, Volcano's custom
resources and controllers. No container engine and no kubelet are needed: KWOK plays the
kubelets, ``actor`` the daemons of Ascend nodes.

Reading order: ``source`` says what there is, ``build`` makes it, ``process`` runs one
command, ``cluster`` puts them together, ``hardware`` and ``report`` spell what Ascend
daemons write, ``actor`` plays them.
"""
