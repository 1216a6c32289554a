"""How a command reaches the API server."""

from ringleaf.cli.failure import BadUse
from ringleaf.kube.credentials import BadCredentials, Credentials, load


async def credentials_of(kubeconfig: str | None, context: str | None) -> Credentials:
    """Load the address of the API server and the credentials.

    Raises:
        BadUse: One line that says what is wrong.

    """
    try:
        return await load(kubeconfig, context)
    except BadCredentials as error:
        raise BadUse(str(error)) from None
