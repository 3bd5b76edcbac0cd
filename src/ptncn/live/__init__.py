"""The live page: a world or a stream that one watches while learners learn it.

The learner never waits for a visitor and does not know whether there is one: it leaves its newest frame where the
server finds it. All visitors of a page see, and change, the same world or stream.
"""

from ptncn.live.pace import Pace
from ptncn.live.server import Server, make_app
from ptncn.live.stream import StreamPage
from ptncn.live.world import WorldPage

__all__ = ["Pace", "Server", "StreamPage", "WorldPage", "make_app"]
