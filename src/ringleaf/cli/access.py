"""How a command reaches the API server."""

from ringleaf.cli.failure import BadUse
from ringleaf.kube.credentials import BadCredentials, Credentials, load


async def credentials_of(kubeconfig: str | None, context: str | None) -> Credentials:
    """Where the API server is and who we are, or one line that says what is wrong."""
    try:
        return await load(kubeconfig, context)
    except BadCredentials as error:
        raise BadUse(str(error)) from None
