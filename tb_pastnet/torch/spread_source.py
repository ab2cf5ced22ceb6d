"""The source of a module whose weights are spread over ranks, as by FSDP2."""

from __future__ import annotations

from functools import partial

from torch import nn

from tb_pastnet.record.failures import Failures
from tb_pastnet.record.schedule import Schedule
from tb_pastnet.record.source import Floats
from tb_pastnet.record.spread.audit import SpreadAudit
from tb_pastnet.record.spread.gathering import SpreadMeasures
from tb_pastnet.record.weight import Network
from tb_pastnet.torch.module_audit import ModuleAudit, ModuleCauses
from tb_pastnet.torch.module_weights import TorchWeight
from tb_pastnet.torch.modules import reshard
from tb_pastnet.torch.optimizer_steps import OptimizerSteps
from tb_pastnet.torch.ranks import Ranks
from tb_pastnet.torch.spread_weights import parts_of
from tb_pastnet.torch.torch_source import TensorSource, TorchSource, process_and_count


class SpreadSource(TorchSource):
    """Returns the statistics gathered on rank 0; unused on other ranks."""

    def __init__(
        self, network: Network[TorchWeight], steps: OptimizerSteps, spread: SpreadMeasures
    ) -> None:
        self._spread = spread
        super().__init__(network, steps)

    def copy(self, number: int) -> None:
        """See `Source`: all ranks copy by their own schedule."""

    def compare(self, number: int, *, replace: bool = False) -> Floats:
        """See `Source`."""
        return self._spread.gathered()


def measures_of(
    module: nn.Module,
    network: Network[TorchWeight],
    steps: OptimizerSteps,
    schedule: Schedule,
    failures: Failures,
    *,
    audit: bool,
) -> SpreadMeasures:
    """Measures the rows of this rank, and gathers those of all. Call it on each rank."""
    ranks, first, settle = Ranks(), process_and_count()[0] == 0, partial(reshard, module)
    parts = parts_of(network.weights, ranks.count, first=first)
    own = TensorSource(Network(tuple(part.weight for part in parts.values()), (), (), ()))
    audited = None
    if audit:
        held = [each for each in network.weights if not (each.statistic or each.entry.computed)]
        own_held = [each for each in held if each.name in parts and parts[each.name].channels.size]
        statistics = [each for each in network.weights if each.statistic]
        flags = ModuleAudit([*own_held, *statistics], ModuleCauses(steps), failures)
        audited = SpreadAudit(flags, held, parts, settle, failures)
    return SpreadMeasures(
        network, own, parts, ranks, schedule, audited, failures, settle=settle, writes=first
    )
