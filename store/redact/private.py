"""What a machine and its operator are known by."""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Iterable
from typing import Final, NamedTuple, Self

from store.redact.addresses import is_address

_USER_VARIABLES: Final = ("USER", "LOGNAME", "SUDO_USER")
_NOBODY_IN_PARTICULAR: Final = frozenset(("", "root"))
_EVERY_MACHINE: Final = frozenset(("", "localhost"))


class Private(NamedTuple):
    """`models`: paths of models that may be mentioned anywhere."""

    secrets: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    models: tuple[str, ...] = ()

    @classmethod
    def here(cls, secrets: Iterable[str] = (), hosts: Iterable[str] = (), models: Iterable[str] = ()) -> Self:
        """This machine and whoever runs this process, and what is given beside."""
        homes, users = {os.path.expanduser("~")}, {os.environ.get(name, "") for name in _USER_VARIABLES}
        try:
            account = pwd.getpwuid(os.getuid())
        except KeyError:  # in a container the user may have a number only
            pass
        else:
            homes.add(account.pw_dir)
            users |= {account.pw_name, account.pw_gecos.partition(",")[0].strip()}
        homes |= {os.path.realpath(home) for home in homes}
        own = {socket.gethostname(), os.uname().nodename}
        named = {name for name in (*own, *hosts, *(name.partition(".")[0] for name in own)) if not is_address(name)}
        return cls(
            tuple(secrets),
            tuple(homes),
            tuple(users - _NOBODY_IN_PARTICULAR),
            tuple(named - _EVERY_MACHINE),
            tuple(models),
        )


NOBODY: Final = Private()
