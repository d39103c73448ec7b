"""An Indexer that you fill yourself, and all of its methods. It needs no cluster and no event
loop.

python examples/fake_indexer.py
"""

from __future__ import annotations

from typing import Any

from aioinformer import Indexer, meta_namespace_key_func
from aioinformer.resources import meta_namespace_index_func

Pod = dict[str, Any]


def pod(name: str, namespace: str, users: str, node: str) -> Pod:
    metadata = {"name": name, "namespace": namespace, "annotations": {"users": users}}
    return {"metadata": metadata, "spec": {"nodeName": node}}


def by_user(pod: Pod) -> list[str]:
    """Return all users of the annotation: an object may have several values in an index."""
    return [user for user in pod["metadata"]["annotations"]["users"].split(",") if user]


def by_node(pod: Pod) -> list[str]:
    return [pod["spec"]["nodeName"]]


def names(pods: Any) -> str:
    return ", ".join(sorted(map(meta_namespace_key_func, pods)))


def main() -> None:
    indexers = {"user": by_user, "node": by_node, "namespace": meta_namespace_index_func}
    indexer: Indexer[Pod] = Indexer(meta_namespace_key_func, indexers)
    cart = pod("cart", "shop", "ernie,bert", "node-1")
    search = pod("search", "shop", "bert,oscar", "node-2")
    mail = pod("mail", "office", "ernie,elmo", "node-1")
    for each in (cart, search, mail):
        indexer.add(each)

    print("list:                  ", names(indexer.list()))
    print("list_keys:             ", ", ".join(sorted(indexer.list_keys())))
    print("get_by_key:            ", names([indexer.get_by_key("shop/cart")]))
    print("get:                   ", names([indexer.get(mail)]))
    print("by_index node:         ", names(indexer.by_index("node", "node-1")))
    print("by_index user:         ", names(indexer.by_index("user", "bert")))
    print("by_index namespace:    ", names(indexer.by_index("namespace", "shop")))
    print("index_keys user:       ", ", ".join(indexer.index_keys("user", "ernie")))
    print("index user of cart:    ", names(indexer.index("user", cart)))
    print("list_index_func_values:", ", ".join(sorted(indexer.list_index_func_values("user"))))
    print("get_indexers:          ", ", ".join(sorted(indexer.get_indexers())))

    indexer.update(pod("cart", "shop", "oscar", "node-3"))
    print("after the update:      ", names(indexer.by_index("user", "oscar")))

    indexer.delete(search)
    print("after the delete:      ", names(indexer.list()))

    indexer.add_indexers({"initial": lambda pod: [pod["metadata"]["name"][0]]})
    print("add_indexers, later:   ", names(indexer.by_index("initial", "m")))

    indexer.replace([mail])
    print("after replace:         ", names(indexer.list()))


if __name__ == "__main__":
    main()
