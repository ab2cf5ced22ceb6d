"""When a record is due, whether the budget allows it, and which past values it is compared with."""

from __future__ import annotations

from contextlib import suppress
from operator import index
from typing import Any, NamedTuple

from tb_pastnet.core import thinning
from tb_pastnet.core.checks import is_number, is_whole
from tb_pastnet.core.thinning import is_stored, stride_at
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format.limits import MAX_STEP
from tb_pastnet.format.overhead import Overhead
from tb_pastnet.record.overhead_timer import OverheadTimer
from tb_pastnet.record.updates import Updates

NAMED = ("previous", "record", "epoch", "initial")
MOST_COPIES = 16
"""Past copies that a lag of k steps may need at once."""


class Action(NamedTuple):
    """What to do at a step, in this order.

    Attributes:
        compare: the copy that the record is compared with.
        past_step: the step of that copy; None if the record has nothing to be compared with.
        copy: the copy to take after it, None for none. Call `Schedule.copied` once it is taken.
        stored: whether the record is stored, whatever happened since the one before.
        thinned: what leaves out a record that is due, BUDGET or RULE; "" if none is.
        note: a note for the user about its past; "" for none.
        last: whether the record is the last one, as far as is known.
    """

    record: bool
    compare: int
    past_step: int | None
    copy: int | None
    stored: bool = True
    thinned: str = ""
    note: str = ""
    last: bool = False


BUDGET, RULE = "budget", "rule"

UNKNOWN_PAST = (
    "Made a record without deltas: its past values are unknown. Call `record` at each step, or use "
    'past="record"; if the first call isn\'t for step 1, pass initial_step='
)


