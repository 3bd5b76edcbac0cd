"""One network on several processes, on torch.distributed: by rows of the batch, by units, or by layers."""

from ptncn.distributed.data_parallel import DataParallel
from ptncn.distributed.layer_parallel import LayerParallel
from ptncn.distributed.ranks import Ranks, RanksError, connect

__all__ = ["DataParallel", "LayerParallel", "Ranks", "RanksError", "connect"]
