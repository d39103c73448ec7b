"""`InformerBuilder`: the settings that all informers of a factory share, and the informers that are built with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from aioinformer.functions import plain_function
from aioinformer.informer.options import RunOptions
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.metrics.counters import count_requests
from aioinformer.metrics.names import name_for
from aioinformer.reflector.listwatch import ListWatch
from aioinformer.reflector.options import check_metrics, check_options
from aioinformer.resources.scopes import Scope, check_namespace, key_of
from aioinformer.transport.clients import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kubernetes_asyncio.client import ApiClient

    from aioinformer.informer.options import Making
    from aioinformer.metrics.names import InformerName
    from aioinformer.metrics.provider import MetricsProvider
    from aioinformer.reflector.options import ListOptions
    from aioinformer.resources.resource import Resource
    from aioinformer.resources.scopes import InformerKey
    from aioinformer.transport import Transport
    from aioinformer.transport.auth.credentials import Connection

I = TypeVar("I", bound=SharedIndexInformer[Any])  # noqa: E741


class InformerBuilder:
    """Builds the informers of one factory. The arguments are those of the factory.

    Args:
        argument: the name of the factory's argument for `client`, for errors.

    Attributes:
        name: of the informers, for metrics; None if they have none.

    Raises:
        UsageError: an argument is invalid.
    """

    def __init__(
        self,
        client: Transport | Connection | ApiClient | str,
        argument: str,
        defaults: Making,
        *,
        namespace: str,
        tweak_list_options: Callable[[ListOptions], None] | None,
        name: InformerName | str | None,
        metrics: MetricsProvider | None,
    ) -> None:
        check_namespace(namespace)
        check_options(defaults.options, RunOptions)
        check_metrics(metrics)
        self.defaults = defaults
        self.namespace = namespace
        self._tweak = plain_function(tweak_list_options, "tweak_list_options")
        self._metrics = metrics
        self.client = Client(client, argument)
        self.name = name_for(name, metrics)
        if metrics is not None:
            count_requests(self.client.transport, metrics)

    def key(self, resource: Resource[Any], options: Mapping[str, Any]) -> InformerKey:
        """Return the key of the informer of a resource."""
        return key_of(resource, options, Scope(self.namespace))

    def list_watch(self, resource: Resource[Any], scope: Scope) -> ListWatch[Any]:
        """Return the lister-watcher of a resource and scope."""
        return ListWatch(
            self.client.transport,
            resource,
            scope.namespace,
            scope.label_selector,
            scope.field_selector,
            tweak=self._tweak,
        )

    def build(
        self,
        kind: Callable[..., I],
        key: InformerKey,
        options: Mapping[str, Any],
        making: Making,
        source: Callable[[str], ListWatch[Any]] | ListWatch[Any] | None = None,
    ) -> I:
        """Return a new informer.

        Args:
            options: from `named_options`.
            source: the first argument of `kind`; by default, the lister-watcher of the key.
        """
        named = None if self._metrics is None else self.name
        return kind(
            source or self.list_watch(key.resource, key.scope),
            indexers=options.get("indexers"),
            name=f"informer of {key}" if key.differences else "",
            identifier=None if named is None else named.with_resource(key.resource, key.query),
            metrics=self._metrics,
            **making.arguments(),
        )

    async def aclose(self) -> None:
        """Release the name, and close the transport if it was created here."""
        if self.name is not None:
            self.name.release()
        await self.client.aclose()
