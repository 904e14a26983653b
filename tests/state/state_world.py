"""Keys, rows and file systems for the tests of state."""

from __future__ import annotations

import errno
import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import fs

from evenkeel.hashing import mix64
from evenkeel.state import Checkpoint, Delta, StateStore

SLOTS = 8


def keys_of(numbers):
    """Slots, hashes and second hashes of some numbered keys; every eighth shares its hash with the one before."""
    numbers = np.asarray(numbers, np.uint64)
    shared = np.where(numbers % 8 == 7, numbers - 1, numbers).astype(np.uint64)
    hashes = mix64(shared).view(np.int64)
    return (hashes % SLOTS).astype(np.int32), hashes, mix64(numbers, seed=1).view(np.int64)


def name_of(number):
    """The identity of one numbered key, as plain numbers."""
    slots, hashes, hashes2 = keys_of([number])
    return int(slots[0]), int(hashes[0]), int(hashes2[0])


def put(delta, values, previous=None):
    """Put {number: bytes or None} into a delta."""
    delta.put(*keys_of(list(values)), pa.array(list(values.values()), pa.binary()), previous=previous)


def get(view, numbers, delta=None):
    return dict(zip(numbers, view.get(*keys_of(numbers), delta=delta).to_pylist(), strict=True))


def rows_of(batches):
    """Exported rows as {identity: value}; a key that comes twice is an error."""
    found = {}
    for batch in batches:
        for slot, key_hash, hash2, value in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            assert (slot, key_hash, hash2) not in found
            found[slot, key_hash, hash2] = value
    return found


def totals_of(state):
    """Keys and bytes per slot of {identity: value}, by counting."""
    found = {}
    for (slot, _, _), value in state.items():
        keys, size = found.get(slot, (0, 0))
        found[slot] = (keys + 1, size + 20 + len(value))
    return found


def as_dict(totals):
    return {
        slot: (keys, size)
        for slot, keys, size in zip(
            totals.slots.tolist(), totals.keys.tolist(), totals.state_bytes.tolist(), strict=True
        )
    }


class Stage:
    """One channel of a stage, run batch by batch as a driver and its tasks would."""

    def __init__(self, filesystem, path, work, **options):
        self.checkpoint = Checkpoint.open(filesystem, str(path), job="job", run="run-1")
        self.work = Path(work)
        self.options = options
        self.attempts = itertools.count()

    def store(self, host="host-a", channel=0):
        return StateStore(self.checkpoint, "count", channel, self.work / host, **self.options)

    @property
    def ref(self):
        last = self.checkpoint.last_commit()
        return last.manifest("count", 0) if last else None

    def open(self, host="host-a", batch=None):
        if batch is None:
            return self.store(host).open(self.ref)
        return self.store(host).open(self.checkpoint.read_commit(batch).manifest("count", 0))

    def batch(self, values, host="host-a", *, store=None, drop=None, snapshot=None, later=False, commit=True):
        """Run the next batch and give its manifest."""
        last = self.checkpoint.last_commit()
        number = last.batch + 1 if last else 0
        attempt, store = f"a{next(self.attempts)}", store or self.store(host)
        with store.open(self.ref) as view:
            delta = Delta()
            if drop is not None:
                delta.drop(drop)
            if values:
                put(delta, values)
            file = store.write_delta(view, delta, batch=number, attempt=attempt)
            ref = store.write_manifest(view, file, batch=number, attempt=attempt, snapshot=snapshot, later=later)
        if commit:
            self.checkpoint.commit(number, [ref])
        return ref

    def contents(self, host="host-a", batch=None):
        with self.open(host, batch) as view:
            return rows_of(view.scan())


class FailingHandler(fs.FileSystemHandler):
    """Passes everything on, until told to fail."""

    def __init__(self, inner):
        self.inner = inner
        self.full_after = None
        self.failing_reads = False

    def get_type_name(self):
        return "failing"

    def normalize_path(self, path):
        return self.inner.normalize_path(path)

    def get_file_info(self, paths):
        return self.inner.get_file_info(paths)

    def get_file_info_selector(self, selector):
        return self.inner.get_file_info(selector)

    def create_dir(self, path, recursive):
        self.inner.create_dir(path, recursive=recursive)

    def delete_dir(self, path):
        self.inner.delete_dir(path)

    def delete_dir_contents(self, path, missing_dir_ok):
        self.inner.delete_dir_contents(path, missing_dir_ok=missing_dir_ok)

    def delete_root_dir_contents(self):
        raise NotImplementedError

    def delete_file(self, path):
        self.inner.delete_file(path)

    def move(self, _src, _dest):
        raise AssertionError("nothing may rely on a rename")

    def copy_file(self, src, dest):
        self.inner.copy_file(src, dest)

    def open_input_stream(self, path):
        if self.failing_reads:
            raise OSError(errno.EIO, "Input/output error")
        return self.inner.open_input_stream(path)

    def open_input_file(self, path):
        return self.inner.open_input_file(path)

    def open_output_stream(self, path, _metadata):
        stream = self.inner.open_output_stream(path)
        return stream if self.full_after is None else pa.PythonFile(_FullDisk(stream, self.full_after), mode="w")

    def open_append_stream(self, _path, _metadata):
        raise AssertionError("nothing may rely on appending")


class _FullDisk:
    """Takes some bytes, then no more."""

    def __init__(self, stream, left):
        self.stream, self.left, self.closed = stream, left, False

    def write(self, data):
        data = memoryview(data)
        self.stream.write(data[: self.left])
        self.left -= min(self.left, len(data))
        if self.left == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return len(data)

    def flush(self):
        pass

    def close(self):
        self.closed = True
        self.stream.close()


def failing_filesystem(inner=None):
    handler = FailingHandler(inner or fs.LocalFileSystem())
    return fs.PyFileSystem(handler), handler
