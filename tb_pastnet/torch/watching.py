"""Records a module, or what a trainer trains, by one call."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tb_pastnet.core.arguments import answered, names_of
from tb_pastnet.core.expected import Expect
from tb_pastnet.core.follow_pairs import Follows
from tb_pastnet.core.subject import TORCH, TRAINER, check_subject, kind_of
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format.files import join
from tb_pastnet.record.alerts import LOG, Wish
from tb_pastnet.record.log_arguments import EXIT_TIMEOUT
from tb_pastnet.record.options import NAMES, Options, TrainerOptions
from tb_pastnet.record.scalars import LogFunction


@answered
def watch(  # noqa: D417 - options are described once
    model: Any,
    logdir: str | os.PathLike[str] | None = None,
    optimizer: Any = None,
    *,
    every: int = 10,
    past: str | int = "previous",
    variables: Iterable[Any] | None = None,
    channel_axis: Mapping[Any, int | tuple[int, ...]] | None = None,
    trainable: Mapping[Any, Any] | None = None,
    kept: Mapping[Any, Any] | None = None,
    masks: Any = None,
    follows: Follows = None,
    expect: Expect = None,
    config: Mapping[str, Any] | None = None,
    audit: bool | str = True,
    budget: float | None = None,
    on_violation: Wish = LOG,
    log: LogFunction | None = None,
    initial_step: int | None = None,
    exit_timeout: float = EXIT_TIMEOUT,
) -> Any:
    """Records a torch module after each step of its optimizer, without a call in the loop.

    A step is one of an optimizer that has a parameter of the module. The Recorder, and so the
    module, is kept until the program ends, which closes the log, or until `close`.

    Args:
        model: a torch.nn.Module; or Lightning's Trainer or Hugging Face's, before it trains: then
            the callback is added to it, and `optimizer` and `initial_step` are the trainer's.
        logdir: the run's directory. None: that of the trainer; for a module a new one in `runs`,
            by time and host, as TensorBoard's SummaryWriter names it.
        optimizer: the one whose steps count, or a list, each step of which counts. None: each step
            of any that has a parameter of the module.
        every: like all other options, as for `pastnet.torch.Recorder`.

    Returns:
        The `pastnet.torch.Recorder`, or the trainer's callback.

    Raises:
        InvalidArgument: it is a model of another framework: the answer has the call for that.

    Example:
        >>> import tempfile, torch
        >>> model = torch.nn.Linear(2, 3)
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> recorder = watch(model, tempfile.mkdtemp(), every=1)
        >>> for _ in range(3):
        ...     model(torch.ones(4, 2)).sum().backward()
        ...     optimizer.step()
        >>> recorder.last_step
        3
        >>> recorder.close()
    """
    kind = kind_of(model)
    if kind == TRAINER:
        return _added(model, logdir, TrainerOptions.of(locals()))
    options = Options.of(locals())
    check_subject(model, TORCH, "watch")
    if kind != TORCH:
        raise InvalidArgument(
            f"Could not watch {type(model).__name__}: expected model= a torch.nn.Module or a "
            f"trainer of Lightning or Hugging Face, got {type(model).__name__}. Pass one of these."
        )
    from tb_pastnet.torch.optimizer_steps import optimizers_in
    from tb_pastnet.torch.recorder import Recorder

    counted = optimizers_in(optimizer)
    given = options.only(*(name for name in names_of(Recorder) if name in NAMES))
    # A named optimizer counts; others may train the module, too.
    recorder = Recorder(_new_run() if logdir is None else logdir, model, **given)
    recorder.record_each_step(counted)
    recorder.close_at_exit()
    return recorder


def _new_run() -> str:
    return str(Path("runs", f"{time.strftime('%b%d_%H-%M-%S')}_{socket.gethostname()}"))


def _added(trainer: Any, logdir: str | os.PathLike[str] | None, options: Options) -> Any:
    """The callback that a trainer has from now on."""
    if hasattr(trainer, "add_callback"):  # Hugging Face's
        from tb_pastnet.torch.hugging_face_callback import HuggingFaceCallback as Made

        folder, add = trainer.args.output_dir, trainer.add_callback
    else:
        from tb_pastnet.torch.lightning_callback import LightningCallback as Made

        folder, add = trainer.default_root_dir, trainer.callbacks.append
    given = options.only(*(name for name in names_of(Made) if name in NAMES))
    callback = Made(join(folder, "pastnet") if logdir is None else logdir, **given)
    add(callback)
    return callback
