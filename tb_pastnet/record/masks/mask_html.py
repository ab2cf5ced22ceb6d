"""Masks as notebooks show them."""

from __future__ import annotations

from tb_pastnet.core.html_table import html_table
from tb_pastnet.record.masks.mask_table import MaskTable

KERNEL = "kernel"


def masks_html(title: str, table: MaskTable) -> str:
    """A row for each kernel, and for each other weight of which something is held."""
    rows = []
    for name, weight in table.weights.items():
        kept, trainable = table.read(name)
        pruned, frozen = int((~kept).sum()), int((kept & ~trainable).sum())
        if weight.role == KERNEL or pruned or frozen:
            share = f"{pruned / max(kept.size, 1):.1%}"
            rows.append((name, weight.shape, kept.size, share, pruned, frozen))
    return html_table(title, ("weight", "shape", "elements", "sparsity", "pruned", "frozen"), rows)
