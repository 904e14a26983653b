"""Compiled loops shared by the pure rooms.

Modules below this package import Numba when they are imported; callers therefore import them inside the
function that needs them, and ``import evenkeel`` stays quick.
"""
