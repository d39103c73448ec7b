"""A module with managers, as users write it."""

PROGRAM = """
from aioinformer import Resource
from aioinformer.controller import LeaderElection, Manager, Watch
from aioinformer.models import core_v1

CRONS = Resource("example.com", "v1", "crons", kind="Cron")
manager = Manager("widgets", leader_election=LeaderElection("widgets-lease", namespace="ops"))


@manager.controller(
    core_v1.CONFIG_MAPS,
    owns=[core_v1.SECRETS],
    watches=[Watch(core_v1.NODES, to=lambda node: [])],
    writes={core_v1.SECRETS: ("create", "patch"), core_v1.CONFIG_MAPS: ("patch",)},
)
async def widgets(request):
    if request.object is not None and not request.object.data:
        await request.client.core.v1.configmaps.patch(request.object, {"data": {"seen": "yes"}})
        print("patched", request.key, flush=True)


with_a_missing_kind = Manager("crons")


@with_a_missing_kind.controller(CRONS)
async def crons(request): ...


number = 3
"""

LEVELS = """
import logging

from aioinformer.controller import Manager, Retry
from aioinformer.models import core_v1

manager = Manager("levels")


@manager.controller(core_v1.CONFIG_MAPS)
async def levels(request):
    logging.getLogger("of.the.user").debug("a detail")
    if request.attempt == 1:
        raise Retry("dns answers 500")
    print("done", flush=True)
"""
