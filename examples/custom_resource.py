"""A custom resource, decoded into your own class.

The class may be a msgspec Struct, a dataclass or a pydantic model, or `decoder` may be a function
of JSON bytes. Without a decoder, custom resources are mappings: `widget["spec"]["size"]`.

The example creates a CustomResourceDefinition, follows its objects while it creates and changes
some, and removes everything at the end.

python examples/custom_resource.py [--kubeconfig FILE]
"""

from __future__ import annotations

import argparse
from typing import Any

import msgspec

from aioinformer import Client, Resource, SharedInformerFactory
from aioinformer.models import ObjectMeta, apiextensions_v1

import cluster


class WidgetSpec(msgspec.Struct, frozen=True):
    size: int
    colour: str = "grey"


class Widget(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: WidgetSpec


WIDGETS = Resource("example.com", "v1", "widgets", kind="Widget", decoder=Widget)
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {
            "kind": "Widget",
            "listKind": "WidgetList",
            "plural": "widgets",
            "singular": "widget",
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "size": {"type": "integer"},
                                    "colour": {"type": "string"},
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}


def widget(name: str, size: int) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": metadata,
        "spec": {"size": size},
    }


def is_served(definition: apiextensions_v1.CustomResourceDefinition | None) -> bool:
    if definition is None or definition.status is None:
        return False
    conditions = definition.status.conditions or ()
    return any(each.type == "Established" and each.status == "True" for each in conditions)


def on_add(each: Widget) -> None:
    print(f"added   {each.metadata.name}: {each.spec.colour}, size {each.spec.size}")


def on_update(old: Widget, new: Widget) -> None:
    print(f"updated {new.metadata.name}: {old.spec.size} -> {new.spec.size}")


async def main(arguments: argparse.Namespace) -> None:
    async with (
        cluster.connect(arguments) as transport,
        SharedInformerFactory(transport) as factory,
    ):
        definitions = factory.apiextensions.v1.customresourcedefinitions.informer()
        client = Client(transport)
        await cluster.create(client.resource(definitions.resource), DEFINITION)
        try:
            factory.start()
            # Not necessary for the informer: it waits for a resource that does not exist yet.
            await definitions.wait_for("widgets.example.com", is_served, timeout=30)

            widgets = factory.informer_for(WIDGETS)
            widgets.add_event_handler(on_add=on_add, on_update=on_update)
            writer = client.resource(WIDGETS)
            await writer.create(widget("first", 1))
            await writer.create(widget("second", 2))
            await factory.wait_for_cache_sync(timeout=30)

            written = await writer.patch("default/first", {"spec": {"size": 3}})
            await widgets.wait_for(written, timeout=30)  # from here on, the cache has this write
            total = sum(each.spec.size for each in widgets.lister().list())
            print(f"{len(widgets.lister().list())} widgets with a total size of {total}")
        finally:
            await client.resource(definitions.resource).delete("widgets.example.com")


if __name__ == "__main__":
    cluster.run(main, __doc__)
