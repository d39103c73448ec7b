"""Who may see what: users by token, by a proxy or by your own function, and their rights by the RBAC of the cluster.

- `users`: a user, what streams and pages ask, and the errors of refusals;
- `requests`: what the headers of a request prove, without I/O;
- `reviews`: questions to the API server: shared, kept for seconds, at most so many a second;
- `rbac`: `Rbac`, which asks by TokenReview and SubjectAccessReview.
"""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
