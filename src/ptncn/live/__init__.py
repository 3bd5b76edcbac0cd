"""The live page: watch learners learn a moving world or a stream.

The learner never waits for a visitor: it publishes its newest frame whether or not a page is open. All visitors of a
page see and control the same world or stream.
"""

from ptncn.live.pace import Pace
from ptncn.live.server import Server, make_app
from ptncn.live.stream import StreamPage
from ptncn.live.world import WorldPage

__all__ = ["Pace", "Server", "StreamPage", "WorldPage", "make_app"]
