"""What several commands say in the same words."""

from __future__ import annotations

from dataclasses import asdict

from tb_pastnet.core.account import Account


def account_text(account: Account) -> str:
    """An account in words, without what is 0.

    Example:
        >>> account_text(Account(5, shown=4, thinned=1))
        '5 offered: 4 shown, 1 thinned'
    """
    parts = [f"{n:,} {name}" for name, n in asdict(account).items() if n and name != "offered"]
    return f"{account.offered:,} offered" + (f": {', '.join(parts)}" if parts else "")
