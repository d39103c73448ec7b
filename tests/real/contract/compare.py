"""Send the objects of manifests to the server for tests and to a real API server, and compare what they answer.

    python -m tests.real.contract.compare FOLDER [--verb apply|create] [--kubeconfig FILE]

Each object is sent to both servers, in the order of the files; the namespaces that the objects name are created first.
Statuses, objects and the causes of refusals are compared. What differs between any two servers (times, uids, versions,
the texts of errors) is left out. The exit code is 1 if something differs. Use an empty cluster that is for tests only:
the objects stay there.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aioinformer import ApiError, Client, HttpTransport, connect, load_manifests
from aioinformer.models import apiextensions_v1
from aioinformer.resources import UnknownResource
from aioinformer.testing import ApiServer
from tests.real.contract.recordings import compare, without_texts
from tests.support.normal import Normal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from aioinformer.resources import Manifest

_APPLY = "application/apply-patch+yaml"
_WAIT = 30.0


class Side:
    """One of the two servers."""

    def __init__(self, client: Client, verb: str) -> None:
        self._client = client
        self._verb = verb

    async def prepare(self, namespaces: Iterable[str]) -> None:
        """Create the namespaces that do not exist."""
        for namespace in namespaces:
            try:
                await self._client.core.v1.namespaces.create({"metadata": {"name": namespace}})
            except ApiError as error:
                if error.status != 409:
                    raise

    async def send(self, manifest: Manifest) -> Any:
        """Send an object; return what can be compared of the answer."""
        try:
            path = await self._path(manifest)
        except UnknownResource as error:
            return {"unknown": str(error)}
        normal = Normal({})
        query = {"fieldManager": "compare"}
        body = dict(manifest)
        name = str(manifest["metadata"].get("name"))
        try:
            if self._verb == "create":
                answer = await self._client.request("POST", path, query=query, body=body)
            else:
                where = f"{path}/{name}"
                answer = await self._client.request("PATCH", where, query=query, body=body, content_type=_APPLY)
        except ApiError as error:
            status = {"kind": "Status", "status": "Failure", "details": dict(error.details), "reason": error.reason}
            return {"status": error.status, "refused": without_texts(normal.value(status))}
        if manifest["kind"] == "CustomResourceDefinition":
            await self._established(name)
        return {"status": answer.status, "object": normal.value(answer.json())}

    async def _path(self, manifest: Manifest) -> str:
        resource = (await self._client.resource_for(manifest)).resource
        namespace = str(manifest["metadata"].get("namespace") or "default")
        return resource.path(namespace if resource.namespaced else "")

    async def _established(self, name: str) -> None:
        definitions = self._client.resource(apiextensions_v1.CUSTOM_RESOURCE_DEFINITIONS)
        async with asyncio.timeout(_WAIT):
            while True:
                if _is_served(await definitions.get(name)):
                    return
                await asyncio.sleep(0.1)


def _is_served(definition: apiextensions_v1.CustomResourceDefinition) -> bool:
    conditions = (definition.status and definition.status.conditions) or ()
    return any(each.type == "Established" and each.status == "True" for each in conditions)


async def differences(manifests: Sequence[Manifest], ours: Side, real: Side) -> dict[str, list[str]]:
    """Send all objects to both servers; return a line for each difference, by object."""
    namespaces = {str(each["metadata"].get("namespace") or "") for each in manifests} - {"", "default"}
    found: dict[str, list[str]] = {}
    for side in (ours, real):
        await side.prepare(sorted(namespaces))
    for manifest in manifests:
        recorded = await real.send(manifest)
        got = await ours.send(manifest)
        if "refused" in recorded or "refused" in got:  # the other object would hide the reason
            recorded.pop("object", None)
            got.pop("object", None)
        if lines := [f"{place}: {what}" for place, what in compare(recorded, got)]:
            found[f"{manifest.source} {manifest.title}"] = lines
    return found


async def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of manifests, or one file")
    parser.add_argument("--verb", choices=("apply", "create"), default="apply")
    parser.add_argument("--kubeconfig", type=Path, help="of the real API server; the default is that of kubectl")
    options = parser.parse_args(arguments)
    manifests = load_manifests(options.folder)
    async with (
        ApiServer() as server,
        HttpTransport(server.url) as ours,
        await connect(kubeconfig=options.kubeconfig) as real,
    ):
        found = await differences(
            manifests, Side(Client(ours), options.verb), Side(Client(real.transport), options.verb)
        )
    for title, lines in found.items():
        print(title, *lines, sep="\n    ")
    print(f"{len(manifests)} objects, {len(manifests) - len(found)} answered equally")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
