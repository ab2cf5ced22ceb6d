"""The beginning of a log: what it says of itself, and where its weights come from."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from tb_pastnet.errors import UnreadableRecord
from tb_pastnet.format.description import Description, decode_description, encode_description
from tb_pastnet.format.tags import TAG_DESCRIPTION, RunName, lineage_directory
from tb_pastnet.record.messages import Message, read_messages
from tb_pastnet.record.segments import join, lineages, list_directory, open_to_read
from tb_pastnet.record.weight import Network, Weight


def origin(network: Network[Weight]) -> str:
    """A fingerprint of a model's values: runs that start from the same ones share it.

    Returns:
        32 hexadecimal digits, blake2b over ids and bytes.
    """
    digest = hashlib.blake2b(digest_size=16)
    for weight in network.everything:
        digest.update(repr((weight.name, weight.dtype, weight.shape)).encode())
        digest.update(np.ascontiguousarray(weight.effective()).tobytes())
    return digest.hexdigest()


class Describer:
    """Makes the description that opens each segment of a lineage."""

    def __init__(
        self,
        run: RunName,
        network: Network[Weight],
        *,
        every: int,
        past: str | int,
        own_origin: str,
        resumed: bool,
        audited: bool = False,
        packages: Sequence[str] = (),
    ) -> None:
        self._run = run
        self._network = network
        self._every = every
        self._past = str(past)
        self._origin = own_origin
        # Then the origin is that of the lineage before, where there is one.
        self._resumed = resumed
        self._audited = audited
        self._packages = packages
        self._description: Description | None = None

    def __call__(self, first_step: int, step: int) -> Message:
        """The description as a message, from the lineage's first step and that of its event."""
        if self._description is None:
            self._description = self._describe(first_step)
        sealed = encode_description(self._description, tag=TAG_DESCRIPTION, step=step)
        return Message(TAG_DESCRIPTION, step, sealed)

    def _describe(self, first_step: int) -> Description:
        inherited = inherited_origin(self._run) if self._resumed else None
        return Description(
            lineage=self._run.lineage,
            ordinal=self._run.ordinal,
            origin=inherited or self._origin,
            every=self._every,
            past=self._past,
            first_step=first_step,
            created=time.time(),
            versions=_versions(self._packages),
            layers=self._network.layers,
            variables=tuple(weight.text for weight in self._network.weights),
            skipped=self._network.skipped,
            audited=self._audited,
        )


def inherited_origin(run: RunName) -> str | None:
    """The origin of the newest lineage before another one that has a readable one; None without."""
    earlier = [lineage for lineage in lineages(run.run) if lineage.ordinal < run.ordinal]
    for lineage in reversed(earlier):
        inherited = _read_origin(run.run, lineage)
        if inherited is not None:
            return inherited
    return None


def _read_origin(logdir: str, run: RunName) -> str | None:
    directory = join(logdir, lineage_directory(run.ordinal, run.lineage))
    for name in sorted(list_directory(directory)):
        with open_to_read(join(directory, name)) as stream:
            for message in read_messages(stream):
                if message.tag != TAG_DESCRIPTION:
                    continue
                try:
                    return decode_description(
                        message.payload, tag=message.tag, step=message.step, lineage=run.lineage
                    ).origin
                except UnreadableRecord:
                    break
    return None


def _versions(packages: Sequence[str]) -> dict[str, str]:
    versions = {}
    for package in ("tb-pastnet", *packages):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions
