"""offered = shown + superseded + thinned + dropped + unreadable, always."""

from tb_pastnet.core.account import Account, settle


def balanced(account: Account) -> bool:
    return account.offered == (
        account.shown + account.superseded + account.thinned + account.dropped + account.unreadable
    )


def test_what_is_missing_is_unreadable():
    account = settle(offered=20, shown=10, superseded=3, thinned=4, dropped=1, damaged=1)
    assert account == Account(20, 10, 3, 4, 1, 2)
    assert balanced(account)


def test_bytes_that_were_never_ours_count_as_offered():
    account = settle(offered=5, shown=5, superseded=0, thinned=0, dropped=0, damaged=2)
    assert account == Account(7, 5, 0, 0, 0, 2)


def test_a_killed_writer_is_believed_as_far_as_it_came():
    account = settle(offered=3, shown=5, superseded=0, thinned=0, dropped=0, damaged=0)
    assert account == Account(5, 5, 0, 0, 0, 0)
    assert balanced(account)
