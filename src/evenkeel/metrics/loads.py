"""From the loads of items to the loads of channels, and from one window to many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evenkeel.errors import InvalidArgumentError
from evenkeel.metrics._checks import FloatArray, as_amounts, as_integers, as_loads, check_count

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike


def channel_loads(channels_of_items: ArrayLike, loads: ArrayLike, n_channels: int) -> FloatArray:
    r"""Add up the loads of the items (keys or slots) that share a channel.

    .. math:: L_t = A^T Y_t, \quad a_{ij} = 1 \text{ where item } i \text{ is on channel } j

    Parameters
    ----------
    channels_of_items
        The channel of each item, from 0 to ``n_channels - 1``.
    loads
        One load per item, or windows x items.
    n_channels
        The number of channels, N. Channels without items have load 0.

    Returns
    -------
    One load per channel, or windows x channels.

    References
    ----------
    Guo and Zhou, "Stateful Load Balancing for Parallel Stream Processing", §2.2.

    Examples
    --------
    >>> channel_loads([0, 1, 0], [5.0, 3.0, 2.0], n_channels=3)
    array([7., 3., 0.])
    """
    check_count("n_channels", n_channels)
    item_loads = as_amounts("loads", loads, ndims=(1, 2))
    channels = as_integers("channels_of_items", channels_of_items, length=item_loads.shape[-1])
    if channels.size and channels.max() >= n_channels:
        raise InvalidArgumentError(
            f"channels_of_items must be below n_channels={n_channels}, got {channels.max()}.",
            name="channels_of_items",
            value=int(channels.max()),
        )
    by_window = np.atleast_2d(item_loads)
    n_windows = len(by_window)
    cells = (np.arange(n_windows)[:, None] * n_channels + channels).ravel()
    # Without items, bincount forgets that weights are floats.
    sums = np.bincount(cells, weights=by_window.ravel(), minlength=n_windows * n_channels).astype(np.float64)
    return sums.reshape(*item_loads.shape[:-1], n_channels)


def over_windows(measure: Callable[[FloatArray], float], loads_by_window: ArrayLike) -> FloatArray:
    """Apply a measure to the loads of each window: windows x channels in, one value per window out.

    Examples
    --------
    >>> over_windows(max, [[4, 1, 1], [3, 3, 3]])
    array([4., 3.])
    """
    windows = as_loads("loads_by_window", loads_by_window, ndim=2)
    return np.array([measure(loads) for loads in windows], dtype=np.float64)
