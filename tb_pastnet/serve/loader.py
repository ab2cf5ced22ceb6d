"""The entry point for TensorBoard: `tensorboard_plugins` names the class in this module.

TensorBoard imports this module and calls `fix_flags` without any protection: an exception here
would stop it for all plugins. So only the standard library and TensorBoard's own base class are
imported, every body is guarded, and the rest is imported in `load`.
"""

from __future__ import annotations

import argparse
import logging

from tensorboard.plugins import base_plugin

_PLUGIN = "pastnet"
_KEEP_ALL = 0

logger = logging.getLogger(__name__)


class PastNetLoader(base_plugin.TBLoader):
    """Loads the plugin, or a stand-in that shows in the tab why it can't be loaded."""

    def fix_flags(self, flags: argparse.Namespace) -> None:
        """Asks TensorBoard to keep all our records instead of 10 or 100 random ones.

        A user's own `--samples_per_plugin pastnet=...` is respected. Flags in an unknown form stay
        as they are.
        """
        try:
            flags.samples_per_plugin.setdefault(_PLUGIN, _KEEP_ALL)
        except Exception:  # a plugin must never stop TensorBoard
            logger.debug("samples_per_plugin could not be set", exc_info=True)

    def load(self, context: base_plugin.TBContext) -> base_plugin.TBPlugin | None:
        """The plugin; if a part is missing or broken, a stand-in that shows so, or None."""
        try:
            from tb_pastnet.serve.plugin import PastNetPlugin

            return PastNetPlugin(context)
        except Exception as error:  # a plugin must never stop TensorBoard
            logger.warning("The PastNet tab could not be loaded: %s", error)
            return self._stand_in(error)

    def _stand_in(self, error: Exception) -> base_plugin.TBPlugin | None:
        try:
            from tb_pastnet.serve.explain import StandInPlugin

            return StandInPlugin(error)
        except Exception:  # a plugin must never stop TensorBoard
            logger.debug("The stand-in of the PastNet tab failed too", exc_info=True)
            return None
