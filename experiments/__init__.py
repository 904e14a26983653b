"""The papers' tables and figures, measured again: one folder per paper, one module per table or figure.

Each module has one :class:`~experiments.experiment.Experiment`: the claim in words, the settings at two scales, what
to run, what to plot, and the checks that give the verdict. Only public names of Evenkeel are used. Adding one is
adding a module; :mod:`experiments.registry` finds it.
"""
