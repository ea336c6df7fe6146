"""The certificates of the gateway's own CA on a head: damaged files are made good before clients notice for long."""

from sparkwright.app.services import Services
from sparkwright.domain.codec import Unreadable, from_json
from sparkwright.domain.values import dataclass
from sparkwright.remote.gateway import certificates


@dataclass(frozen=True, slots=True)
class MendedCertificates:
    """mended: one sentence for each part that was damaged. lost: why the CA cannot be restored, '' if nothing is."""

    mended: tuple[str, ...] = ()
    lost: str = ""

    @property
    def text(self) -> str:
        return "; ".join((*self.mended, *((self.lost,) if self.lost else ())))


async def mend_certificates(
    services: Services, node: str, store: str, door: str, renew: bool = False
) -> MendedCertificates:
    """Verify Caddy's files in `store` and remove or restore damaged ones; a running Caddy takes the new ones over.

    door: folder that Caddy runs in. renew: a CA that is lost is moved away if no Caddy runs. Raises NodeError.
    """
    done = await services.run(node, certificates(store, door, renew))
    try:
        return from_json(MendedCertificates, done.stdout)
    except Unreadable:
        return MendedCertificates()