class Schedule:
    """Decides at each step what is due.

    Records are due when `step // every` grows, at the first step, and at the last if it is
    announced. The previous value is copied one step before a record is due, so the record doesn't
    depend on `every`. Under `steps_per_execution` a "step" is one execution. With a lag of several
    steps the first and the last are left out: no copy is as old as that.

    Args:
        every, past, budget, probe_every: as for a Recorder, or InvalidArgument. If a copy serves
            only one record, whether that is made is decided before the copy.
        start: the step of the current values; None if it is only known from the first step.
        timer: of the training and the recording overhead; None: a new one.
        measures_all: makes records that the rule of `core.thinning` leaves out, too.

    Attributes:
        copies: how many past copies are held.
        last: the last step seen.
        now: the step of the current values, even if `advance` couldn't be called for it.
        made: updates since the last call, if something counts them; otherwise 0.
        overdue: after more updates than these since the last call, one was left out: `updated` may
            need a copy.
        sees_all: no step is made without a call, except for those of one execution.
        quiet_until: before this step nothing is due, while steps follow one another.
    """

    def __init__(
        self,
        every: int,
        past: str | int,
        start: int | None = 0,
        budget: float | None = None,
        timer: OverheadTimer | None = None,
        probe_every: int = 1,
        *,
        measures_all: bool = False,
    ) -> None:
        check(every, past, budget, probe_every)
        start = check_start(start)
        self.probe_every = int(probe_every)
        self.every = every = int(every)
        self.past = past = past if isinstance(past, str) else int(past)
        self.timer = OverheadTimer() if timer is None else timer
        self._budget = None if budget is None else Budget(float(budget), self.timer)
        lag = past if isinstance(past, int) else 1
        self.copies = -(-lag // every)
        self._lag = lag if isinstance(past, int) or past == "previous" else None
        # The past of a record is the one that was due before it.
        self._measures_all = measures_all or past == "record"
        self._unmade = (BUDGET,) if self._measures_all else (BUDGET, RULE)
        self.last = self.now = start
        # Due besides multiples of `every`.
        self._first = self._end = -1
        self._start = start
        if start is not None:
            self._begin(start)
        # Steps of the copies; None if one was never taken, or isn't of a known step.
        self._steps: list[int | None] = [start, *[None] * (self.copies - 1)]
        self._unknown = start is None
        self.sees_all = False
        self.made, self.overdue = 0, 1
        self.updates = Updates()
        # Copies taken since the last call, and after how many updates.
        self._between: dict[int, int] = {0: 0} if start is None else {}
        # The last call, that at which a multiple of `every` was reached, and the steps to the last.
        self._call = start
        self._due_at: int | None = None
        self._stride = 0
        self._synced = -1  # the last call before that of `sync`
        # What leaves out a due record, once decided, and how many the budget has granted.
        self._decided: dict[tuple[int, bool], str] = {}
        self._granted = 0
        self.quiet_until = 0

    @property
    def start(self) -> int | None:
        """The step of the values before the first call; None as long as it is unknown."""
        return self._start

    def goes_back(self, step: int) -> bool:
        """Whether a step isn't later than the last one."""
        return self.last is not None and step <= self.last

    def knows(self, copy: int) -> bool:
        """Whether a copy holds the values of a known step."""
        return self._steps[copy] is not None

    def copied(self, copy: int) -> None:
        """Notes that the current values were copied."""
        self._between.pop(copy, None)
        self._steps[copy] = self.now
        if self.made:
            # Until the next call says which step it was.
            self._steps[copy] = (self.last or 0) + self.made // self.updates.each
            self._between[copy] = self.made

    def updated(self, made: int) -> int | None:
        """The copy to take after `made` updates since the last call, before anything follows."""
        self.made = made
        steps, rest = divmod(made, self.updates.each)
        if self._lag is None or rest:
            return None
        last, sparse = self.last or 0, self.updates.sparse and self._stride > 0
        due = last + steps + self._lag
        stride = self._stride if sparse and (due - last) % self._stride == 0 else 1
        # If calls follow each step, the last one has copied what the next needs.
        has_own = self._lag == 1 and self._stride and not sparse and self._steps[0] == last
        if has_own or not self._is_due(due - stride, due):
            return None
        return self._free() if self._left_out(due) not in self._unmade else None

    def skipped(self, step: int) -> int | None:
        """The copy to take at a call without an update: at the next step a record may be due."""
        if self._unknown and step <= 1:
            self._begin_unknown(step)
            self.last = step - 1
        self.now = self._call = step
        if self._lag != 1 or self._steps[0] == self.last or not self._is_due(step, step + 1):
            return None
        return 0 if self._left_out(step + 1) not in self._unmade else None

    def count(self, trainers: int) -> None:
        """Updates are counted from now on, of so many optimizers."""
        self.updates.trainers = max(trainers, 1)
        self.overdue = self.updates.each - self.updates.sparse

    def restart(self, step: int) -> int | None:
        """Starts again at a step. Returns the copy to take, if any: with "initial" it stays."""
        self.last = self.now = self._call = step
        self._unknown = False
        self.made, self._stride, self._due_at = 0, 0, None
        self._between.clear()
        self.quiet_until = self._granted = 0
        self._decided.clear()
        self._begin(step)
        self._end = -1
        if self._budget is not None:
            self._budget.begin()
        if self.past == "initial":
            return None
        self._steps = [None] * self.copies
        return 0

    def expect_end(self, step: int) -> None:
        """Notes the last step of a training, as far as is known."""
        if self._lag in (None, 1):
            self._end = step
            self.quiet_until = 0

    def sync(self) -> int:
        """Makes the current values the past. Returns the copy to take now."""
        self._steps[0] = None
        self._synced = -1 if self.now is None else self.now
        return 0

    def passes(self, step: int) -> bool:
        """Moves to the next step if `advance` found that nothing is due there: quick."""
        if step >= self.quiet_until or step - 1 != self.last or self._between:
            return False
        self.last = self.now = self._call = step
        self.made = 0
        return True

    def advance(self, step: int) -> Action:
        """Moves to a later step: returns what is due."""
        previous = step - 1 if self.last is None else self.last
        if self._unknown:
            self._begin_unknown(step)
            previous = step - 1 if self._start is None else self._start
        else:
            # Calls without an update are calls.
            # One of this step before its update, as where a GradScaler left it out, isn't.
            called = previous if self._call in (None, step) else self._call
            self._settle(step, step - (called or 0))
        self.last = self.now = step
        due = self._is_due(previous, step)
        if due and self._decided:
            # Skipped steps are no longer due.
            number = step // self.every
            self._decided = {key: yes for key, yes in self._decided.items() if key[0] >= number}
        left_out = self._left_out(step) if due else ""
        record = due and left_out not in self._unmade
        compare = self._compare(step) if due else 0
        past_step, note = self._past(step, previous, compare)
        self._stride, self._call = step - previous, step
        if step // self.every > previous // self.every:
            self._due_at = step
        copy = self._copy(step, 1 if self.updates.sparse else self._stride, record)
        if copy is not None:
            self._steps[copy] = None
        self.quiet_until = self._next_due(step)
        if due:
            self._granted += left_out != BUDGET
            if self._decided:
                self._decided.pop(self._key(step), None)
        if left_out and not record:
            note = ""  # no copy was taken for it
        last, thinned = step == self._end, "" if record else left_out
        return Action(record, compare, past_step, copy, not left_out, thinned, note, last)

    def end(self, recorded: int) -> tuple[int, Action]:
        """The step and the past of a record of the values at the end.

        Its step is the last one, as far as it is known. If that has a record, the newest, it is the
        next after it.

        Args:
            recorded: the step of the newest record; -1 without any.
        """
        step = max((self.now or 0) + self.made // self.updates.each, recorded + 1)
        taken = [
            (step_of, copy)
            for copy, step_of in enumerate(self._steps)
            if step_of is not None and step_of < step and copy not in self._between
        ]
        past_step, compare = max(taken, default=(None, 0))
        # As after other records: training may continue.
        copy = 0 if self.past in ("previous", "record") else None
        return step, Action(True, compare, past_step, copy, last=True)

    def finished(self) -> None:
        """Notes that a record was made at the last step seen, or has failed."""
        if self._budget is not None:
            self._budget.finished()

    def due_before(self, records: int) -> int:
        """How many records are due before the next that is made, and `records` more."""
        stride = 1 if self._measures_all else stride_at(self._granted)
        return -self._granted % stride + records * stride

    def _begin(self, start: int) -> None:
        """The values of a step can be compared with the next."""
        self._start = start
        self._first = start + 1 if self._lag in (None, 1) else -1

    def _begin_unknown(self, step: int) -> None:
        """Begins with the first step seen: which one the values before are of may be uncertain."""
        self._unknown = False
        self._begin(step - 1)
        has_start, made = self._between.get(0) == 0, self.made
        self._settle(step, max(step, 1))
        back = self.updates.back(made) if made else None
        if back is None and step <= 1:
            back = 1
        self._start = None if back is None else step - back
        if has_start:
            self._steps[0] = self._start

    def _settle(self, step: int, stride: int) -> None:
        """Names the copies taken since the last call, counting updates back from a step."""
        made, self.made = self.made, 0
        self.updates.call(made, stride)
        if self._between:
            for copy, after in self._between.items():
                back = self.updates.back(made - after)
                self._steps[copy] = None if back is None else step - back
            self._between.clear()
        self.overdue = self.updates.each - self.updates.sparse
        since = step - self._synced if self._synced >= (self._call or 0) else 0
        if since > 1 and not (made or self.sees_all):
            self._steps[0] = None  # steps may have followed that call before `sync`
        self._synced = -1

    def _past(self, step: int, previous: int, compare: int) -> tuple[int | None, str]:
        """The step of the copy to compare with, None if it isn't what was asked for; and a note."""
        past, stride = self._steps[compare], step - previous
        if past is None:
            return None, UNKNOWN_PAST
        if self._lag is None or self.sees_all:
            return past, ""
        asked = step - self._lag if self._start is None else max(step - self._lag, self._start)
        # A copy of an earlier call may replace it, but not that of the last one.
        replaces = past < step and (self._lag > 1 or past > step - self._lag - stride)
        if past == asked or (replaces and not self._only_due(step, previous)):
            return past, ""
        return None, UNKNOWN_PAST

    def _only_due(self, step: int, previous: int) -> bool:
        """Whether calls leave out all steps between two at which records are due."""
        no_gap = step - previous == 1 or self._call in range(previous + 1, step)
        if self.sees_all or self.updates.counted or self.every == 1 or no_gap:
            return False
        after_due = previous == self._due_at or previous % self.every == 0
        return after_due and step // self.every > previous // self.every

    def _next_due(self, step: int) -> int:
        """The next record, or the next step that is `_lag` before one."""
        every, lag, end = self.every, self._lag or 0, self._end
        due = step + every - max(step % every, (step + lag) % every)
        return due if end <= step else min(due, end - lag if end - lag > step else end)

    def _is_due(self, previous: int, step: int) -> bool:
        """Whether a record is due at a step that follows another."""
        every = self.every
        besides = previous < self._first <= step or previous < self._end <= step
        return besides or step // every > previous // every

    def _left_out(self, step: int) -> str:
        """What leaves out the record due at a step; a repeated call returns the same."""
        if self._budget is None and self._granted + 1 < thinning.CAPACITY:
            return ""  # so far each is stored, and the next one
        key = self._key(step)
        if key not in self._decided:
            waiting = [other for other, why in self._decided.items() if why != BUDGET]
            if self._budget is not None and not self._budget.affords(len(waiting)):
                self._decided[key] = BUDGET
            else:
                # The first and the last are stored in any case.
                number = self._granted + sum(other < key for other in waiting)
                self._decided[key] = "" if key[1] or is_stored(number) else RULE
                for later in waiting:
                    if later > key and self._budget is None:
                        del self._decided[later]  # it has another number now
        return self._decided[key]

    def _key(self, step: int) -> tuple[int, bool]:
        """The record of a step: the n-th due by `every`, or an additional one."""
        return step // self.every, step in (self._first, self._end)

    def _compare(self, step: int) -> int:
        if self.copies == 1:
            return 0
        taken = [(step_of, copy) for copy, step_of in enumerate(self._steps) if step_of is not None]
        if self._lag is None or not taken:
            return 0
        # The youngest that is old enough; until there is one, the oldest.
        old_enough = [entry for entry in taken if entry[0] <= step - self._lag]
        return max(old_enough)[1] if old_enough else min(taken)[1]

    def _copy(self, step: int, stride: int, record: bool) -> int | None:
        if self._lag is None:
            return 0 if self.past == "record" and record else None
        # The step that would be compared with these values, if steps continue like the last ones.
        due = step + stride * -(-self._lag // stride)
        if not self._is_due(due - stride, due) or self._left_out(due) in self._unmade:
            return None
        if due - step != self._lag and self._only_due(due, step):
            return None
        return self._free()

    def _free(self) -> int:
        """A copy without values that are needed."""
        if self.copies == 1:
            return 0
        free = [copy for copy, taken in enumerate(self._steps) if taken is None]
        oldest = min(range(self.copies), key=lambda copy: self._steps[copy] or 0)
        return free[0] if free else oldest


class Budget:
    """Grants a record if the time spent and its expected time stay within the share.

    All time that training waited for counts as spent. A record is expected to take as long as the
    last one. The first of a lineage, for which TensorFlow compiles, is always granted; until the
    share has made up for it, the others get half of the share. So with a first record of f seconds,
    after T seconds at most max(share T, f + share T / 2) were spent, plus the excess of the last
    record over its expected time.
    """

    def __init__(self, share: float, timer: OverheadTimer) -> None:
        self._share = share
        self._timer = timer
        self.begin()

    def begin(self) -> None:
        """Starts again, for a new lineage."""
        self._made = 0
        self._expected = self._first = 0.0
        self._paid = _of_records(self._timer.so_far())

    def affords(self, waiting: int = 0) -> bool:
        """Whether one more record fits, in addition to granted ones that aren't made yet."""
        if self._made < 2 and (waiting or not self._made):
            # The time of a record is still unknown: one at a time, and the first in any case.
            return not waiting
        cost = self._timer.so_far()
        total = cost.seconds + (1 + waiting) * self._expected
        allowed = self._share * cost.training
        return total <= allowed or total - self._first <= allowed / 2

    def finished(self) -> None:
        """Notes that a record was made, or has failed: the next is expected to take as long."""
        cost = self._timer.so_far()
        paid = _of_records(cost)
        if self._made:
            self._expected = paid - self._paid
        else:
            self._first = cost.seconds
        self._made += 1
        self._paid = paid


def _of_records(cost: Overhead) -> float:
    return cost.records + cost.copies + cost.probe


def check(every: Any, past: Any, budget: Any, probe_every: Any = 1) -> None:
    """Raises InvalidArgument for settings that can't be used."""
    if not is_whole(probe_every) or not 1 <= probe_every <= MAX_STEP:
        raise InvalidArgument(
            f"Could not schedule the probe: expected probe_every= a whole number of records of at "
            f"least 1, got {probe_every!r:.60}. Use probe_every=1 for each record."
        )
    if not is_whole(every) or not 1 <= every <= MAX_STEP:
        raise InvalidArgument(
            f"Could not schedule records: expected every= a whole number of at least 1, got "
            f"{every!r:.60}. Use every=1 to record each step."
        )
    if is_whole(past):
        if not 1 <= past <= MOST_COPIES * every:
            raise InvalidArgument(
                f"Could not schedule records: expected past= from 1 to {MOST_COPIES * every} steps "
                f"with every={every}, got {past}. Each copy takes the memory of the weights: "
                f"record less often to look back further."
            )
    elif not isinstance(past, str) or past not in NAMED:
        raise InvalidArgument(
            f"Could not schedule records: expected past= one of {', '.join(map(repr, NAMED))} or a "
            f"number of steps, got {past!r}. Use the default, 'previous'."
        )
    is_share = is_number(budget) and 0 < budget < 1
    if budget is not None and not is_share:
        raise InvalidArgument(
            f"Could not schedule records: expected budget= a share of the training's time above 0 "
            f"and below 1, got {budget!r}. Use budget=0.01 for 1 %, or None for no limit."
        )


def check_start(initial_step: Any) -> int | None:
    """The step of the values now, of a framework's own type, too; raises InvalidArgument."""
    if initial_step is None:
        return None
    with suppress(TypeError):
        if (step := index(initial_step)) >= 0:
            return step
    raise InvalidArgument(
        f"Could not schedule records: expected initial_step= a whole number from 0 on, got "
        f"{initial_step!r:.60}. Use the step of the checkpoint, or leave it out."
    )
