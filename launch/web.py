"""`python -m launch.web`: serve the site on the listening socket that is our standard input.

Whoever starts us opens the socket. So several processes can serve one port, each supervised by itself, and
none left over from a crash can hold the port against its successor.
"""

import socket

import uvicorn

# Time for answers under way; a browser reconnects by itself, and what it was shown is in the database.
_LEAVE_SECONDS = 3
# A frame over the protocol's 64 KiB gets an error frame, so it is read; one over this closes the socket.
_LARGEST_FRAME = 16 * 1024 * 1024


def main() -> None:
    config = uvicorn.Config(
        "config.asgi:application",
        log_config=None,  # config.logging's
        lifespan="off",
        ws_max_size=_LARGEST_FRAME,
        timeout_graceful_shutdown=_LEAVE_SECONDS,
    )
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=0)])


if __name__ == "__main__":
    main()
